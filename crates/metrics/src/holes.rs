//! A set of missing sequence numbers, stored as ranges.

use serde::{Deserialize, Serialize};

/// A range of sequence numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// First number.
    pub first: u32,
    /// Last number.
    pub last: u32,
}

impl Range {
    /// How many numbers are in the range.
    pub fn count(self) -> u64 {
        u64::from(self.last) - u64::from(self.first) + 1
    }
}

/// The effect of removing a number from a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Change in the number of ranges.
    pub change: isize,
    /// Missing numbers that are no longer in the set, because no further range may be added.
    pub given_up: u64,
}

/// Missing numbers as ascending, non-adjacent ranges.
#[derive(Clone, Debug, Default)]
pub struct Holes {
    ranges: Vec<Range>,
}

impl Holes {
    /// A set of these ranges; `None` unless they are ascending, non-adjacent, and below the number `below`.
    pub fn of(ranges: Vec<Range>, below: u32) -> Option<Holes> {
        let mut lowest = 1;
        for range in &ranges {
            if range.first < lowest || range.last < range.first || range.last >= below {
                return None;
            }
            // One more than the next number, so that the ranges are not adjacent.
            lowest = range.last.saturating_add(2);
        }
        Some(Holes { ranges })
    }

    /// Adds a range above all existing ones; adjacent ranges are joined. Returns by how many ranges the set grew.
    pub fn push(&mut self, range: Range) -> usize {
        debug_assert!(self.ranges.last().is_none_or(|last| last.last < range.first));
        match self.ranges.last_mut() {
            Some(last) if last.last.checked_add(1) == Some(range.first) => {
                last.last = range.last;
                0
            }
            _ => {
                self.ranges.push(range);
                1
            }
        }
    }

    /// Removes a number; `None` if it was not in the set. Removing a number from the middle of a range leaves two
    /// ranges. If no further range may be added (`may_split` is false), the shorter one is discarded.
    pub fn remove(&mut self, number: u32, may_split: bool) -> Option<Removed> {
        let index = self.ranges.partition_point(|range| range.last < number);
        let range = self.ranges.get(index).copied().filter(|range| range.first <= number)?;
        let removed = |change| Some(Removed { change, given_up: 0 });
        match (range.first == number, range.last == number) {
            (true, true) => {
                self.ranges.remove(index);
                removed(-1)
            }
            (true, false) => {
                self.ranges[index].first = number + 1;
                removed(0)
            }
            (false, true) => {
                self.ranges[index].last = number - 1;
                removed(0)
            }
            (false, false) => {
                let below = Range { first: range.first, last: number - 1 };
                let above = Range { first: number + 1, last: range.last };
                if may_split {
                    self.ranges[index] = below;
                    self.ranges.insert(index + 1, above);
                    return removed(1);
                }
                let (longer, shorter) = if below.count() < above.count() { (above, below) } else { (below, above) };
                self.ranges[index] = longer;
                Some(Removed { change: 0, given_up: shorter.count() })
            }
        }
    }

    /// Is the number in the set?
    pub fn contains(&self, number: u32) -> bool {
        let index = self.ranges.partition_point(|range| range.last < number);
        self.ranges.get(index).is_some_and(|range| range.first <= number)
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }
}
