//! What links carried: the report of the process that created them, and the sums over all processes for the record.

use std::io;

use pubmark_links::Direction;
use pubmark_links::direction::Counters;
use pubmark_links::netem;
use pubmark_links::star::Snapshot;
use pubmark_links::verify::{self, Outcome, Verification};
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_model::link::{Link, Step};
use pubmark_model::workload::Workload;
use pubmark_record::distribution;
use pubmark_record::efficiency::PacketCounts;
use pubmark_record::latency::Summary;
use pubmark_record::links::{
    LinkBackEnd, LinkCheck, LinkDirection, LinkFigures, LinkGroup, LinkTraffic, RelayFigures, RelayTraffic,
    TrunkFigures,
};
use serde::{Deserialize, Serialize};

use crate::relayed::{DirectionReport, RelayReport, Times};

/// What the links of one process carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// [`LinkFigures::back_end`].
    pub back_end: LinkBackEnd,
    /// [`LinkFigures::realtime`].
    pub realtime: bool,
    /// [`LinkFigures::congestion_control`].
    pub congestion_control: String,
    /// [`LinkFigures::groups`].
    pub groups: Vec<LinkGroup>,
    /// [`LinkFigures::differences`].
    pub differences: Vec<String>,
    /// The relay behind the links; `Err` has the reason why its figures are unknown.
    pub relay: Option<Result<RelayReport, String>>,
    /// Longest time that the relay held a byte since the window began, ns; `u64::MAX` if unknown.
    pub relay_held_ns: u64,
    /// [`LeftAtEnd::relay_bytes`](pubmark_record::record::LeftAtEnd::relay_bytes).
    pub relay_bytes: Option<u64>,
    /// [`LeftAtEnd::link_bytes`](pubmark_record::record::LeftAtEnd::link_bytes).
    pub link_bytes: Option<u64>,
    /// [`LinkFigures::lateness`].
    pub lateness: Times,
    /// [`LinkFigures::read_wait`].
    #[serde(default)]
    pub read_wait: Times,
    /// CPU time of the emulator in the window, ns; `None` for the kernel's netem, and if it is not known.
    pub cpu_ns: Option<u64>,
    /// [`LinkFigures::queue_drops`].
    pub queue_drops: u64,
    /// [`LinkFigures::overflowed`].
    pub overflowed: Option<u64>,
    /// [`LinkFigures::unroutable_packets`].
    pub unroutable_packets: Option<u64>,
    /// [`LinkFigures::trunk`]; `Err` has the reason why its figures are unknown.
    #[serde(default)]
    pub trunk: Option<Result<TrunkReport, String>>,
    /// [`LinkFigures::gone`].
    #[serde(default)]
    pub gone: Option<String>,
    /// For each group: packets in the measured window, and packets before it; empty if the process did not reach the
    /// end of the window.
    pub packets: Vec<(String, PacketCounts, PacketCounts)>,
}

impl LinkReport {
    /// Whether the emulation of the links ended by itself, or the relay behind them was lost. Connections end with them, whatever the
    /// system does.
    pub fn is_lost(&self) -> bool {
        self.gone.is_some() || matches!(self.relay, Some(Err(_)))
    }
}

/// What one end of a trunk carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrunkReport {
    /// [`TrunkFigures`], without a summary of times.
    pub figures: TrunkFigures,
    /// [`TrunkFigures::transit`].
    pub transit: Times,
    /// How many of these times were negative.
    pub negative: u64,
}

/// CPU time of the emulator between two snapshots, ns; `None` if one of them lacks it (it is 0 there), as after the panic of its thread.
pub(super) fn cpu_ns([before, after]: [&Snapshot; 2]) -> Option<u64> {
    after.cpu_ns.checked_sub(before.cpu_ns).filter(|_| before.cpu_ns > 0)
}

