//! Rules on emulated links: they must be as requested, and the emulator must keep up.

use super::limits::{Limits, p99_or_max};
use super::{Finding, Measure, VerdictInput};
use crate::links::{LinkBackEnd, LinkFigures, TrunkFigures};
use crate::quantity::{count, counted, micros};
use crate::record::{CheckLimits, CheckUnit, Status, VerdictStatus};

/// Most conditions that a verdict names.
const SHOWN: usize = 3;
/// Packets of a trunk that may be under way at the edges of the window, or be counted on its other side by the next node: this
/// share of those sent,
const UNDER_WAY_SHARE: f64 = 0.01;
/// or this number, if that is more, but no more than half of those sent.
const UNDER_WAY: u64 = 1_000;

/// Rule V17.
pub(super) fn as_requested(input: &VerdictInput) -> Option<Finding> {
    let links = input.links?;
    let measured = links.checks().filter(|(_, _, check)| check.as_requested.is_some()).count();
    let mut broken: Vec<String> = links
        .checks()
        .filter(|(_, _, check)| check.as_requested == Some(false))
        .map(|(group, direction, check)| {
            let (name, link) = (&group.group, &group.link);
            format!(
                "{} of `{link}` {direction} ({name}): configured {}, measured {}",
                check.name, check.requested, check.measured
            )
        })
        .collect();
    let measure = Measure::suspect_above(broken.len() as f64, 0.0, CheckUnit::LinkConditions);
    if broken.is_empty() {
        let mut text = format!("{measured} of {} conditions measured, all as configured", links.checks().count());
        let steps = links.steps_not_probed();
        if steps > 0 {
            let word = if steps == 1 { "step" } else { "steps" };
            text.push_str(&format!("; {} later {word} of series not measured", count(steps)));
        }
        return Some(Finding::valid(text).of(measure));
    }
    if broken.len() > SHOWN {
        let left = broken.split_off(SHOWN).len();
        broken.push(format!("and {left} more of {measured} measured, in the table of links"));
    }
    Some(
        Finding::new(
            VerdictStatus::Suspect,
            broken.join("; "),
            "run again; if it happens again, use a machine with free cores",
        )
        .of(measure),
    )
}

/// Rule V18.
pub(super) fn kept_up(input: &VerdictInput) -> Option<Finding> {
    let links = input.links?;
    if let Some(why) = &links.gone {
        let finding = format!("the links were lost: {why}");
        let hint = "run again; if it happens again, report it with this text";
        return Some(Finding::new(VerdictStatus::Invalid, finding, hint));
    }
    if let Some(why) = links.relay.as_ref().and_then(|relay| relay.gone.as_ref()) {
        let finding = format!("the relay from the links to the system was lost: {why}");
        return Some(Finding::new(
            VerdictStatus::Invalid,
            finding,
            "run again; something on this machine ended or stopped it",
        ));
    }
    // Before the datagrams that the relay dropped for the same reason.
    let exhausted = links.relay.as_ref().map_or(0, |relay| relay.exhausted);
    if exhausted > 0 {
        let finding = format!("the relay had no descriptor or port for {} connections", count(exhausted));
        let hint = "raise the limit of open files (`ulimit -Hn` as root), or use fewer devices";
        let measure = Measure::none_allowed(exhausted, CheckUnit::Connections);
        return Some(Finding::new(VerdictStatus::Invalid, finding, hint).of(measure));
    }
    let by_trunk = |trunk: &TrunkFigures| lost_by_trunk(trunk).or_else(|| lost_on_a_broken_way(input.status, trunk));
    if let Some(finding) = links.trunk.as_ref().and_then(by_trunk) {
        return Some(finding);
    }
    let unexpected = links.unexpected_drops();
    if unexpected > 0 {
        let finding = format!("{unexpected} packets were dropped that no link was configured to lose");
        let hint = "fewer messages, or a machine with free cores";
        let measure = Measure::none_allowed(unexpected, CheckUnit::Packets);
        return Some(Finding::new(VerdictStatus::Invalid, finding, hint).of(measure));
    }
    let Some(lateness) = &links.lateness else {
        let sides = links.groups.iter().flat_map(|group| [&group.up, &group.down]);
        let entered = sides.map(|side| side.traffic.entered_packets).fold(0, u64::saturating_add);
        let finding = match (links.back_end, entered) {
            (LinkBackEnd::KernelNetem, _) => "the kernel emulated the links; its delays were not measured".to_owned(),
            (LinkBackEnd::UserSpace, 0) => "no packet went through a link".to_owned(),
            (LinkBackEnd::UserSpace, _) => format!(
                "the links delayed none of the {} packets that entered; {}",
                count(entered),
                read_wait(links).unwrap_or_else(|| "how long they waited for the emulator is not known".to_owned())
            ),
        };
        return Some(Finding::valid(finding));
    };
    let (lateness_us, which) = p99_or_max(lateness);
    let latency_us = input.latency.filter(|_| !input.settings.flood).map(|latency| p99_or_max(latency).0);
    let limits = Limits::of_a_link(latency_us);
    let read = read_wait(links).map(|words| format!("; {words}")).unwrap_or_default();
    let finding = format!("packets handed on late by {which} {}: {}{read}", micros(lateness_us), limits.words());
    let hint = "a machine with free cores, or root for real-time priority";
    Some(Finding::new(limits.judge(lateness_us), finding, hint).of(limits.measure(lateness_us)))
}

