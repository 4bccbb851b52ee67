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

/// A path of a record as a link. A record may be another person's: without the prefix, a path such as `javascript:…` would be
/// an address with a scheme, and `//host/…` one of another host (RFC 3986, section 4.2). Browsers read `\` as `/`.
pub fn local(path: &str) -> String {
    let read = path.replace('\\', "/");
    let has_scheme = read.split('/').next().is_some_and(|first| first.contains(':'));
    if has_scheme || read.starts_with("//") { format!("./{path}") } else { path.to_string() }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_path_of_a_record_is_no_script() {
        assert_eq!(local("javascript:alert(1)//x"), "./javascript:alert(1)//x");
        assert_eq!(["//host/x", "/\\host/x"].map(local), [".///host/x", ".//\\host/x"]);
        assert_eq!(["runs/1/report.html", "../a:b/c"].map(local), ["runs/1/report.html", "../a:b/c"]);
    }

    /// Colours of the style's light (0) or dark (1) variables.
    fn colours(theme: usize) -> BTreeMap<&'static str, [f64; 3]> {
        let blocks: Vec<&str> = STYLE.split(":root{").skip(1).filter_map(|rest| rest.split('}').next()).collect();
        let all = blocks[..=theme].iter().flat_map(|block| block.split(';')).filter_map(|one| {
            let (name, value) = one.trim().strip_prefix("--")?.split_once(":#")?;
            let digits: Vec<u32> = value.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
            let channel = |place: usize| match digits.len() {
                6 => f64::from(digits[2 * place] * 16 + digits[2 * place + 1]),
                _ => f64::from(digits[place] * 17),
            };
            Some((name, [channel(0), channel(1), channel(2)]))
        });
        all.collect()
    }

    /// Contrast ratio of two colours, WCAG 2.2.
    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let luminance = |colour: [f64; 3]| {
            let linear = colour.map(|value| match value / 255.0 {
                small if small <= 0.040_45 => small / 12.92,
                value => ((value + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_can_be_read_on_every_background() {
        let mixed = |top: [f64; 3], below: [f64; 3], share: f64| {
            [0, 1, 2].map(|channel| top[channel] * share + below[channel] * (1.0 - share))
        };
        for theme in [0, 1] {
            let colour = colours(theme);
            let backgrounds = ["bg", "panel", "good-bg", "warn-bg", "bad-bg"];
            for text in ["fg", "soft", "link", "good", "warn", "bad"] {
                for background in backgrounds {
                    let found = contrast(colour[text], colour[background]);
                    assert!(found >= 4.5, "{theme}: {text} on {background}: {found:.2}");
                }
            }
            let deepest = mixed(colour["link"], colour["bg"], heat_map::DEEPEST / 100.0);
            assert!(contrast(colour["fg"], deepest) >= 4.5, "{theme}: a heat map");
            let switched_off = mixed(colour["fg"], colour["bg"], 0.7);
            assert!(contrast(switched_off, colour["bg"]) >= 4.5, "{theme}: a line that is switched off");
            for graphic in ["likely", "open", "known"] {
                for background in ["bg", "panel"] {
                    let found = contrast(colour[graphic], colour[background]);
                    assert!(found >= 3.0, "{theme}: {graphic} on {background}: {found:.2}");
                }
            }
        }
        assert!(STYLE.contains("[aria-pressed=false]){opacity:.7;"), "as above");
        assert!(!STYLE.contains("figure>svg{opacity"), "faded text has less contrast");
    }
}
