//! Parts of pages that the server renders: the list, the queue, the form for a new run.

use std::sync::Arc;

use axum::extract::{Query, State};

use super::files::{Content, HtmlText};
use super::lookup;
use super::query::unusable;
use crate::library::list::{self, ListQuery};
use crate::pages;
use crate::problem::Problem;
use crate::shared::Shared;

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
pub async fn queue(State(shared): State<Arc<Shared>>) -> Result<Content<HtmlText>, Problem> {
    // There may be a thousand of them: the threads that serve requests do not wait for their page.
    lookup::briefly(move || Ok(Content::<HtmlText>::of(pages::library::queue(&list::open(&shared))))).await
}

/// The form for a new run.
pub async fn new(State(shared): State<Arc<Shared>>) -> Result<Content<HtmlText>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || Ok(Content::<HtmlText>::of(pages::new::form(&used)?))).await
}
