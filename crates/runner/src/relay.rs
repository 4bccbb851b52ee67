//! The process between emulated links and a system that already runs, on the side of the run.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_links::relay::{self, Relay, RelayError};

use crate::child_process;
use crate::error::{ErrorKind, RunError};

/// Time to end in order, once nothing requires the process any more.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// A relay in the network that this process had when the relay was started.
#[derive(Debug)]
pub struct RelayProcess {
    relay: Option<Relay>,
    child: Child,
}

impl RelayProcess {
    /// Starts a relay with the host's program, or with the running program if it is `None`.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(program: Option<&Path>) -> Result<RelayProcess, RunError> {
        let failed = |error: &std::io::Error| {
            RunError::from_error(ErrorKind::Internal, error)
                .during("failed to start the relay between links and endpoint")
        };
        let [ours, theirs] = relay::pair().map_err(|error| failed(&error))?;
        let child = spawn(program, theirs).map_err(|error| failed(&error))?;
        // Created first, so that the child is ended if a later step fails.
        let mut process = RelayProcess { relay: None, child };
        process.relay = Some(Relay::new(ours));
        Ok(process)
    }

    /// The client with which the relay is controlled.
    ///
    /// # Errors
    /// The relay was never reached.
    pub fn relay(&self) -> Result<&Relay, RelayError> {
        self.relay.as_ref().ok_or_else(|| RelayError::Disconnected(std::io::ErrorKind::NotConnected.into()))
    }

    /// Address of a host, resolved in the relay's network.
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, RunError> {
        self.relay().and_then(|relay| relay.resolve(host, port)).map_err(|error| match error {
            RelayError::Refused(why) => RunError::input(why).hint("check the name, or write the address"),
            error => failed(&error),
        })
    }
}

/// The error of a request to a relay before the measurement.
pub fn failed(error: &RelayError) -> RunError {
    match error {
        RelayError::Disconnected(_) | RelayError::Silent(_) | RelayError::Lost(_) => {
            RunError::from_error(ErrorKind::NodeLost, error).hint("run again: each run starts a relay of its own")
        }
        RelayError::Refused(_) | RelayError::Sockets(_) => RunError::from_error(ErrorKind::Internal, error),
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        // The process ends when its channel is closed.
        self.relay = None;
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < ENDS_WITHIN {
            std::thread::sleep(LOOK);
        }
        // Both fail if the process has ended, which is the normal case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: Option<&Path>, channel: OwnedFd) -> std::io::Result<Child> {
    let program = program.map_or_else(std::env::current_exe, |program| Ok(program.to_owned()))?;
    let mut command = Command::new(program);
    command.arg("relay").stdin(Stdio::from(channel)).stdout(Stdio::null());
    // A Ctrl-C in the terminal is for the run, which ends the relay.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    child_process::end_with_parent(&mut command);
    command.spawn()
}
