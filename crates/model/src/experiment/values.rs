//! Validates an experiment that was built from values, not read from a file.

use std::collections::BTreeSet;

use super::cells::combinations;
use super::{Experiment, LARGEST_SCALE, MOST_CELLS, axes};

/// Reason why values are not a valid experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// An axis has a value twice, so two cells would be equal.
    #[error("`{value}` is given twice as a value of `{axis}`")]
    Twice {
        /// The axis.
        axis: String,
        /// The value.
        value: String,
    },
    /// An axis has no values.
    #[error("the axis `{axis}` has no value")]
    Nothing {
        /// The axis.
        axis: String,
    },
    /// A multiplier of devices is not possible.
    #[error("a scale of {scale} cannot be: the largest is {LARGEST_SCALE}")]
    Scale {
        /// The multiplier.
        scale: u32,
    },
    /// There are more combinations than the maximum.
    #[error("{cells} combinations are too many: an experiment has {MOST_CELLS} at most")]
    TooMany {
        /// Number of combinations.
        cells: u64,
    },
}

impl ValueError {
    /// What to do instead.
    pub fn hint(&self) -> &'static str {
        match self {
            ValueError::Twice { axis, .. } if axis == "system" => "give one of the two another label",
            ValueError::Twice { .. } => "keep one of the two",
            ValueError::Nothing { .. } => "give a value, or leave the axis out",
            ValueError::Scale { .. } => "give a smaller one",
            ValueError::TooMany { .. } => "leave values out, or make two experiments of it",
        }
    }
}

impl Experiment {
    /// Validates the values of the axes.
    ///
    /// # Errors
    /// A value occurs twice or is not possible, or there are too many combinations.
    pub fn check_values(&self) -> Result<(), ValueError> {
        let empty = self.axes.set.iter().find(|(_, values)| values.is_empty()).map(|(key, _)| format!("set.{key}"));
        let no_system = self.axes.system.is_empty().then(|| "system".to_owned());
        if let Some(axis) = no_system.or(empty) {
            return Err(ValueError::Nothing { axis });
        }
        if let Some(scale) = self.axes.scale.iter().find(|scale| **scale > LARGEST_SCALE) {
            return Err(ValueError::Scale { scale: *scale });
        }
        for axis in axes(self) {
            let mut seen = BTreeSet::new();
            if let Some(value) = axis.values.iter().find(|value| !seen.insert(value.as_str())) {
                return Err(ValueError::Twice { value: value.clone(), axis: axis.name });
            }
        }
        match combinations(self) {
            cells if cells > MOST_CELLS as u64 => Err(ValueError::TooMany { cells }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(axes: &str) -> Experiment {
        let text = format!("{{name: t, workload: hello, axes: {axes}}}");
        super::super::parse("t.yaml", &text, &|_, _| Ok(())).unwrap()
    }

    #[test]
    fn a_value_given_twice_and_too_many_combinations_are_refused() {
        let mut experiment = read("{system: [a, b], qos: [0, 1]}");
        assert_eq!(experiment.check_values(), Ok(()));
        experiment.axes.qos.push(1);
        let twice = ValueError::Twice { axis: "qos".to_owned(), value: "1".to_owned() };
        assert_eq!(experiment.check_values(), Err(twice));
        experiment.axes.qos = vec![];
        experiment.axes.scale = (1..=251).collect();
        assert_eq!(experiment.check_values(), Err(ValueError::TooMany { cells: 502 }));
        experiment.axes.scale = vec![LARGEST_SCALE + 1];
        assert_eq!(experiment.check_values(), Err(ValueError::Scale { scale: LARGEST_SCALE + 1 }));
        experiment.axes.scale = vec![];
        experiment.axes.set = vec![("rate".to_owned(), vec![])];
        assert_eq!(experiment.check_values(), Err(ValueError::Nothing { axis: "set.rate".to_owned() }));
    }
}
