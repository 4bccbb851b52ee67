//! What a client writes.

use serde::Serialize;

/// The words with which a client begins.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Connect<'a> {
    /// `+OK` for each line.
    pub verbose: bool,
    /// Stricter checks of subjects.
    pub pedantic: bool,
    /// TLS is used.
    pub tls_required: bool,
    /// What the server calls the client.
    pub name: &'a str,
    /// What the client is written in.
    pub lang: &'a str,
    /// Its version.
    pub version: &'a str,
    /// 1: the server may send INFO again.
    pub protocol: u8,
    /// Get one's own messages where one is subscribed to them.
    pub echo: bool,
    /// Headers are understood.
    pub headers: bool,
    /// The server responds to a request without a responder.
    pub no_responders: bool,
    /// User name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// Password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<&'a str>,
    /// Token instead of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<&'a str>,
    /// Public half of an NKey, instead of all three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nkey: Option<&'a str>,
    /// The user's token that names its NKey, instead of `nkey`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt: Option<&'a str>,
    /// The server's nonce, signed with the NKey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sig: Option<&'a str>,
}

/// Appends `CONNECT {…}`.
pub fn encode_connect(connect: &Connect<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"CONNECT ");
    serde_json::to_writer(&mut *out, connect).expect("texts and truth values are all JSON has");
    out.extend_from_slice(super::END);
}

/// Appends `SUB subject [queue group] sid`.
pub fn encode_subscribe(subject: &str, queue_group: Option<&str>, subscription: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"SUB ");
    out.extend_from_slice(subject.as_bytes());
    out.push(b' ');
    if let Some(group) = queue_group {
        out.extend_from_slice(group.as_bytes());
        out.push(b' ');
    }
    crate::decimal::append(subscription, out);
    out.extend_from_slice(super::END);
}

/// Appends `UNSUB sid`: ends that subscription; the server sends no response.
pub fn encode_unsubscribe(subscription: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"UNSUB ");
    crate::decimal::append(subscription, out);
    out.extend_from_slice(super::END);
}

/// Appends the line of a message: `PUB subject [reply] bytes`. The payload and [`super::END`] follow.
#[inline]
pub fn encode_publish(subject: &str, reply: Option<&str>, payload_bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"PUB ");
    out.extend_from_slice(subject.as_bytes());
    out.push(b' ');
    if let Some(reply) = reply {
        out.extend_from_slice(reply.as_bytes());
        out.push(b' ');
    }
    crate::decimal::append(payload_bytes as u64, out);
    out.extend_from_slice(super::END);
}

/// First line of a message's headers.
const HEADER_VERSION: &str = "NATS/1.0";
/// Stands between a header's name and its value.
const SEPARATOR: &str = ": ";
/// Bytes of headers besides names and values: the version line and the empty line at the end.
pub const HEADERS_BYTES: usize = HEADER_VERSION.len() + 2 * super::END.len();
/// Bytes of a header besides its name and its value.
pub const HEADER_BYTES: usize = SEPARATOR.len() + super::END.len();
/// Bytes from the end of the last header's value to the payload.
pub const HEADERS_END_BYTES: usize = 2 * super::END.len();

/// Appends the line of a message with headers and these: `HPUB subject [reply] header bytes total bytes`. The payload and
/// [`super::END`] follow.
pub fn encode_publish_with_headers<'a>(
    subject: &str,
    reply: Option<&str>,
    headers: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    payload_bytes: usize,
    out: &mut Vec<u8>,
) {
    let texts = |(name, value): (&str, &str)| name.len() + value.len() + HEADER_BYTES;
    let header_bytes = HEADERS_BYTES + headers.clone().map(texts).sum::<usize>();
    out.extend_from_slice(b"HPUB ");
    out.extend_from_slice(subject.as_bytes());
    out.push(b' ');
    if let Some(reply) = reply {
        out.extend_from_slice(reply.as_bytes());
        out.push(b' ');
    }
    crate::decimal::append(header_bytes as u64, out);
    out.push(b' ');
    crate::decimal::append((header_bytes + payload_bytes) as u64, out);
    out.extend_from_slice(super::END);
    out.extend_from_slice(HEADER_VERSION.as_bytes());
    out.extend_from_slice(super::END);
    for (name, value) in headers {
        for part in [name, SEPARATOR, value] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(super::END);
    }
    out.extend_from_slice(super::END);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(encode: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        encode(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn lines_are_those_of_the_documentation() {
        assert_eq!(text(|out| encode_subscribe("FOO", None, 1, out)), "SUB FOO 1\r\n");
        assert_eq!(text(|out| encode_subscribe("BAR", Some("G1"), 44, out)), "SUB BAR G1 44\r\n");
        assert_eq!(text(|out| encode_unsubscribe(1, out)), "UNSUB 1\r\n");
        assert_eq!(text(|out| encode_publish("FOO", None, 11, out)), "PUB FOO 11\r\n");
        assert_eq!(text(|out| encode_publish("NOTIFY", Some("INBOX.1"), 0, out)), "PUB NOTIFY INBOX.1 0\r\n");
    }

    #[test]
    fn headers_are_counted_with_their_version_line_and_their_end() {
        let headers = [("pubmark", "c1"), ("site", "hall 3")];
        let encoded = text(|out| encode_publish_with_headers("FOO", None, headers.into_iter(), 5, out));
        assert_eq!(encoded, "HPUB FOO 39 44\r\nNATS/1.0\r\npubmark: c1\r\nsite: hall 3\r\n\r\n");
        let message = format!("HMSG FOO 1 39 44\r\n{}hello\r\n", encoded.split_once("\r\n").unwrap_or_default().1);
        let Ok(crate::front::Front::Whole { packet: crate::nats::Operation::Message(message), .. }) =
            crate::nats::next(message.as_bytes(), 1_000)
        else {
            panic!("no message");
        };
        assert_eq!((message.header("pubmark"), message.header("site")), (Some(&b"c1"[..]), Some(&b"hall 3"[..])));
        let twice = crate::nats::Message { headers: b"NATS/1.0\r\npubmark: c1\r\npubmark: c2\r\n\r\n", ..message };
        assert_eq!(twice.header("pubmark"), Some(&b""[..]));
        assert_eq!((message.header("sit"), message.payload), (None, &b"hello"[..]));
    }

    #[test]
    fn a_log_in_is_there_only_if_given_and_is_quoted() {
        let connect = Connect {
            verbose: false,
            pedantic: false,
            tls_required: false,
            name: "a\"b",
            lang: "rust",
            version: "0.1.0",
            protocol: 1,
            echo: true,
            headers: true,
            no_responders: true,
            user: None,
            pass: None,
            auth_token: None,
            nkey: None,
            jwt: None,
            sig: None,
        };
        let without = text(|out| encode_connect(&connect, out));
        assert!(without.starts_with("CONNECT {\"verbose\":false") && without.ends_with("}\r\n"), "{without}");
        assert!(without.contains("\"name\":\"a\\\"b\"") && !without.contains("user"), "{without}");
        let with = text(|out| encode_connect(&Connect { user: Some("me"), pass: Some("x'\"y"), ..connect }, out));
        assert!(with.contains("\"user\":\"me\",\"pass\":\"x'\\\"y\""), "{with}");
    }
}
