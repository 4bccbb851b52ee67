//! What a clause limits: one of [`METRICS`](super::metrics::METRICS), or a metric of the user's own.

use super::metrics::{Metric, is_held_up};
use super::{Interval, MeasuredFigure};
use crate::custom::{self, PREFIX};
use crate::figures::{Figure, Unit};
use crate::quantity;
use crate::record::Record;
use crate::unit;

/// What a clause limits.
#[derive(Clone, Debug)]
pub enum Limited {
    /// A metric that every run has.
    Known(&'static Metric),
    /// A metric of the user's own.
    Custom {
        /// Its whole name, `custom.NAME`.
        name: String,
        /// Symbol of the unit that the limit is written in; empty for the metric's own.
        symbol: String,
    },
}

impl Limited {
    /// Its name, as it is written in a limit.
    pub fn name(&self) -> &str {
        match self {
            Limited::Known(metric) => metric.name,
            Limited::Custom { name, .. } => name,
        }
    }

    /// Its name without `custom.`, for a metric of the user's own.
    pub fn custom_name(&self) -> Option<&str> {
        match self {
            Limited::Known(_) => None,
            Limited::Custom { name, .. } => Some(own_name(name)),
        }
    }

    /// What values and limits count in.
    pub fn unit(&self) -> Unit {
        match self {
            Limited::Known(metric) => metric.unit(),
            Limited::Custom { symbol, .. } => unit::of_symbol(symbol).0,
        }
    }

    /// Its figure.
    pub fn figure(&self) -> Figure<'_> {
        match self {
            Limited::Known(metric) => *metric.of_figure(),
            Limited::Custom { name, symbol } => Figure::custom(own_name(name), symbol),
        }
    }

    /// What a record says of it; `None` where it was not measured, or in a unit of another kind.
    pub fn measured(&self, record: &Record) -> Option<MeasuredFigure> {
        match self {
            Limited::Known(metric) => metric.measured(record),
            Limited::Custom { name, symbol } => {
                let metric = custom::find(&record.custom, own_name(name))?;
                let [lower, upper] = metric.bounds(symbol)?;
                let held_up = self.unit() == Unit::Microseconds && is_held_up(record);
                // Rounding must not put them in the wrong order.
                let measured = MeasuredFigure::within([lower.min(upper), upper]);
                Some(MeasuredFigure { held_up, partial: metric.partial, ..measured })
            }
        }
    }

    /// Both bounds with their unit; one value where they look the same.
    pub fn interval(&self, [lower, upper]: Interval) -> String {
        match [lower, upper].map(|value| self.text(value)) {
            [one, other] if one == other => other,
            _ if self.unit() == Unit::Microseconds => quantity::micros_interval(lower, upper),
            [one, other] => format!("{one} to {other}"),
        }
    }

    /// A value with its unit, three significant digits. A share is 0 % or 100 % only when it is that exactly.
    pub fn text(&self, value: f64) -> String {
        match self.unit() {
            Unit::Microseconds => quantity::micros(value),
            Unit::Share if value < 1.0 && value > 0.99 => {
                format!("{:.3} %", (value * 1e5).floor() / 1e3)
            }
            Unit::Share => quantity::percent(value),
            Unit::Count => quantity::count(value.max(0.0) as u64),
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

/// The name of a metric of the user's own without `custom.`.
fn own_name(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}
