//! `GET /runs/{id}/files` and the files themselves: those that a record names, those that are generated from it, and the
//! same for the runs of an experiment, a search or a choice. No other path is served.

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::{Content, CsvText, HtmlText};
use super::lookup::{self, Id};
use super::messages::named;
use super::sent_file::SentFile;
use crate::library::loaded::{Loaded, beneath, is_plain, kind_of, record_file, report_file};
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;

/// Selects the folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesQuery {
    /// A run of an experiment, a search or a choice, by its folder such as `runs/0001-a`: lists the files of this run instead.
    within: Option<String>,
}

/// Names of files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Files {
    /// Paths within the results folder: the record, the report, tables and other files that the record names, if they
    /// exist. For an experiment, a search or a choice also the report and the record of each run; `within` lists the other files of a
    /// run.
    files: Vec<String>,
}

/// A file of a result.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct FileOf {
    /// A submission or a results folder.
    id: String,
    /// Path within the folder, one that `GET /runs/{id}/files` lists: `csv/series.csv`, `runs/0001-a/report.html`.
    name: String,
}

/// Lists the files.
pub async fn list(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
    Query(query): Query<FilesQuery>,
) -> Result<Json<Files>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let folder = lookup::results(&used, &id)?;
        let loaded = Loaded::of(&folder)?;
        let Some(within) = query.within else {
            return Ok(Json(Files {
                files: names(&loaded, &folder, "").chain(inner_names(&loaded, &folder)).collect(),
            }));
        };
        let within = within.trim_end_matches('/');
        if !loaded.inner().iter().any(|inner| inner == within) {
            return Err(Problem::not_found("run", within).hint(format!("`GET /runs/{id}/files` names those of `{id}`")));
        }
        let inner = inner_folder(&folder, within).ok_or_else(|| no_file(&id, within))?;
        Ok(Json(Files { files: names(&Loaded::of(&inner)?, &inner, &format!("{within}/")).collect() }))
    })
    .await
}

/// Names of the existing files of one record.
fn names<'a>(loaded: &'a Loaded, folder: &'a FilePath, before: &'a str) -> impl Iterator<Item = String> + 'a {
    let drawn = loaded.tables().into_iter().map(|table| format!("csv/{table}.csv"));
    let mut names: Vec<String> = drawn.chain([loaded.report_file().to_owned()]).collect();
    let is_there = |name: &String| beneath(folder, name).is_some_and(|path| is_regular(&path));
    names.extend(loaded.files().into_iter().filter(is_there));
    names.sort();
    names.dedup();
    names.into_iter().map(move |name| format!("{before}{name}"))
}

/// Reports and records of the inner runs.
fn inner_names<'a>(loaded: &'a Loaded, folder: &'a FilePath) -> impl Iterator<Item = String> + 'a {
    let places = loaded.inner().into_iter().filter_map(|inner| Some((inner_folder(folder, &inner)?, inner)));
    places.flat_map(|(place, inner)| {
        let kind = kind_of(&place);
        [record_file(kind), report_file(kind)].map(|file| format!("{inner}/{file}"))
    })
}

/// The folder of an inner run or search that has a record, unless a link leads to it.
fn inner_folder(folder: &FilePath, inner: &str) -> Option<PathBuf> {
    let place = folder.join(inner);
    let record =
        beneath(folder, &format!("{inner}/{}", record_file(kind_of(&place)))).filter(|path| is_regular(path))?;
    record.parent().map(FilePath::to_owned)
}

/// Whether the path is a regular file, not a link.
fn is_regular(path: &FilePath) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// One of the files: reports and tables are generated from the record by this version, others are unchanged since the run.
pub async fn file(
    State(shared): State<Arc<Shared>>,
    Path(FileOf { id, name }): Path<FileOf>,
) -> Result<Response, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        if !is_plain(&name) {
            return Err(no_file(&id, &name));
        }
        found_within(&lookup::results(&used, &id)?, &name, &id)
    })
    .await
}

/// A file of the result in a folder, or of a run in it; a search in a choice has runs of its own.
fn found_within(folder: &FilePath, name: &str, id: &str) -> Result<Response, Problem> {
    let loaded = Loaded::of(folder)?;
    let inner = loaded.inner().into_iter().find_map(|inner| {
        let rest = name.strip_prefix(&inner)?.strip_prefix('/')?;
        Some((inner_folder(folder, &inner), rest))
    });
    match inner {
        None => found(&loaded, folder, name, id),
        Some((Some(place), rest)) => found_within(&place, rest, id),
        Some((None, _)) => Err(no_file(id, name)),
    }
}

fn found(loaded: &Loaded, folder: &FilePath, name: &str, id: &str) -> Result<Response, Problem> {
    if name == loaded.report_file() {
        return Ok(Content::<HtmlText>::of(loaded.report()).into_response());
    }
    if let Some(text) = loaded.table_file(name) {
        return Ok(Content::<CsvText>::of(text).into_response());
    }
    let path = loaded.files().iter().any(|file| file == name).then(|| beneath(folder, name)).flatten();
    let path = path.ok_or_else(|| no_file(id, name))?;
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    // The name comes from a record: it is used only if it is valid in a header.
    let saved_as = if lookup::is_name(&last) { format!("{}-{last}", named(folder)) } else { named(folder) };
    match SentFile::open(&path, saved_as) {
        Ok(sent) => Ok(sent.into_response()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(no_file(id, name)),
        Err(error) => Err(Problem::new(StatusCode::CONFLICT, format!("`{name}` cannot be sent: {error}"))),
    }
}

fn no_file(id: &str, name: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("`{id}` has no file `{name}`"))
        .hint(format!("`GET /runs/{id}/files` names them"))
}
