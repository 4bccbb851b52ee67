//! Faults in words.

use pubmark_record::faults::{
    FaultConnections, FaultLatency, FaultRow, LevelBooks, Promise, PromiseVerdict, Reconnect,
};

use crate::numbers::{MISSING, count, counted, seconds, significant, time};

/// Text for connections that were not restored in time.
const NOT_BACK: &str = "not back by the next fault or the end";

/// The fault and its time: `kill of the system at 30 s for 5 s`.
pub fn fault(fault: &FaultRow) -> String {
    let length = fault.requested_for_s.map_or_else(String::new, |length_s| format!(" for {}", seconds(length_s)));
    let failure = fault.failure.as_ref().map_or_else(String::new, |failure| format!(" (failed: {failure})"));
    format!("{} of {} at {}{length}{failure}", fault.kind, fault.target, seconds(fault.requested_at_s))
}

/// Effects on the clients.
pub fn fault_connections(fault: &FaultRow) -> String {
    let found = &fault.connections;
    if found.lost == 0 {
        return format!("no client of {} lost its connection", count(found.connected));
    }
    let mut parts = vec![format!("{} of {} connections lost", count(found.lost), count(found.connected))];
    parts.push(format!("noticed after {} to {}", after(found.first_detected_s), after(found.last_detected_s)));
    let away = found.lost.saturating_sub(found.reconnected + found.planned);
    parts.push(match found.all_reconnected_s {
        Some(_) => format!("all back after {}{}", after(found.all_reconnected_s), storm(found)),
        None if away == 0 => "all left as planned".to_owned(),
        None => format!("{} {NOT_BACK}", counted(away, "client", "clients")),
    });
    if found.sessions_lost > 0 {
        let all = found.sessions_resumed + found.sessions_lost;
        parts.push(format!("{} of {} persistent sessions lost", count(found.sessions_lost), count(all)));
    }
    parts.join(", ")
}

/// Fewest reconnecting clients for which the peak reconnect rate is reported.
const STORM: u64 = 10;

fn storm(found: &FaultConnections) -> String {
    let peak = found.peak_reconnects_per_s.filter(|_| found.reconnected >= STORM);
    peak.map_or_else(String::new, |peak| format!(" (at most {} in a second)", count(peak)))
}

/// Effects on latency.
pub fn fault_latency(latency: Option<&FaultLatency>) -> String {
    // Records of earlier versions have figures without a time where no bin was examined.
    let examined = latency.filter(|found| found.disturbed || found.recovered_after_s.is_some());
    let Some(found) = examined else {
        return format!("latency {MISSING} (too few messages, or too little time after the fault)");
    };
    let (name, worst) = (&found.quantile, time(found.worst_us));
    let before = time(Some(found.before_us));
    match (found.disturbed, found.recovered_after_s) {
        (false, _) => format!("latency ({name}) as before, {before}"),
        (true, Some(_)) => {
            format!("latency ({name}) from {before} to {worst}, back after {}", after(found.recovered_after_s))
        }
        (true, None) => format!("latency ({name}) from {before} to {worst}, {NOT_BACK}"),
    }
}

/// Outcomes of the messages of one QoS level.
pub fn fault_messages(level: &LevelBooks) -> String {
    let mut parts = vec![format!("QoS {}: {} of {} lost", level.qos, count(level.lost), count(level.expected))];
    for (number, name) in [
        (level.unknown, "unknown"),
        (level.duplicated, "twice"),
        (level.overdue, "more than 2 s after they were due"),
        (level.skipped_disconnected, "not sent for want of a connection"),
        (level.absent, "sent without a receiver"),
    ] {
        if number > 0 {
            parts.push(format!("{} {name}", count(number)));
        }
    }
    parts.join(", ")
}

/// A guarantee and whether it was kept.
pub fn promise(promise: &Promise) -> String {
    format!("QoS {} {}: {}", promise.qos, promise_word(promise.verdict), promise.observed)
}

/// The verdict on a guarantee.
pub fn promise_word(verdict: PromiseVerdict) -> &'static str {
    match verdict {
        PromiseVerdict::Kept => "kept",
        PromiseVerdict::Broken => "broken",
        PromiseVerdict::Open => "open: cannot be decided",
        PromiseVerdict::NotPromised => "not promised: clean sessions end with their connections",
    }
}

/// How clients reconnect.
pub fn reconnect(reconnect: &Reconnect) -> String {
    let keep_alive = match reconnect.keep_alive_s {
        0 => "without keep-alive".to_owned(),
        found => format!("with a keep-alive of {found} s"),
    };
    format!(
        "clients {keep_alive}; they try again after {}, twice as long after each failure up to {}, each pause drawn between half \
         of it and all",
        seconds(reconnect.first_pause_ms / 1e3),
        seconds(reconnect.longest_pause_ms / 1e3)
    )
}

/// A time since a fault, with three digits.
pub fn after(time_s: Option<f64>) -> String {
    time_s.map_or_else(
        || MISSING.to_owned(),
        |time_s| match time_s {
            time_s if time_s < 1.0 => time(Some(time_s * 1e6)),
            time_s => format!("{} s", significant(time_s)),
        },
    )
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::FaultKind;

    use super::*;

    #[test]
    fn the_effects_of_a_fault_are_shown() {
        let connections = FaultConnections {
            connected: 42,
            lost: 42,
            reconnected: 42,
            first_detected_s: Some(0.0012),
            last_detected_s: Some(0.004),
            all_reconnected_s: Some(2.5),
            peak_reconnects_per_s: Some(31),
            sessions_lost: 21,
            ..FaultConnections::default()
        };
        let mut row = FaultRow {
            kind: FaultKind::Kill,
            target: "the system".to_owned(),
            requested_at_s: 30.0,
            requested_for_s: Some(5.0),
            connections,
            ..FaultRow::default()
        };
        assert_eq!(fault(&row), "kill of the system at 30 s for 5 s");
        assert_eq!(
            fault_connections(&row),
            "42 of 42 connections lost, noticed after 1.20 ms to 4.00 ms, all back after 2.50 s (at most 31 in a second), 21 of 21 persistent sessions lost"
        );
        row.connections = FaultConnections { reconnected: 40, all_reconnected_s: None, ..connections };
        assert!(fault_connections(&row).contains("2 clients not back by the next fault or the end"));
        row.connections = FaultConnections { connected: 3, ..FaultConnections::default() };
        assert_eq!(fault_connections(&row), "no client of 3 lost its connection");
    }

    #[test]
    fn the_effects_on_latency_and_messages_are_shown() {
        assert!(fault_latency(None).contains("too few"));
        let mut found = FaultLatency {
            quantile: "p50".to_owned(),
            before_us: 100.0,
            worst_us: Some(950_000.0),
            disturbed: true,
            recovered_after_s: Some(1.1),
            ..FaultLatency::default()
        };
        assert_eq!(fault_latency(Some(&found)), "latency (p50) from 0.100 ms to 950 ms, back after 1.10 s");
        found.recovered_after_s = None;
        assert!(fault_latency(Some(&found)).ends_with("not back by the next fault or the end"));
        found.disturbed = false;
        assert_eq!(fault_latency(Some(&found)), fault_latency(None), "no bin was examined");
        found.recovered_after_s = Some(0.0);
        assert_eq!(fault_latency(Some(&found)), "latency (p50) as before, 0.100 ms");
        let level = LevelBooks { qos: 1, expected: 1_000, lost: 4, duplicated: 2, ..LevelBooks::default() };
        assert_eq!(fault_messages(&level), "QoS 1: 4 of 1,000 lost, 2 twice");
    }
}
