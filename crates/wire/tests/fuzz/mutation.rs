//! Bytes that are almost those of a protocol: valid ones, changed in a few places, from a seed.

use std::time::{Duration, Instant};

use pubmark_model::random::Stream;

/// Bytes at which parsers turn: ends of ranges of lengths, flags, line ends, signs.
const TURNING_POINTS: [u8; 16] =
    [0, 1, 2, 0x0d, 0x0a, 0x20, b'-', b'0', b'9', b'$', b'*', 0x7f, 0x80, 0x81, 0xfe, 0xff];
/// Longest bytes that are made.
const MOST_BYTES: usize = 4_096;
/// Time of each target unless `PUBMARK_FUZZ_S` has another one.
const USUAL: Duration = Duration::from_secs(5);

/// Draws for one piece.
struct Draws {
    stream: Stream,
    drawn: u64,
}

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.drawn += 1;
        (self.stream.bits(self.drawn) % limit.max(1) as u64) as usize
    }
}

/// Gives `target` changed pieces of `corpus` for the time that is set; a panic in it fails the test, after the number of the
/// piece that shows it.
pub fn fuzz(name: &str, corpus: &[Vec<u8>], target: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let asked = std::env::var("PUBMARK_FUZZ_S").ok().map(|text| text.parse().expect("PUBMARK_FUZZ_S is in seconds"));
    let length = asked.map_or(USUAL, Duration::from_secs);
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < length {
        // A look at the clock costs more than a piece.
        for _ in 0..256 {
            number += 1;
            let bytes = piece(number, corpus);
            if bytes.is_empty() {
                // Parsers are never called with an empty input.
                continue;
            }
            let outcome = std::panic::catch_unwind(|| target(&bytes));
            assert!(outcome.is_ok(), "{name}: piece {number} breaks it: {}", bytes.escape_ascii());
        }
    }
    eprintln!("{name}: {number} pieces in {:.0} s, none broke it", length.as_secs_f64());
}

fn piece(number: u64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut draws = Draws { stream: Stream::new(number, 0xf022), drawn: 0 };
    let mut bytes = corpus[draws.below(corpus.len())].clone();
    for _ in 0..1 + draws.below(6) {
        change(&mut bytes, corpus, &mut draws);
        bytes.truncate(MOST_BYTES);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], draws: &mut Draws) {
    let at = draws.below(bytes.len());
    let turning_point = TURNING_POINTS[draws.below(TURNING_POINTS.len())];
    match draws.below(8) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << draws.below(8),
        1 if !bytes.is_empty() => bytes[at] = turning_point,
        2 if !bytes.is_empty() => bytes[at] = draws.below(256) as u8,
        3 => bytes.insert(at, turning_point),
        4 => bytes.truncate(at),
        5 if !bytes.is_empty() => {
            let end = (at + 1 + draws.below(8)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 => {
            let end = (at + draws.below(64)).min(bytes.len());
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        _ => {
            let other = &corpus[draws.below(corpus.len())];
            bytes.truncate(at);
            bytes.extend_from_slice(&other[draws.below(other.len())..]);
        }
    }
}

#[test]
fn pieces_come_from_their_number_and_differ() {
    let corpus = [b"PING\r\n".to_vec(), b"MSG a.b 1 5\r\nhello\r\n".to_vec()];
    assert_eq!(piece(7, &corpus), piece(7, &corpus));
    let all: std::collections::BTreeSet<Vec<u8>> = (0..1_000).map(|number| piece(number, &corpus)).collect();
    assert!(all.len() > 800, "{}", all.len());
}
