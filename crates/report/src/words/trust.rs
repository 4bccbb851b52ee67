//! Precision of a run's latency, in a sentence.

use pubmark_record::latency::{Summary, both, upper};
use pubmark_record::record::Record;
use pubmark_record::threshold::metrics::is_held_up;

use crate::numbers::{TimeUnit, time};

/// A percentile by its name.
type Percentile = (&'static str, fn(&Summary) -> Option<f64>);

/// Meaning of the width of the interval: `latency p99 is known to ± 65 µs: limits below 0.210 ms or above 0.340 ms are
/// decided`. Where the verdict says that the system was held up, it alone could have been faster by any time.
pub fn trust(record: &Record) -> String {
    let bounds = &record.latency.total;
    if record.settings.flood {
        return "a flood: its rate is the result, its latency is that of queues that it fills".to_owned();
    }
    let percentiles: [Percentile; 4] =
        [("p99", |it| it.p99), ("p95", |it| it.p95), ("p90", |it| it.p90), ("p50", |it| it.p50)];
    let known = percentiles.into_iter().find_map(|(name, get)| match both(bounds, get) {
        [Some(lower), Some(upper)] => Some((name, lower, upper)),
        _ => None,
    });
    match (known, upper(bounds)) {
        (Some((name, lower, upper)), _) => {
            let unit = TimeUnit::for_value(upper);
            // Rounded away from each other, as no limit between them is decided.
            let interval = unit.interval([Some(lower), Some(upper)]);
            let (low, high) = interval.split_once('–').unwrap_or((interval.as_str(), interval.as_str()));
            let [low, high] = [low, high].map(|number| format!("{number} {}", unit.symbol()));
            if is_held_up(record) {
                return format!(
                    "limits of latency {name} above {high} are decided; below, the verdict leaves them open"
                );
            }
            let width = time(Some((upper - lower) / 2.0));
            format!("latency {name} is known to ± {width}: limits below {low} or above {high} are decided")
        }
        (None, Some(_)) => {
            "how much of the latency is pubmark's own is not known: only upper bounds were measured".to_owned()
        }
        (None, None) => "no latency was measured".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pubmark_record::latency::LatencyBounds;
    use pubmark_record::record::{Reason, VerdictStatus};
    use pubmark_record::sample;
    use pubmark_record::threshold::{ClauseOutcome, Objectives};
    use pubmark_record::verdict::rules::RULES;

    #[test]
    fn the_width_is_shown_with_the_limits_that_it_decides() {
        let mut record = sample::record();
        let total = record.latency.total.as_mut().unwrap();
        total.upper.p99 = Some(340.0);
        total.lower.as_mut().unwrap().p99 = Some(210.0);
        assert_eq!(
            trust(&record),
            "latency p99 is known to ± 65.0 µs: limits below 0.210 ms or above 0.340 ms are decided"
        );
        record.verdict.reasons = vec![reason("V28")];
        let held_up = "limits of latency p99 above 0.340 ms are decided; below, the verdict leaves them open";
        assert_eq!(trust(&record), held_up);
        let upper = record.latency.total.as_ref().unwrap().upper.clone();
        record.latency.total = Some(LatencyBounds::measured(upper));
        assert!(trust(&record).contains("only upper bounds"));
        record.latency.total = None;
        assert_eq!(trust(&record), "no latency was measured");
    }

    fn reason(code: &str) -> Reason {
        let (text, hint) = (String::new(), String::new());
        Reason { code: code.to_owned(), status: VerdictStatus::Suspect, text, hint }
    }

    /// The sentence says of no limit that it is decided which a check leaves open.
    #[test]
    fn what_is_said_of_limits_agrees_with_how_they_are_judged() {
        let codes = RULES.iter().map(|rule| Some(rule.code)).chain([None]);
        for code in codes {
            let mut record = sample::record();
            record.verdict.reasons = code.map(reason).into_iter().collect();
            let outcome = |limit: &str| Objectives::parse(limit).unwrap().judge(&record)[0].outcome;
            let is_decided = outcome("p99<10us") != ClauseOutcome::Undecided;
            assert_eq!(trust(&record).contains("limits below"), is_decided, "{code:?}: {}", trust(&record));
            assert_eq!(outcome("p99<1h"), ClauseOutcome::True, "{code:?}");
        }
    }
}
