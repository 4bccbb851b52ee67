//! `GET /runs/{id}/events`: the lines that the child writes, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::lookup::{self, Found, Id};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::EVENTS_FILE;
use crate::tail::Tail;

/// Time between two looks at the file.
const LOOK: Duration = Duration::from_millis(200);
/// Time without an event after which a comment shows that the connection stands.
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

/// What goes on, from its beginning.
pub async fn events(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Events, Problem> {
    let (send, receive) = mpsc::channel(16);
    match lookup::find(&shared, &id)? {
        Found::Submission(entry) => {
            tokio::spawn(follow(shared, entry.submitted.id, send));
        }
        // What was made without the server left no events.
        Found::Folder(_) => drop(send.send(Ok(end("complete"))).await),
    }
    Ok(Events(ReceiverStream::new(receive)))
}

async fn follow(shared: Arc<Shared>, id: String, send: mpsc::Sender<Result<Event, Infallible>>) {
    let mut tail = Tail::of(shared.store.folder(&id).join(EVENTS_FILE));
    loop {
        // Before the file: what is written after it is over would be missed.
        let Some(entry) = shared.store.get(&id) else { return };
        let Ok(lines) = tail.lines() else { return };
        let is_quiet = lines.is_empty();
        for line in lines {
            // A reader that went away ends it.
            if send.send(Ok(event(&line))).await.is_err() {
                return;
            }
        }
        if is_quiet && entry.status.state.is_over() {
            drop(send.send(Ok(end(entry.status.state.word()))).await);
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

/// A line with its kind as its name.
fn event(line: &str) -> Event {
    #[derive(serde::Deserialize)]
    struct Head {
        event: String,
    }
    let name = serde_json::from_str::<Head>(line).map_or_else(|_| "line".to_owned(), |head| head.event);
    Event::default().event(name.replace(['\r', '\n', '\0'], " ")).data(line)
}

fn end(state: &str) -> Event {
    Event::default().event("end").data(format!("{{\"event\":\"end\",\"state\":\"{state}\"}}"))
}
