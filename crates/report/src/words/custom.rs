//! User-defined metrics.

use pubmark_record::custom::{CustomBounds, CustomMetric};
use pubmark_record::unit::{self, Unit};

use crate::columns::ColumnUnit;
use crate::numbers::MISSING;

/// Unit in which all values of one metric are printed.
#[derive(Clone, Copy)]
pub struct CustomUnit<'a> {
    /// Symbol after a value; empty for a plain number.
    pub symbol: &'a str,
    column: ColumnUnit,
    worth: f64,
}

impl<'a> CustomUnit<'a> {
    /// The unit for a declared unit, and the largest value in it.
    pub fn of(declared: &'a str, largest: f64) -> CustomUnit<'a> {
        let (of_figure, worth) = unit::of_symbol(declared);
        let column = ColumnUnit::of(of_figure, largest.abs() * worth);
        CustomUnit { symbol: if of_figure == Unit::Number { declared } else { column.symbol }, column, worth }
    }

    /// Both bounds without the symbol, the lower one first; one value if both have the same text.
    pub fn number(self, CustomBounds { lower, upper }: CustomBounds) -> String {
        self.column.bounds([lower, upper].map(|value| Some(value * self.worth)))
    }

    /// The same with the symbol.
    pub fn text(self, bounds: CustomBounds) -> String {
        let number = self.number(bounds);
        match self.symbol {
            "" => number,
            "/s" => format!("{number}/s"),
            symbol => format!("{number} {symbol}"),
        }
    }
}

/// Remark on a value that was computed from a message log with missing rows.
pub const PARTIAL: &str = "partial: the message log lacks rows";

/// Value of a metric, or why there is none.
pub fn custom_value(metric: &CustomMetric) -> String {
    match (&metric.failure, metric.lower, metric.upper) {
        (Some(why), ..) => format!("no value: {why}"),
        (None, Some(lower), Some(upper)) => {
            let text = CustomUnit::of(&metric.unit, lower.abs().max(upper.abs())).text(CustomBounds { lower, upper });
            if metric.partial { format!("{text} ({PARTIAL})") } else { text }
        }
        _ if metric.by.is_empty() => MISSING.to_owned(),
        _ => custom_parts(metric),
    }
}

/// Most parts of a metric that are shown if it has no total value; the others are counted.
const PARTS: usize = 3;

/// The first values of a metric by category: `door 0.12 ms, lamp 0.30 ms, 4 more`.
fn custom_parts(metric: &CustomMetric) -> String {
    let largest = metric.by.values().map(|part| part.lower.abs().max(part.upper.abs())).fold(0.0, f64::max);
    let unit = CustomUnit::of(&metric.unit, largest);
    let mut words: Vec<String> =
        metric.by.iter().take(PARTS).map(|(name, part)| format!("{name} {}", unit.text(*part))).collect();
    if metric.by.len() > PARTS {
        words.push(format!("{} more", metric.by.len() - PARTS));
    }
    let text = words.join(", ");
    if metric.partial { format!("{text} ({PARTIAL})") } else { text }
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
        let text = |lower: f64, upper: f64, unit: &str| {
            let (lower, upper, unit) = (Some(lower), Some(upper), unit.to_owned());
            custom_value(&CustomMetric { lower, upper, unit, ..CustomMetric::default() })
        };
        assert_eq!(text(0.12, 0.18, "ms"), "0.120–0.180 ms");
        assert_eq!(text(3.5, 3.5, "mJ"), "3.50 mJ");
        assert_eq!(text(2.0, 2.0, ""), "2.00");
        assert_eq!(text(99.5, 99.5, "%"), "99.50 %");
        assert_eq!(text(-2.0, 3.0, "mJ"), "−2.00 to 3.00 mJ");
        assert_eq!(text(0.00012, 0.00012, ""), "0.000120");
        assert_eq!(text(-2.0, -1.0, "ms"), "−2.00 to −1.00 ms");
        assert_eq!(custom_value(&CustomMetric::default()), "—");
        let part = |value: f64| CustomBounds { lower: value, upper: value };
        let by = [("door", 0.12), ("lamp", 3.0), ("meter", 1.5), ("siren", 2.0), ("valve", 4.0)];
        let by = by.map(|(name, value)| (name.to_owned(), part(value)));
        let parts = |count: usize| by.iter().take(count).cloned().collect();
        let of_parts =
            |count: usize| CustomMetric { unit: "ms".to_owned(), by: parts(count), ..CustomMetric::default() };
        assert_eq!(custom_value(&of_parts(2)), "door 0.120 ms, lamp 3.00 ms");
        assert_eq!(custom_value(&of_parts(5)), "door 0.120 ms, lamp 3.00 ms, meter 1.50 ms, 2 more");
        let whole = CustomMetric { lower: Some(2.0), upper: Some(2.0), ..of_parts(2) };
        assert_eq!(custom_value(&whole), "2.00 ms");
        let one = |partial| CustomMetric { lower: Some(2.0), upper: Some(2.0), partial, ..CustomMetric::default() };
        assert_eq!(custom_value(&one(true)), "2.00 (partial: the message log lacks rows)");
        let failed = CustomMetric { failure: Some("it printed nothing".to_owned()), ..CustomMetric::default() };
        assert_eq!(custom_value(&failed), "no value: it printed nothing");
    }
}
