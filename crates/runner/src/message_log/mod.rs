//! The message log beside a record: a table with one row for each message and each subscriber ([`columns`]), as
//! Parquet, CSV or NDJSON, and its sums for each client ([`clients`]).

mod clients;
mod columns;
mod names;
#[cfg(feature = "parquet")]
mod parquet;
mod text;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pubmark_engine::message_log::Log;
use pubmark_engine::message_log::entries::Entry;
use pubmark_engine::plan::RunPlan;
use pubmark_record::message_log::{BY_CLIENT_FILE, LogFormat, MessageLogInfo};
use pubmark_record::nodes::NodeRow;

use crate::error::RunError;
use clients::{Clients, TIMED_ROWS};
use columns::LoggedRow;
use names::Names;

/// Writes rows one after the other.
trait RowWriter {
    /// Adds a row.
    fn row(&mut self, row: &LoggedRow<'_>) -> io::Result<()>;
    /// Writes buffered rows.
    fn end(self: Box<Self>) -> io::Result<()>;
}

/// The message log of a completed run.
pub struct MessageLog {
    log: Log,
    names: Names,
    format: LogFormat,
    window_ns: u64,
    /// Nodes of the run, whose clocks differ.
    nodes: Vec<NodeRow>,
    /// Longest time that a message spent in a relay of pubmark, all its passes together, ns; 0 without one, and
    /// `u64::MAX` if it is unknown.
    relay_ns: u64,
    /// Whether there are few enough messages for percentiles of each client.
    has_percentiles: bool,
}

/// Refuses a format that this build does not have.
///
/// # Errors
/// Parquet, in a build without it.
pub fn check(format: Option<LogFormat>) -> Result<(), RunError> {
    if format == Some(LogFormat::Parquet) && !cfg!(feature = "parquet") {
        return Err(RunError::input("this build of pubmark writes no Parquet (cargo feature `parquet`)")
            .hint("`--message-log=csv` or `--message-log=ndjson`"));
    }
    Ok(())
}

impl MessageLog {
    /// The log of a run on these nodes whose measured window began at `window_ns`, ns of the run's clock.
    pub fn new(log: Log, plan: &RunPlan, format: LogFormat, window_ns: u64, nodes: &[NodeRow]) -> MessageLog {
        let names = Names::new(plan);
        // If the size of the file cannot be read, reading its rows fails later with the reason.
        let has_percentiles = log.row_count().is_ok_and(|rows| rows <= TIMED_ROWS);
        MessageLog { log, names, format, window_ns, nodes: nodes.to_vec(), relay_ns: 0, has_percentiles }
    }

    /// The same log of a run with a relay in which a message spent up to `relay_ns`, all its passes together;
    /// `u64::MAX` if that is unknown.
    pub fn through_relay(self, relay_ns: u64) -> MessageLog {
        MessageLog { relay_ns, ..self }
    }

    /// Why rows are missing: the nodes whose part is missing or incomplete, or the reason of a shard.
    fn reason(&self) -> Option<String> {
        let mut parts: BTreeMap<u16, &str> = BTreeMap::new();
        for part in &self.log.incomplete {
            parts.entry(part.node).or_insert(&part.why);
        }
        let named = |(node, why): (&u16, &&str)| {
            let row = self.nodes.get(usize::from(*node));
            // The control plane knows the reason better than a closed channel does.
            let why = row.and_then(|row| row.lost.as_deref()).unwrap_or(why);
            format!("rows of `{}` are missing: {why}", row.map_or("a node", |row| &row.name))
        };
        let parts = parts.iter().map(named);
        let reasons: Vec<String> = parts.chain(self.log.logged.why.clone()).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Calls `visit` with each entry of the log.
    fn entries(&self, mut visit: impl FnMut(&Entry) -> io::Result<()>) -> io::Result<()> {
        self.log.entries(self.window_ns, |entry| visit(&self.names.widened(entry, &self.nodes, self.relay_ns)))
    }

    /// The record's section about the log.
    pub fn info(&self) -> MessageLogInfo {
        MessageLogInfo {
            file: self.format.file_name().to_owned(),
            missing: self.log.logged.missing,
            reason: self.reason(),
            by_client: self.names.are_few().then(|| BY_CLIENT_FILE.to_owned()),
            by_client_without_percentiles: self.names.are_few() && !self.has_percentiles,
        }
    }

    /// Writes the files of the log into the folder of the run.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let file = File::create(folder.join(self.format.file_name()))?;
        let mut rows = self.writer(file)?;
        let mut clients = self.names.are_few().then(|| Clients::new(&self.names, &self.log, self.has_percentiles));
        self.entries(|entry| {
            rows.row(&self.names.row(entry))?;
            if let Some(clients) = &mut clients {
                clients.enter(entry);
            }
            Ok(())
        })?;
        rows.end()?;
        let Some(clients) = clients else { return Ok(()) };
        let path = folder.join(BY_CLIENT_FILE);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut out = BufWriter::new(File::create(path)?);
        clients.write(&mut out)?;
        out.flush()
    }

