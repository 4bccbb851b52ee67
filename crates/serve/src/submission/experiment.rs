//! An experiment: one of those built in, or the text of a definition.

use std::path::Path;
use std::time::Duration;

use pubmark_experiment::experiment::definition;
use pubmark_model::experiment as model;
use pubmark_record::headline::Kind;
use pubmark_runner::RunError;
use pubmark_runner::spec::text::{self, Text as _};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Submission, What, refused};
use crate::allow::Allow;
use crate::problem::Problem;

/// An experiment, with what `pubmark experiment` changes of it. The text of a definition alone can be submitted, too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSubmission {
    /// The name of a built-in experiment, or what messages call the one in `text`.
    pub experiment: String,
    /// The text of a definition (`pubmark schema experiment`).
    #[serde(default)]
    pub text: Option<String>,
    /// Short runs and few repetitions.
    #[serde(default)]
    pub quick: bool,
    /// Some values of an axis, each as `AXIS=VALUE,…`.
    #[serde(default)]
    pub only: Vec<String>,
    /// Repetitions of each combination.
    #[serde(default)]
    pub repeat: Option<u32>,
    /// Length of each measured window.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub duration: Option<Duration>,
    /// Load before the window.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub warmup: Option<Duration>,
    /// Longest wait for a quiet machine before each run.
    #[serde(default, with = "text::maybe")]
    #[schemars(with = "Option<String>")]
    pub wait: Option<Duration>,
}

impl ExperimentSubmission {
    /// A definition without changes.
    pub fn of_text(text: &str) -> ExperimentSubmission {
        ExperimentSubmission {
            experiment: "experiment.yaml".to_owned(),
            text: Some(text.to_owned()),
            quick: false,
            only: vec![],
            repeat: None,
            duration: None,
            warmup: None,
            wait: None,
        }
    }

    /// Reads the definition and looks at what it names.
    pub(super) fn judged(self, allow: &Allow) -> Result<Submission, Problem> {
        let experiment = match &self.text {
            Some(text) => definition::parse(text, Path::new(""))?,
            None if model::names().contains(&self.experiment.as_str()) => {
                definition::load(&self.experiment)?.experiment
            }
            None => {
                return Err(Problem::from(RunError::input(format!("there is no experiment `{}`", self.experiment)))
                    .hint("`GET /experiments` lists those built in; send the `text` of another"));
            }
        };
        allow.experiment(&experiment).map_err(refused)?;
        let systems = experiment.axes.system.iter().map(|choice| choice.label.clone()).collect();
        let options = self.options(self.text.is_none());
        let what = What::Experiment { text: self.text, options };
        Ok(Submission { kind: Kind::Experiment, name: experiment.name, systems, what, notes: vec![] })
    }

    fn options(&self, is_built_in: bool) -> Vec<String> {
        let mut words = if is_built_in { vec![self.experiment.clone()] } else { vec![] };
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.only.iter().map(|only| format!("--only={only}")));
        words.extend(self.repeat.map(|repeat| format!("--repeat={repeat}")));
        let times = [("duration", self.duration), ("warmup", self.warmup), ("wait", self.wait)];
        let option = |(name, time): (&str, Option<Duration>)| Some(format!("--{name}={}", time?.write()));
        words.extend(times.into_iter().filter_map(option));
        words
    }
}
