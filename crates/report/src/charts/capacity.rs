//! Charts of a capacity search: results at each load. A new chart is a function and a row in [`CAPACITY_CHARTS`].

use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Trial, TrialOutcome};
use pubmark_record::verdict::rules::Blame;

use super::{Chart, Picture};
use crate::numbers::{short, significant, time};
use crate::plot::mark::{Mark, Shape};
use crate::plot::{Axis, Join, Line, Plot, Post, Rule};
use crate::words::{headroom, load_as_written, loss_share, sentence};

const CSV: &str = "csv/trials.csv";
const HEIGHT: f64 = 330.0;
const SMALL: f64 = 240.0;

/// A chart on the page of a search.
pub struct CapacityChartRow {
    /// Anchor in the page.
    pub id: &'static str,
    /// Draws the chart.
    pub draw: fn(&CapacityRecord) -> Chart,
}

/// All charts.
pub const CAPACITY_CHARTS: [CapacityChartRow; 4] = [
    CapacityChartRow { id: "latency", draw: latency },
    CapacityChartRow { id: "delivered", draw: delivered },
    CapacityChartRow { id: "loss", draw: loss },
    CapacityChartRow { id: "cores", draw: cores },
];

/// Representation of an outcome: word, shape, class of its colour.
type Shown = (&'static str, Shape, &'static str);

const HELD: Shown = ("held", Shape::Disc, "held");
const MISSED: Shown = ("missed", Shape::Tip, "missed");
const GENERATOR_LIMITED: Shown = ("generator-limited", Shape::Diamond, "limited");
const MACHINE_LIMITED: Shown = ("machine-limited", Shape::Diamond, "limited");
const INVALID: Shown = ("invalid", Shape::Square, "limited");
const NOT_MEASURED: Shown = ("not measured", Shape::Square, "limited");
const FAILED: Shown = ("failed", Shape::Cross, "failed");

/// All outcomes, in the order of a legend.
pub const OUTCOMES: [Shown; 7] = [HELD, MISSED, GENERATOR_LIMITED, MACHINE_LIMITED, INVALID, NOT_MEASURED, FAILED];

/// How the outcome of a trial is shown. One that shows nothing of the system is called by what prevented it, which is the generator only
/// for its rules; one that did not measure an objective is called so: nobody was its limit.
pub fn outcome(trial: &Trial) -> Shown {
    match trial.outcome {
        TrialOutcome::Held => HELD,
        TrialOutcome::Missed => MISSED,
        TrialOutcome::GeneratorLimited if trial.not_measured.is_some() => NOT_MEASURED,
        TrialOutcome::GeneratorLimited => match trial.blame() {
            Blame::Generator => GENERATOR_LIMITED,
            Blame::Machine => MACHINE_LIMITED,
            Blame::Clients | Blame::System(_) | Blame::Run => INVALID,
        },
        TrialOutcome::Failed => FAILED,
    }
}

/// A value of a trial.
type Get = fn(&Trial) -> Option<f64>;

fn latency(record: &CapacityRecord) -> Chart {
    const TITLE: &str = "How does latency grow with the load?";
    let shown: [(&str, usize, Get); 2] = [
        ("p99", 2, |trial: &Trial| trial.latency.upper.p99_us),
        ("p50", 1, |trial: &Trial| trial.latency.upper.p50_us),
    ];
    let limits: Vec<(f64, &str)> =
        ["p99", "p50"].iter().filter_map(|name| limit_us(&record.objectives, name)).collect();
    let values: Vec<f64> = record
        .trials
        .iter()
        .flat_map(|trial| [trial.latency.upper.p50_us, trial.latency.upper.p99_us])
        .flatten()
        .chain(limits.iter().map(|(limit, _)| *limit))
        .collect();
    let smallest = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    if !smallest.is_finite() {
        return Chart::missing(TITLE, CSV, "No trial measured a latency.");
    }
    let y = Axis::log_time(smallest, values.iter().copied().fold(0.0, f64::max), "latency, log scale");
    let rules = limits.iter().map(|(at, text)| Rule { at: *at, label: format!("objective: {text}") }).collect();
    let plot = plot(record, y, &shown, |value| time(Some(value)), HEIGHT);
    let finding = match record
        .trial_at_the_result()
        .and_then(|trial| trial.latency.upper.p99_us.map(|p99| (trial, p99)))
    {
        Some((trial, p99)) => {
            format!("at the highest load that held, {}/s, p99 is {}", significant(trial.offered_per_s), time(Some(p99)))
        }
        None => "no load held with a p99".to_string(),
    };
    chart(TITLE, finding, "lower is better", Plot { rules, ..plot })
}

