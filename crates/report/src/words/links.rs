//! Emulated links in words.

use pubmark_record::links::{
    LinkBackEnd, LinkDirection, LinkFigures, LinkGroup, LinkTraffic, RelayFigures, RelayTraffic, TrunkFigures,
};

use crate::numbers::{MISSING, count, counted, share, time};

/// One line per link: description and traffic. Groups behind equal links share a line.
pub fn links(links: &LinkFigures) -> Vec<String> {
    let mut alike: Vec<(LinkGroup, usize)> = vec![];
    for group in &links.groups {
        let is_equal = |known: &LinkGroup| {
            let requested = |group: &LinkGroup| [group.up.requested.clone(), group.down.requested.clone()];
            known.link == group.link && requested(known) == requested(group)
        };
        match alike.iter_mut().find(|(known, _)| is_equal(known)) {
            Some((known, count)) => {
                *count += 1;
                add(&mut known.up, &group.up);
                add(&mut known.down, &group.down);
            }
            None => alike.push((group.clone(), 1)),
        }
    }
    let named = |(group, count): (LinkGroup, usize)| match count {
        1 => link(&group),
        _ => link(&LinkGroup { group: counted(count as u64, "group", "groups"), ..group }),
    };
    alike.into_iter().map(named).collect()
}

/// Adds a direction to the sum that one line shows.
fn add(sum: &mut LinkDirection, other: &LinkDirection) {
    sum.checks.extend(other.checks.iter().cloned());
    sum.traffic = LinkTraffic {
        entered_packets: sum.traffic.entered_packets.saturating_add(other.traffic.entered_packets),
        lost: sum.traffic.gone().saturating_add(other.traffic.gone()),
        ..LinkTraffic::default()
    };
}

/// A group's link in one line.
fn link(group: &LinkGroup) -> String {
    let side = |name: &str, side: &LinkDirection| {
        let gone = side.traffic.gone();
        let packets = side.traffic.entered_packets;
        let requested = side.requested.first().map_or("nothing", String::as_str);
        let steps = side.requested.len();
        let series = if steps > 1 { format!(" and {} more steps", steps - 1) } else { String::new() };
        let unlike = side.checks.iter().filter(|check| check.as_requested == Some(false)).count();
        let unlike = if unlike > 0 { format!(" ({unlike} not as requested)") } else { String::new() };
        format!(
            "{name} {requested}{series}{unlike}, {} of {} packets lost ({})",
            count(gone),
            count(packets),
            share(gone, packets)
        )
    };
    let same = group.up.requested == group.down.requested
        && group.up.checks.iter().all(|check| check.as_requested != Some(false));
    let down = if same && group.down.checks.iter().all(|check| check.as_requested != Some(false)) {
        let traffic = &group.down.traffic;
        let gone = traffic.gone();
        format!("down the same, {} of {}", count(gone), count(traffic.entered_packets))
    } else {
        side("down", &group.down)
    };
    format!("{} over {}: {}; {down}", group.group, group.link, side("up", &group.up))
}

/// The relay to a system that was already running, in one line.
pub fn relay(relay: &RelayFigures) -> String {
    if let Some(why) = &relay.gone {
        return format!("relay to the system: lost ({why})");
    }
    let added = |way: &RelayTraffic| {
        let times = way.added.as_ref();
        format!("p50 {}, p99 {}", time(times.and_then(|times| times.p50)), time(times.and_then(|times| times.p99)))
    };
    let failed = |number: u64, how: &str| if number > 0 { format!(", {} {how}", count(number)) } else { String::new() };
    let refused = failed(relay.refused, "refused by the system");
    let exhausted = failed(relay.exhausted, "for which the relay had no descriptor or port");
    let closed = match relay.closed {
        0 => String::new(),
        many => {
            format!(", {} closed to make room", counted(many, "socket of a silent client", "sockets of silent clients"))
        }
    };
    format!(
        "relay to the system{}: added {} up and {} down, held a byte at most {}; {}{refused}{exhausted}{closed}; {} s of CPU",
        if relay.realtime { " with real-time priority" } else { "" },
        added(&relay.up),
        added(&relay.down),
        time(Some(relay.longest_held_us)),
        counted(relay.connections, "connection", "connections"),
        crate::numbers::significant(relay.cpu_s),
    )
}

