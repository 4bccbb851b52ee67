//! What can go wrong between a coordinator and its nodes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A refused node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where from.
    pub address: SocketAddr,
    /// Its name, if it came to say it.
    pub name: Option<String>,
    /// Why, in words.
    pub why: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` at {}: {}", self.address, self.why),
            None => write!(f, "{}: {}", self.address, self.why),
        }
    }
}

/// An error of the control plane.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The port cannot be opened.
    #[error("failed to listen on {address} for nodes")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A file of the credentials cannot be read or written.
    #[error("failed to {verb} {}", path.display())]
    File {
        /// read, or write.
        verb: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the credentials is not what it should be.
    #[error("{} is of no use: {why}", path.display())]
    Credentials {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Fewer nodes came than were wanted.
    #[error("{} of {wanted} {what} joined within {waited_s} s{}", came.len(), list(came))]
    Missing {
        /// How many were wanted.
        wanted: usize,
        /// Nodes or observers.
        what: &'static str,
        /// Names of those that came.
        came: Vec<String>,
        /// Those that were refused.
        refused: Vec<Refusal>,
        /// How long was waited, s.
        waited_s: u64,
    },
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
    /// A node is not there any more.
    #[error("node `{name}` was lost: {why}")]
    Lost {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// A node could not start its worker.
    #[error("node `{name}` could not start a worker: {why}")]
    Worker {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// Clients on a node cannot listen at the address that is meant to be its own.
    #[error("clients on node `{name}` cannot be reached: {why}")]
    Address {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// The coordinator does not take this node.
    #[error("the coordinator at {address} refused this node: {why}")]
    Refused {
        /// Of the coordinator.
        address: String,
        /// What it objects to.
        objection: Objection,
        /// The reason that it sent.
        why: String,
    },
    /// There is no such coordinator, or it cannot be believed.
    #[error("failed to reach a coordinator at {address}: {why}")]
    Unreachable {
        /// What was tried.
        address: String,
        /// Why not.
        why: String,
    },
    /// The operating system does not give what is needed.
    #[error("failed to {doing}")]
    System {
        /// What for.
        doing: &'static str,
        /// Why not.
        source: io::Error,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// An error's own words and those of what caused it, the innermost last; each once.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let words = deeper.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = deeper.source();
    }
    text
}

/// What a coordinator objects to in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// Its token is another cluster's.
    Token,
    /// Its version, or that of its control protocol, is another.
    Version,
    /// Its name is taken.
    Name,
    /// Its certificate.
    Certificate,
    /// What it says of itself.
    Introduction,
}
