//! `POST /runs`, `POST /validate`.

use std::sync::Arc;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_record::headline::Kind;
use schemars::JsonSchema;
use serde::Serialize;

use super::body::Text;
use super::lookup;
use crate::entry::RunEntry;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::submission::{Submission, SubmissionBody};

/// What was taken in: 202, with its address.
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

/// A submission that could be made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Validated {
    /// What it is.
    kind: Kind,
    /// Workload, or experiment.
    name: String,
    /// Systems.
    systems: Vec<String>,
    /// What a reader should know of it.
    notes: Vec<String>,
}

/// Takes a submission in.
pub async fn submit(State(shared): State<Arc<Shared>>, body: Text<SubmissionBody>) -> Result<Accepted, Problem> {
    let used = Arc::clone(&shared);
    let entry = lookup::slowly(&shared, move || {
        let submission = Submission::read(&body.text, &used.allow, &used.host)?;
        used.store.add(submission)
    })
    .await?;
    shared.queue.wake();
    let position = lookup::position(&shared, &entry.submitted.id);
    Ok(Accepted(RunEntry::of_submission(entry, position, None)))
}

/// Says whether it could be made.
pub async fn validate(
    State(shared): State<Arc<Shared>>,
    body: Text<SubmissionBody>,
) -> Result<Json<Validated>, Problem> {
    let used = Arc::clone(&shared);
    let submission = lookup::slowly(&shared, move || Submission::read(&body.text, &used.allow, &used.host)).await?;
    let Submission { kind, name, systems, notes, .. } = submission;
    Ok(Json(Validated { kind, name, systems, notes }))
}
