//! The ways to follow runs while a command makes them: a browser (`--live`), a scraper (`--metrics`). Each has one
//! listener for the whole command, for all its runs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pubmark_runner::stream::EventStream;

use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::live::{self, Live, Watched};
use crate::metrics::{Metrics, Scraped};
use crate::printer::Printer;

/// Where runs can be followed.
#[derive(Clone, Debug, Default, Args)]
pub struct Watching {
    #[command(flatten)]
    pub metrics: Metrics,

    #[command(flatten)]
    pub live: Live,
}

/// The live view and the metrics endpoint; addresses are bound, and nothing is served yet.
pub struct Watchers {
    scraped: Option<Scraped>,
    watched: Option<Watched>,
}

impl Watching {
    /// Whether the live view or the metrics endpoint was requested.
    pub fn is_wanted(&self) -> bool {
        self.metrics.is_wanted() || self.live.is_wanted()
    }

    /// Binds the addresses, passes the stream of events to the work, and turns pages into the report at its end.
    pub fn during(
        &self,
        events: &Events,
        json: bool,
        printer: &Printer,
        perform: impl FnOnce(&EventStream, &mut Watchers) -> Outcome,
    ) -> Outcome {
        // Before a run enters a separate network namespace, where the addresses would not be reachable.
        let mut watchers = Watchers { scraped: self.metrics.bind()?, watched: self.live.bind()? };
        let scraped = watchers.scraped.as_ref().map(Scraped::listener);
        let listener = live::both(scraped, watchers.watched.as_ref().map(Watched::listener));
        let outcome = events.during(json, listener, printer, |stream| perform(stream, &mut watchers));
        if let Some(watched) = watchers.watched {
            watched.end(&outcome);
        }
        outcome
    }
}

impl Watchers {
    /// Serves from now on, and prints the addresses. A page may set `stop`.
    pub fn start(&mut self, stop: &Arc<AtomicBool>, printer: &Printer) -> Result<(), Failure> {
        self.scraped.as_mut().map_or(Ok(()), |scraped| scraped.start(printer))?;
        self.watched.as_mut().map_or(Ok(()), |watched| watched.start(Arc::clone(stop), printer))
    }
}
