//! The history of one configuration: latency intervals of consecutive runs, changes between the runs, and regressions.

use maud::{Markup, html};
use pubmark_record::record::VerdictStatus;

use super::figure;
use crate::charts::{Chart, Picture};
use crate::numbers::{MISSING, counted, interval};
use crate::plot::mark::Shape;
use crate::plot::{Axis, Join, Line, Mark, Plot, Post};
use crate::words::{UNUSABLE, verdict_word};

/// Height of the chart, pixels.
const HEIGHT: f64 = 300.0;
/// Most changes of version or machine that are labelled in the chart: more labels would cover each other.
const MOST_POSTS: usize = 6;

/// The runs of one configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryView {
    /// Conditions that define a regression, as written.
    pub fail_on: String,
    /// The runs, oldest first.
    pub runs: Vec<HistoryRun>,
}

/// A run of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRun {
    /// Folder of the run.
    pub folder: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Version of the system; `None` if it is not known.
    pub system_version: Option<String>,
    /// Version of pubmark.
    pub pubmark_version: String,
    /// The machine, in words.
    pub machine: String,
    /// Verdict of the run.
    pub verdict: VerdictStatus,
    /// Share of the wanted deliveries that arrived, as printed.
    pub delivered: String,
    /// Median, µs: lower and upper bound.
    pub p50_us: [Option<f64>; 2],
    /// 99th percentile, µs: lower and upper bound.
    pub p99_us: [Option<f64>; 2],
    /// Run to which changes are relative.
    pub baseline: Option<String>,
    /// Conditions that were true, with their figures; any of them is a regression.
    pub regressions: Vec<String>,
    /// Remark on the judgement, such as why there is none.
    pub remark: Option<String>,
    /// What else may have made a change.
    pub notes: Vec<String>,
}

impl HistoryRun {
    /// Versions and machine.
    fn conditions(&self) -> String {
        let version = self.system_version.as_deref().unwrap_or("version unknown");
        format!("{version}, pubmark {}, {}", self.pubmark_version, self.machine)
    }

    /// Day and minute.
    fn moment(&self) -> String {
        self.started_at.get(..16).unwrap_or(&self.started_at).replace('T', " ")
    }

    /// The same without the year, as space on an axis is limited.
    fn short_moment(&self) -> String {
        let moment = self.moment();
        moment.get(5..).unwrap_or(&moment).to_owned()
    }
}

/// The chart and the table.
pub fn history_view(view: &HistoryView) -> String {
    let common = common_notes(&view.runs);
    html! {
        (figure::figure("history", &chart(view)))
        div.scroll { table.history {
            caption { "The oldest first. Latencies are intervals; a change counts from the run that is named." }
            thead { tr {
                th scope="col" { "Run" } th scope="col" { "System" } th scope="col" { "pubmark" }
                th scope="col" { "Machine" }
                th.number scope="col" { "Delivered" } th.number scope="col" { "p50" } th.number scope="col" { "p99" }
                th scope="col" { "Verdict" } th scope="col" { "Against" } th scope="col" { "Judgement" }
            } }
            tbody { @for run in &view.runs { (row(run, &common)) } }
        } }
        @for note in &common { p.hint { (note) } }
    }
    .into_string()
}

/// Notes of all runs that are compared, if there are several; they are shown once.
fn common_notes(runs: &[HistoryRun]) -> Vec<&String> {
    let mut compared = runs.iter().filter(|run| run.baseline.is_some());
    let Some(first) = compared.next() else { return vec![] };
    if compared.clone().next().is_none() {
        return vec![];
    }
    first.notes.iter().filter(|note| compared.clone().all(|run| run.notes.contains(note))).collect()
}

fn row(run: &HistoryRun, common: &[&String]) -> Markup {
    html! {
        tr.(verdict_word(run.verdict)).regressed[!run.regressions.is_empty()] {
            th scope="row" { a href={ "/runs/" (run.folder) } { (run.moment()) } }
            td { (run.system_version.as_deref().unwrap_or(MISSING)) }
            td { (run.pubmark_version) }
            td { (run.machine) }
            td.number { (run.delivered) }
            @for bounds in [run.p50_us, run.p99_us] {
                @let is_struck = run.verdict == VerdictStatus::Invalid && bounds[1].is_some();
                td.number.struck[is_struck] { (interval(bounds)) @if is_struck { " " (UNUSABLE) } }
            }
            td.result { (verdict_word(run.verdict)) }
            td { @match &run.baseline { Some(name) => { a href={ "/runs/" (name) } { (name) } } None => (MISSING) } }
            td.judgement {
                @for text in &run.regressions { div { strong { "regression" } " " (text) } }
                @if let Some(remark) = &run.remark { span.hint { (remark) } }
                @else if run.regressions.is_empty() { "no regression" }
                @for note in run.notes.iter().filter(|note| !common.contains(note)) { div.hint { (note) } }
            }
        }
    }
}

