//! `GET /history`: the runs of one configuration, as JSON or as a part of a page.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};

use super::files::{Content, HtmlText};
use super::lookup;
use crate::library::history::{self, HistoryQuery};
use crate::pages;
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;

/// The history.
pub async fn history(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HistoryQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let used = Arc::clone(&shared);
    let is_page = pages::wants_page(&headers);
    lookup::listing(&shared, move || {
        let folder = lookup::results(&used, &query.run)?;
        let found = history::history(&used, &query, &folder)?;
        Ok(if is_page {
            Content::<HtmlText>::of(pages::history::fragment(&found, &query)).into_response()
        } else {
            Json(found).into_response()
        })
    })
    .await
}
