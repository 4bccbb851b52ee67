//! Errors of links.

use std::io;

/// Why a link cannot be created or maintained.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The process may not make namespaces or cannot open `/dev/net/tun`; one sentence states what is missing.
    #[error("emulated links cannot be made here: {missing}")]
    Impossible {
        /// What is missing.
        missing: String,
    },
    /// The kernel's emulation does not support a condition of a link.
    #[error("the kernel's netem cannot emulate link `{link}`: {why}")]
    NotByKernel {
        /// The link's name.
        link: String,
        /// What it cannot do, and what would be possible.
        why: &'static str,
    },
    /// The kernel refused something.
    #[error("failed to {what}")]
    Refused {
        /// What was tried, on what.
        what: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A thread could not go back to the namespace that it came from; everything it would open now would be on the
    /// wrong side of a link. The run must stop and the thread end.
    #[error(
        "failed to bring a thread back from the namespace of `{namespace}`: its sockets would be on the wrong network"
    )]
    Stranded {
        /// Where it is stuck.
        namespace: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A number that the plan of addresses, the interfaces or the network cannot have.
    #[error("{what}: {asked} was asked for, {least} to {most} can be")]
    OutOfRange {
        /// Of what.
        what: &'static str,
        /// The number.
        asked: usize,
        /// The least that can be.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The emulator's thread ended; its last error is the reason.
    #[error("the emulator of the links has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: String,
    },
}

impl LinkError {
    /// The kernel's last error, from trying `what`.
    pub(crate) fn last(what: impl Into<String>) -> LinkError {
        LinkError::refused(what, io::Error::last_os_error())
    }

    /// The kernel's refusal of `what`.
    pub(crate) fn refused(what: impl Into<String>, source: io::Error) -> LinkError {
        LinkError::Refused { what: what.into(), source }
    }

    /// `asked` if it is within `least` to `most`.
    pub(crate) fn within(what: &'static str, asked: usize, least: usize, most: usize) -> Result<usize, LinkError> {
        if (least..=most).contains(&asked) {
            Ok(asked)
        } else {
            Err(LinkError::OutOfRange { what, asked, least, most })
        }
    }
}