/// What the trunk of a process carried between two snapshots, and what was lost until the last one.
pub(super) fn trunk(snapshots: [&Snapshot; 3]) -> Option<TrunkReport> {
    let [before, after, end] = snapshots.map(|snapshot| snapshot.trunk.as_ref());
    let (before, after, end) = (before?, after?, end?.counters);
    let sent = after.counters.sent.since(before.counters.sent);
    let received = after.counters.received.since(before.counters.received);
    let errno = Some(end.unsent_errno).filter(|errno| *errno != 0);
    let figures = TrunkFigures {
        sent_packets: sent.packets,
        sent_bytes: sent.bytes,
        received_packets: received.packets,
        received_bytes: received.bytes,
        missing: end.missing,
        unsent: end.unsent,
        unsent_error: errno.map(|errno| io::Error::from_raw_os_error(errno).to_string()),
        refused: end.refused,
        transit: None,
        gone: None,
    };
    Some(TrunkReport {
        figures,
        transit: after.transit.since(&before.transit).buckets().collect(),
        negative: after.counters.negative.saturating_sub(before.counters.negative),
    })
}

/// The record's figures about the links of all processes. The sums of the relays are unknown if one relay's figures are
/// unknown.
pub fn figures(reports: &[LinkReport]) -> LinkFigures {
    let sum = |of: fn(&LinkReport) -> Option<u64>| total(reports.iter().map(of));
    let distinct = |words: Vec<String>| {
        let mut words = words;
        words.sort_unstable();
        words.dedup();
        words
    };
    let first = reports.first();
    LinkFigures {
        back_end: first.map(|report| report.back_end).unwrap_or_default(),
        realtime: reports.iter().all(|report| report.realtime),
        congestion_control: distinct(reports.iter().map(|report| report.congestion_control.clone()).collect())
            .join(" and "),
        groups: reports.iter().flat_map(|report| report.groups.clone()).collect(),
        differences: distinct(reports.iter().flat_map(|report| report.differences.clone()).collect()),
        relay: relay(reports),
        lateness: summary(reports.iter().map(|report| &report.lateness)),
        read_wait: summary(reports.iter().map(|report| &report.read_wait)),
        cpu_s: sum(|report| report.cpu_ns).map(|ns| ns as f64 / 1e9),
        queue_drops: total(reports.iter().map(|report| Some(report.queue_drops))).unwrap_or(0),
        overflowed: sum(|report| report.overflowed),
        unroutable_packets: sum(|report| report.unroutable_packets),
        trunk: trunk_figures(reports),
        gone: reports.iter().find_map(|report| report.gone.clone()),
    }
}

/// Bytes that waited in the relays of all processes, and on their links, at the end of the drain.
pub fn left_bytes(reports: &[LinkReport]) -> [Option<u64>; 2] {
    [total(reports.iter().map(|report| report.relay_bytes)), total(reports.iter().map(|report| report.link_bytes))]
}

/// The sum, if all figures are known; it saturates, because a node may report any value.
fn total(mut figures: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    figures.try_fold(0_u64, |sum, figure| Some(sum.saturating_add(figure?)))
}

/// All ends of the trunk together, which are unknown if those of one process are; `None` without a trunk.
fn trunk_figures(reports: &[LinkReport]) -> Option<TrunkFigures> {
    let ends: Vec<&Result<TrunkReport, String>> =
        reports.iter().map(|report| report.trunk.as_ref()).collect::<Option<_>>()?;
    if let Some(why) = ends.iter().find_map(|end| end.as_ref().err()) {
        return Some(TrunkFigures { gone: Some(why.clone()), ..TrunkFigures::default() });
    }
    let ends: Vec<&TrunkReport> = ends.into_iter().filter_map(|end| end.as_ref().ok()).collect();
    let negative = total(ends.iter().map(|end| Some(end.negative))).unwrap_or(0);
    let transit = summary(ends.iter().map(|end| &end.transit)).map(|transit| Summary { negative, ..transit });
    let sum = |of: fn(&TrunkFigures) -> u64| {
        ends.iter().map(|end| of(&end.figures)).fold(0_u64, |sum, figure| sum.saturating_add(figure))
    };
    (!ends.is_empty()).then(|| TrunkFigures {
        sent_packets: sum(|end| end.sent_packets),
        sent_bytes: sum(|end| end.sent_bytes),
        received_packets: sum(|end| end.received_packets),
        received_bytes: sum(|end| end.received_bytes),
        missing: sum(|end| end.missing),
        unsent: sum(|end| end.unsent),
        unsent_error: ends.iter().find_map(|end| end.figures.unsent_error.clone()),
        refused: sum(|end| end.refused),
        transit,
        gone: None,
    })
}

