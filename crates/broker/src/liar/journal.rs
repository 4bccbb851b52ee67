//! The journal: one line for every raw event, so that an independent program can compute what a run's record must contain.
//!
//! A line is `number time event field… checksum`, separated by single spaces. *number* counts from 1 without gaps. *time* is
//! `CLOCK_MONOTONIC` in ns. *checksum* is the Adler-32 (RFC 1950 §8.2) of the whole journal up to the space before it, in
//! hexadecimal. Texts have `%`, spaces and control characters written as `%xx`; `-` stands for what is absent.
//!
//! | event | fields |
//! |---|---|
//! | `open` | client, version, persistent 0/1, session present 0/1, code |
//! | `subscribed` | client, filter, QoS requested, QoS granted or code, new 0/1 (a refused one is not) |
//! | `unsubscribed` | client, filter |
//! | `received` | client, topic, packet id, QoS, dup 0/1, payload bytes, first 24 payload bytes |
//! | `repeated` | the same: a message at QoS 2 that came again before it was released |
//! | `discarded` | the same: read on a connection that had been cut before |
//! | `acked` | client, line of `received` or `repeated`, packet id, code |
//! | `forwarded` | client, line of `received`, topic, packet id, QoS, retain 0/1, dup 0/1, why, first 24 payload bytes |
//! | `dropped` | client that did not get it, line of `received`, why |
//! | `unwritten` | client, line of `acked` or `forwarded` that never reached the socket |
//! | `written` | client, line of the last `acked` or `forwarded` of its connection whose bytes are all in the socket, as all before it |
//! | `stalled` | ns |
//! | `closed` | client, why, filters that its session had |
//! | `end` | number of lines of each event before it, in the order of this table |

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use pubmark_protocol::clock::monotonic_ns;

/// Payload bytes in the journal: a whole header.
pub(crate) const HEAD_BYTES: usize = 32;
/// Bytes collected before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// The event of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Open,
    Subscribed,
    Unsubscribed,
    Received,
    Repeated,
    Discarded,
    Acked,
    Forwarded,
    Dropped,
    Unwritten,
    Written,
    Stalled,
    Closed,
    End,
}

/// Names in the order of [`Event`].
const NAMES: [&str; 14] = [
    "open",
    "subscribed",
    "unsubscribed",
    "received",
    "repeated",
    "discarded",
    "acked",
    "forwarded",
    "dropped",
    "unwritten",
    "written",
    "stalled",
    "closed",
    "end",
];

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// Lines not yet in the file; those before `checked` are in the checksum.
    pending: Vec<u8>,
    checked: usize,
    checksum: Adler32,
    lines: u64,
    counts: [u64; NAMES.len()],
    failure: Option<io::Error>,
}

impl Journal {
    pub(crate) fn create(path: &Path) -> io::Result<Journal> {
        Ok(Journal {
            file: File::create(path)?,
            pending: Vec::with_capacity(WRITE_BYTES + 4_096),
            checked: 0,
            checksum: Adler32::new(),
            lines: 0,
            counts: [0; NAMES.len()],
            failure: None,
        })
    }

    /// Begins a line for an event that happens now.
    pub(crate) fn line(&mut self, event: Event) -> Line<'_> {
        self.lines += 1;
        self.counts[event as usize] += 1;
        let line = Line { journal: self };
        let number = line.journal.lines;
        line.journal.put_number(number);
        line.number(monotonic_ns()).word(NAMES[event as usize])
    }

    /// Number of the last line.
    pub(crate) fn last(&self) -> u64 {
        self.lines
    }

    /// Writes the last line and the file to its end.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        let counts = self.counts;
        let mut line = self.line(Event::End);
        for count in &counts[..NAMES.len() - 1] {
            line = line.number(*count);
        }
        line.end();
        self.write_pending();
        self.check()
    }

    /// The first failure to write, if there was one.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn write_pending(&mut self) {
        if let Err(error) = self.file.write_all(&self.pending) {
            self.failure.get_or_insert(error);
        }
        self.pending.clear();
        self.checked = 0;
    }

    fn put_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.pending.extend_from_slice(&digits[first..]);
    }

    fn put_hex(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in bytes {
            self.pending.push(DIGITS[usize::from(byte >> 4)]);
            self.pending.push(DIGITS[usize::from(byte & 15)]);
        }
    }
}

