//! Who may look on while a command makes runs: a browser (`--live`), a scraper (`--metrics`). One listener each for the whole command, however
//! many runs it makes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pubmark_runner::stream::EventStream;

use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::live::{self, Live, Watched};
use crate::metrics::{Metrics, Scraped};
use crate::printer::Printer;

/// Where runs can be looked at.
#[derive(Clone, Debug, Default, Args)]
pub struct Watching {
    #[command(flatten)]
    pub metrics: Metrics,

    #[command(flatten)]
    pub live: Live,
}

/// Those who look on; addresses are taken, nobody is answered yet.
pub struct Watchers {
    scraped: Option<Scraped>,
    watched: Option<Watched>,
}

impl Watching {
    /// Was either asked for?
    pub fn is_wanted(&self) -> bool {
        self.metrics.is_wanted() || self.live.is_wanted()
    }

    /// Takes the addresses, hands the stream of events to what is done, and lets pages become the report at its end.
    pub fn during(
        &self,
        events: &Events,
        json: bool,
        printer: &Printer,
        perform: impl FnOnce(&EventStream, &mut Watchers) -> Outcome,
    ) -> Outcome {
        // Before a run enters a network of its own, where nobody would reach it.
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
    /// Answers from now on, and prints where. A page may set `stop`.
    pub fn start(&mut self, stop: &Arc<AtomicBool>, printer: &Printer) -> Result<(), Failure> {
        self.scraped.as_mut().map_or(Ok(()), |scraped| scraped.start(printer))?;
        self.watched.as_mut().map_or(Ok(()), |watched| watched.start(Arc::clone(stop), printer))
    }
}
