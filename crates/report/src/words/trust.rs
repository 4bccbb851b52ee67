//! Precision of a run's latency, in a sentence.

use pubmark_record::latency::{Summary, both, upper};
use pubmark_record::record::Record;

use crate::numbers::{TimeUnit, time};

/// A percentile by its name.
type Percentile = (&'static str, fn(&Summary) -> Option<f64>);

/// Meaning of the width of the interval: `latency p99 is known to ± 65 µs: limits below 0.210 ms or above 0.340 ms are
/// decided`.
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
            let limits = [lower, upper].map(|value| unit.with_symbol(Some(value)));
            let width = time(Some((upper - lower) / 2.0));
            format!(
                "latency {name} is known to ± {width}: limits below {} or above {} are decided",
                limits[0], limits[1]
            )
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
    use pubmark_record::sample;

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
        let upper = record.latency.total.as_ref().unwrap().upper.clone();
        record.latency.total = Some(LatencyBounds::measured(upper));
        assert!(trust(&record).contains("only upper bounds"));
        record.latency.total = None;
        assert_eq!(trust(&record), "no latency was measured");
    }
}
