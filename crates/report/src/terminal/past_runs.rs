//! A list of past runs on a terminal: two lines per entry, the folder as it is typed and the result.

use std::path::Path;

use crate::numbers::{self, MISSING, TimeUnit, counted};
use crate::words::{delivered_share_text, verdict_word};
use pubmark_record::capacity::{TrialLatency, TrialQuantiles};
use pubmark_record::headline::{Headline, Kind, RunList};
use pubmark_record::past_runs::filter::Filter;
use pubmark_record::record::Status;

use super::layout::printable;
use crate::wrapping::{COLUMNS, wrap, wrap_lines};

/// Width of the description of an entry, columns.
const WHAT: usize = 36;
/// Widths of the figures after it, columns.
const FIGURES: [usize; 3] = [9, 13, 13];
/// Most unreadable folders that are named; the others are counted.
const NAMED: usize = 10;

/// The list, newest first.
pub fn list(list: &RunList, folder: &Path) -> String {
    let heads = ["delivered", "p50 ms", "p99 ms"].map(str::to_owned);
    let mut text = line("newest first", &heads, "verdict");
    for entry in &list.runs {
        // Long names are not cut, so that they can be copied.
        text.push_str(&format!("{}\n", folder.join(&entry.folder).display()));
        text.push_str(&match entry.kind {
            Kind::Run => of_run(entry),
            Kind::Experiment => wrap("  ", 4, &printable(&of_experiment(entry))),
            Kind::Capacity => wrap("  ", 4, &printable(&of_search(entry))),
            Kind::Choice => wrap("  ", 4, &printable(&of_choice(entry))),
        });
    }
    text
}

fn line(what: &str, figures: &[String; 3], verdict: &str) -> String {
    let figures: String = figures.iter().zip(FIGURES).map(|(figure, columns)| format!("{figure:>columns$}")).collect();
    let line = if what.chars().count() > WHAT {
        // A description that does not fit gets its own line, so that figures remain aligned.
        format!("{}{:WHAT$}{figures}  {verdict}", wrap("", 2, what), "")
    } else {
        format!("{what:WHAT$}{figures}  {verdict}")
    };
    format!("{}\n", line.trim_end())
}

fn of_run(entry: &Headline) -> String {
    let mut what = format!("  {} on {}", entry.workload.join(", "), entry.system.join(", "));
    if entry.variant.as_deref() == Some("published") {
        what.push_str(" (published)");
    }
    let delivered = delivered_share_text(entry);
    let [p50, p99] = latency(entry.latency.as_ref());
    let mut text = line(&printable(&what), &[delivered, p50, p99], entry.verdict.map_or(MISSING, verdict_word));
    if entry.status == Status::Interrupted {
        text.push_str("    interrupted\n");
    }
    text
}

fn of_experiment(entry: &Headline) -> String {
    let (counts, planned) = (entry.runs_counted.unwrap_or(0), entry.runs_planned.unwrap_or(0));
    let mut words = format!(
        "experiment: {} on {}, {}, {counts} of {} counted",
        entry.workload.join(", "),
        if entry.system.is_empty() { MISSING.to_owned() } else { entry.system.join(", ") },
        counted(entry.cells.unwrap_or(0), "cell", "cells"),
        counted(planned, "run", "runs"),
    );
    if let Some(verdict) = entry.verdict {
        words.push_str(&format!(", {} at worst", verdict_word(verdict)));
    }
    words.push_str(&unless_complete(entry));
    words
}

fn of_search(entry: &Headline) -> String {
    let holds = match entry.holds_per_s {
        Some(rate) => format!("holds {} msg/s", numbers::significant(rate)),
        None => "no load is known to hold".to_owned(),
    };
    let [p50, p99] = latency(entry.latency.as_ref());
    let there = if entry.latency.is_some() { format!(" (p50 {p50} ms, p99 {p99} ms)") } else { String::new() };
    format!(
        "capacity: {} on {}, {holds}{there} within {}, {}{}",
        entry.workload.join(", "),
        entry.system.join(", "),
        entry.objectives.as_deref().unwrap_or(MISSING),
        counted(entry.runs_counted.unwrap_or(0), "trial", "trials"),
        unless_complete(entry),
    )
}

