//! Tests of the pages in a browser, Debian's Chromium without a window, with the widths of a telephone and a desktop,
//! light, dark and printed: the script runs without an error, charts show the value at the pointer, lines can be
//! switched on and off, tables can be sorted, links within a page have a target, texts have sufficient contrast,
//! nothing is wider than the window, and a table that is wider than its box shows it.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "shared with the target `reports`")]
mod fixtures;

use std::path::Path;
use std::process::Command;

use pubmark_record::comparison::compare;
use pubmark_report::html;

/// Conditions under which a page is shown.
struct View {
    name: &'static str,
    /// Width of the window, px.
    width: u32,
    /// Media queries of the page's style, and their replacements: a frame has the media of the window around it.
    media: &'static [(&'static str, &'static str)],
}

const DARK: &str = "@media (prefers-color-scheme:dark)";
const PRINT: &str = "@media print";
const SCREEN: &str = "@media screen and ";
const NEVER: &str = "@media not all";

/// A telephone, a desktop, and the text width of an A4 page.
const VIEWS: [View; 5] = [
    View { name: "360 light", width: 360, media: &[(DARK, NEVER)] },
    View { name: "360 dark", width: 360, media: &[(DARK, "@media all")] },
    View { name: "1280 light", width: 1_280, media: &[(DARK, NEVER)] },
    View { name: "1280 dark", width: 1_280, media: &[(DARK, "@media all")] },
    View {
        name: "688 print",
        width: 688,
        media: &[(DARK, NEVER), (PRINT, "@media all"), (SCREEN, "@media print and ")],
    },
];
/// Time limit of the browser, s; it needs about 3.
const LIMIT_S: &str = "120";
/// Length of the browser's virtual time before the page is written, ms: all frames have reported by then.
const BROWSER_TIME_MS: u32 = 20_000;

fn pages() -> Vec<(String, String)> {
    let runs = fixtures::all().into_iter().map(|(name, record)| (format!("run-{name}"), html::run(&record)));
    let grids = fixtures::experiments().into_iter();
    let grids = grids.map(|(name, record)| (format!("experiment-{name}"), html::experiment(&record)));
    let searches = fixtures::searches().into_iter();
    let searches = searches.map(|(name, record)| (format!("search-{name}"), html::capacity(&record)));
    let compared = ("comparison".to_owned(), html::comparison(&compare(&fixtures::compared()).unwrap()));
    runs.chain(grids).chain(searches).chain([compared]).collect()
}

/// The page with scripts that observe it from the start and operate it at the end.
fn used(page: &str, view: &View) -> String {
    let mut page = page.to_owned();
    for (media, becomes) in view.media {
        assert!(page.contains(media), "the style has no `{media}`");
        page = page.replace(media, becomes);
    }
    let (watch, then_use) = (include_str!("browser/watch.js"), include_str!("browser/use.js"));
    let watched = page.replacen("<style>", &format!("<script>{watch}</script><style>"), 1);
    watched.replacen("</body>", &format!("<script>{then_use}</script></body>"), 1)
}

/// A page that has all other pages in frames of each width, and writes their reports.
fn frames(names: &[String]) -> String {
    let frame = |name: &String| {
        VIEWS.map(|View { name: view, width, .. }| {
            format!("<iframe name='{name} at {view}' src='{name} at {view}.html' width={width} height=900></iframe>")
        })
    };
    let frames: Vec<String> = names.iter().flat_map(frame).collect();
    format!(
        "<!DOCTYPE html><title>waiting</title><style>iframe{{border:0}}</style><pre id=told></pre><script>\
         addEventListener('message', function (event) {{\
           var frame = [].find.call(document.querySelectorAll('iframe'), function (one) {{ return one.contentWindow === event.source; }});\
           event.data.split('\\n').forEach(function (line) {{\
             document.getElementById('told').textContent += '\\n@ ' + frame.name + ': ' + line;\
           }});\
         }});</script>{}",
        frames.concat()
    )
}

/// Reports of the frames, one per line, and further output of the browser; `None` without a browser.
fn reports(folder: &Path) -> Option<(Vec<String>, String)> {
    let profile = folder.join("profile");
    let mut command = Command::new("timeout");
    command.args([
        "--kill-after=5",
        LIMIT_S,
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
    ]);
    command.args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr"]);
    command.arg(format!("--user-data-dir={}", profile.display())).env("HOME", folder).env("TMPDIR", folder);
    command.arg(format!("--virtual-time-budget={BROWSER_TIME_MS}")).arg("--dump-dom");
    let done = command.arg(format!("file://{}/frames.html", folder.display())).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    // Exit status of `timeout` if there is no such program.
    if done.status.code() == Some(127) {
        pubmark_testing::skip("there is no chromium (`apt-get install chromium`)");
        return None;
    }
    assert!(done.status.success(), "{}: {words}", done.status);
    let page = String::from_utf8(done.stdout).unwrap();
    Some((page.lines().filter_map(|line| line.strip_prefix("@ ")).map(str::to_owned).collect(), words))
}

#[test]
fn pages_work_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let pages = pages();
    for (name, page) in &pages {
        for view in &VIEWS {
            std::fs::write(folder.path().join(format!("{name} at {}.html", view.name)), used(page, view)).unwrap();
        }
    }
    let names: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    std::fs::write(folder.path().join("frames.html"), frames(&names)).unwrap();
    let Some((reports, words)) = reports(folder.path()) else { return };
    let faults: Vec<&String> = reports.iter().filter(|line| line.contains("FAULT: ")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for name in &names {
        for View { name: view, .. } in VIEWS {
            let of_frame = |line: &&String| line.starts_with(&format!("{name} at {view}: "));
            assert_eq!(
                reports.iter().filter(of_frame).count(),
                1,
                "{name} at {view} did not report: {reports:#?}\n{words}"
            );
        }
    }
    // Checks that there were elements to point at and to sort.
    let demo = reports.iter().find(|line| line.starts_with("run-demo at 360 light: ")).unwrap();
    let numbers: Vec<u32> = demo.rsplit(": ").next().unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] >= 5 && numbers[1] >= 1, "{demo}");
    let said: Vec<&str> = words.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(said.is_empty(), "the browser's console: {said:#?}");
}