/// What the trunk between nodes is known to have lost by the numbers of its packets; `None` if they lack nothing.
fn lost_by_trunk(trunk: &TrunkFigures) -> Option<Finding> {
    if let Some(why) = &trunk.gone {
        let finding = format!("it is not known what the trunk between the links of the nodes lost: {why}");
        return Some(Finding::new(
            VerdictStatus::Invalid,
            finding,
            "run again; the output of that node contains the reason",
        ));
    }
    let lost = trunk.missing.saturating_add(trunk.unsent);
    if lost == 0 {
        return None;
    }
    let error = trunk.unsent_error.as_ref();
    let unsent = error.map_or(String::new(), |error| {
        format!("; the kernel of a sender did not accept {} of them ({error})", count(trunk.unsent))
    });
    let finding =
        format!("the trunk between the links of the nodes lost {}{unsent}", counted(lost, "packet", "packets"));
    let hint = "lower the rate, raise `net.core.rmem_max` and `net.core.wmem_max` on the nodes, or use a network between them that \
                loses no datagrams";
    let measure = Measure::none_allowed(lost, CheckUnit::Packets);
    Some(Finding::new(VerdictStatus::Invalid, finding, hint).of(measure))
}

/// What a trunk without missing numbers lost all the same: after the last packet that came from one end to another, no later one
/// shows a loss. `None` where the packets that are under way at the edges of the window explain the difference, and for a run
/// that was stopped, whose processes do not stop at one time.
fn lost_on_a_broken_way(status: Status, trunk: &TrunkFigures) -> Option<Finding> {
    let (sent, received) = (trunk.sent_packets, trunk.received_packets);
    let lost = sent.saturating_sub(received);
    let under_way = f64::max(UNDER_WAY_SHARE * sent as f64, UNDER_WAY.min(sent / 2) as f64);
    if status != Status::Complete || lost as f64 <= under_way {
        return None;
    }
    let refused = match trunk.refused {
        0 => String::new(),
        many => format!("; {} refused", counted(many, "datagram was", "datagrams were")),
    };
    let finding = format!(
        "the trunk between the links of the nodes received {} of {} sent in the window{refused}",
        count(received),
        counted(sent, "packet", "packets")
    );
    let hint = "look at the network between the nodes: it stopped carrying datagrams, or changes their addresses";
    let limits = CheckLimits { valid: under_way, suspect: Some(under_way) };
    let measure = Measure { value: lost as f64, limits, unit: CheckUnit::Packets };
    Some(Finding::new(VerdictStatus::Invalid, finding, hint).of(measure))
}