/// The trunk between the links of several nodes, in one line.
pub fn trunk(trunk: &TrunkFigures) -> String {
    if let Some(why) = &trunk.gone {
        return format!("trunk between the links of the nodes: not known ({why})");
    }
    let transit = trunk.transit.as_ref();
    let refused = match trunk.refused {
        0 => String::new(),
        many => format!("; {} refused", counted(many, "datagram", "datagrams")),
    };
    format!(
        "trunk between the links of the nodes: {} of {} received, in transit p50 {}, p99 {} with the error of the clocks; {} lost{refused}",
        count(trunk.received_packets),
        counted(trunk.sent_packets, "packet", "packets"),
        time(transit.and_then(|transit| transit.p50)),
        time(transit.and_then(|transit| transit.p99)),
        count(trunk.missing.saturating_add(trunk.unsent)),
    )
}

/// The emulator of the links, in one line.
pub fn emulator(links: &LinkFigures) -> String {
    if let Some(why) = &links.gone {
        return format!("emulated by {}: lost ({why})", links.back_end);
    }
    let unexpected = counted(links.unexpected_drops(), "packet", "packets");
    let differs: String = links.differences.iter().map(|how| format!("; {how}")).collect();
    let tcp = &links.congestion_control;
    if links.back_end == LinkBackEnd::KernelNetem {
        return format!("emulated by {}, TCP by {tcp}; {unexpected} dropped unexpectedly{differs}", links.back_end);
    }
    let lateness = links.lateness.as_ref();
    format!(
        "emulated in {}{}, TCP by {tcp}; packets handed on late by p99 {}, at most {}; {unexpected} dropped unexpectedly; {} s of \
         CPU{differs}",
        links.back_end,
        if links.realtime { " with real-time priority" } else { "" },
        time(lateness.and_then(|lateness| lateness.p99)),
        time(lateness.map(|lateness| lateness.max)),
        links.cpu_s.map_or_else(|| MISSING.to_owned(), crate::numbers::significant),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_emulator_that_ended_only_the_reason_is_printed() {
        let gone = Some("its thread panicked".to_owned());
        let links = LinkFigures { gone, ..LinkFigures::default() };
        assert_eq!(emulator(&links), format!("emulated by {}: lost (its thread panicked)", links.back_end));
    }

    #[test]
    fn what_the_trunk_lost_and_refused_is_printed() {
        let found = trunk(&TrunkFigures {
            sent_packets: 2_003,
            received_packets: 2_000,
            missing: 2,
            unsent: 1,
            ..TrunkFigures::default()
        });
        assert!(found.contains(": 2,000 of 2,003 packets received") && found.ends_with("; 3 lost"), "{found}");
        let found = trunk(&TrunkFigures { refused: 1, ..TrunkFigures::default() });
        assert!(found.ends_with("; 0 lost; 1 datagram refused"), "{found}");
        let found = trunk(&TrunkFigures { gone: Some("no report".to_owned()), ..TrunkFigures::default() });
        assert!(found.ends_with(": not known (no report)"), "{found}");
    }

    #[test]
    fn what_the_relay_lacked_is_not_said_of_the_system() {
        let words = |refused, exhausted| relay(&RelayFigures { refused, exhausted, ..RelayFigures::default() });
        assert!(!words(0, 0).contains("refused") && !words(0, 0).contains("descriptor"), "{}", words(0, 0));
        let found = words(3, 2_000);
        let expected = ", 3 refused by the system, 2,000 for which the relay had no descriptor or port; ";
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn sockets_that_made_room_for_others_are_printed() {
        let words = |closed| relay(&RelayFigures { connections: 9, exhausted: 1, closed, ..RelayFigures::default() });
        assert!(!words(0).contains("closed"), "{}", words(0));
        let expected = "no descriptor or port, 2,000 sockets of silent clients closed to make room; ";
        assert!(words(2_000).contains(expected), "{}", words(2_000));
        assert!(words(1).contains(", 1 socket of a silent client closed to make room; "), "{}", words(1));
    }

    #[test]
    fn a_cpu_time_that_is_not_known_is_not_taken_for_the_kernels_emulation() {
        let words = |back_end, cpu_s| emulator(&LinkFigures { back_end, cpu_s, ..LinkFigures::default() });
        let found = words(LinkBackEnd::UserSpace, None);
        assert!(found.starts_with("emulated in user space") && found.ends_with("; — s of CPU"), "{found}");
        assert!(words(LinkBackEnd::UserSpace, Some(3.1)).ends_with("; 3.10 s of CPU"));
        assert!(words(LinkBackEnd::KernelNetem, None).starts_with("emulated by kernel netem, TCP by"));
    }
}
