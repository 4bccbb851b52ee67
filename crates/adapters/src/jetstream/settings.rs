//! What an endpoint of JetStream has behind its port: `nats://host:4222?storage=memory`. Clients create the streams, so it is they who
//! say where the server keeps the messages.

use pubmark_protocol::capabilities::EndpointSettings;

/// How endpoints name them.
pub(super) const SETTINGS: EndpointSettings =
    EndpointSettings { begins_with: '?', check: |text| Storage::named_in(Some(text)).map(|_| ()), finds: None };

/// Where the server keeps the messages of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Storage {
    /// In files: the server's default, and what its users have.
    #[default]
    File,
    /// In memory, where an acknowledgement means less.
    Memory,
}

impl Storage {
    /// Its name in endpoints and for the server.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Storage::File => "file",
            Storage::Memory => "memory",
        }
    }

    /// The storage that is named by what stands behind a port.
    ///
    /// # Errors
    /// Why it names none.
    pub(super) fn named_in(settings: Option<&str>) -> Result<Storage, String> {
        let text = settings.unwrap_or_default();
        let mut named = None;
        for pair in text.strip_prefix('?').unwrap_or(text).split('&').filter(|pair| !pair.is_empty()) {
            let Some(storage) = [Storage::File, Storage::Memory].into_iter().find(|known| known.is_named_by(pair))
            else {
                return Err(format!(
                    "`{pair}` is none of its settings: `storage=file` (the default), `storage=memory`"
                ));
            };
            if named.replace(storage).is_some() {
                return Err("`storage` is there twice".to_owned());
            }
        }
        Ok(named.unwrap_or_default())
    }

    fn is_named_by(self, pair: &str) -> bool {
        pair.strip_prefix("storage=") == Some(self.name())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_in_files_unless_an_endpoint_says_otherwise() {
        for (settings, storage) in [
            (None, Storage::File),
            (Some(""), Storage::File),
            (Some("?"), Storage::File),
            (Some("?storage=file"), Storage::File),
            (Some("?storage=memory"), Storage::Memory),
        ] {
            assert_eq!(Storage::named_in(settings), Ok(storage), "{settings:?}");
        }
    }

    #[test]
    fn what_is_no_setting_is_refused_with_what_there_is() {
        for wrong in ["?storage=disk", "?storage", "?storage=", "?Storage=memory", "?replicas=3", "?memory", "/x"] {
            let why = (SETTINGS.check)(wrong).unwrap_err();
            assert!(why.contains("`storage=file` (the default), `storage=memory`"), "{wrong}: {why}");
        }
        assert_eq!(Storage::named_in(Some("?storage=file&storage=memory")), Err("`storage` is there twice".to_owned()));
    }
}
