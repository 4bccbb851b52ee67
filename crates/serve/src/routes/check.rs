//! `POST /check`: checks results against limits and a baseline.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use pubmark_record::check::{Checked as Judged, Demands, Row, Subject, judge};
use pubmark_record::threshold::{Conditions, Objectives};
use pubmark_runner::objectives::unread;
use pubmark_runner::spec::file::document;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Text;
use super::lookup;
use crate::problem::Problem;
use crate::shared::Shared;

/// Results to check, and the conditions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// A submission, of which all repetitions are used, or a results folder.
    run: String,
    /// Limits that must hold, for instance `p99<50ms,loss=0`.
    #[serde(default)]
    require: Option<String>,
    /// Conditions that must not be true; with a sign, a change from the baseline: `p99>+10%`.
    #[serde(default)]
    fail_on: Option<String>,
    /// Baseline of changes.
    #[serde(default)]
    baseline: Option<String>,
    /// Also fail for suspect runs.
    #[serde(default)]
    strict: bool,
}

/// Result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked {
    /// Whether nothing failed and nothing is undecided.
    passed: bool,
    /// Whether something is undecided and nothing failed.
    undecided: bool,
    /// The checks.
    checks: Vec<CheckRow>,
    /// Notes for the reader.
    notes: Vec<String>,
}

/// A single check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckRow {
    /// Cell of an experiment.
    cell: Option<String>,
    /// What is checked.
    name: String,
    /// Kind of the check.
    kind: String,
    /// `passed`, `warned`, `failed`, `undecided` or `not-measured`.
    outcome: String,
    /// Lower bound of the figure.
    lower: Option<f64>,
    /// The figure.
    value: Option<f64>,
    /// The figure of the baseline.
    baseline: Option<f64>,
    /// Result in words.
    detail: String,
}

/// Checks the results.
pub async fn check(State(shared): State<Arc<Shared>>, body: Text<CheckRequest>) -> Result<Json<Checked>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let request: CheckRequest = document(&body.text)?;
        let demands = demands(&request)?;
        let load = |id: &str| {
            let no_record = |why: String| {
                Problem::new(StatusCode::CONFLICT, format!("`{id}` has no record that can be checked: {why}"))
            };
            let loaded = Subject::load_all(&lookup::all_results(&used, id)?);
            loaded
                .map_err(|error| no_record(error.to_string()))?
                .ok_or_else(|| no_record("it has no folder".to_owned()))
        };
        let subject = load(&request.run)?;
        let baseline = request.baseline.as_deref().map(load).transpose()?;
        let judged = judge(&subject, &demands, baseline.as_ref())
            .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).hint(error.hint()))?;
        Ok(Json(shown(judged)))
    })
    .await
}

fn demands(request: &CheckRequest) -> Result<Demands, Problem> {
    let require = request.require.as_deref().map(Objectives::parse).transpose();
    let fail_on = request.fail_on.as_deref().map(Conditions::parse).transpose();
    let demands = Demands {
        require: require.map_err(|error| unread("`require`", &error))?,
        fail_on: fail_on.map_err(|error| unread("`fail_on`", &error))?,
        strict: request.strict,
    };
    let refused = |message: &str, hint: &str| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message).hint(hint));
    match (&request.baseline, demands.fail_on.as_ref().is_some_and(Conditions::need_baseline)) {
        (None, true) => refused("`fail_on` names a change, and there is no `baseline`", "name the run to compare with"),
        (Some(_), false) => refused(
            "`baseline` is given, and `fail_on` names no change from it",
            "say what counts: `fail_on: 'p99>+10%'`",
        ),
        _ => Ok(demands),
    }
}

fn shown(judged: Judged) -> Checked {
    let passed = judged.failed() == 0 && !judged.is_undecided();
    let undecided = judged.failed() == 0 && judged.is_undecided();
    Checked { passed, undecided, checks: judged.rows.iter().map(row).collect(), notes: judged.notes }
}

fn row(row: &Row) -> CheckRow {
    CheckRow {
        cell: (!row.cell.is_empty()).then(|| row.cell.clone()),
        name: row.name.clone(),
        kind: row.kind.name().to_owned(),
        outcome: row.outcome.name().to_owned(),
        lower: row.lower,
        value: row.value,
        baseline: row.baseline,
        detail: row.detail.clone(),
    }
}
