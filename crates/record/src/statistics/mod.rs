//! Statistics of repeated runs: what a figure is on average, how far that may be off, and whether two systems differ.
//!
//! Pure functions over slices, nothing else. [`interval::interval`] says how far a mean may be off, [`welch::test`] whether
//! two samples differ, [`rank::exact_p`] the same without believing in any distribution, [`holm::adjust`] what many such
//! tests together are worth. Why these: `docs/explanation/comparing.md`.

pub mod description;
pub mod distributions;
pub mod holm;
pub mod interval;
pub mod rank;
pub mod welch;

/// Repetitions below which nothing is said about noise: two values always lie on some line.
pub const FEWEST_REPETITIONS: usize = 3;

/// Whether a figure is compared by ratios or by differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By ratios: everything is done on logarithms. For positive figures, whose noise grows with them.
    Logarithm,
    /// By differences. For figures that can be 0.
    Plain,
}

impl Scale {
    /// The scale on which values can be judged that ought to be judged on this one: one that is not positive has no
    /// logarithm.
    pub fn for_values<'a>(self, values: impl IntoIterator<Item = &'a f64>) -> Scale {
        match self {
            Scale::Logarithm if values.into_iter().all(|value| *value > 0.0) => Scale::Logarithm,
            _ => Scale::Plain,
        }
    }

    /// A value on this scale.
    pub fn onto(self, value: f64) -> f64 {
        match self {
            Scale::Logarithm => libm::log(value),
            Scale::Plain => value,
        }
    }

    /// A value of this scale as the figure itself.
    pub fn back(self, value: f64) -> f64 {
        match self {
            Scale::Logarithm => libm::exp(value),
            Scale::Plain => value,
        }
    }

    /// All values on this scale.
    pub fn onto_all(self, values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| self.onto(*value)).collect()
    }
}
