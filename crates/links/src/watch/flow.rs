//! One direction of a TCP connection: how far its receiver can read, whatever order its segments arrive in.

/// Most ranges stored that arrived before a missing one. Segments without a gap between them are one range.
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
    /// There were too many gaps: what the receiver can read is not known any more.
    given_up: bool,
}

fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

impl<M> Flow<M> {
    /// A direction of which everything before `next` has passed.
    pub fn from(next: u32) -> Flow<M> {
        Flow { next, ahead: Vec::new(), open: Vec::new(), given_up: false }
    }

    /// A message is in flight; false if too many are, or the flow was given up.
    pub fn add(&mut self, end: u32, message: M) -> bool {
        let has_room = self.open.len() < MOST_OPEN && !self.given_up;
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

    /// The bytes from `start` to before `end` have passed. Returns how many messages were given up, with the flow: if there are too
    /// many gaps, nobody knows any more when what is in flight, or follows, can be read.
    pub fn pass(&mut self, start: u32, end: u32) -> u64 {
        if self.given_up {
            return 0;
        }
        if is_before(self.next, start) {
            return self.store(start, end);
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
        0
    }

    /// Stores a range behind a gap, together with those that it touches. If there is no room, the flow is given up. Returns how many
    /// messages were given up with it.
    fn store(&mut self, mut start: u32, mut end: u32) -> u64 {
        let touches = |from: u32, to: u32, start: u32, end: u32| !is_before(end, from) && !is_before(to, start);
        while let Some(place) = self.ahead.iter().position(|(from, to)| touches(*from, *to, start, end)) {
            let (from, to) = self.ahead.swap_remove(place);
            if is_before(from, start) {
                start = from;
            }
            if is_before(end, to) {
                end = to;
            }
        }
        if self.ahead.len() < MOST_AHEAD {
            self.ahead.push((start, end));
            return 0;
        }
        self.given_up = true;
        self.ahead.clear();
        self.open.drain(..).count() as u64
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

    #[test]
    fn a_window_behind_a_gap_is_one_range() {
        let mut flow = Flow::from(0);
        let segments = 2 * MOST_AHEAD as u32;
        flow.add(10 * segments + 10, 1);
        for segment in (1..=segments).rev() {
            assert_eq!(flow.pass(10 * segment, 10 * segment + 10), 0);
            assert_eq!(flow.ahead.len(), 1);
        }
        assert_eq!(completed(&mut flow), [0; 0]);
        flow.pass(0, 10);
        assert_eq!(completed(&mut flow), [1]);
    }

    #[test]
    fn messages_among_too_many_gaps_are_given_up_with_those_that_follow() {
        let mut flow = Flow::from(0);
        let gaps = MOST_AHEAD as u32;
        flow.add(15, 1);
        flow.add(20 * gaps, 2);
        for gap in 0..gaps {
            assert_eq!(flow.pass(20 * gap + 10, 20 * gap + 20), 0);
        }
        assert_eq!(flow.pass(20 * gaps + 10, 20 * gaps + 20), 2);
        assert_eq!(completed(&mut flow), [0; 0]);
        assert!(!flow.add(20 * gaps + 30, 3), "what is missing before it may still be missing");
        assert_eq!(flow.pass(0, 20 * gaps + 30), 0);
        assert_eq!(completed(&mut flow), [0; 0]);
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
