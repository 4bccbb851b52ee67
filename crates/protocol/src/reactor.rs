//! Readiness and time for one thread: [`crate::epoll`] and an `eventfd`, nothing else.
//!
//! Sockets are registered once, edge-triggered, for reading and writing: a connection costs one `epoll_ctl` in its life. The
//! kernel reports "writable" only after a write would have blocked, so an idle registration costs nothing. The user must read
//! until a read is short ([`Ready::ended`]: until the end) and write until the socket would block, or continue later without a
//! further event.
//! Deadlines are timeouts in nanoseconds. They are as exact as the thread's sleeps: [`clock::make_sleeps_exact`].

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::clients::Waker;
use crate::clock;
use crate::epoll::{Epoll, Events, Interest};

/// Most events read from the kernel at a time.
const EVENTS_AT_A_TIME: usize = 512;
const WAKER_KEY: u64 = u64::MAX;

/// A socket that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The key it was registered with.
    pub key: u64,
    /// Reading will find bytes, the end of the stream, or an error.
    pub readable: bool,
    /// Writing can be tried again, or finds an error.
    pub writable: bool,
    /// The peer has ended the stream, or it is broken. This may come together with bytes and is reported once: read until the end.
    pub ended: bool,
}

/// Why a wait ended, apart from sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// When it ended, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The waker was used.
    pub woken: bool,
}

/// Readiness and timeouts of one thread.
#[derive(Debug)]
pub struct Reactor {
    epoll: Epoll,
    wake: Arc<OwnedFd>,
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
        // SAFETY: the call takes no pointers; its result is checked before it becomes an owned descriptor.
        let wake = unsafe { owned(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC))? };
        let now = clock::monotonic_ns();
        let reactor = Reactor {
            epoll,
            wake: Arc::new(wake),
            events: Events::with_room(EVENTS_AT_A_TIME),
            complete_wait_ns: now,
            quiet_at_ns: now,
            served_until_ns: now,
        };
        reactor.epoll.add(reactor.wake.as_raw_fd(), WAKER_KEY, Interest::ReadEdges)?;
        Ok(reactor)
    }

    /// Watches a socket until it is closed. `key` is repeated in [`Ready`]; the highest number is reserved.
    pub fn add(&self, socket: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        debug_assert!(key < WAKER_KEY);
        self.epoll.add(socket.as_raw_fd(), key, Interest::AllEdges)
    }

    /// Waits until a socket is ready, `until_ns` ([`clock::monotonic_ns`]) has passed, or the waker was used. A time in the
    /// past only polls; `None` waits without limit. It may also return early with nothing to report, and does so after
    /// [`clock::LONGEST_WAIT`]. `ready` is cleared first.
    pub fn wait(&mut self, until_ns: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<Wakeup> {
        ready.clear();
        let began_ns = clock::monotonic_ns();
        let length = |until_ns: u64| clock::machine_length(until_ns.saturating_sub(began_ns)).min(clock::LONGEST_WAIT);
        let timeout = until_ns.map(length);
        self.epoll.wait(&mut self.events, timeout).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        })?;
        self.quiet_at_ns = self.complete_wait_ns;
        if !self.events.is_full() {
            self.complete_wait_ns = began_ns;
        }
        let mut woken = false;
        for event in self.events.iter() {
            match event.key {
                WAKER_KEY => woken = true,
                key => ready.push(Ready {
                    key,
                    readable: event.is_readable(),
                    writable: event.has_room() || event.is_broken(),
                    ended: event.has_ended(),
                }),
            }
        }
        Ok(Wakeup { at_ns: clock::monotonic_ns(), woken })
    }

    /// While the events of a wait are handled: a time at which no message was waiting in any socket that had been read empty
    /// before. It is the begin of the previous wait: that wait reported what had arrived by then, and it was read.
    pub fn quiet_at_ns(&self) -> u64 {
        self.quiet_at_ns
    }

    /// More sockets were ready than the latest wait reported.
    pub fn has_more(&self) -> bool {
        self.events.is_full()
    }

    /// Every socket that earlier waits reported was read empty before the last wait began.
    pub fn note_all_read(&mut self) {
        self.served_until_ns = self.quiet_at_ns;
    }

    /// Everything that had arrived at any socket until then is handled, ns of `CLOCK_MONOTONIC`; set by [`Reactor::note_all_read`].
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
    fn a_wait_for_a_far_deadline_ends_early_and_computes_it_again() {
        let mut reactor = Reactor::new().unwrap();
        let waker = reactor.waker();
        // A wait that never ends would show nothing.
        std::thread::spawn(move || {
            std::thread::sleep(10 * clock::LONGEST_WAIT);
            waker.wake();
        });
        let mut ready = Vec::new();
        let until = clock::monotonic_ns() + 3_600_000_000_000;
        let awake = reactor.wait(Some(until), &mut ready).unwrap();
        assert!(awake.at_ns < until && ready.is_empty() && !awake.woken);
    }

    #[test]
    fn a_deadline_is_met_while_sockets_interrupt_the_wait() {
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
