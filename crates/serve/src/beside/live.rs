//! The live view of one command, for a browser on this machine: the page of `pubmark serve` for a run, an experiment or a
//! search, with the events of the command. When the command ends, the page becomes the report; the command waits a short
//! time for pages to fetch it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::Event;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{get, post};
use pubmark_runner::stream::StreamEvent;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{Beside, BesideError};
use crate::guard::{Guard, Of};
use crate::library::loaded;
use crate::live::{EVERY, Gathered, Shown, Subject};
use crate::pages::{self, RUN_ALONE};
use crate::problem::Problem;
use crate::routes::{Events, secured};
use crate::store::State;
use crate::token::Token;

/// Maximum wait at the end for pages to fetch the report.
const FETCH_LIMIT: Duration = Duration::from_secs(3);

/// Interval between two reads of the events while no page requests them.
const GATHER: Duration = Duration::from_secs(10);

/// Shows a run, an experiment or a search while it goes on.
pub struct LiveServer {
    beside: Beside,
    watched: Arc<Watched>,
    events: Sender<StreamEvent>,
}

/// What is shown, and the pages that show it.
struct Watched {
    guard: Guard,
    token: Token,
    /// Only the threads that serve requests take this lock, and the command at its end: the run must not wait for a thread
    /// of the lowest priority.
    run: Mutex<Run>,
    /// Notified when a page connects, disconnects, or has the report.
    changed: Condvar,
    stop: Mutex<Option<Arc<AtomicBool>>>,
}

struct Run {
    events: Receiver<StreamEvent>,
    gathered: Gathered,
    drawn: Option<(Instant, Arc<Shown>)>,
    subject: Subject,
    folder: Option<PathBuf>,
    /// Number of connected pages that do not have the report yet.
    pages: usize,
}

impl LiveServer {
    /// Binds the address; starts no thread, so that a run can still enter its own network namespace.
    ///
    /// # Errors
    /// The address is not a loopback address, or another program uses it.
    pub fn bind(address: SocketAddr) -> Result<LiveServer, BesideError> {
        if !address.ip().is_loopback() {
            return Err(BesideError::NotLoopback { address });
        }
        let beside = Beside::bind(address)?;
        let token = Token::random().map_err(|source| BesideError::Thread { address, source })?;
        let subject =
            Subject { title: "Run".to_owned(), state: State::Running, error: None, waits_for: None, has_report: false };
        let (events, received) = channel();
        let run = Run { events: received, gathered: Gathered::default(), drawn: None, subject, folder: None, pages: 0 };
        let watched = Watched {
            guard: Guard::new(Of::Command, token.clone(), beside.address(), &[], false),
            token,
            run: Mutex::new(run),
            changed: Condvar::new(),
            stop: Mutex::default(),
        };
        Ok(LiveServer { beside, watched: Arc::new(watched), events })
    }

    /// The URL for a browser; the token is in the fragment after `#`, which a browser does not send.
    pub fn url(&self) -> String {
        format!("http://{}{RUN_ALONE}#{}", self.beside.address(), self.watched.token.expose())
    }

    /// Returns a function that accepts the events of the run.
    pub fn takes(&self) -> impl Fn(&StreamEvent) + Send + Sync + use<> {
        let events = self.events.clone();
        // After the end, the receiver no longer exists.
        move |event| drop(events.send(event.clone()))
    }

    /// Starts to serve requests. A page may set `stop`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(&mut self, stop: Arc<AtomicBool>) -> Result<(), BesideError> {
        *self.watched.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
        self.beside.start("live view", router(Arc::clone(&self.watched)), gather(Arc::clone(&self.watched)))
    }

    /// The run is over, with or without an error. Waits until every page has the report, if there is one, but at most three
    /// seconds.
    pub fn end(self, state: State, error: Option<String>) {
        let mut run = self.watched.run();
        run.take_events();
        run.subject.has_report = run.report().is_some();
        // Without a report and without an error, the run has no result.
        run.subject.state = if state == State::Complete && !run.subject.has_report { State::Failed } else { state };
        run.subject.error = error.map(|reason| (reason, None));
        run.drawn = None;
        let waited = self.watched.changed.wait_timeout_while(run, FETCH_LIMIT, |run| run.pages > 0);
        // Pages that did not fetch it in time continue to show their last content.
        drop(waited);
    }
}

