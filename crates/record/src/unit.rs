//! Units of figures and limits.

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Number of messages or connections.
    Count,
    /// Share; 1.0 is 100 %.
    Share,
    /// Microseconds.
    Microseconds,
    /// Per second.
    PerSecond,
    /// Number of CPU cores.
    Cores,
    /// CPU seconds per million messages.
    CpuSecondsPerMillion,
    /// Bytes.
    Bytes,
    /// Unit of a user-defined metric that is none of the others.
    Number,
}

/// Unit symbols as users write them: symbol, unit, and the factor that converts a value to the unit of the record.
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

/// Unit for a symbol, and the factor that converts a value to it. An unknown symbol is a plain number with factor 1.
pub fn of_symbol(symbol: &str) -> (Unit, f64) {
    let found = UNITS.iter().find(|(known, ..)| *known == symbol);
    found.map_or((Unit::Number, 1.0), |(_, unit, worth)| (*unit, *worth))
}

/// Factor that converts a value in `symbol` to the unit of figures, if `wanted` is a unit of the same kind; 1 for an
/// empty `wanted`, which leaves a value in its own unit. `None` if the units are incompatible.
pub fn worth(symbol: &str, wanted: &str) -> Option<f64> {
    if wanted.is_empty() {
        return Some(1.0);
    }
    let ((unit, worth), (wanted_unit, _)) = (of_symbol(symbol), of_symbol(wanted));
    let fits = if unit == Unit::Number { symbol == wanted } else { unit == wanted_unit };
    fits.then_some(worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_has_a_worth_and_an_unknown_one_counts_in_itself() {
        assert_eq!(of_symbol("ms"), (Unit::Microseconds, 1e3));
        assert_eq!(of_symbol("%"), (Unit::Share, 0.01));
        assert_eq!(of_symbol("mJ"), (Unit::Number, 1.0));
        assert_eq!(of_symbol(""), (Unit::Number, 1.0));
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
