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

/// All data of one entry. By the name of a folder, the result is that of this folder.
pub fn entry(shared: &Shared, name: &str) -> Result<RunEntry, Problem> {
    match lookup::find(shared, name)? {
        Found::Folder(name) => {
            let result = lookup::result(shared, &name).ok_or_else(|| {
                Problem::new(StatusCode::CONFLICT, format!("`{name}` holds no record that can be read"))
            })?;
            Ok(RunEntry::of_folder(&result))
        }
        Found::Submission(entry) => {
            let id = &entry.submitted.id;
            let position = lookup::position(shared, id);
            let folders = &entry.status.folders;
            let folder = folders.iter().find(|folder| *folder == name).or(folders.last());
            let result = folder.and_then(|folder| lookup::result(shared, folder));
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;

    use super::*;
    use crate::store::State as RunState;

    #[test]
    fn each_repetition_has_its_own_result() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Complete);
        RunFolder::at(&shared.store.runs().join("two")).unwrap().write_record(&sample::record()).unwrap();
        shared.store.change(&id, |status| status.folders.push("two".to_owned())).unwrap();
        for (name, folder) in [("one", "one"), ("two", "two"), (id.as_str(), "two")] {
            let found = entry(&shared, name).unwrap();
            assert_eq!((found.id.as_str(), found.headline.unwrap().folder.as_str()), (id.as_str(), folder), "{name}");
        }
    }
}
