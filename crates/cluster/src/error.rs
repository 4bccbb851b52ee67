//! Errors between a coordinator and its nodes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A refused node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Address of the node.
    pub address: SocketAddr,
    /// The node's name, if it was received.
    pub name: Option<String>,
    /// The reason, in words.
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
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A file of the credentials cannot be read or written.
    #[error("failed to {verb} {}", path.display())]
    File {
        /// The operation, `read` or `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of the credentials has wrong content.
    #[error("{} is of no use: {why}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Fewer nodes joined than were required.
    #[error("{} of {wanted} {what} joined within {waited_s} s{}", came.len(), list(came))]
    Missing {
        /// Required number.
        wanted: usize,
        /// Kind of nodes, such as nodes or observers.
        what: &'static str,
        /// Names of those that joined.
        came: Vec<String>,
        /// Those that were refused.
        refused: Vec<Refusal>,
        /// Length of the wait, s.
        waited_s: u64,
    },
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
    /// A node disconnected.
    #[error("node `{name}` was lost: {why}")]
    Lost {
        /// The node's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// A node could not start its worker.
    #[error("node `{name}` could not start a worker: {why}")]
    Worker {
        /// The node's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// Clients on a node cannot listen at the address that the node has for them.
    #[error("clients on node `{name}` cannot be reached: {why}")]
    Address {
        /// The node's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// The coordinator refused this node.
    #[error("the coordinator at {address} refused this node: {why}")]
    Refused {
        /// Address of the coordinator.
        address: String,
        /// The kind of objection.
        objection: Objection,
        /// The reason that it sent.
        why: String,
    },
    /// There is no coordinator at the address, or it is not trusted.
    #[error("failed to reach a coordinator at {address}: {why}")]
    Unreachable {
        /// The addresses that were tried.
        address: String,
        /// The reason.
        why: String,
    },
    /// The operating system did not provide a resource.
    #[error("failed to {doing}")]
    System {
        /// The operation.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// An error's text and those of its causes, the innermost last; each text once.
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
    /// Its token belongs to another cluster.
    Token,
    /// Its version of pubmark, or of the control protocol, differs.
    Version,
    /// Its name is in use.
    Name,
    /// Its certificate.
    Certificate,
    /// The data in its first message.
    Introduction,
}
