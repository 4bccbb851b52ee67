//! `--live`: shows a run in a browser while it goes on.

#[cfg(feature = "serve")]
use std::net::SocketAddr;

use clap::Args;
use pubmark_runner::stream::Listener;

use crate::failure::{Failure, Outcome};
#[cfg(feature = "serve")]
use crate::metrics::address;

/// Option for the page in a browser.
#[derive(Clone, Debug, Default, Args)]
pub struct Live {
    /// Show the progress in a browser on this machine: prints the address of a page, which becomes the report at the
    /// end. PORT is one of 127.0.0.1 [default: a free one]
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = address,
          help_heading = "Output", conflicts_with = "quiet")]
    pub live: Option<SocketAddr>,
}

impl Live {
    /// Whether a page was requested.
    pub fn is_wanted(&self) -> bool {
        #[cfg(feature = "serve")]
        return self.live.is_some();
        #[cfg(not(feature = "serve"))]
        return false;
    }
}

/// A listener that passes each event to both listeners, if both are given.
pub fn both(one: Option<Listener>, other: Option<Listener>) -> Option<Listener> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Box::new(move |event| {
            one(event);
            other(event);
        })),
        (one, other) => one.or(other),
    }
}

#[cfg(feature = "serve")]
pub use with_serve::Watched;
#[cfg(not(feature = "serve"))]
pub use without_serve::Watched;

#[cfg(not(feature = "serve"))]
mod without_serve {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::{Failure, Listener, Live, Outcome};
    use crate::printer::Printer;

    /// No value exists: a build without `serve` has no page.
    pub enum Watched {}

    impl Live {
        /// Does nothing.
        pub fn bind(&self) -> Result<Option<Watched>, Failure> {
            Ok(None)
        }
    }

    impl Watched {
        /// Never called.
        pub fn listener(&self) -> Listener {
            match *self {}
        }

        /// Never called.
        pub fn start(&mut self, _: Arc<AtomicBool>, _: &Printer) -> Result<(), Failure> {
            match *self {}
        }

        /// Never called.
        pub fn end(self, _: &Outcome) {
            match self {}
        }
    }
}

#[cfg(feature = "serve")]
mod with_serve {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use pubmark_serve::beside::{BesideError, LiveServer};
    use pubmark_serve::store::State;

    use super::{Failure, Listener, Live, Outcome};
    use crate::exit_code::ExitCode;
    use crate::printer::Printer;

    /// A run that a browser can follow.
    pub struct Watched(LiveServer);

    impl Live {
        /// Binds the address, before anything else is done.
        pub fn bind(&self) -> Result<Option<Watched>, Failure> {
            self.live.map(|address| LiveServer::bind(address).map(Watched).map_err(failed)).transpose()
        }
    }

    impl Watched {
        /// The listener that receives the events of a run.
        pub fn listener(&self) -> Listener {
            Box::new(self.0.takes())
        }

        /// Serves the page from now on, and prints its address. A page may set `stop`.
        pub fn start(&mut self, stop: Arc<AtomicBool>, printer: &Printer) -> Result<(), Failure> {
            self.0.start(stop).map_err(failed)?;
            printer.note(&format!("live view at {}", self.0.url()));
            Ok(())
        }

        /// Ends the live view: pages become the report.
        pub fn end(self, outcome: &Outcome) {
            let (state, error) = match outcome {
                Ok(ExitCode::Interrupted) => (State::Cancelled, None),
                Err(failure) if failure.exit == ExitCode::Interrupted => (State::Cancelled, None),
                Ok(_) => (State::Complete, None),
                Err(failure) => (State::Failed, Some(failure.chain.join(": "))),
            };
            self.0.end(state, error);
        }
    }

    fn failed(error: BesideError) -> Failure {
        let failure = Failure::from_error(ExitCode::Usage, &error).during("the run cannot be shown");
        match error {
            BesideError::Listen { .. } => failure.hint("choose another port, or `--live` for a free one"),
            BesideError::NotLoopback { .. } => {
                failure.hint("give a port alone; `pubmark serve` shows runs to other machines, with a token and TLS")
            }
            BesideError::Thread { .. } => failure,
        }
    }
}
