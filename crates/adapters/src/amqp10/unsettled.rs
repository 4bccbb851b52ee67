//! Deliveries of ours that wait for their outcome, found by the numbers that a disposition names.
//!
//! Numbers grow by one a delivery and wrap (RFC 1982), so they stand here in order, and a range is found by halving. The
//! work for a disposition is bounded by the deliveries that wait, whatever range it names.

use std::collections::VecDeque;

/// Settled entries are dropped from the middle when there are more of them than of the others, but not below this.
const DENSE_BELOW: usize = 64;

/// A delivery that waits.
#[derive(Clone, Copy, Debug)]
struct OutstandingDelivery {
    /// Its number.
    delivery: u32,
    /// Its identifier among the messages in flight, 0 once it is settled.
    tag: u16,
    /// The sender that it went out on.
    sender: u16,
}

/// Deliveries that wait.
#[derive(Debug, Default)]
pub struct Unsettled {
    places: VecDeque<OutstandingDelivery>,
    settled: usize,
}

impl Unsettled {
    /// Adds a delivery; its number is behind all others.
    pub fn push(&mut self, delivery: u32, tag: u16, sender: u16) {
        self.places.push_back(OutstandingDelivery { delivery, tag, sender });
    }

    /// Number of the oldest one.
    pub fn oldest(&self) -> Option<u32> {
        self.places.front().map(|place| place.delivery)
    }

    /// Removes all deliveries from `first` to `last` and passes their identifiers to `each`, in order, until it fails.
    pub fn settle<E>(&mut self, first: u32, last: u32, mut each: impl FnMut(u16) -> Result<(), E>) -> Result<(), E> {
        let Some(base) = self.oldest() else { return Ok(()) };
        // Distances from the oldest; numbers before it are negative.
        let distance = |delivery: u32| delivery.wrapping_sub(base) as i32;
        let begin = self.places.partition_point(|place| distance(place.delivery) < distance(first));
        let to_last = |place: &&mut OutstandingDelivery| distance(place.delivery) <= distance(last);
        for place in self.places.range_mut(begin..).take_while(to_last).filter(|place| place.tag != 0) {
            self.settled += 1;
            each(std::mem::take(&mut place.tag))?;
        }
        self.tidy();
        Ok(())
    }

    /// Removes all deliveries of a sender and passes their identifiers to `each`, in order.
    pub fn settle_sender(&mut self, sender: u16, mut each: impl FnMut(u16)) {
        for place in self.places.iter_mut().filter(|place| place.sender == sender && place.tag != 0) {
            self.settled += 1;
            each(std::mem::take(&mut place.tag));
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        while self.places.front().is_some_and(|place| place.tag == 0) {
            self.places.pop_front();
            self.settled -= 1;
        }
        if self.places.len() >= DENSE_BELOW && self.settled > self.places.len() / 2 {
            self.places.retain(|place| place.tag != 0);
            self.settled = 0;
        }
    }

    /// Removes all, and frees the memory.
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
            unsettled.push(delivery, tag, 0);
        }
        assert_eq!(take(&mut unsettled, 11, 11), [2]);
        assert_eq!(take(&mut unsettled, 5, 15), [1, 3]);
        assert_eq!(take(&mut unsettled, 0, 12), [0u16; 0]);
        assert_eq!(take(&mut unsettled, 20, 1_000_000), [4]);
        assert_eq!(take(&mut unsettled, 0, 1_000_000), [0u16; 0]);
    }

    #[test]
    fn those_of_one_sender_are_found_among_the_others() {
        let mut unsettled = Unsettled::default();
        for (delivery, sender) in [(7, 1), (8, 2), (9, 1)] {
            unsettled.push(delivery, delivery as u16, sender);
        }
        let mut taken = vec![];
        unsettled.settle_sender(1, |tag| taken.push(tag));
        assert_eq!((taken, unsettled.oldest()), (vec![7, 9], Some(8)));
        assert_eq!(take(&mut unsettled, 0, 100), [8]);
        assert_eq!(unsettled.oldest(), None);
    }

    #[test]
    fn numbers_wrap() {
        let mut unsettled = Unsettled::default();
        for (index, tag) in (1..=4).enumerate() {
            unsettled.push((u32::MAX - 1).wrapping_add(index as u32), tag, 0);
        }
        assert_eq!(take(&mut unsettled, u32::MAX, 0), [2, 3]);
        assert_eq!(take(&mut unsettled, u32::MAX - 5, 5), [1, 4]);
    }

    #[test]
    fn an_unsettled_delivery_does_not_retain_the_others() {
        let mut unsettled = Unsettled::default();
        for delivery in 0..10_000 {
            unsettled.push(delivery, 1, 0);
            if delivery > 0 {
                assert_eq!(take(&mut unsettled, delivery, delivery), [1]);
            }
        }
        assert!(unsettled.places.len() <= DENSE_BELOW, "{}", unsettled.places.len());
        assert_eq!(take(&mut unsettled, 0, 9_999), [1]);
    }
}
