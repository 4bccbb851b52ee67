//! Waiting for packets or a time, whichever comes first, to the nanosecond.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use pubmark_protocol::clock;

/// Descriptors told of at once; the others follow with the next call.
const AT_ONCE: usize = 64;

/// Waits for descriptors.
#[derive(Debug)]
pub struct Waiter {
    epoll: OwnedFd,
    /// Does the kernel have `epoll_pwait2` (Linux 5.11), which takes nanoseconds?
    exact: bool,
    events: Vec<libc::epoll_event>,
}

impl Waiter {
    /// Waits for nothing yet.
    pub fn new() -> io::Result<Waiter> {
        // SAFETY: no pointers are passed; the result is checked.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Waiter { epoll, exact: true, events: vec![libc::epoll_event { events: 0, u64: 0 }; AT_ONCE] })
    }

    /// Waits for `descriptor` to be readable, too; it is called `token`. It must not be closed before the waiter.
    pub fn add(&mut self, descriptor: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: the event is live; both descriptors are open.
        let result = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor.as_raw_fd(), &raw mut event)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until a descriptor is readable or `until_ns` has come, for ever without it; puts what is readable into
    /// `ready`.
    pub fn wait(&mut self, until_ns: Option<u64>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let timeout = until_ns.map(|until| {
            let left = until.saturating_sub(clock::monotonic_ns());
            libc::timespec {
                tv_sec: (left / 1_000_000_000) as libc::time_t,
                tv_nsec: (left % 1_000_000_000) as libc::c_long,
            }
        });
        let result = if self.exact { self.wait_exactly(timeout) } else { self.wait_in_two_steps(timeout) };
        match result {
            Ok(count) => ready.extend(self.events[..count].iter().map(|event| event.u64)),
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) && self.exact => self.exact = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn wait_exactly(&mut self, timeout: Option<libc::timespec>) -> io::Result<usize> {
        let timeout = timeout.as_ref().map_or(std::ptr::null(), |timeout| &raw const *timeout);
        // SAFETY: the events and the time are live, the count is that of the events, no signal mask is given.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                AT_ONCE as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// `ppoll` takes nanoseconds on every kernel; the epoll descriptor is readable when one of its own is.
    fn wait_in_two_steps(&mut self, timeout: Option<libc::timespec>) -> io::Result<usize> {
        let mut poll = libc::pollfd { fd: self.epoll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = timeout.as_ref().map_or(std::ptr::null(), |timeout| &raw const *timeout);
        // SAFETY: one live pollfd and a live time; no signal mask.
        if unsafe { libc::ppoll(&raw mut poll, 1, timeout, std::ptr::null()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the events are live and as many as said.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), AT_ONCE as libc::c_int, 0) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_time_and_a_descriptor_end_the_wait_on_new_and_old_kernels() {
        for exact in [true, false] {
            let mut waiter = Waiter { exact, ..Waiter::new().unwrap() };
            let (reader, mut writer) = io::pipe().unwrap();
            waiter.add(reader.as_fd(), 7).unwrap();
            let mut ready = Vec::new();
            let until = clock::monotonic_ns() + 3_000_000;
            // The first call may return early because it found out that the kernel is old.
            while clock::monotonic_ns() < until {
                waiter.wait(Some(until), &mut ready).unwrap();
                assert!(ready.is_empty());
            }
            writer.write_all(b"x").unwrap();
            waiter.wait(None, &mut ready).unwrap();
            assert_eq!(ready, [7]);
        }
    }
}
