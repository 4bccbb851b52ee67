//! Payload headers among the bytes of a packet.

use pubmark_protocol::header::{self, COMPACT, FULL, Header};

/// Headers of a run in `bytes`, each with its offset.
pub struct Headers<'a> {
    bytes: &'a [u8],
    at: usize,
    run: u32,
    now_ns: u64,
}

impl<'a> Headers<'a> {
    /// From the front of `bytes`.
    pub fn of(bytes: &'a [u8], run: u32, now_ns: u64) -> Headers<'a> {
        Headers { bytes, at: 0, run, now_ns }
    }

    /// Goes on behind N bytes of the header found last: its payload holds no other.
    pub fn pass_over(&mut self, bytes: usize) {
        self.at += bytes;
    }
}

impl Iterator for Headers<'_> {
    type Item = (usize, Header);

    fn next(&mut self) -> Option<(usize, Header)> {
        // Behind the version come the lower bits of the run's number, in every form.
        let [low, high, ..] = self.run.to_le_bytes();
        loop {
            let behind = self.bytes.get(self.at + 1..)?;
            let place = self.at + position(behind, low)?;
            self.at = place + 1;
            if self.bytes.get(place + 2) != Some(&high) {
                continue;
            }
            if let Some(header) = read(&self.bytes[place..], self.now_ns, self.run) {
                self.at = place + COMPACT;
                return Some((place, header));
            }
        }
    }
}

/// The header at the front of these bytes, in the form that fits.
fn read(bytes: &[u8], now_ns: u64, run: u32) -> Option<Header> {
    // A compact header is one of a payload that is too small for a full one: more bytes may follow it in a packet.
    let compact = bytes.get(..bytes.len().min(FULL - 1))?;
    let header = header::read(bytes, now_ns).or_else(|| header::read(compact, now_ns))?;
    header::is_of_run(&header, run).then_some(header)
}

/// First offset of `byte`, eight bytes at a time.
fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let pattern = LOW * u64::from(byte);
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let differing = u64::from_le_bytes(*word) ^ pattern;
        // The lowest byte that is zero in `differing` sets its highest bit (Hacker's Delight §6-1).
        let zeros = differing.wrapping_sub(LOW) & !differing & HIGH;
        if zeros != 0 {
            return Some(8 * index + zeros.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|candidate| *candidate == byte).map(|place| 8 * words.len() + place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUN: u32 = 0x1122_3344;

    #[test]
    fn headers_are_found_wherever_they_are() {
        let mut bytes = vec![0x44; 13];
        let full = bytes.len();
        header::write(&mut bytes, 24, RUN, 7, 9, 1_000);
        bytes.extend([0xc1, 0x44, 0x33]);
        let compact = bytes.len();
        header::write(&mut bytes, 16, RUN, 8, 1, 2_048);
        bytes.extend([0; 40]);
        header::write(&mut bytes, 24, RUN + 1, 7, 10, 1_000);
        let found: Vec<_> = Headers::of(&bytes, RUN, 5_000)
            .map(|(at, header)| (at, header.publisher, header.sequence, header.due_ns))
            .collect();
        assert_eq!(found, [(full, 7, 9, 1_000), (compact, 8, 1, 2_048)]);
        assert_eq!(Headers::of(&bytes[..full + 23], RUN, 5_000).count(), 0, "a header that is cut off is none");
    }

    proptest! {
        #[test]
        fn positions_are_those_of_a_simple_search(
            bytes in proptest::collection::vec(any::<u8>(), 0..100), byte in any::<u8>(),
        ) {
            prop_assert_eq!(position(&bytes, byte), bytes.iter().position(|candidate| *candidate == byte));
        }

        #[test]
        fn no_bytes_are_too_odd(mut bytes in proptest::collection::vec(any::<u8>(), 0..100), at in 0usize..100) {
            // A version and a run in the middle of anything.
            for (place, byte) in (at..).zip([0xc1, 0x44, 0x33, 0x22]) {
                if let Some(known) = bytes.get_mut(place) {
                    *known = byte;
                }
            }
            Headers::of(&bytes, RUN, 1).count();
        }
    }
}
