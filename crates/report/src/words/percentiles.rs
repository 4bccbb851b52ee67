//! Selects the percentile that can be quoted if there are few samples.

use pubmark_record::latency::{LatencyBounds, Summary, both, upper};

/// A percentile with its name.
type Percentile = (&'static str, fn(&Summary) -> Option<f64>);

/// Percentiles below the 99th that replace it, in order of preference.
const INSTEAD: [Percentile; 3] =
    [("p95", |summary| summary.p95), ("p90", |summary| summary.p90), ("p50", |summary| summary.p50)];

/// If the 99th percentile has too few samples beyond it: the highest lower percentile that has enough, with both
/// bounds.
pub fn instead_of_p99(bounds: &Option<LatencyBounds>) -> Option<(&'static str, [Option<f64>; 2])> {
    if upper(bounds)?.p99.is_some() {
        return None;
    }
    INSTEAD.iter().find(|(_, get)| upper(bounds).and_then(get).is_some()).map(|(name, get)| (*name, both(bounds, *get)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(p95: Option<f64>, p99: Option<f64>) -> Option<LatencyBounds> {
        let mut summary = pubmark_record::sample::record().latency.total?.upper;
        (summary.p95, summary.p99) = (p95, p99);
        Some(LatencyBounds::measured(summary))
    }

    #[test]
    fn a_lower_percentile_stands_in_only_where_the_99th_is_missing() {
        assert_eq!(instead_of_p99(&bounds(Some(5.0), None)), Some(("p95", [None, Some(5.0)])));
        assert_eq!(instead_of_p99(&bounds(Some(5.0), Some(9.0))), None);
        assert_eq!(instead_of_p99(&bounds(None, None)).map(|(name, _)| name), Some("p90"));
        assert_eq!(instead_of_p99(&None), None);
    }
}
