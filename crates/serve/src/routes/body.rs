//! Reads the body of a request within limits of size and time.

use std::marker::PhantomData;
use std::time::Duration;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, ReferenceOr, RequestBody, SchemaObject};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use schemars::JsonSchema;

use crate::problem::{DESCRIBED, Problem};

/// Maximum size of a body, bytes.
pub const BODY_BYTES: usize = 2 << 20;
/// Maximum time to read a body.
const LIMIT: Duration = Duration::from_secs(15);

/// A body of YAML or JSON that is documented as a `Described`, and parsed later, so that errors have a position.
pub struct Text<Described> {
    /// The text.
    pub text: String,
    described: PhantomData<Described>,
}

impl<State: Send + Sync, Described> FromRequest<State> for Text<Described> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Text<Described>, Problem> {
        let text = tokio::time::timeout(LIMIT, String::from_request(request, state)).await.map_err(|_| {
            Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("the request body did not arrive within {} s", LIMIT.as_secs()),
            )
        })?;
        match text {
            Ok(text) if text.trim().is_empty() => {
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the body is empty").hint(DESCRIBED))
            }
            Ok(text) => Ok(Text { text, described: PhantomData }),
            Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {} B", BODY_BYTES)))
            }
            Err(rejection) if rejection.status() == StatusCode::BAD_REQUEST => {
                Err(Problem::new(StatusCode::BAD_REQUEST, "the body is not UTF-8 text").hint(DESCRIBED))
            }
            Err(rejection) => Err(Problem::new(rejection.status(), rejection.body_text())),
        }
    }
}

impl<Described: JsonSchema> OperationInput for Text<Described> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let json_schema = context.schema.subschema_for::<Described>();
        let media = || MediaType {
            schema: Some(SchemaObject { json_schema: json_schema.clone(), external_docs: None, example: None }),
            ..MediaType::default()
        };
        let content = ["application/json", "application/yaml"].map(|name| (name.to_owned(), media()));
        operation.request_body = Some(ReferenceOr::Item(RequestBody {
            content: content.into_iter().collect(),
            required: true,
            ..RequestBody::default()
        }));
    }
}