fn relay(reports: &[LinkReport]) -> Option<RelayFigures> {
    let relays: Vec<_> = reports.iter().filter_map(|report| report.relay.as_ref()).collect();
    let gone = relays.iter().find_map(|relay| relay.as_ref().err());
    if let Some(why) = gone {
        return Some(RelayFigures { gone: Some(why.clone()), ..RelayFigures::default() });
    }
    let relays: Vec<&RelayReport> = relays.into_iter().filter_map(|relay| relay.as_ref().ok()).collect();
    let held_ns = reports.iter().map(|report| report.relay_held_ns).max().unwrap_or(0);
    let sum = |of: &dyn Fn(&RelayReport) -> u64| total(relays.iter().map(|relay| Some(of(relay)))).unwrap_or(0);
    let direction = |of: fn(&RelayReport) -> &DirectionReport| RelayTraffic {
        bytes: sum(&|relay| of(relay).bytes),
        added: summary(relays.iter().map(|relay| &of(relay).added)),
        dropped: sum(&|relay| of(relay).dropped),
    };
    (!relays.is_empty()).then(|| RelayFigures {
        connections: sum(&|relay| relay.connections),
        refused: sum(&|relay| relay.refused),
        exhausted: sum(&|relay| relay.exhausted),
        closed: sum(&|relay| relay.closed),
        up: direction(|relay| &relay.up),
        down: direction(|relay| &relay.down),
        longest_held_us: held_ns as f64 / 1e3,
        cpu_s: sum(&|relay| relay.cpu_ns) as f64 / 1e9,
        realtime: relays.iter().all(|relay| relay.realtime),
        gone: None,
    })
}

/// The summary of merged histograms of the links: a bucket's value is at most 1/32 too large.
fn summary<'a>(all: impl Iterator<Item = &'a Times>) -> Option<Summary> {
    let mut times = Distribution::new(Precision::Total);
    all.flatten().for_each(|(ns, count)| times.record_many(*ns, *count));
    distribution::summary(&times)
}

/// One direction of a group's link between two snapshots.
pub(super) fn direction(
    link: &Link,
    group: usize,
    direction: Direction,
    found: &[Verification],
    [before, after]: [&Snapshot; 2],
    emulated: bool,
) -> LinkDirection {
    let steps = match direction {
        Direction::Up => &link.up,
        Direction::Down => &link.down,
    };
    let traffic = if emulated { traffic } else { traffic_of_kernel };
    let counters = after.links[group].of(direction).since(before.links[group].of(direction));
    let found = found.iter().find(|found| (found.group, found.direction) == (group, direction));
    LinkDirection {
        requested: steps.iter().map(step).collect(),
        checks: found.map(|found| found.checks.iter().map(check).collect()).unwrap_or_default(),
        traffic: traffic(&counters),
    }
}

/// The settings of a link of a workload, up and down, in words; one entry for each step of a series.
pub fn requested(workload: &Workload, link: &str) -> [Vec<String>; 2] {
    match workload.links.iter().find(|known| known.name == link) {
        Some(link) => [&link.up, &link.down].map(|steps| steps.iter().map(step).collect()),
        None => [vec![], vec![]],
    }
}

