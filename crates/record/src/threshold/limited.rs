//! Object of a clause: one of [`METRICS`](super::metrics::METRICS), or a user-defined metric.

use super::metrics::{Metric, is_held_up};
use super::{Interval, MeasuredFigure};
use crate::custom::{self, PREFIX};
use crate::figures::{Figure, Unit};
use crate::quantity;
use crate::record::Record;
use crate::unit;

/// Object of a clause.
#[derive(Clone, Debug)]
pub enum Limited {
    /// A metric of pubmark.
    Known(&'static Metric),
    /// A user-defined metric.
    Custom {
        /// Full name, `custom.NAME`.
        name: String,
        /// Symbol of the unit in which the limit is written; empty for the metric's own unit.
        symbol: String,
    },
}

impl Limited {
    /// Name, as written in a limit.
    pub fn name(&self) -> &str {
        match self {
            Limited::Known(metric) => metric.name,
            Limited::Custom { name, .. } => name,
        }
    }

    /// Name without `custom.`, for a user-defined metric.
    pub fn custom_name(&self) -> Option<&str> {
        match self {
            Limited::Known(_) => None,
            Limited::Custom { name, .. } => Some(own_name(name)),
        }
    }

    /// Unit of values and limits.
    pub fn unit(&self) -> Unit {
        match self {
            Limited::Known(metric) => metric.unit(),
            Limited::Custom { symbol, .. } => unit::of_symbol(symbol).0,
        }
    }

    /// The corresponding figure.
    pub fn figure(&self) -> Figure<'_> {
        match self {
            Limited::Known(metric) => *metric.of_figure(),
            Limited::Custom { name, symbol } => Figure::custom(own_name(name), symbol),
        }
    }

    /// Value in a record; `None` where it was not measured, or has an incompatible unit.
    pub fn measured(&self, record: &Record) -> Option<MeasuredFigure> {
        match self {
            Limited::Known(metric) => metric.measured(record),
            Limited::Custom { name, symbol } => {
                let metric = custom::find(&record.custom, own_name(name))?;
                let [lower, upper] = metric.bounds(symbol)?;
                let held_up = self.unit() == Unit::Microseconds && is_held_up(record);
                // Rounding must not reverse the order of the bounds.
                let measured = MeasuredFigure::within([lower.min(upper), upper]);
                Some(MeasuredFigure { held_up, partial: metric.partial, ..measured })
            }
        }
    }

    /// Both bounds with their unit; one value if both have the same text.
    pub fn interval(&self, [lower, upper]: Interval) -> String {
        match [lower, upper].map(|value| self.text(value)) {
            [one, other] if one == other => other,
            _ if self.unit() == Unit::Microseconds => quantity::micros_interval(lower, upper),
            [one, other] => format!("{one} to {other}"),
        }
    }

    /// A value with its unit, three significant digits. A share is shown as 0 % or 100 % only if it is exactly that.
    pub fn text(&self, value: f64) -> String {
        match self.unit() {
            _ if !value.is_finite() => quantity::MISSING.to_owned(),
            Unit::Microseconds => quantity::micros(value),
            Unit::Share if value < 1.0 && value > 0.99 => {
                format!("{:.3} %", (value * 1e5).floor() / 1e3)
            }
            Unit::Share => quantity::percent(value),
            Unit::Count => count(value.max(0.0)),
            Unit::PerSecond => format!("{}/s", quantity::count(value.max(0.0).round() as u64)),
            Unit::Cores => format!("{} cores", quantity::digits(value)),
            Unit::CpuSecondsPerMillion => format!("{} s a million", quantity::digits(value)),
            Unit::Bytes => quantity::bytes(value),
            Unit::Number => match self {
                Limited::Custom { symbol, .. } if !symbol.is_empty() => format!("{} {symbol}", quantity::digits(value)),
                _ => quantity::digits(value),
            },
        }
    }
}

/// A count; the mean of several has a decimal where it is no whole number, and is 0 only if it is exactly that.
fn count(value: f64) -> String {
    if value.fract() == 0.0 {
        return quantity::count(value as u64);
    }
    match (value * 10.0).round() as u64 {
        0 => "< 0.1".to_owned(),
        tenths => format!("{}.{}", quantity::count(tenths / 10), tenths % 10),
    }
}

/// Name of a user-defined metric without `custom.`.
fn own_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::threshold::Objectives;

    #[test]
    fn a_mean_of_counts_is_not_cut_to_a_whole_number() {
        let objectives = Objectives::parse("lost<3").unwrap();
        let lost = &objectives.clauses()[0].metric;
        let mean = |counts: [f64; 3]| counts.iter().sum::<f64>() / 3.0;
        assert_eq!([[0.0, 0.0, 2.0], [2.0, 3.0, 3.0]].map(|counts| lost.text(mean(counts))), ["0.7", "2.7"]);
        assert_eq!([0.0, 3.0, 1_234.0].map(|value| lost.text(value)), ["0", "3", "1,234"]);
        assert_eq!([0.02, 1.96, 1_234.5].map(|value| lost.text(value)), ["< 0.1", "2.0", "1,234.5"]);
        assert_eq!(lost.interval([0.5, 2.0]), "0.5 to 2");
        assert_eq!(lost.text(f64::NAN), "—", "not 0");
    }
}
