//! What can be submitted: a run, an experiment, a search for capacity, as YAML or JSON. [`Submission::read`] reads and judges it,
//! [`Submission::order`] says what the child process is called with.

mod capacity;
mod command;
mod experiment;
mod run;

use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use pubmark_experiment::experiment::planning::Plan;
use pubmark_model::secret::Secret;
use pubmark_record::headline::Kind;
use pubmark_runner::spec::file::document;
use pubmark_runner::{CheckedRun, Host, RunSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

pub use capacity::CapacitySubmission;
pub use experiment::ExperimentSubmission;
pub use run::RunSubmission;

use crate::allow::{Allow, NotAllowed};
use crate::problem::Problem;

/// What tells the kinds apart.
#[derive(Deserialize)]
struct Head {
    experiment: Option<IgnoredAny>,
    capacity: Option<IgnoredAny>,
    axes: Option<IgnoredAny>,
}

/// The body of `POST /runs` and `POST /validate`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the body; each kind is read by itself, for errors that say what is wrong")]
pub enum SubmissionBody {
    /// A run.
    Run(Box<RunSubmission>),
    /// An experiment by its name or its text.
    Experiment(ExperimentSubmission),
    /// A search for capacity.
    Capacity(CapacitySubmission),
}

/// Something that can be carried out, as far as that is known without starting it.
pub struct Submission {
    /// What it is.
    pub kind: Kind,
    /// Workload or experiment.
    pub name: String,
    /// Systems by name; `None` in it for one at an endpoint.
    pub systems: Vec<String>,
    /// What it is written as.
    what: What,
    /// What a reader should know of it.
    pub notes: Vec<String>,
}

enum What {
    /// With the parameters that its workload makes passwords of.
    Run(Box<RunSpec>, Vec<String>),
    /// The definition's text, if it is not built in, and the words behind it.
    Experiment { text: Option<String>, options: Vec<String> },
    /// The workload and the words behind it.
    Capacity { options: Vec<String> },
}

/// A head and words for each line of a dry run.
pub type Rows = Vec<(&'static str, String)>;

/// What it is about, as far as the dry run shows it.
pub enum Planned {
    /// A run.
    Run(Box<CheckedRun>),
    /// An experiment.
    Experiment(Box<Plan>),
    /// Lines of a search, and its first trial.
    Search(Rows, Box<CheckedRun>),
}

/// How the child process is called.
#[derive(Debug)]
pub struct Order {
    /// The verb.
    pub verb: &'static str,
    /// The file that it is given, to be written beside; otherwise the name of something built in.
    pub file: Option<(&'static str, String)>,
    /// A password, to be written beside for its owner alone.
    pub password: Option<(&'static str, Secret)>,
    /// Options.
    pub options: Vec<String>,
}

/// The shortest submissions.
const SHORTEST: &str = "a run is `{\"workload\": \"smart-home\"}`, an experiment `{\"experiment\": \"brokers\"}`, a search \
                        `{\"capacity\": \"smart-home\"}`; `GET /openapi.json` describes all fields";
/// Name of the file of a definition.
const EXPERIMENT_FILE: &str = "experiment.yaml";
/// Name of the file of a password.
const PASSWORD_FILE: &str = "password";

impl Submission {
    /// Reads and judges a text; starts nothing.
    ///
    /// # Errors
    /// It cannot be read, with line and column; may not be made; or cannot be made on this machine.
    pub fn read(text: &str, allow: &Allow, host: &Host) -> Result<Submission, Problem> {
        let head: Head = described(text)?;
        match head {
            Head { experiment: Some(_), .. } => described::<ExperimentSubmission>(text)?.judged(allow, host),
            Head { axes: Some(_), .. } => ExperimentSubmission::of_text(text).judged(allow, host),
            Head { capacity: Some(_), .. } => described::<CapacitySubmission>(text)?.judged(allow, host),
            _ => Submission::of_run(described::<RunSubmission>(text)?, allow, host),
        }
    }

    fn of_run(submitted: RunSubmission, allow: &Allow, host: &Host) -> Result<Submission, Problem> {
        let checked = checked(submitted, allow, host)?;
        let (spec, name) = (checked.spec.clone(), checked.workload.name.clone());
        let notes = checked.notes().to_vec();
        let what = What::Run(Box::new(spec.clone()), checked.workload.secret_parameters.clone());
        let named = spec.target.system.clone();
        let systems = named.unwrap_or_else(|| match spec.target.endpoint {
            Some(_) => "endpoint".to_owned(),
            None => "builtin".to_owned(),
        });
        Ok(Submission { kind: Kind::Run, name, systems: vec![systems], what, notes })
    }

    /// Works a text out; starts nothing.
    ///
    /// # Errors
    /// As [`Submission::read`].
    pub fn plan(text: &str, allow: &Allow, host: &Host) -> Result<Planned, Problem> {
        let head: Head = described(text)?;
        Ok(match head {
            Head { experiment: Some(_), .. } => {
                Planned::Experiment(Box::new(described::<ExperimentSubmission>(text)?.planned(allow, host)?))
            }
            Head { axes: Some(_), .. } => {
                Planned::Experiment(Box::new(ExperimentSubmission::of_text(text).planned(allow, host)?))
            }
            Head { capacity: Some(_), .. } => {
                let (rows, first) = described::<CapacitySubmission>(text)?.rows(allow, host)?;
                Planned::Search(rows, Box::new(first))
            }
            _ => Planned::Run(Box::new(checked(described(text)?, allow, host)?)),
        })
    }

    /// The words of the command line that makes the same: of a text, they take it as the file `run.yaml` or `experiment.yaml`.
    pub fn command(&self) -> Vec<String> {
        let words = |verb: &str, options: &[String]| -> Vec<String> {
            ["pubmark", verb].into_iter().map(str::to_owned).chain(options.iter().cloned()).collect()
        };
        match &self.what {
            What::Run(spec, _) => command::words(spec),
            What::Capacity { options } => words("capacity", options),
            What::Experiment { text: None, options } => words("experiment", options),
            What::Experiment { text: Some(_), options } => {
                words("experiment", &[&[EXPERIMENT_FILE.to_owned()], &options[..]].concat())
            }
        }
    }

    /// The text of `run.yaml` without passwords; `None` unless it is a run.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn run_yaml(&self) -> Result<Option<String>, Problem> {
        let What::Run(spec, secret_parameters) = &self.what else { return Ok(None) };
        Ok(Some(spec.to_yaml(secret_parameters)?))
    }

    /// How the child is called, its files in `folder`.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn order(self, folder: &Path) -> Result<Order, Problem> {
        Ok(match self.what {
            What::Run(mut spec, _) => {
                let password = spec.connection.password.take().map(|password| (PASSWORD_FILE, password));
                if password.is_some() {
                    spec.connection.password_file = Some(folder.join(PASSWORD_FILE));
                }
                let text = spec.to_yaml_with_passwords()?;
                Order { verb: "run", file: Some(("run.yaml", text)), password, options: vec![] }
            }
            What::Experiment { text, options } => {
                let file = text.map(|text| (EXPERIMENT_FILE, text));
                Order { verb: "experiment", file, password: None, options }
            }
            What::Capacity { options } => Order { verb: "capacity", file: None, password: None, options },
        })
    }
}

/// What a text says; a mistake with what a submission looks like.
fn described<Value: DeserializeOwned>(text: &str) -> Result<Value, Problem> {
    document(text).map_err(|error| Problem::from(error).hint(SHORTEST))
}

fn checked(submitted: RunSubmission, allow: &Allow, host: &Host) -> Result<CheckedRun, Problem> {
    let spec = submitted.spec()?;
    allow.run(&spec).map_err(refused)?;
    let spec = spec.self_contained();
    let workload = Arc::new(spec.load()?);
    Ok(spec.check_loaded(workload, host)?)
}

fn refused(error: NotAllowed) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, error.to_string()).hint(error.hint())
}
