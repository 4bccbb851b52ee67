//! Events of a publication's repetition.

use std::fmt;

use pubmark_experiment::Observer;

use crate::record::PAPER_FILE;

/// An event of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The experiment begins, or continues: number `number` of `of`.
    Begins {
        /// Name of the experiment.
        name: &'a str,
        /// Number of the experiment, from 1.
        number: usize,
        /// Number of selected experiments.
        of: usize,
        /// Some of its runs were made by an earlier call.
        goes_on: bool,
    },
    /// The experiment is left out.
    LeftOut {
        /// Name of the experiment.
        name: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// The experiment ended before all its runs were made, because of consecutive invalid runs.
    Stopped {
        /// Name of the experiment.
        name: &'a str,
        /// The reason.
        why: &'a str,
    },
    /// Results of an earlier call are no longer in the record.
    Replaces {
        /// Name of the experiment.
        name: &'a str,
        /// What they were of, and why these are not beside them.
        what: &'a str,
    },
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Begins { name, number, of, goes_on } => {
                let what = if *goes_on { "goes on" } else { "begins" };
                write!(formatter, "experiment {number} of {of}: {name} {what}")
            }
            Step::LeftOut { name, why } => write!(formatter, "{name} is left out: {why}"),
            Step::Stopped { name, why } => write!(
                formatter,
                "{name} stopped: every run of its last two blocks was invalid for the same reason: {why}"
            ),
            Step::Replaces { name, what } => write!(formatter, "{name} replaces what `{PAPER_FILE}` had of {what}"),
        }
    }
}

/// Receives events.
pub trait Progress {
    /// An event of an experiment.
    fn step(&mut self, step: Step<'_>);
    /// Observer of the experiment that is running.
    fn observer(&mut self) -> &mut dyn Observer;
}

/// Reports results that are no longer in the record, each once.
pub(crate) fn report_replaced(
    found: Vec<(String, String)>,
    known: &mut Vec<(String, String)>,
    progress: &mut dyn Progress,
) {
    for (name, what) in found {
        if !known.iter().any(|(other, _)| *other == name) {
            progress.step(Step::Replaces { name: &name, what: &what });
            known.push((name, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_results_are_reported_once() {
        struct Steps(Vec<String>);
        impl Progress for Steps {
            fn step(&mut self, step: Step<'_>) {
                self.0.push(step.to_string());
            }
            fn observer(&mut self) -> &mut dyn Observer {
                unreachable!("nothing is run")
            }
        }
        let (mut steps, mut known) = (Steps(vec![]), vec![]);
        let found = || vec![("tuned".to_owned(), "the runs of a day".to_owned())];
        for _ in 0..2 {
            report_replaced(found(), &mut known, &mut steps);
        }
        assert_eq!(steps.0, ["tuned replaces what `paper.json` had of the runs of a day"]);
    }
}
