//! Events of an experiment or of a search for capacity.

use std::time::Duration;

use pubmark_record::capacity::Trial;
use pubmark_runner::{RunEvent, RunObserver};

use crate::end::End;
use crate::experiment::planning::Refusal;

/// An event.
#[derive(Debug)]
pub enum Event<'a> {
    /// The image of a system is located, and pulled if it is missing.
    LocatesImage {
        /// The system.
        system: &'a str,
    },
    /// A wait for machines, or a machine that joined or left.
    Nodes(&'a RunEvent),
    /// Cells that cannot be run for the same reason.
    CellsRefused {
        /// Their labels.
        cells: &'a [&'a str],
        /// The reason.
        refusal: &'a Refusal,
    },
    /// A note for the reader about the choice of cells.
    Caution(&'a str),
    /// Number of runs that are repeated because they could not be measured.
    Reruns(usize),
    /// A run begins; it may wait for a quiet machine.
    RunBegins(&'a RunPlace<'a>),
    /// The machine is busy.
    WaitsForQuiet {
        /// Share of its CPU time that other processes use, 0 to 1.
        share: f64,
        /// Share below which it counts as quiet.
        below: f64,
    },
    /// The machine did not become quiet in time. Runs continue and are marked, without a further wait.
    StaysBusy {
        /// Share of its CPU time that other processes use, 0 to 1; `None` if it cannot be read.
        share: Option<f64>,
        /// Time waited.
        waited: Duration,
    },
    /// A run has ended.
    RunEnded {
        /// The run.
        run: &'a RunPlace<'a>,
        /// Its outcome.
        end: &'a End,
        /// Its p99 latency, µs.
        p99_us: Option<f64>,
        /// Its duration.
        took: Duration,
        /// The machine was busy.
        busy: bool,
    },
    /// A trial of a search for capacity begins.
    TrialBegins {
        /// Which.
        place: &'a TrialPlace<'a>,
        /// Messages offered per second.
        offered_per_s: f64,
        /// Name of its workload.
        workload: &'a str,
        /// Name of its system.
        system: &'a str,
        /// What devices speak.
        protocol: &'a str,
    },
    /// A trial of a search for capacity has ended.
    TrialEnded {
        /// Its number, from 1.
        number: usize,
        /// Its outcome.
        trial: &'a Trial,
    },
}

/// A trial of a search.
#[derive(Debug)]
pub struct TrialPlace<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Number of this attempt at the load, from 1.
    pub attempt: u32,
    /// Candidate of a choice whose headroom is searched.
    pub candidate: Option<&'a str>,
    /// Remaining time in which further trials may begin.
    pub left: Duration,
}

/// A run of a sequence.
#[derive(Debug)]
pub struct RunPlace<'a> {
    /// Its number in this sequence of runs, from 1.
    pub number: usize,
    /// Number of runs of the sequence.
    pub of: usize,
    /// Label of its cell.
    pub cell: &'a str,
    /// Name of its workload.
    pub workload: &'a str,
    /// Name of its system.
    pub system: &'a str,
    /// Protocol of the devices.
    pub protocol: &'a str,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Estimated time of this run and the remaining ones.
    pub left: Duration,
}

/// Receives events. Every method is called on the caller's thread.
pub trait Observer {
    /// An event occurred.
    fn event(&mut self, event: &Event<'_>);

    /// The observer of the run that begins now.
    fn run(&mut self) -> Box<dyn RunObserver + '_>;
}

/// Ignores all events.
impl Observer for () {
    fn event(&mut self, _: &Event<'_>) {}

    fn run(&mut self) -> Box<dyn RunObserver + '_> {
        Box::new(())
    }
}
