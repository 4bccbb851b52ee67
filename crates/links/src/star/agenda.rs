//! Which direction has something to do, and when.

/// The next time of each direction, in a tree of fixed size whose nodes hold the earlier of two times. A change costs as many steps
/// as the tree has levels, ten for 511 groups, and leaves nothing behind that would have to be passed over later.
#[derive(Debug)]
pub struct Agenda {
    /// Times, ns, with their directions. The second half holds those of the directions, in order; node i of the first half the earlier
    /// of nodes 2·i and 2·i + 1, so that node 1 has the earliest of all. Node 0 is not used.
    nodes: Vec<(u64, usize)>,
}

const NEVER: u64 = u64::MAX;

impl Agenda {
    /// An agenda of `directions`, none of which has anything to do.
    pub fn new(directions: usize) -> Agenda {
        Agenda { nodes: vec![(NEVER, 0); 2 * directions.max(1)] }
    }

    /// Direction `direction` has something to do at `next_ns`, and not at the time that was planned before.
    pub fn plan(&mut self, direction: usize, next_ns: Option<u64>) {
        let mut node = self.nodes.len() / 2 + direction;
        self.nodes[node] = (next_ns.unwrap_or(NEVER), direction);
        while node > 1 {
            node /= 2;
            let earlier = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == earlier {
                return;
            }
            self.nodes[node] = earlier;
        }
    }

    /// The direction that is due by `now_ns`, the earliest one; the caller plans it again.
    pub fn take_due(&mut self, now_ns: u64) -> Option<usize> {
        self.next_ns().filter(|next_ns| *next_ns <= now_ns)?;
        let (_, direction) = self.nodes[1];
        self.plan(direction, None);
        Some(direction)
    }

    /// When something is to be done next, ns.
    pub fn next_ns(&self) -> Option<u64> {
        Some(self.nodes[1].0).filter(|next_ns| *next_ns < NEVER)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn directions_come_in_the_order_of_their_next_times() {
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

    #[test]
    fn a_direction_has_one_time_however_often_packets_are_due_before_its_next_step() {
        const STEP: u64 = 1_000_000;
        let mut agenda = Agenda::new(1);
        for at_ns in 0..10_000 {
            agenda.plan(0, Some(at_ns));
            assert_eq!(agenda.take_due(at_ns), Some(0));
            agenda.plan(0, Some(STEP));
        }
        assert_eq!(agenda.nodes, [(NEVER, 0), (STEP, 0)]);
        // A later time replaces an earlier one, too.
        agenda.plan(0, Some(STEP + 1));
        assert_eq!(agenda.take_due(STEP), None);
        assert_eq!([agenda.take_due(STEP + 1), agenda.take_due(STEP + 1)], [Some(0), None]);
    }

    #[test]
    fn an_agenda_of_no_directions_is_empty() {
        let mut agenda = Agenda::new(0);
        assert_eq!((agenda.next_ns(), agenda.take_due(NEVER)), (None, None));
    }

    proptest! {
        #[test]
        fn the_earliest_of_all_is_found(
            directions in 1usize..20,
            plans in proptest::collection::vec((0usize..20, proptest::option::of(0u64..50), 0u64..50), 1..200),
        ) {
            let mut agenda = Agenda::new(directions);
            let mut planned = vec![None; directions];
            for (direction, next_ns, now_ns) in plans {
                let direction = direction % directions;
                agenda.plan(direction, next_ns);
                planned[direction] = next_ns;
                let earliest = (0..directions).filter_map(|index| Some((planned[index]?, index))).min();
                prop_assert_eq!(agenda.next_ns(), earliest.map(|(at_ns, _)| at_ns));
                let due = earliest.filter(|(at_ns, _)| *at_ns <= now_ns).map(|(_, index)| index);
                prop_assert_eq!(agenda.take_due(now_ns), due);
                if let Some(index) = due {
                    planned[index] = None;
                }
            }
        }
    }
}
