//! A node's part of the message log, as it is sent to the coordinator after all outcomes. The coordinator checks each
//! piece and appends it to a file. Pieces are not queued in memory: a piece is read when the one before it is in the
//! file, so a slow disk slows the sender.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use super::row::{ROW_BYTES, Row};
use crate::plan::RunPlan;

/// Longest piece, bytes: whole rows.
pub const PIECE_BYTES: usize = 1_024 * ROW_BYTES;

/// Sends the rows of a file piece by piece. An incomplete row at the end is left out.
///
/// # Errors
/// The file cannot be read.
pub fn send(mut file: &File, mut piece: impl FnMut(Vec<u8>)) -> io::Result<()> {
    file.rewind()?;
    loop {
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        file.take(PIECE_BYTES as u64).read_to_end(&mut bytes)?;
        bytes.truncate(bytes.len() / ROW_BYTES * ROW_BYTES);
        if bytes.is_empty() {
            return Ok(());
        }
        piece(bytes);
    }
}

/// Stores the pieces of one process, and refuses what no process of the run sends.
pub struct PartReceiver {
    file: File,
    /// Bytes that the part may still have.
    left: u64,
    /// Numbers of publishers and of audiences are below these.
    publishers: u32,
    audiences: u32,
}

impl PartReceiver {
    /// Stores into `file` a part of at most `limit` bytes of a plan's log.
    pub fn of_plan(file: File, limit: u64, plan: &RunPlan) -> PartReceiver {
        let publishers = plan.fleet.devices().len() as u32;
        let audiences = plan.fleet.audiences(&plan.workload).into_iter().max().map_or(0, |last| last + 1);
        PartReceiver::new(file, limit, publishers, plan.subscribe_at.number_of_part(audiences, 0))
    }

    /// Stores into `file` a part of at most `limit` bytes, whose publishers and audiences have lower numbers than
    /// these.
    pub fn new(file: File, limit: u64, publishers: u32, audiences: u32) -> PartReceiver {
        PartReceiver { file, left: limit, publishers, audiences }
    }

    /// Checks a piece and appends it.
    ///
    /// # Errors
    /// The piece is too long, has something else than rows of this run's clients, or cannot be written; in words.
    pub fn add(&mut self, piece: &[u8]) -> Result<(), String> {
        let (rows, rest) = piece.as_chunks::<ROW_BYTES>();
        if piece.len() > PIECE_BYTES || !rest.is_empty() {
            return Err(format!("it sent a piece of {} bytes of the message log", piece.len()));
        }
        let left = self.left.checked_sub(piece.len() as u64);
        self.left = left.ok_or("it sent more rows of the message log than the run can have")?;
        if !rows.iter().all(|row| Row::decode(row).is_some_and(|row| self.is_of_this_run(&row))) {
            return Err("it sent rows of the message log that are not of this run".to_owned());
        }
        self.file.write_all(piece).map_err(|error| format!("its rows could not be written here: {error}"))
    }

    fn is_of_this_run(&self, row: &Row) -> bool {
        row.publisher < self.publishers && (!row.kind.has_arrived() || row.audience < self.audiences)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::files::{LogFiles, rows};
    use super::super::row::RowKind;
    use super::*;

    fn row(publisher: u32, kind: RowKind, audience: u32) -> Row {
        Row {
            kind,
            publisher,
            sequence: 7,
            audience,
            payload_bytes: 16,
            due_ns: 1,
            at_ns: 2,
            lag_ns: 0,
            late_ns: 0,
            write_start_us: None,
        }
    }

    fn encoded(rows: &[Row]) -> Vec<u8> {
        let mut bytes = vec![];
        rows.iter().for_each(|row| row.encode(&mut bytes));
        bytes
    }

    fn receiver(file: File, limit: u64) -> PartReceiver {
        PartReceiver::new(file, limit, 5, 2)
    }

    #[test]
    fn a_part_arrives_as_it_was_written_in_pieces_of_whole_rows() {
        let files = LogFiles::create(&std::env::temp_dir()).unwrap();
        let all: Vec<Row> = (0..2_500).map(|number| row(number % 5, RowKind::Submitted, 0)).collect();
        let mut written = encoded(&all);
        written.extend([1; 9]);
        std::fs::write(files.file(0), written).unwrap();
        let mut receiver = receiver(File::create(files.file(1)).unwrap(), u64::MAX);
        let mut lengths = vec![];
        let theirs = File::open(files.file(0)).unwrap();
        send(&theirs, |piece| {
            lengths.push(piece.len() / ROW_BYTES);
            receiver.add(&piece).unwrap();
        })
        .unwrap();
        assert_eq!(lengths, [1_024, 1_024, 452]);
        let arrived = File::open(files.file(1)).unwrap();
        assert_eq!(rows(&arrived).unwrap().map(|row| row.unwrap()).collect::<Vec<_>>(), all);
    }

    #[test]
    fn pieces_that_no_process_sends_are_refused_and_not_stored() {
        let good = encoded(&[row(4, RowKind::Delivered, 1)]);
        let mut unknown_kind = good.clone();
        unknown_kind[0] = 99;
        for (piece, why) in [
            (vec![0; PIECE_BYTES + ROW_BYTES], "a piece of 57400 bytes"),
            (vec![0; ROW_BYTES + 1], "a piece of 57 bytes"),
            (unknown_kind, "not of this run"),
            (encoded(&[row(5, RowKind::Submitted, 0)]), "not of this run"),
            (encoded(&[row(0, RowKind::Duplicated, 2)]), "not of this run"),
            (good.repeat(3), "more rows of the message log than the run can have"),
        ] {
            let files = LogFiles::create(&std::env::temp_dir()).unwrap();
            let refused = receiver(File::create(files.file(0)).unwrap(), 2 * ROW_BYTES as u64 + 7).add(&piece);
            assert!(refused.as_ref().is_err_and(|said| said.contains(why)), "{refused:?}, not `{why}`");
            assert_eq!(std::fs::metadata(files.file(0)).unwrap().len(), 0);
        }
    }

    #[test]
    fn a_disk_that_is_full_is_the_reason_why_a_part_is_incomplete() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let refused = receiver(full, u64::MAX).add(&encoded(&[row(0, RowKind::Submitted, 0)]));
        assert!(refused.unwrap_err().contains("could not be written here: No space left"));
    }
}