fn of_choice(entry: &Headline) -> String {
    let qualify = match entry.qualify.as_slice() {
        [] => "none is known to qualify".to_owned(),
        [one] => format!("{one} qualifies"),
        several => format!("{} qualify", several.join(", ")),
    };
    let recommended = entry.recommended.as_ref().map_or_else(String::new, |one| format!(", {one} is recommended"));
    format!(
        "choice: {} within {}, {}, {qualify}{recommended}, {}{}",
        entry.workload.join(", "),
        entry.objectives.as_deref().unwrap_or(MISSING),
        counted(entry.cells.unwrap_or(0), "candidate", "candidates"),
        counted(entry.runs_counted.unwrap_or(0), "run", "runs"),
        unless_complete(entry),
    )
}

fn unless_complete(entry: &Headline) -> String {
    match (entry.in_progress, entry.status) {
        (false, Status::Complete) => String::new(),
        _ => format!(", {}", entry.status_word()),
    }
}

/// Median and 99th percentile in ms: lower and upper bound where both are known.
fn latency(latency: Option<&TrialLatency>) -> [String; 2] {
    [|quantiles: &TrialQuantiles| quantiles.p50_us, |quantiles: &TrialQuantiles| quantiles.p99_us].map(|of| {
        let lower = latency.and_then(|latency| latency.lower.as_ref()).and_then(of);
        TimeUnit::Milliseconds.interval([lower, latency.and_then(|latency| of(&latency.upper))])
    })
}

/// What the list of a folder does not show: records that cannot be read, folders without a record, and folders that
/// were not read because the list is full.
pub fn notes(list: &RunList, folder: &Path, filter: &Filter) -> Vec<String> {
    let folder = folder.display();
    let mut notes = unreadable(list);
    if list.without_record > 0 {
        notes.push(format!(
            "{} of `{folder}` without a record: runs that never began, or that are going on",
            folders(list.without_record)
        ));
    }
    if list.read < list.folders {
        let wanted = if filter.is_empty() { "" } else { " that match" };
        notes.push(format!(
            "the newest {}{wanted}; {} of {} read, `--all` reads all",
            list.runs.len(),
            list.read,
            folders(list.folders)
        ));
    } else if list.runs.is_empty() {
        let readable = list.read - list.without_record - list.unreadable.len() as u64;
        notes.push(if readable == 0 {
            format!("no runs in `{folder}`: `pubmark run smart-home` makes one")
        } else {
            format!("none of the {readable} in `{folder}` matches {}", filter.words())
        });
    }
    notes
}

/// Records that cannot be read: one line each, and the number of those that are not named.
fn unreadable(list: &RunList) -> Vec<String> {
    let named = list.unreadable.iter().take(NAMED);
    let mut lines: Vec<String> = named
        .map(|one| wrap_lines(&format!("left out: `{}`: {}", one.folder, one.reason)).trim_end().to_owned())
        .collect();
    if list.unreadable.len() > NAMED {
        lines.push(format!("left out: {} more that cannot be read; `--json` names all", list.unreadable.len() - NAMED));
    }
    lines
}

/// A number of folders in words.
fn folders(number: u64) -> String {
    counted(number, "folder", "folders")
}

const _: () = assert!(WHAT + FIGURES[0] + FIGURES[1] + FIGURES[2] + 2 + "suspect".len() <= COLUMNS);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::record::{Delivery, Record};
    use pubmark_record::{headline, sample, store};

    use super::*;

    fn headline_of(record: &Record) -> Headline {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(store::RECORD_FILE), store::to_json(record).unwrap()).unwrap();
        headline::of_folder(folder.path()).unwrap().unwrap()
    }

    #[test]
    fn a_list_shows_the_share_that_limits_are_judged_by() {
        let mut record = sample::record();
        record.delivery.messages = Delivery {
            offered: 8,
            sent: 4,
            refused: 4,
            prevented: 8,
            expected: 8,
            delivered: 8,
            ..Delivery::default()
        };
        let entry = headline_of(&record);
        assert!(of_run(&entry).contains(" 50 % "), "{}", of_run(&entry));
        let old = Headline { delivered_share: None, ..entry };
        assert!(of_run(&old).contains(" 100 % "), "a headline of an earlier pubmark: {}", of_run(&old));
    }
}
