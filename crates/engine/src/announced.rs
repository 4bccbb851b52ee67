//! How far each publisher of this process has sent, so that a delivery of a message that was never sent is recognised
//! when it arrives.
//!
//! A sender announces a sequence number before it passes the message to the adapter. A receiver therefore always finds
//! the message announced, whichever thread or library carried it. Publishers of other processes are unknown here; their
//! streams are checked when the message accounting is completed ([`crate::books`]).

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// By publisher of the fleet: the sequence number after the highest that was announced; 0 if the publisher runs in
/// another process.
#[derive(Debug)]
pub struct Announced(Box<[AtomicU32]>);

impl Announced {
    /// For a fleet of this many publishers, none of which is known to run in this process yet.
    pub fn new(publishers: usize) -> Announced {
        Announced((0..publishers).map(|_| AtomicU32::new(0)).collect())
    }

    /// The publisher runs in this process and has announced nothing yet.
    pub fn begin(&self, publisher: u32) {
        self.store(publisher, 1);
    }

    /// The publisher is about to pass this message to the adapter.
    #[inline]
    pub fn announce(&self, publisher: u32, sequence: u32) {
        self.store(publisher, sequence.saturating_add(1));
    }

    #[inline]
    fn store(&self, publisher: u32, next: u32) {
        if let Some(slot) = self.0.get(publisher as usize) {
            slot.store(next, Release);
        }
    }

    /// First sequence number that the publisher has not announced; `None` if that is unknown in this process.
    #[inline]
    pub fn next(&self, publisher: u32) -> Option<u32> {
        match self.0.get(publisher as usize)?.load(Acquire) {
            0 => None,
            next => Some(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_publishers_of_this_process_are_known() {
        let announced = Announced::new(2);
        announced.begin(1);
        assert_eq!((announced.next(0), announced.next(1), announced.next(2)), (None, Some(1), None));
        announced.announce(1, 7);
        assert_eq!(announced.next(1), Some(8));
        announced.announce(2, 7);
    }
}
