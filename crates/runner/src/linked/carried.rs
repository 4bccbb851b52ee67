//! What links, and the relay behind them, have carried at three times of a run, and what they still hold at its end.

use pubmark_links::relay::Counts;
use pubmark_links::star::Snapshot;
use pubmark_model::link::Link;

/// Longest time that the system and this machine need to forward a message that waits nowhere, ns. One that takes longer
/// has waited: in a socket, which is examined separately, in the queue of another link, which counts by itself, or in the
/// memory of the system or of a client that sends it again, which nobody examines.
const FORWARDED_WITHIN_NS: u64 = 100_000_000;

/// What links, and the relay behind them, have carried so far.
pub struct CarriedNow {
    pub(super) links: Snapshot,
    pub(super) relay: Option<Result<Counts, String>>,
    /// Time of the counters, by the clock of the links.
    pub(super) at_ns: u64,
}

impl CarriedNow {
    /// The longest time that the relay held a byte since the last query, ns; 0 without a relay, and `u64::MAX` if it
    /// has ended.
    pub fn held_ns(&self) -> u64 {
        match &self.relay {
            None => 0,
            Some(Ok(counts)) => counts.longest_held_ns,
            Some(Err(_)) => u64::MAX,
        }
    }
}

/// What links had carried at the end of the drain, and what waits in the relay then.
pub struct Drained {
    pub(super) now: CarriedNow,
    /// Bytes that wait in the relay; `None` without one, or if it has ended.
    pub(super) relay_bytes: Option<u64>,
}

/// What links, and the relay behind them, had carried in a run that may have ended early.
#[derive(Default)]
pub struct Carried {
    /// At the beginning and at the end of the measured window.
    pub edges: [Option<CarriedNow>; 2],
    /// At the end of the drain.
    pub drained: Option<Drained>,
    /// [`CarriedNow::held_ns`] when the clients had ended, ns.
    pub last_held_ns: u64,
}

impl Carried {
    /// Longest time that the relay held a byte since the window began, ns; `u64::MAX` if it has ended.
    pub fn held_ns(&self) -> u64 {
        let drained = self.drained.as_ref().map(|drained| &drained.now);
        self.edges[1].iter().chain(drained).map(CarriedNow::held_ns).fold(self.last_held_ns, u64::max)
    }

    /// Bytes of packets on the links at the end of the drain that may belong to messages of the window; `None` if they were
    /// not counted. `longest_delay_ns` is that of all links of the run.
    pub(super) fn link_bytes(&self, longest_delay_ns: u64) -> Option<u64> {
        let drained = self.drained.as_ref()?;
        let last_ns = self.edges[1].as_ref().map_or(u64::MAX, |end| last_entry_ns(end.at_ns, longest_delay_ns));
        Some(backlog_bytes(&drained.now.links, last_ns))
    }
}

/// The longest of [`Link::longest_delay_ns`] of these links; 0 without links.
pub(super) fn longest_delay_ns<'a>(links: impl Iterator<Item = &'a Link>) -> u64 {
    links.map(Link::longest_delay_ns).max().unwrap_or(0)
}

/// The latest time at which a message of a window that ended at `end_ns` comes to a link if it has waited nowhere: after it
/// has crossed another link.
fn last_entry_ns(end_ns: u64, longest_delay_ns: u64) -> u64 {
    end_ns.saturating_add(longest_delay_ns).saturating_add(FORWARDED_WITHIN_NS)
}

/// Bytes that wait on links which were never empty since `last_ns`. A link that was empty after that mostly holds other
/// packets: acknowledgements, keep-alives, the discovery of clients. A message that had waited somewhere else may be among
/// them and does not count. Of the kernel's netem it is not known since when packets wait, and all count.
fn backlog_bytes(now: &Snapshot, last_ns: u64) -> u64 {
    let directions = now.links.iter().flat_map(|link| [&link.up, &link.down]);
    directions.filter(|counters| counters.waiting_since_ns <= last_ns).map(|counters| counters.waiting.bytes).sum()
}

