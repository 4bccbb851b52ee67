//! Deliveries of ours that wait for their outcome, found by the numbers that a disposition names.
//!
//! Numbers grow by one a delivery and wrap (RFC 1982), so they stand here in order, and a range is found by halving. The
//! work for a disposition is bounded by the deliveries that wait, whatever range it names.

use std::collections::VecDeque;

/// Settled entries are dropped from the middle when there are more of them than of the others, but not below this.
const DENSE_BELOW: usize = 64;

/// Deliveries that wait.
#[derive(Debug, Default)]
pub struct Unsettled {
    /// Number of the delivery and its identifier among the messages in flight, 0 once it is settled.
    places: VecDeque<(u32, u16)>,
    settled: usize,
}

impl Unsettled {
    /// Adds a delivery; its number is behind all others.
    pub fn push(&mut self, delivery: u32, tag: u16) {
        self.places.push_back((delivery, tag));
    }

    /// Takes out all deliveries from `first` to `last` and gives their identifiers to `each`, in order, until it fails.
    pub fn settle<E>(&mut self, first: u32, last: u32, mut each: impl FnMut(u16) -> Result<(), E>) -> Result<(), E> {
        let Some(&(base, _)) = self.places.front() else { return Ok(()) };
        // Distances from the oldest; numbers before it are negative.
        let distance = |delivery: u32| delivery.wrapping_sub(base) as i32;
        let begin = self.places.partition_point(|(delivery, _)| distance(*delivery) < distance(first));
        for (_, tag) in self.places.range_mut(begin..).take_while(|(delivery, _)| distance(*delivery) <= distance(last))
        {
            if *tag != 0 {
                self.settled += 1;
                each(std::mem::take(tag))?;
            }
        }
        self.tidy();
        Ok(())
    }

    fn tidy(&mut self) {
        while self.places.front().is_some_and(|(_, tag)| *tag == 0) {
            self.places.pop_front();
            self.settled -= 1;
        }
        if self.places.len() >= DENSE_BELOW && self.settled > self.places.len() / 2 {
            self.places.retain(|(_, tag)| *tag != 0);
            self.settled = 0;
        }
    }

    /// Forgets all, and gives back the memory.
    pub fn clear(&mut self) {
        *self = Unsettled::default();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn take(unsettled: &mut Unsettled, first: u32, last: u32) -> Vec<u16> {
        let mut taken = vec![];
        let each = |tag: u16| {
            taken.push(tag);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = unsettled.settle(first, last, each);
        taken
    }

    #[test]
    fn ranges_find_what_waits_in_them_and_nothing_twice() {
        let mut unsettled = Unsettled::default();
        for (delivery, tag) in [(10, 1), (11, 2), (13, 3), (20, 4)] {
            unsettled.push(delivery, tag);
        }
        assert_eq!(take(&mut unsettled, 11, 11), [2]);
        assert_eq!(take(&mut unsettled, 5, 15), [1, 3]);
        assert_eq!(take(&mut unsettled, 0, 12), [0u16; 0]);
        assert_eq!(take(&mut unsettled, 20, 1_000_000), [4]);
        assert_eq!(take(&mut unsettled, 0, 1_000_000), [0u16; 0]);
    }

    #[test]
    fn numbers_wrap() {
        let mut unsettled = Unsettled::default();
        for (index, tag) in (1..=4).enumerate() {
            unsettled.push((u32::MAX - 1).wrapping_add(index as u32), tag);
        }
        assert_eq!(take(&mut unsettled, u32::MAX, 0), [2, 3]);
        assert_eq!(take(&mut unsettled, u32::MAX - 5, 5), [1, 4]);
    }

    #[test]
    fn one_that_is_never_settled_does_not_keep_the_others() {
        let mut unsettled = Unsettled::default();
        for delivery in 0..10_000 {
            unsettled.push(delivery, 1);
            if delivery > 0 {
                assert_eq!(take(&mut unsettled, delivery, delivery), [1]);
            }
        }
        assert!(unsettled.places.len() <= DENSE_BELOW, "{}", unsettled.places.len());
        assert_eq!(take(&mut unsettled, 0, 9_999), [1]);
    }
}