impl Watched {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page disconnected, or has the report.
    fn page_is_done(&self) {
        let mut run = self.run();
        run.pages = run.pages.saturating_sub(1);
        self.changed.notify_all();
    }
}

impl Run {
    fn take_events(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            match &event {
                StreamEvent::Begins(begins) => {
                    self.subject.title = match &begins.system {
                        Some(system) => format!("{} on {system}", begins.name),
                        None => begins.name.clone(),
                    };
                    self.folder = None;
                }
                StreamEvent::Ends(ends) => self.folder = Some(PathBuf::from(&ends.folder)),
                _ => {}
            }
            self.gathered.add(event);
        }
    }

    fn report(&self) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        loaded::report_in(folder).map(|report| folder.join(report))
    }

    /// The current content; the same for all requests within a second.
    fn shown(&mut self) -> Arc<Shown> {
        if let Some((at, shown)) = &self.drawn
            && (at.elapsed() < EVERY || shown.ended)
        {
            return Arc::clone(shown);
        }
        self.take_events();
        let shown = Arc::new(self.gathered.shown(&self.subject));
        self.drawn = Some((Instant::now(), Arc::clone(&shown)));
        shown
    }
}

/// Reads the events while no page requests them: an experiment of a day writes more than should be in memory.
async fn gather(watched: Arc<Watched>) {
    loop {
        tokio::time::sleep(GATHER).await;
        watched.run().take_events();
    }
}

fn router(watched: Arc<Watched>) -> Router {
    Router::new()
        .route("/runs/this", get(|| async { pages::run_alone() }).delete(stop))
        .route("/runs/this/live", get(live))
        .route("/runs/this/report", get(report))
        .route("/runs/this/seen", post(seen))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "there is no such path") })
        .layer(from_fn_with_state(Arc::clone(&watched), check))
        .with_state(watched)
}

/// The page itself contains no data; everything else requires the token.
async fn check(Shared(watched): Shared<Arc<Watched>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_page = pages::wanted(request.method(), request.uri().path(), headers).is_some();
    let checked = match is_page {
        true => watched.guard.name(headers).map(drop),
        false => watched.guard.site(headers).and_then(|()| watched.guard.token(headers)),
    };
    secured(match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    })
}

/// Sends the content once a second until the end.
async fn live(Shared(watched): Shared<Arc<Watched>>) -> Events {
    let (send, receive) = mpsc::channel(2);
    watched.run().pages += 1;
    tokio::spawn(follow(watched, send));
    Events(ReceiverStream::new(receive))
}

async fn follow(watched: Arc<Watched>, send: mpsc::Sender<Result<Event, Infallible>>) {
    let mut before: Option<Arc<Shown>> = None;
    loop {
        let shown = watched.run().shown();
        if before.as_ref() != Some(&shown) {
            let data = serde_json::to_string(&*shown).expect("plain JSON");
            let sent = send.send(Ok(Event::default().event("view").data(data))).await;
            // A page that shows the end of the run fetches the report next.
            match (sent.is_ok(), shown.ended, shown.over) {
                (true, true, true) => return,
                (true, false, _) => {}
                _ => break,
            }
        }
        before = Some(shown);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = send.closed() => break,
        }
    }
    watched.page_is_done();
}

/// The report, as soon as it exists.
async fn report(Shared(watched): Shared<Arc<Watched>>) -> Response {
    let Some(path) = watched.run().report() else {
        return Problem::new(StatusCode::NOT_FOUND, "there is no report yet").into_response();
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Html(text).into_response(),
        Err(error) => {
            let message = format!("failed to read `{}`: {error}", path.display());
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, message).into_response()
        }
    }
}

/// A page reports that it has the report: the command need not wait for it.
async fn seen(Shared(watched): Shared<Arc<Watched>>) -> StatusCode {
    watched.page_is_done();
    StatusCode::NO_CONTENT
}

/// Requests an orderly stop of the run.
async fn stop(Shared(watched): Shared<Arc<Watched>>) -> StatusCode {
    if let Some(stop) = watched.stop.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        stop.store(true, Ordering::Relaxed);
    }
    StatusCode::ACCEPTED
}
