//! `GET /runs/{id}/events`: the event lines of the child as server-sent events.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use aide::operation::{ParamLocation, add_parameters, parameters_from_schema};
use aide::{OperationInput, OperationOutput};
use axum::extract::{FromRequestParts, Path, State as AxumState};
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use pubmark_runner::stream::Progress;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::lookup::{self, Found, Id};
use crate::entry::{RunEntry, newest_progress};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::{EVENTS_FILE, Entry, Failure, State};
use crate::tail::{Line, Tail, whole_lines};

/// Interval between two checks of the file.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum size of the events that are sent again to a client that reconnects, bytes: about half an hour of progress.
const BACKLOG: u64 = 4 << 20;
/// Time without an event after which a comment keeps the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of events.
pub struct Events(pub ReceiverStream<Result<Event, Infallible>>);

impl IntoResponse for Events {
    fn into_response(self) -> Response {
        Sse::new(self.0).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }
}

impl OperationOutput for Events {
    type Inner = Events;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let content = [("text/event-stream".to_owned(), MediaType::default())].into_iter().collect();
        let response =
            ApiResponse { description: "Events, until the end.".to_owned(), content, ..ApiResponse::default() };
        vec![(Some(ApiStatus::Code(200)), response)]
    }
}

/// The newest event that a client has received: it requests those after it.
#[derive(JsonSchema)]
pub struct Resume {
    /// The `id` of the newest event that was received, as browsers send it when they reconnect. Without it, events are sent
    /// from the beginning.
    #[serde(rename = "Last-Event-ID")]
    last_event_id: Option<String>,
}

impl<State: Send + Sync> FromRequestParts<State> for Resume {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &State) -> Result<Resume, Infallible> {
        let value = parts.headers.get("last-event-id");
        // An id that is not text is not one of our ids.
        Ok(Resume { last_event_id: value.map(|value| value.to_str().unwrap_or_default().to_owned()) })
    }
}

impl OperationInput for Resume {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let schema = context.schema.subschema_for::<Resume>();
        let parameters = parameters_from_schema(context, schema, ParamLocation::Header);
        add_parameters(context, operation, parameters);
    }
}

/// Sent to a client whose newest event is unknown or too old: the events between are left out.
#[derive(Serialize)]
struct Current {
    event: &'static str,
    /// Whether events were left out.
    missed: bool,
    state: State,
    progress: Option<Progress>,
}

/// The events of a run: from the beginning, or after the newest event that the client has received.
pub async fn events(
    AxumState(shared): AxumState<Arc<Shared>>,
    Path(Id { id }): Path<Id>,
    resume: Resume,
) -> Result<Events, Problem> {
    let (send, receive) = mpsc::channel(16);
    let used = Arc::clone(&shared);
    let begun = lookup::briefly(move || match lookup::find(&used, &id)? {
        Found::Submission(entry) => {
            let file = used.store.folder(&entry.submitted.id).join(EVENTS_FILE);
            let (tail, current) = begin(file, &entry, resume).map_err(|error| Problem::internal(&error))?;
            Ok(Begun::Submission(entry.submitted.id, tail, current))
        }
        Found::Folder(name) => Ok(Begun::Folder(name)),
    });
    match begun.await? {
        Begun::Submission(id, tail, current) => {
            // The channel has space: nothing was sent yet.
            if let Some(current) = current {
                drop(send.send(Ok(current)).await);
            }
            tokio::spawn(follow(shared, id, tail, send));
        }
        // A folder that was created without the server has no events.
        Begun::Folder(name) => {
            let used = Arc::clone(&shared);
            let result = lookup::reading(&shared, move || Ok(lookup::result(&used, &name))).await?;
            let state = result.map_or(State::Complete, |one| RunEntry::of_folder(&one).state);
            drop(send.send(Ok(end(state, None))).await);
        }
    }
    Ok(Events(ReceiverStream::new(receive)))
}

/// What the events are of.
enum Begun {
    /// A submission: its id, the position at which reading starts, and an event that is sent before.
    Submission(String, Tail, Option<Event>),
    /// A results folder of this name.
    Folder(String),
}

/// The position at which reading starts, and an event that is sent before.
fn begin(file: PathBuf, entry: &Entry, resume: Resume) -> io::Result<(Tail, Option<Event>)> {
    let Some(newest) = resume.last_event_id else { return Ok((Tail::of(file), None)) };
    let newest: Option<u64> = newest.parse().ok();
    let (whole, is_known) = whole_lines(&file, newest.unwrap_or(u64::MAX))?;
    match newest.filter(|newest| is_known && whole - newest <= BACKLOG) {
        Some(newest) => Ok((Tail::behind(file, newest), None)),
        None => {
            let progress = newest_progress(&file);
            let current = Current { event: "current", missed: true, state: entry.status.state, progress };
            let data = serde_json::to_string(&current).expect("plain JSON");
            let event = Event::default().event("current").id(whole.to_string()).data(data);
            Ok((Tail::behind(file, whole), Some(event)))
        }
    }
}

async fn follow(shared: Arc<Shared>, id: String, mut tail: Tail, send: mpsc::Sender<Result<Event, Infallible>>) {
    loop {
        let (used, name) = (Arc::clone(&shared), id.clone());
        let read = lookup::briefly(move || {
            // The state is read before the file, otherwise the last events would be missed.
            let entry = used.store.get(&name).ok_or_else(|| Problem::not_found("run", &name))?;
            let lines = tail.lines().map_err(|error| Problem::internal(&error))?;
            Ok((tail, entry.status, lines))
        });
        // The submission was deleted, or its file cannot be read.
        let Ok((same, status, lines)) = read.await else { return };
        tail = same;
        let is_quiet = lines.is_empty();
        for line in lines {
            // Ends when the client disconnects.
            if send.send(Ok(event(&line))).await.is_err() {
                return;
            }
        }
        if is_quiet && status.state.is_over() {
            drop(send.send(Ok(end(status.state, status.error.as_ref()))).await);
            return;
        }
        if is_quiet {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = send.closed() => return,
            }
        }
    }
}

/// A line as an event: its kind is the event name, and the position of its end in the file is the id.
fn event(line: &Line) -> Event {
    #[derive(serde::Deserialize)]
    struct Head {
        event: String,
    }
    let name = serde_json::from_str::<Head>(&line.text).map_or_else(|_| "line".to_owned(), |head| head.event);
    Event::default()
        .event(name.replace(['\r', '\n', '\0'], " "))
        .id(line.end.to_string())
        .data(line.text.replace('\r', " "))
}

/// The last event of a stream.
#[derive(Serialize)]
struct End<'a> {
    event: &'static str,
    state: State,
    /// Reason of the failure in one line, and what to do; left out unless it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

fn end(state: State, failure: Option<&Failure>) -> Event {
    let hint = failure.and_then(|failure| failure.hint.as_deref());
    let end = End { event: "end", state, error: failure.map(Failure::reason), hint };
    Event::default().event("end").data(serde_json::to_string(&end).expect("plain JSON"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_of_a_run_wait_for_no_record() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), State::Complete);
        std::fs::create_dir(shared.store.runs().join("made-by-a-command")).unwrap();
        let shared = Arc::new(shared);
        // Whoever needs a permit to read fails.
        shared.reads.close();
        for (name, has_events) in [(id.as_str(), true), ("made-by-a-command", false)] {
            let path = Path(Id { id: name.to_owned() });
            let begun = events(AxumState(Arc::clone(&shared)), path, Resume { last_event_id: None }).await;
            assert_eq!(begun.is_ok(), has_events, "{name}");
        }
    }
}
