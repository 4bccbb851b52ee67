//! The message log: rows of the measured messages, one when a message is passed to the adapter or is not, one for each
//! copy that arrives. Shards write them outside the message path ([`writer`]) into files ([`files`]). [`Log`] adds the
//! outcomes of messages that did not arrive.

pub mod entries;
pub mod files;
mod missing;
pub(crate) mod part;
pub mod row;
pub mod writer;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::plan::RunPlan;
use crate::shard::setup::Setup;
use crate::shard_outcome::PublisherBook;
use files::{LogFiles, file_in};
use writer::{LogWriter, Logged};

pub(crate) use writer::WRITE_LIMIT;

/// The outcome of a message that did not arrive at an audience, or at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// It was sent, expected, and did not arrive.
    Lost,
    /// Its acknowledgement can no longer arrive: it is unknown whether the system has it.
    Unknown,
    /// It was sent while the system did not hold the subscription.
    Absent,
    /// The system's content filter correctly removed it.
    FilteredOut,
    /// The system refused it after it was sent.
    Refused,
    /// Its connection ended before it was written completely.
    SkippedDisconnected,
    /// It was not written completely at the deadline.
    Unsent,
}

/// A message that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingRow {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Number in the message accounting of the audience at which it did not arrive; `None` for a message that no
    /// subscription could expect.
    pub audience: Option<u32>,
    /// Its outcome.
    pub outcome: Missing,
}

/// The log of a run.
#[derive(Debug, Default)]
pub struct Log {
    /// The files of its processes.
    pub files: Vec<File>,
    /// Messages that did not arrive.
    pub missing: Vec<MissingRow>,
    /// The publishers' side of the message accounting.
    pub publishers: Vec<PublisherBook>,
    /// Messages that each publisher sent, by its number in the fleet.
    pub sent: HashMap<u32, u64>,
    /// (audience, publisher) of each stream.
    pub streams: Vec<(u32, u32)>,
    /// By audience for which the system filters: its subscriber group.
    pub filtered_for: HashMap<u32, u16>,
    /// Number of rows that could not be written, and the reason.
    pub logged: Logged,
    /// Nodes whose part is missing or incomplete.
    pub incomplete: Vec<IncompletePart>,
}

/// A node's part of a log that is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompletePart {
    /// Number of the node, from 0.
    pub node: u16,
    /// The reason, in words.
    pub why: String,
}

/// Adds a log to each shard of this process, if the plan requires one. The processes of one machine write into the
/// folder of the plan.
///
/// # Errors
/// Its file cannot be created.
pub fn attach(setups: &mut [Setup], plan: &RunPlan) -> io::Result<()> {
    match &plan.message_log {
        Some(folder) => attach_in(folder, setups),
        None => Ok(()),
    }
}

/// The same on a node, which has no access to the folder of the plan: the file is in the node's folder for temporary
/// files, without a name. Returns the file, from which the part is sent after the run.
///
/// # Errors
/// The file cannot be created.
pub fn attach_on_node(setups: &mut [Setup], plan: &RunPlan) -> io::Result<Option<File>> {
    if plan.message_log.is_none() {
        return Ok(None);
    }
    let files = LogFiles::create(&std::env::temp_dir())?;
    attach_in(files.folder(), setups)?;
    Ok(files.open()?.pop())
}

fn attach_in(folder: &Path, setups: &mut [Setup]) -> io::Result<()> {
    let Some(first) = setups.first() else { return Ok(()) };
    let writer = LogWriter::start(&file_in(folder, first.index))?;
    for setup in setups {
        setup.log = Some(writer.shard());
    }
    Ok(())
}

impl Logged {
    /// Adds the counts of another shard.
    pub fn merge(&mut self, other: Logged) {
        self.missing += other.missing;
        self.why = self.why.take().or(other.why);
    }
}
