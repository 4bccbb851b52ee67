//! epoll: which descriptors are ready, with timeouts in nanoseconds.
//!
//! Clients use it through [`crate::reactor::Reactor`], edge-triggered; the built-in brokers and the link emulator use it
//! level-triggered.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The readiness that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Level-triggered: reported by each wait while there is something to read.
    Read,
    /// The same, and while it is writable.
    ReadWrite,
    /// Level-triggered: reported while it is writable, and when it is broken.
    Write,
    /// Edge-triggered: reported when data arrived.
    ReadEdges,
    /// The same, and when it is writable again after a write would have blocked, or when the peer ended the stream.
    AllEdges,
}

impl Interest {
    fn flags(self) -> libc::c_int {
        match self {
            Interest::Read => libc::EPOLLIN,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT,
            Interest::Write => libc::EPOLLOUT,
            Interest::ReadEdges => libc::EPOLLIN | libc::EPOLLET,
            Interest::AllEdges => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        }
    }
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key under which it is watched.
    pub key: u64,
    flags: libc::c_int,
}

impl Event {
    /// A read returns bytes, the end, or an error.
    pub fn is_readable(self) -> bool {
        self.flags & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0
    }

    /// It is writable.
    pub fn has_room(self) -> bool {
        self.flags & libc::EPOLLOUT != 0
    }

    /// It is broken: there is an error, or both directions have ended.
    pub fn is_broken(self) -> bool {
        self.flags & (libc::EPOLLHUP | libc::EPOLLERR) != 0
    }

    /// The peer has ended the stream, or it is broken.
    pub fn has_ended(self) -> bool {
        self.flags & libc::EPOLLRDHUP != 0 || self.is_broken()
    }
}

/// Results of waits, limited by the capacity; others follow with the next wait.
#[derive(Debug)]
pub struct Events {
    list: Vec<libc::epoll_event>,
    count: usize,
}

impl Events {
    /// Capacity for N.
    pub fn with_room(most: usize) -> Events {
        Events { list: vec![libc::epoll_event { events: 0, u64: 0 }; most], count: 0 }
    }

    /// How many the last wait found.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Did the last wait fill the capacity? Then there may be more.
    pub fn is_full(&self) -> bool {
        self.count == self.list.len()
    }

    /// One of those that the last wait found.
    pub fn get(&self, index: usize) -> Option<Event> {
        self.list[..self.count].get(index).map(|event| Event { key: event.u64, flags: event.events as libc::c_int })
    }

    /// All that the last wait found.
    pub fn iter(&self) -> impl Iterator<Item = Event> {
        self.list[..self.count].iter().map(|event| Event { key: event.u64, flags: event.events as libc::c_int })
    }
}

/// Watches descriptors. A closed one is no longer watched.
#[derive(Debug)]
pub struct Epoll {
    descriptor: OwnedFd,
    /// The kernel may have `epoll_pwait2` (Linux 5.11), whose timeout is in nanoseconds.
    exact: AtomicBool,
}

