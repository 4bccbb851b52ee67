//! The system on trial as a subject: was it there to the end, and had it processors to run on? A system that fails either shows
//! nothing of what it can do.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::{count, percent};
use crate::record::{CheckUnit, VerdictStatus};

/// Share of a system's time that it may wait for processors that others have, with real-time pubmark among them.
const WAIT_OF_REALTIME: f64 = 0.25;
/// The same where all compete as equals: from here on it waited longer than it ran.
const WAIT_OF_EQUALS: f64 = 0.50;
/// Wait below this is not held against a run, as a share of the window: an idle system's few wake-ups may all wait.
const WAIT_FLOOR: f64 = 0.10;

/// V25; says nothing where no end is known of.
pub(super) fn there_to_the_end(input: &VerdictInput) -> Option<Finding> {
    let end = input.system.ended.as_ref()?;
    let when = match end.at_s {
        Some(at_s) if at_s < 0.0 => format!("{:.1} s before the measured window", -at_s),
        Some(at_s) if at_s > input.settings.duration_s => {
            format!("{:.1} s after the measured window", at_s - input.settings.duration_s)
        }
        Some(at_s) => format!("at {at_s:.1} s of the measured window's {:.1} s", input.settings.duration_s),
        None => "during the run".to_string(),
    };
    Some(Finding::new(
        VerdictStatus::Invalid,
        format!("the system ended {when}: {}", end.how),
        "the system's log says why; mend that, and run again",
    ))
}

/// What a system waited for processors that others had.
struct Wait {
    /// The time that can be laid on others, s: not more than they used, and without what a limit that was asked for can explain.
    by_others_s: f64,
    /// The whole, s.
    all_s: f64,
    /// The first over itself and the system's CPU time.
    share: f64,
}

impl Wait {
    fn of(input: &VerdictInput) -> Option<Wait> {
        let usage = input.system_usage?;
        let all_s = usage.run_queue_wait_ns? as f64 / 1e9;
        let window_s = input.settings.duration_s;
        // A system that waits for itself alone would run no sooner without others: they can have kept it from as much as they used.
        let others_s =
            input.environment.busy_cores.map_or(f64::INFINITY, |busy| (busy - usage.cores).max(0.0) * window_s);
        let throttled_s = input.limits.and_then(|limits| limits.throttled_seconds).unwrap_or(0.0);
        let by_limit_s = throttled_s * usage.threads.unwrap_or(1).max(1) as f64;
        let by_others_s = (all_s - by_limit_s).max(0.0).min(others_s);
        let share = by_others_s / (by_others_s + usage.cpu_seconds).max(f64::MIN_POSITIVE);
        Some(Wait { by_others_s, all_s, share })
    }
}

