//! `PUT /runs/{id}/note`, `GET` and `DELETE /runs/{id}/results`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use pubmark_runner::spec::file::document;
use schemars::JsonSchema;
use serde::Serialize;

use super::body::Text;
use super::lookup::{self, Found, Id};
use crate::library::note::{self, Note, NoteError};
use crate::library::removal::{self, Extent, REMOVED_FOLDER};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::StoreError;

/// Saves a note; an empty one removes it.
pub async fn put_note(
    State(shared): State<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
    body: Text<Note>,
) -> Result<Json<Note>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let folder = lookup::results(&used, &id)?;
        let sent: Note = document(&body.text)?;
        let note = Note::of(&sent.text, &sent.tags).map_err(|error| refused(&error))?;
        note::save(&folder, &note).map_err(|error| refused(&error))?;
        Ok(Json(note))
    })
    .await
}

fn refused(error: &NoteError) -> Problem {
    match error {
        NoteError::TooLong(_) | NoteError::TooMany(_) | NoteError::NoTag(_) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
        }
        _ => Problem::internal(error),
    }
}

/// What a deletion removes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Results {
    /// The submission that is removed from the list; `null` if only a folder is named.
    submission: Option<String>,
    /// Results folders, with everything in them.
    folders: Vec<Extent>,
}

/// Reports what a deletion would remove.
pub async fn results(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<Results>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || removable(&used, &id)).await.map(Json)
}

/// Removes results permanently.
pub async fn delete(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Json<Results>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let removed = removable(&used, &id)?;
        let aside = used.store.serve_folder().join(REMOVED_FOLDER);
        let mut left_over = Vec::new();
        for Extent { folder, .. } in &removed.folders {
            match removal::remove(used.store.runs(), folder, &aside) {
                // Another request removes it at the same time.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                // A command started in the folder after the check.
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => return Err(at_work(folder)),
                removed => left_over.extend(removed.map_err(|error| Problem::internal(&error))?),
            }
        }
        match &removed.submission {
            Some(submission) => left_over.extend(used.store.remove(submission)?),
            None => used.store.forget_folder(&id)?,
        }
        if left_over.is_empty() { Ok(Json(removed)) } else { Err(incomplete(&left_over)) }
    })
    .await
}

/// The results are no longer in the list, and some of their files are still on the disk.
fn incomplete(left_over: &[StoreError]) -> Problem {
    let reasons: Vec<String> = left_over.iter().map(|left| Problem::internal(left).body.error).collect();
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, reasons.join("; "))
        .hint("the results are no longer listed; delete what is named by hand, or remove the cause and start the server again")
}

fn at_work(folder: &str) -> Problem {
    let message = format!("`{folder}` cannot be deleted: a command is at work there");
    Problem::new(StatusCode::CONFLICT, message).hint("wait for its end, or stop it with Ctrl-C where it was started")
}

/// What a name refers to: all results of a submission, or one folder.
fn removable(shared: &Shared, id: &str) -> Result<Results, Problem> {
    let (submission, folders) = match lookup::find(shared, id)? {
        Found::Submission(entry) if !entry.status.state.is_over() => {
            let state = entry.status.state.word();
            return Err(Problem::new(
                StatusCode::CONFLICT,
                format!("`{id}` is {state}: its results cannot be deleted"),
            )
            .hint(format!("cancel it first: `DELETE /runs/{}`", entry.submitted.id)));
        }
        Found::Submission(entry) if entry.submitted.id == id => (Some(id.to_owned()), entry.status.folders),
        Found::Submission(_) => (None, vec![id.to_owned()]),
        Found::Folder(name) => {
            if lookup::result(shared, &name).is_none() {
                return Err(Problem::new(StatusCode::CONFLICT, format!("`{name}` holds no record that can be read"))
                    .hint("a run of the command line may be under way there; otherwise remove the folder by hand"));
            }
            (None, vec![name])
        }
    };
    let is_there = |name: &String| shared.store.runs().join(name).symlink_metadata().is_ok();
    let extent = |name: String| {
        let failed =
            |error: std::io::Error| Problem::new(StatusCode::CONFLICT, format!("`{name}` cannot be deleted: {error}"));
        let found = removal::extent(shared.store.runs(), &name).map_err(failed)?;
        match removal::idle(shared.store.runs(), &name).map_err(failed)? {
            Some(_) => Ok(found),
            None => Err(at_work(&name)),
        }
    };
    let folders = folders.into_iter().filter(is_there).map(extent).collect::<Result<_, Problem>>()?;
    Ok(Results { submission, folders })
}