fn chart(view: &HistoryView) -> Chart {
    const TITLE: &str = "How did latency change from run to run?";
    let runs = &view.runs;
    let uppers = || runs.iter().flat_map(|run| [run.p50_us[1], run.p99_us[1]]).flatten();
    if uppers().next().is_none() {
        return Chart::missing(TITLE, "", "No run has enough messages for a percentile.");
    }
    let lowers = || runs.iter().flat_map(|run| [run.p50_us[0], run.p99_us[0]]).flatten().filter(|value| *value > 0.0);
    let smallest = lowers().chain(uppers()).fold(f64::INFINITY, f64::min);
    let largest = uppers().fold(1.0, f64::max);
    let lines = vec![line("p99", 1, runs, |run| run.p99_us), line("p50", 3, runs, |run| run.p50_us)];
    let names: Vec<String> = runs.iter().map(HistoryRun::short_moment).collect();
    let reading =
        |(place, run): (usize, &HistoryRun)| (place as f64, format!("{}, {}", run.moment(), run.conditions()));
    let readings = runs.iter().enumerate().map(reading).collect();
    let y = Axis::log_time(smallest, largest, "latency, log scale");
    let plot = Plot::of_lines(Axis::named(&names, "start of the run (UTC)"), y, lines, readings, HEIGHT);
    let picture = Picture::Plot(Box::new(Plot { marks: marks(runs), posts: posts(runs), ..plot }));
    let regressed = runs.iter().filter(|run| !run.regressions.is_empty()).count() as u64;
    let finding = format!(
        "{}, {} ({}).",
        counted(runs.len() as u64, "run", "runs"),
        counted(regressed, "regression", "regressions"),
        view.fail_on
    );
    let mut notes = vec!["lower is better".to_owned(), "a cross marks a regression".to_owned()];
    if runs.iter().any(|run| run.verdict == VerdictStatus::Invalid) {
        notes.push("a hollow grey disc marks an invalid run: its latencies are not to be quoted".to_owned());
    }
    Chart { title: TITLE, finding, notes, csv: "", picture }
}

fn line(name: &str, style: usize, runs: &[HistoryRun], get: fn(&HistoryRun) -> [Option<f64>; 2]) -> Line {
    let places = || runs.iter().enumerate().map(|(place, run)| (place as f64, get(run)));
    let readings = places().map(|(_, bounds)| if bounds[1].is_some() { interval(bounds) } else { String::new() });
    let points = places().map(|(place, bounds)| (place, bounds[1])).collect();
    let intervals = places().filter_map(|(place, [lower, upper])| Some((place, lower?, upper?))).collect();
    Line { intervals, is_marked: true, ..Line::plain(name, style, Join::Straight, points, readings.collect()) }
}

/// Invalid runs, at both percentiles, and regressions.
fn marks(runs: &[HistoryRun]) -> Vec<Mark> {
    let invalid = |(place, run): (usize, &HistoryRun)| {
        let is_invalid = run.verdict == VerdictStatus::Invalid;
        let shown = [run.p99_us, run.p50_us].into_iter().filter(move |_| is_invalid).filter_map(|bounds| bounds[1]);
        let title = format!("invalid run: {}", run.moment());
        shown.map(move |y| Mark { x: place as f64, y, shape: Shape::Disc, class: "invalid", title: title.clone() })
    };
    let mark = |(place, run): (usize, &HistoryRun)| {
        let y = run.p99_us[1].or(run.p50_us[1])?;
        let title = format!("regression: {}", run.regressions.join("; "));
        (!run.regressions.is_empty()).then_some(Mark {
            x: place as f64,
            y,
            shape: Shape::Cross,
            class: "failed",
            title,
        })
    };
    runs.iter().enumerate().flat_map(invalid).chain(runs.iter().enumerate().filter_map(mark)).collect()
}

