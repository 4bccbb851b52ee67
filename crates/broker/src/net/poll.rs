//! Which sockets are ready: epoll, level-triggered.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::slab::Key;

/// Events of one wake-up at most; more wait for the next one.
const EVENTS: usize = 512;
/// Stands for the listener where a connection's key would be.
const LISTENER: u64 = u64::MAX;

/// Asks the kernel which sockets are ready.
#[derive(Debug)]
pub(crate) struct Poll {
    descriptor: OwnedFd,
}

/// What one wait found.
pub(crate) struct Events {
    list: Vec<libc::epoll_event>,
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Somebody wants to connect.
    Listener,
    /// A connection has something to read (or has ended), or room to write.
    Connection { key: Key, readable: bool, writable: bool },
}

impl Events {
    pub(crate) fn new() -> Events {
        Events { list: Vec::with_capacity(EVENTS) }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<Ready> {
        let event = self.list.get(index)?;
        if event.u64 == LISTENER {
            return Some(Ready::Listener);
        }
        let flags = event.events;
        // An error or a hang-up is found out by reading.
        let readable = flags & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR | libc::EPOLLRDHUP) as u32 != 0;
        let writable = flags & libc::EPOLLOUT as u32 != 0;
        Some(Ready::Connection { key: Key::from_bits(event.u64), readable, writable })
    }
}

impl Poll {
    pub(crate) fn open() -> io::Result<Poll> {
        // SAFETY: no pointers are passed; the descriptor is checked and owned from here on.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Poll { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    pub(crate) fn add_listener(&self, socket: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, libc::EPOLLIN, LISTENER)
    }

    pub(crate) fn add(&self, socket: RawFd, key: Key) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, libc::EPOLLIN, key.to_bits())
    }

    /// Waits for things to read, and for room to write where that is wanted.
    pub(crate) fn change(&self, socket: RawFd, key: Key, writable: bool) -> io::Result<()> {
        let flags = libc::EPOLLIN | if writable { libc::EPOLLOUT } else { 0 };
        self.control(libc::EPOLL_CTL_MOD, socket, flags, key.to_bits())
    }

    pub(crate) fn remove(&self, socket: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket, 0, 0)
    }

    fn control(&self, operation: libc::c_int, socket: RawFd, flags: libc::c_int, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: flags as u32, u64: data };
        // SAFETY: `event` is valid for the call; wrong descriptors are answered with an error.
        let result = unsafe { libc::epoll_ctl(self.descriptor.as_raw_fd(), operation, socket, &mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until a socket is ready or the time is over; a signal ends the wait too.
    pub(crate) fn wait(&self, events: &mut Events, timeout_ms: i32) -> io::Result<()> {
        events.list.clear();
        // SAFETY: the list has room for EVENTS entries.
        let found = unsafe {
            libc::epoll_wait(self.descriptor.as_raw_fd(), events.list.as_mut_ptr(), EVENTS as libc::c_int, timeout_ms)
        };
        if found < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        // SAFETY: the kernel has written this many entries.
        unsafe { events.list.set_len(found as usize) };
        Ok(())
    }

    /// The same with a time in nanoseconds, for timers that milliseconds are too coarse for.
    pub(crate) fn wait_for(&self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        let mut wanted = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        };
        // SAFETY: one valid entry, as its count says, and a valid time; no signal mask. Whatever it answers, the look that
        // follows finds what is ready.
        unsafe { libc::ppoll(&mut wanted, 1, &time, std::ptr::null()) };
        self.wait(events, 0)
    }
}
