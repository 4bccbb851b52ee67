//! The query of a request; errors in it have the same form as all others.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query as Parsed};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// A parsed query.
pub struct Query<Fields>(pub Fields);

impl<State: Send + Sync, Fields: DeserializeOwned> FromRequestParts<State> for Query<Fields> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Query<Fields>, Problem> {
        let read = Parsed::from_request_parts(parts, state).await;
        read.map(|Parsed(fields)| Query(fields)).map_err(|rejection| unusable(&rejection))
    }
}

/// The error message without the prefixes of the library that parsed the query.
pub fn unusable(rejection: &QueryRejection) -> Problem {
    let text = rejection.body_text();
    let reason = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
    Problem::new(StatusCode::BAD_REQUEST, format!("the query cannot be used: {reason}"))
        .hint("`GET /openapi.json` describes the parameters of each path")
}

impl<Fields: JsonSchema> OperationInput for Query<Fields> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        Parsed::<Fields>::operation_input(context, operation);
    }
}
