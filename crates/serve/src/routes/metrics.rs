//! `GET /metrics`: figures of the run under way and of the queue, for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::lookup;
use crate::metrics::{Exposed, QueueValues, response};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store;

/// What is known now.
pub async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let entries = used.store.all();
        let count = |state: store::State| {
            let there = entries.iter().filter(|entry| entry.status.state == state).count();
            (state, there as u64)
        };
        let queue = QueueValues(store::State::ALL.map(count).to_vec());
        let run = used.latest.values(&used.store, &entries);
        Ok(response(&Exposed { run, queue: Some(queue) }))
    })
    .await
}
