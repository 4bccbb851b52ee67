//! Requests: is the round trip the system's, and do their books close?

use super::limits::p99_or_max;
use super::{Finding, Limits, VerdictInput, books};
use crate::latency::upper;
use crate::quantity::micros;
use crate::record::{CheckUnit, VerdictStatus};

/// V15; says nothing where nothing was answered.
pub(super) fn round_trip_is_the_systems(input: &VerdictInput) -> Option<Finding> {
    let requests = input.requests.filter(|_| !input.settings.flood)?;
    let (round_trip_us, which) = p99_or_max(upper(&requests.round_trip)?);
    let parts = [
        ("scheduler lag", input.scheduler_lag),
        ("receive lateness of requests", input.receive_lateness),
        ("responder lag", requests.responder_lag.as_ref()),
        ("receive lateness of answers", requests.receive_lateness.as_ref()),
    ];
    let ours = parts.map(|(name, own)| own.map(|own| (name, p99_or_max(own).0)));
    let sum_us: f64 = ours.iter().flatten().map(|(_, own_us)| own_us).sum();
    let (largest, largest_us) = ours.iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let limits = Limits::of(Some(round_trip_us));
    let finding = format!(
        "our parts {} with round trip {which} {}, the largest {largest} {}: {}",
        micros(sum_us),
        micros(round_trip_us),
        micros(*largest_us),
        limits.words()
    );
    let hint = "use more `--shards`, a lower rate, or a machine with free cores";
    Some(Finding::new(limits.judge(sum_us), finding, hint).of(limits.measure(sum_us)))
}

/// V16.
pub(super) fn books_close(input: &VerdictInput) -> Option<Finding> {
    let requests = input.requests?;
    let asked = &requests.outcomes;
    let parts = asked.answered + asked.late + asked.timed_out + asked.unknown;
    let asking = books::identity(
        "requests sent",
        asked.sent,
        "answered + late + timed out + unknown",
        parts,
        CheckUnit::Requests,
    );
    if asking.status != VerdictStatus::Valid {
        return Some(asking);
    }
    let done = &requests.responses;
    let parts = done.answered + done.dropped + done.without_address + done.refused + done.broken + done.unsent;
    let names = "answered + dropped + without address + refused + broken + unsent";
    let answering = books::identity("requests received", done.received, names, parts, CheckUnit::Requests);
    if answering.status != VerdictStatus::Valid {
        return Some(answering);
    }
    if asked.approximate {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            "accounting of requests approximate: late and further answers may be taken for each other".to_string(),
            "lower the rate until fewer requests stay without an answer",
        ));
    }
    // Where both close, the differences of both are 0.
    Some(Finding { text: format!("{}; {}", asking.text, answering.text), ..asking })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::record::{LatencyBounds, Record, Verdict, VerdictStatus};
    use crate::requests::{RequestBooks, RequestFigures, ResponseBooks};
    use crate::sample::{self, Shape};
    use crate::verdict::{VerdictInput, judge};

    fn summary(p99_us: f64) -> Option<crate::record::Summary> {
        let mut summary = Shape { median_us: 1.0, tail: 0.1, count: 10_000 }.summary();
        summary.p99 = Some(p99_us);
        Some(summary)
    }

    /// The sample, in which requests were asked with these p99: the round trip's, the responder's lag.
    fn judged(round_trip_us: f64, responder_lag_us: f64, change: impl FnOnce(&mut Record)) -> Verdict {
        let mut record = sample::record();
        record.latency.scheduler_lag = summary(20.0);
        record.latency.receive_lateness = summary(20.0);
        record.requests = Some(RequestFigures {
            outcomes: RequestBooks {
                sent: 10,
                answered: 7,
                late: 1,
                timed_out: 1,
                unknown: 1,
                ..RequestBooks::default()
            },
            responses: ResponseBooks { received: 9, answered: 8, dropped: 1, ..ResponseBooks::default() },
            round_trip: summary(round_trip_us).map(LatencyBounds::measured),
            responder_lag: summary(responder_lag_us),
            receive_lateness: summary(20.0),
            ..RequestFigures::default()
        });
        change(&mut record);
        judge(&VerdictInput::of(&record))
    }

    fn status(verdict: &Verdict, code: &str) -> VerdictStatus {
        verdict.checks.iter().find(|check| check.code == code).unwrap().status
    }

    #[test]
    fn our_four_parts_are_held_together_against_the_round_trip() {
        for (round_trip_us, lag_us, expected) in [
            (100.0, 40.0, VerdictStatus::Valid),
            (100.0, 41.0, VerdictStatus::Suspect),
            (100.0, 441.0, VerdictStatus::Invalid),
            (10_000.0, 940.0, VerdictStatus::Valid),
            (10_000.0, 941.0, VerdictStatus::Suspect),
        ] {
            let verdict = judged(round_trip_us, lag_us, |_| {});
            assert_eq!(status(&verdict, "V15"), expected, "{round_trip_us} {lag_us}: {:?}", verdict.reasons);
        }
    }

    #[test]
    fn books_that_do_not_close_make_a_run_invalid() {
        assert_eq!(status(&judged(100.0, 1.0, |_| {}), "V16"), VerdictStatus::Valid);
        let requests = |record: &mut Record| record.requests.take().unwrap();
        for change in [
            |figures: &mut RequestFigures| figures.outcomes.sent += 1,
            |figures: &mut RequestFigures| figures.responses.dropped += 1,
        ] {
            let verdict = judged(100.0, 1.0, |record| {
                let mut figures = requests(record);
                change(&mut figures);
                record.requests = Some(figures);
            });
            assert_eq!(status(&verdict, "V16"), VerdictStatus::Invalid);
        }
    }
}
