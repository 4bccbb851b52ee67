//! Requests and replies as elements of lists: lines of text before a payload.
//!
//! A request is `list for the reply`, line feed, `correlation`, line feed, payload; a reply is `correlation`, line feed,
//! payload. An element has no fields of its own, so clients of Redis encode theirs in some text.

use pubmark_protocol::requests::ReplyTo;

/// What ends each line.
pub(super) const LINE_END: u8 = b'\n';

/// Start of the keys of all lists, so that they meet no other kind of value.
const KEY_PREFIX: &str = "pubmark:list:";

/// The list that belongs to a topic or a filter.
pub(super) fn key(name: &str) -> String {
    format!("{KEY_PREFIX}{name}")
}

/// The list for the reply to a request, and its payload; `None` if it is not a request.
pub(super) fn read_request(element: &[u8]) -> Option<(ReplyTo<'_>, &[u8])> {
    let (address, rest) = split_line(element)?;
    let (correlation, payload) = split_line(rest)?;
    Some((ReplyTo { address: std::str::from_utf8(address).ok()?, correlation }, payload))
}

/// The correlation of a reply, and its payload; `None` if it is not a reply.
pub(super) fn read_answer(element: &[u8]) -> Option<(&str, &[u8])> {
    let (correlation, payload) = split_line(element)?;
    Some((std::str::from_utf8(correlation).ok()?, payload))
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == LINE_END)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_read_as_far_as_its_lines_go() {
        let to = ReplyTo { address: "a:b", correlation: b"0-7" };
        assert_eq!(read_request(b"a:b\n0-7\npay\nload"), Some((to, &b"pay\nload"[..])));
        assert_eq!(read_request(b"\n\n"), Some((ReplyTo { address: "", correlation: b"" }, &b""[..])));
        assert_eq!(read_answer(b"0-7\npay\nload"), Some(("0-7", &b"pay\nload"[..])));
        for other in [&b""[..], b"a", b"a\nb", b"\xff\n1\n"] {
            assert_eq!(read_request(other), None, "{}", other.escape_ascii());
        }
        for other in [&b""[..], b"a", b"\xff\n"] {
            assert_eq!(read_answer(other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn every_front_of_an_element_is_read_or_not_and_nothing_else() {
        let whole = b"\x00\xc3\n\n\n\xe2\x82\xac\n1";
        for end in 0..=whole.len() {
            for begin in 0..=end {
                let part = &whole[begin..end];
                let lines = part.iter().filter(|byte| **byte == LINE_END).count();
                assert!(read_request(part).is_none() || lines >= 2);
                assert!(read_answer(part).is_none() || lines >= 1);
            }
        }
    }
}
