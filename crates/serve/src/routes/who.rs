//! Looks at each request before its route, and adds to each response what keeps a browser from doing more with it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::pages;
use crate::shared::Shared;

/// Is it answered without the token? Only what holds no data: the description of the interface.
fn is_open(method: &Method, path: &str) -> bool {
    method == Method::GET && path == "/openapi.json"
}

/// Looks at every request; only what holds no data is answered without the token.
pub async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let (method, path) = (request.method(), request.uri().path());
    let guard = &shared.guard;
    let page = pages::wanted(method, path, headers);
    let checked = if page.is_some() {
        // Another site may lead to it: it holds no data.
        guard.name(headers).map(drop)
    } else if is_open(method, path) {
        guard.site(headers)
    } else {
        guard.site(headers).and_then(|()| guard.token(headers))
    };
    secured(match (checked, page) {
        (Ok(()), Some(page)) => page.response(),
        (Ok(()), None) => next.run(request).await,
        (Err(problem), _) => problem.into_response(),
    })
}

/// A response with what keeps a browser from doing more with it.
pub fn secured(mut response: Response) -> Response {
    let added = response.headers_mut();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        added.entry(name).or_insert(HeaderValue::from_static(value));
    }
    added
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"));
    response
}
