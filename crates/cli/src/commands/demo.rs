//! `pubmark demo`: a first run without any preparation.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use pubmark_preflight::doctor::kernel;

use crate::commands::run_arguments::Run;
use crate::failure::Outcome;
use crate::printer::Printer;
use crate::values::positive_duration;

/// Run a smart home on the built-in broker for ten seconds, to see example results.
///
/// The same as `pubmark run smart-home --system builtin --warmup 2s --duration 10s`. A demonstration: the built-in broker is
/// there so that something answers, not to be quoted. Where the machine allows it and has two cores or more, the generator's threads
/// run under SCHED_FIFO (`--realtime`).
#[derive(Debug, Args)]
pub struct Demo {
    /// Length of the measured window
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "10s")]
    pub duration: Duration,

    /// Delivery level of all devices and subscribers
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub qos: Option<u8>,

    /// Folder in which the folder of the run is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,

    /// Print the record as JSON to standard output, and nothing else there
    #[arg(long)]
    pub json: bool,

    /// No progress and no notes on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

impl Demo {
    /// Runs the demonstration.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let mut run = Run {
            duration: Some(self.duration),
            warmup: Some(Duration::from_secs(2)),
            out: self.out,
            json: self.json,
            quiet: self.quiet,
            ..Run::of("smart-home")
        };
        run.setup.system = Some("builtin".to_owned());
        run.setup.qos = self.qos;
        // If SCHED_FIFO is not allowed, the demonstration runs without it, as the user did not request it.
        run.setup.realtime = may_be_realtime(printer);
        run.perform(printer)
    }
}

/// Returns whether the generator's threads may use SCHED_FIFO. With a single core they would take CPU time from the broker.
fn may_be_realtime(printer: &Printer) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let may = cores > 1 && kernel::allows_realtime();
    if may {
        printer.note("the generator's threads run under SCHED_FIFO, as with `--realtime`");
    }
    may
}
