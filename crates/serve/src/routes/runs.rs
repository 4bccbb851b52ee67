//! `GET /runs`, `GET /runs/{id}`, `DELETE /runs/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::lookup::{self, Found, Id};
use crate::entry::{RunEntry, newest_progress};
use crate::library::list::{self, ListQuery, Page};
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;
use crate::store::EVENTS_FILE;

/// A page of the list.
pub async fn list(State(shared): State<Arc<Shared>>, Query(query): Query<ListQuery>) -> Result<Json<Page>, Problem> {
    let used = Arc::clone(&shared);
    lookup::listing(&shared, move || list::page(&used, &query)).await.map(Json)
}

/// One submission or results folder.
pub async fn one(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<RunEntry>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || entry(&used, &id)).await.map(Json)
}

/// All data of one entry.
pub fn entry(shared: &Shared, id: &str) -> Result<RunEntry, Problem> {
    match lookup::find(shared, id)? {
        Found::Folder(name) => {
            let result = lookup::result(shared, &name).ok_or_else(|| {
                Problem::new(StatusCode::CONFLICT, format!("`{name}` holds no record that can be read"))
            })?;
            Ok(RunEntry::of_folder(&result))
        }
        Found::Submission(entry) => {
            let id = &entry.submitted.id;
            let position = lookup::position(shared, id);
            let result = entry.status.folders.last().and_then(|folder| lookup::result(shared, folder));
            let events = shared.store.folder(id).join(EVENTS_FILE);
            let is_under_way = !entry.status.state.is_over();
            let progress = if is_under_way { newest_progress(&events) } else { None };
            let waits_for = shared.queue.waits_for(&entry);
            Ok(RunEntry { progress, waits_for, ..RunEntry::of_submission(*entry, position, result.as_deref()) })
        }
    }
}

/// Cancels a submission.
pub async fn cancel(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<RunEntry>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let before = entry(&used, &id)?;
        if before.state.is_over() {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                format!("`{id}` has already ended: {}", before.state.word()),
            ));
        }
        if before.submitted_at.is_none() {
            return Err(Problem::new(StatusCode::CONFLICT, format!("`{id}` is run by a command, not by this server"))
                .hint("stop it with Ctrl-C where it was started"));
        }
        used.queue.cancel(&before.id)?;
        entry(&used, &before.id)
    })
    .await
    .map(Json)
}
