//! Computes the effects of each fault from the recorded events.

use std::collections::VecDeque;
use std::ops::Range;

use pubmark_record::faults::{FaultConnections, FaultLatency, LevelBooks};

use super::latency::Before;
use super::log::{Event, SessionChange};
use super::outcome::FaultOutcome;

const SECOND_NS: u64 = 1_000_000_000;

/// The period of a fault's effects, ns since the start of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the fault was injected.
    pub done_ns: u64,
    /// When the fault ended; `done_ns` if it has no end, and `until_ns` if that was not reached.
    pub ended_ns: u64,
    /// Start of the next fault, or the window's end.
    pub until_ns: u64,
}

/// The effects of a fault.
#[derive(Clone, Debug)]
pub struct FaultEffects {
    /// Connections.
    pub connections: FaultConnections,
    /// Latency.
    pub latency: Option<FaultLatency>,
    /// Messages.
    pub levels: Vec<LevelBooks>,
}

/// The effects of each fault, in order. `spans` are their periods, `window_start_ns` is an instant of
/// `CLOCK_MONOTONIC`.
pub fn figures(outcome: &FaultOutcome, spans: &[Span], window_start_ns: u64) -> Vec<FaultEffects> {
    let mut events = outcome.notes.events.clone();
    events.sort_by_key(|event| event.at_ns);
    let fine = &outcome.notes.fine;
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let before = outcome.planned.first().and_then(|first| Before::the_first_fault(fine, signed(first.at_ns)));
    let follow = |(number, span): (usize, &Span)| {
        let absolute = |ns: u64| window_start_ns.saturating_add(ns);
        let period_ns = absolute(span.done_ns)..absolute(span.until_ns);
        let last_reconnect_ns = last_reconnect_ns(&events, &period_ns).map(|ns| ns.saturating_sub(window_start_ns));
        let over_ns = last_reconnect_ns.map_or(span.ended_ns, |ns| ns.max(span.ended_ns));
        let mut connections = connections(&events, period_ns);
        let chosen = outcome.planned.get(number).and_then(|fault| fault.connections.as_ref());
        connections.chosen = chosen.and_then(|_| outcome.chosen.get(number).copied());
        FaultEffects {
            connections,
            latency: before
                .as_ref()
                .and_then(|before| before.since(fine, signed(span.done_ns), signed(over_ns), signed(span.until_ns))),
            levels: outcome.books.get(number + 1).map(|levels| levels.to_vec()).unwrap_or_default(),
        }
    };
    spans.iter().enumerate().map(follow).collect()
}

/// Does an event follow a loss in this period?
fn is_of(event: &Event, period_ns: &Range<u64>) -> bool {
    period_ns.contains(&event.at_ns) && event.lost_at_ns.is_some_and(|lost_at_ns| lost_at_ns >= period_ns.start)
}

/// When the last of the clients that reconnected after a loss in this period did so.
fn last_reconnect_ns(events: &[Event], period_ns: &Range<u64>) -> Option<u64> {
    let is_reconnect = |event: &&Event| event.change == SessionChange::Reconnected && is_of(event, period_ns);
    events.iter().rev().find(is_reconnect).map(|event| event.at_ns)
}

