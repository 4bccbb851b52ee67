//! `run=A&run=B…` in a query: selects results.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use aide::operation::{ParamLocation, add_parameters, parameters_from_schema};
use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;

use crate::problem::Problem;

/// Maximum number of names in a query.
const MOST: usize = 100;

/// Results that a query names.
#[derive(Debug, JsonSchema)]
pub struct Selection {
    /// Submissions or results folders: `run=A&run=B`, at most 100.
    pub run: Vec<String>,
}

impl<State: Send + Sync> FromRequestParts<State> for Selection {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Selection, Problem> {
        let refused = |message: String| Problem::new(StatusCode::BAD_REQUEST, message);
        let Query(pairs) = Query::<Vec<(String, String)>>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| refused(rejection.body_text()))?;
        if let Some((name, _)) = pairs.iter().find(|(name, _)| name != "run") {
            return Err(refused(format!("there is no parameter `{name}` here")).hint("name results as `run=A&run=B`"));
        }
        if pairs.len() > MOST {
            return Err(refused(format!("{} results are named, more than {MOST}", pairs.len())));
        }
        let mut run: Vec<String> = Vec::new();
        for (_, name) in pairs {
            if !run.contains(&name) {
                run.push(name);
            }
        }
        if run.is_empty() {
            return Err(refused("no result is named".to_owned()).hint("name results as `run=A&run=B`"));
        }
        Ok(Selection { run })
    }
}

impl OperationInput for Selection {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let schema = context.schema.subschema_for::<Selection>();
        let parameters = parameters_from_schema(context, schema, ParamLocation::Query);
        add_parameters(context, operation, parameters);
    }
}
