//! Figures of faults in the record: what was planned, what was injected, what followed.

use pubmark_engine::faults::{self, FaultOutcome, Span};
use pubmark_engine::outcome::Outcome;
use pubmark_engine::plan::{BACKOFF, RunPlan};
use pubmark_model::fault::{Fault, Occurrence, Scope};
use pubmark_record::faults::{FaultFigures, FaultRow, LATEST_S, LevelBooks, Reconnect, promises, summed};

use super::FaultTimes;

/// The figures of a run's faults; `None` in a run without any.
pub fn figures(
    plan: &RunPlan,
    outcome: &Outcome,
    occurrences: &[Occurrence],
    done: &[FaultTimes],
) -> Option<FaultFigures> {
    let noted = outcome.faults.as_ref()?;
    let (start_ns, end_ns) = outcome.window_ns;
    let done: Vec<FaultTimes> = occurrences
        .iter()
        .enumerate()
        .map(|(number, occurrence)| match occurrence.kind.scope() {
            Scope::Connections => by_engine(noted, number, occurrence, outcome.window_ns),
            Scope::System | Scope::Links => done.get(number).cloned().unwrap_or_default(),
        })
        .collect();
    let window_ns = end_ns.saturating_sub(start_ns);
    let at = |number: usize| -> u64 {
        let planned_ns = occurrences.get(number).map_or(window_ns, |occurrence| occurrence.at_ns);
        let begun = done.get(number).and_then(|done| done.done_ns).map(|ns| ns.saturating_sub(start_ns));
        begun.unwrap_or(planned_ns).min(window_ns)
    };
    let span = |(number, (occurrence, done)): (usize, (&Occurrence, &FaultTimes))| {
        let (done_ns, until_ns) = (at(number), at(number + 1));
        let ended_ns = lasted_until(done, occurrence.length_ns.is_some(), start_ns, (done_ns, until_ns));
        Span { done_ns, ended_ns, until_ns }
    };
    let spans: Vec<Span> = occurrences.iter().zip(&done).enumerate().map(span).collect();
    let followed = faults::figures(noted, &spans, start_ns);
    let rows: Vec<FaultRow> = occurrences
        .iter()
        .zip(&done)
        .zip(&spans)
        .zip(followed)
        .map(|(((occurrence, done), span), followed)| {
            let since = |ns: Option<u64>| ns.map(|ns| (ns as f64 - start_ns as f64) / 1e9);
            FaultRow {
                kind: occurrence.kind,
                target: fault(plan, occurrence).target(),
                requested_at_s: occurrence.at_ns as f64 / 1e9,
                requested_for_s: occurrence.length_ns.map(|ns| ns as f64 / 1e9),
                done_at_s: since(done.done_ns),
                done_by_s: since(done.by_ns),
                ended_at_s: since(done.ended_ns),
                failure: done.failure.clone(),
                until_s: span.until_ns as f64 / 1e9,
                connections: followed.connections,
                latency: followed.latency,
                levels: used(&followed.levels),
            }
        })
        .collect();
    let before = noted.books.first().map(|levels| used(levels)).unwrap_or_default();
    let all = summed(std::iter::once(before.as_slice()).chain(rows.iter().map(|row| row.levels.as_slice())));
    Some(FaultFigures {
        reconnect: Reconnect {
            first_pause_ms: BACKOFF.0.as_secs_f64() * 1e3,
            longest_pause_ms: BACKOFF.1.as_secs_f64() * 1e3,
            keep_alive_s: u32::from(plan.connections.keep_alive_s),
        },
        faults: rows,
        before,
        promises: promises(&all),
        incomplete: noted.notes.is_cut,
    })
}

fn fault<'a>(plan: &'a RunPlan, occurrence: &Occurrence) -> &'a Fault {
    &plan.workload.faults[occurrence.fault]
}

