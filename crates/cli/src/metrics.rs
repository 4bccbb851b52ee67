//! `--metrics`: metrics for Prometheus while a command is active.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use pubmark_runner::stream::Listener;

use crate::failure::Failure;
use crate::printer::Printer;

/// Option for the address of the metrics.
#[derive(Clone, Debug, Default, Args)]
pub struct Metrics {
    /// Serve `GET /metrics` at ADDRESS while the command goes on, for Prometheus: a port on 127.0.0.1 such as `9464`,
    /// or IP:PORT, which everyone who reaches it can read (docs/how-to/scrape-metrics.md)
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Output", hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
}

/// Parses a port or an address with a port: `9464`, `127.0.0.1:9464`.
#[cfg_attr(not(feature = "serve"), allow(dead_code))]
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "no port, nor an IP address with one: try `9464` or `127.0.0.1:9464`".to_owned())
}

/// No value exists: a build without `serve` cannot be scraped.
#[cfg(not(feature = "serve"))]
pub enum Scraped {}

impl Metrics {
    /// Whether a metrics endpoint was requested.
    pub fn is_wanted(&self) -> bool {
        #[cfg(feature = "serve")]
        return self.metrics.is_some();
        #[cfg(not(feature = "serve"))]
        return false;
    }
}

#[cfg(not(feature = "serve"))]
impl Metrics {
    /// Does nothing.
    pub fn bind(&self) -> Result<Option<Scraped>, Failure> {
        Ok(None)
    }
}

#[cfg(not(feature = "serve"))]
impl Scraped {
    /// Never called.
    pub fn listener(&self) -> Listener {
        match *self {}
    }

    /// Never called.
    #[cfg(feature = "cluster")]
    pub fn show_node(&self, _: &str, _: &pubmark_cluster::node::NodeCounts) {
        match *self {}
    }

    /// Never called.
    pub fn start(&mut self, _: &Printer) -> Result<(), Failure> {
        match *self {}
    }
}

#[cfg(feature = "serve")]
pub use with_serve::Scraped;

#[cfg(feature = "serve")]
mod with_serve {
    use std::sync::{Mutex, PoisonError};

    use pubmark_serve::beside::BesideError;
    use pubmark_serve::metrics::{Exposed, MetricsServer, RunValues};

    use super::{Failure, Listener, Metrics, Printer};
    use crate::exit_code::ExitCode;

    /// The metrics endpoint; it ends when this is dropped.
    pub struct Scraped(MetricsServer);

    impl Metrics {
        /// Binds the address, before anything else is done.
        pub fn bind(&self) -> Result<Option<Scraped>, Failure> {
            self.metrics.map(|address| MetricsServer::bind(address).map(Scraped).map_err(failed)).transpose()
        }
    }

    impl Scraped {
        /// The listener that receives the events of a run.
        pub fn listener(&self) -> Listener {
            let (shows, values) = (self.0.shows(), Mutex::new(RunValues::default()));
            Box::new(move |event| {
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                values.add(event);
                shows(Exposed { run: Some(values.clone()), queue: None });
            })
        }

        /// Updates the counts of a node's clients.
        #[cfg(feature = "cluster")]
        pub fn show_node(&self, name: &str, counts: &pubmark_cluster::node::NodeCounts) {
            let began = pubmark_record::time::UtcTime::from_system_time(counts.began).rfc3339();
            let run = RunValues::of_node(name, began, &counts.totals, &counts.latency);
            self.0.shows()(Exposed { run: Some(run), queue: None });
        }

        /// Serves the metrics from now on, and prints the address.
        pub fn start(&mut self, printer: &Printer) -> Result<(), Failure> {
            self.0.start().map_err(failed)?;
            printer.note(&format!("metrics at http://{}/metrics", self.0.address()));
            Ok(())
        }
    }

    fn failed(error: BesideError) -> Failure {
        let failure = Failure::from_error(ExitCode::Usage, &error).during("metrics cannot be scraped");
        match error {
            BesideError::Listen { .. } => failure.hint("choose another port, or `--metrics 0` for a free one"),
            BesideError::NotLoopback { .. } | BesideError::Thread { .. } => failure,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        assert_eq!(address("9464").unwrap().to_string(), "127.0.0.1:9464");
        assert_eq!(address("0.0.0.0:9464").unwrap().to_string(), "0.0.0.0:9464");
        assert_eq!(address("[::1]:9464").unwrap().to_string(), "[::1]:9464");
        assert!(["", ":9464", "localhost", "70000"].iter().all(|text| address(text).is_err()));
    }
}
