//! The pages in a browser, Debian's Chromium without a window: the script runs without a fault, charts show what is pointed at,
//! lines are switched, tables are sorted, and nothing is wider than the window.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "shared with the target `reports`")]
mod fixtures;

use std::path::Path;
use std::process::Command;

use pubmark_record::comparison::compare;
use pubmark_report::html;

/// A telephone and a desk, in px.
const WIDTHS: [u32; 2] = [360, 1_280];
/// The browser is ended by then, s; it needs about 3.
const LIMIT_S: &str = "120";
/// How long the browser's own clock runs before the page is written out, ms: all frames have reported by then.
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

/// The page as it is, watched from its beginning and used at its end.
fn used(page: &str) -> String {
    let (watch, then_use) = (include_str!("browser/watch.js"), include_str!("browser/use.js"));
    let watched = page.replacen("<style>", &format!("<script>{watch}</script><style>"), 1);
    watched.replacen("</body>", &format!("<script>{then_use}</script></body>"), 1)
}

/// A page with all others in frames of each width, which writes down what they report.
fn frames(names: &[String]) -> String {
    let frame = |name: &String| {
        WIDTHS.map(|width| {
            format!("<iframe name='{name} at {width}' src='{name}.html' width={width} height=900></iframe>")
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

/// What the frames reported, a line each, and what the browser printed besides; `None` without a browser.
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
    command.arg(format!("--user-data-dir={}", profile.display())).env("HOME", folder);
    command.arg(format!("--virtual-time-budget={BROWSER_TIME_MS}")).arg("--dump-dom");
    let done = command.arg(format!("file://{}/frames.html", folder.display())).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    // What `timeout` ends with if there is no such program.
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
        std::fs::write(folder.path().join(format!("{name}.html")), used(page)).unwrap();
    }
    let names: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    std::fs::write(folder.path().join("frames.html"), frames(&names)).unwrap();
    let Some((reports, words)) = reports(folder.path()) else { return };
    let faults: Vec<&String> = reports.iter().filter(|line| line.contains("FAULT: ")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for name in &names {
        for width in WIDTHS {
            let of_frame = |line: &&String| line.starts_with(&format!("{name} at {width}: "));
            assert_eq!(
                reports.iter().filter(of_frame).count(),
                1,
                "{name} at {width} did not report: {reports:#?}\n{words}"
            );
        }
    }
    // Were there things to point at and to sort?
    let demo = reports.iter().find(|line| line.starts_with("run-demo at 360: ")).unwrap();
    let numbers: Vec<u32> = demo.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] >= 5 && numbers[1] >= 1, "{demo}");
    let said: Vec<&str> = words.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(said.is_empty(), "the browser's console: {said:#?}");
}
