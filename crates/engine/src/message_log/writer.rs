//! Writes the message log: each shard fills buffers, and one thread of the process writes them to a file. A shard never
//! waits for that thread: rows for which no buffer is free are counted and omitted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::row::{ROW_BYTES, Row};

/// Rows per buffer.
const BUFFER_ROWS: usize = 4_096;
/// Buffers per shard: some 16 MB, enough for a quarter of a second at a million rows a second.
const BUFFERS: usize = 64;
/// Longest wait for the remaining rows to be written when a shard ends.
pub(crate) const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// What is missing from a shard's part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// Number of missing rows.
    pub missing: u64,
    /// The reason, if there was another one than the rate of rows.
    pub why: Option<String>,
}

/// Work of the writing thread.
enum Work {
    /// Rows, and the channel to which their buffer is then returned.
    Rows(Vec<Row>, SyncSender<Vec<Row>>, Arc<AtomicU64>),
    /// A shard has ended: all its rows have been passed on.
    End(SyncSender<Option<String>>),
}

/// The log of the shards of one process. Its thread ends with the last of them.
pub struct LogWriter {
    to_writer: Sender<Work>,
}

impl LogWriter {
    /// Starts to write to a new file.
    ///
    /// # Errors
    /// The file or the thread cannot be created.
    pub fn start(path: &Path) -> io::Result<LogWriter> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let (to_writer, inbox) = mpsc::channel();
        thread::Builder::new().name("message-log".to_owned()).spawn(move || write(file, &inbox))?;
        Ok(LogWriter { to_writer })
    }

    /// The log of one shard.
    pub fn shard(&self) -> ShardLog {
        let (give_back, empty) = mpsc::sync_channel(BUFFERS);
        for _ in 1..BUFFERS {
            // The channel has capacity for all of them.
            let _ = give_back.try_send(Vec::with_capacity(BUFFER_ROWS));
        }
        let rows = Vec::with_capacity(BUFFER_ROWS);
        ShardLog { rows, to_writer: self.to_writer.clone(), give_back, empty, missing: 0, unwritten: Arc::default() }
    }
}

/// Where a shard logs its messages.
pub struct ShardLog {
    rows: Vec<Row>,
    to_writer: Sender<Work>,
    give_back: SyncSender<Vec<Row>>,
    empty: Receiver<Vec<Row>>,
    missing: u64,
    /// Number of rows that could not be written.
    unwritten: Arc<AtomicU64>,
}

impl ShardLog {
    /// Adds a row, if a buffer is free.
    #[inline]
    pub fn note(&mut self, row: Row) {
        if self.rows.len() == BUFFER_ROWS {
            self.hand_over();
        }
        self.rows.push(row);
    }

    #[cold]
    fn hand_over(&mut self) {
        match self.empty.try_recv() {
            Ok(empty) => {
                let rows = std::mem::replace(&mut self.rows, empty);
                self.give(rows);
            }
            Err(_) => {
                self.missing += self.rows.len() as u64;
                self.rows.clear();
            }
        }
    }

    /// Passes rows to the writing thread. The channel is not bounded, but the number of buffers of a shard is.
    fn give(&mut self, rows: Vec<Row>) {
        let count = rows.len() as u64;
        let work = Work::Rows(rows, self.give_back.clone(), Arc::clone(&self.unwritten));
        if self.to_writer.send(work).is_err() {
            self.missing += count;
        }
    }

    /// Waits until all rows are in the file. Must not be called while messages are sent or received.
    pub fn finish(mut self) -> Logged {
        let rows = std::mem::take(&mut self.rows);
        self.give(rows);
        let (answer, answered) = mpsc::sync_channel(1);
        let why = match self.to_writer.send(Work::End(answer)) {
            Ok(()) => answered
                .recv_timeout(WRITE_LIMIT)
                .unwrap_or_else(|_| Some(format!("rows were not written within {} s", WRITE_LIMIT.as_secs()))),
            Err(_) => Some("the thread that writes it ended".to_owned()),
        };
        Logged { missing: self.missing + self.unwritten.load(Relaxed), why }
    }
}

