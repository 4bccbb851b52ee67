//! Which figures of an invalid run may still be used: a message between clocks without an error bound has no usable
//! latency, but it was delivered, and its bytes were sent.

use super::rules::RULES;
use crate::record::{Record, VerdictStatus};

/// Figures that must not be used after a rule was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoils {
    /// Latencies, round trips and other times.
    Times,
    /// Every figure.
    Everything,
}

impl Spoils {
    /// Text for the page of the rule; empty where no figure is usable.
    pub fn words(self) -> &'static str {
        match self {
            Spoils::Times => {
                "Where it alone makes a run invalid, the run's times are not to be used. Its counts, bytes, CPU time and memory are."
            }
            Spoils::Everything => "",
        }
    }
}

/// Which figures of a run may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usable {
    /// Every figure; if the run is suspect, consider its reasons.
    Everything,
    /// Counts, bytes, CPU time and memory, but no latency and no round trip.
    AllButTimes,
    /// No figure.
    Nothing,
}

/// Which figures of a run may be used, according to the reasons of its verdict.
pub fn usable(record: &Record) -> Usable {
    if record.verdict.status != VerdictStatus::Invalid {
        return Usable::Everything;
    }
    let mut invalid = record.verdict.reasons.iter().filter(|reason| reason.status == VerdictStatus::Invalid);
    let spoils_times = |code: &str| RULES.iter().any(|rule| rule.code == code && rule.spoils == Spoils::Times);
    match invalid.all(|reason| spoils_times(&reason.code)) {
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

    /// What is usable of a run that these rules made invalid.
    fn of(codes: &[&str]) -> Usable {
        let mut record = sample::record();
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
    fn a_run_whose_times_alone_are_wrong_delivered_all_the_same() {
        assert_eq!(of(&["V11", "V22"]), Usable::AllButTimes);
        assert_eq!(of(&["V22", "V07"]), Usable::Nothing);
        assert_eq!(of(&["V01"]), Usable::Nothing, "another load");
        assert_eq!(of(&["V99"]), Usable::Nothing, "a rule of another version");
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
