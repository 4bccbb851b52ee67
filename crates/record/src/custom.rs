//! Metrics of the user's own: what programs computed from the message log of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::{Figure, Unit};
use crate::record::Record;

/// In front of the name of such a metric wherever figures of pubmark's own have names, too.
pub const PREFIX: &str = "custom.";

/// A metric that a program computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomMetric {
    /// Its name; limits call it `custom.NAME`.
    pub name: String,
    /// What its values count in, as it was declared; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Files among those words, with the SHA-256 of their content: what computed it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Lower bound of its value, in its unit; `null` where there is none.
    pub lower: Option<f64>,
    /// Upper bound; the same as the lower one where the value is known exactly.
    pub upper: Option<f64>,
    /// Its values by what the program tells apart, such as device types.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, CustomBounds>,
    /// How long the program ran, s; `null` where it was not started.
    pub ran_s: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Both bounds of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomBounds {
    /// The lower one.
    pub lower: f64,
    /// The upper one; the same where the value is known exactly.
    pub upper: f64,
}

/// Units that figures of pubmark's own have, too: how they are written, and their worth in that of the record.
const UNITS: [(&str, Unit, f64); 19] = [
    ("ns", Unit::Microseconds, 1e-3),
    ("us", Unit::Microseconds, 1.0),
    ("µs", Unit::Microseconds, 1.0),
    ("ms", Unit::Microseconds, 1e3),
    ("s", Unit::Microseconds, 1e6),
    ("min", Unit::Microseconds, 60e6),
    ("B", Unit::Bytes, 1.0),
    ("kB", Unit::Bytes, 1e3),
    ("KB", Unit::Bytes, 1e3),
    ("KiB", Unit::Bytes, 1024.0),
    ("MB", Unit::Bytes, 1e6),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("GB", Unit::Bytes, 1e9),
    ("GiB", Unit::Bytes, 1_073_741_824.0),
    ("%", Unit::Share, 0.01),
    ("/s", Unit::PerSecond, 1.0),
    ("msg/s", Unit::PerSecond, 1.0),
    ("cores", Unit::Cores, 1.0),
    ("", Unit::Number, 1.0),
];

/// What a unit's symbol stands for: the unit that figures count in, and its worth there. One that is not known counts in itself.
pub fn unit_of(symbol: &str) -> (Unit, f64) {
    let found = UNITS.iter().find(|(known, ..)| *known == symbol);
    found.map_or((Unit::Number, 1.0), |(_, unit, worth)| (*unit, *worth))
}

/// The metric of this name in a record.
pub fn find<'a>(record: &'a Record, name: &str) -> Option<&'a CustomMetric> {
    record.custom.iter().find(|metric| metric.name == name)
}

/// How much one of `symbol` is where values are `wanted`: in the unit of figures, or in their own for an empty `wanted`. `None` for
/// units that have nothing to do with each other.
pub fn worth(symbol: &str, wanted: &str) -> Option<f64> {
    if wanted.is_empty() {
        return Some(1.0);
    }
    let ((unit, worth), (wanted_unit, _)) = (unit_of(symbol), unit_of(wanted));
    let fits = if unit == Unit::Number { symbol == wanted } else { unit == wanted_unit };
    fits.then_some(worth)
}

/// Both bounds of a metric where values are `wanted`; `None` where it has no value, or one of another kind.
pub fn bounds_in(record: &Record, name: &str, wanted: &str) -> Option<[f64; 2]> {
    let metric = find(record, name)?;
    let worth = worth(&metric.unit, wanted)?;
    Some([metric.lower? * worth, metric.upper? * worth])
}

/// The metrics that these records have, each once, in the order of the records. A metric that has several units there has its first.
pub fn figures<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Figure<'a>> {
    let mut found: Vec<Figure> = vec![];
    for metric in records.flat_map(|record| &record.custom) {
        if found.iter().all(|known| known.name != metric.name) {
            found.push(Figure::custom(&metric.name, &metric.unit));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_a_worth_and_an_unknown_one_counts_in_itself() {
        assert_eq!(unit_of("ms"), (Unit::Microseconds, 1e3));
        assert_eq!(unit_of("%"), (Unit::Share, 0.01));
        assert_eq!(unit_of("mJ"), (Unit::Number, 1.0));
        assert_eq!(unit_of(""), (Unit::Number, 1.0));
        let mut symbols: Vec<&str> = UNITS.iter().map(|(symbol, ..)| *symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), UNITS.len(), "each once");
    }

    #[test]
    fn units_of_one_kind_are_converted_and_others_are_not() {
        assert_eq!(worth("ms", "s"), Some(1e3), "in the unit of figures, µs");
        assert_eq!(worth("ms", ""), Some(1.0));
        assert_eq!(worth("ms", "MB"), None);
        assert_eq!(worth("mJ", "mJ"), Some(1.0));
        assert_eq!((worth("mJ", "kJ"), worth("", "ms"), worth("ms", "mJ")), (None, None, None));
    }
}