/// How long packets waited for the emulator to read them. An upper bound, so that it is shown and not judged.
fn read_wait(links: &LinkFigures) -> Option<String> {
    let waits = links.read_wait.as_ref()?;
    let (wait_us, which) = p99_or_max(waits);
    Some(format!(
        "they were read within {which} {}, without the time that the emulator needed to wake up",
        micros(wait_us)
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::links::{LinkBackEnd, LinkCheck, LinkDirection, LinkFigures, LinkGroup, RelayFigures, TrunkFigures};
    use crate::record::VerdictStatus;
    use crate::sample::{self, Shape};
    use crate::verdict::{VerdictInput, judge};

    fn check(as_requested: Option<bool>) -> LinkCheck {
        let [name, requested, measured] = ["delay", "10 ms", "12 ms"].map(str::to_owned);
        LinkCheck { name, requested, measured, as_requested }
    }

    fn status(code: &str, change: impl FnOnce(&mut LinkFigures)) -> (VerdictStatus, String) {
        let up = LinkDirection { checks: vec![check(Some(true)), check(None)], ..LinkDirection::default() };
        let group = LinkGroup { group: "meters".to_owned(), link: "gprs".to_owned(), up, ..LinkGroup::default() };
        let mut links = LinkFigures { groups: vec![group], ..LinkFigures::default() };
        change(&mut links);
        let mut record = sample::record();
        record.conditions.links = Some(links);
        let verdict = judge(&VerdictInput::of(&record));
        let found = verdict.checks.into_iter().find(|check| check.code == code).unwrap();
        (found.status, found.text)
    }

    #[test]
    fn a_condition_that_is_not_as_requested_makes_a_run_suspect() {
        let (found, words) = status("V17", |_| {});
        assert_eq!((found, words.as_str()), (VerdictStatus::Valid, "1 of 2 conditions measured, all as configured"));
        let (found, words) = status("V17", |links| {
            let steps = |count| vec!["10 ms".to_owned(); count];
            (links.groups[0].up.requested, links.groups[0].down.requested) = (steps(1_201), steps(4));
        });
        assert_eq!(found, VerdictStatus::Valid);
        assert_eq!(words, "1 of 2 conditions measured, all as configured; 1,203 later steps of series not measured");
        let (_, words) = status("V17", |links| links.groups[0].down.checks = vec![check(Some(false)); 5]);
        assert!(words.ends_with("; and 2 more of 6 measured, in the table of links"), "{words}");
        let (found, words) = status("V17", |links| links.groups[0].down.checks.push(check(Some(false))));
        assert_eq!(found, VerdictStatus::Suspect);
        assert_eq!(words, "delay of `gprs` down (meters): configured 10 ms, measured 12 ms");
    }

    #[test]
    fn links_that_only_lose_packets_have_no_lateness_and_are_not_called_unused() {
        let words = |entered, back_end| {
            let (found, words) = status("V18", |links| {
                links.back_end = back_end;
                links.groups[0].down.traffic.entered_packets = entered;
            });
            assert_eq!(found, VerdictStatus::Valid);
            words
        };
        assert_eq!(words(0, LinkBackEnd::UserSpace), "no packet went through a link");
        let expected = "the links delayed none of the 2,000 packets that entered; how long they waited for the emulator is \
                        not known";
        assert_eq!(words(2_000, LinkBackEnd::UserSpace), expected);
        assert_eq!(
            words(2_000, LinkBackEnd::KernelNetem),
            "the kernel emulated the links; its delays were not measured"
        );
    }

    #[test]
    fn the_wait_for_the_emulator_to_read_is_named_and_changes_no_verdict() {
        let summary = |p99| {
            let mut summary = Shape { median_us: 1.0, tail: 0.1, count: 10_000 }.summary();
            summary.p99 = Some(p99);
            Some(summary)
        };
        let expected = "they were read within p99 800 ms, without the time that the emulator needed to wake up";
        let (found, words) = status("V18", |links| {
            (links.lateness, links.read_wait) = (summary(90.0), summary(800_000.0));
        });
        assert_eq!(found, VerdictStatus::Valid);
        assert!(words.starts_with("packets handed on late by p99 90") && words.ends_with(expected), "{words}");
        let (found, words) = status("V18", |links| {
            links.read_wait = summary(800_000.0);
            links.groups[0].down.traffic.entered_packets = 2_000;
        });
        assert_eq!(found, VerdictStatus::Valid);
        assert_eq!(words, format!("the links delayed none of the 2,000 packets that entered; {expected}"));
    }

    #[test]
    fn packets_that_the_trunk_lost_make_a_run_invalid_and_those_of_strangers_do_not() {
        let trunk = |change: &dyn Fn(&mut TrunkFigures)| {
            let mut trunk = TrunkFigures::default();
            change(&mut trunk);
            status("V18", |links| links.trunk = Some(trunk))
        };
        assert_eq!(trunk(&|_| {}).0, VerdictStatus::Valid);
        assert_eq!(trunk(&|trunk| trunk.refused = 9).0, VerdictStatus::Valid);
        let (found, words) = trunk(&|trunk| (trunk.missing, trunk.unsent) = (2_000, 1));
        assert_eq!(found, VerdictStatus::Invalid);
        assert_eq!(words, "the trunk between the links of the nodes lost 2,001 packets");
        let (_, words) = trunk(&|trunk| (trunk.unsent, trunk.unsent_error) = (1, Some("not permitted".to_owned())));
        assert!(
            words.ends_with("lost 1 packet; the kernel of a sender did not accept 1 of them (not permitted)"),
            "{words}"
        );
        let (found, words) = trunk(&|trunk| trunk.gone = Some("`b` did not report it".to_owned()));
        assert_eq!(found, VerdictStatus::Invalid);
        assert!(words.ends_with("of the nodes lost: `b` did not report it") && !words.contains("relay"), "{words}");
    }

    #[test]
    fn a_trunk_that_carries_nothing_any_more_makes_a_run_invalid_although_no_number_is_missing() {
        let trunk = |sent_packets, received_packets, refused| {
            let trunk = TrunkFigures { sent_packets, received_packets, refused, ..TrunkFigures::default() };
            status("V18", |links| links.trunk = Some(trunk))
        };
        for (sent, received) in [(0, 0), (10, 5), (3_000, 2_000), (1_000_000, 990_000), (5, 9_000)] {
            assert_eq!(trunk(sent, received, 0).0, VerdictStatus::Valid, "{sent} sent, {received} received");
        }
        for (sent, received) in [(10, 4), (1_500, 0), (3_000, 1_999), (1_000_000, 989_999)] {
            assert_eq!(trunk(sent, received, 0).0, VerdictStatus::Invalid, "{sent} sent, {received} received");
        }
        let (_, words) = trunk(40_000, 20_000, 1);
        let expected = "the trunk between the links of the nodes received 20,000 of 40,000 packets sent in the window; \
                        1 datagram was refused";
        assert_eq!(words, expected);
        let (found, words) = status("V18", |links| {
            let (sent_packets, missing) = (40_000, 7);
            links.trunk = Some(TrunkFigures { sent_packets, missing, ..TrunkFigures::default() });
        });
        assert_eq!(found, VerdictStatus::Invalid);
        assert!(words.ends_with("of the nodes lost 7 packets"), "what is known exactly comes first: {words}");
    }

    #[test]
    fn packets_dropped_unexpectedly_make_a_run_invalid_and_late_ones_are_held_against_the_latency() {
        assert_eq!(status("V18", |_| {}).0, VerdictStatus::Valid);
        assert_eq!(status("V18", |links| links.queue_drops = 1).0, VerdictStatus::Invalid);
        assert_eq!(status("V18", |links| links.overflowed = Some(1)).0, VerdictStatus::Invalid);
        let (found, words) = status("V18", |links| links.gone = Some("the emulator has stopped".to_owned()));
        assert_eq!(found, VerdictStatus::Invalid);
        assert_eq!(words, "the links were lost: the emulator has stopped");
        let relay = |change: &dyn Fn(&mut RelayFigures)| {
            let mut relay = RelayFigures::default();
            change(&mut relay);
            status("V18", |links| links.relay = Some(relay))
        };
        assert_eq!(relay(&|_| {}).0, VerdictStatus::Valid);
        assert_eq!(relay(&|relay| relay.down.dropped = 1).0, VerdictStatus::Invalid);
        assert_eq!(relay(&|relay| relay.refused = 1).0, VerdictStatus::Valid, "that is the system's");
        let (found, words) = relay(&|relay| (relay.exhausted, relay.up.dropped) = (2, 2));
        assert_eq!(found, VerdictStatus::Invalid);
        assert_eq!(words, "the relay had no descriptor or port for 2 connections");
        let (found, words) = relay(&|relay| relay.gone = Some("it was killed".to_owned()));
        assert_eq!(found, VerdictStatus::Invalid);
        assert!(words.contains("was lost: it was killed"), "{words}");
        for (p99_us, expected) in [(90.0, VerdictStatus::Valid), (100_000.0, VerdictStatus::Invalid)] {
            let mut lateness = Shape { median_us: 1.0, tail: 0.1, count: 10_000 }.summary();
            lateness.p99 = Some(p99_us);
            assert_eq!(status("V18", |links| links.lateness = Some(lateness)).0, expected, "{p99_us}");
        }
    }
}
