//! Cuts replies and pushes out of a stream of bytes.

use super::error::DecodeError;
use crate::front::Front;

/// Longest line that we take, bytes: lengths, numbers, errors.
const LONGEST_LINE_BYTES: usize = 64 * 1024;
/// Parts of a push that are stored; a message by a pattern has four.
pub const MOST_PARTS: usize = 4;
/// Most values in one reply, including nested ones: an incomplete reply is parsed again from its front with every read, so the
/// cost is limited by their number. The response to HELLO has some dozens.
const MOST_VALUES: usize = 1_024;

/// The parts of a push or an array, where they are few and plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    parts: [&'a [u8]; MOST_PARTS],
    count: usize,
}

impl<'a> Parts<'a> {
    /// The parts in order.
    pub fn as_slice(&self) -> &[&'a [u8]] {
        &self.parts[..self.count]
    }
}

/// A value of the server's, as far as a client looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A short text (`+OK`).
    Simple(&'a str),
    /// Refuses (`-ERR …`, or `!` and a string); the first word is its kind.
    Error(&'a str),
    /// A number.
    Integer(i64),
    /// A string.
    Bulk(&'a [u8]),
    /// Nothing: a string or a list that is not there.
    Null,
    /// A list or a map, whole; [`super::Values`] goes through it.
    Aggregate(&'a [u8]),
    /// Sent without a request: messages, responses to subscriptions.
    Push(Parts<'a>),
    /// Anything else, skipped.
    Other,
}

/// One value without what is in it.
pub(super) enum Head<'a> {
    /// A line: type, text.
    Line(u8, &'a [u8]),
    /// A string or a list of length -1 (RESP2).
    Null,
    /// A string, without the format of a verbatim one.
    Bulk(&'a [u8]),
    /// An error that is a string, and not a line.
    BulkError(&'a [u8]),
    /// So many values follow.
    Aggregate(u8, usize),
}

/// What is at the front of `buffer`, which is not empty.
///
/// # Errors
/// As soon as a value cannot be one, or announces more than `most_bytes`, so that a reader never has to hold more than that or
/// a line of 64 KiB.
#[inline]
pub fn next(buffer: &[u8], most_bytes: usize) -> Result<Front<Reply<'_>>, DecodeError> {
    let (mut at, mut values) = (0, 1);
    let (begin, first) = loop {
        let begin = at;
        match head(buffer, &mut at, most_bytes)? {
            Ok(Head::Aggregate(b'|', more)) => {
                if let Some(partial) = skip_attribute(buffer, &mut at, most_bytes, more, &mut values)? {
                    return Ok(partial);
                }
            }
            Ok(found) => break (begin, found),
            Err(partial) => return Ok(partial),
        }
    };
    let (kind, mut open) = match first {
        Head::Line(b'+', text) => return Ok(Front::Whole { packet: Reply::Simple(utf8(text)?), bytes: at }),
        Head::Line(b'-', text) => return Ok(Front::Whole { packet: Reply::Error(utf8(text)?), bytes: at }),
        Head::Line(b':', text) => return Ok(Front::Whole { packet: Reply::Integer(integer(text)?), bytes: at }),
        Head::Line(b'_', _) | Head::Null => return Ok(Front::Whole { packet: Reply::Null, bytes: at }),
        Head::Line(..) => return Ok(Front::Whole { packet: Reply::Other, bytes: at }),
        Head::Bulk(text) => return Ok(Front::Whole { packet: Reply::Bulk(text), bytes: at }),
        Head::BulkError(text) => return Ok(Front::Whole { packet: Reply::Error(utf8(text)?), bytes: at }),
        Head::Aggregate(kind, count) => (kind, count),
    };
    let mut parts: [&[u8]; MOST_PARTS] = [&[]; MOST_PARTS];
    let (mut count, mut is_plain) = (0, kind == b'>' && open <= MOST_PARTS);
    while open > 0 {
        open -= 1;
        let part = match head(buffer, &mut at, most_bytes)? {
            Ok(Head::Aggregate(b'|', more)) => {
                if let Some(partial) = skip_attribute(buffer, &mut at, most_bytes, more, &mut values)? {
                    return Ok(partial);
                }
                open += 1;
                continue;
            }
            Ok(Head::Aggregate(_, more)) => {
                open += more;
                is_plain = false;
                &[]
            }
            Ok(Head::Line(_, text) | Head::Bulk(text) | Head::BulkError(text)) => text,
            Ok(Head::Null) => &[],
            Err(partial) => return Ok(partial),
        };
        values += 1;
        check_size(values + open, at, most_bytes)?;
        if is_plain {
            parts[count] = part;
            count += 1;
        }
    }
    let reply = match kind {
        b'>' if is_plain => Reply::Push(Parts { parts, count }),
        b'*' | b'%' | b'~' => Reply::Aggregate(&buffer[begin..at]),
        _ => Reply::Other,
    };
    Ok(Front::Whole { packet: reply, bytes: at })
}

/// Moves `at` behind an attribute, whose content is ignored. Of the `follow` values behind its head, the last is the value that it
/// describes, which is read next. Adds the skipped values to `values`; returns what is missing if it is not complete.
pub(super) fn skip_attribute<'a>(
    buffer: &'a [u8],
    at: &mut usize,
    most_bytes: usize,
    follow: usize,
    values: &mut usize,
) -> Result<Option<Front<Reply<'a>>>, DecodeError> {
    let mut open = follow.saturating_sub(1);
    *values += 1;
    check_size(*values + open, *at, most_bytes)?;
    while open > 0 {
        open -= 1;
        match head(buffer, at, most_bytes)? {
            Ok(Head::Aggregate(_, more)) => open += more,
            Ok(_) => {}
            Err(partial) => return Ok(Some(partial)),
        }
        *values += 1;
        check_size(*values + open, *at, most_bytes)?;
    }
    Ok(None)
}

/// Refuses a reply that is not over after more values or bytes than we take.
fn check_size(values: usize, bytes: usize, most_bytes: usize) -> Result<(), DecodeError> {
    if values > MOST_VALUES {
        return Err(DecodeError::Values { limit: MOST_VALUES });
    }
    if bytes > most_bytes {
        return Err(DecodeError::TooLarge { bytes, limit: most_bytes });
    }
    Ok(())
}

/// The value at `at` without what is in it, and `at` behind it; or how much is there of it.
#[inline]
pub(super) fn head<'a>(
    buffer: &'a [u8],
    at: &mut usize,
    most_bytes: usize,
) -> Result<Result<Head<'a>, Front<Reply<'a>>>, DecodeError> {
    let front = &buffer[*at..];
    let Some(kind) = front.first().copied() else { return Ok(Err(Front::Partial(None))) };
    if !b"+-:$*_,#!=(%~|>".contains(&kind) {
        return Err(DecodeError::Type(kind));
    }
    let Some(end) = front.iter().position(|byte| *byte == b'\n') else {
        if front.len() > LONGEST_LINE_BYTES {
            return Err(DecodeError::Line { limit: LONGEST_LINE_BYTES });
        }
        return Ok(Err(Front::Partial(None)));
    };
    let line = front[1..end].strip_suffix(b"\r").ok_or(DecodeError::Number)?;
    let behind = *at + end + 1;
    match kind {
        b'$' | b'!' | b'=' => {
            let Some(length) = length(line)? else {
                *at = behind;
                return Ok(Ok(Head::Null));
            };
            let bytes = behind.saturating_add(length).saturating_add(super::END.len());
            if bytes > most_bytes {
                return Err(DecodeError::TooLarge { bytes, limit: most_bytes });
            }
            let Some(body) = buffer.get(behind..bytes) else { return Ok(Err(Front::Partial(Some(bytes)))) };
            let text = body.strip_suffix(super::END).ok_or(DecodeError::BulkEnd)?;
            *at = bytes;
            Ok(Ok(match (kind, text) {
                (b'!', text) => Head::BulkError(text),
                // Three bytes name the format.
                (b'=', [_, _, _, b':', text @ ..]) => Head::Bulk(text),
                _ => Head::Bulk(text),
            }))
        }
        b'*' | b'%' | b'~' | b'|' | b'>' => {
            let Some(count) = length(line)? else {
                *at = behind;
                return Ok(Ok(Head::Null));
            };
            // A map has two values an entry; an attribute too, and it belongs to the value behind it.
            let values = match kind {
                b'%' => count.saturating_mul(2),
                b'|' => count.saturating_mul(2).saturating_add(1),
                _ => count,
            };
            if values > MOST_VALUES {
                return Err(DecodeError::Values { limit: MOST_VALUES });
            }
            *at = behind;
            Ok(Ok(Head::Aggregate(kind, values)))
        }
        _ => {
            *at = behind;
            Ok(Ok(Head::Line(kind, line)))
        }
    }
}

fn utf8(text: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(text).map_err(|_| DecodeError::Text)
}

fn integer(text: &[u8]) -> Result<i64, DecodeError> {
    utf8(text)?.parse().map_err(|_| DecodeError::Number)
}

/// A length; `None` for the null of RESP2, -1.
fn length(text: &[u8]) -> Result<Option<usize>, DecodeError> {
    if text == b"-1" {
        return Ok(None);
    }
    if text.is_empty() || text.len() > 10 || !text.iter().all(u8::is_ascii_digit) {
        return Err(DecodeError::Number);
    }
    Ok(Some(text.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> (Reply<'_>, usize) {
        match next(bytes, 1_000_000).unwrap() {
            Front::Whole { packet: reply, bytes } => (reply, bytes),
            other => panic!("{other:?}"),
        }
    }

    const MESSAGE: &[u8] = b">3\r\n$7\r\nmessage\r\n$4\r\na/b\n\r\n$5\r\nhe\r\no\r\n";

    #[test]
    fn replies_and_pushes_are_read() {
        assert_eq!(whole(b"+PONG\r\n+OK\r\n"), (Reply::Simple("PONG"), 7));
        assert_eq!(whole(b"-WRONGPASS no\r\n").0, Reply::Error("WRONGPASS no"));
        assert_eq!(whole(b":-12\r\n").0, Reply::Integer(-12));
        let (Reply::Push(parts), bytes) = whole(MESSAGE) else { panic!("no push") };
        assert_eq!((parts.as_slice(), bytes), (&[&b"message"[..], b"a/b\n", b"he\r\no"][..], MESSAGE.len()));
        let (Reply::Push(parts), _) = whole(b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n") else { panic!("no push") };
        assert_eq!(parts.as_slice()[2], b"1");
        // The response to HELLO: a map with an array of maps in it.
        let hello = b"%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nmodules\r\n*1\r\n%1\r\n+name\r\n_\r\n";
        assert_eq!(whole(hello), (Reply::Aggregate(hello), hello.len()));
        for null in [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"] {
            assert_eq!(whole(null), (Reply::Null, null.len()));
        }
        assert_eq!(whole(b"$4\r\n17-0\r\n").0, Reply::Bulk(b"17-0"));
    }

    #[test]
    fn an_error_that_is_a_string_is_an_error_and_a_verbatim_string_is_its_text() {
        assert_eq!(whole(b"!21\r\nSYNTAX invalid syntax\r\n"), (Reply::Error("SYNTAX invalid syntax"), 28));
        assert_eq!(whole(b"=8\r\ntxt:text\r\n"), (Reply::Bulk(b"text"), 14));
        assert_eq!(whole(b"=2\r\nab\r\n").0, Reply::Bulk(b"ab"));
    }

    #[test]
    fn an_attribute_is_no_value() {
        assert_eq!(whole(b"|1\r\n+a\r\n,1.5\r\n:7\r\n"), (Reply::Integer(7), 18));
        let list = b"|1\r\n+a\r\n*1\r\n+b\r\n|0\r\n*1\r\n:7\r\n";
        assert_eq!(whole(list), (Reply::Aggregate(b"*1\r\n:7\r\n"), list.len()));
        let push = b">2\r\n+x\r\n|1\r\n+a\r\n+b\r\n+y\r\n";
        let (Reply::Push(parts), bytes) = whole(push) else { panic!("no push") };
        assert_eq!((parts.as_slice(), bytes), (&[&b"x"[..], b"y"][..], push.len()));
        for length in 1..list.len() {
            assert!(matches!(next(&list[..length], 1_000), Ok(Front::Partial(_))), "{length}");
        }
        let endless = b"|0\r\n".repeat(MOST_VALUES + 1);
        assert_eq!(next(&endless, 1_000_000), Err(DecodeError::Values { limit: MOST_VALUES }));
    }

    #[test]
    fn lines_in_a_list_count_towards_its_size() {
        let lines = [b"*100\r\n".to_vec(), b"+0123456789\r\n".repeat(99)].concat();
        assert_eq!(next(&lines, 1_000), Err(DecodeError::TooLarge { bytes: 1_007, limit: 1_000 }));
        assert_eq!(next(&lines, 10_000), Ok(Front::Partial(None)));
    }

    #[test]
    fn every_front_waits_for_more_and_never_for_too_much() {
        for length in 1..MESSAGE.len() {
            match next(&MESSAGE[..length], 1_000) {
                Ok(Front::Partial(Some(least))) => assert!(least > length && least <= MESSAGE.len(), "{length}"),
                other => assert_eq!(other, Ok(Front::Partial(None)), "{length}"),
            }
        }
    }

    #[test]
    fn bytes_that_are_no_resp_are_refused() {
        for wrong in [
            &b"HTTP/1.1 400"[..],
            b"$x\r\n",
            b"$-2\r\n",
            b"$3\r\nabcde",
            b"$99999999999\r\n",
            b":x\r\n",
            b"+\xff\r\n",
            b"*1025\r\n",
            b"%513\r\n",
            b">3\r\n$5\r\nhello\r\nX",
            b"+OK\n",
        ] {
            assert!(next(wrong, 1_000).is_err(), "{}", wrong.escape_ascii());
        }
        assert_eq!(next(b"$1000\r\n", 1_000), Err(DecodeError::TooLarge { bytes: 1_009, limit: 1_000 }));
        // Arrays in arrays that would never end.
        assert_eq!(next(&b"*300\r\n".repeat(100), 1_000_000), Err(DecodeError::Values { limit: MOST_VALUES }));
        let endless = [b"+".to_vec(), vec![b'x'; LONGEST_LINE_BYTES]].concat();
        assert_eq!(next(&endless, 1_000), Err(DecodeError::Line { limit: LONGEST_LINE_BYTES }));
    }
}
