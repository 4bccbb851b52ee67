//! Usage of a whole machine, as its node_exporter reports it, or as this machine's kernel does: for a system on a
//! machine that runs nothing else of pubmark.
//!
//! [`Scraper`] sends one request and returns a [`Snapshot`]; [`HostWatch`] sends a request every few seconds from a
//! separate thread and adds up. Only plain HTTP is supported: an exporter with TLS needs a forwarder.

mod own;
mod snapshot;
mod watch;

use std::time::Duration;

use ureq::Agent;

pub use own::interface_with;
pub use snapshot::Snapshot;
pub use watch::{HostReadings, HostWatch};

/// Longest wait for a response: name look-up, connect, and the whole text.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest response that is read, bytes. An exporter with all its collectors sends about 0.1 MB on a small machine.
const LARGEST_ANSWER: u64 = 8 << 20;
/// Default path of exporters.
const USUAL_PATH: &str = "/metrics";
/// The requested collectors: only the necessary ones, to limit the work of the machine under test.
const COLLECTORS: &str = "collect[]=cpu&collect[]=meminfo&collect[]=netdev";

/// A node_exporter could not be read, or its response is not that of a node_exporter.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// Not the address of an exporter.
    #[error("`{url}` is not the address of a node_exporter: {reason}")]
    Url {
        /// The URL as written, without password.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// No response.
    #[error("failed to read `{url}`")]
    NoResponse {
        /// The URL, without password.
        url: String,
        /// The reason.
        source: Box<ureq::Error>,
    },
    /// A response without metrics of the machine.
    #[error("`{url}` answered, but not as a node_exporter: there is no `node_cpu_seconds_total` in it")]
    NoMetrics {
        /// The URL, without password.
        url: String,
    },
    /// The kernel of this machine does not report its usage.
    #[error("failed to read what this machine does")]
    Own(#[from] procfs::ProcError),
    /// The thread for requests could not be started.
    #[error("failed to start a thread that reads `{url}`")]
    Thread {
        /// The URL, without password.
        url: String,
        /// The reason.
        source: std::io::Error,
    },
}

/// Sends requests to one exporter.
#[derive(Debug)]
pub struct Scraper {
    agent: Agent,
    /// The URL that is requested, including the log-in.
    query_url: String,
    shown: String,
}

impl Scraper {
    /// Creates a scraper for an exporter at `http://[user:password@]host:port[/path[?query]]`. The scheme may be left
    /// out if there is no log-in; the path is `/metrics` unless given. Without a query, only the needed collectors are
    /// requested. Nothing is sent yet.
    pub fn new(url: &str) -> Result<Scraper, ScrapeError> {
        let shown = without_log_in(url);
        let wrong = |reason| ScrapeError::Url { url: shown.clone(), reason };
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err(wrong("only plain http:// is spoken")),
            Some(_) => return Err(wrong("it begins with http://")),
            None => url,
        };
        if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong("it holds a space"));
        }
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if !url.contains("://") && authority.contains('@') {
            // Command lines are recorded, and a log-in is recognised by the scheme before it.
            return Err(wrong("a log-in needs http:// before it"));
        }
        if authority.rsplit('@').next().is_none_or(|host| host.is_empty() || host.starts_with(':')) {
            return Err(wrong("there is no host in it"));
        }
        let (path, query) = path.split_once('?').unwrap_or((path, COLLECTORS));
        let path = if matches!(path, "" | "/") { USUAL_PATH } else { path };
        let agent = Agent::new_with_config(
            Agent::config_builder()
                .timeout_global(Some(REPORT_TIMEOUT))
                .max_redirects(0)
                // A proxy of the environment is not used for a machine under test.
                .proxy(None)
                .build(),
        );
        Ok(Scraper { agent, query_url: format!("http://{authority}{path}?{query}"), shown })
    }

    /// The URL of the exporter, without password.
    pub fn url(&self) -> &str {
        &self.shown
    }

    /// Sends one request. Returns or fails within 2 s; a response above 8 MiB is an error.
    pub fn read(&self) -> Result<Snapshot, ScrapeError> {
        let failed = |source| ScrapeError::NoResponse { url: self.shown.clone(), source: Box::new(source) };
        let mut answer = self.agent.get(&self.query_url).call().map_err(failed)?;
        let text = answer.body_mut().with_config().limit(LARGEST_ANSWER).read_to_string().map_err(failed)?;
        let snapshot = Snapshot::parse(&text);
        if snapshot.cpu_seconds.is_empty() {
            return Err(ScrapeError::NoMetrics { url: self.shown.clone() });
        }
        Ok(snapshot)
    }
}

/// A URL without its log-in, for display.
fn without_log_in(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("http", url), |(scheme, rest)| (scheme, rest));
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let path = path.split('?').next().unwrap_or(path);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_and_its_password_never_shown() {
        let scraper = Scraper::new("http://ann:secret@broker:9100").unwrap();
        assert_eq!(scraper.url(), "http://broker:9100");
        assert_eq!(
            scraper.query_url,
            "http://ann:secret@broker:9100/metrics?collect[]=cpu&collect[]=meminfo&collect[]=netdev"
        );
        assert!(!format!("{}", Scraper::new("https://ann:secret@broker").unwrap_err()).contains("secret"));
        for (written, query_url) in [
            ("broker:9100", "http://broker:9100/metrics?"),
            ("[::1]:9100/", "http://[::1]:9100/metrics?"),
            ("http://broker:9100/node/metrics", "http://broker:9100/node/metrics?"),
        ] {
            assert!(Scraper::new(written).unwrap().query_url.starts_with(query_url), "{written}");
        }
        assert_eq!(Scraper::new("http://a:1/m?x=1").unwrap().query_url, "http://a:1/m?x=1");
        for wrong in
            ["", "http://", "http://:9100", "https://broker:9100", "ftp://broker", "a b:9100", "http://x@/", "x:y@z:1"]
        {
            assert!(matches!(Scraper::new(wrong), Err(ScrapeError::Url { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_missing_listener_is_an_error_that_names_the_address() {
        // A port that was free a moment ago, and is below the range for outgoing connections.
        let port = crate::ports::free(1).unwrap()[0];
        let scraper = Scraper::new(&format!("http://ann:secret@127.0.0.1:{port}")).unwrap();
        let error = scraper.read().unwrap_err();
        assert_eq!(error.to_string(), format!("failed to read `http://127.0.0.1:{port}`"));
    }
}