#[cfg(test)]
mod tests {
    use pubmark_links::direction::{Counters, Tally};
    use pubmark_links::star::{Lateness, LinkCounters, Strays};
    use pubmark_model::link::{Conditions, Delay, Step};

    use super::*;

    const MS: u64 = 1_000_000;
    const END_NS: u64 = 5_000 * MS;

    fn carried(up_since_ns: u64, down_since_ns: u64) -> CarriedNow {
        let of = |bytes, waiting_since_ns| Counters {
            waiting: Tally { packets: 1, bytes },
            waiting_since_ns,
            ..Counters::default()
        };
        let links = Snapshot {
            links: vec![LinkCounters { up: of(1, up_since_ns), down: of(20, down_since_ns) }],
            strays: Strays::default(),
            lateness: Lateness::none(),
            read_wait: Lateness::none(),
            trunk: None,
            cpu_ns: 0,
            realtime: false,
        };
        CarriedNow { links, relay: None, at_ns: END_NS }
    }

    /// Of a link that delays packets by 400 ms to the system, and by 50 ms back.
    fn link_bytes(end: Option<CarriedNow>, drained: CarriedNow) -> Option<u64> {
        let step = |mean_ns| Step {
            at_ns: 0,
            conditions: Conditions { delay: Delay { mean_ns, ..Delay::default() }, ..Conditions::default() },
        };
        let (up, down) = (vec![step(400 * MS)], vec![step(50 * MS)]);
        let link = Link { name: "far".to_owned(), source: None, up, down };
        let drained = Some(Drained { now: drained, relay_bytes: None });
        Carried { edges: [None, end], drained, last_held_ns: 0 }.link_bytes(longest_delay_ns([&link].into_iter()))
    }

    #[test]
    fn packets_wait_that_may_be_of_the_window_and_no_others() {
        let end = || Some(carried(0, 0));
        // Since before the end of the window, and since a message that was under way then came to the second link.
        assert_eq!(link_bytes(end(), carried(END_NS - MS, END_NS + 450 * MS)), Some(21));
        // A keep-alive on a link that had been empty.
        assert_eq!(link_bytes(end(), carried(END_NS - MS, END_NS + 600 * MS)), Some(1));
        assert_eq!(link_bytes(end(), carried(END_NS + 600 * MS, END_NS + 600 * MS)), Some(0));
        // A window without an end, and the kernel's netem.
        assert_eq!(link_bytes(None, carried(END_NS + 600 * MS, END_NS + 600 * MS)), Some(21));
        assert_eq!(link_bytes(end(), carried(0, 0)), Some(21));
        assert_eq!(Carried::default().link_bytes(0), None, "a missing figure is not 0");
    }

    #[test]
    fn the_longest_delay_is_that_of_all_links_and_steps() {
        let delay = |mean_ns, jitter_ns| Conditions {
            delay: Delay { mean_ns, jitter_ns, ..Delay::default() },
            ..Conditions::default()
        };
        let near = Link::symmetric("near", delay(5 * MS, 0));
        let mut far = Link::symmetric("far", delay(100 * MS, 10 * MS));
        assert_eq!(longest_delay_ns([&near, &far].into_iter()), 160 * MS);
        far.down.push(Step { at_ns: 1, conditions: delay(700 * MS, 0) });
        assert_eq!(longest_delay_ns([&near, &far].into_iter()), 700 * MS);
        assert_eq!(longest_delay_ns(std::iter::empty()), 0);
    }

    #[test]
    fn what_the_relay_held_after_the_drain_counts() {
        assert_eq!(Carried { last_held_ns: 7, ..Carried::default() }.held_ns(), 7);
        let edges = [None, Some(carried(0, 0))];
        assert_eq!(Carried { edges, last_held_ns: u64::MAX, ..Carried::default() }.held_ns(), u64::MAX);
    }
}
