//! `GET /runs`, `GET /runs/{id}`, `DELETE /runs/{id}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use pubmark_record::headline::{Kind, Unreadable};
use pubmark_record::past_runs::filter::Filter;
use pubmark_record::past_runs::{moment, search};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lookup::{self, Found, Id};
use crate::entry::{RunEntry, newest_progress};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::{EVENTS_FILE, State as RunState};

/// Entries of a page, if the query gives no number.
const PAGE: usize = 50;
/// Entries of a page at most.
const MOST: usize = 500;

/// Filter, order and page.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Words and `key=value` with spaces between, as `pubmark runs` takes them: `mosquitto verdict=valid,suspect`. Only results match.
    filter: Option<String>,
    /// Only those that are as far.
    state: Option<RunState>,
    /// Only those of a kind.
    kind: Option<Kind>,
    /// Only those that began then or later: `2h` ago, `2026-03-01`.
    since: Option<String>,
    /// What they are ordered by.
    #[serde(default)]
    sort: Sort,
    /// Entries that are left out at the beginning.
    #[serde(default)]
    offset: usize,
    /// Entries at most: 1 to 500.
    limit: Option<usize>,
}

/// Orders of a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// By name of workload or experiment, then the newest first.
    Name,
    /// By p99 latency, the lowest first; those without one last.
    P99,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// Entries that match, on all pages.
    total: usize,
    /// Entries before this page.
    offset: usize,
    /// The page.
    runs: Vec<RunEntry>,
    /// Folders whose record cannot be read.
    unreadable: Vec<Unreadable>,
}

/// A page of what there is.
pub async fn list(State(shared): State<Arc<Shared>>, Query(query): Query<ListQuery>) -> Result<Json<Page>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || page(&used, &query)).await.map(Json)
}

fn page(shared: &Shared, query: &ListQuery) -> Result<Page, Problem> {
    let words: Vec<String> =
        query.filter.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect();
    let unusable = |message: String| Problem::new(StatusCode::BAD_REQUEST, message);
    let mut filter = Filter::read(&words).map_err(|error| unusable(error.to_string()).hint(error.hint()))?;
    filter.since = query.since.as_deref().map(moment::read).transpose().map_err(unusable)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MOST).contains(&limit) {
        return Err(unusable(format!("`limit` is 1 to {MOST}")));
    }
    let found = search(shared.store.runs(), &filter, usize::MAX).map_err(|error| Problem::internal(&error))?;
    let submissions = shared.store.all();
    let mut made = BTreeSet::new();
    let mut entries = Vec::new();
    let mut waiting = 0;
    for entry in submissions {
        made.extend(entry.status.folders.iter().cloned());
        let position = (entry.status.state == RunState::Queued).then_some(waiting);
        waiting += usize::from(!entry.status.state.is_over());
        let headline = entry.status.folders.last().and_then(|last| found.runs.iter().find(|one| one.folder == *last));
        if headline.is_none() && !filter.is_empty() {
            continue;
        }
        entries.push(RunEntry::of_submission(entry, position, headline.cloned()));
    }
    entries.extend(found.runs.into_iter().filter(|one| !made.contains(&one.folder)).map(RunEntry::of_folder));
    entries.retain(|entry| query.state.is_none_or(|state| entry.state == state));
    entries.retain(|entry| query.kind.is_none_or(|kind| entry.kind == kind));
    sort(&mut entries, query.sort);
    let total = entries.len();
    let runs = entries.into_iter().skip(query.offset).take(limit).collect();
    Ok(Page { total, offset: query.offset, runs, unreadable: found.unreadable })
}

fn sort(entries: &mut [RunEntry], by: Sort) {
    let p99 = |entry: &RunEntry| {
        let latency = entry.headline.as_ref().and_then(|headline| headline.latency.as_ref());
        latency.and_then(|latency| latency.upper.p99_us).unwrap_or(f64::INFINITY)
    };
    // In one second, the name decides: a page must not depend on chance.
    entries.sort_by(|one, other| other.at().cmp(one.at()).then_with(|| other.id.cmp(&one.id)));
    match by {
        Sort::Newest => {}
        Sort::Oldest => entries.reverse(),
        Sort::Name => entries.sort_by(|one, other| one.name.cmp(&other.name)),
        Sort::P99 => entries.sort_by(|one, other| p99(one).total_cmp(&p99(other))),
    }
}

/// One.
pub async fn one(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<RunEntry>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || entry(&used, &id)).await.map(Json)
}

/// All that is known of one.
pub fn entry(shared: &Shared, id: &str) -> Result<RunEntry, Problem> {
    match lookup::find(shared, id)? {
        Found::Folder(name) => {
            let headline = lookup::headline(shared, &name).ok_or_else(|| {
                Problem::new(StatusCode::CONFLICT, format!("`{name}` holds no record that can be read"))
            })?;
            Ok(RunEntry::of_folder(headline))
        }
        Found::Submission(entry) => {
            let id = &entry.submitted.id;
            let position = lookup::position(shared, id);
            let headline = entry.status.folders.last().and_then(|folder| lookup::headline(shared, folder));
            let events = shared.store.folder(id).join(EVENTS_FILE);
            let is_under_way = !entry.status.state.is_over();
            let progress = if is_under_way { newest_progress(&events) } else { None };
            Ok(RunEntry { progress, ..RunEntry::of_submission(*entry, position, headline) })
        }
    }
}

/// Cancels one.
pub async fn cancel(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<RunEntry>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let before = entry(&used, &id)?;
        if before.state.is_over() {
            return Err(Problem::new(StatusCode::CONFLICT, format!("`{id}` is over: {}", before.state.word())));
        }
        used.queue.cancel(&before.id)?;
        entry(&used, &before.id)
    })
    .await
    .map(Json)
}