/// Counts events in order of time, from the fault until the next one. What follows a loss belongs to the fault of that loss:
/// clients that were away when this fault was done are not among those that it made reconnect.
fn connections(events: &[Event], period_ns: Range<u64>) -> FaultConnections {
    let mut found = FaultConnections::default();
    let done_ns = period_ns.start;
    for event in events.iter().take_while(|event| event.at_ns < done_ns) {
        match event.change {
            SessionChange::Connected | SessionChange::Reconnected => found.connected += 1,
            SessionChange::Lost | SessionChange::Disconnected => found.connected = found.connected.saturating_sub(1),
            SessionChange::Left
            | SessionChange::Failed
            | SessionChange::SessionResumed
            | SessionChange::SessionLost => {}
        }
    }
    let since = |event: &Event| Some((event.at_ns - done_ns) as f64 / 1e9);
    let mut last_back_s = None;
    let mut within_a_second: VecDeque<u64> = VecDeque::new();
    for event in events.iter().filter(|event| is_of(event, &period_ns)) {
        match event.change {
            SessionChange::Lost => {
                found.lost += 1;
                found.first_detected_s = found.first_detected_s.or(since(event));
                found.last_detected_s = since(event);
            }
            SessionChange::Reconnected => {
                found.reconnected += 1;
                found.first_reconnected_s = found.first_reconnected_s.or(since(event));
                within_a_second.push_back(event.at_ns);
                while within_a_second.front().is_some_and(|first| event.at_ns - first >= SECOND_NS) {
                    within_a_second.pop_front();
                }
                found.peak_reconnects_per_s = found.peak_reconnects_per_s.max(Some(within_a_second.len() as u64));
                last_back_s = since(event);
            }
            SessionChange::Left => found.planned += 1,
            SessionChange::Failed => found.failed_tries += 1,
            SessionChange::SessionResumed => found.sessions_resumed += 1,
            SessionChange::SessionLost => found.sessions_lost += 1,
            SessionChange::Connected | SessionChange::Disconnected => {}
        }
    }
    found.all_reconnected_s = last_back_s.filter(|_| found.reconnected + found.planned >= found.lost);
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_metrics::fine::FineSeries;

    use super::super::log::{FaultLog, FaultNotes};
    use super::super::planned::PlannedFault;
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn client_events_count_from_the_fault_on() {
        use SessionChange::{Connected, Failed, Lost, Reconnected, SessionLost, SessionResumed};
        let first = |at_ns: u64| Event { at_ns, change: Connected, lost_at_ns: None };
        let event = |at_ns: u64, change, lost_at_ns| Event { at_ns, change, lost_at_ns: Some(lost_at_ns) };
        let (one, two) = (10 * S + S / 10, 10 * S + S / 5);
        let mut events = vec![first(1), first(2), first(3)];
        events.extend([event(one, Lost, one), event(two, Lost, two), event(11 * S, Failed, one)]);
        events.extend([
            event(12 * S, SessionResumed, one),
            event(12 * S, Reconnected, one),
            event(13 * S, SessionLost, two),
            event(14 * S, Reconnected, two),
        ]);
        events.push(event(20 * S, Lost, 20 * S));
        let found = connections(&events, 10 * S..20 * S);
        assert_eq!((found.connected, found.lost, found.reconnected, found.failed_tries), (3, 2, 2, 1));
        assert_eq!((found.first_detected_s, found.last_detected_s), (Some(0.1), Some(0.2)));
        assert_eq!((found.first_reconnected_s, found.all_reconnected_s), (Some(2.0), Some(4.0)));
        assert_eq!((found.sessions_resumed, found.sessions_lost), (1, 1));
        assert_eq!(found.peak_reconnects_per_s, Some(1), "two seconds lie between the two");
        let found = connections(&events, 20 * S..30 * S);
        assert_eq!((found.connected, found.lost, found.reconnected, found.all_reconnected_s), (3, 1, 0, None));
        assert_eq!(found.peak_reconnects_per_s, None);
        let nothing = connections(&events, 15 * S..20 * S);
        assert_eq!((nothing.lost, nothing.first_detected_s, nothing.all_reconnected_s), (0, None, None));
    }

    /// Three of five clients are still away at the second fault, which resets the other two.
    #[test]
    fn clients_that_an_earlier_fault_disconnected_do_not_count_for_a_later_one() {
        let mut logs = [FaultLog::new([].into(), vec![], 0), FaultLog::new([].into(), vec![], 0)];
        // Of two shards, each with sessions of these numbers.
        let note = |logs: &mut [FaultLog; 2], session: u32, change, at_ns| {
            logs[session as usize % 2].note(session / 2, change, at_ns);
        };
        (0..5).for_each(|session| note(&mut logs, session, SessionChange::Connected, 1));
        (0..3).for_each(|session| note(&mut logs, session, SessionChange::Lost, 10 * S));
        (3..5).for_each(|session| note(&mut logs, session, SessionChange::Lost, 20 * S));
        note(&mut logs, 0, SessionChange::Left, 21 * S);
        note(&mut logs, 1, SessionChange::Failed, 21 * S);
        (1..3).for_each(|session| note(&mut logs, session, SessionChange::Connected, 22 * S));
        let [one, other] = logs;
        let mut notes = one.notes;
        notes.merge(other.notes);
        notes.events.sort_by_key(|event| event.at_ns);
        let found = connections(&notes.events, 20 * S..30 * S);
        assert_eq!((found.connected, found.lost, found.reconnected), (2, 2, 0));
        assert_eq!((found.planned, found.failed_tries), (0, 0));
        assert_eq!((found.first_reconnected_s, found.all_reconnected_s), (None, None));
        assert_eq!(found.peak_reconnects_per_s, None);
    }

    #[test]
    fn a_storm_s_peak_is_that_of_any_second() {
        let event = |at_ns, change| Event { at_ns, change, lost_at_ns: Some(S) };
        let lost = (0..5).map(|number| event(S + number, SessionChange::Lost));
        let back_ms = [1_500, 2_400, 2_499, 2_501, 3_500];
        let back = back_ms.map(|ms: u64| event(ms * S / 1_000, SessionChange::Reconnected));
        let found = connections(&lost.chain(back).collect::<Vec<_>>(), S..9 * S);
        assert_eq!((found.reconnected, found.peak_reconnects_per_s), (5, Some(3)));
    }

    #[test]
    fn the_latency_is_not_back_before_the_last_client_is() {
        let mut fine = FineSeries::new(0);
        for at_ms in 0..20_000 {
            // One bin only is slow, at the fault.
            let latency_ns = if (10_000..10_100).contains(&at_ms) { 50_000_000 } else { 1_000_000 };
            fine.enter(at_ms * 1_000_000, latency_ns);
        }
        // The window begins at 5 s of the clock.
        let event = |at_ns, change, lost_at_ns| Event { at_ns, change, lost_at_ns: Some(lost_at_ns) };
        let mut events = vec![event(15 * S, SessionChange::Lost, 15 * S)];
        // The second had lost its connection before the fault.
        events
            .extend([event(17 * S, SessionChange::Reconnected, 15 * S), event(19 * S, SessionChange::Reconnected, S)]);
        let planned = PlannedFault { at_ns: 10 * S, length_ns: None, connections: None };
        let outcome = FaultOutcome {
            planned: [planned].into(),
            notes: FaultNotes { events, fine, ..FaultNotes::default() },
            ..FaultOutcome::default()
        };
        let back_s = |ended_ns| {
            let span = Span { done_ns: 10 * S, ended_ns, until_ns: 20 * S };
            figures(&outcome, &[span], 5 * S)[0].latency.as_ref().unwrap().recovered_after_s
        };
        assert_eq!([back_s(10 * S), back_s(13 * S), back_s(20 * S)], [Some(2.0), Some(3.0), None]);
    }
}
