//! The message accounting of streams: which messages of which publisher a subscription has received, exactly, in
//! bounded memory.
//!
//! Each stream has a window of the newest 1,024 sequence numbers, one bit each, and the missing ranges below it. A
//! number below the window that is in a range is a late arrival; one that is not is a duplicate. Memory: 136 B per
//! stream and 8 B per range.

use std::collections::HashMap;
use std::ops::Range as Span;

use serde::{Deserialize, Serialize};

use crate::carried::{CarriedLedger, Malformed, demand};
use crate::gaps::Gaps;
use crate::holes::{Holes, Range};

/// Number of sequence numbers in the window.
pub const WINDOW: u32 = 1_024;
const WORDS: usize = (WINDOW / 64) as usize;

/// Largest number of ranges of all streams of a ledger together, before its counts become approximate (8 MB).
pub const RANGE_LIMIT: usize = 1_000_000;

/// The kind of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A first copy, newer than all before.
    InOrder,
    /// A first copy after a newer one.
    OutOfOrder,
    /// A duplicate.
    Duplicate,
}

/// One bit for each of the newest 1,024 numbers of a stream: bit `n % 1024` represents number `n`. Two cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Window([u64; WORDS]);

impl Window {
    #[inline]
    fn bit(&self, number: u32) -> bool {
        let slot = number % WINDOW;
        self.0[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    fn set(&mut self, number: u32, to: bool) {
        let slot = number % WINDOW;
        let word = &mut self.0[(slot / 64) as usize];
        let mask = 1u64 << (slot % 64);
        *word = if to { *word | mask } else { *word & !mask };
    }
}

/// The position of a stream.
#[derive(Clone, Copy)]
struct Head {
    /// Highest number seen + 1; numbers start at 1.
    next: u32,
    /// The window has bits for numbers below this one. All numbers from here to `next` arrived in order, and their
    /// bits, which are ones, have not been written yet. A stream without gaps therefore never accesses its window,
    /// which is rarely in a cache.
    synced: u32,
}

/// Lowest number in the window of a stream whose highest number is `next - 1`; at least 1.
fn window_start(next: u32) -> u32 {
    next.saturating_sub(WINDOW).max(1)
}

/// The message accounting of many streams, numbered consecutively by the caller.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "CarriedLedger", into = "CarriedLedger")]
pub struct Ledger {
    heads: Vec<Head>,
    windows: Vec<Window>,
    holes: HashMap<u32, Holes>,
    ranges: usize,
    range_limit: usize,
    /// By stream: how many missing numbers were discarded because of the limit. They still count as missing, but are
    /// not known individually.
    forgotten: HashMap<u32, u64>,
    /// Not serialised: gaps are for the progress of a run, the other fields for its result.
    gaps: Gaps,
}

impl Ledger {
    /// A ledger for `streams` streams without messages.
    pub fn new(streams: usize) -> Ledger {
        Ledger::with_range_limit(streams, RANGE_LIMIT)
    }

    /// The same with another limit of ranges.
    pub fn with_range_limit(streams: usize, range_limit: usize) -> Ledger {
        Ledger {
            heads: vec![Head { next: 1, synced: 1 }; streams],
            windows: vec![Window([0; WORDS]); streams],
            holes: HashMap::new(),
            ranges: 0,
            range_limit,
            forgotten: HashMap::new(),
            gaps: Gaps::default(),
        }
    }

    /// Gaps so far.
    pub fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// Stops counting gaps of these streams.
    pub fn leave_gaps_out(&mut self, streams: Span<u32>) {
        let all = self.heads.len();
        self.gaps.leave_out(streams, all);
    }

    /// The subscriber of these streams is absent from now on, or present again. Messages that are sent during an
    /// absence leave a gap that is not a loss.
    pub fn note_presence(&mut self, streams: Span<u32>, is_present: bool) {
        let all = self.heads.len();
        match is_present {
            true => self.gaps.resume(streams, all, |stream| self.heads[stream as usize].next),
            false => self.gaps.pause(streams, all),
        }
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.heads.len()
    }

    /// Bytes of memory per stream, without holes.
    pub const BYTES_PER_STREAM: usize = size_of::<Window>() + size_of::<Head>();

    /// Records the arrival of message `number` (≥ 1) on `stream`.
    #[inline]
    pub fn enter(&mut self, stream: u32, number: u32) -> Arrival {
        let head = &mut self.heads[stream as usize];
        if number == head.next {
            // The common case: the number is the next one, and the number that leaves the window had arrived.
            let leaves_none = number <= WINDOW || number - WINDOW >= head.synced;
            if leaves_none || self.windows[stream as usize].bit(number) {
                head.next = head.next.saturating_add(1);
                return Arrival::InOrder;
            }
        }
        self.record_unusual(stream, number)
    }

    fn record_unusual(&mut self, stream: u32, number: u32) -> Arrival {
        self.sync(stream);
        let next = self.heads[stream as usize].next;
        if number >= next {
            self.advance(stream, number);
            return Arrival::InOrder;
        }
        if number >= window_start(next) {
            let window = &mut self.windows[stream as usize];
            if window.bit(number) {
                return Arrival::Duplicate;
            }
            window.set(number, true);
            self.gaps.fill(stream);
            return Arrival::OutOfOrder;
        }
        let may_split = self.ranges < self.range_limit;
        match self.holes.get_mut(&stream).and_then(|holes| holes.remove(number, may_split)) {
            Some(removed) => {
                self.ranges = self.ranges.wrapping_add_signed(removed.change);
                self.forget(stream, removed.given_up);
                self.gaps.fill(stream);
                Arrival::OutOfOrder
            }
            None => Arrival::Duplicate,
        }
    }

    /// Writes the bits of the numbers that arrived in order since the window was last accessed.
    fn sync(&mut self, stream: u32) {
        let head = &mut self.heads[stream as usize];
        let window = &mut self.windows[stream as usize];
        (head.synced.max(window_start(head.next))..head.next).for_each(|number| window.set(number, true));
        head.synced = head.next;
    }

    /// Moves the window so that `number` is the newest in it; missing numbers that leave it become holes.
    fn advance(&mut self, stream: u32, number: u32) {
        let first = self.heads[stream as usize].next;
        if number > first {
            self.gaps.open(stream, first, number - first);
        }
        if number - first < WINDOW {
            for step in first..=number {
                let left_missing = step > WINDOW && !self.windows[stream as usize].bit(step);
                if left_missing {
                    self.miss(stream, Range { first: step - WINDOW, last: step - WINDOW });
                }
                self.windows[stream as usize].set(step, step == number);
            }
        } else {
            for gone in window_start(first)..first {
                if !self.windows[stream as usize].bit(gone) {
                    self.miss(stream, Range { first: gone, last: gone });
                }
            }
            // No number from `first` up to the new window has arrived.
            let last = number - WINDOW;
            if last >= first {
                self.miss(stream, Range { first, last });
            }
            self.windows[stream as usize] = Window([0; WORDS]);
            self.windows[stream as usize].set(number, true);
        }
        let next = number.saturating_add(1);
        self.heads[stream as usize] = Head { next, synced: next };
    }

    /// Stores missing numbers that leave the window.
    fn miss(&mut self, stream: u32, range: Range) {
        if self.ranges < self.range_limit {
            self.ranges += self.holes.entry(stream).or_default().push(range);
        } else {
            self.forget(stream, range.count());
        }
    }

    /// Counts missing numbers that can no longer be known individually.
    fn forget(&mut self, stream: u32, count: u64) {
        if count > 0 {
            *self.forgotten.entry(stream).or_default() += count;
        }
    }

    /// Was the limit of ranges exceeded? Late arrivals below the window were then counted as duplicates.
    pub fn is_approximate(&self) -> bool {
        !self.forgotten.is_empty()
    }

    /// Number of missing numbers of a stream that [`Ledger::missing`] cannot return, because the limit of ranges was
    /// exceeded.
    pub fn forgotten(&self, stream: u32) -> u64 {
        self.forgotten.get(&stream).copied().unwrap_or(0)
    }

    /// Did message `number` arrive?
    pub fn has(&self, stream: u32, number: u32) -> bool {
        let Head { next, synced } = self.heads[stream as usize];
        if number >= next || number == 0 {
            false
        } else if number >= synced {
            true
        } else if number >= window_start(next) {
            self.windows[stream as usize].bit(number)
        } else {
            !self.holes.get(&stream).is_some_and(|holes| holes.contains(number))
        }
    }

    /// The number after the highest that arrived.
    pub fn next_number(&self, stream: u32) -> u32 {
        self.heads[stream as usize].next
    }

    /// Number of first copies with a number above `number`.
    pub fn arrived_above(&self, stream: u32, number: u32) -> u64 {
        let newest = self.heads[stream as usize].next - 1;
        if newest <= number {
            return 0;
        }
        let missing = self.missing(stream, number.saturating_add(1), newest);
        u64::from(newest - number) - missing.iter().map(|range| range.count()).sum::<u64>()
    }

    /// The missing numbers from `first` to `last`, as ascending, non-adjacent ranges.
    pub fn missing(&self, stream: u32, first: u32, last: u32) -> Vec<Range> {
        let mut found = Holes::default();
        let mut add = |low: u32, high: u32| {
            let (low, high) = (low.max(first), high.min(last));
            if low <= high {
                found.push(Range { first: low, last: high });
            }
        };
        if let Some(holes) = self.holes.get(&stream) {
            holes.ranges().iter().for_each(|range| add(range.first, range.last));
        }
        let Head { next, synced } = self.heads[stream as usize];
        for number in window_start(next)..synced {
            if !self.windows[stream as usize].bit(number) {
                add(number, number);
            }
        }
        add(next, last);
        found.ranges().to_vec()
    }
}

impl From<Ledger> for CarriedLedger {
    fn from(ledger: Ledger) -> CarriedLedger {
        let windows = (0u32..).zip(&ledger.windows).filter(|(_, window)| window.0 != [0; WORDS]);
        CarriedLedger {
            heads: ledger.heads.iter().map(|head| (head.next, head.synced)).collect(),
            windows: windows.map(|(stream, window)| (stream, window.0)).collect(),
            holes: ledger.holes.iter().map(|(stream, holes)| (*stream, holes.ranges().to_vec())).collect(),
            range_limit: ledger.range_limit as u64,
            forgotten: ledger.forgotten,
        }
    }
}

impl TryFrom<CarriedLedger> for Ledger {
    type Error = Malformed;

    fn try_from(carried: CarriedLedger) -> Result<Ledger, Malformed> {
        let limit = usize::try_from(carried.range_limit).unwrap_or(usize::MAX);
        let mut ledger = Ledger::with_range_limit(0, limit);
        for (next, synced) in carried.heads {
            demand((1..=next).contains(&synced), "a stream that stands nowhere")?;
            ledger.heads.push(Head { next, synced });
        }
        ledger.windows = vec![Window([0; WORDS]); ledger.heads.len()];
        for (stream, window) in carried.windows {
            let place = ledger.windows.get_mut(stream as usize).ok_or(Malformed("a window of no stream"))?;
            *place = Window(window);
        }
        for (stream, ranges) in carried.holes {
            let head = ledger.heads.get(stream as usize).ok_or(Malformed("holes of no stream"))?;
            let below = window_start(head.next);
            let holes = Holes::of(ranges, below).ok_or(Malformed("holes that overlap or lie in the window"))?;
            ledger.ranges += holes.ranges().len();
            demand(ledger.holes.insert(stream, holes).is_none(), "holes of one stream twice")?;
        }
        ledger.forgotten = carried.forgotten;
        Ok(ledger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn total(ranges: &[Range]) -> u64 {
        ranges.iter().map(|range| range.count()).sum()
    }

    #[test]
    fn a_copy_sixty_thousand_messages_later_is_a_duplicate() {
        let mut ledger = Ledger::new(1);
        (1..=60_001).for_each(|number| assert_eq!(ledger.enter(0, number), Arrival::InOrder));
        assert_eq!(ledger.enter(0, 1), Arrival::Duplicate);
        assert!(ledger.missing(0, 1, 60_001).is_empty());
    }

    #[test]
    fn a_message_sixty_thousand_messages_late_is_not() {
        let mut ledger = Ledger::new(1);
        (2..=60_001).for_each(|number| assert_eq!(ledger.enter(0, number), Arrival::InOrder));
        assert_eq!(ledger.missing(0, 1, 60_001), [Range { first: 1, last: 1 }]);
        assert_eq!(ledger.enter(0, 1), Arrival::OutOfOrder);
        assert_eq!(ledger.enter(0, 1), Arrival::Duplicate);
        assert!(ledger.missing(0, 1, 60_001).is_empty());
    }

    #[test]
    fn a_gap_wider_than_the_window_is_one_range() {
        let mut ledger = Ledger::new(2);
        ledger.enter(1, 5);
        ledger.enter(1, 5_000_000);
        let missing = ledger.missing(1, 1, 5_000_001);
        assert_eq!(total(&missing), 5_000_001 - 2);
        assert_eq!(missing.len(), 3, "1-4, 6-4999999, 5000001");
        assert!(ledger.ranges <= 3);
    }

    #[test]
    fn past_the_limit_of_ranges_the_books_are_approximate_and_still_add_up() {
        let mut ledger = Ledger::with_range_limit(1, 10);
        (1..=2_000).filter(|number| number % 2 == 0).for_each(|number| {
            ledger.enter(0, number);
        });
        assert!(ledger.is_approximate());
        assert_eq!(total(&ledger.missing(0, 1, 2_000)) + ledger.forgotten(0), 1_000);
        assert_eq!(ledger.ranges, 10, "the limit is reached and not passed");
        let carried = Ledger::try_from(CarriedLedger::from(ledger.clone())).unwrap();
        assert_eq!((carried.forgotten(0), carried.is_approximate()), (ledger.forgotten(0), true), "carried to another");
    }

    #[test]
    fn a_late_arrival_that_splits_a_range_keeps_to_the_limit() {
        let mut ledger = Ledger::with_range_limit(1, 1);
        ledger.enter(0, 1);
        ledger.enter(0, 5_000);
        assert_eq!((ledger.ranges, ledger.is_approximate()), (1, false));
        for (number, others) in [(1_000, 1), (2_000, 2), (3_000, 3)] {
            assert_eq!(ledger.enter(0, number), Arrival::OutOfOrder);
            assert_eq!(ledger.ranges, 1, "{number}");
            assert!(ledger.is_approximate());
            assert_eq!(total(&ledger.missing(0, 1, 5_000)) + ledger.forgotten(0), 4_998 - others);
        }
    }

    /// Number of missing numbers in open gaps of one stream.
    fn open(ledger: &Ledger) -> u64 {
        ledger.gaps().opened - ledger.gaps().filled
    }

    #[test]
    fn a_gap_counts_until_it_is_filled_however_late() {
        let mut ledger = Ledger::new(1);
        [1, 2, 5, 6].into_iter().for_each(|number| {
            ledger.enter(0, number);
        });
        assert_eq!(open(&ledger), 2);
        ledger.enter(0, 4);
        ledger.enter(0, 4);
        assert_eq!(open(&ledger), 1, "a further copy fills nothing");
        ledger.enter(0, 5_000);
        ledger.enter(0, 3);
        assert_eq!(open(&ledger), 4_993, "3 came below the window");
    }

    #[test]
    fn messages_sent_into_an_absence_are_no_gap() {
        let mut ledger = Ledger::new(3);
        (0..3).for_each(|stream| assert_eq!(ledger.enter(stream, 1), Arrival::InOrder));
        ledger.note_presence(0..2, false);
        ledger.enter(0, 3);
        assert_eq!(open(&ledger), 0, "under way when the subscriber left");
        ledger.note_presence(0..2, true);
        [(0, 9), (1, 2), (2, 4)].into_iter().for_each(|(stream, number)| {
            ledger.enter(stream, number);
        });
        assert_eq!(open(&ledger), 2, "4 to 8 were sent meanwhile; 2 and 3 of the third stream are lost");
        [(0, 11), (1, 4)].into_iter().for_each(|(stream, number)| {
            ledger.enter(stream, number);
        });
        assert_eq!(open(&ledger), 4, "later gaps count again");
    }

    #[test]
    fn streams_that_are_left_out_stay_so() {
        let mut ledger = Ledger::new(2);
        ledger.leave_gaps_out(1..2);
        ledger.note_presence(0..2, false);
        ledger.note_presence(0..2, true);
        [(1, 1), (1, 5), (1, 3)].into_iter().for_each(|(stream, number)| {
            ledger.enter(stream, number);
        });
        assert_eq!((ledger.gaps().opened, ledger.gaps().filled), (0, 0));
    }

    /// A ledger and a set of everything seen, for comparison.
    struct Pair {
        ledger: Ledger,
        seen: HashSet<u32>,
        newest: u32,
    }

    impl Pair {
        fn enter(&mut self, number: u32) {
            let expected = match (self.seen.insert(number), number > self.newest) {
                (true, true) => Arrival::InOrder,
                (true, false) => Arrival::OutOfOrder,
                (false, _) => Arrival::Duplicate,
            };
            self.newest = self.newest.max(number);
            assert_eq!(self.ledger.enter(0, number), expected, "number {number}");
        }
    }

    proptest! {
        #[test]
        fn keeps_to_its_limit_of_ranges_and_adds_up(
            limit in 0usize..6,
            numbers in proptest::collection::vec(1u32..6_000, 1..200)
        ) {
            let mut ledger = Ledger::with_range_limit(1, limit);
            let firsts = numbers.iter().filter(|number| ledger.enter(0, **number) != Arrival::Duplicate).count() as u64;
            prop_assert!(ledger.ranges <= limit);
            prop_assert_eq!(total(&ledger.missing(0, 1, 6_000)) + ledger.forgotten(0), 6_000 - firsts);
        }

        #[test]
        fn the_ledger_agrees_with_a_set_of_all_numbers(
            steps in proptest::collection::vec((0u32..6, 0u32..3_000), 1..300)
        ) {
            // The numbers increase, with sequences, jumps, repeats and returns, so that all three cases (new, window,
            // holes) occur.
            let mut pair = Pair { ledger: Ledger::new(1), seen: HashSet::new(), newest: 0 };
            for (kind, amount) in steps {
                let top = pair.newest;
                match kind {
                    0 => pair.enter(top + 1),
                    1 => pair.enter(top + 1 + amount % 5),
                    2 => pair.enter(top + 1 + if amount % 50 == 0 { amount } else { 0 }),
                    3 => (top + 1..=top + amount).for_each(|number| pair.enter(number)),
                    _ => pair.enter(top.saturating_sub(amount).max(1)),
                }
            }
            prop_assert_eq!(open(&pair.ledger), u64::from(pair.newest) - pair.seen.len() as u64);
            let last = pair.newest + 3;
            let Pair { ledger, seen, .. } = pair;
            prop_assert_eq!(total(&ledger.missing(0, 1, last)), u64::from(last) - seen.len() as u64);
            let carried = Ledger::try_from(CarriedLedger::from(ledger.clone())).unwrap_or_else(|error| panic!("{error}"));
            prop_assert_eq!(carried.missing(0, 1, last), ledger.missing(0, 1, last));
            prop_assert_eq!(carried.ranges, ledger.ranges);
            for number in 1..=last {
                prop_assert_eq!(ledger.has(0, number), seen.contains(&number));
                prop_assert_eq!(carried.has(0, number), seen.contains(&number));
            }
        }
    }
}
