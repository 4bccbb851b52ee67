//! What an experiment or a search for capacity tells while it goes on.

use std::time::Duration;

use pubmark_record::capacity::Trial;
use pubmark_runner::{RunEvent, RunObserver};

use crate::end::End;
use crate::experiment::planning::Refusal;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The image of a system is looked for, and fetched if it is not here.
    LooksForImage {
        /// The system.
        system: &'a str,
    },
    /// Machines are waited for, one joined, or left.
    Nodes(&'a RunEvent),
    /// Cells cannot be run, for one reason.
    CellsRefused {
        /// Their labels.
        cells: &'a [&'a str],
        /// Why.
        refusal: &'a Refusal,
    },
    /// A reader should know of how cells were chosen.
    Caution(&'a str),
    /// So many runs are made in place of those that could not be measured.
    Reruns(usize),
    /// A run begins, or waits for a quiet machine.
    RunBegins(&'a RunPlace<'a>),
    /// The machine is busy.
    WaitsForQuiet {
        /// Share of its CPU time that others use, 0 to 1.
        share: f64,
        /// Share below which it is quiet.
        below: f64,
    },
    /// The machine did not become quiet in time. Runs go on and are marked; it is not waited for again.
    StaysBusy {
        /// Share of its CPU time that others use, 0 to 1; `None` where it cannot be read.
        share: Option<f64>,
        /// Time waited.
        waited: Duration,
    },
    /// A run has ended.
    RunEnded {
        /// Which.
        run: &'a RunPlace<'a>,
        /// What it came to.
        end: &'a End,
        /// Its p99 latency, µs.
        p99_us: Option<f64>,
        /// Time that it took.
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
        /// What it came to.
        trial: &'a Trial,
    },
}

/// A trial among the others.
#[derive(Debug)]
pub struct TrialPlace<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Number of this try of the load, from 1.
    pub attempt: u32,
    /// Candidate of a choice whose headroom is searched.
    pub candidate: Option<&'a str>,
    /// Time in which further trials may begin.
    pub left: Duration,
}

/// A run among the others.
#[derive(Debug)]
pub struct RunPlace<'a> {
    /// Its number in this sequence of runs, from 1.
    pub number: usize,
    /// Runs of the sequence.
    pub of: usize,
    /// Label of its cell.
    pub cell: &'a str,
    /// Name of its workload.
    pub workload: &'a str,
    /// Name of its system.
    pub system: &'a str,
    /// What devices speak.
    pub protocol: &'a str,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Time that this run and the rest may take.
    pub left: Duration,
}

/// Receives what happens. Every method is called on the thread that called.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);

    /// Who watches the run that begins now.
    fn run(&mut self) -> Box<dyn RunObserver + '_>;
}

/// Nobody looks.
impl Observer for () {
    fn event(&mut self, _: &Event<'_>) {}

    fn run(&mut self) -> Box<dyn RunObserver + '_> {
        Box::new(())
    }
}
