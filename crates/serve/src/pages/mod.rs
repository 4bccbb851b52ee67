//! Pages of the server for a browser. A page is a shell without data, which is served without the token; its script asks
//! the user for the token and inserts the HTML that the server draws. [`PAGES`] lists them.

pub mod history;
pub mod library;
pub mod new;

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{Html, IntoResponse as _, Response};
use data_encoding::BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pubmark_report::html::{LIVE_STYLE, SCRIPT, STYLE};

const COMMON_SCRIPT: &str = include_str!("common.js");
const PAGE_STYLE: &str = include_str!("pages.css");

/// Pages that every page links to.
const MAIN: [(&str, &str); 2] = [("/", "Results"), ("/new", "New run")];

/// Path at which a command shows its only run.
pub const RUN_ALONE: &str = "/runs/this";

/// A page.
pub struct Page {
    /// Whether the path belongs to this page.
    is_at: fn(&str) -> bool,
    /// Heading until the script sets another.
    title: &'static str,
    /// Script of the page.
    script: &'static str,
    /// Content before there is any data.
    content: fn() -> Markup,
}

/// All pages. To add a page, add a row here.
static PAGES: [Page; 6] = [
    Page { is_at: |path| path == "/", title: "Results", script: include_str!("library.js"), content: library::content },
    Page { is_at: |path| path == "/new", title: "New run", script: include_str!("new.js"), content: || html! {} },
    Page {
        is_at: |path| path == "/compare",
        title: "Comparison",
        script: include_str!("compare.js"),
        content: || html! {},
    },
    Page {
        is_at: |path| path == "/history",
        title: "History",
        script: include_str!("history.js"),
        content: || html! {},
    },
    Page {
        is_at: |path| file_of(path).is_some(),
        title: "File",
        script: include_str!("file.js"),
        content: || html! {},
    },
    Page {
        is_at: |path| path.strip_prefix("/runs/").is_some_and(|id| !id.is_empty() && !id.contains('/')),
        title: "Run",
        script: include_str!("live.js"),
        content: || html! { p #actions hidden { button #stop type="button" { "Stop" } } },
    },
];

/// The file of a result in a path.
fn file_of(path: &str) -> Option<&str> {
    let (id, rest) = path.strip_prefix("/runs/")?.split_once('/')?;
    rest.strip_prefix("files/").filter(|name| !id.is_empty() && !name.is_empty())
}

/// The page that a browser requests, if it requests one: a browser that follows a link sends no token.
pub fn wanted(method: &Method, path: &str, headers: &HeaderMap) -> Option<&'static Page> {
    let is_link = method == Method::GET && wants_page(headers) && !headers.contains_key(header::AUTHORIZATION);
    PAGES.iter().find(|page| is_link && (page.is_at)(path))
}

/// Whether the client requests a page, not data.
pub fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|kinds| kinds.contains("text/html"))
}

/// The page of a run without links to the other pages of a server.
pub fn run_alone() -> Response {
    let page = PAGES.iter().find(|page| (page.is_at)(RUN_ALONE)).expect("runs have a page");
    page.response_with(false)
}

impl Page {
    /// The page as a response. It may execute only its own script and those of the reports, and connect only to this
    /// server.
    pub fn response(&self) -> Response {
        self.response_with(true)
    }

    fn response_with(&self, others: bool) -> Response {
        let mut response = Html(self.shell(others)).into_response();
        let policy = HeaderValue::from_str(&self.policy()).expect("a policy is plain ASCII");
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        response
    }

    fn policy(&self) -> String {
        static SHARED: LazyLock<String> = LazyLock::new(|| format!("{} {}", source(COMMON_SCRIPT), source(SCRIPT)));
        format!(
            "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'; script-src {} {}",
            *SHARED,
            source(self.script)
        )
    }

    /// The page without data; with links to the other pages, if there are any.
    fn shell(&self, others: bool) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " – pubmark" }
                    style { (PreEscaped(STYLE)) (PreEscaped(LIVE_STYLE)) (PreEscaped(PAGE_STYLE)) }
                }
                body {
                    @if others { nav.pages aria-label="Pages" {
                        a.name href="/" { "pubmark" }
                        @for (path, words) in MAIN { a href=(path) aria-current=[(self.is_at)(path).then_some("page")] { (words) } }
                    } }
                    p #announced .unseen role="status" aria-live="polite" {}
                    p #problem role="alert" {}
                    (login(others))
                    div #page hidden {
                        header { h1 #title { (self.title) } }
                        ((self.content)())
                        main #view {}
                    }
                    noscript { p.missing { "This page needs JavaScript. Exported results and reports work without it." } }
                    script { (PreEscaped(COMMON_SCRIPT)) }
                    script { (PreEscaped(self.script)) }
                }
            }
        }
        .into_string()
    }
}

fn login(of_server: bool) -> Markup {
    html! {
        form #login hidden {
            h1 { @if of_server { "pubmark serve" } @else { "pubmark run" } }
            // Password managers require a user name beside a password.
            input type="text" name="username" autocomplete="username" value="pubmark" hidden;
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required;
            button.primary type="submit" { "Sign in" }
            @if !of_server { p.hint { "It is part of the address that the command printed." } }
            @else { p.hint {
                "The server printed it at its first start; it is also in the file " code { ".serve/token" }
                " in the folder of results. The browser stores it for this tab only."
            } }
        }
    }
}

/// The hash of a script as a source for the content security policy.
fn source(script: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(ring::digest::digest(&ring::digest::SHA256, script.as_bytes()).as_ref()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_who_follows_a_link_alone() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/html,*/*"));
        let title = |path: &str, headers: &HeaderMap| wanted(&Method::GET, path, headers).map(|page| page.title);
        for (path, expected) in [
            ("/", "Results"),
            ("/new", "New run"),
            ("/runs/x", "Run"),
            ("/compare", "Comparison"),
            ("/runs/x/files/runs/1/report.html", "File"),
            ("/runs/x/files/record.json", "File"),
        ] {
            assert_eq!(title(path, &headers), Some(expected), "{path}");
        }
        for path in [
            "/runs/",
            "/runs/x/report",
            "/runs/x/files",
            "/runs/x/files/",
            "/runs//files/a",
            "/runs",
            "/systems",
            "/nothing",
        ] {
            assert_eq!(title(path, &headers), None, "{path}");
        }
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert_eq!(title("/", &headers), None);
    }
}
