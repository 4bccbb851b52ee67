//! Content that the page of a run is sent once a second.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::sse::Event;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::events::Events;
use super::lookup::{self, Found, Id};
use crate::live::{EVERY, Shown};
use crate::problem::Problem;
use crate::shared::Shared;

/// Sends the rendered content once a second until the end.
pub async fn live(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Events, Problem> {
    let (send, receive) = mpsc::channel(2);
    let used = Arc::clone(&shared);
    match lookup::briefly(move || lookup::find(&used, &id)).await? {
        Found::Submission(entry) => {
            tokio::spawn(follow(shared, entry.submitted.id, send));
        }
        // A folder that existed before has a report at once.
        Found::Folder(name) => {
            let announce = "complete".to_owned();
            let shown = Shown {
                title: name,
                html: String::new(),
                announce,
                can_stop: false,
                over: true,
                ended: true,
                failure: None,
            };
            drop(send.send(Ok(event(&shown))).await);
        }
    }
    Ok(Events(ReceiverStream::new(receive)))
}

async fn follow(shared: Arc<Shared>, id: String, send: mpsc::Sender<Result<Event, Infallible>>) {
    let mut before: Option<Arc<Shown>> = None;
    loop {
        let (used, name) = (Arc::clone(&shared), id.clone());
        let show = move || Ok(used.views.show(&used.store, &name, |entry| used.queue.waits_for(entry)));
        let Ok(Some(shown)) = lookup::briefly(show).await else { return };
        let is_new = before.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &shown) && **before != *shown);
        if is_new && send.send(Ok(event(&shown))).await.is_err() {
            return;
        }
        // A failed run has no report: its page stays unchanged.
        if shown.ended {
            return;
        }
        before = Some(shown);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = send.closed() => return,
        }
    }
}

fn event(shown: &Shown) -> Event {
    Event::default().event("view").data(serde_json::to_string(shown).expect("plain JSON"))
}
