//! `GET /compare`: results of one schedule side by side, as JSON or as a page.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use pubmark_record::comparison::{CompareError, Comparison, MOST_RUNS, compare};
use pubmark_record::record::Record;
use pubmark_report::html;
use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Content, HtmlText};
use super::lookup;
use super::selection::Selection;
use crate::library::loaded::run_of;
use crate::pages;
use crate::problem::Problem;
use crate::shared::Shared;

/// A comparison of results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// The results, in the order given.
    runs: Vec<ComparedRun>,
    /// Figures of the results.
    figures: Vec<ComparedFigure>,
    /// Settings, versions and machines in which the results differ, besides the system.
    differences: Vec<Difference>,
    /// How reliable the marked best values are.
    caution: String,
}

/// A result of a comparison.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// Name of the run.
    name: String,
    /// System and version, numbered where several are equal.
    label: String,
    /// Reason why it is not ranked; `null` if it is.
    not_ranked: Option<String>,
}

/// One figure of all results.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparedFigure {
    /// Name of the figure.
    name: String,
    /// Values; for a latency the upper bounds in µs; `null` where it was not measured.
    values: Vec<Option<f64>>,
    /// Lower bounds; `null` where a value has none.
    lower: Vec<Option<f64>>,
    /// Index of the best value, from 0; `null` if none is marked.
    best: Option<usize>,
}

/// A setting in which results differ.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Difference {
    /// Name of the setting.
    name: String,
    /// Values of the results.
    values: Vec<String>,
}

/// Compares the results.
pub async fn compared(
    State(shared): State<Arc<Shared>>,
    selection: Selection,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let used = Arc::clone(&shared);
    let is_page = pages::wants_page(&headers);
    lookup::slowly(&shared, move || {
        let records = records(&used, &selection.run)?;
        let comparison = compare(&records).map_err(|error| refused(&error))?;
        Ok(if is_page {
            Content::<HtmlText>::of(html::comparison(&comparison)).into_response()
        } else {
            Json(shown(&comparison)).into_response()
        })
    })
    .await
}

fn records(shared: &Shared, names: &[String]) -> Result<Vec<Record>, Problem> {
    // Each repetition of a submission is a separate run in a comparison.
    let mut folders = vec![];
    for name in names {
        folders.extend(lookup::all_results(shared, name)?.into_iter().map(|folder| (name, folder)));
    }
    if folders.len() > MOST_RUNS {
        return Err(refused(&CompareError::Count { found: folders.len() }));
    }
    folders.iter().map(|(name, folder): &(&String, PathBuf)| run_of(folder, name, "a comparison")).collect()
}

fn refused(error: &CompareError) -> Problem {
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
    match error {
        CompareError::Count { .. } => problem.hint("name them as `run=A&run=B`"),
        _ => problem.hint("compare runs of the same workload, scale, rate, seed and duration: the same load"),
    }
}

fn shown(comparison: &Comparison) -> Compared {
    let run = |run: &pubmark_record::comparison::ComparedRun| ComparedRun {
        name: run.record.run.name.clone(),
        label: run.label.clone(),
        not_ranked: run.not_ranked.clone(),
    };
    let figure = |row: &pubmark_record::comparison::ComparedFigure| ComparedFigure {
        name: row.figure.name.to_owned(),
        values: row.values.clone(),
        lower: row.lower.clone(),
        best: row.best,
    };
    let difference = |difference: &pubmark_record::comparison::Difference| Difference {
        name: difference.name.to_owned(),
        values: difference.values.clone(),
    };
    Compared {
        runs: comparison.runs.iter().map(run).collect(),
        figures: comparison.figures.iter().map(figure).collect(),
        differences: comparison.differences.iter().map(difference).collect(),
        caution: comparison.caution().to_owned(),
    }
}
