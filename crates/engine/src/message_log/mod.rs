//! The message log: rows of the measured messages, one when a message is handed over or is not, one for each copy that arrives. Shards
//! write them off the message path ([`writer`]) into files ([`files`]); [`Log`] has them with the outcomes of those that did not arrive.

pub mod entries;
pub mod files;
mod missing;
pub mod row;
pub mod writer;

use std::collections::HashMap;
use std::fs::File;
use std::io;

use crate::plan::RunPlan;
use crate::shard::setup::Setup;
use crate::shard_outcome::PublisherBook;
use files::file_in;
use writer::{LogWriter, Logged};

/// What became of a message for somebody it did not arrive at, or for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// It was sent, expected, and did not arrive.
    Lost,
    /// Its acknowledgement can no longer come: nobody knows whether the system has it.
    Unknown,
    /// It was sent while the system did not hold the subscription.
    Absent,
    /// The system's content filter kept it back, as it should.
    FilteredOut,
    /// The system refused it after it was sent.
    Refused,
    /// Its connection ended before it was written wholly.
    SkippedDisconnected,
    /// It was still in our hands at the deadline.
    Unsent,
}

/// A message that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingRow {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Number in the books of whom it did not arrive at; `None` for a message that nobody could expect.
    pub audience: Option<u32>,
    /// Why.
    pub outcome: Missing,
}

/// The log of a run.
#[derive(Debug, Default)]
pub struct Log {
    /// The files of its processes.
    pub files: Vec<File>,
    /// Messages that did not arrive.
    pub missing: Vec<MissingRow>,
    /// The publishers' side of the books.
    pub publishers: Vec<PublisherBook>,
    /// (audience, publisher) of each stream.
    pub streams: Vec<(u32, u32)>,
    /// By audience for which the system filters: its group of subscribers.
    pub filtered_for: HashMap<u32, u16>,
    /// Rows that could not be noted, and why.
    pub logged: Logged,
}

/// Gives the shards of this process their logs, if the plan wants one.
///
/// # Errors
/// Its file cannot be made.
pub fn attach(setups: &mut [Setup], plan: &RunPlan) -> io::Result<()> {
    let (Some(folder), Some(first)) = (&plan.message_log, setups.first()) else { return Ok(()) };
    let writer = LogWriter::start(&file_in(folder, first.index))?;
    for setup in setups {
        setup.log = Some(writer.shard());
    }
    Ok(())
}

impl Logged {
    /// Adds another shard's.
    pub fn merge(&mut self, other: Logged) {
        self.missing += other.missing;
        self.why = self.why.take().or(other.why);
    }
}
