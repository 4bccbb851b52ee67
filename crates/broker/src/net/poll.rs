//! Which sockets of a broker are ready: [`Epoll`], level-triggered.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use pubmark_protocol::epoll::{Epoll, Interest};

use super::slab::Key;

/// Most events of one wake-up; more wait for the next one.
const EVENTS: usize = 512;
/// Key of the listener, which no connection has.
const LISTENER: u64 = u64::MAX;

/// Reports which sockets are ready.
#[derive(Debug)]
pub(crate) struct Poll(Epoll);

/// The result of one wait.
pub(crate) struct Events(pubmark_protocol::epoll::Events);

/// A socket that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// A connection waits to be accepted.
    Listener,
    /// A connection is readable (or has ended), or writable.
    Connection { key: Key, readable: bool, writable: bool },
}

impl Events {
    pub(crate) fn new() -> Events {
        Events(pubmark_protocol::epoll::Events::with_room(EVENTS))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.count()
    }

    pub(crate) fn get(&self, index: usize) -> Option<Ready> {
        let event = self.0.get(index)?;
        if event.key == LISTENER {
            return Some(Ready::Listener);
        }
        // A read reports an error or a hang-up.
        let (readable, writable) = (event.is_readable(), event.has_room());
        Some(Ready::Connection { key: Key::from_bits(event.key), readable, writable })
    }
}

impl Poll {
    pub(crate) fn open() -> io::Result<Poll> {
        Epoll::new().map(Poll)
    }

    pub(crate) fn add_listener(&self, socket: RawFd) -> io::Result<()> {
        self.0.add(socket, LISTENER, Interest::Read)
    }

    pub(crate) fn add(&self, socket: RawFd, key: Key) -> io::Result<()> {
        self.0.add(socket, key.to_bits(), Interest::Read)
    }

    /// Polls for something else from now on.
    pub(crate) fn change(&self, socket: RawFd, key: Key, interest: Interest) -> io::Result<()> {
        self.0.change(socket, key.to_bits(), interest)
    }

    pub(crate) fn remove(&self, socket: RawFd) -> io::Result<()> {
        self.0.remove(socket)
    }

    /// Waits until a socket is ready or the time is over; a signal ends the wait too.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        match self.0.wait(&mut events.0, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }
}
