//! Which direction has something to do, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times of directions, earliest first. An entry that was overtaken by an earlier one of the same direction stays in
/// the heap and is passed over when its time comes.
#[derive(Debug)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// Of each direction: the entry that counts.
    planned: Vec<u64>,
}

const NEVER: u64 = u64::MAX;

impl Agenda {
    /// An agenda of `directions`.
    pub fn new(directions: usize) -> Agenda {
        Agenda { heap: BinaryHeap::new(), planned: vec![NEVER; directions] }
    }

    /// Direction `direction` has something to do at `next_ns`. A time later than the planned one changes nothing: checked
    /// early, the direction returns again when it must be checked.
    pub fn plan(&mut self, direction: usize, next_ns: Option<u64>) {
        let Some(next_ns) = next_ns else { return };
        if next_ns < self.planned[direction] {
            self.planned[direction] = next_ns;
            self.heap.push(Reverse((next_ns, direction)));
        }
    }

    /// The direction that is due by `now_ns`; the caller plans it again.
    pub fn take_due(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(Reverse((at_ns, direction))) = self.heap.peek().copied() {
            if at_ns > now_ns {
                return None;
            }
            self.heap.pop();
            if self.planned[direction] == at_ns {
                self.planned[direction] = NEVER;
                return Some(direction);
            }
        }
        None
    }

    /// When something is to be done next, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_come_in_the_order_of_their_earliest_time() {
        let mut agenda = Agenda::new(3);
        agenda.plan(0, Some(50));
        agenda.plan(0, Some(70));
        agenda.plan(1, Some(60));
        agenda.plan(0, Some(10));
        agenda.plan(2, None);
        assert_eq!(agenda.next_ns(), Some(10));
        assert_eq!(agenda.take_due(9), None);
        assert_eq!(agenda.take_due(100), Some(0));
        agenda.plan(0, Some(65));
        assert_eq!([agenda.take_due(100), agenda.take_due(100), agenda.take_due(100)], [Some(1), Some(0), None]);
        assert_eq!(agenda.next_ns(), None);
    }
}
