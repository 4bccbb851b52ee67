//! Columns of figures: all values of a column have the same unit, chosen by the largest value.

use std::ops::RangeInclusive;

use pubmark_record::comparison::{FIGURES, Figure, Unit};

use crate::numbers::{MISSING, TimeUnit, between, bounds, known, own_bounds, percentage, short, significant};

/// Unit and format of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnUnit {
    unit: Unit,
    /// Symbol of the unit; empty for counts.
    pub symbol: &'static str,
    divisor: f64,
}

/// Shares that are printed with two decimals, rounded down.
const NEAR_ALL: RangeInclusive<f64> = 0.99..=1.0;

/// Largest time that is printed in ms if nothing else determines the unit, µs.
const MOST_MILLISECONDS: f64 = 999_000.0;

impl ColumnUnit {
    /// The unit of a column whose largest value is `largest`.
    pub fn of(unit: Unit, largest: f64) -> ColumnUnit {
        let (symbol, divisor) = match unit {
            Unit::Microseconds => match TimeUnit::for_value(largest) {
                TimeUnit::Microseconds => ("µs", 1.0),
                TimeUnit::Milliseconds => ("ms", 1e3),
                TimeUnit::Seconds => ("s", 1e6),
            },
            Unit::Share => ("%", 0.01),
            Unit::Cores => ("% core", 0.01),
            Unit::Bytes if largest < 1e6 => ("kB", 1e3),
            Unit::Bytes if largest < 1e10 => ("MB", 1e6),
            Unit::Bytes => ("GB", 1e9),
            Unit::PerSecond => ("/s", 1.0),
            Unit::CpuSecondsPerMillion => ("s", 1.0),
            Unit::Count | Unit::Number => ("", 1.0),
        };
        ColumnUnit { unit, symbol, divisor }
    }

    /// The unit of a column with values between these: if some times are below 10 ms, times of seconds are printed in
    /// ms, too.
    pub fn between(unit: Unit, smallest: f64, largest: f64) -> ColumnUnit {
        let is_wide = unit == Unit::Microseconds && smallest < 1e4;
        ColumnUnit::of(unit, if is_wide { largest.min(MOST_MILLISECONDS) } else { largest })
    }

    /// A value in this unit, for drawing.
    pub fn scaled(self, value: f64) -> f64 {
        value / self.divisor
    }

    /// A value without the symbol. A share is rounded as [`percentage`] does.
    pub fn number(self, value: f64) -> String {
        match self.unit {
            _ if !value.is_finite() => MISSING.to_string(),
            Unit::Share => percentage(Some(value)).trim_end_matches(" %").to_string(),
            Unit::Cores | Unit::Count => short(self.scaled(value)),
            _ => significant(self.scaled(value)),
        }
    }

    /// A value that a publication printed, without the symbol: a share with two decimals, as none of them prints more.
    pub fn quoted(self, value: f64) -> String {
        match self.unit {
            Unit::Share if value.is_finite() => format!("{:.2}", value * 1e2),
            _ => self.number(value),
        }
    }

    /// A value without the symbol, `—` if it was not measured.
    pub fn optional(self, value: Option<f64>) -> String {
        value.map_or_else(|| MISSING.to_string(), |value| self.number(value))
    }

    /// Both bounds of a value without the symbol, the lower one first; only the value if it has no lower bound.
    pub fn bounds(self, [lower, value]: [Option<f64>; 2]) -> String {
        let scaled = || [lower, value].map(|bound| bound.map(|value| self.scaled(value)));
        match (self.unit, known(lower), known(value)) {
            (_, None, _) | (_, _, None) => self.optional(value),
            // Rounded outwards, a bound near 100 % would become 100 %.
            (Unit::Share, Some(lower), Some(value)) if lower < value && NEAR_ALL.contains(&value) => {
                let down = if NEAR_ALL.contains(&lower) { lower } else { (lower * 1e3 + 1e-9).floor() / 1e3 };
                let [lower_text, text] = [down, value].map(|bound| self.number(bound));
                if lower_text == text { text } else { format!("{lower_text}{}{text}", between(lower)) }
            }
            (Unit::Share, Some(lower), Some(value)) if lower >= value => self.number(value),
            (Unit::Share | Unit::Number, ..) => own_bounds(scaled()),
            _ => bounds(scaled()),
        }
    }

    /// The same with the symbol.
    pub fn bounds_with_symbol(self, bounds: [Option<f64>; 2]) -> String {
        let text = self.bounds(bounds);
        match self.symbol {
            _ if known(bounds[1]).is_none() => text,
            "" => text,
            "/s" => format!("{text}/s"),
            symbol => format!("{text} {symbol}"),
        }
    }

