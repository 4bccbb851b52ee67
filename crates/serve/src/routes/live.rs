//! The page of a run in a browser, and what it is sent once a second.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::sse::Event;
use axum::response::{Html, IntoResponse as _, Response};
use pubmark_report::html::{LIVE_SCRIPT, REPORT_SCRIPT, live_page};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::events::Events;
use super::lookup::{self, Found, Id};
use crate::live::{EVERY, Shown};
use crate::problem::Problem;
use crate::shared::Shared;

/// Is it a browser that wants the page of a run? The page holds no data, and is answered without the token.
pub fn is_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let names = path.strip_prefix("/runs/").is_some_and(|id| !id.is_empty() && !id.contains('/'));
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    method == Method::GET && names && accepts.contains("text/html") && !headers.contains_key(header::AUTHORIZATION)
}

/// The page, which may run its own script and that of the report, and ask this server alone.
pub fn page() -> Response {
    let hash = |script: &str| base64(ring::digest::digest(&ring::digest::SHA256, script.as_bytes()).as_ref());
    let policy = format!(
        "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; script-src 'sha256-{}' 'sha256-{}'",
        hash(LIVE_SCRIPT),
        hash(REPORT_SCRIPT)
    );
    let mut response = Html(live_page()).into_response();
    let value = HeaderValue::from_str(&policy).expect("a policy is plain ASCII");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, value);
    response
}

/// Base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * place) & 63) as usize]);
            text.push(if place > three.len() { '=' } else { letter });
        }
    }
    text
}

/// What is drawn, once a second, until the end.
pub async fn live(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<Events, Problem> {
    let (send, receive) = mpsc::channel(2);
    match lookup::find(&shared, &id)? {
        Found::Submission(entry) => {
            tokio::spawn(follow(shared, entry.submitted.id, send));
        }
        // A folder that was there before has its report at once.
        Found::Folder(name) => {
            let announce = "complete".to_owned();
            let shown = Shown { title: name, html: String::new(), announce, can_stop: false, over: true, ended: true };
            drop(send.send(Ok(event(&shown))).await);
        }
    }
    Ok(Events(ReceiverStream::new(receive)))
}

async fn follow(shared: Arc<Shared>, id: String, send: mpsc::Sender<Result<Event, Infallible>>) {
    let mut before: Option<Arc<Shown>> = None;
    loop {
        let Some(shown) = shared.views.show(&shared.store, &id) else { return };
        let is_new = before.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &shown) && **before != *shown);
        if is_new && send.send(Ok(event(&shown))).await.is_err() {
            return;
        }
        // One that failed has no report: its page stays as it is.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648 §10.
        for (text, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
