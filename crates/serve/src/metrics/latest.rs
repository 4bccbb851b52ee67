//! The current or last run of a server: its values, gathered from the events of its child.

use super::RunValues;
use crate::following::Following;
use crate::store::{Entry, State, Store};

/// Values of the newest run. Its last values remain until the next run begins.
#[derive(Default)]
pub struct Latest(Following<RunValues>);

impl Latest {
    /// The current values; `None` before the first run.
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
