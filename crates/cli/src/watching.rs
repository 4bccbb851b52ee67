//! Listeners to the runs of a command: a browser (`--live`) and a metrics scraper (`--metrics`). Each has one server for the
//! whole command, however many runs it makes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pubmark_runner::stream::EventStream;

use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::live::{self, Live, Watched};
use crate::metrics::{Metrics, Scraped};
use crate::printer::Printer;

/// Options for the servers that show runs.
#[derive(Clone, Debug, Default, Args)]
pub struct Watching {
    #[command(flatten)]
    pub metrics: Metrics,

    #[command(flatten)]
    pub live: Live,
}

/// The servers; their addresses are bound, but they do not serve requests yet.
pub struct Watchers {
    scraped: Option<Scraped>,
    watched: Option<Watched>,
}

impl Watching {
    /// Returns whether one of the two options is given.
    pub fn is_wanted(&self) -> bool {
        self.metrics.is_wanted() || self.live.is_wanted()
    }

    /// Binds the addresses, passes the stream of events to `perform`, and at its end replaces live pages by the report.
    pub fn during(
        &self,
        events: &Events,
        json: bool,
        printer: &Printer,
        perform: impl FnOnce(&EventStream, &mut Watchers) -> Outcome,
    ) -> Outcome {
        // Bound before a run enters a separate network namespace, where nobody could connect.
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
    /// Starts to serve, and prints the addresses. A page may set `stop`.
    pub fn start(&mut self, stop: &Arc<AtomicBool>, printer: &Printer) -> Result<(), Failure> {
        self.scraped.as_mut().map_or(Ok(()), |scraped| scraped.start(printer))?;
        self.watched.as_mut().map_or(Ok(()), |watched| watched.start(Arc::clone(stop), printer))
    }
}