impl Epoll {
    /// Watches nothing.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers are passed; the result is checked before it becomes an owned descriptor.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Epoll { descriptor, exact: AtomicBool::new(true) })
    }

    /// Watches a descriptor, under this key.
    ///
    /// # Errors
    /// It cannot be watched, or is watched already.
    pub fn add(&self, descriptor: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, interest.flags(), key)
    }

    /// Watches it for something else.
    ///
    /// # Errors
    /// It is not watched.
    pub fn change(&self, descriptor: RawFd, key: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, interest.flags(), key)
    }

    /// Watches it no more.
    ///
    /// # Errors
    /// It is not watched.
    pub fn remove(&self, descriptor: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor, 0, 0)
    }

    fn control(&self, operation: libc::c_int, descriptor: RawFd, flags: libc::c_int, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: flags as u32, u64: key };
        // SAFETY: `event` lives through the call; an invalid descriptor only causes an error.
        let result = unsafe { libc::epoll_ctl(self.descriptor.as_raw_fd(), operation, descriptor, &raw mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until a descriptor is ready or the time is over; without a time until one is ready. A time of zero returns at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] if a signal ended the wait; there are no events then.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.count = 0;
        let count = match timeout {
            None => self.collect(events, -1),
            Some(Duration::ZERO) => self.collect(events, 0),
            Some(timeout) => self.wait_for(events, timeout),
        };
        events.count = count?;
        Ok(())
    }

    fn wait_for(&self, events: &mut Events, timeout: Duration) -> io::Result<usize> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        };
        if self.exact.load(Relaxed) {
            match self.wait_exactly(events, &timeout) {
                // Of an old kernel, or of a container's filter of system calls that does not know this one.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.exact.store(false, Relaxed);
                }
                result => return result,
            }
        }
        self.wait_in_two_steps(events, &timeout)
    }

    fn wait_exactly(&self, events: &mut Events, timeout: &libc::timespec) -> io::Result<usize> {
        // SAFETY: the events and the time live through the call, the count is that of the events, no signal mask is given.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.descriptor.as_raw_fd(),
                events.list.as_mut_ptr(),
                events.list.len() as libc::c_int,
                &raw const *timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// `ppoll` takes nanoseconds on every kernel; the epoll descriptor is readable when one of its own is ready.
    fn wait_in_two_steps(&self, events: &mut Events, timeout: &libc::timespec) -> io::Result<usize> {
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry, as its count says, and a live time; no signal mask.
        if unsafe { libc::ppoll(&raw mut poll, 1, &raw const *timeout, std::ptr::null()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        self.collect(events, 0)
    }

    fn collect(&self, events: &mut Events, timeout_ms: libc::c_int) -> io::Result<usize> {
        // SAFETY: the kernel writes at most as many entries as the list has.
        let count = unsafe {
            libc::epoll_wait(
                self.descriptor.as_raw_fd(),
                events.list.as_mut_ptr(),
                events.list.len() as libc::c_int,
                timeout_ms,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_time_and_a_descriptor_end_the_wait_on_new_and_old_kernels() {
        for exact in [true, false] {
            let epoll = Epoll { exact: AtomicBool::new(exact), ..Epoll::new().unwrap() };
            let (reader, mut writer) = io::pipe().unwrap();
            epoll.add(reader.as_raw_fd(), 7, Interest::Read).unwrap();
            let mut events = Events::with_room(4);
            let (began, time) = (Instant::now(), Duration::from_millis(3));
            epoll.wait(&mut events, Some(time)).unwrap();
            assert!(began.elapsed() >= time && events.count() == 0);
            writer.write_all(b"x").unwrap();
            // Each time, as nothing was read.
            for timeout in [None, Some(time), Some(Duration::ZERO)] {
                epoll.wait(&mut events, timeout).unwrap();
                let event = events.get(0).unwrap();
                assert!(event.key == 7 && event.is_readable() && !event.has_ended() && events.count() == 1);
            }
        }
    }

    /// Makes `epoll_pwait2` fail in this thread, as the filter of a container does; false if this machine has no such filters.
    fn forbid_exact_waits(error: libc::c_int) -> bool {
        let step = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let mut steps = [
            // The number of the call is the first word of what the filter sees.
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_epoll_pwait2 as u32, 1),
            step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32, 0),
            step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        let (one, zero, mode): (libc::c_ulong, libc::c_ulong, libc::c_ulong) = (1, 0, libc::SECCOMP_MODE_FILTER.into());
        // SAFETY: numbers, and a program of live steps, which the kernel copies.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) == 0
        }
    }

    #[test]
    fn a_wait_goes_on_without_the_call_that_a_kernel_lacks_or_a_container_forbids() {
        for error in [libc::ENOSYS, libc::EPERM] {
            // A filter stays on its thread.
            let thread = std::thread::spawn(move || {
                let epoll = Epoll::new().unwrap();
                let time = Duration::from_millis(3);
                if !forbid_exact_waits(error) {
                    return pubmark_testing::skip("this machine has no filters of system calls");
                }
                for _ in 0..2 {
                    let (began, mut events) = (Instant::now(), Events::with_room(1));
                    epoll.wait(&mut events, Some(time)).unwrap();
                    assert!(began.elapsed() >= time && events.count() == 0);
                }
                assert!(!epoll.exact.load(Relaxed), "the call is not tried again");
            });
            thread.join().unwrap();
        }
    }

    #[test]
    fn edges_are_reported_once() {
        let epoll = Epoll::new().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        epoll.add(reader.as_raw_fd(), 1, Interest::ReadEdges).unwrap();
        let mut events = Events::with_room(1);
        writer.write_all(b"x").unwrap();
        epoll.wait(&mut events, None).unwrap();
        assert!(events.is_full());
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.count(), 0);
        drop(writer);
        epoll.wait(&mut events, None).unwrap();
        assert!(events.get(0).unwrap().has_ended());
    }
}
