//! The response to a request that was refused or failed: the error messages of the command line as JSON.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_runner::spec::file::DocumentError;
use pubmark_runner::{ErrorKind, RunError};
use schemars::JsonSchema;
use serde::Serialize;

/// Hint for a body that cannot be parsed.
pub const DESCRIBED: &str =
    "send the fields of an object as JSON or YAML; `GET /openapi.json` describes those of each path";

/// Why a request was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProblemBody {
    /// What was tried and why it failed, in one line.
    pub error: String,
    /// The same error in its parts, outermost first.
    pub chain: Vec<String>,
    /// Hint: what to do.
    pub hint: Option<String>,
    /// Position of the error in the text that was sent or in a file that it names, if known.
    pub place: Option<Place>,
}

/// A position in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The file; `null` for the text that was sent.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

/// A refusal or failure with its status code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Status code of the response.
    pub status: StatusCode,
    /// Body of the response.
    pub body: ProblemBody,
}

impl Problem {
    /// A problem with this message.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem::of_chain(status, vec![message.into()])
    }

    fn of_chain(status: StatusCode, chain: Vec<String>) -> Problem {
        Problem { status, body: ProblemBody { error: chain.join(": "), chain, hint: None, place: None } }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.body.hint = Some(hint.into());
        self
    }

    /// Nothing with this name exists.
    pub fn not_found(what: &str, name: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no {what} `{name}`"))
    }

    /// An error of the server or its machine.
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> Problem {
        let RunError { chain, .. } = RunError::from_error(ErrorKind::Internal, error);
        Problem::of_chain(StatusCode::INTERNAL_SERVER_ERROR, chain)
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Problem {
        let status = match error.kind {
            ErrorKind::Internal | ErrorKind::NotWritten => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let place = error.diagnostic.as_deref().and_then(|diagnostic| place(diagnostic));
        let hint = error.hint.clone().or_else(|| {
            error.diagnostic.as_deref().and_then(|diagnostic| diagnostic.help()).map(|help| help.to_string())
        });
        let problem = Problem::of_chain(status, error.chain);
        Problem { body: ProblemBody { hint, place, ..problem.body }, ..problem }
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Problem {
        let place = error.place.map(|(line, column)| Place { file: None, line, column });
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).hint(DESCRIBED);
        Problem { body: ProblemBody { place, ..problem.body }, ..problem }
    }
}

/// Position in a file that a diagnostic points to.
fn place(diagnostic: &dyn miette::Diagnostic) -> Option<Place> {
    let label = diagnostic.labels()?.next()?;
    let contents = diagnostic.source_code()?.read_span(label.inner(), 0, 0).ok()?;
    let (line, column) = (contents.line() as u64 + 1, contents.column() as u64 + 1);
    Some(Place { file: contents.name().map(str::to_owned), line, column })
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let is_unauthorized = self.status == StatusCode::UNAUTHORIZED;
        let mut response = (self.status, Json(self.body)).into_response();
        if is_unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl OperationOutput for Problem {
    type Inner = ProblemBody;

    fn operation_response(context: &mut GenContext, operation: &mut Operation) -> Option<ApiResponse> {
        Json::<ProblemBody>::operation_response(context, operation)
    }

    fn inferred_responses(
        context: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let Some(response) = Self::operation_response(context, operation) else { return vec![] };
        let response = ApiResponse { description: "Refused or failed: why, and what to do.".to_owned(), ..response };
        vec![(None, response)]
    }
}
