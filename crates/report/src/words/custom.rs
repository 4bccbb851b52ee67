//! Metrics of the user's own.

use pubmark_record::custom::{self, CustomMetric};
use pubmark_record::figures::Unit;

use crate::columns::ColumnUnit;
use crate::numbers::{MISSING, bounds, significant};

/// Both bounds of a value with its unit, the lower one first; one value where they look the same. `symbol` is the unit as it was declared.
pub fn custom_bounds([lower, upper]: [Option<f64>; 2], symbol: &str) -> String {
    let (unit, worth) = custom::unit_of(symbol);
    let (Some(lower), Some(upper)) = (lower, upper) else { return MISSING.to_owned() };
    let column = ColumnUnit::of(unit, (lower * worth).abs().max((upper * worth).abs()));
    let (lower, upper) = (column.scaled(lower * worth), column.scaled(upper * worth));
    let text = if lower < 0.0 && lower < upper {
        format!("{} to {}", significant(lower), significant(upper))
    } else {
        bounds([Some(lower), Some(upper)])
    };
    match if unit == Unit::Number { symbol } else { column.symbol } {
        "" => text,
        "/s" => format!("{text}/s"),
        symbol => format!("{text} {symbol}"),
    }
}

/// The value of a metric, or why there is none.
pub fn custom_value(metric: &CustomMetric) -> String {
    match &metric.failure {
        Some(why) => format!("failed: {why}"),
        None => custom_bounds([metric.lower, metric.upper], &metric.unit),
    }
}

/// Each metric with its value: `jitter 0.12–0.18 ms`.
pub fn custom_values(metrics: &[CustomMetric]) -> Vec<String> {
    metrics.iter().map(|metric| format!("{} {}", metric.name, custom_value(metric))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_printed_in_its_unit() {
        let text = |low: f64, high: f64, symbol: &str| custom_bounds([Some(low), Some(high)], symbol);
        assert_eq!(text(0.12, 0.18, "ms"), "120–180 µs");
        assert_eq!(text(3.5, 3.5, "mJ"), "3.50 mJ");
        assert_eq!(text(2.0, 2.0, ""), "2.00");
        assert_eq!(text(99.5, 99.5, "%"), "99.5 %");
        assert_eq!(text(-2.0, -1.0, "ms"), "−2.00 to −1.00 ms");
        assert_eq!(custom_bounds([None, None], "ms"), "—");
        let failed = CustomMetric { failure: Some("it printed nothing".to_owned()), ..CustomMetric::default() };
        assert_eq!(custom_value(&failed), "failed: it printed nothing");
    }
}
