//! Checks each request before its route, and adds security headers to each response.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::pages;
use crate::shared::Shared;

/// Whether the request is served without the token. Only the description of the interface, which contains no data.
fn is_open(method: &Method, path: &str) -> bool {
    method == Method::GET && path == "/openapi.json"
}

/// Checks every request; only requests for content without data are served without the token.
pub async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let (method, path) = (request.method(), request.uri().path());
    let guard = &shared.guard;
    let page = pages::wanted(method, path, headers);
    let checked = if page.is_some() {
        // Another site may link to it: it contains no data.
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

/// Adds headers that restrict what a browser does with a response.
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
