//! `POST /runs`, `POST /validate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_experiment::Machines;
use pubmark_preflight::dry_run;
use pubmark_record::headline::Kind;
use pubmark_report::words::command_line;
use pubmark_runner::{Host, RunError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Text;
use super::lookup;
use super::query::Query;
use crate::entry::RunEntry;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::submission::{Planned, Submission, SubmissionBody};

/// An accepted submission: 202 with its URL.
pub struct Accepted(RunEntry);

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        let place = format!("/runs/{}", self.0.id);
        (StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(self.0)).into_response()
    }
}

impl OperationOutput for Accepted {
    type Inner = RunEntry;

    fn operation_response(context: &mut GenContext, operation: &mut Operation) -> Option<ApiResponse> {
        Json::<RunEntry>::operation_response(context, operation)
    }

    fn inferred_responses(
        context: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let Some(response) = Self::operation_response(context, operation) else { return vec![] };
        let description = "It is on the server's disk and waits for its turn.".to_owned();
        vec![(Some(ApiStatus::Code(202)), ApiResponse { description, ..response })]
    }
}

/// A submission that can be executed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Validated {
    /// Kind of the submission.
    kind: Kind,
    /// Name of the workload or experiment.
    name: String,
    /// Systems.
    systems: Vec<String>,
    /// Notes for the reader.
    notes: Vec<String>,
    /// The command line that executes the same; a text that was sent is the file `run.yaml`, `experiment.yaml`,
    /// `requirements.yaml` or `workload.yaml` in it.
    command: String,
    /// The same run as the file `run.yaml`, without passwords; `null` unless it is a run.
    run_yaml: Option<String>,
}

/// Extent of a dry run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DryRunQuery {
    /// Also measure this machine for two seconds, and compare what the run needs with what is available; for a search its
    /// first trial, for an experiment each load.
    #[serde(default)]
    machine: bool,
}

/// Result of a dry run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DryRun {
    /// For a run, what it needs, as `pubmark run --dry-run` prints it. For an experiment, the number of runs, their total
    /// time, and the combinations that cannot run on this machine, with the reason. For a search, what it tries, and what
    /// the first trial needs.
    text: String,
}

/// Adds a submission to the queue.
pub async fn submit(State(shared): State<Arc<Shared>>, body: Text<SubmissionBody>) -> Result<Accepted, Problem> {
    let used = Arc::clone(&shared);
    let entry = lookup::slowly(&shared, move || {
        let submission = Submission::read(&body.text, &used.allow, &used.host)?;
        used.store.add(submission)
    })
    .await?;
    shared.queue.wake();
    let position = lookup::position(&shared, &entry.submitted.id);
    let waits_for = shared.queue.waits_for(&entry);
    Ok(Accepted(RunEntry { waits_for, ..RunEntry::of_submission(entry, position, None) }))
}

/// Validates a submission.
pub async fn validate(
    State(shared): State<Arc<Shared>>,
    body: Text<SubmissionBody>,
) -> Result<Json<Validated>, Problem> {
    let used = Arc::clone(&shared);
    let submission = lookup::slowly(&shared, move || Submission::read(&body.text, &used.allow, &used.host)).await?;
    let (command, run_yaml) = (command_line(&submission.command()), submission.run_yaml()?);
    let Submission { kind, name, systems, notes, .. } = submission;
    Ok(Json(Validated { kind, name, systems, notes, command, run_yaml }))
}

/// Computes what a submission needs.
pub async fn dry_run(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<DryRunQuery>,
    body: Text<SubmissionBody>,
) -> Result<Json<DryRun>, Problem> {
    let used = Arc::clone(&shared);
    // Set when the client has disconnected: the cells of an experiment may take minutes.
    let stop = StopWhenDropped(Arc::default());
    let host = Host { stop: Arc::clone(&stop.0), ..used.host.clone() };
    lookup::planning(&shared, move || {
        let text = match Submission::plan(&body.text, &used.allow, &host)? {
            Planned::Run(run) => worked_out(&used, query.machine, |here| dry_run::run::text(&run, here))?,
            Planned::Search(rows, first) => {
                worked_out(&used, query.machine, |here| dry_run::capacity::text(&rows, &first, here))?
            }
            Planned::Choice(plan) => worked_out(&used, query.machine, |_| {
                Ok(dry_run::choose::text(&plan.requirements, &plan.objectives, &plan.candidates, None))
            })?,
            Planned::Experiment(plan) => worked_out(&used, query.machine, |here| {
                let machines = Machines::default();
                match here {
                    true => dry_run::experiment::on_this_machine(&plan, &machines, &host.stop),
                    false => Ok(dry_run::experiment::text(&plan, &machines)),
                }
            })?,
        };
        Ok(Json(DryRun { text }))
    })
    .await
}

/// Stops the work of a request when it is dropped.
struct StopWhenDropped(Arc<AtomicBool>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Computes what a submission needs; with `on_machine` it also measures this machine, which must not overlap with a run.
fn worked_out(
    shared: &Shared,
    on_machine: bool,
    text: impl FnOnce(bool) -> Result<String, RunError>,
) -> Result<String, Problem> {
    if !on_machine {
        return Ok(text(false)?);
    }
    let measured = shared.queue.between_runs(|| text(true)).map_err(|busy| {
        busy.refusal(
            "a run is under way: measuring the machine would disturb it",
            "wait for its end, or leave `machine` out",
        )
    })?;
    Ok(measured?)
}
