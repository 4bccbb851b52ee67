//! A row of the message log, as shards write it. Rows have a fixed length, so the files need no framing.

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RowKind {
    /// The adapter accepted it, with its sequence number.
    Submitted = 0,
    /// It was due while its device was planned to be offline.
    SkippedPlanned = 1,
    /// It was due after its device had lost its connection.
    SkippedDisconnected = 2,
    /// It is larger than the system accepts.
    TooLarge = 3,
    /// It was due and never passed to the adapter.
    Unsent = 4,
    /// Its first copy arrived.
    Delivered = 5,
    /// Its first copy arrived after that of a newer message.
    DeliveredOutOfOrder = 6,
    /// A further copy arrived.
    Duplicated = 7,
    /// A copy arrived for a second matching filter.
    Overlap = 8,
}

impl RowKind {
    const ALL: [RowKind; 9] = [
        RowKind::Submitted,
        RowKind::SkippedPlanned,
        RowKind::SkippedDisconnected,
        RowKind::TooLarge,
        RowKind::Unsent,
        RowKind::Delivered,
        RowKind::DeliveredOutOfOrder,
        RowKind::Duplicated,
        RowKind::Overlap,
    ];

    /// Is it a row of an arrived copy?
    pub fn has_arrived(self) -> bool {
        self >= RowKind::Delivered
    }
}

/// The state of a message at one point of its path. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind of the row.
    pub kind: RowKind,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number; 0 for a message without one, because it was not passed to the adapter.
    pub sequence: u32,
    /// Number in the message accounting of the audience at which it arrived; 0 before it arrives.
    pub audience: u32,
    /// Size of the whole payload, bytes.
    pub payload_bytes: u32,
    /// When it was due.
    pub due_ns: u64,
    /// When it arrived; before that, when it was ready to be sent.
    pub at_ns: u64,
    /// Upper bound of the generator's part in the time from due to the write; 0 before it arrives.
    pub lag_ns: u64,
    /// Upper bound of the time that it waited in the socket before it was read; 0 before it arrives.
    pub late_ns: u64,
    /// Time from due to the start of its write, µs, if its header has that.
    pub write_start_us: Option<u32>,
}

/// Length of a row in a file, bytes.
pub const ROW_BYTES: usize = 56;
/// Value for no write start; an actual time of this length would not be useful.
const NONE: u32 = u32::MAX;

impl Row {
    /// Adds the row to a buffer, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let write_start = self.write_start_us.unwrap_or(NONE);
        let narrow = [self.kind as u32, self.publisher, self.sequence, self.audience, self.payload_bytes, write_start];
        let wide = [self.due_ns, self.at_ns, self.lag_ns, self.late_ns];
        // The array is filled by index and appended once. Appending word by word, or iterating in a build for tests,
        // takes several times as many instructions.
        let mut bytes = [0; ROW_BYTES];
        let (first, second) = bytes.split_at_mut(4 * narrow.len());
        let (first, second) = (first.as_chunks_mut::<4>().0, second.as_chunks_mut::<8>().0);
        let mut place = 0;
        while place < narrow.len() {
            first[place] = narrow[place].to_le_bytes();
            place += 1;
        }
        place = 0;
        while place < wide.len() {
            second[place] = wide[place].to_le_bytes();
            place += 1;
        }
        out.extend_from_slice(&bytes);
    }

    /// Reads a row; `None` for bytes that no shard writes.
    pub fn decode(bytes: &[u8; ROW_BYTES]) -> Option<Row> {
        let (narrow, wide) = (|place: usize| four(bytes, place * 4), |place: usize| eight(bytes, 24 + place * 8));
        Some(Row {
            kind: *RowKind::ALL.get(narrow(0) as usize)?,
            publisher: narrow(1),
            sequence: narrow(2),
            audience: narrow(3),
            payload_bytes: narrow(4),
            write_start_us: Some(narrow(5)).filter(|us| *us != NONE),
            due_ns: wide(0),
            at_ns: wide(1),
            lag_ns: wide(2),
            late_ns: wide(3),
        })
    }
}

fn four(bytes: &[u8; ROW_BYTES], from: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|place| bytes[from + place]))
}

fn eight(bytes: &[u8; ROW_BYTES], from: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|place| bytes[from + place]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_row_is_read_as_it_was_written(
            kind in 0usize..RowKind::ALL.len(),
            narrow in any::<[u32; 4]>(),
            wide in any::<[u64; 4]>(),
            write_start_us in proptest::option::of(0..NONE),
        ) {
            let [publisher, sequence, audience, payload_bytes] = narrow;
            let [due_ns, at_ns, lag_ns, late_ns] = wide;
            let kind = RowKind::ALL[kind];
            let row = Row {
                kind, publisher, sequence, audience, payload_bytes, due_ns, at_ns, lag_ns, late_ns, write_start_us,
            };
            let mut bytes = vec![];
            row.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), ROW_BYTES);
            let bytes: [u8; ROW_BYTES] = bytes.try_into().expect("the length of a row");
            prop_assert_eq!(Row::decode(&bytes), Some(row));
        }
    }

    #[test]
    fn a_kind_that_does_not_exist_is_no_row() {
        assert_eq!(Row::decode(&[9; ROW_BYTES]), None);
    }
}
