//! `GET /runs/{id}/record|report|table|notes`: files of a folder of results, by fixed names.

use std::marker::PhantomData;
use std::path::Path as FilePath;
use std::sync::Arc;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::record::Record;
use pubmark_record::store::{self, Stored};
use pubmark_report::{csv, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::lookup::{self, Found, Id};
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;
use crate::store::MESSAGES_FILE;

/// The page may run its own script and style, and load nothing.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'; sandbox allow-scripts";

/// Kinds of texts.
pub trait Kind {
    /// Their media type.
    const TYPE: &'static str;
    /// What a browser may do with them, beside what it may with all.
    const POLICY: Option<&'static str> = None;
}

/// A document that pubmark writes as JSON.
pub struct JsonText;
/// A page of the reports, or a part of one.
pub struct HtmlText;
/// A table.
pub struct CsvText;
/// Words for people.
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

/// A text of a kind.
pub struct Content<K> {
    text: String,
    kind: PhantomData<K>,
}

impl<K: Kind> Content<K> {
    /// Of its text.
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

/// `record.json`, `experiment.json` or `capacity.json`.
pub async fn record(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
) -> Result<Content<JsonText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let folder = lookup::results(&used, &id)?;
        let text = of_kind(&folder, store::to_json, store::to_json, store::to_json)?;
        let text = text.map_err(|error| Problem::internal(&error))?;
        Ok(Content::of(text))
    })
    .await
}

/// The report, made from the record by this version.
pub async fn report(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
) -> Result<Content<HtmlText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let text = of_kind(&lookup::results(&used, &id)?, html::run, html::experiment, html::capacity)?;
        Ok(Content::of(text))
    })
    .await
}

/// Which table.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableQuery {
    /// Of a run: the name of a file in `csv` of its folder, without `.csv`; `by_type` if left out.
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
        let of_run = |record: &Record| csv_of(record, query.table.as_deref());
        let folder = lookup::results(&used, &id)?;
        let text = of_kind(&folder, of_run, |record| Ok(csv::cells(record)), |record| Ok(csv::trials(record)))??;
        Ok(Content::of(text))
    })
    .await
}

fn csv_of(record: &Record, name: Option<&str>) -> Result<String, Problem> {
    let bare = |file: &'static str| file.strip_suffix(".csv").unwrap_or(file);
    let mut tables = csv::TABLES.iter();
    let name = name.unwrap_or("by_type");
    let table = tables.find(|table| bare(table.file) == name).ok_or_else(|| {
        let names: Vec<&str> = csv::TABLES.iter().map(|table| bare(table.file)).collect();
        Problem::not_found("table", name).hint(format!("the tables are {}", names.join(", ")))
    })?;
    Ok((table.render)(record))
}

/// What the child wrote for people; empty for a folder that no submission made.
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

/// Does the right one with the record in a folder.
fn of_kind<Value>(
    folder: &FilePath,
    run: impl FnOnce(&Record) -> Value,
    experiment: impl FnOnce(&ExperimentRecord) -> Value,
    capacity: impl FnOnce(&CapacityRecord) -> Value,
) -> Result<Value, Problem> {
    let unreadable = |error: store::StoreError| match error {
        store::StoreError::NotFound { .. } => {
            Problem::new(StatusCode::CONFLICT, "there is no record yet").hint("it is written when the run has ended")
        }
        error => Problem::internal(&error),
    };
    if folder.join(ExperimentRecord::FILE).is_file() {
        return store::load_as(folder).map(|record| experiment(&record)).map_err(unreadable);
    }
    if folder.join(CapacityRecord::FILE).is_file() {
        return store::load_as(folder).map(|record| capacity(&record)).map_err(unreadable);
    }
    store::load(folder).map(|record| run(&record)).map_err(unreadable)
}