fn step(step: &Step) -> String {
    let words = step.conditions.words();
    if step.at_ns == 0 { words } else { format!("from {} s: {words}", step.at_ns as f64 / 1e9) }
}

fn check(found: &verify::Check) -> LinkCheck {
    let [name, requested, measured] = found.words();
    let (measured, kept) = match &found.outcome {
        Outcome::Met => (measured, Some(true)),
        Outcome::Missed => (measured, Some(false)),
        Outcome::Unverified(why) => (why.clone(), None),
    };
    LinkCheck { name, requested, measured, as_requested: kept }
}

fn traffic(counters: &Counters) -> LinkTraffic {
    LinkTraffic {
        entered_packets: counters.arrived.packets,
        entered_bytes: counters.arrived.bytes,
        lost: counters.lost.packets,
        lost_down: Some(counters.lost_down.packets),
        queue_full: Some(counters.queue_dropped.packets),
        duplicated: Some(counters.duplicated.packets),
        reordered: Some(counters.sent_ahead),
        out_of_order: Some(counters.out_of_order),
        left_packets: counters.delivered.packets,
        left_bytes: counters.delivered.bytes,
        queue_peak_bytes: Some(counters.queue_high_water_bytes),
    }
}

/// The traffic counters of the kernel's netem, which has no further ones.
fn traffic_of_kernel(counters: &Counters) -> LinkTraffic {
    LinkTraffic {
        entered_packets: counters.arrived.packets,
        entered_bytes: counters.arrived.bytes,
        lost: counters.lost.packets,
        left_packets: counters.delivered.packets,
        left_bytes: counters.delivered.bytes,
        ..LinkTraffic::default()
    }
}

