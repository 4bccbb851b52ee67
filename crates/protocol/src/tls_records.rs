//! Where the records of TLS end in the bytes of a connection (RFC 8446 §5.1): a kernel's receive timestamp is that of the last byte of a
//! read, which may belong to a later record than the one whose plain bytes the read completed.

/// Bytes ahead of a record: its type, a version, and its length.
const HEADER_BYTES: u8 = 5;

/// Follows the records of one direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsRecords {
    /// How many bytes of the present record's header were there.
    header: u8,
    /// How many bytes follow its header and were not there yet.
    missing: u16,
}

impl TlsRecords {
    /// Follows the records through the next bytes. If the last of these bytes is the last one of a record: where that record begins in
    /// them, 0 if it began earlier.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let begin = at;
            while self.header < HEADER_BYTES {
                let byte = *bytes.get(at)?;
                if self.header >= HEADER_BYTES - 2 {
                    self.missing = self.missing << 8 | u16::from(byte);
                }
                self.header += 1;
                at += 1;
            }
            let part = (bytes.len() - at).min(usize::from(self.missing));
            // At most what is missing, so it fits.
            self.missing -= part as u16;
            at += part;
            if self.missing > 0 {
                return None;
            }
            *self = TlsRecords::default();
            if at == bytes.len() {
                return Some(begin);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(payload_bytes: u16) -> Vec<u8> {
        let [high, low] = payload_bytes.to_be_bytes();
        let mut bytes = vec![23, 3, 3, high, low];
        bytes.resize(bytes.len() + usize::from(payload_bytes), 0xaa);
        bytes
    }

    #[test]
    fn a_read_ends_with_a_record_or_within_one() {
        let mut records = TlsRecords::default();
        let (one, other) = (record(300), record(2));
        assert_eq!(records.follow(&[&one[..], &other[..]].concat()), Some(one.len()));
        assert_eq!(records.follow(&[&other[..], &one[..3]].concat()), None);
        assert_eq!(records.follow(&one[3..7]), None);
        assert_eq!(records.follow(&[]), None);
        assert_eq!(records.follow(&one[7..]), Some(0));
        assert_eq!(records.follow(&record(0)), Some(0));
        assert_eq!(records, TlsRecords::default());
    }

    proptest! {
        #[test]
        fn ends_of_records_are_found_in_reads_of_any_length(
            lengths in prop::collection::vec(0u16..700, 1..20),
            reads in prop::collection::vec(1usize..900, 1..60),
        ) {
            let mut bytes = vec![];
            let mut ranges = vec![];
            for length in lengths {
                let begin = bytes.len();
                bytes.extend(record(length));
                ranges.push(begin..bytes.len());
            }
            let (mut records, mut at) = (TlsRecords::default(), 0);
            for length in reads {
                let end = bytes.len().min(at + length);
                if end == at {
                    break;
                }
                let last = ranges.iter().find(|range| range.end == end).map(|range| range.start.saturating_sub(at));
                prop_assert_eq!(records.follow(&bytes[at..end]), last);
                at = end;
            }
        }
    }
}
