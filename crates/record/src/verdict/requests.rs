//! Rule on requests: their accounting must add up.

use super::{Finding, VerdictInput, books};
use crate::record::{CheckUnit, VerdictStatus};

/// Rule V16.
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
            "accounting of requests approximate: late and further replies may be taken for each other".to_string(),
            "lower the rate until fewer requests stay without a reply",
        ));
    }
    // If both add up, both differences are 0.
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

    /// Verdict of the sample with requests that have these p99 values: the round trip's, the responder lag's.
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
    fn a_responder_that_replies_late_offers_another_load() {
        for (lag_us, expected) in
            [(9_000.0, VerdictStatus::Valid), (11_000.0, VerdictStatus::Suspect), (101_000.0, VerdictStatus::Invalid)]
        {
            assert_eq!(status(&judged(100.0, lag_us, |_| {}), "V01"), expected, "{lag_us}");
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