/// When a fault ended, ns since the window's start at `start_ns`. One without an end lasts no time, and one that was not ended
/// lasts until the end of its period.
fn lasted_until(done: &FaultTimes, has_end: bool, start_ns: u64, (done_ns, until_ns): (u64, u64)) -> u64 {
    match (done.done_ns, done.ended_ns) {
        (_, Some(ended_ns)) => ended_ns.saturating_sub(start_ns).min(until_ns),
        (Some(_), None) if has_end => until_ns,
        _ => done_ns,
    }
}

/// Times of a fault of connections, which the engine's threads inject.
fn by_engine(
    noted: &FaultOutcome,
    number: usize,
    occurrence: &Occurrence,
    (start_ns, window_end_ns): (u64, u64),
) -> FaultTimes {
    let done_ns = noted.notes.broken_at_ns.get(number).copied().flatten();
    let end_ns = start_ns.saturating_add(occurrence.end_ns());
    let late_ns = noted.notes.last_begun_at_ns[number].saturating_sub(start_ns.saturating_add(occurrence.at_ns));
    let failure = not_in_time(noted.notes.missed[number], late_ns as f64 / 1e9);
    FaultTimes {
        done_ns: done_ns.map(|(first_ns, _)| first_ns),
        by_ns: None,
        // Such a fault ends when clients may reconnect, or when they stop trying.
        ended_ns: done_ns
            .zip(occurrence.length_ns)
            .and_then(|((_, last_ns), _)| ended(last_ns, (end_ns, window_end_ns))),
        failure,
    }
}

/// The end of a fault that should end at `end_ns` and broke its last connection at `last_ns`; `None` if the window ended before that, as
/// in a run that was stopped.
fn ended(last_ns: u64, (end_ns, window_end_ns): (u64, u64)) -> Option<u64> {
    (end_ns <= window_end_ns).then_some(last_ns.max(end_ns))
}

/// Why the connections of a fault were not broken as requested; `None` if they were. The last thread began `late_s` late,
/// and `missed` connections belong to threads that had finished.
fn not_in_time(missed: u64, late_s: f64) -> Option<String> {
    if missed > 0 {
        return Some(format!("pubmark did not break {missed} of the connections: their thread was late"));
    }
    (late_s > LATEST_S).then(|| format!("pubmark broke some of the connections {late_s:.1} s late"))
}

/// The levels with entries.
fn used(levels: &[LevelBooks]) -> Vec<LevelBooks> {
    summed([levels])
}

#[cfg(test)]
mod tests {
    use super::{FaultTimes, ended, lasted_until, not_in_time};

    #[test]
    fn a_thread_that_breaks_its_connections_late_or_never_is_named() {
        assert_eq!(not_in_time(0, 0.4), None);
        let late = not_in_time(0, 0.7).unwrap_or_default();
        assert_eq!(late, "pubmark broke some of the connections 0.7 s late");
        let missed = not_in_time(2, 0.7).unwrap_or_default();
        assert_eq!(missed, "pubmark did not break 2 of the connections: their thread was late");
    }

    #[test]
    fn a_fault_that_outlives_the_window_has_no_end() {
        assert_eq!([ended(3, (5, 5)), ended(7, (5, 5)), ended(3, (6, 5))], [Some(5), Some(7), None]);
    }

    #[test]
    fn a_fault_lasts_until_its_end_or_until_the_next_fault() {
        let times = |done_ns, ended_ns| FaultTimes { done_ns, ended_ns, ..FaultTimes::default() };
        let until = |times: &FaultTimes, has_end| lasted_until(times, has_end, 100, (5, 20));
        assert_eq!([until(&times(Some(105), Some(112)), true), until(&times(Some(105), Some(130)), true)], [12, 20]);
        assert_eq!([until(&times(Some(105), None), true), until(&times(Some(105), None), false)], [20, 5]);
        assert_eq!(until(&times(None, None), true), 5, "it was not injected");
    }
}
