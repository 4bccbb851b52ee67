//! `GET /runs`, `GET /runs/{id}`, `DELETE /runs/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::lookup::{self, Found, Id};
use crate::entry::{RunEntry, newest_progress};
use crate::library::Listed;
use crate::library::list::{self, ListQuery, Page};
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;
use crate::store::{EVENTS_FILE, Entry, State as RunState};

/// A page of the list.
pub async fn list(State(shared): State<Arc<Shared>>, Query(query): Query<ListQuery>) -> Result<Json<Page>, Problem> {
    let used = Arc::clone(&shared);
    lookup::listing(&shared, move || list::page(&used, &query)).await.map(Json)
}

/// One submission or results folder.
pub async fn one(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<RunEntry>, Problem> {
    let used = Arc::clone(&shared);
    lookup::reading(&shared, move || entry(&used, &id)).await.map(Json)
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
            let folders = &entry.status.folders;
            let result = match folders.iter().find(|folder| *folder == name) {
                Some(folder) => lookup::result(shared, folder),
                // The newest folder may belong to the repetition in progress.
                None => folders.iter().rev().find_map(|folder| lookup::result(shared, folder)),
            };
            Ok(described(shared, *entry, result.as_deref()))
        }
    }
}

/// All data of a submission with this result.
fn described(shared: &Shared, entry: Entry, result: Option<&Listed>) -> RunEntry {
    let id = &entry.submitted.id;
    let position = lookup::position(shared, id);
    let is_under_way = !entry.status.state.is_over();
    let progress = if is_under_way { newest_progress(&shared.store.folder(id).join(EVENTS_FILE)) } else { None };
    let waits_for = shared.queue.waits_for(&entry);
    RunEntry { progress, waits_for, ..RunEntry::of_submission(entry, position, result) }
}

/// Cancels a submission. No record is read for that: a run ends at once, whatever others read.
pub async fn cancel(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<RunEntry>, Problem> {
    let (used, name) = (Arc::clone(&shared), id.clone());
    if let Some(response) = lookup::briefly(move || cancelled(&used, &name)).await? {
        return Ok(Json(response));
    }
    let used = Arc::clone(&shared);
    lookup::reading(&shared, move || Err(not_ours(&id, entry(&used, &id)?.state))).await
}

/// The submission, which is cancelled, without a result; `None` for a folder that no submission created.
fn cancelled(shared: &Shared, name: &str) -> Result<Option<RunEntry>, Problem> {
    let Found::Submission(entry) = lookup::find(shared, name)? else { return Ok(None) };
    if entry.status.state.is_over() {
        return Err(ended(name, entry.status.state));
    }
    let entry = shared.queue.cancel(&entry.submitted.id)?;
    Ok(Some(described(shared, entry, None)))
}

/// Why a results folder that no submission created cannot be cancelled.
fn not_ours(name: &str, state: RunState) -> Problem {
    if state.is_over() {
        return ended(name, state);
    }
    Problem::new(StatusCode::CONFLICT, format!("`{name}` is run by a command, not by this server"))
        .hint("stop it with Ctrl-C where it was started")
}

fn ended(name: &str, state: RunState) -> Problem {
    Problem::new(StatusCode::CONFLICT, format!("`{name}` has already ended: {}", state.word()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;

    use super::*;

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

    #[tokio::test]
    async fn a_run_is_cancelled_without_a_record_and_others_are_read_a_few_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Running);
        std::fs::create_dir(shared.store.runs().join("made-by-a-command")).unwrap();
        let shared = Arc::new(shared);
        // Whoever needs a permit to read fails.
        shared.reads.close();
        let named = |name: &str| (State(Arc::clone(&shared)), Path(Id { id: name.to_owned() }));
        let (state, path) = named(&id);
        assert_eq!(one(state, path).await.unwrap_err().status, StatusCode::INTERNAL_SERVER_ERROR);
        let (state, path) = named("made-by-a-command");
        assert_eq!(cancel(state, path).await.unwrap_err().status, StatusCode::INTERNAL_SERVER_ERROR);
        let (state, path) = named(&id);
        let cancelled = cancel(state, path).await.unwrap().0;
        assert_eq!((cancelled.state, cancelled.headline.is_some()), (RunState::Cancelling, false));
        assert_eq!(entry(&shared, &id).unwrap().headline.unwrap().folder, "one");
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
