//! Whether the processes of a system still run, for callers that have no access to the system itself.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::cgroup::CostSource;

/// Watches the first process of each broker through a descriptor of it (pidfd), which no other process can take over.
#[derive(Debug, Default)]
pub struct EndWatch {
    processes: Vec<OwnedFd>,
    has_ended: bool,
}

impl EndWatch {
    /// Of brokers that run now.
    pub fn new(places: &[CostSource]) -> EndWatch {
        // What cannot be watched (a kernel before 5.3, a process that another machine counts) tells nothing here; the end of the
        // run finds out who has ended.
        EndWatch { processes: places.iter().filter_map(|place| open(place.pid)).collect(), has_ended: false }
    }

    /// Has one of them ended? Costs one system call.
    pub fn has_ended(&mut self) -> bool {
        if !self.has_ended {
            self.has_ended = self.processes.iter().any(is_readable);
        }
        self.has_ended
    }
}

fn open(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a plain system call; what it gives is a descriptor of ours alone.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as i32))
    }
}

/// A process's descriptor is readable once the process has ended.
fn is_readable(process: &OwnedFd) -> bool {
    let mut look = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, as said; a time of 0 waits for nothing.
    unsafe { libc::poll(&mut look, 1, 0) == 1 && look.revents & libc::POLLIN != 0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_end_of_any_broker_is_seen() {
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