/// Writes until all shards have ended.
fn write(mut file: File, inbox: &Receiver<Work>) {
    let mut bytes = Vec::with_capacity(BUFFER_ROWS * ROW_BYTES);
    let mut length = 0;
    let failure = OnceLock::new();
    while let Ok(work) = inbox.recv() {
        match work {
            Work::Rows(mut rows, give_back, unwritten) => {
                bytes.clear();
                rows.iter().for_each(|row| row.encode(&mut bytes));
                match file.write_all(&bytes) {
                    Ok(()) => length += bytes.len() as u64,
                    Err(error) => {
                        failure.get_or_init(|| error.to_string());
                        unwritten.fetch_add(rows.len() as u64, Relaxed);
                        // The next row must begin at a multiple of the row length. If this fails too, the reader finds
                        // no row there.
                        let _ = file.set_len(length);
                        let _ = io::Seek::seek(&mut file, io::SeekFrom::Start(length));
                    }
                }
                rows.clear();
                // The shard may have ended.
                let _ = give_back.try_send(rows);
            }
            Work::End(answer) => {
                let _ = answer.try_send(failure.get().cloned());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::files::{LogFiles, rows};
    use super::super::row::RowKind;
    use super::*;

    fn row(sequence: u32) -> Row {
        Row {
            kind: RowKind::Submitted,
            publisher: 0,
            sequence,
            audience: 0,
            payload_bytes: 16,
            due_ns: 0,
            at_ns: 0,
            lag_ns: 0,
            late_ns: 0,
            write_start_us: None,
        }
    }

    #[test]
    fn rows_of_several_shards_are_all_in_the_file() {
        let files = LogFiles::create(&std::env::temp_dir()).unwrap();
        let writer = LogWriter::start(&files.file(0)).unwrap();
        let threads: Vec<_> = (0..3)
            .map(|shard| {
                let mut log = writer.shard();
                thread::spawn(move || {
                    (0..10_000).for_each(|number| log.note(row(shard * 10_000 + number)));
                    log.finish()
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Logged::default());
        }
        let opened = files.open().unwrap();
        let mut found: Vec<u32> = rows(&opened[0]).unwrap().map(|row| row.unwrap().sequence).collect();
        found.sort_unstable();
        assert_eq!(found, (0..30_000).collect::<Vec<_>>());
    }

    #[test]
    fn rows_without_a_buffer_are_counted_and_those_around_them_are_there() {
        // No thread takes the buffers, as if the writing thread were paused.
        let (to_writer, stuck) = mpsc::channel();
        let mut log = LogWriter { to_writer }.shard();
        let (room, more) = (BUFFERS * BUFFER_ROWS, 3 * BUFFER_ROWS);
        (0..(room + more) as u32).for_each(|number| log.note(row(number)));
        assert_eq!(log.missing, more as u64);
        let files = LogFiles::create(&std::env::temp_dir()).unwrap();
        let file = File::create(files.file(0)).unwrap();
        thread::spawn(move || write(file, &stuck));
        assert_eq!(log.finish(), Logged { missing: more as u64, why: None });
        let opened = files.open().unwrap();
        assert_eq!(rows(&opened[0]).unwrap().count(), room);
    }

    #[test]
    fn a_full_disk_makes_the_log_partial_with_a_reason() {
        let (to_writer, inbox) = mpsc::channel();
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        thread::spawn(move || write(file, &inbox));
        let mut log = LogWriter { to_writer }.shard();
        (0..5_000).for_each(|number| log.note(row(number)));
        let logged = log.finish();
        assert_eq!(logged.missing, 5_000);
        assert!(logged.why.unwrap().contains("No space left"));
    }
}
