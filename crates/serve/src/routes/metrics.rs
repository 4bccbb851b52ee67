//! `GET /metrics`: metrics of the current run and of the queue, for Prometheus.

use std::sync::Arc;

use axum::extract::State;

use super::files::{Content, Kind};
use super::lookup;
use crate::metrics::{CONTENT_TYPE, Exposed, QueueValues, text};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store;

/// Metrics in the text format of OpenMetrics.
pub struct MetricsText;

impl Kind for MetricsText {
    const TYPE: &'static str = CONTENT_TYPE;
}

/// The current metrics.
pub async fn metrics(State(shared): State<Arc<Shared>>) -> Result<Content<MetricsText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let entries = used.store.all();
        let count = |state: store::State| {
            let there = entries.iter().filter(|entry| entry.status.state == state).count();
            (state, there as u64)
        };
        let queue = QueueValues(store::State::ALL.map(count).to_vec());
        let run = used.latest.values(&used.store, &entries);
        let text = text(&Exposed { run, queue: Some(queue) }).map_err(|error| Problem::internal(&error))?;
        Ok(Content::of(text))
    })
    .await
}
