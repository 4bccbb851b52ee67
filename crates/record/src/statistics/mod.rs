//! Statistics of repeated runs: the mean of a figure, its confidence interval, and whether two systems differ.
//!
//! Pure functions over slices. [`interval::interval`] computes the interval of a mean, [`welch::test`] tests whether
//! two samples differ, [`rank::exact_p`] does the same without assuming a distribution, [`holm::adjust`] corrects the p
//! values of many tests. Reasons for these methods: `docs/explanation/comparing.md`.

pub mod description;
pub mod distributions;
pub mod holm;
pub mod interval;
pub mod rank;
pub mod welch;

/// Fewest repetitions from which noise is estimated: any two values lie on a line.
pub const FEWEST_REPETITIONS: usize = 3;

/// Whether a figure is compared by ratios or by differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By ratios: all computations use logarithms. For positive figures, whose noise is proportional to their value.
    Logarithm,
    /// By differences. For figures that can be 0.
    Plain,
}

impl Scale {
    /// The scale for these values: [`Scale::Plain`] if a value is not positive and so has no logarithm, otherwise
    /// `self`.
    pub fn for_values<'a>(self, values: impl IntoIterator<Item = &'a f64>) -> Scale {
        match self {
            Scale::Logarithm if values.into_iter().all(|value| *value > 0.0) => Scale::Logarithm,
            _ => Scale::Plain,
        }
    }

    /// Converts a value to this scale.
    pub fn onto(self, value: f64) -> f64 {
        match self {
            Scale::Logarithm => libm::log(value),
            Scale::Plain => value,
        }
    }

    /// Converts a value on this scale back to the figure.
    pub fn back(self, value: f64) -> f64 {
        match self {
            Scale::Logarithm => libm::exp(value),
            Scale::Plain => value,
        }
    }

    /// Converts all values to this scale.
    pub fn onto_all(self, values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| self.onto(*value)).collect()
    }
}
