//! One direction of a TCP connection: how far its receiver can read, whatever order its segments arrive in.

/// Most ranges stored that arrived before a missing one: at most a window's worth of segments is in flight.
const MOST_AHEAD: usize = 1_024;
/// Most messages stored that wait for the rest of them or for earlier bytes.
const MOST_OPEN: usize = 4_096;

/// A message whose end has not become readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<M> {
    /// Sequence number behind its last byte.
    pub end: u32,
    /// The message.
    pub message: M,
}

/// A direction of a connection. Sequence numbers go round: comparisons are those of RFC 9293 §3.4.
#[derive(Debug)]
pub struct Flow<M> {
    /// The receiver has everything before this.
    next: u32,
    ahead: Vec<(u32, u32)>,
    open: Vec<Open<M>>,
}

fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

impl<M> Flow<M> {
    /// A direction of which everything before `next` has passed.
    pub fn from(next: u32) -> Flow<M> {
        Flow { next, ahead: Vec::new(), open: Vec::new() }
    }

    /// A message is in flight; false if too many are.
    pub fn add(&mut self, end: u32, message: M) -> bool {
        let has_room = self.open.len() < MOST_OPEN;
        if has_room {
            self.open.push(Open { end, message });
        }
        has_room
    }

    /// Is any message in flight?
    #[cfg(test)]
    pub fn is_waited_for(&self) -> bool {
        !self.open.is_empty()
    }

    /// The bytes from `start` to before `end` have passed.
    pub fn pass(&mut self, start: u32, end: u32) {
        if is_before(self.next, start) {
            if self.ahead.len() < MOST_AHEAD {
                self.ahead.push((start, end));
            }
            return;
        }
        if is_before(self.next, end) {
            self.next = end;
        }
        while let Some(place) = self.ahead.iter().position(|(start, _)| !is_before(self.next, *start)) {
            let (_, end) = self.ahead.swap_remove(place);
            if is_before(self.next, end) {
                self.next = end;
            }
        }
    }

    /// Takes the messages that can be read wholly.
    pub fn complete(&mut self, mut take: impl FnMut(M)) {
        let mut place = 0;
        while place < self.open.len() {
            if is_before(self.next, self.open[place].end) {
                place += 1;
            } else {
                take(self.open.remove(place).message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn completed(flow: &mut Flow<u32>) -> Vec<u32> {
        let mut all = vec![];
        flow.complete(|message| all.push(message));
        all
    }

    #[test]
    fn a_message_can_be_read_when_all_before_it_is_there() {
        let start = u32::MAX - 100;
        let mut flow = Flow::from(start);
        let at = |offset: u32| start.wrapping_add(offset);
        assert!(flow.add(at(150), 1) && flow.add(at(400), 2) && flow.is_waited_for());
        flow.pass(at(0), at(100));
        assert_eq!(completed(&mut flow), [0; 0]);
        flow.pass(at(200), at(300));
        flow.pass(at(300), at(400));
        assert_eq!(completed(&mut flow), [0; 0], "what is between is missing");
        flow.pass(at(100), at(200));
        assert_eq!(completed(&mut flow), [1, 2]);
        flow.pass(at(0), at(100));
        assert!(flow.next == at(400) && !flow.is_waited_for());
    }

    proptest! {
        #[test]
        fn any_order_ends_at_the_same_place(order in Just((0u32..40).collect::<Vec<_>>()).prop_shuffle(), first in any::<u32>()) {
            let mut flow = Flow::from(first);
            flow.add(first.wrapping_add(400), 1);
            for piece in order {
                prop_assert_eq!(completed(&mut flow), Vec::<u32>::new());
                flow.pass(first.wrapping_add(piece * 10), first.wrapping_add(piece * 10 + 10));
            }
            prop_assert_eq!(completed(&mut flow), vec![1]);
        }
    }
}
