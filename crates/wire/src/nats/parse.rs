//! Splits a server's stream of bytes into operations.

use super::error::DecodeError;
use super::operation::{Message, Operation};
use crate::front::Front;

/// Longest line that is accepted, bytes: INFO lists all servers of a cluster; other lines are far shorter.
pub const LONGEST_LINE_BYTES: usize = 64 * 1024;

/// What is at the front of `buffer`.
///
/// # Errors
/// As soon as a line cannot be one of a server's, or announces more than `most_bytes`, so that a reader never has to hold
/// more than that or [`LONGEST_LINE_BYTES`].
#[inline]
pub fn next(buffer: &[u8], most_bytes: usize) -> Result<Front<Operation<'_>>, DecodeError> {
    let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
        return partial_line(buffer);
    };
    let line = &buffer[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let behind = end + 1;
    let whole = |operation| Ok(Front::Whole { packet: operation, bytes: behind });
    match first_word(line) {
        (b"MSG", rest) => message(rest, &MSG, buffer, behind, most_bytes),
        (b"HMSG", rest) => message(rest, &HMSG, buffer, behind, most_bytes),
        (b"PING", b"") => whole(Operation::Ping),
        (b"PONG", b"") => whole(Operation::Pong),
        (b"+OK", b"") => whole(Operation::Ok),
        (b"INFO", rest) => whole(Operation::Info(rest)),
        (b"-ERR", rest) => {
            let words =
                std::str::from_utf8(rest).map_err(|_| DecodeError::Field { operation: "-ERR", field: "text" })?;
            whole(Operation::Error(words.trim().trim_matches('\'')))
        }
        _ => Err(unknown(line)),
    }
}

/// A line whose end has not come: is it one at all?
fn partial_line(front: &[u8]) -> Result<Front<Operation<'_>>, DecodeError> {
    const BEGINNINGS: [&[u8]; 7] = [b"MSG ", b"HMSG ", b"PING\r", b"PONG\r", b"+OK\r", b"INFO ", b"-ERR"];
    let fits = |beginning: &&[u8]| beginning.iter().zip(front).all(|(expected, found)| expected == found);
    if !BEGINNINGS.iter().any(fits) {
        return Err(unknown(front));
    }
    if front.len() > LONGEST_LINE_BYTES {
        return Err(DecodeError::Line { limit: LONGEST_LINE_BYTES });
    }
    Ok(Front::Partial(None))
}

fn unknown(line: &[u8]) -> DecodeError {
    let shown = &line[..line.len().min(16)];
    DecodeError::Operation(shown.escape_ascii().to_string())
}

/// A word up to the next blank, and what follows the blanks behind it.
fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    (word, rest.trim_ascii_start())
}

/// The two kinds of messages: their word, and how many sizes end their line.
struct Kind {
    operation: &'static str,
    has_headers: bool,
}

const MSG: Kind = Kind { operation: "MSG", has_headers: false };
const HMSG: Kind = Kind { operation: "HMSG", has_headers: true };

/// `subject sid [reply] [header bytes] total bytes`, and the payload.
fn message<'a>(
    rest: &'a [u8],
    kind: &Kind,
    buffer: &'a [u8],
    behind: usize,
    most_bytes: usize,
) -> Result<Front<Operation<'a>>, DecodeError> {
    let wrong = |field| DecodeError::Field { operation: kind.operation, field };
    let (subject, rest) = first_word(rest);
    let (subscription, rest) = first_word(rest);
    let mut words: [&[u8]; 3] = [&[]; 3];
    let mut count = 0;
    let mut rest = rest;
    while !rest.is_empty() {
        let (word, behind) = first_word(rest);
        *words.get_mut(count).ok_or_else(|| wrong("number of words"))? = word;
        (count, rest) = (count + 1, behind);
    }
    let sizes = 1 + usize::from(kind.has_headers);
    let reply = match count.checked_sub(sizes) {
        Some(0) => None,
        Some(1) => Some(std::str::from_utf8(words[0]).map_err(|_| wrong("reply"))?),
        _ => return Err(wrong("number of words")),
    };
    let total = number(words[count - 1]).ok_or_else(|| wrong("size"))?;
    let header_bytes = if kind.has_headers { number(words[count - 2]).ok_or_else(|| wrong("size"))? } else { 0 };
    if header_bytes > total {
        return Err(wrong("size"));
    }
    let bytes = behind.saturating_add(total).saturating_add(super::END.len());
    if bytes > most_bytes {
        return Err(DecodeError::TooLarge { bytes, limit: most_bytes });
    }
    let Some(body) = buffer.get(behind..bytes) else { return Ok(Front::Partial(Some(bytes))) };
    let Some(body) = body.strip_suffix(super::END) else { return Err(DecodeError::PayloadEnd) };
    let message = Message {
        subject: std::str::from_utf8(subject).ok().filter(|name| !name.is_empty()).ok_or_else(|| wrong("subject"))?,
        subscription: number(subscription).ok_or_else(|| wrong("subscription"))? as u64,
        reply,
        headers: &body[..header_bytes],
        payload: &body[header_bytes..],
    };
    Ok(Front::Whole { packet: Operation::Message(message), bytes })
}

