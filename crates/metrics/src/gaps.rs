//! Sequence gaps: numbers of streams that had not arrived when a later one did. They are counted only when a gap opens
//! or a part of it arrives later, so a stream without gaps has no cost. RTP counts losses in the same way (RFC 3550
//! §6.4.1).

use std::ops::Range;

/// No gaps are counted for this stream.
const LEFT_OUT: u32 = u32::MAX;
/// No gaps are counted for this stream while its subscriber is absent.
const PAUSED: u32 = u32::MAX - 1;

/// Gaps of many streams.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Numbers that were overtaken by a later one of their stream, in total.
    pub opened: u64,
    /// Of these, numbers that arrived later.
    pub filled: u64,
    /// By stream, if some gaps are not counted: the number at which a gap is not counted, because the subscriber was
    /// absent before it; 0 if each gap counts. Empty if the gaps of all streams count.
    exempt: Vec<u32>,
}

impl Gaps {
    /// A stream expected `first`, and `count` numbers from `first` on are missing.
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

    /// Stops counting the gaps of some streams. `streams` is the number of all streams.
    pub(crate) fn leave_out(&mut self, of: Range<u32>, streams: usize) {
        self.set(of, streams, |_| LEFT_OUT);
    }

    /// The subscriber of some streams is absent from now on.
    pub(crate) fn pause(&mut self, of: Range<u32>, streams: usize) {
        self.set(of, streams, |_| PAUSED);
    }

    /// The subscriber is present again. Messages that were sent meanwhile may be missing before the number that each
    /// stream expects next.
    pub(crate) fn resume(&mut self, of: Range<u32>, streams: usize, next: impl Fn(u32) -> u32) {
        self.set(of, streams, next);
    }

    fn set(&mut self, of: Range<u32>, streams: usize, to: impl Fn(u32) -> u32) {
        // Few runs have absent subscribers; the other runs need no memory for this.
        self.exempt.resize(streams, 0);
        for stream in of {
            let exempt = &mut self.exempt[stream as usize];
            if *exempt != LEFT_OUT {
                *exempt = to(stream);
            }
        }
    }
}
