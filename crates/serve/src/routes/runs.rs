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
    lookup::briefly(move || entry(&shared, &id)).await.map(Json)
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
            let result = match folders.iter().find(|folder| *folder == name) {
                Some(folder) => lookup::result(shared, folder),
                // The newest folder may belong to the repetition in progress.
                None => folders.iter().rev().find_map(|folder| lookup::result(shared, folder)),
            };
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
    lookup::briefly(move || {
        let before = entry(&shared, &id)?;
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
        shared.queue.cancel(&before.id)?;
        entry(&shared, &before.id)
    })
    .await
    .map(Json)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;

    use super::*;
    use crate::store::State as RunState;

    /// Longest wait for what takes milliseconds.
    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_run_is_seen_and_cancelled_while_all_slow_work_and_a_plan_are_under_way() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Running);
        let shared = Arc::new(shared);
        let plan = Arc::clone(&shared.plans).acquire_owned().await.unwrap();
        let planned = tokio::time::timeout(LIMIT, lookup::slowly(&shared, || Ok(())));
        planned.await.expect("slow work waits for no plan").unwrap();
        drop(plan);
        let _slow = Arc::clone(&shared.slow).acquire_owned().await.unwrap();
        let planned = tokio::time::timeout(LIMIT, lookup::planning(&shared, || Ok(())));
        planned.await.expect("nor a plan for slow work").unwrap();
        let name = || Path(Id { id: id.clone() });
        let seen = tokio::time::timeout(LIMIT, one(State(Arc::clone(&shared)), name())).await;
        assert_eq!(seen.expect("its state").unwrap().0.state, RunState::Running);
        let cancelled = tokio::time::timeout(LIMIT, cancel(State(Arc::clone(&shared)), name())).await;
        assert_eq!(cancelled.expect("its end").unwrap().0.state, RunState::Cancelling);
    }

    #[test]
    fn each_repetition_has_its_own_result() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Complete);
        RunFolder::at(&shared.store.runs().join("two")).unwrap().write_record(&sample::record()).unwrap();
        shared.store.change(&id, |status| status.folders.push("two".to_owned())).unwrap();
        // The next repetition is under way.
        std::fs::create_dir(shared.store.runs().join("three")).unwrap();
        shared.store.change(&id, |status| status.folders.push("three".to_owned())).unwrap();
        for (name, folder) in [("one", "one"), ("two", "two"), (id.as_str(), "two")] {
            let found = entry(&shared, name).unwrap();
            assert_eq!((found.id.as_str(), found.headline.unwrap().folder.as_str()), (id.as_str(), folder), "{name}");
        }
    }
}
