//! A set of sequence numbers, such as those that are missing in a stream, stored as ranges.

use serde::{Deserialize, Serialize};

use crate::carried::Malformed;

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

/// Missing or refused numbers as ascending, non-adjacent ranges. Numbers begin with 1. The memory depends on the number of
/// ranges, 8 bytes each, not on how many numbers they contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Range>", into = "Vec<Range>")]
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

    /// Adds a number, which may already be in the set.
    pub fn insert(&mut self, number: u32) {
        let index = self.ranges.partition_point(|range| range.last < number);
        let above = self.ranges.get(index).copied();
        if above.is_some_and(|range| range.first <= number) {
            return;
        }
        // All ranges before `index` end below the number, and those from it on begin above the number.
        let joins_below = index > 0 && self.ranges[index - 1].last + 1 == number;
        match (joins_below, above.filter(|range| range.first - 1 == number)) {
            (true, Some(above)) => {
                self.ranges[index - 1].last = above.last;
                self.ranges.remove(index);
            }
            (true, None) => self.ranges[index - 1].last = number,
            (false, Some(_)) => self.ranges[index].first = number,
            (false, None) => self.ranges.insert(index, Range { first: number, last: number }),
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

    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.count()).sum()
    }
}

impl FromIterator<u32> for Holes {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Holes {
        let mut holes = Holes::default();
        numbers.into_iter().for_each(|number| holes.insert(number));
        holes
    }
}

impl From<Holes> for Vec<Range> {
    fn from(holes: Holes) -> Vec<Range> {
        holes.ranges
    }
}

impl TryFrom<Vec<Range>> for Holes {
    type Error = Malformed;

    fn try_from(ranges: Vec<Range>) -> Result<Holes, Malformed> {
        Holes::of(ranges, u32::MAX).ok_or(Malformed("ranges of sequence numbers that overlap or are not ascending"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn consecutive_numbers_are_one_range() {
        let holes: Holes = (1..=100_000).chain(200_000..=300_000).collect();
        assert_eq!(holes.ranges(), [Range { first: 1, last: 100_000 }, Range { first: 200_000, last: 300_000 }]);
        assert_eq!(holes.count(), 200_001);
    }

    #[test]
    fn ranges_that_no_process_would_send_are_refused() {
        let read = |pairs: &[(u32, u32)]| {
            let sent = postcard::to_allocvec(pairs).unwrap();
            postcard::from_bytes::<Holes>(&sent).ok().map(|holes| holes.count())
        };
        assert_eq!(read(&[(1, 3), (5, 5)]), Some(4));
        for malformed in [&[(3, 1)][..], &[(1, 3), (4, 5)], &[(5, 6), (1, 2)], &[(0, 2)]] {
            assert_eq!(read(malformed), None, "{malformed:?}");
        }
    }

    proptest! {
        #[test]
        fn insertion_in_any_order_agrees_with_a_plain_set(numbers in proptest::collection::vec(1u32..120, 0..150)) {
            let mut holes = Holes::default();
            let mut plain = BTreeSet::new();
            for number in numbers {
                holes.insert(number);
                plain.insert(number);
                prop_assert!((0..=121).all(|number| holes.contains(number) == plain.contains(&number)));
            }
            prop_assert_eq!(holes.count(), plain.len() as u64);
            let sent = postcard::to_allocvec(&holes).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Holes>(&sent).unwrap(), holes, "not ascending and non-adjacent");
        }
    }
}
