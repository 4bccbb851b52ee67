//! The header at the front of every payload: publisher, sequence number, due time, and how much of the latency is not the system's.
//!
//! Little-endian. *Full*, 24 B: version 1, run 3, publisher 4, sequence 4, due 7 (ns, `CLOCK_MONOTONIC`, lower 56 bits), lag 1,
//! write start − due 4 (µs).
//! *Compact*, 16 B, for smaller payloads: version 1, run 2, publisher 3, sequence 4, due 5 (steps of 256 ns, rounded down, lower 40
//! bits), lag 1.
//! *Reaction*, 32 B: as a full one, and of the root of the chain its due 7 (ns, lower 56 bits) and the chain's lag before this
//! message 1.
//! *Reply*, 24 B, for replies to requests: as a full one, with the fields of the request's header and, instead of write start −
//! due, the time in µs from the request's arrival to the reply's write start; its lag is that of request and reply together.
//! *Will*, 8 B, for messages that the system publishes in a device's name: version 1, run 3, publisher 4.
//! *Text*: in a property of a message, beside the payload, a full or reaction header as lower-case hexadecimal digits, which every
//! protocol's properties can carry: 48 or 64 of them.
//! *Lag* is the time between due and write start for which the generator delayed the message, rounded up
//! ([`crate::lag`]).
//! Wrap rules: `run` is the lower bits of the run's number; write start − due saturates at `u32::MAX` µs (71 minutes; such a
//! service latency is counted as clipped); due times are completed with the reader's clock, right within 1.1 years (compact: 39
//! hours).

use crate::lag;
use crate::timing::Timing;

/// Bytes of a full header.
pub const FULL: usize = 24;
/// Bytes of a compact header: the smallest payload there is.
pub const COMPACT: usize = 16;
/// Bytes of a reaction's header.
pub const REACTION: usize = 32;
/// Bytes of a will's header.
pub const WILL: usize = 8;
/// Largest publisher number that a compact header can carry.
pub const COMPACT_PUBLISHERS: u32 = 1 << 24;

/// Steps in which a compact header counts its due time, ns. Measured windows begin at a multiple of it, so that rounding down moves
/// no message out of one.
pub const COMPACT_STEP_NS: u64 = 256;

/// A header counts the time to its write start in whole µs, rounded down: that time may be longer by this, ns.
pub const WRITE_START_ROUNDED_NS: u64 = 999;

/// Characters of the longest header as text.
pub const LONGEST_TEXT: usize = 2 * REACTION;

/// First character of a header as text; no binary header begins with it.
const TEXT: u8 = b'c';
const VERSION_FULL: u8 = 0xc1;
const VERSION_COMPACT: u8 = 0xc2;
const VERSION_WILL: u8 = 0xc3;
const VERSION_REACTION: u8 = 0xc4;
const VERSION_REPLY: u8 = 0xc5;
const DUE_BITS: u32 = 56;
const COMPACT_DUE_BITS: u32 = 48;
/// Offset of the lag in a full header.
const LAG_AT: usize = 19;
/// Offset of the lag in a compact header.
const COMPACT_LAG_AT: usize = 15;
/// Offset of write start − due in a full header.
const WRITE_START_AT: usize = 20;

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Lower 24 bits (full) or 16 bits (compact) of the run's number.
    pub run: u32,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// The publisher's messages count from 1; a number is used only for a message handed to the system.
    pub sequence: u32,
    /// Due time, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// How much of the time from there to its write start the generator caused, at most, ns.
    pub lag_ns: u64,
    /// Write start − due in µs, `u32::MAX` where clipped; `None` in a compact header.
    pub write_start_us: Option<u32>,
    /// Of a reaction: the scheduled message at the beginning of its chain.
    pub root: Option<Root>,
}

/// The scheduled message at the beginning of a chain of reactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its due time, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// How much of the time from there to the due time of this reaction the generator caused, at most, ns.
    pub lag_ns: u64,
}

impl Header {
    /// Due time of the beginning of its chain: its own, unless it is a reaction. A message belongs to the measured window
    /// if this does.
    pub fn chain_due_ns(&self) -> u64 {
        self.root.map_or(self.due_ns, |root| root.due_ns)
    }

    /// The earliest time at which its write can have begun, ns of `CLOCK_MONOTONIC`: it cannot have been received earlier.
    /// Exact to 1 µs in a full header; with a compact one it is derived from the lag.
    pub fn earliest_write_start_ns(&self) -> u64 {
        let waited_ns = match self.write_start_us {
            Some(waited_us) => u64::from(waited_us) * 1_000,
            None => lag::at_least_ns(self.lag_ns),
        };
        self.due_ns.saturating_add(waited_ns)
    }
}

