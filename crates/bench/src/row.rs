//! A row of the table: its measurement and its target.

/// Repetitions of a case without a target, or of one that takes a minute each.
pub fn fewer(repetitions: usize) -> usize {
    (repetitions / 2).max(1)
}

/// One figure of a row, over all repetitions.
pub struct Reading {
    /// Name of the case.
    pub case: String,
    /// One value per repetition.
    pub values: Vec<f64>,
    /// Unit of the values.
    pub unit: &'static str,
    /// Upper limit of the median; `None` without a target.
    pub bar: Option<f64>,
    /// A note for the reader.
    pub note: String,
}

/// A row.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// The measured quantity.
    pub measure: &'static str,
    /// Values of other tools, for comparison.
    pub known: &'static str,
    /// Measures `repetitions` times.
    pub run: fn(repetitions: usize) -> Result<Vec<Reading>, String>,
}

impl Reading {
    /// A reading without a note.
    pub fn new(case: &str, values: Vec<f64>, unit: &'static str, bar: Option<f64>) -> Reading {
        Reading { case: case.to_owned(), values, unit, bar, note: String::new() }
    }

    /// Median; the mean of the two middle values if their number is even.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            length if length % 2 == 1 => sorted.get(middle).copied(),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        }
    }
}
