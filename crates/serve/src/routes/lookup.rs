//! Finds what an id names, and runs slow work on other threads than those that serve requests.

use std::path::PathBuf;
use std::sync::Arc;

use pubmark_record::headline::Kind;
use pubmark_runner::{ErrorKind, RunError};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::library::{Listed, holds_results};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::{Entry, State};

/// The id in the path of a request.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Id {
    /// A submission or a results folder.
    pub id: String,
}

/// What an id names.
pub enum Found {
    /// A submission.
    Submission(Box<Entry>),
    /// A results folder that no submission created.
    Folder(String),
}

/// Finds the submission or folder. A name never leads out of the results folder: it is a single component of a path.
///
/// # Errors
/// Nothing has this id.
pub fn find(shared: &Shared, id: &str) -> Result<Found, Problem> {
    if let Some(entry) = shared.store.get(id).or_else(|| shared.store.of_folder(id)) {
        return Ok(Found::Submission(Box::new(entry)));
    }
    if is_name(id) && shared.store.runs().join(id).is_dir() {
        return Ok(Found::Folder(id.to_owned()));
    }
    Err(Problem::not_found("run", id).hint("`GET /runs` lists them"))
}

/// Whether this can be the name of a results folder. Names that begin with a dot belong to the server.
pub fn is_name(id: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    !id.is_empty() && id.len() <= 255 && !id.starts_with('.') && id.chars().all(is_letter)
}

/// The folder with the newest results of a submission, or the folder with this id.
///
/// # Errors
/// There is none.
pub fn results(shared: &Shared, id: &str) -> Result<PathBuf, Problem> {
    let none = || {
        Problem::new(axum::http::StatusCode::CONFLICT, format!("`{id}` has no results yet"))
            .hint(format!("`GET /runs/{id}` says how far it is"))
    };
    match find(shared, id)? {
        Found::Folder(name) => Ok(shared.store.runs().join(name)),
        Found::Submission(entry) => {
            let folders = &entry.status.folders;
            // The newest folder may belong to the repetition in progress.
            let newest = || folders.iter().rev().find(|name| holds_results(&shared.store.runs().join(name)));
            let named = folders.iter().find(|name| *name == id).or_else(newest).ok_or_else(none)?;
            Ok(shared.store.runs().join(named))
        }
    }
}

/// The folders of all repetitions of a submission, or the folder with this id; the oldest first. A folder of a repetition that
/// failed may have no record.
///
/// # Errors
/// There is none, or a repetition is in progress.
pub fn all_results(shared: &Shared, id: &str) -> Result<Vec<PathBuf>, Problem> {
    let newest = results(shared, id)?;
    match find(shared, id)? {
        Found::Submission(entry) if entry.submitted.id == id && entry.submitted.kind == Kind::Run => {
            if !entry.status.state.is_over() {
                return Err(Problem::new(
                    axum::http::StatusCode::CONFLICT,
                    format!("repetitions of `{id}` are under way"),
                )
                .hint("wait for its end, or name the folder of one: `folders` of `GET /runs/{id}`"));
            }
            Ok(entry.status.folders.iter().map(|name| shared.store.runs().join(name)).collect())
        }
        _ => Ok(vec![newest]),
    }
}

/// Number of submissions before a queued one.
pub fn position(shared: &Shared, id: &str) -> Option<usize> {
    shared
        .store
        .all()
        .iter()
        .filter(|entry| !entry.status.state.is_over())
        .position(|entry| entry.submitted.id == id)
        .filter(|_| shared.store.get(id).is_some_and(|entry| entry.status.state == State::Queued))
}

/// Data of a results folder; `None` if nothing can be read.
pub fn result(shared: &Shared, folder: &str) -> Option<Arc<Listed>> {
    shared.library.one(shared.store.runs(), folder)
}

/// Runs slow work; only a few requests do so at the same time.
///
/// # Errors
/// The error of the work, or the work was cancelled.
pub async fn slowly<Value: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Value, Problem> {
    permitted(&shared.slow, work).await
}

/// Plans a submission; only one at a time, beside other slow work: the combinations of an experiment may take minutes.
///
/// # Errors
/// As [`slowly`].
pub async fn planning<Value: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Value, Problem> {
    permitted(&shared.plans, work).await
}

/// Reads the summary of a result, beside other slow work: a client that follows a run does not wait for that. Only a few requests
/// do so at the same time, because the record behind a summary may be large.
///
/// # Errors
/// As [`slowly`].
pub async fn reading<Value: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Value, Problem> {
    permitted(&shared.reads, work).await
}

async fn permitted<Value: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Value, Problem> {
    let permit = permit(permits).await?;
    // The work holds the permit, because it continues if the client disconnects.
    briefly(move || {
        let _permit = permit;
        work()
    })
    .await
}

/// Waits for a permit. The wait has no time limit, because it ends when the client disconnects: then its request is dropped.
async fn permit(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    let ends = |_| Problem::from(RunError::new(ErrorKind::Internal, "the server is shutting down"));
    Arc::clone(permits).acquire_owned().await.map_err(ends)
}

/// Runs short file access that reads no record, separately from slow work: a client that follows or cancels a run does not wait for
/// slow work.
///
/// # Errors
/// The error of the work, or the work was cancelled.
pub async fn briefly<Value: Send + 'static>(
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Value, Problem> {
    let failed = |_| Problem::from(RunError::new(ErrorKind::Internal, "the work of the request was aborted"));
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

/// Creates a list of all results; only one at a time.
///
/// # Errors
/// As [`slowly`].
pub async fn listing<Value: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Value, Problem> {
    let permit = permit(&shared.lists).await?;
    // As in `permitted`: otherwise lists whose clients disconnected would take all permits of slow work.
    slowly(shared, move || {
        let _permit = permit;
        work()
    })
    .await
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_list_whose_client_disconnected_is_still_the_only_one() {
        let place = tempfile::tempdir().unwrap();
        let shared = Arc::new(Shared::of_two_repetitions(place.path(), State::Complete).0);
        let (begins, begun) = tokio::sync::oneshot::channel();
        let (ends, end) = mpsc::channel::<()>();
        let used = Arc::clone(&shared);
        let list = tokio::spawn(async move {
            let work = move || {
                begins.send(()).unwrap();
                // Until the test drops its end.
                let _ = end.recv();
                Ok(())
            };
            listing(&used, work).await
        });
        begun.await.unwrap();
        list.abort();
        assert!(list.await.unwrap_err().is_cancelled());
        assert_eq!(shared.lists.available_permits(), 0, "it goes on");
        drop(ends);
        drop(shared.lists.acquire().await.unwrap());
    }

    #[test]
    fn a_name_is_one_component_and_none_of_the_servers() {
        for right in ["20260301-090507-smart-home", "a.b_c"] {
            assert!(is_name(right), "{right}");
        }
        for wrong in ["", ".", "..", ".serve", "a/b", "../x", "a\\b", "a%2fb", "a\0", "é", "latest/../x"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
