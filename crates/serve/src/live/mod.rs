//! The live view of a submission: the events of its child, gathered, and drawn once a second for all pages that show it.

mod gathered;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use gathered::{Gathered, Shown, Subject};

use crate::library::holds_results;
use crate::store::{EVENTS_FILE, Entry, Store};
use crate::tail::Tail;

/// Minimum interval between two drawings.
pub const EVERY: Duration = Duration::from_millis(900);
/// Live views of submissions that a page shows or has shown.
#[derive(Default)]
pub struct Views {
    views: Mutex<HashMap<String, Arc<Mutex<View>>>>,
}

/// The live view of one submission.
struct View {
    tail: Tail,
    gathered: Gathered,
    drawn: Option<(Instant, Arc<Shown>)>,
}

impl Views {
    /// The current view of a submission, with what it waits for; the same for all requests within a second. `None` if there
    /// is no such submission. Reads a file and draws, so it must not run on a thread that others wait for.
    pub fn show(&self, store: &Store, id: &str, waits_for: impl Fn(&Entry) -> Option<String>) -> Option<Arc<Shown>> {
        let entry = store.get(id)?;
        let view = {
            let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
            if !views.contains_key(id) {
                // Views of submissions that are over are dropped; their events are read again on request.
                views.retain(|other, _| store.get(other).is_some_and(|entry| !entry.status.state.is_over()));
            }
            let new = || View {
                tail: Tail::of(store.folder(id).join(EVENTS_FILE)),
                gathered: Gathered::default(),
                drawn: None,
            };
            Arc::clone(views.entry(id.to_owned()).or_insert_with(|| Arc::new(Mutex::new(new()))))
        };
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        Some(view.show(store, &entry, waits_for(&entry)))
    }
}

impl View {
    fn show(&mut self, store: &Store, entry: &Entry, waits_for: Option<String>) -> Arc<Shown> {
        let over = entry.status.state.is_over();
        if let Some((at, shown)) = &self.drawn
            && at.elapsed() < EVERY
            && shown.ended == over
        {
            return Arc::clone(shown);
        }
        // If the file cannot be read, the previous state is shown.
        let _ = self.tail.each_event(|event| self.gathered.add(event));
        let shown = Arc::new(self.gathered.shown(&Subject { waits_for, ..subject(store, entry) }));
        self.drawn = Some((Instant::now(), Arc::clone(&shown)));
        shown
    }
}

/// The title and state of a submission for its view.
fn subject(store: &Store, entry: &Entry) -> Subject {
    let status = &entry.status;
    Subject {
        title: format!("{} on {}", entry.submitted.name, entry.submitted.systems.join(", ")),
        state: status.state,
        error: status.error.as_ref().map(|error| (error.reason(), error.hint.clone())),
        waits_for: None,
        has_report: status.folders.iter().any(|name| holds_results(&store.runs().join(name))),
    }
}