/// Header bytes that a payload of this size carries; `None` where not even the compact one fits.
pub fn length_for(payload_bytes: usize) -> Option<usize> {
    match payload_bytes {
        FULL.. => Some(FULL),
        COMPACT.. => Some(COMPACT),
        _ => None,
    }
}

/// Writes the header for a payload of `payload_bytes` (at least [`COMPACT`]) to the end of `out`; returns its length.
/// Its lag and a full header's write start stay 0 until [`patch_write_start`].
pub fn write(out: &mut Vec<u8>, payload_bytes: usize, run: u32, publisher: u32, sequence: u32, due_ns: u64) -> usize {
    if payload_bytes >= FULL {
        write_full(out, VERSION_FULL, run, publisher, sequence, due_ns)
    } else {
        let mut bytes = [0; COMPACT];
        bytes[0] = VERSION_COMPACT;
        bytes[1..3].copy_from_slice(&run.to_le_bytes()[..2]);
        bytes[3..6].copy_from_slice(&publisher.to_le_bytes()[..3]);
        bytes[6..10].copy_from_slice(&sequence.to_le_bytes());
        bytes[10..COMPACT_LAG_AT].copy_from_slice(&due_ns.to_le_bytes()[1..6]);
        out.extend_from_slice(&bytes);
        COMPACT
    }
}

/// Makes the header that [`write()`] wrote for a payload of at least [`REACTION`] bytes, `header_at` in `out`, a reaction's;
/// returns its length.
pub fn extend_to_reaction(out: &mut Vec<u8>, header_at: usize, root: Root) -> usize {
    debug_assert_eq!(out.len(), header_at + FULL);
    out[header_at] = VERSION_REACTION;
    out.extend_from_slice(&of_root(root));
    REACTION
}

/// The bytes of a reaction's header after those of a full one.
fn of_root(root: Root) -> [u8; REACTION - FULL] {
    let mut bytes = root.due_ns.to_le_bytes();
    bytes[7] = lag::code(root.lag_ns);
    bytes
}

fn write_full(out: &mut Vec<u8>, version: u8, run: u32, publisher: u32, sequence: u32, due_ns: u64) -> usize {
    out.extend_from_slice(&full(version, run, publisher, sequence, due_ns));
    FULL
}

fn full(version: u8, run: u32, publisher: u32, sequence: u32, due_ns: u64) -> [u8; FULL] {
    let mut bytes = [0; FULL];
    bytes[0] = version;
    bytes[1..4].copy_from_slice(&run.to_le_bytes()[..3]);
    bytes[4..8].copy_from_slice(&publisher.to_le_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_le_bytes());
    bytes[12..LAG_AT].copy_from_slice(&due_ns.to_le_bytes()[..7]);
    bytes
}

/// Writes the header of a reply, [`FULL`] bytes, to the end of `out`: `publisher`, `sequence` and `due_ns` are the request's.
/// The time that the reply took stays 0 until [`patch_write_start`], which then counts from the request's arrival.
pub fn write_reply(out: &mut Vec<u8>, run: u32, publisher: u32, sequence: u32, due_ns: u64) {
    write_full(out, VERSION_REPLY, run, publisher, sequence, due_ns);
}

/// Reads the header of a reply of the run numbered `run`; `None` if it is not one. Its write start is the time that the reply
/// took: from the request's arrival to its own write start, in µs. `now_ns` completes the due time.
pub fn read_reply(payload: &[u8], run: u32, now_ns: u64) -> Option<Header> {
    let header = read_full(payload, VERSION_REPLY, now_ns)?;
    is_of_run(&header, run).then_some(header)
}

fn read_full(payload: &[u8], version: u8, now_ns: u64) -> Option<Header> {
    if payload.len() < FULL || payload[0] != version {
        return None;
    }
    let due_at = |at: usize| Some(complete(bytes_at::<7>(payload, at)?, DUE_BITS, now_ns));
    Some(Header {
        run: u32::from_le_bytes([payload[1], payload[2], payload[3], 0]),
        publisher: u32::from_le_bytes(payload[4..8].try_into().ok()?),
        sequence: u32::from_le_bytes(payload[8..12].try_into().ok()?),
        due_ns: due_at(12)?,
        lag_ns: lag::value_ns(payload[LAG_AT]),
        write_start_us: Some(u32::from_le_bytes(payload[WRITE_START_AT..FULL].try_into().ok()?)),
        root: match version {
            VERSION_REACTION => {
                Some(Root { due_ns: due_at(FULL)?, lag_ns: lag::value_ns(*payload.get(REACTION - 1)?) })
            }
            _ => None,
        },
    })
}

