//! A row of the table: what is measured, how, and what it must reach.

/// Repetitions of a case that has no target, so that nothing is judged by it, or that takes a minute each.
pub fn fewer(repetitions: usize) -> usize {
    (repetitions / 2).max(1)
}

/// One figure of a row, over all repetitions.
pub struct Reading {
    /// Which case of the row.
    pub case: String,
    /// One value a repetition.
    pub values: Vec<f64>,
    /// Unit of the values.
    pub unit: &'static str,
    /// What the median must not exceed; `None` where there is no bar.
    pub bar: Option<f64>,
    /// Anything that a reader must know.
    pub note: String,
}

/// A row.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    /// What is measured.
    pub measure: &'static str,
    /// What others reach.
    pub known: &'static str,
    /// Measures, `repetitions` times.
    pub run: fn(repetitions: usize) -> Result<Vec<Reading>, String>,
}

impl Reading {
    /// A reading without a note.
    pub fn new(case: &str, values: Vec<f64>, unit: &'static str, bar: Option<f64>) -> Reading {
        Reading { case: case.to_owned(), values, unit, bar, note: String::new() }
    }

    /// Middle value; the mean of the two middle ones where their number is even.
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
