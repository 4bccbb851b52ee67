//! `GET /runs/{id}/record|report|table|notes`: files of a results folder under fixed names.

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::lookup::{self, Found, Id};
use crate::library::loaded::Loaded;
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;
use crate::store::MESSAGES_FILE;

/// The page may execute its own script and style, and load nothing.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'; sandbox allow-scripts";

/// Kinds of text responses.
pub trait Kind {
    /// Media type.
    const TYPE: &'static str;
    /// Content security policy that replaces the common one, if any.
    const POLICY: Option<&'static str> = None;
}

/// A document that pubmark writes as JSON.
pub struct JsonText;
/// A page of the reports, or a part of one.
pub struct HtmlText;
/// A table.
pub struct CsvText;
/// Text for people.
pub struct PlainText;

impl Kind for JsonText {
    const TYPE: &'static str = "application/json";
}

impl Kind for HtmlText {
    const TYPE: &'static str = "text/html; charset=utf-8";
    const POLICY: Option<&'static str> = Some(PAGE_POLICY);
}

impl Kind for CsvText {
    const TYPE: &'static str = "text/csv; charset=utf-8";
}

impl Kind for PlainText {
    const TYPE: &'static str = "text/plain; charset=utf-8";
}

/// A text response of a kind.
pub struct Content<K> {
    text: String,
    kind: PhantomData<K>,
}

impl<K: Kind> Content<K> {
    /// Creates the response from a text.
    pub fn of(text: String) -> Content<K> {
        Content { text, kind: PhantomData }
    }
}

impl<K: Kind> IntoResponse for Content<K> {
    fn into_response(self) -> Response {
        let mut response = ([(header::CONTENT_TYPE, K::TYPE)], self.text).into_response();
        if let Some(policy) = K::POLICY {
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, header::HeaderValue::from_static(policy));
        }
        response
    }
}

impl<K: Kind> OperationOutput for Content<K> {
    type Inner = Content<K>;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let bare = K::TYPE.split(';').next().unwrap_or_default().to_owned();
        let content = [(bare, MediaType::default())].into_iter().collect();
        let response = ApiResponse { description: "The text.".to_owned(), content, ..ApiResponse::default() };
        vec![(Some(ApiStatus::Code(200)), response)]
    }
}

/// `record.json`, `experiment.json`, `capacity.json` or `choice.json`.
pub async fn record(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
) -> Result<Content<JsonText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let text = Loaded::of(&lookup::results(&used, &id)?)?.json();
        Ok(Content::of(text.map_err(|error| Problem::internal(&error))?))
    })
    .await
}

/// The report, generated from the record by this version.
pub async fn report(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
) -> Result<Content<HtmlText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || Ok(Content::of(Loaded::of(&lookup::results(&used, &id)?)?.report()))).await
}

/// Selects a table.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableQuery {
    /// Name of the table. For a run: a file in `csv` of its folder, without `.csv`; `by_type` if left out. For an
    /// experiment: `cells`, a row for each figure of each cell, if left out; `runs`, a row for each run. For a search:
    /// `trials`. For a choice: `candidates`.
    table: Option<String>,
}

/// A table as CSV.
pub async fn table(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
    Query(query): Query<TableQuery>,
) -> Result<Content<CsvText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        Loaded::of(&lookup::results(&used, &id)?)?.table(query.table.as_deref()).map(Content::of)
    })
    .await
}

/// The messages of the child for people; empty for a folder that no submission created.
pub async fn notes(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
) -> Result<Content<PlainText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let text = match lookup::find(&used, &id)? {
            Found::Folder(_) => String::new(),
            Found::Submission(entry) => {
                let file = used.store.folder(&entry.submitted.id).join(MESSAGES_FILE);
                match std::fs::read(&file) {
                    Ok(bytes) => pubmark_record::plain::masked(&String::from_utf8_lossy(&bytes)).into_owned(),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                    Err(error) => return Err(Problem::internal(&error)),
                }
            }
        };
        Ok(Content::of(text))
    })
    .await
}
