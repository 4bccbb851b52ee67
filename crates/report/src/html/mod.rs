//! HTML pages: each is one offline file, complete without JavaScript, with the most important results on its first
//! screen. Start with [`run()`].

mod capacity;
mod comparison;
mod content;
mod cost;
mod custom;
mod efficiency;
mod experiment;
mod faults;
mod figure;
mod generator;
mod heat_map;
mod history;
mod index;
mod latency_breakdown;
mod links;
mod live;
mod nodes;
mod objectives;
mod reproduction;
mod requests;
mod run;
mod scorecard;
mod sites;
mod tables;
mod tiles;
mod transform;
mod verdict;

pub use capacity::capacity;
pub use comparison::comparison;
pub use experiment::experiment;
pub use history::{HistoryRun, HistoryView, history_view};
pub use index::{IndexRow, index};
pub use live::{LIVE_STYLE, LivePoint, LiveRun, LiveView, live_view};
pub use run::run;

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style of all pages.
pub const STYLE: &str = include_str!("style.css");
/// The script of all pages; the pages are complete without it.
pub const SCRIPT: &str = include_str!("script.js");
/// Nothing may be loaded; style and script of the page are inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Table of contents of a page.
fn contents<'a>(sections: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol { @for (id, title) in sections { li { a href={ "#" (id) } { (title) } } } }
        }
    }
}

/// A text in which parts between backticks are set as code.
pub fn with_code(text: &str) -> Markup {
    html! {
        @for (position, part) in text.split('`').enumerate() {
            @if position % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A complete page with this body.
pub fn page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) script { (PreEscaped(SCRIPT)) } }
        }
    }
    .into_string()
}