/// A number of at most 10 digits: every size and every subscription's number of ours has fewer.
fn number(word: &[u8]) -> Option<usize> {
    if word.is_empty() || word.len() > 10 {
        return None;
    }
    word.iter().try_fold(0usize, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> (Operation<'_>, usize) {
        match next(bytes, 1_000_000).unwrap() {
            Front::Whole { packet: operation, bytes } => (operation, bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn examples_of_the_documentation_are_read() {
        assert_eq!(whole(b"PING\r\nPONG\r\n"), (Operation::Ping, 6));
        assert_eq!(whole(b"+OK\r\n"), (Operation::Ok, 5));
        assert_eq!(whole(b"-ERR 'Unknown Protocol Operation'\r\n").0, Operation::Error("Unknown Protocol Operation"));
        let message = |subject, subscription, reply, headers, payload| {
            Operation::Message(Message { subject, subscription, reply, headers, payload })
        };
        let plain = b"MSG FOO.BAR 9 11\r\nHello World\r\nPING\r\n";
        assert_eq!(whole(plain), (message("FOO.BAR", 9, None, b"", b"Hello World"), 31));
        let reply = b"MSG FOO.BAR 9 GREETING.34 11\r\nHello World\r\n";
        assert_eq!(whole(reply).0, message("FOO.BAR", 9, Some("GREETING.34"), b"", b"Hello World"));
        let empty = b"MSG a 1 0\r\n\r\n";
        assert_eq!(whole(empty), (message("a", 1, None, b"", b""), empty.len()));
        let headers: &[u8] = b"NATS/1.0\r\nFoodGroup: vegetable\r\n\r\n";
        let with = [b"HMSG FOO.BAR 9 BAZ.69 34 45\r\n", headers, b"Hello World\r\n"].concat();
        assert_eq!(whole(&with), (message("FOO.BAR", 9, Some("BAZ.69"), headers, b"Hello World"), with.len()));
    }

    #[test]
    fn every_partial_packet_waits_and_has_a_length_once_its_line_is_complete() {
        let bytes = b"HMSG a.b 9 12 15\r\nNATS/1.0\r\n\r\nabc\r\n";
        for length in 1..bytes.len() {
            let expected = if length < 18 { None } else { Some(bytes.len()) };
            assert_eq!(next(&bytes[..length], 1_000), Ok(Front::Partial(expected)), "{length}");
        }
        assert!(matches!(next(bytes, 1_000), Ok(Front::Whole { bytes: 35, .. })));
    }

    #[test]
    fn bytes_that_are_no_nats_are_refused_as_early_as_possible() {
        for wrong in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"HT",
            b"\x20\x02\x00\x00",
            b"PINGS\r\n",
            b"MSG a 1\r\n",
            b"MSG a 1 b c 3\r\nabc\r\n",
            b"MSG a 1 x\r\n",
            b"MSG a 1 -3\r\n",
            b"MSG a x 3\r\nabc\r\n",
            b"MSG a 1 99999999999\r\n",
            b"HMSG a 1 9 3\r\nabc\r\n",
            b"HMSG a 1 3\r\nabc\r\n",
            b"MSG a 1 3\r\nabcde",
            b"MSG  \r\n",
            b"MSG \xff 1 0\r\n\r\n",
        ] {
            assert!(next(wrong, 1_000).is_err(), "{}", wrong.escape_ascii());
        }
        assert_eq!(next(b"MSG a 1 1000\r\n", 1_000), Err(DecodeError::TooLarge { bytes: 1_016, limit: 1_000 }));
        let endless = [b"INFO ".to_vec(), vec![b'x'; LONGEST_LINE_BYTES]].concat();
        assert_eq!(next(&endless, 1_000), Err(DecodeError::Line { limit: LONGEST_LINE_BYTES }));
    }
}
