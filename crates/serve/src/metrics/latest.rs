//! The run of a server that is under way, or was the last: its values, gathered from the lines that its child writes.

use std::sync::{Mutex, PoisonError};

use super::RunValues;
use crate::store::{EVENTS_FILE, Entry, State, Store};
use crate::tail::Tail;

/// What is known of the newest run. Its last values stay until another begins.
#[derive(Default)]
pub struct Latest {
    followed: Mutex<Option<Followed>>,
}

struct Followed {
    id: String,
    tail: Tail,
    values: RunValues,
}

impl Latest {
    /// The values now; `None` before the first run.
    pub fn values(&self, store: &Store, entries: &[Entry]) -> Option<RunValues> {
        let id = newest(entries)?;
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let other = |followed: &mut Followed| followed.id == id;
        if !followed.as_mut().is_some_and(other) {
            let tail = Tail::of(store.folder(id).join(EVENTS_FILE));
            *followed = Some(Followed { id: id.to_owned(), tail, values: RunValues::default() });
        }
        let followed = followed.as_mut()?;
        // A file that cannot be read leaves what was known before.
        while let Ok(lines) = followed.tail.lines() {
            if lines.is_empty() {
                break;
            }
            // Lines of another version may not be read: they change nothing.
            let events = lines.iter().filter_map(|line| serde_json::from_str(&line.text).ok());
            events.for_each(|event| followed.values.add(&event));
        }
        Some(followed.values.clone())
    }
}

fn newest(entries: &[Entry]) -> Option<&str> {
    let under_way = |entry: &&Entry| matches!(entry.status.state, State::Running | State::Cancelling);
    let begun = || {
        let begun = entries.iter().filter(|entry| entry.status.started_at.is_some());
        begun.max_by_key(|entry| (entry.status.started_at.clone(), entry.submitted.order))
    };
    let newest = entries.iter().find(under_way).or_else(begun)?;
    Some(&newest.submitted.id)
}
