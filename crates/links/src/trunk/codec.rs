//! Datagrams of a trunk: a header, then one IP packet. All numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | the run's key |
//! | 2 | number of the group that the packet comes from |
//! | 8 | number of the datagram among those from this group to the same receiver, from 1 |
//! | 8 | when the packet left the group's link, ns of the run's clock |

use super::Key;

/// Bytes before the packet.
pub const HEADER_BYTES: usize = 34;

/// Numbers behind the highest one that are still accepted: the network may reorder datagrams.
const WINDOW: u64 = 64;

/// Description of a packet in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Group that the packet comes from.
    pub from: u16,
    /// Number of the datagram, from 1.
    pub number: u64,
    /// When the packet left the link, ns.
    pub left_ns: u64,
}

/// Writes a datagram into `into`, in place of its content.
pub fn encode(into: &mut Vec<u8>, key: &Key, header: Header, packet: &[u8]) {
    into.clear();
    into.extend_from_slice(&key.0);
    into.extend_from_slice(&header.from.to_le_bytes());
    into.extend_from_slice(&header.number.to_le_bytes());
    into.extend_from_slice(&header.left_ns.to_le_bytes());
    into.extend_from_slice(packet);
}

/// Reads a datagram, whoever sent it; `None` if it does not have this key, or has no packet.
pub fn decode<'a>(datagram: &'a [u8], key: &Key) -> Option<(Header, &'a [u8])> {
    let (theirs, rest) = datagram.split_first_chunk::<16>()?;
    let (from, rest) = rest.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (left_ns, packet) = rest.split_first_chunk()?;
    // Each byte is compared, so that the time that this takes reveals nothing of the key.
    let differs = theirs.iter().zip(&key.0).fold(0_u8, |differs, (one, other)| differs | (one ^ other));
    let header = Header {
        from: u16::from_le_bytes(*from),
        number: u64::from_le_bytes(*number),
        left_ns: u64::from_le_bytes(*left_ns),
    };
    (differs == 0 && !packet.is_empty()).then_some((header, packet))
}

/// Numbers of the datagrams that came from one group. Each is accepted once (RFC 4303 §3.4.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    highest: u64,
    /// Bit k: number `highest − k` has come.
    recent: u64,
    accepted: u64,
}

impl Numbers {
    /// Accepts a number, unless it has come before, or is so far behind the highest one that this is not known.
    pub fn accept(&mut self, number: u64) -> bool {
        let is_new = match number.checked_sub(self.highest) {
            _ if number == 0 => false,
            Some(0) => false,
            Some(ahead) => {
                self.recent = if ahead < WINDOW { self.recent << ahead | 1 } else { 1 };
                self.highest = number;
                true
            }
            None => {
                let behind = self.highest - number;
                let is_new = behind < WINDOW && self.recent >> behind & 1 == 0;
                if is_new {
                    self.recent |= 1 << behind;
                }
                is_new
            }
        };
        self.accepted += u64::from(is_new);
        is_new
    }

    /// Numbers up to the highest that have not come. What was lost after that one is not known.
    pub fn missing(&self) -> u64 {
        self.highest - self.accepted
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key(*b"0123456789abcdef");

    fn datagram(packet: &[u8]) -> Vec<u8> {
        let mut datagram = vec![9; 3];
        encode(&mut datagram, &KEY, Header { from: 258, number: 7, left_ns: 1 << 40 }, packet);
        datagram
    }

    #[test]
    fn a_datagram_is_read_with_the_key_of_its_run_only() {
        let written = datagram(b"packet");
        assert_eq!(written.len(), HEADER_BYTES + 6);
        let (header, packet) = decode(&written, &KEY).unwrap();
        assert_eq!((header, packet), (Header { from: 258, number: 7, left_ns: 1 << 40 }, &b"packet"[..]));
        for place in 0..KEY.0.len() {
            let mut other = written.clone();
            other[place] ^= 1;
            assert_eq!(decode(&other, &KEY), None, "byte {place} of the key");
        }
        assert_eq!(decode(&datagram(b""), &KEY), None, "no packet");
    }

    #[test]
    fn each_number_is_accepted_once_and_the_missing_ones_are_counted() {
        let mut numbers = Numbers::default();
        let found = [1, 2, 4, 4, 3, 0, 2, 100, 36, 37].map(|number| numbers.accept(number));
        assert_eq!(found, [true, true, true, false, true, false, false, true, false, true]);
        // 100 is the highest; 1 to 4, 37 and 100 have come.
        assert_eq!(numbers.missing(), 94);
        assert!(numbers.accept(u64::MAX) && !numbers.accept(100));
        assert_eq!(numbers.missing(), u64::MAX - 7);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..80), has_key in any::<bool>()) {
            let bytes = if has_key { [&KEY.0[..], &bytes].concat() } else { bytes };
            let found = decode(&bytes, &KEY);
            prop_assert_eq!(found.is_some(), has_key && bytes.len() > HEADER_BYTES);
        }

        #[test]
        fn numbers_in_any_order_never_miss_less_than_nothing(numbers in proptest::collection::vec(0u64..200, 0..300)) {
            let mut found = Numbers::default();
            let accepted = numbers.iter().filter(|number| found.accept(**number)).count() as u64;
            prop_assert_eq!(found.missing(), numbers.iter().max().copied().unwrap_or(0) - accepted);
        }
    }
}
