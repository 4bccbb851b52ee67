//! Which figures of an invalid run may be used all the same: a message that we read too late has no latency to quote, but it was
//! delivered, and its bytes were sent.

use super::limits::p99_or_max;
use super::rules::RULES;
use crate::record::{Record, VerdictStatus};

/// Which figures a broken rule spoils.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoils {
    /// Latencies, round trips and other times.
    Times,
    /// Every figure.
    Everything,
}

impl Spoils {
    /// For the rule's page; empty where nothing is left to use.
    pub fn words(self) -> &'static str {
        match self {
            Spoils::Times => {
                "Where it makes a run invalid, the run's times are not to be used. Its counts, bytes, CPU time and memory are, as \
                 long as pubmark was late by no more than 1 % of the measured window: then what was sent and read in the window \
                 is what was due in it."
            }
            Spoils::Everything => "",
        }
    }
}

/// Which figures of a run may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usable {
    /// Every figure, with the reasons in mind where the run is suspect.
    Everything,
    /// Counts, bytes, CPU time and memory; no latency, no round trip.
    AllButTimes,
    /// None.
    Nothing,
}

/// How late we may be, as a share of the measured window, for counts and costs of the window to be those of the load asked for.
const LATE_SHARE: f64 = 0.01;

/// Which figures of a run may be used, by the reasons of its verdict.
pub fn usable(record: &Record) -> Usable {
    if record.verdict.status != VerdictStatus::Invalid {
        return Usable::Everything;
    }
    let mut invalid = record.verdict.reasons.iter().filter(|reason| reason.status == VerdictStatus::Invalid);
    let spoils_times = |code: &str| RULES.iter().any(|rule| rule.code == code && rule.spoils == Spoils::Times);
    let limit_us = LATE_SHARE * record.settings.duration_s * 1e6;
    let of_messages = [&record.latency.scheduler_lag, &record.latency.receive_lateness];
    let of_requests = record.requests.iter().flat_map(|found| [&found.responder_lag, &found.receive_lateness]);
    let mut ours = of_messages.into_iter().chain(of_requests).flatten();
    let in_window = ours.all(|late| p99_or_max(late).0 <= limit_us);
    match invalid.all(|reason| spoils_times(&reason.code)) && in_window {
        true => Usable::AllButTimes,
        false => Usable::Nothing,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::record::Reason;
    use crate::sample;

    /// A run of 10 s that these rules made invalid, whose p99 of scheduler lag was so long.
    fn of(codes: &[&str], lag_us: f64) -> Usable {
        let mut record = sample::record();
        record.settings.duration_s = 10.0;
        record.latency.scheduler_lag.as_mut().unwrap().p99 = Some(lag_us);
        record.verdict.status = VerdictStatus::Invalid;
        let reason = |code: &&str| Reason {
            code: (*code).to_owned(),
            status: VerdictStatus::Invalid,
            text: String::new(),
            hint: String::new(),
        };
        record.verdict.reasons = codes.iter().map(reason).collect();
        usable(&record)
    }

    #[test]
    fn what_we_did_late_has_no_times_and_was_delivered_all_the_same() {
        assert_eq!(of(&["V01", "V02"], 5_000.0), Usable::AllButTimes);
        assert_eq!(of(&["V01", "V07"], 5_000.0), Usable::Nothing);
        assert_eq!(of(&["V04"], 5_000.0), Usable::Nothing);
        assert_eq!(of(&["V99"], 5_000.0), Usable::Nothing, "a rule of another version");
    }

    #[test]
    fn a_hundredth_of_the_window_is_the_most_that_may_lie_outside_of_it() {
        assert_eq!(of(&["V01"], 100_000.0), Usable::AllButTimes);
        assert_eq!(of(&["V01"], 100_001.0), Usable::Nothing);
    }

    #[test]
    fn a_run_that_is_not_invalid_gives_every_figure() {
        let mut record = sample::record();
        for status in [VerdictStatus::Valid, VerdictStatus::Suspect] {
            record.verdict.status = status;
            assert_eq!(usable(&record), Usable::Everything);
        }
    }
}