/// V28; says nothing where the wait was not measured.
pub(super) fn had_processors(input: &VerdictInput) -> Option<Finding> {
    let wait = Wait::of(input)?;
    let books = input.delivery;
    let missing = books.lost + books.unknown + books.unsent;
    let is_long = wait.by_others_s >= WAIT_FLOOR * input.settings.duration_s;
    let realtime = input.settings.realtime;
    let most = if realtime { WAIT_OF_REALTIME } else { WAIT_OF_EQUALS };
    let status = match (is_long && wait.share > most, realtime || missing > 0) {
        (false, _) => VerdictStatus::Valid,
        (true, false) => VerdictStatus::Suspect,
        (true, true) => VerdictStatus::Invalid,
    };
    let who = if realtime { "real-time pubmark and others" } else { "others" };
    let mut finding = format!(
        "threads of the system waited {:.2} s for a processor, {:.2} s of it for {who}: {} of its time, valid up to {}",
        wait.all_s,
        wait.by_others_s,
        percent(wait.share),
        percent(most)
    );
    if status == VerdictStatus::Invalid && missing > 0 {
        finding.push_str(&format!("; {} messages are missing or were not sent", count(missing)));
    }
    let hint = match realtime {
        true => "run without `--realtime`, at a lower rate, or on a machine with more cores",
        false => "stop other programs on this machine, lower the rate, or send from another machine (`--nodes`)",
    };
    // The share alone makes no run invalid: messages have to be missing, or pubmark to be what the system waited for.
    Some(Finding::new(status, finding, hint).of(Measure::suspect_above(wait.share, most, CheckUnit::Share)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cost::LimitEffect;
    use crate::record::{Record, SystemEnd};
    use crate::sample;
    use crate::verdict::judge;

    fn found(code: &str, change: impl FnOnce(&mut Record)) -> Option<(VerdictStatus, String)> {
        let mut record = sample::record();
        change(&mut record);
        let checks = judge(&VerdictInput::of(&record)).checks;
        checks.into_iter().find(|check| check.code == code).map(|check| (check.status, check.text))
    }

    #[test]
    fn a_system_that_ended_makes_a_run_invalid_and_is_said_with_how_and_when() {
        assert_eq!(found("V25", |_| {}), None);
        for (at_s, expected) in [
            (Some(0.2), "the system ended at 0.2 s of the measured window's 10.0 s: signal: 9 (SIGKILL)"),
            (Some(-1.0), "the system ended 1.0 s before the measured window: signal: 9 (SIGKILL)"),
            (Some(10.5), "the system ended 0.5 s after the measured window: signal: 9 (SIGKILL)"),
            (None, "the system ended during the run: signal: 9 (SIGKILL)"),
        ] {
            let end =
                SystemEnd { how: "signal: 9 (SIGKILL)".to_owned(), at_s, signal: Some(9), ..SystemEnd::default() };
            let told = found("V25", |record| record.system.ended = Some(end)).unwrap();
            assert_eq!(told, (VerdictStatus::Invalid, expected.to_owned()));
        }
    }

    /// Ten seconds in which the system ran and waited so long, and the machine kept so many cores busy.
    fn waited(run_s: f64, wait_s: f64, busy_cores: f64, change: impl FnOnce(&mut Record)) -> VerdictStatus {
        let told = found("V28", |record| {
            let usage = record.cost.system.as_mut().unwrap();
            (usage.cpu_seconds, usage.cores, usage.threads) = (run_s, run_s / 10.0, Some(1));
            *usage = usage.with_run_queue_wait(Some((wait_s * 1e9) as u64));
            record.environment.busy_cores = Some(busy_cores);
            change(record);
        });
        told.unwrap().0
    }

    fn lossy(record: &mut Record) {
        record.delivery.messages.lost = 3;
    }

    #[test]
    fn a_system_that_waited_for_others_longer_than_it_ran_shows_nothing_of_itself() {
        use VerdictStatus::{Invalid, Suspect, Valid};
        assert_eq!(waited(4.0, 0.5, 2.0, lossy), Valid);
        assert_eq!(waited(4.0, 4.5, 2.0, lossy), Invalid);
        assert_eq!(waited(4.0, 4.5, 2.0, |_| {}), Suspect, "late, and nothing is missing");
        assert_eq!(waited(0.1, 0.9, 2.0, lossy), Valid, "a system with hardly anything to do");
        // Of 8 s of wait, others can have caused the 1 s that they ran: its own threads were in each other's way.
        assert_eq!(waited(19.0, 8.0, 2.0, lossy), Valid);
        let throttled = |record: &mut Record| {
            lossy(record);
            record.cost.limits = Some(LimitEffect { throttled_seconds: Some(4.5), ..LimitEffect::default() });
        };
        assert_eq!(waited(4.0, 4.5, 2.0, throttled), Valid, "a limit that was asked for");
        let realtime = |record: &mut Record| record.settings.realtime = true;
        assert_eq!(waited(4.0, 1.0, 2.0, realtime), Valid);
        assert_eq!(waited(4.0, 2.0, 2.0, realtime), Invalid, "we were those who took its processors");
        assert_eq!(found("V28", |_| {}), None, "not measured");
    }
}
