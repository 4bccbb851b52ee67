//! An experiment: a built-in one, or the text of a definition.

use std::path::Path;
use std::time::Duration;

use pubmark_experiment::Machines;
use pubmark_experiment::experiment::PreparedExperiment;
use pubmark_experiment::experiment::definition;
use pubmark_experiment::experiment::planning::{self, Plan};
use pubmark_model::experiment::{self as model, Changes, Experiment, MOST_REPETITIONS, OnlyError};
use pubmark_record::headline::Kind;
use pubmark_runner::spec::text::{self, Text as _};
use pubmark_runner::{Host, RunError, suggestion};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Submission, What, of_another_kind, refused};
use crate::allow::Allow;
use crate::problem::Problem;

/// Maximum size of the names of all combinations, bytes.
const LARGEST_LABELS: usize = 16 << 20;

/// An experiment, with the changes that `pubmark experiment` offers. The text of a definition can also be submitted
/// directly.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSubmission {
    /// Name of a built-in experiment, or the name for `text` in messages.
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
    /// Length of the warm-up before each window.
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

    /// Reads the definition, applies the changes and checks its combinations: at least one of them can run on this machine.
    pub(super) fn judged(self, allow: &Allow, host: &Host) -> Result<Submission, Problem> {
        let (experiment, note) = self.changed(allow, host)?;
        PreparedExperiment::check(experiment.clone(), None, host, &Machines::default())?;
        let systems = experiment.axes.system.iter().map(|choice| choice.label.clone()).collect();
        let options = self.options(self.text.is_none());
        let what = What::Experiment { text: self.text, options };
        Ok(Submission {
            kind: Kind::Experiment,
            name: experiment.name,
            systems,
            what,
            notes: note.into_iter().collect(),
        })
    }

    /// The plan of the experiment for this machine; nothing is started.
    pub(super) fn planned(self, allow: &Allow, host: &Host) -> Result<Plan, Problem> {
        let (experiment, _) = self.changed(allow, host)?;
        Ok(Plan::new(experiment, &planning::absolute(None)?, host, &Machines::default())?)
    }

    /// The experiment with the changes applied, and a note for the user.
    fn changed(&self, allow: &Allow, host: &Host) -> Result<(Experiment, Option<String>), Problem> {
        let experiment = match &self.text {
            Some(text) => {
                // First without files: no file is read before its permission is checked.
                let written = model::parse(definition::DEFINITION_FILE, text, &|_, _| Ok(()));
                let written =
                    written.map_err(|error| RunError::in_file(error).during("failed to load the experiment"))?;
                allow.experiment(&written).map_err(refused)?;
                definition::parse(text, Path::new(""))?
            }
            None if model::names().contains(&self.experiment.as_str()) => {
                definition::load(&self.experiment)?.experiment
            }
            None => {
                let hint = of_another_kind(&self.experiment).unwrap_or_else(|| {
                    let choices = suggestion::choices(&self.experiment, model::names());
                    format!("{choices}; send the `text` of another")
                });
                let message = format!("there is no experiment `{}`", self.experiment);
                return Err(Problem::from(RunError::input(message)).hint(hint));
            }
        };
        if let Some(repeat) = self.repeat.filter(|repeat| !(1..=MOST_REPETITIONS).contains(repeat)) {
            return Err(RunError::input(format!("`repeat` is 1 to {MOST_REPETITIONS}, not {repeat}")).into());
        }
        if self.duration.is_some_and(|duration| duration.is_zero()) {
            return Err(RunError::input("`duration` must be longer than zero").into());
        }
        let ExperimentSubmission { quick, repeat, duration, warmup, wait, .. } = *self;
        let changes = Changes { quick, repeat, duration, warmup, wait, ..Changes::default() };
        let mut experiment = experiment.changed(&changes);
        for only in &self.only {
            experiment = part(experiment, only)?;
        }
        allow.experiment(&experiment).map_err(refused)?;
        self.refuse_huge_labels(&experiment)?;
        Ok(planning::warmed_up(experiment, &planning::absolute(None)?, host, &Machines::default())?)
    }

    /// Each label contains a value of each axis: long values in many combinations would use too much memory.
    fn refuse_huge_labels(&self, experiment: &Experiment) -> Result<(), Problem> {
        let cells: usize = model::axes(experiment).iter().map(|axis| axis.values.len()).product();
        let bytes = self.text.as_ref().map_or(0, String::len);
        match cells.saturating_mul(bytes) > LARGEST_LABELS {
            true => {
                Err(Problem::from(RunError::input(format!("{cells} combinations of a text of {bytes} B are too many")))
                    .hint("write shorter values, or fewer of them"))
            }
            false => Ok(()),
        }
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

/// Some values of an axis, as `AXIS=VALUE,…`.
fn part(experiment: Experiment, only: &str) -> Result<Experiment, Problem> {
    let parts = only.split_once('=').map(|(axis, values)| (axis.trim(), values.trim()));
    let Some((axis, values)) = parts.filter(|(axis, values)| !axis.is_empty() && !values.is_empty()) else {
        return Err(Problem::from(RunError::input(format!("`only`: `{only}` is not an axis with values")))
            .hint("write an axis and its values, such as `system=mosquitto,nats`"));
    };
    experiment.only(axis, values).map_err(|error| {
        let (message, hint) = match error {
            OnlyError::NoAxis { wrong, axes } => {
                let hint = suggestion::choices(&wrong, axes.iter().map(String::as_str));
                (format!("`only`: `{wrong}` is not an axis of this experiment"), hint)
            }
            OnlyError::NoValue { axis, wrong, values } => {
                let hint = suggestion::choices(&wrong, values.iter().map(String::as_str));
                (format!("`only`: `{wrong}` is not a value of the axis `{axis}`"), hint)
            }
        };
        Problem::from(RunError::input(message)).hint(hint)
    })
}
