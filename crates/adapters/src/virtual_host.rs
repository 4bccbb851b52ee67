//! The virtual host that an endpoint of AMQP names behind its port: `amqp://host:5672/name`, percent-encoded
//! (<https://www.rabbitmq.com/docs/uri-spec>).
//!
//! Unlike there, a lone slash at the end names none, as in the endpoints of all other protocols, and not the one whose name is
//! empty.

use pubmark_protocol::capabilities::EndpointSettings;

/// Longest name, bytes (AMQP 0-9-1, short string).
const LONGEST_BYTES: usize = 255;

/// How endpoints name it.
pub const VIRTUAL_HOST: EndpointSettings =
    EndpointSettings { begins_with: '/', check: |settings| named_in(Some(settings)).map(drop), finds: None };

/// The virtual host that is named by what stands behind a port.
///
/// # Errors
/// Why it is no name.
pub fn named_in(settings: Option<&str>) -> Result<Option<String>, String> {
    let Some(name) = settings.and_then(|settings| settings.strip_prefix('/')).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if let Some(sign) = name.chars().find(|sign| matches!(sign, '/' | '?' | '#') || !sign.is_ascii_graphic()) {
        let sign = sign.escape_default();
        return Err(format!(
            "`{sign}` cannot stand in the name of a virtual host, which is percent-encoded: `/` is `%2F`"
        ));
    }
    let bytes = decoded(name.as_bytes()).ok_or("the name of its virtual host is not percent-encoded")?;
    if bytes.len() > LONGEST_BYTES {
        return Err(format!("the name of its virtual host has more than {LONGEST_BYTES} B"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "the name of its virtual host is not UTF-8".to_owned())
}

/// Percent-decoding (RFC 3986 §2.1); `None` for a `%` without two digits.
fn decoded(mut text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    loop {
        text = match *text {
            [] => return Some(bytes),
            [b'%', high, low, ref rest @ ..] => {
                bytes.push((digit(high)? << 4 | digit(low)?) as u8);
                rest
            }
            [b'%', ..] => return None,
            [byte, ref rest @ ..] => {
                bytes.push(byte);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_decoded() {
        for (settings, name) in [
            ("/%2F", "/"),
            ("/test", "test"),
            ("/a%2fb%20c", "a/b c"),
            ("/%25", "%"),
            ("/%C3%A4", "ä"),
            ("/a@b", "a@b"),
        ] {
            assert_eq!(named_in(Some(settings)), Ok(Some(name.to_owned())), "{settings}");
        }
        assert_eq!((named_in(None), named_in(Some("/"))), (Ok(None), Ok(None)));
    }

    #[test]
    fn an_invalid_name_is_reported() {
        for (settings, words) in [
            ("/a/b", "`/` cannot stand"),
            ("//", "`/` cannot stand"),
            ("/a?b", "`?` cannot stand"),
            ("/a b", "` ` cannot stand"),
            ("/ä", "cannot stand"),
            ("/%", "is not percent-encoded"),
            ("/%2", "is not percent-encoded"),
            ("/%+1", "is not percent-encoded"),
            ("/%ff", "is not UTF-8"),
        ] {
            let error = named_in(Some(settings)).expect_err(settings);
            assert!(error.contains(words), "{settings}: {error}");
            assert!((VIRTUAL_HOST.check)(settings).is_err());
        }
        assert!(named_in(Some(&format!("/{}", "a".repeat(256)))).is_err());
    }
}
