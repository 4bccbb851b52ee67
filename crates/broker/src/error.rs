//! Why a broker cannot run.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::net::TlsError;

/// Why a broker could not be started, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The address cannot be listened on.
    #[error("failed to listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A system call failed that should not.
    #[error("failed to {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The lying broker's journal cannot be written.
    #[error("failed to write the journal `{path}`")]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// TLS cannot be offered.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