/// The little-endian number of `BYTES` bytes, at most 8, at offset `at`.
fn bytes_at<const BYTES: usize>(payload: &[u8], at: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..BYTES].copy_from_slice(payload.get(at..at + BYTES)?);
    Some(u64::from_le_bytes(number))
}

/// Sets lag and write start − due in a header that [`write()`] made, also as text; a compact one does not have the latter.
pub fn patch_write_start(header: &mut [u8], timing: &Timing, write_start_ns: u64) {
    let lag_ns = timing.lag_at(write_start_ns);
    let delay_us = write_start_ns.saturating_sub(timing.due_ns) / 1_000;
    let delay = u32::try_from(delay_us).unwrap_or(u32::MAX).to_le_bytes();
    match header.first() {
        Some(&(VERSION_FULL | VERSION_REACTION | VERSION_REPLY)) if header.len() >= FULL => {
            header[WRITE_START_AT..FULL].copy_from_slice(&delay);
            header[LAG_AT] = lag::code(lag_ns);
        }
        Some(&TEXT) if header.len() >= 2 * FULL => {
            put_text(&delay, &mut header[2 * WRITE_START_AT..2 * FULL]);
            put_text(&[lag::code(lag_ns)], &mut header[2 * LAG_AT..2 * WRITE_START_AT]);
        }
        // From the rounded due time on.
        Some(&VERSION_COMPACT) if header.len() >= COMPACT => {
            header[COMPACT_LAG_AT] = lag::code(lag_ns.saturating_add(timing.due_ns % COMPACT_STEP_NS));
        }
        _ => {}
    }
}

/// Reads the header at the front of `payload`; `None` if pubmark did not write one there. `now_ns` completes due times.
pub fn read(payload: &[u8], now_ns: u64) -> Option<Header> {
    match *payload.first()? {
        version @ (VERSION_FULL | VERSION_REACTION) => read_full(payload, version, now_ns),
        VERSION_COMPACT if payload.len() >= COMPACT && payload.len() < FULL => Some(Header {
            run: u32::from(u16::from_le_bytes([payload[1], payload[2]])),
            publisher: u32::from_le_bytes([payload[3], payload[4], payload[5], 0]),
            sequence: u32::from_le_bytes(payload[6..10].try_into().ok()?),
            due_ns: complete(bytes_at::<5>(payload, 10)? * COMPACT_STEP_NS, COMPACT_DUE_BITS, now_ns),
            lag_ns: lag::value_ns(payload[COMPACT_LAG_AT]),
            write_start_us: None,
            root: None,
        }),
        _ => None,
    }
}

/// Characters of the header of a message as text.
pub fn text_bytes(is_reaction: bool) -> usize {
    2 * if is_reaction { REACTION } else { FULL }
}

/// Writes a full header, or that of a reaction, as text into `space`; its lag and write start stay 0 until
/// [`patch_write_start`].
pub fn write_text(
    space: &mut [u8; LONGEST_TEXT],
    run: u32,
    publisher: u32,
    sequence: u32,
    due_ns: u64,
    root: Option<Root>,
) -> &str {
    let version = if root.is_some() { VERSION_REACTION } else { VERSION_FULL };
    let (front, back) = space.split_at_mut(2 * FULL);
    put_text(&full(version, run, publisher, sequence, due_ns), front);
    if let Some(root) = root {
        put_text(&of_root(root), back);
    }
    std::str::from_utf8(&space[..text_bytes(root.is_some())]).expect("digits are UTF-8")
}

