//! The query of a request, whose mistakes are refused in the form of all refusals.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequestParts, Query as Parsed};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// A query that was read.
pub struct Query<Fields>(pub Fields);

impl<State: Send + Sync, Fields: DeserializeOwned> FromRequestParts<State> for Query<Fields> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Query<Fields>, Problem> {
        let read = Parsed::from_request_parts(parts, state).await;
        let unusable = |text: String| Problem::new(StatusCode::BAD_REQUEST, text);
        read.map(|Parsed(fields)| Query(fields)).map_err(|rejection| unusable(rejection.body_text()))
    }
}

impl<Fields: JsonSchema> OperationInput for Query<Fields> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        Parsed::<Fields>::operation_input(context, operation);
    }
}