/// A line that is being written; [`Line::end`] must follow.
pub(crate) struct Line<'a> {
    journal: &'a mut Journal,
}

impl Line<'_> {
    pub(crate) fn number(self, number: u64) -> Self {
        self.journal.pending.push(b' ');
        self.journal.put_number(number);
        self
    }

    pub(crate) fn flag(self, flag: bool) -> Self {
        self.number(flag.into())
    }

    pub(crate) fn optional(self, number: Option<u16>) -> Self {
        match number {
            Some(number) => self.number(number.into()),
            None => self.word("-"),
        }
    }

    /// A constant of our own, which needs no escaping.
    pub(crate) fn word(self, word: &str) -> Self {
        self.journal.pending.push(b' ');
        self.journal.pending.extend_from_slice(word.as_bytes());
        self
    }

    /// A text from outside, escaped.
    pub(crate) fn text(self, text: &str) -> Self {
        if text.is_empty() || text == "-" {
            return self.word("%");
        }
        self.journal.pending.push(b' ');
        for byte in text.bytes() {
            if byte <= b' ' || byte == b'%' || byte == 0x7f {
                self.journal.pending.push(b'%');
                self.journal.put_hex(&[byte]);
            } else {
                self.journal.pending.push(byte);
            }
        }
        self
    }

    /// The first bytes of a payload.
    pub(crate) fn head(self, payload: &[u8]) -> Self {
        if payload.is_empty() {
            return self.word("-");
        }
        self.journal.pending.push(b' ');
        self.journal.put_hex(&payload[..payload.len().min(HEAD_BYTES)]);
        self
    }

    /// Ends the line with its checksum and returns its number.
    pub(crate) fn end(self) -> u64 {
        let journal = self.journal;
        journal.checksum.add(&journal.pending[journal.checked..]);
        let sum = journal.checksum.value();
        let start = journal.pending.len();
        journal.pending.push(b' ');
        journal.put_hex(&sum.to_be_bytes());
        journal.pending.push(b'\n');
        journal.checked = start;
        if journal.pending.len() >= WRITE_BYTES {
            // What is written leaves the buffer, so it must be added to the checksum first.
            journal.checksum.add(&journal.pending[start..]);
            journal.write_pending();
        }
        journal.lines
    }
}

/// Adler-32 (RFC 1950 §8.2).
#[derive(Debug)]
struct Adler32 {
    a: u32,
    b: u32,
}

impl Adler32 {
    fn new() -> Adler32 {
        Adler32 { a: 1, b: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        const BASE: u32 = 65_521;
        // So many bytes can be added before the sums leave 32 bits.
        const UNTIL_OVERFLOW: usize = 5_552;
        for chunk in bytes.chunks(UNTIL_OVERFLOW) {
            for byte in chunk {
                self.a += u32::from(*byte);
                self.b += self.a;
            }
            self.a %= BASE;
            self.b %= BASE;
        }
    }

    fn value(&self) -> u32 {
        self.b << 16 | self.a
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_adler_32() {
        let mut sum = Adler32::new();
        sum.add(b"Wiki");
        sum.add(b"pedia");
        // The example of the Wikipedia article on Adler-32.
        assert_eq!(sum.value(), 0x11e6_0398);
    }

    #[test]
    fn lines_are_numbered_escaped_and_summed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::create(&path).unwrap();
        journal.line(Event::Closed).text("a b%\u{e9}").word("cut").number(0).end();
        journal.line(Event::Closed).text("").optional(None).head(&[0xb1; HEAD_BYTES + 6]).end();
        journal.end().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let fields: Vec<&str> = lines[0].split(' ').collect();
        assert_eq!((fields[0], &fields[2..5]), ("1", &["closed", "a%20b%25\u{e9}", "cut"][..]));
        assert!(lines[1].contains(&format!(" closed % - {} ", "b1".repeat(HEAD_BYTES))));
        assert!(lines[2].contains(" end 0 0 0 0 0 0 0 0 0 0 0 0 2 "));
        let mut sum = Adler32::new();
        let (before, last) = text.trim_end().rsplit_once(' ').unwrap();
        sum.add(before.as_bytes());
        assert_eq!(last, format!("{:08x}", sum.value()));
    }
}
