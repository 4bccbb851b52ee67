//! The process between emulated links and a system that runs already, as the run that it serves sees it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_links::relay::{self, Relay, RelayError};

use crate::child_process;
use crate::error::{ErrorKind, RunError};

/// Time to end in order, once nobody asks any more.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// A relay on the network that this process had when it was started.
#[derive(Debug)]
pub struct RelayProcess {
    relay: Option<Relay>,
    child: Child,
}

impl RelayProcess {
    /// Starts one from the host's program, the running one if `None`.
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
        // Made first, so that the child is ended whatever follows.
        let mut process = RelayProcess { relay: None, child };
        process.relay = Some(Relay::new(ours).map_err(|error| failed(&error))?);
        Ok(process)
    }

    /// What it is asked through.
    ///
    /// # Errors
    /// It was never reached.
    pub fn relay(&self) -> Result<&Relay, RelayError> {
        self.relay.as_ref().ok_or_else(|| RelayError::Gone(std::io::ErrorKind::NotConnected.into()))
    }

    /// The address of a host as its network finds it.
    ///
    /// # Errors
    /// There is none.
    pub fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, RunError> {
        self.relay().and_then(|relay| relay.resolve(host, port)).map_err(|error| match error {
            RelayError::Refused(why) => RunError::input(why).hint("check the name, or write the address"),
            gone => RunError::from_error(ErrorKind::Internal, &gone),
        })
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        // It ends when its channel does.
        self.relay = None;
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < ENDS_WITHIN {
            std::thread::sleep(LOOK);
        }
        // Both fail where it has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: Option<&Path>, channel: OwnedFd) -> std::io::Result<Child> {
    let program = program.map_or_else(std::env::current_exe, |program| Ok(program.to_owned()))?;
    let mut command = Command::new(program);
    command.arg("relay").stdin(Stdio::from(channel)).stdout(Stdio::null());
    // An interruption from the terminal is for the run, which ends it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    child_process::end_with_parent(&mut command);
    command.spawn()
}