/// Writes bytes as hexadecimal digits, which fill `text`.
fn put_text(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, digits) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// Reads a header as text, which is all of `text`; `None` if pubmark did not write it. `now_ns` completes due times.
pub fn read_text(text: &[u8], now_ns: u64) -> Option<Header> {
    if text.len() != 2 * FULL && text.len() != 2 * REACTION {
        return None;
    }
    let mut bytes = [0; REACTION];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    let header = read(&bytes[..text.len() / 2], now_ns)?;
    (header.root.is_some() == (text.len() == 2 * REACTION)).then_some(header)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

/// The time nearest to `now_ns` whose lower `bits` bits are `low`.
fn complete(low: u64, bits: u32, now_ns: u64) -> u64 {
    let span = 1u64 << bits;
    let candidate = (now_ns & !(span - 1)) | low;
    if candidate > now_ns.saturating_add(span / 2) {
        candidate.saturating_sub(span)
    } else if candidate.saturating_add(span / 2) < now_ns {
        candidate + span
    } else {
        candidate
    }
}

/// Writes the header of a publisher's will to the end of `out`. A will has no sequence number and no due time: the time of its
/// publication is unknown.
pub fn write_will(out: &mut Vec<u8>, run: u32, publisher: u32) {
    out.push(VERSION_WILL);
    out.extend_from_slice(&run.to_le_bytes()[..3]);
    out.extend_from_slice(&publisher.to_le_bytes());
}

/// Is `payload` a will of the run numbered `run`?
pub fn is_will_of_run(payload: &[u8], run: u32) -> bool {
    payload.len() >= WILL && payload[0] == VERSION_WILL && payload[1..4] == run.to_le_bytes()[..3]
}

/// Is `header` of the run numbered `run`? A compact header has 16 bits of it, a full one 24.
pub fn is_of_run(header: &Header, run: u32) -> bool {
    let mask = if header.write_start_us.is_some() { 0x00ff_ffff } else { 0x0000_ffff };
    header.run == run & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_header_comes_back_as_written() {
        let mut out = Vec::new();
        assert_eq!(write(&mut out, 100, 0x0112_2334, 7, 9, 5_000_000_000), FULL);
        patch_write_start(&mut out, &Timing::on_time(5_000_000_000), 5_000_123_999);
        let header = read(&out, 0).expect("a header");
        assert_eq!(
            header,
            Header {
                run: 0x0012_2334,
                publisher: 7,
                sequence: 9,
                due_ns: 5_000_000_000,
                lag_ns: 131_072,
                write_start_us: Some(123),
                root: None,
            }
        );
        assert!(is_of_run(&header, 0x0112_2334));
    }

    #[test]
    fn a_reaction_carries_the_due_time_of_its_root() {
        let mut out = vec![9];
        let bytes = write(&mut out, 100, 1, 7, 9, 5_000_000_000);
        assert_eq!(bytes, FULL);
        let root = Root { due_ns: 4_000_000_000, lag_ns: 64_000 };
        assert_eq!(extend_to_reaction(&mut out, 1, root), REACTION);
        patch_write_start(&mut out[1..], &Timing::on_time(5_000_000_000), 5_000_123_999);
        let header = read(&out[1..], 0).expect("a header");
        assert_eq!(
            (header.chain_due_ns(), header.due_ns, header.write_start_us),
            (4_000_000_000, 5_000_000_000, Some(123))
        );
        assert!(header.root.is_some_and(|root| (64_000..=72_000).contains(&root.lag_ns)), "{header:?}");
        assert!(is_of_run(&header, 1));
        assert_eq!(read(&out[1..REACTION], 0), None, "cut short");
    }

    #[test]
    fn a_header_as_text_is_stamped_and_read_like_one_in_bytes() {
        for root in [None, Some(Root { due_ns: 4_000_000_000, lag_ns: 64_000 })] {
            let (mut bytes, mut space) = (Vec::new(), [0; LONGEST_TEXT]);
            write(&mut bytes, 100, 1, 7, 9, 5_000_000_000);
            if let Some(root) = root {
                extend_to_reaction(&mut bytes, 0, root);
            }
            let mut text = write_text(&mut space, 1, 7, 9, 5_000_000_000, root).as_bytes().to_vec();
            assert_eq!(text.len(), text_bytes(root.is_some()));
            text.extend_from_slice(b"{\"what\": \"follows\"}");
            let timing = Timing::on_time(5_000_000_000);
            patch_write_start(&mut bytes, &timing, 5_000_123_999);
            patch_write_start(&mut text, &timing, 5_000_123_999);
            text.truncate(text_bytes(root.is_some()));
            let header = read_text(&text, 0).expect("a header");
            assert_eq!((Some(header), header.write_start_us), (read(&bytes, 0), Some(123)));
            assert_eq!(header.root.is_some(), root.is_some());
            for cut in 0..text.len() {
                assert_eq!(read_text(&text[..cut], 0), None, "{cut}");
            }
            text[5] = b'G';
            assert_eq!(read_text(&text, 0), None);
        }
        // A full header in the length of a reaction's, and the other way round.
        let mut text = write_text(&mut [0; LONGEST_TEXT], 1, 7, 9, 0, None).as_bytes().to_vec();
        text.resize(LONGEST_TEXT, b'0');
        assert_eq!(read_text(&text, 0), None);
    }

    #[test]
    fn a_due_time_is_completed_across_its_wrap() {
        for (bytes, bits, step) in [(COMPACT, 48, COMPACT_STEP_NS), (FULL, 56, 1)] {
            let span = 1u64 << bits;
            for (due, now) in [(span - 5, span + 5), (span + 5, span - 5), (3 * span + 1, 3 * span + 1_000_000)] {
                let mut out = Vec::new();
                assert_eq!(write(&mut out, bytes, 1, 2, 3, due), bytes);
                assert_eq!(read(&out, now).expect("a header").due_ns, due - due % step);
            }
        }
    }

    #[test]
    fn a_compact_header_s_lag_counts_from_its_rounded_due_time() {
        let due_ns = 1_000 * COMPACT_STEP_NS + 200;
        let mut out = Vec::new();
        write(&mut out, 16, 1, 2, 3, due_ns);
        patch_write_start(&mut out, &Timing::on_time(due_ns), due_ns + 50_000);
        let header = read(&out, due_ns).expect("a header");
        assert_eq!(header.due_ns, 1_000 * COMPACT_STEP_NS);
        assert!((50_200..=57_000).contains(&header.lag_ns), "{header:?}");
    }

    #[test]
    fn no_write_began_before_the_earliest_time_that_its_header_allows() {
        let due_ns = 1_000 * COMPACT_STEP_NS + 200;
        for (bytes, waited_ns, least_ns) in
            [(24, 50_000_000, 50_000_000 - 999), (24, 0, 0), (16, 50_000_000, 43_000_000), (16, 0, 0)]
        {
            let mut out = Vec::new();
            write(&mut out, bytes, 1, 2, 3, due_ns);
            patch_write_start(&mut out, &Timing::on_time(due_ns), due_ns + waited_ns);
            let header = read(&out, due_ns).expect("a header");
            let earliest_ns = header.earliest_write_start_ns();
            assert!(earliest_ns <= due_ns + waited_ns, "{bytes} B: {earliest_ns} is behind the write");
            assert!(earliest_ns + COMPACT_STEP_NS > due_ns + least_ns, "{bytes} B: {earliest_ns} is far before it");
        }
    }

    #[test]
    fn a_will_is_a_will_of_its_run_and_no_message() {
        let mut out = Vec::new();
        write_will(&mut out, 0x0112_2334, 7);
        assert_eq!(out.len(), WILL);
        assert!(is_will_of_run(&out, 0x0112_2334) && !is_will_of_run(&out, 0x0112_2335));
        assert!(!is_will_of_run(&out[..7], 0x0112_2334));
        out.resize(100, 0);
        assert_eq!(read(&out, 0), None);
        let mut message = Vec::new();
        write(&mut message, 24, 1, 7, 1, 0);
        assert!(!is_will_of_run(&message, 1));
    }

    #[test]
    fn a_reply_repeats_its_requests_header_and_adds_its_duration() {
        let mut out = Vec::new();
        write_reply(&mut out, 0x0112_2334, 7, 9, 5_000_000_000);
        patch_write_start(&mut out, &Timing::on_time(6_000_000_000), 6_000_123_999);
        assert_eq!((out.len(), read(&out, 0)), (FULL, None), "a reply is no message");
        let header = read_reply(&out, 0x0112_2334, 0).expect("a reply");
        assert_eq!((header.publisher, header.sequence, header.due_ns), (7, 9, 5_000_000_000));
        assert_eq!(header.write_start_us, Some(123));
        assert_eq!((read_reply(&out, 1, 0), read_reply(&out[..23], 0x0112_2334, 0)), (None, None));
        let mut message = Vec::new();
        write(&mut message, 24, 1, 7, 1, 0);
        assert_eq!(read_reply(&message, 1, 0), None);
    }

    #[test]
    fn foreign_bytes_are_no_header() {
        assert_eq!(read(&[], 0), None);
        assert_eq!(read(&[0; 64], 0), None);
        assert_eq!(read(&[VERSION_FULL; 23], 0), None);
    }

    #[test]
    fn a_write_start_beyond_71_minutes_is_clipped_not_wrapped() {
        let mut out = Vec::new();
        write(&mut out, 24, 1, 2, 3, 0);
        patch_write_start(&mut out, &Timing::on_time(0), u64::MAX);
        assert_eq!(read(&out, 0).and_then(|header| header.write_start_us), Some(u32::MAX));
    }
}
