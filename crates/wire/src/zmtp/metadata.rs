//! Metadata of peers in READY and INITIATE (37/ZMTP, "Connection Metadata").

/// Kinds of sockets that publish and subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketType {
    /// Publishes.
    Pub,
    /// Publishes, and hands subscriptions on.
    Xpub,
    /// Subscribes.
    Sub,
    /// Subscribes, for others.
    Xsub,
}

impl SocketType {
    const ALL: [SocketType; 4] = [SocketType::Pub, SocketType::Xpub, SocketType::Sub, SocketType::Xsub];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SocketType::Pub => "PUB",
            SocketType::Xpub => "XPUB",
            SocketType::Sub => "SUB",
            SocketType::Xsub => "XSUB",
        }
    }

    /// The kind of that name.
    pub fn of(name: &[u8]) -> Option<SocketType> {
        SocketType::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// Does it take messages, rather than give them?
    pub fn subscribes(self) -> bool {
        matches!(self, SocketType::Sub | SocketType::Xsub)
    }
}

/// Properties of a peer, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata<'a>(&'a [u8]);

impl<'a> Metadata<'a> {
    /// Looks whether bytes are properties, up to their end.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Metadata<'a>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = property(rest)?.2;
        }
        Some(Metadata(bytes))
    }

    /// The value of a property; upper and lower case are the same. Of several of that name, the first.
    pub fn get(&self, wanted: &str) -> Option<&'a [u8]> {
        let mut rest = self.0;
        while let Some((name, value, behind)) = property(rest) {
            if name.eq_ignore_ascii_case(wanted.as_bytes()) {
                return Some(value);
            }
            rest = behind;
        }
        None
    }
}

/// Name and value of the first property, and what follows.
fn property(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length)).filter(|(name, _)| !name.is_empty())?;
    let (size, rest) = rest.split_first_chunk::<4>()?;
    let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*size) as usize)?;
    Some((name, value, rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_found_by_their_names() {
        let bytes = b"\x0bSocket-Type\0\0\0\x04XSUB\x08Identity\0\0\0\0";
        let metadata = Metadata::read(bytes).unwrap();
        assert_eq!(metadata.get("socket-TYPE").and_then(SocketType::of), Some(SocketType::Xsub));
        assert_eq!((metadata.get("Identity"), metadata.get("Resource")), (Some(&b""[..]), None));
        assert_eq!(Metadata::read(b"").unwrap().get("Socket-Type"), None);
        for length in (1..bytes.len()).filter(|length| *length != 20) {
            assert_eq!(Metadata::read(&bytes[..length]), None, "{length}");
        }
        for wrong in [&b"\0\0\0\0\0"[..], b"\x01a\xff\xff\xff\xff", b"\x01a\0\0\0\x02b"] {
            assert_eq!(Metadata::read(wrong), None);
        }
        assert_eq!(SocketType::of(b"PAIR"), None);
    }
}