    /// Writes the rows as NDJSON.
    ///
    /// # Errors
    /// The log cannot be read, or `out` cannot be written.
    pub fn write_ndjson(&self, out: impl Write) -> io::Result<()> {
        let mut rows = Box::new(text::Ndjson::new(out));
        self.entries(|entry| rows.row(&self.names.row(entry)))?;
        rows.end()
    }

    fn writer(&self, file: File) -> io::Result<Box<dyn RowWriter>> {
        match self.format {
            LogFormat::Csv => Ok(Box::new(text::Csv::new(file)?)),
            LogFormat::Ndjson => Ok(Box::new(text::Ndjson::new(file))),
            #[cfg(feature = "parquet")]
            LogFormat::Parquet => Ok(Box::new(parquet::Parquet::new(file)?)),
            #[cfg(not(feature = "parquet"))]
            LogFormat::Parquet => Err(io::Error::other("this build writes no Parquet")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_engine::message_log::IncompletePart;
    use pubmark_record::warnings::warnings;

    use super::*;

    impl MessageLog {
        /// A log of one publisher that sent nothing.
        pub fn without_rows() -> MessageLog {
            let (log, names) = (Log::default(), Names::of_publishers(1));
            MessageLog {
                log,
                names,
                format: LogFormat::Ndjson,
                window_ns: 0,
                nodes: vec![],
                relay_ns: 0,
                has_percentiles: true,
            }
        }
    }

    /// The table of clients, if it was written, and the codes of the record's warnings.
    fn written(clients: usize) -> (Option<String>, Vec<String>) {
        let names = Names::of_publishers(clients);
        let log = MessageLog { names, format: LogFormat::Csv, ..MessageLog::without_rows() };
        let folder = tempfile::tempdir().unwrap();
        log.write(folder.path()).unwrap();
        assert!(folder.path().join("messages.csv").is_file());
        let mut record = pubmark_record::sample::record();
        record.message_log = Some(log.info());
        let codes = warnings(&record).into_iter().map(|warning| warning.code).collect();
        (std::fs::read_to_string(folder.path().join(BY_CLIENT_FILE)).ok(), codes)
    }

    #[test]
    fn with_more_than_a_hundred_thousand_clients_their_table_is_not_written_and_the_record_says_so() {
        let (table, codes) = written(100_000);
        assert!(table.is_some_and(|table| table.starts_with("role,number,client_id,")), "its clients sent nothing");
        assert!(!codes.contains(&"W22".to_owned()), "{codes:?}");
        let (table, codes) = written(100_001);
        assert_eq!(table, None);
        assert!(codes.contains(&"W22".to_owned()), "{codes:?}");
    }

    #[test]
    fn a_part_that_did_not_arrive_is_named_by_its_node_once() {
        let node = |name: &str| NodeRow { name: name.to_owned(), ..NodeRow::default() };
        let part = |why: &str| IncompletePart { node: 1, why: why.to_owned() };
        let mut log = MessageLog {
            log: Log { incomplete: vec![part("it has ended"), part("it has ended too")], ..Log::default() },
            format: LogFormat::Csv,
            nodes: vec![node("edge-1"), node("edge-2")],
            ..MessageLog::without_rows()
        };
        let info = log.info();
        assert_eq!(info.reason.as_deref(), Some("rows of `edge-2` are missing: it has ended"));
        assert!(info.is_partial());
        log.nodes[1].lost = Some("it was silent for 2 s".to_owned());
        assert_eq!(log.info().reason.as_deref(), Some("rows of `edge-2` are missing: it was silent for 2 s"));
        log.log.incomplete.clear();
        assert!(!log.info().is_partial());
    }
}
