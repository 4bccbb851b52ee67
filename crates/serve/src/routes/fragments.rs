//! Parts of pages that the server renders: the list, the queue, the form for a new run.

use std::sync::Arc;

use axum::extract::{Query, State};

use super::files::{Content, HtmlText};
use super::lookup;
use super::query::unusable;
use crate::entry::RunEntry;
use crate::library::list::{self, ListQuery};
use crate::pages;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::Entry;

/// A page of the list.
pub async fn list(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Content<HtmlText>, Problem> {
    let Query(query) = query.map_err(|rejection| unusable(&rejection).hint("`/` shows all results"))?;
    let used = Arc::clone(&shared);
    lookup::listing(&shared, move || {
        let page = list::page(&used, &query)?;
        Ok(Content::<HtmlText>::of(pages::library::list(&page, &query)))
    })
    .await
}

/// Submissions that are queued or being executed.
pub async fn queue(State(shared): State<Arc<Shared>>) -> Content<HtmlText> {
    let open = shared.store.all().into_iter().filter(|entry| !entry.status.state.is_over());
    let described = |(position, entry): (usize, Entry)| {
        let waits_for = shared.queue.waits_for(&entry);
        RunEntry { waits_for, ..RunEntry::of_submission(entry, Some(position), None) }
    };
    let entries: Vec<RunEntry> = open.enumerate().map(described).collect();
    Content::<HtmlText>::of(pages::library::queue(&entries))
}

/// The form for a new run.
pub async fn new(State(shared): State<Arc<Shared>>) -> Result<Content<HtmlText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || Ok(Content::<HtmlText>::of(pages::new::form(&used)?))).await
}
