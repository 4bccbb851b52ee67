//! Whether the processes of a system still run, for callers that have no access to the system itself.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::cgroup::CostSource;

/// Watches the first process of each broker through a pidfd, which never refers to another process.
#[derive(Debug, Default)]
pub struct EndWatch {
    processes: Vec<OwnedFd>,
    has_ended: bool,
}

impl EndWatch {
    /// Creates a watch of running brokers.
    pub fn new(places: &[CostSource]) -> EndWatch {
        // A process that cannot be watched (a kernel before 5.3, a process of another machine) is ignored here. The end
        // of the run detects which processes have ended.
        EndWatch { processes: places.iter().filter_map(|place| open(place.pid)).collect(), has_ended: false }
    }

    /// Has one of the processes ended? Costs one system call.
    pub fn has_ended(&mut self) -> bool {
        if !self.has_ended {
            self.has_ended = self.processes.iter().any(is_readable);
        }
        self.has_ended
    }
}

fn open(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a plain system call; its result is a new descriptor that only we own.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as i32))
    }
}

/// A process's descriptor is readable once the process has ended.
fn is_readable(process: &OwnedFd) -> bool {
    let mut look = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, as stated; a timeout of 0 does not wait.
    unsafe { libc::poll(&mut look, 1, 0) == 1 && look.revents & libc::POLLIN != 0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_end_of_any_broker_is_detected() {
        let start = || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (mut one, mut other) = (start(), start());
        let places = [one.id(), other.id()].map(|pid| CostSource { pid, cgroup: None });
        let mut watch = EndWatch::new(&places);
        assert!(!watch.has_ended());
        other.kill().unwrap();
        let began = Instant::now();
        while !watch.has_ended() {
            assert!(began.elapsed() < Duration::from_secs(10), "the end was not seen");
        }
        other.wait().unwrap();
        one.kill().unwrap();
        one.wait().unwrap();
        assert!(!EndWatch::new(&places).has_ended(), "nothing is known of processes that were never seen");
    }
}
