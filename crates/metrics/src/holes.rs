//! A set of missing sequence numbers, kept as ranges.

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
    /// Numbers in the range.
    pub fn count(self) -> u64 {
        u64::from(self.last) - u64::from(self.first) + 1
    }
}

/// What taking a number out did to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Change in the number of ranges.
    pub change: isize,
    /// Missing numbers that the set no longer knows, because there was no room for another range.
    pub given_up: u64,
}

/// Missing numbers as ascending ranges that do not touch.
#[derive(Clone, Debug, Default)]
pub struct Holes {
    ranges: Vec<Range>,
}

impl Holes {
    /// Ranges that are ascending, do not touch, and lie below a number; otherwise `None`.
    pub fn of(ranges: Vec<Range>, below: u32) -> Option<Holes> {
        let mut lowest = 1;
        for range in &ranges {
            if range.first < lowest || range.last < range.first || range.last >= below {
                return None;
            }
            // One more than the next number, so that they do not touch.
            lowest = range.last.saturating_add(2);
        }
        Some(Holes { ranges })
    }

    /// Adds a range above all that are there; touching ranges become one. Returns by how many ranges the set grew.
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

    /// Takes a number out; `None` if it was not there. A number from the middle of a range leaves two; without room for one more
    /// (`may_split` is false) the shorter of them is given up.
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
