//! Why a broker cannot run.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::net::TlsError;

/// Why a broker could not be started, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Listening on the address failed.
    #[error("failed to listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A system call failed unexpectedly.
    #[error("failed to {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Writing the lying broker's journal failed.
    #[error("failed to write the journal `{path}`")]
    Journal {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// TLS cannot be offered.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