fn delivered(record: &CapacityRecord) -> Chart {
    const TITLE: &str = "Does everything arrive in time?";
    let largest = record.trials.iter().filter_map(|trial| trial.delivered_per_s).fold(0.0, f64::max);
    if largest <= 0.0 {
        return Chart::missing(TITLE, CSV, "No trial delivered anything.");
    }
    let print = |value: f64| format!("{}/s", significant(value));
    let y = Axis::from_zero(offered(record).max(largest), "messages a second", short);
    let shown: [(&str, usize, Get); 2] = [
        ("delivered", 1, |trial: &Trial| trial.delivered_per_s),
        ("offered", 7, |trial: &Trial| Some(trial.offered_per_s)),
    ];
    let mut plot = plot(record, y, &shown, print, SMALL);
    // The offered load is a line for comparison and not a measurement.
    plot.marks.retain(|mark| !mark.title.starts_with("offered"));
    let finding = format!("at most {} were delivered", print(largest));
    chart(TITLE, finding, "with one subscriber a message, on the dotted line all of them arrive at once", plot)
}

fn loss(record: &CapacityRecord) -> Chart {
    const TITLE: &str = "Do messages get lost?";
    let losses: Vec<f64> = record.trials.iter().filter_map(|trial| trial.loss).collect();
    let Some(largest) = losses.iter().copied().reduce(f64::max) else {
        return Chart::missing(TITLE, CSV, "No trial counted its losses.");
    };
    if largest <= 0.0 {
        return Chart::missing(TITLE, CSV, "No trial lost a message.");
    }
    let y = Axis::from_zero(largest * 100.0, "% of the wanted deliveries", short);
    let shown: [(&str, usize, Get); 1] = [("not delivered", 1, |trial: &Trial| trial.loss.map(|loss| loss * 100.0))];
    let print = |value: f64| loss_share(value / 100.0);
    let least = record.trials.iter().filter(|trial| trial.loss.is_some_and(|loss| loss > 0.0)).map(|t| t.offered_per_s);
    let least = least.fold(f64::INFINITY, f64::min);
    let finding = format!("messages are missing from {}/s on, at most {}", significant(least), print(largest * 100.0));
    chart(TITLE, finding, "lower is better", plot(record, y, &shown, print, SMALL))
}

fn cores(record: &CapacityRecord) -> Chart {
    const TITLE: &str = "Who is busy: the system or the generator?";
    let shown: [(&str, usize, Get); 2] =
        [("system", 1, |trial: &Trial| trial.system_cores), ("pubmark", 2, |trial: &Trial| trial.generator_cores)];
    let largest = |get: Get| record.trials.iter().filter_map(get).reduce(f64::max);
    let most: Vec<(&str, f64)> = shown.iter().filter_map(|(name, _, get)| Some((*name, largest(*get)?))).collect();
    let Some(highest) = most.iter().map(|(_, value)| *value).reduce(f64::max) else {
        return Chart::missing(TITLE, CSV, "CPU was not measured.");
    };
    let print = |value: f64| format!("{} cores", significant(value));
    let parts: Vec<String> =
        most.iter().map(|(name, value)| format!("{name} used at most {}", print(*value))).collect();
    let y = Axis::from_zero(highest, "cores", short);
    chart(TITLE, parts.join(", "), "", plot(record, y, &shown, print, SMALL))
}

fn chart(title: &'static str, finding: String, note: &str, plot: Plot) -> Chart {
    let mut notes = vec!["a mark is a trial, the line joins the last trial at each load".to_string()];
    if !note.is_empty() {
        notes.push(note.to_string());
    }
    Chart { title, finding: sentence(&finding), notes, csv: CSV, picture: Picture::Plot(Box::new(plot)) }
}