/// Differences between the kernel's netem and our emulator for these links, which faults cut or not, each listed once.
pub(super) fn differences(links: &[Link], is_cut: bool) -> Vec<String> {
    let steps = links.iter().flat_map(|link| link.up.iter().chain(&link.down));
    let mut found: Vec<&str> = steps.flat_map(|step| netem::differences(&step.conditions, is_cut)).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use pubmark_links::star::{Lateness, Strays};
    use pubmark_links::trunk::{TrunkCounters, TrunkSnapshot};
    use pubmark_model::link::Conditions;

    use super::*;

    #[test]
    fn a_fault_that_cuts_links_is_a_difference_of_the_kernels_emulation() {
        let link = Link::symmetric("far", Conditions::default());
        let links = [link.clone(), link];
        assert!(differences(&links, false).is_empty());
        assert_eq!(differences(&links, true), ["what waits when a link goes down still arrives"]);
    }

    #[test]
    fn waits_of_all_processes_are_one_figure_and_without_packets_there_is_none() {
        let report = |ns| LinkReport { read_wait: vec![(ns, 5)], ..LinkReport::default() };
        let found = figures(&[report(1_000), report(9_000)]).read_wait;
        let is_of_both = found.as_ref().is_some_and(|waits| waits.count == 10 && (9.0..9.1).contains(&waits.max));
        assert!(is_of_both, "{found:?}");
        assert_eq!(figures(&[LinkReport::default()]).read_wait, None);
    }

    #[test]
    fn all_ends_of_the_trunk_are_one_figure_that_is_known_only_if_each_is() {
        let end = |missing, ns| {
            let figures = TrunkFigures { sent_packets: 7, missing, ..TrunkFigures::default() };
            let report = TrunkReport { figures, transit: vec![(ns, 3)], negative: 1 };
            LinkReport { trunk: Some(Ok(report)), ..LinkReport::default() }
        };
        let found = figures(&[end(2, 1_000), end(u64::MAX, 2_000)]).trunk.unwrap_or_default();
        assert_eq!((found.sent_packets, found.missing), (14, u64::MAX));
        assert_eq!(found.transit.map(|transit| (transit.count, transit.negative)), Some((6, 2)));
        assert_eq!(figures(&[end(0, 1), LinkReport::default()]).trunk, None);
        let lost = LinkReport { trunk: Some(Err("`b` did not report it".to_owned())), ..LinkReport::default() };
        let found = figures(&[end(0, 1), lost]);
        assert_eq!(found.trunk.and_then(|trunk| trunk.gone).as_deref(), Some("`b` did not report it"));
        assert_eq!(found.relay, None);
    }

    #[test]
    fn links_that_one_process_lost_are_lost() {
        assert_eq!(figures(&[LinkReport::default()]).gone, None);
        let lost = LinkReport { gone: Some("its thread panicked".to_owned()), ..LinkReport::default() };
        assert_eq!(figures(&[LinkReport::default(), lost]).gone.as_deref(), Some("its thread panicked"));
    }

    fn snapshot(cpu_ns: u64) -> Snapshot {
        Snapshot {
            links: vec![],
            strays: Strays::default(),
            lateness: Lateness::none(),
            read_wait: Lateness::none(),
            trunk: None,
            cpu_ns,
            realtime: false,
        }
    }

    #[test]
    fn a_cpu_time_that_a_thread_did_not_leave_is_not_0() {
        let between = |before, after| cpu_ns([&snapshot(before), &snapshot(after)]);
        assert_eq!([between(9, 12), between(9, 9)], [Some(3), Some(0)]);
        assert_eq!([between(9, 0), between(0, 0), between(0, 9)], [None; 3]);
    }

    #[test]
    fn links_whose_emulation_or_relay_is_lost_are_lost() {
        let why = || "it was silent for 3 s".to_owned();
        assert!(LinkReport { relay: Some(Err(why())), ..LinkReport::default() }.is_lost());
        assert!(LinkReport { gone: Some(why()), ..LinkReport::default() }.is_lost());
        let relay = Some(Ok(RelayReport { refused: 7, ..RelayReport::default() }));
        assert!(!LinkReport { relay, ..LinkReport::default() }.is_lost());
        assert!(!LinkReport::default().is_lost());
    }

    #[test]
    fn sockets_that_relays_closed_are_summed() {
        let report = |closed| {
            let relay = RelayReport { closed, ..RelayReport::default() };
            LinkReport { relay: Some(Ok(relay)), ..LinkReport::default() }
        };
        let found = figures(&[report(2), report(5)]).relay.unwrap_or_default();
        assert_eq!((found.closed, found.exhausted), (7, 0));
    }

    #[test]
    fn losses_of_a_trunk_are_those_of_the_run_and_its_times_those_of_the_window() {
        let snapshot = |unsent, unsent_errno, negative| {
            let counters = TrunkCounters { unsent, unsent_errno, negative, ..TrunkCounters::default() };
            Snapshot { trunk: Some(TrunkSnapshot { counters, transit: Lateness::none() }), ..snapshot(0) }
        };
        let ends = [snapshot(1, 1, 5), snapshot(1, 1, 7), snapshot(2, 1, 9)];
        let found = trunk(ends.each_ref()).unwrap_or_default();
        assert_eq!((found.figures.unsent, found.negative), (2, 2));
        assert_eq!(found.figures.unsent_error.as_deref(), Some("Operation not permitted (os error 1)"));
        let found = trunk([&snapshot(0, 0, 0), &snapshot(0, 0, 0), &snapshot(0, 0, 0)]).unwrap_or_default();
        assert_eq!(found.figures.unsent_error, None);
    }

    #[test]
    fn what_is_left_is_known_only_if_every_process_knows_it() {
        let report = |relay_bytes| LinkReport { relay_bytes, link_bytes: Some(7), ..LinkReport::default() };
        assert_eq!(left_bytes(&[report(Some(3)), report(Some(4))]), [Some(7), Some(14)]);
        assert_eq!(left_bytes(&[report(Some(3)), report(None)]), [None, Some(14)]);
    }
}
