//! Readiness and time for one thread: [`crate::epoll`], an absolute `timerfd` and an `eventfd`, nothing else.
//!
//! Sockets are registered once, edge-triggered, for reading and writing: a connection costs one `epoll_ctl` in its life.
//! The kernel reports "writable" only after a write found the socket full, so an idle registration costs nothing. Who
//! uses it must read until a read is short ([`Ready::ended`]: until the end) and write until the socket is full, or come
//! back without being asked.
//! Deadlines go through the `timerfd`, never through epoll's timeout, which rounds to milliseconds or adds timer slack.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::clients::Waker;
use crate::clock;
use crate::epoll::{Epoll, Events, Interest};

/// Events taken from the kernel at a time.
const EVENTS_AT_A_TIME: usize = 512;
const TIMER_KEY: u64 = u64::MAX;
const WAKER_KEY: u64 = u64::MAX - 1;

/// A socket that can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The key it was registered with.
    pub key: u64,
    /// Reading will find bytes, the end of the stream, or an error.
    pub readable: bool,
    /// Writing can be tried again, or finds an error.
    pub writable: bool,
    /// The peer has ended the stream, or it is broken. This may come with bytes and is said once: read until the end.
    pub ended: bool,
}

/// Why a wait ended, apart from sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awake {
    /// When it ended, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The waker was used.
    pub woken: bool,
}

/// What one thread waits with.
#[derive(Debug)]
pub struct Reactor {
    epoll: Epoll,
    timer: OwnedFd,
    wake: Arc<OwnedFd>,
    /// What the timer stands at; 0 while it was never set.
    armed_ns: u64,
    events: Events,
    /// When the last wait began that reported every ready socket.
    complete_wait_ns: u64,
    /// See [`Reactor::quiet_at_ns`].
    quiet_at_ns: u64,
    /// See [`Reactor::served_until_ns`].
    served_until_ns: u64,
}