/// Versions and machines at the runs where they begin; the newest changes if there are too many.
fn posts(runs: &[HistoryRun]) -> Vec<Post> {
    let changed = |(place, pair): (usize, &[HistoryRun])| {
        let version = match (pair[0].system_version != pair[1].system_version, &pair[1].system_version) {
            (true, Some(version)) => Some(version.clone()),
            (true, None) => Some("version unknown".to_owned()),
            (false, _) if pair[0].pubmark_version != pair[1].pubmark_version => {
                Some(format!("pubmark {}", pair[1].pubmark_version))
            }
            (false, _) => None,
        };
        let machine = (pair[0].machine != pair[1].machine).then(|| "machine changed".to_owned());
        let labels: Vec<String> = [version, machine].into_iter().flatten().collect();
        (!labels.is_empty()).then(|| Post { at: place as f64 + 0.5, label: labels.join(", "), class: "written" })
    };
    let mut posts: Vec<Post> = runs.windows(2).enumerate().filter_map(changed).collect();
    posts.drain(..posts.len().saturating_sub(MOST_POSTS));
    posts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(day: u32, version: &str, p99: f64) -> HistoryRun {
        HistoryRun {
            folder: format!("202603{day:02}-090507-smart-home"),
            started_at: format!("2026-03-{day:02}T09:05:07Z"),
            system_version: Some(version.to_owned()),
            pubmark_version: "0.1.0".to_owned(),
            machine: "Example CPU, 4 cores, kernel 6.12.0".to_owned(),
            verdict: VerdictStatus::Valid,
            delivered: "100 %".to_owned(),
            p50_us: [Some(100.0), Some(120.0)],
            p99_us: [Some(p99 * 0.9), Some(p99)],
            baseline: None,
            regressions: vec![],
            remark: None,
            notes: vec![],
        }
    }

    #[test]
    fn a_regression_and_a_new_version_are_marked() {
        let slower = HistoryRun { regressions: vec!["p99>+10%: <b>50 %</b>".to_owned()], ..run(2, "2.1", 600.0) };
        let view = HistoryView { fail_on: "p99>+10%".to_owned(), runs: vec![run(1, "2.0", 400.0), slower] };
        let html = history_view(&view);
        assert!(html.contains("1 regression (") && html.contains("2 runs"), "{html}");
        assert!(html.contains("&lt;b&gt;50 %") && !html.contains("<b>50"), "{html}");
        assert!(html.contains("post-label") && html.contains(">2.1<"), "{html}");
        assert_eq!(posts(&view.runs).len(), 1);
        assert_eq!(marks(&view.runs).len(), 1);
    }

    #[test]
    fn an_invalid_run_has_marks_of_its_own() {
        let invalid = HistoryRun { verdict: VerdictStatus::Invalid, ..run(2, "2.0", 600.0) };
        let view = |runs: Vec<HistoryRun>| history_view(&HistoryView { fail_on: String::new(), runs });
        let html = view(vec![run(1, "2.0", 400.0), invalid.clone()]);
        assert!(html.contains("mark invalid") && html.contains("a hollow grey disc marks an invalid run"), "{html}");
        assert!(html.contains("<title>invalid run: 2026-03-02 09:05</title>"), "{html}");
        let places: Vec<(f64, f64)> =
            marks(&[run(1, "2.0", 400.0), invalid.clone()]).iter().map(|mark| (mark.x, mark.y)).collect();
        assert_eq!(places, [(1.0, 600.0), (1.0, 120.0)]);
        assert_eq!(html.matches("<td class=\"number struck\">").count(), 2, "its latencies: {html}");
        let html = view(vec![run(1, "2.0", 400.0)]);
        assert!(!html.contains("struck"), "{html}");
        assert!(!html.contains("mark invalid") && !html.contains("hollow"), "{html}");
        let unmeasured = HistoryRun { p50_us: [None; 2], p99_us: [None; 2], ..invalid };
        assert!(marks(&[unmeasured]).is_empty());
    }

    #[test]
    fn another_machine_is_marked_and_named() {
        let few = "one run on a side cannot tell a change from noise".to_owned();
        let other = "the baseline had other settings: cores: 4, here 8".to_owned();
        let noted = |day, notes: &[&String]| HistoryRun {
            baseline: Some("before".to_owned()),
            notes: notes.iter().map(|note| (*note).clone()).collect(),
            ..run(day, "2.0", 400.0)
        };
        let machine = "Example CPU, 8 cores, kernel 6.12.0".to_owned();
        let moved = HistoryRun { machine: machine.clone(), ..noted(3, &[&few, &other]) };
        let view = HistoryView { fail_on: String::new(), runs: vec![run(1, "2.0", 400.0), noted(2, &[&few]), moved] };
        let posts = posts(&view.runs);
        assert_eq!(posts.iter().map(|post| (post.at, &*post.label)).collect::<Vec<_>>(), [(1.5, "machine changed")]);
        let html = history_view(&view);
        assert_eq!(html.matches(&few).count(), 1, "a note of all runs stands below the table: {html}");
        assert!(html.contains(&other) && html.contains(&format!("<td>{machine}</td>")), "{html}");
    }

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let missing = HistoryRun { p50_us: [None; 2], p99_us: [None; 2], ..run(1, "2.0", 1.0) };
        let html = history_view(&HistoryView { fail_on: String::new(), runs: vec![missing] });
        assert!(html.contains(MISSING) && html.contains("No run has enough messages"), "{html}");
    }
}
