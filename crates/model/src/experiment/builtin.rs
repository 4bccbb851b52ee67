//! The experiments that come with pubmark: the files in `experiments/`, embedded.

use super::definition::Experiment;
use super::load::{LoadError, parse};
use super::{axes, cells};

/// File name (without `.yaml`) and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// A row of `pubmark list experiments`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// The experiment.
    pub experiment: Experiment,
    /// Number of combinations.
    pub cells: usize,
    /// Names of the axes with more than one value.
    pub varied: Vec<String>,
}

/// Names of all built-in experiments.
pub fn names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).collect()
}

/// The built-in experiment with this name: its name and text.
pub(super) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    EMBEDDED.iter().find(|(known, _)| *known == name).copied()
}

/// All built-in experiments, by name.
pub fn all() -> Result<Vec<Listed>, LoadError> {
    let listed = |(name, text): &(&'static str, &str)| {
        let experiment = parse(&format!("experiments/{name}.yaml"), text, &|_, _| Ok(()))?;
        let varied = axes(&experiment).into_iter().filter(|axis| axis.values.len() > 1).map(|axis| axis.name).collect();
        Ok(Listed { name, cells: cells(&experiment).len(), varied, experiment })
    };
    EMBEDDED.iter().map(listed).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_experiment_is_what_its_file_is_called() {
        for listed in all().unwrap() {
            assert_eq!(listed.name, listed.experiment.name);
            assert!(!listed.experiment.description.is_empty() && listed.cells > 1, "{}", listed.name);
            assert!(crate::load::load(&listed.experiment.workload, &Default::default()).is_ok(), "{}", listed.name);
        }
    }
}