/// Values over the load: a mark for every trial, and a line through the deciding trials.
fn plot(
    record: &CapacityRecord,
    y: Axis,
    shown: &[(&str, usize, Get)],
    print: impl Fn(f64) -> String,
    height: f64,
) -> Plot {
    let decisive = decisive(record);
    let loads: Vec<f64> = decisive.iter().map(|trial| trial.offered_per_s).collect();
    let posts = posts(record);
    let shown_loads: Vec<f64> = loads.iter().copied().chain(posts.iter().map(|post| post.at)).collect();
    let x = Axis::fitting(&shown_loads, "messages offered a second", short);
    let line = |(name, style, get): &(&str, usize, Get)| {
        let values: Vec<Option<f64>> = decisive.iter().map(|trial| get(trial)).collect();
        let points = loads.iter().copied().zip(values.iter().copied()).collect();
        let readings = values.iter().map(|value| value.map_or_else(String::new, &print)).collect();
        Line::plain(name, *style, Join::Straight, points, readings)
    };
    let marks = shown.iter().flat_map(|(name, _, get)| {
        let print = &print;
        record.trials.iter().filter_map(move |trial| {
            let (word, shape, class) = outcome(trial);
            let value = get(trial)?;
            let title = format!("{name} {} at {}/s: {word}", print(value), significant(trial.offered_per_s));
            Some(Mark { x: trial.offered_per_s, y: value, shape, class, title })
        })
    });
    let readings = decisive
        .iter()
        .map(|trial| (trial.offered_per_s, format!("{}/s: {}", significant(trial.offered_per_s), outcome(trial).0)))
        .collect();
    Plot { marks: marks.collect(), posts, ..Plot::of_lines(x, y, shown.iter().map(line).collect(), readings, height) }
}

/// Vertical lines at the load of the workload as written and at the result, with the headroom between them.
fn posts(record: &CapacityRecord) -> Vec<Post> {
    let written = load_as_written(record).map(|at| Post {
        at,
        label: format!("as written: {}/s", significant(at)),
        class: "written",
    });
    let headroom = headroom(record).map_or_else(String::new, |times| format!(", {} ×", significant(times)));
    let least = if record.result.limit == CapacityLimit::System { "" } else { "≥ " };
    let answer = record.result.holds_per_s.map(|at| Post {
        at,
        label: format!("carries {least}{}/s{headroom}", significant(at)),
        class: "answer",
    });
    written.into_iter().chain(answer).collect()
}

/// The last trial at each load, by load: a miss is repeated to confirm it.
fn decisive(record: &CapacityRecord) -> Vec<&Trial> {
    let mut last: Vec<&Trial> = Vec::new();
    for trial in &record.trials {
        last.retain(|other| other.offered_per_s != trial.offered_per_s);
        last.push(trial);
    }
    last.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    last
}

fn offered(record: &CapacityRecord) -> f64 {
    record.trials.iter().map(|trial| trial.offered_per_s).fold(0.0, f64::max)
}

/// The objective for a percentile in µs, with its text; `None` if there is none that can be drawn.
fn limit_us<'a>(objectives: &'a str, name: &str) -> Option<(f64, &'a str)> {
    objectives.split(',').map(str::trim).find_map(|text| {
        let limit = text.strip_prefix(name)?.trim_start().strip_prefix('<')?.trim_start_matches('=').trim();
        let unit_at = limit.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let factor = match limit[unit_at..].trim() {
            "us" | "µs" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            _ => return None,
        };
        limit[..unit_at].parse::<f64>().ok().map(|value| (value * factor, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_record::sample_experiment;

    #[test]
    fn a_trial_that_shows_nothing_is_called_by_what_prevented_it() {
        let record = sample_experiment::generator_limited();
        let is_limited = |trial: &&Trial| trial.outcome == TrialOutcome::GeneratorLimited;
        let mut trial = record.trials.iter().find(is_limited).expect("a limited trial").clone();
        for (code, word) in
            [("V01", "generator-limited"), ("V28", "machine-limited"), ("V24", "invalid"), ("V21", "invalid")]
        {
            trial.code = Some(code.to_owned());
            assert_eq!(outcome(&trial).0, word, "{code}");
        }
    }

    #[test]
    fn objectives_of_time_are_drawn_and_others_are_not() {
        assert_eq!(limit_us("p99<50ms,loss=0", "p99"), Some((50_000.0, "p99<50ms")));
        assert_eq!(limit_us("loss=0, p50 <= 2 s", "p50"), Some((2e6, "p50 <= 2 s")));
        assert_eq!(limit_us("p99<50ms", "p50"), None);
        assert_eq!(limit_us("p99>+10%", "p99"), None);
    }

    #[test]
    fn the_line_goes_through_the_last_trial_at_each_load() {
        let record = sample_experiment::capacity();
        let points: Vec<_> = decisive(&record).iter().map(|trial| (trial.offered_per_s, trial.attempt)).collect();
        let held = [1_000.0, 2_000.0, 4_000.0, 8_000.0, 10_000.0, 11_000.0, 11_500.0].map(|offered| (offered, 1_u32));
        assert_eq!(points, [&held[..], &[(12_000.0, 2), (16_000.0, 2)]].concat());
    }
}