    /// A value with the symbol.
    pub fn with_symbol(self, value: f64) -> String {
        match self.symbol {
            _ if !value.is_finite() => MISSING.to_string(),
            "" => self.number(value),
            "/s" => format!("{}/s", self.number(value)),
            symbol => format!("{} {symbol}", self.number(value)),
        }
    }
}

/// A figure in the tables of an experiment.
pub struct ExperimentColumn {
    /// Name in [`FIGURES`].
    pub figure: &'static str,
    /// Head of the column on a page.
    pub head: &'static str,
    /// Noun for sentences.
    pub noun: &'static str,
    /// Head of the column on a terminal; `None` if it is not shown there.
    pub short_head: Option<&'static str>,
}

const fn column(
    figure: &'static str,
    head: &'static str,
    noun: &'static str,
    short_head: Option<&'static str>,
) -> ExperimentColumn {
    ExperimentColumn { figure, head, noun, short_head }
}

/// Figures in the tables of an experiment, in order; figures that no cell measured are left out. A new figure is a row
/// here.
pub const EXPERIMENT_COLUMNS: [ExperimentColumn; 14] = [
    column("delivered", "delivered", "share delivered", Some("deliv.")),
    column("delivered rate", "rate", "rate delivered", None),
    column("latency p50", "p50", "p50", Some("p50")),
    column("latency p99", "p99", "p99", Some("p99")),
    column("latency p99.9", "p99.9", "p99.9", None),
    column("TLS handshake mean", "TLS mean", "mean TLS handshake", None),
    column("system CPU", "system CPU", "CPU of the system", None),
    column("publisher CPU", "pub. CPU", "CPU of publishers", None),
    column("subscriber CPU", "sub. CPU", "CPU of subscribers", None),
    column("system CPU a million", "CPU a million", "CPU time a million messages", Some("CPU/M")),
    column(
        "client CPU a million",
        "client a million",
        "CPU time of the client program a million messages",
        Some("client/M"),
    ),
    column("client memory", "client memory", "memory of the client program", None),
    column("system memory", "memory", "memory", Some("memory")),
    column("memory per connection", "a connection", "memory a connection", None),
];

/// Noun for a figure in sentences.
pub fn noun(name: &str) -> &str {
    EXPERIMENT_COLUMNS.iter().find(|column| column.figure == name).map_or(name, |column| column.noun)
}

/// Finds a figure by name.
pub fn figure(name: &str) -> Option<&'static Figure<'static>> {
    FIGURES.iter().find(|figure| figure.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_a_figure() {
        for column in &EXPERIMENT_COLUMNS {
            assert!(figure(column.figure).is_some(), "{}", column.figure);
        }
    }

    #[test]
    fn a_column_has_one_unit() {
        let wide = ColumnUnit::between(Unit::Microseconds, 172.0, 31_900_000.0);
        assert_eq!(
            (wide.symbol, wide.number(172.0), wide.number(31_900_000.0)),
            ("ms", "0.172".into(), "31,900".into())
        );
        assert_eq!(ColumnUnit::between(Unit::Microseconds, 12_000.0, 31_900_000.0).symbol, "s");
        let unit = ColumnUnit::of(Unit::Microseconds, 2_400.0);
        assert_eq!((unit.number(31.0), unit.with_symbol(2_400.0)), ("0.0310".to_string(), "2.40 ms".to_string()));
        let unit = ColumnUnit::of(Unit::Share, 1.0);
        assert_eq!((unit.number(0.999_99), unit.number(1.0)), ("99.99".to_string(), "100".to_string()));
        assert_eq!(ColumnUnit::of(Unit::Count, 3.0).number(0.4), "0.4", "a mean of counts is no whole number");
        assert_eq!((unit.number(f64::NAN), unit.with_symbol(f64::NAN)), (MISSING.to_string(), MISSING.to_string()));
        assert_eq!(unit.bounds_with_symbol([Some(0.5), Some(f64::NAN)]), MISSING);
    }

    #[test]
    fn bounds_of_a_share_are_rounded_outwards_and_never_to_all() {
        let unit = ColumnUnit::of(Unit::Share, 1.0);
        for (bounds, expected) in [
            ([0.123_6, 0.124_4], "12.3–12.5 %"),
            ([0.92, 0.999_6], "92–99.96 %"),
            ([0.923_8, 0.999_6], "92.3–99.96 %"),
            ([0.989_96, 1.0], "98.9–100 %"),
            ([0.999_961, 0.999_969], "99.99 %"),
            ([0.5, 1.0], "50–100 %"),
            ([0.5, 0.5], "50 %"),
            ([0.000_02, 0.05], "0–5.00 %"),
            ([-0.05, 0.05], "−5.00 to 5.00 %"),
            ([0.5, 1.5], "50–150 %"),
        ] {
            assert_eq!(unit.bounds_with_symbol(bounds.map(Some)), expected, "{bounds:?}");
        }
    }
}
