//! The run of a server that is under way, or was the last: its values, gathered from the lines that its child writes.

use super::RunValues;
use crate::following::Following;
use crate::store::{Entry, State, Store};

/// What is known of the newest run. Its last values stay until another begins.
#[derive(Default)]
pub struct Latest(Following<RunValues>);

impl Latest {
    /// The values now; `None` before the first run.
    pub fn values(&self, store: &Store, entries: &[Entry]) -> Option<RunValues> {
        let id = newest(entries)?;
        Some(self.0.now(store, id, |values, event| values.add(&event)))
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
