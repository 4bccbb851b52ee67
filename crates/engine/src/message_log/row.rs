//! A row of the message log, as shards write it: of fixed length, so that files of them need no framing.

/// What a row says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RowKind {
    /// The adapter took it over, under its sequence number.
    Handed = 0,
    /// It was due while its device was planned to be offline.
    SkippedPlanned = 1,
    /// It was due after its device had lost its connection.
    SkippedDisconnected = 2,
    /// The system takes no message of this size.
    TooLarge = 3,
    /// It was due and never handed over.
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
        RowKind::Handed,
        RowKind::SkippedPlanned,
        RowKind::SkippedDisconnected,
        RowKind::TooLarge,
        RowKind::Unsent,
        RowKind::Delivered,
        RowKind::DeliveredOutOfOrder,
        RowKind::Duplicated,
        RowKind::Overlap,
    ];

    /// Did something arrive?
    pub fn has_arrived(self) -> bool {
        self >= RowKind::Delivered
    }
}

/// What is noted of a message at one point of its way. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it says.
    pub kind: RowKind,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number; 0 for a message that has none, as it was not handed over.
    pub sequence: u32,
    /// Number in the books of whom it arrived at; 0 before it arrives.
    pub audience: u32,
    /// Whole payload, bytes.
    pub payload_bytes: u32,
    /// When it was due.
    pub due_ns: u64,
    /// When it arrived; before that, when it was ready to be sent.
    pub at_ns: u64,
    /// How much of the time from due to the write was the generator's, at most; 0 before it arrives.
    pub lag_ns: u64,
    /// How long it lay in the socket before it was read, at most; 0 before it arrives.
    pub late_ns: u64,
    /// From due to the begin of its write, µs, where its header says that.
    pub write_start_us: Option<u32>,
}

/// Length of a row in a file.
pub const ROW_BYTES: usize = 56;
/// No write start; a real one that long is none of use.
const NONE: u32 = u32::MAX;

impl Row {
    /// Adds the row to a buffer, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let write_start = self.write_start_us.unwrap_or(NONE);
        let narrow = [self.kind as u32, self.publisher, self.sequence, self.audience, self.payload_bytes, write_start];
        let wide = [self.due_ns, self.at_ns, self.lag_ns, self.late_ns];
        // An array is filled by index and appended once. To append word by word, or to iterate in a build for tests, takes several
        // times the instructions.
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

    /// Reads a row; `None` for what no shard writes.
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
