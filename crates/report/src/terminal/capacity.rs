//! A capacity search on a terminal: the result, then every trial.

use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Trial, TrialOutcome};
use pubmark_record::record::Status;

use super::layout::{Page, Tone, cut, printable};
use super::{COLUMNS, TerminalOptions};
use crate::charts::capacity::outcome;
use crate::numbers::{MISSING, TimeUnit, count, duration};
use crate::words;

/// Widths of the value columns.
const WIDTHS: [usize; 6] = [9, 8, 9, 13, 8, 8];

/// The search as text, with a final newline.
pub fn capacity(record: &CapacityRecord, options: &TerminalOptions) -> String {
    let mut page = Page::default();
    page.field(
        "capacity",
        &format!("{} on {}, {}", record.workload, words::system_name(&record.system), record.protocol),
        2,
    );
    page.field("objective", &record.objectives, 2);
    for fact in words::system_facts(&record.system).iter().filter(|fact| fact.name != "papers") {
        page.field(fact.name, &fact.text, 1);
    }
    page.blank();
    if !record.trials.is_empty() {
        table(&mut page, record);
        page.blank();
    }
    let tone = match record.result.limit {
        CapacityLimit::System | CapacityLimit::Range => Tone::Good,
        CapacityLimit::Generator | CapacityLimit::Time => Tone::Caution,
        CapacityLimit::NothingHeld => Tone::Bad,
    };
    page.toned_field("result", &words::capacity_headline(record), 1, tone);
    page.field("", &record.result.text, 4);
    page.field("limit", &words::capacity_limit(record), 2);
    for caution in &record.cautions {
        page.paragraph("  caution: ", caution, 3, Tone::Caution);
    }
    let ended = if record.status == Status::Interrupted { "interrupted after" } else { "took" };
    page.field("search", &format!("{} {ended} {}", words::counted_trials(record), duration(record.took_s)), 1);
    if let Some(folder) = options.folder {
        page.path("report", &format!("{folder}/capacity.html"), "(also capacity.json, capacity.md, csv/)");
    }
    page.text(options.colour)
}

fn table(page: &mut Page, record: &CapacityRecord) {
    let unit =
        TimeUnit::for_value(record.trials.iter().filter_map(|trial| trial.latency.upper.p99_us).fold(0.0, f64::max));
    let heads = ["offered", "deliv.", "lost", "p99", "system", "pubmark"];
    let units = ["/s", "/s", "", unit.symbol(), "cores", "cores"];
    let line = |values: &[String], last: &str| {
        let mut line = String::from("  ");
        for (value, width) in values.iter().zip(WIDTHS) {
            line.push_str(&format!("{:>width$}", cut(value, width - 1)));
        }
        cut(&format!("{line}  {last}"), COLUMNS)
    };
    page.line(&line(&heads.map(String::from), "outcome"), Tone::Plain);
    page.line(&line(&units.map(String::from), ""), Tone::Plain);
    for trial in &record.trials {
        let tone = match trial.outcome {
            TrialOutcome::Held => Tone::Good,
            TrialOutcome::GeneratorLimited => Tone::Caution,
            TrialOutcome::Missed | TrialOutcome::Failed => Tone::Bad,
        };
        // The median is only in the report: with both bounds of each percentile, a line would be too long.
        let [offered, delivered, lost, _, p99, system, pubmark] = words::trial_numbers(trial, unit);
        page.line(&line(&[offered, delivered, lost, p99, system, pubmark], outcome(trial).0), tone);
    }
}

/// Both bounds of the p99 of a trial.
fn p99(trial: &Trial) -> String {
    let bounds = trial.latency.bounds(|quantiles| quantiles.p99_us);
    let Some(upper) = bounds[1] else { return format!("p99 {MISSING}") };
    let unit = TimeUnit::for_value(upper);
    format!("p99 {} {}", unit.interval(bounds), unit.symbol())
}

/// A trial of a capacity search in one line, for the progress of the search.
pub fn trial_line(number: usize, trial: &Trial) -> String {
    let outcome = outcome(trial).0;
    let again = if trial.attempt > 1 { format!(" (try {})", trial.attempt) } else { String::new() };
    let rate = count(trial.offered_per_s.round() as u64);
    let detail = match &trial.reason {
        Some(reason) => printable(reason),
        None => p99(trial),
    };
    format!("trial {number:>2}  {rate:>9} msg/s  {outcome}{again}: {detail}")
}
