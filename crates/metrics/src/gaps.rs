//! Sequence gaps: numbers of streams that had not arrived when a later one did. As they are counted only when a gap opens or a part of it
//! arrives after all, a stream without gaps pays nothing for it. RTP counts losses in the same way (RFC 3550 §6.4.1).

use std::ops::Range;

/// Nothing is counted of this stream.
const LEFT_OUT: u32 = u32::MAX;
/// Nothing is counted of this stream while its subscriber is absent.
const PAUSED: u32 = u32::MAX - 1;

/// Gaps of many streams.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Numbers that a later one of their stream preceded, ever.
    pub opened: u64,
    /// Of these, numbers that arrived after all.
    pub filled: u64,
    /// By stream, where some are not counted: the number at which a gap is none, as the subscriber was absent before it; 0 where each counts.
    exempt: Vec<u32>,
}

impl Gaps {
    /// A stream expected `first`, and `count` numbers from there on are missing.
    pub(crate) fn open(&mut self, stream: u32, first: u32, count: u32) {
        let counts = match self.exempt.get(stream as usize) {
            Some(&(LEFT_OUT | PAUSED)) => false,
            Some(&exempt) => exempt != first,
            None => true,
        };
        self.opened += if counts { u64::from(count) } else { 0 };
    }

    /// A missing number of a stream arrived.
    pub(crate) fn fill(&mut self, stream: u32) {
        let is_left_out = self.exempt.get(stream as usize) == Some(&LEFT_OUT);
        self.filled += u64::from(!is_left_out);
    }

    /// Counts nothing of some streams from now on. `streams` is how many there are in all.
    pub(crate) fn leave_out(&mut self, of: Range<u32>, streams: usize) {
        self.set(of, streams, |_| LEFT_OUT);
    }

    /// The subscriber of some streams is absent from now on.
    pub(crate) fn pause(&mut self, of: Range<u32>, streams: usize) {
        self.set(of, streams, |_| PAUSED);
    }

    /// It is there again: what was sent meanwhile may be missing before the number that each stream expects next.
    pub(crate) fn resume(&mut self, of: Range<u32>, streams: usize, next: impl Fn(u32) -> u32) {
        self.set(of, streams, next);
    }

    fn set(&mut self, of: Range<u32>, streams: usize, to: impl Fn(u32) -> u32) {
        // Few runs have subscribers that are absent: the others need no memory for it.
        self.exempt.resize(streams, 0);
        for stream in of {
            let exempt = &mut self.exempt[stream as usize];
            if *exempt != LEFT_OUT {
                *exempt = to(stream);
            }
        }
    }
}