impl Reactor {
    /// A reactor with no sockets. Fails where the process has no descriptors left.
    pub fn new() -> io::Result<Reactor> {
        let epoll = Epoll::new()?;
        // SAFETY: the two calls take no pointers; each result is checked before it becomes an owned descriptor.
        let timer =
            unsafe { owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC))? };
        // SAFETY: as above.
        let wake = unsafe { owned(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC))? };
        let now = clock::monotonic_ns();
        let reactor = Reactor {
            epoll,
            timer,
            wake: Arc::new(wake),
            armed_ns: 0,
            events: Events::with_room(EVENTS_AT_A_TIME),
            complete_wait_ns: now,
            quiet_at_ns: now,
            served_until_ns: now,
        };
        reactor.epoll.add(reactor.timer.as_raw_fd(), TIMER_KEY, Interest::ReadEdges)?;
        reactor.epoll.add(reactor.wake.as_raw_fd(), WAKER_KEY, Interest::ReadEdges)?;
        Ok(reactor)
    }

    /// Watches a socket until it is closed. `key` comes back in [`Ready`]; the two highest numbers are taken.
    pub fn add(&self, socket: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        debug_assert!(key < WAKER_KEY);
        self.epoll.add(socket.as_raw_fd(), key, Interest::AllEdges)
    }

    /// Waits until a socket is ready, `until_ns` ([`clock::monotonic_ns`]) has passed, or the waker was used. A time in the
    /// past only looks; `None` waits without end. It may also end early with nothing to report. `ready` is cleared first.
    pub fn wait(&mut self, until_ns: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<Awake> {
        ready.clear();
        let began_ns = clock::monotonic_ns();
        let timeout = match until_ns {
            Some(until_ns) if until_ns <= began_ns => Some(Duration::ZERO),
            Some(until_ns) => {
                self.arm(until_ns)?;
                None
            }
            None => None,
        };
        self.collect(timeout)?;
        self.quiet_at_ns = self.complete_wait_ns;
        if !self.events.is_full() {
            self.complete_wait_ns = began_ns;
        }
        let mut woken = false;
        for event in self.events.iter() {
            match event.key {
                // Under a run's clock the kernel's may be there first by what has changed since: then it is set again.
                TIMER_KEY => self.armed_ns = 0,
                WAKER_KEY => woken = true,
                key => ready.push(Ready {
                    key,
                    readable: event.is_readable(),
                    writable: event.has_room() || event.is_broken(),
                    ended: event.has_ended(),
                }),
            }
        }
        Ok(Awake { at_ns: clock::monotonic_ns(), woken })
    }

    /// While the events of a wait are handled: a time at which no message was waiting in any socket that had been read
    /// empty before. It is the begin of the wait before: what had come by then was reported by that wait, and read.
    pub fn quiet_at_ns(&self) -> u64 {
        self.quiet_at_ns
    }

    /// Every socket that earlier waits reported was read empty before the last wait began.
    pub fn note_all_read(&mut self) {
        self.served_until_ns = self.quiet_at_ns;
    }

    /// What had come to any socket until then is handled, ns of `CLOCK_MONOTONIC`, by what [`Reactor::note_all_read`] says.
    pub fn served_until_ns(&self) -> u64 {
        self.served_until_ns
    }

    /// A handle that ends [`Reactor::wait`] from another thread.
    pub fn waker(&self) -> Waker {
        let wake = Arc::clone(&self.wake);
        Waker::new(move || {
            let one = 1u64;
            // SAFETY: writes eight bytes from a live u64. The only failure is a counter near 2^64, and then the reader
            // has been woken anyway.
            unsafe { libc::write(wake.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
        })
    }

    /// Sets the timer, unless it stands there already and its event is still to come.
    fn arm(&mut self, until_ns: u64) -> io::Result<()> {
        if self.armed_ns == until_ns {
            return Ok(());
        }
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let wake_ns = clock::wake_ns(until_ns);
        let at = libc::timespec {
            tv_sec: (wake_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (wake_ns % 1_000_000_000) as libc::c_long,
        };
        let setting = libc::itimerspec { it_interval: zero, it_value: at };
        // SAFETY: `setting` lives through the call; the old value is not asked for.
        let result = unsafe {
            libc::timerfd_settime(self.timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &setting, std::ptr::null_mut())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        self.armed_ns = until_ns;
        Ok(())
    }

    fn collect(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        loop {
            match self.epoll.wait(&mut self.events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// # Safety
/// `descriptor` must be the fresh result of a call that makes a descriptor, or negative.
unsafe fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller just made it and owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_deadline_ends_the_wait_and_never_early() {
        let mut reactor = Reactor::new().unwrap();
        let mut ready = Vec::new();
        for _ in 0..20 {
            let until = clock::monotonic_ns() + 300_000;
            let awake = reactor.wait(Some(until), &mut ready).unwrap();
            assert!(awake.at_ns >= until && ready.is_empty() && !awake.woken);
        }
    }

    #[test]
    fn a_deadline_that_stays_is_kept_while_sockets_interrupt_it() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut reactor = Reactor::new().unwrap();
        reactor.add(ours.as_fd(), 7).unwrap();
        let mut ready = Vec::new();
        let until = clock::monotonic_ns() + 20_000_000;
        reactor.wait(Some(until), &mut ready).unwrap();
        assert_eq!(ready, [Ready { key: 7, readable: false, writable: true, ended: false }]);
        theirs.write_all(b"x").unwrap();
        reactor.wait(Some(until), &mut ready).unwrap();
        assert!(ready[0].readable);
        let awake = reactor.wait(Some(until), &mut ready).unwrap();
        assert!(awake.at_ns >= until && ready.is_empty());
    }

    #[test]
    fn a_waker_ends_a_wait_without_end_even_when_used_before() {
        let mut reactor = Reactor::new().unwrap();
        let mut ready = Vec::new();
        let waker = reactor.waker();
        waker.wake();
        assert!(reactor.wait(None, &mut ready).unwrap().woken);
        let thread = std::thread::spawn(move || waker.wake());
        assert!(reactor.wait(None, &mut ready).unwrap().woken);
        thread.join().unwrap();
    }

    #[test]
    fn quiet_is_the_begin_of_the_wait_before() {
        let mut reactor = Reactor::new().unwrap();
        let mut ready = Vec::new();
        let before = clock::monotonic_ns();
        reactor.wait(Some(0), &mut ready).unwrap();
        let between = clock::monotonic_ns();
        reactor.wait(Some(0), &mut ready).unwrap();
        assert!((before..=between).contains(&reactor.quiet_at_ns()));
    }
}
