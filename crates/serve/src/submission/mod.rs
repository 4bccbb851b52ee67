//! Submissions: a run, an experiment, a capacity search or a choice, as YAML or JSON. [`Submission::read`] reads and validates one,
//! [`Submission::order`] has the arguments of the child process.

mod capacity;
mod choice;
mod command;
mod experiment;
pub mod keys;
mod place;
mod run;

use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;
use pubmark_choose::requirements::{REQUIREMENTS_FILE, Requirements};
use pubmark_experiment::experiment::planning::Plan;
use pubmark_model::secret::Secret;
use pubmark_model::workload::Workload;
use pubmark_model::{self as model, builtin};
use pubmark_record::headline::Kind;
use pubmark_runner::spec::file::{DocumentError, document};
use pubmark_runner::{CheckedRun, Host, RunSpec, WorkloadSource, suggestion};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

pub use capacity::CapacitySubmission;
pub use choice::{ChoicePlan, ChoiceSubmission};
pub use experiment::ExperimentSubmission;
pub use run::RunSubmission;

use crate::allow::{Allow, NotAllowed};
use crate::problem::Problem;
use keys::Keys;

/// The fields that distinguish the kinds.
#[derive(Deserialize)]
struct Head {
    experiment: Option<IgnoredAny>,
    capacity: Option<IgnoredAny>,
    choose: Option<IgnoredAny>,
    axes: Option<IgnoredAny>,
}

/// The body of `POST /runs` and `POST /validate`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the body; each kind is read by itself, for errors that say what is wrong")]
pub enum SubmissionBody {
    /// A run.
    Run(Box<RunSubmission>),
    /// An experiment by its name or as text.
    Experiment(ExperimentSubmission),
    /// A capacity search.
    Capacity(Box<CapacitySubmission>),
    /// A choice of a system.
    Choice(Box<ChoiceSubmission>),
}

/// A validated submission, as far as this is possible without starting anything.
pub struct Submission {
    /// Kind of the submission.
    pub kind: Kind,
    /// Name of the workload or experiment.
    pub name: String,
    /// Systems by name; the inner `None` means a system at an endpoint.
    pub systems: Vec<String>,
    /// Content by kind.
    what: What,
    /// Notes for the user.
    pub notes: Vec<String>,
}

enum What {
    /// With the parameters that are used in passwords of its workload.
    Run(Box<RunSpec>, Vec<String>),
    /// The text of the definition, if it is not built in, and the options after it.
    Experiment { text: Option<String>, options: Vec<String> },
    /// The text of the workload, if it is not built in, the options after it, and the password of the clients.
    Capacity { text: Option<String>, options: Vec<String>, password: Option<Secret> },
    /// The requirements.
    Choice(Box<Requirements>),
}

/// A heading and a text for each line of a dry run.
pub type Rows = Vec<(&'static str, String)>;

/// The plan that a dry run shows.
pub enum Planned {
    /// A run.
    Run(Box<CheckedRun>),
    /// An experiment.
    Experiment(Box<Plan>),
    /// Lines of a search, and its first trial.
    Search(Rows, Box<CheckedRun>),
    /// A choice.
    Choice(Box<ChoicePlan>),
}

/// Arguments and files of the child process.
#[derive(Debug)]
pub struct Order {
    /// The verb on the command line.
    pub verb: &'static str,
    /// The file that is the first argument and is written to the folder, with its content; or the name of a built-in
    /// definition.
    pub file: Option<(&'static str, String)>,
    /// A password, written to a file that only its owner can read.
    pub password: Option<(&'static str, Secret)>,
    /// Command-line options.
    pub options: Vec<String>,
}

/// Examples of the shortest submissions.
const SHORTEST: &str = "a run is `{\"workload\": \"smart-home\"}`, an experiment `{\"experiment\": \"brokers\"}`, a search \
                        `{\"capacity\": \"smart-home\"}`, a choice `{\"choose\": {\"workload\": \"smart-home\"}}`; `GET /openapi.json` describes all fields";
/// File name of a definition.
const EXPERIMENT_FILE: &str = "experiment.yaml";
/// File name of the workload of a search.
const WORKLOAD_FILE: &str = "workload.yaml";
/// File name of a password.
const PASSWORD_FILE: &str = "password";

impl Submission {
    /// Reads and validates a text; starts nothing.
    ///
    /// # Errors
    /// The text cannot be parsed (with line and column), is not allowed, or cannot be executed on this machine.
    pub fn read(text: &str, allow: &Allow, host: &Host) -> Result<Submission, Problem> {
        let head: Head = head(text)?;
        let keys = head.keys();
        let read = || match head {
            Head { experiment: Some(_), .. } => described::<ExperimentSubmission>(text, keys)?.judged(allow, host),
            Head { axes: Some(_), .. } => {
                ExperimentSubmission::of_text(text).judged(allow, host).map_err(place::in_sent_text)
            }
            Head { capacity: Some(_), .. } => described::<CapacitySubmission>(text, keys)?.judged(allow, host),
            Head { choose: Some(_), .. } => described::<ChoiceSubmission>(text, keys)?.judged(allow, host),
            _ => Submission::of_run(described::<RunSubmission>(text, keys)?, allow, host),
        };
        read().map_err(|problem| place::located(text, keys.tell(problem)))
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

    /// Computes the plan for a text; starts nothing.
    ///
    /// # Errors
    /// As [`Submission::read`].
    pub fn plan(text: &str, allow: &Allow, host: &Host) -> Result<Planned, Problem> {
        let head: Head = head(text)?;
        let keys = head.keys();
        let planned = || {
            Ok(match head {
                Head { experiment: Some(_), .. } => {
                    Planned::Experiment(Box::new(described::<ExperimentSubmission>(text, keys)?.planned(allow, host)?))
                }
                Head { axes: Some(_), .. } => {
                    let planned = ExperimentSubmission::of_text(text).planned(allow, host);
                    Planned::Experiment(Box::new(planned.map_err(place::in_sent_text)?))
                }
                Head { capacity: Some(_), .. } => {
                    let (rows, first) = described::<CapacitySubmission>(text, keys)?.rows(allow, host)?;
                    Planned::Search(rows, Box::new(first))
                }
                Head { choose: Some(_), .. } => {
                    Planned::Choice(Box::new(described::<ChoiceSubmission>(text, keys)?.planned(allow, host)?))
                }
                _ => Planned::Run(Box::new(checked(described(text, keys)?, allow, host)?)),
            })
        };
        planned().map_err(|problem| place::located(text, keys.tell(problem)))
    }

    /// The command line that executes the same. A text is represented by the file `run.yaml`, `experiment.yaml` or
    /// `workload.yaml`.
    pub fn command(&self) -> Vec<String> {
        let words = |verb: &str, options: &[String]| -> Vec<String> {
            ["pubmark", verb].into_iter().map(str::to_owned).chain(options.iter().cloned()).collect()
        };
        match &self.what {
            What::Run(spec, _) => command::words(spec),
            What::Capacity { text, options, password } => {
                let file = text.as_ref().map(|_| WORKLOAD_FILE.to_owned());
                let password = password.as_ref().map(|_| format!("--password-file={PASSWORD_FILE}"));
                words("capacity", &file.into_iter().chain(options.iter().cloned()).chain(password).collect::<Vec<_>>())
            }
            What::Choice(_) => words("choose", &[REQUIREMENTS_FILE.to_owned()]),
            What::Experiment { text: None, options } => words("experiment", options),
            What::Experiment { text: Some(_), options } => {
                words("experiment", &[&[EXPERIMENT_FILE.to_owned()], &options[..]].concat())
            }
        }
    }

    /// The content of `run.yaml` without passwords; `None` unless this is a run.
    ///
    /// # Errors
    /// A value cannot be serialised.
    pub fn run_yaml(&self) -> Result<Option<String>, Problem> {
        let What::Run(spec, secret_parameters) = &self.what else { return Ok(None) };
        Ok(Some(spec.to_yaml(secret_parameters)?))
    }

    /// Arguments of the child, with its files in `folder`.
    ///
    /// # Errors
    /// A value cannot be serialised.
    pub fn order(self, folder: &Path) -> Result<Order, Problem> {
        Ok(match self.what {
            What::Run(mut spec, _) => {
                let password = spec.connection.password.take().map(|password| (PASSWORD_FILE, password));
                let options = password.iter().map(|_| password_from(folder)).collect();
                let text = spec.to_yaml_with_passwords()?;
                Order { verb: "run", file: Some(("run.yaml", text)), password, options }
            }
            What::Experiment { text, options } => {
                let file = text.map(|text| (EXPERIMENT_FILE, text));
                Order { verb: "experiment", file, password: None, options }
            }
            What::Choice(requirements) => {
                let text = requirements.to_yaml_with_passwords()?;
                // Each submission has a folder of its own.
                let options = vec!["--fresh".to_owned()];
                Order { verb: "choose", file: Some((REQUIREMENTS_FILE, text)), password: None, options }
            }
            What::Capacity { text, mut options, password } => {
                let file = text.map(|text| (WORKLOAD_FILE, text));
                options.extend(password.iter().map(|_| password_from(folder)));
                Order { verb: "capacity", file, password: password.map(|password| (PASSWORD_FILE, password)), options }
            }
        })
    }
}

/// The option by which the child reads the password. Unlike that of `--password-file`, the path is in no result: the file is
/// removed when the submission is over.
fn password_from(folder: &Path) -> String {
    format!("--password-from={}", folder.join(PASSWORD_FILE).display())
}

impl Head {
    fn keys(&self) -> Keys {
        match self {
            Head { experiment: None, axes: None, capacity: None, choose: None } => Keys::Run,
            Head { experiment: None, axes: None, capacity: None, choose: Some(_) } => Keys::Choice,
            _ => Keys::Flat,
        }
    }
}

/// The fields that distinguish the kinds; the error for a text without them shows what a submission looks like.
fn head(text: &str) -> Result<Head, Problem> {
    document(text).map_err(|error| Problem::from(error).hint(SHORTEST))
}

/// Parses a text; an error has a hint with what to write instead.
fn described<Value: DeserializeOwned>(text: &str, keys: Keys) -> Result<Value, Problem> {
    document(text).map_err(|error| {
        let key = error.place.and_then(|place| key_at(text, place));
        let hint = hint(&error, key, keys);
        Problem::from(error).hint(hint)
    })
}

/// Hint for a field: an unknown field may belong to a group, or be a misspelling of another; for others it refers to the
/// description.
fn hint(error: &DocumentError, key: Option<&str>, keys: Keys) -> String {
    let Some(wrong) = error.unknown_field() else {
        return match error.message.contains("missing field `workload`") {
            true => SHORTEST.to_owned(),
            false => format!(
                "`GET /openapi.json` describes what {} takes",
                key.map_or("each field".to_owned(), |key| format!("`{key}`"))
            ),
        };
    };
    // The valid names follow.
    let names = error.message.split_once("expected ").map_or("", |(_, names)| names.trim_start_matches("one of "));
    let names: Vec<&str> =
        names.split(", ").map(|name| name.trim_matches('`')).filter(|name| !name.is_empty()).collect();
    match keys.group(wrong).filter(|group| names.contains(group)) {
        Some(group) => format!("`{wrong}` is a field of `{group}`: write `{group}: {{{wrong}: …}}`"),
        None => suggestion::choices(wrong, names),
    }
}

/// The key of the value at a position, if the key is before it in the same line.
fn key_at(text: &str, (line, column): (u64, u64)) -> Option<&str> {
    let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let (end, _) = line.char_indices().nth(usize::try_from(column).ok()?.checked_sub(1)?)?;
    let before = line[..end].trim_end().trim_end_matches(['"', '\'', '[', '{']).trim_end().strip_suffix(':')?;
    let key = before.trim_end().trim_end_matches(['"', '\'']);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    key.rsplit(|letter: char| !is_letter(letter)).next().filter(|key| !key.is_empty())
}

/// Hint for a name of another kind of definition; `None` if it is not one.
fn of_another_kind(name: &str) -> Option<String> {
    let is_workload = builtin::find(name).is_some();
    let is_experiment = model::experiment::names().contains(&name);
    match (is_workload, is_experiment) {
        (true, _) => Some(format!(
            "`{name}` is a workload: a run of it is `{{\"workload\": \"{name}\"}}`, a search `{{\"capacity\": \"{name}\"}}`"
        )),
        (false, true) => Some(format!("`{name}` is an experiment: `{{\"experiment\": \"{name}\"}}`")),
        (false, false) => None,
    }
}

/// Loads the workload of a specification; the error for the name of an experiment says that it is one.
fn loaded(spec: &RunSpec) -> Result<Workload, Problem> {
    let named = match &spec.workload {
        WorkloadSource::Named(name) => of_another_kind(name),
        WorkloadSource::Inline { .. } => None,
    };
    spec.load().map_err(|error| match named {
        Some(hint) if builtin::find(spec.workload.name()).is_none() => Problem::from(error).hint(hint),
        _ => Problem::from(error),
    })
}

fn checked(submitted: RunSubmission, allow: &Allow, host: &Host) -> Result<CheckedRun, Problem> {
    let spec = submitted.spec()?;
    allow.run(&spec).map_err(refused)?;
    let spec = spec.self_contained();
    let workload = Arc::new(loaded(&spec)?);
    let checked = spec.check_loaded(workload, host)?;
    checked.check_limits()?;
    Ok(checked)
}

fn refused(error: NotAllowed) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, error.to_string()).hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_value_is_found_by_its_place() {
        for (text, place, key) in [
            (r#"{"workload": "hello", "scale": "many"}"#, (1, 32), Some("scale")),
            ("workload: hello\nload:\n  qos: many\n", (3, 8), Some("qos")),
            ("workload: hello\nload: [1]\n", (2, 8), Some("load")),
            ("- hello\n", (1, 3), None),
            ("é: x\n", (1, 4), None),
            ("a: b\n", (7, 1), None),
            ("a: b\n", (1, 70), None),
        ] {
            assert_eq!(key_at(text, place), key, "{text}");
        }
    }
}
