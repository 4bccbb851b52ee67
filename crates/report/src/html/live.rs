//! The view of a running run: tiles, charts and a log that are replaced once per second.

use maud::{Markup, html};

use super::{figure, with_code};
use crate::charts::{Chart, Picture};
use crate::numbers::{MISSING, TimeUnit, bytes, cores, count, interval, short, significant, time};
use crate::plot::axis::run_time_label;
use crate::plot::{Axis, Band, Join, Line, Plot};
use crate::words::sentence;

/// Style of this view, in addition to the style of all pages.
pub const LIVE_STYLE: &str = include_str!("live.css");
/// Height of a chart, pixels.
const HEIGHT: f64 = 180.0;
/// Width of a fault without duration, as a share of the axis.
const NARROWEST: f64 = 0.006;

/// State of a running run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveView {
    /// Workload on system.
    pub title: String,
    /// Progress, in a sentence.
    pub state: String,
    /// Why it failed, and what to do.
    pub failure: Option<(String, Option<String>)>,
    /// Whether it is over: then there is no load to wait for.
    pub over: bool,
    /// Position among the runs of an experiment or a search; `None` for a single run.
    pub among: Option<LiveRun>,
    /// Elapsed share of the measured window, 0 to 1; `None` if it is not known.
    pub share: Option<f64>,
    /// Length of the measured window, seconds.
    pub duration_s: Option<f64>,
    /// Data points, oldest first.
    pub points: Vec<LivePoint>,
    /// Faults: text, begin and end, in seconds of the window.
    pub faults: Vec<(String, f64, Option<f64>)>,
    /// Events: time in seconds since the start, and text; newest first.
    pub log: Vec<(f64, String)>,
}

/// Position of a run in an experiment or a capacity search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRun {
    /// `run 3 of 12`, `trial 4`.
    pub place: String,
    /// Cell of the run, or its load.
    pub what: String,
    /// Number of completed runs, and of all runs; `None` if the total is not known in advance.
    pub done: Option<(u64, u64)>,
    /// Estimated remaining time, in words.
    pub left: String,
}

/// State of a run at one time; counts are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LivePoint {
    /// Time in the measured window, seconds; negative in the warm-up.
    pub at_s: f64,
    /// Messages sent per second.
    pub sent_per_s: Option<f64>,
    /// Deliveries per second.
    pub delivered_per_s: Option<f64>,
    /// Median, µs: lower and upper bound.
    pub p50_us: Option<[f64; 2]>,
    /// 99th percentile, µs: lower and upper bound.
    pub p99_us: Option<[f64; 2]>,
    /// Whether nodes measure latencies, which are not known meanwhile.
    pub nodes_measure: bool,
    /// Deliveries that are expected and have not arrived; `None` while nodes measure, which send no counts meanwhile, and until all
    /// have sent their first counts of the drain.
    pub outstanding: Option<u64>,
    /// Deliveries known to be lost; `None` if it is not known.
    pub lost: Option<u64>,
    /// Messages that are due and not yet sent.
    pub backlog: u64,
    /// Messages that are sent and not settled.
    pub in_flight: u64,
    /// Cores and memory used by the system.
    pub system: Option<(f64, u64)>,
    /// Cores and memory used by pubmark.
    pub generator: Option<(f64, u64)>,
}

/// The tiles, charts and log.
pub fn live_view(view: &LiveView) -> String {
    html! {
        @if let Some(run) = &view.among { (among(run)) }
        p.state { (view.state) }
        @if let Some((reason, hint)) = &view.failure {
            div.failure { p { (with_code(&sentence(reason))) } @if let Some(hint) = hint { p { (with_code(&sentence(hint))) } } }
        }
        @if let Some(share) = view.share { progress max="1" value=(format!("{share:.3}")) aria-label="measured window" {} }
        @if !view.over || !view.points.is_empty() {
            div.tiles.live { @for one in tiles(&view.points) { (one) } }
        }
        @if view.points.len() > 1 {
            div.small-charts {
                @for (id, chart) in charts(view) { (figure::small(id, &chart)) }
            }
        } @else if !view.over { p.missing { "Charts appear when the load begins." } }
        section.log { h2 { "Events" } p.hint { "Seconds since the start" }
            ol { @for (at_s, text) in &view.log { li { time { (run_time_label(*at_s)) } " " span { (with_code(text)) } } } }
        }
    }
    .into_string()
}

/// Position of the run, and estimated remaining time.
fn among(run: &LiveRun) -> Markup {
    html! {
        section.among aria-label="All runs" {
            p { strong { (run.place) } ": " code { (run.what) } }
            @if let Some((done, of)) = run.done { progress max=(of) value=(done) aria-label="runs that are over" {} }
            p.hint { (run.left) }
        }
    }
}

/// Number of newest points in which a rate is looked for: the first point of a phase has none.
const RECENT: usize = 3;

/// What a tile says of a figure that nodes measure.
const AT_NODES: &str = "nodes measure";
/// What a tile says of a count in the drain, until it is current.
const BEFORE_COUNTS: &str = "waiting for the counts of all nodes";
/// What a chart says of it.
const NO_COUNTS: &str = "Nodes send no counts and no latencies while they measure.";

fn newest_of(points: &[LivePoint], get: fn(&LivePoint) -> Option<f64>) -> Option<f64> {
    points.iter().rev().take(RECENT).take_while(|point| point.outstanding.is_some()).find_map(get)
}

fn nodes_measure(points: &[LivePoint]) -> bool {
    points.iter().any(|point| point.nodes_measure)
}

fn tiles(points: &[LivePoint]) -> [Markup; 6] {
    let newest = points.last();
    let (at_nodes, counted) = (nodes_measure(points), newest.filter(|point| point.outstanding.is_some()));
    let rate = newest_of(points, |point| point.delivered_per_s).map(significant);
    let sent = newest_of(points, |point| point.sent_per_s)
        .map_or(MISSING.to_owned(), |rate| format!("{}/s", significant(rate)));
    let missing = counted.and_then(|point| point.outstanding).map(count);
    let lost = match newest.and_then(|point| point.lost) {
        Some(0) => "none known to be lost".to_owned(),
        Some(lost) => format!("{} of them lost, at least", count(lost)),
        None => "in transit or lost".to_owned(),
    };
    let waits = counted.map_or(MISSING.to_owned(), |point| count(point.backlog));
    let in_flight = counted.map(|point| count(point.in_flight));
    let latency = |name: &str, bounds_us: Option<[f64; 2]>| match bounds_us {
        None if at_nodes => tile(name, None, "", AT_NODES),
        _ => latency(name, bounds_us),
    };
    let missing_counts = newest.filter(|point| at_nodes && point.outstanding.is_none());
    let why = missing_counts.map(|point| if point.nodes_measure { AT_NODES } else { BEFORE_COUNTS });
    let tile = |name: &str, value: Option<String>, unit: &str, beside: &str| {
        let beside = why.filter(|_| value.is_none()).unwrap_or(beside);
        tile(name, value, unit, beside)
    };
    [
        tile("Delivered messages", rate, "/s", &format!("{sent} sent")),
        latency("Latency p50", newest.and_then(|point| point.p50_us)),
        latency("Latency p99", newest.and_then(|point| point.p99_us)),
        tile("Not delivered yet", missing, "", &lost),
        tile("In flight", in_flight, "", &format!("{waits} wait to be sent")),
        usage(newest),
    ]
}

fn tile(name: &str, value: Option<String>, unit: &str, beside: &str) -> Markup {
    let is_known = value.is_some();
    html! {
        div.tile {
            div.name { (name) }
            div.values { span.value { (value.unwrap_or_else(|| MISSING.to_owned())) @if is_known && !unit.is_empty() { " " span.unit { (unit) } } } }
            div.beside { (beside) }
        }
    }
}

fn latency(name: &str, bounds_us: Option<[f64; 2]>) -> Markup {
    let Some([lower, upper]) = bounds_us else { return tile(name, None, "", "too few messages in the last 10 s") };
    let unit = TimeUnit::for_value(upper);
    tile(name, Some(unit.interval([Some(lower), Some(upper)])), unit.symbol(), "of the last seconds")
}

fn usage(newest: Option<&LivePoint>) -> Markup {
    let side = |used: Option<(f64, u64)>| match used {
        Some((used, memory)) => format!("{}, {}", cores(Some(used)), bytes(Some(memory as f64))),
        None => MISSING.to_owned(),
    };
    let system = newest.and_then(|point| point.system);
    let memory = system.map_or(MISSING.to_owned(), |(_, memory)| bytes(Some(memory as f64)));
    let generator = side(newest.and_then(|point| point.generator));
    let beside = format!("of a core, {memory}; pubmark {generator}");
    tile("CPU of the system", system.map(|(used, _)| cores(Some(used))), "", &beside)
}

fn charts(view: &LiveView) -> Vec<(&'static str, Chart)> {
    let points = &view.points;
    let line = |name: &str, style: usize, get: &dyn Fn(&LivePoint) -> Option<f64>, print: &dyn Fn(f64) -> String| {
        let values = points.iter().map(|point| (point.at_s, get(point))).collect();
        let readings = points.iter().map(|point| get(point).map_or_else(String::new, print)).collect();
        Line::plain(name, style, Join::Straight, values, readings)
    };
    let per_s = |value: f64| format!("{}/s", significant(value));
    let us = |value: f64| time(Some(value));
    let with_bounds = |name: &str, style: usize, get: &dyn Fn(&LivePoint) -> Option<[f64; 2]>| {
        let lower = line("", style, &|point| get(point).map(|bounds| bounds[0]), &us).points;
        let readings = points
            .iter()
            .map(|point| get(point).map_or_else(String::new, |bounds| interval(bounds.map(Some))))
            .collect();
        let upper = line(name, style, &|point| get(point).map(|bounds| bounds[1]), &us);
        Line { readings, ..upper.with_lower(lower) }
    };
    let rates = vec![
        line("sent", 1, &|point| point.sent_per_s, &per_s),
        line("delivered", 2, &|point| point.delivered_per_s, &per_s),
    ];
    let latencies = vec![with_bounds("p99", 1, &|point| point.p99_us), with_bounds("p50", 3, &|point| point.p50_us)];
    let in_cores = |value: f64| cores(Some(value));
    let cpu = vec![
        line("system", 2, &|point| point.system.map(|used| used.0 * 100.0), &|value| in_cores(value / 100.0)),
        line("pubmark", 1, &|point| point.generator.map(|used| used.0 * 100.0), &|value| in_cores(value / 100.0)),
    ];
    let mb = |value: u64| value as f64 / 1e6;
    let in_mb = |value: f64| format!("{} MB", significant(value));
    let memory = vec![
        line("system", 2, &|point| point.system.map(|used| mb(used.1)), &in_mb),
        line("pubmark", 1, &|point| point.generator.map(|used| mb(used.1)), &in_mb),
    ];
    vec![
        ("live-rates", chart(view, "Is the load carried?", rates, "messages per second")),
        ("live-latency", latency_chart(view, latencies)),
        ("live-cpu", chart(view, "How busy are both sides?", cpu, "% of a core")),
        ("live-memory", chart(view, "How much memory do they use?", memory, "MB")),
    ]
}

fn chart(view: &LiveView, title: &'static str, lines: Vec<Line>, axis: &str) -> Chart {
    let y = Axis::from_zero(largest(&lines), axis, short);
    drawn(view, title, lines, y)
}

fn latency_chart(view: &LiveView, lines: Vec<Line>) -> Chart {
    let values = || lines.iter().flat_map(|line| line.points.iter().chain(&line.lower)).filter_map(|(_, value)| *value);
    let smallest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let largest = values().fold(1.0, f64::max);
    let y = Axis::log_time(smallest.min(largest), largest, "latency of the last seconds, log scale");
    drawn(view, "How late are messages?", lines, y)
}

fn largest(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value)).fold(0.0, f64::max)
}

/// A chart over time; lines without values are left out.
fn drawn(view: &LiveView, title: &'static str, mut lines: Vec<Line>, y: Axis) -> Chart {
    lines.retain(|line| line.points.iter().any(|(_, value)| value.is_some()));
    let at_nodes = nodes_measure(&view.points);
    let nothing = if at_nodes { NO_COUNTS } else { "Nothing was measured yet." };
    let (Some(first), Some(last)) = (view.points.first(), view.points.last()) else {
        return Chart::missing(title, "", nothing);
    };
    if lines.is_empty() {
        return Chart::missing(title, "", nothing);
    }
    // What was measured before the nodes began is not the newest value.
    let among = if at_nodes { RECENT } else { usize::MAX };
    let values = lines.iter().filter_map(|line| latest(line, among)).collect::<Vec<_>>().join("; ");
    let finding = if at_nodes && values.is_empty() { NO_COUNTS.to_owned() } else { values };
    let (from, to) = (first.at_s, last.at_s.max(view.duration_s.unwrap_or(0.0)));
    let readings = view.points.iter().map(|point| (point.at_s, run_time_label(point.at_s))).collect();
    let plot = Plot::of_lines(Axis::run_time(from, to), y, lines, readings, HEIGHT);
    let picture = Picture::Plot(Box::new(Plot { bands: bands(view, from, to), ..plot }));
    Chart { title, finding, notes: vec![], csv: "", picture }
}

/// The newest value in the last `among` points of a line, as text.
fn latest(line: &Line, among: usize) -> Option<String> {
    let value = line.readings.iter().rev().take(among).find(|reading| !reading.is_empty())?;
    Some(format!("{} {value}", line.name))
}

/// The warm-up and the faults; a fault that has not ended extends to the newest point.
fn bands(view: &LiveView, from: f64, to: f64) -> Vec<Band> {
    let now = view.points.last().map_or(to, |point| point.at_s);
    let mut bands = Vec::new();
    if from < 0.0 {
        bands.push(Band { from, to: 0.0, label: "warm-up".to_owned(), is_fault: false });
    }
    let fault = |(words, began, ended): &(String, f64, Option<f64>)| {
        let least = began + (to - from) * NARROWEST;
        let label = words.split(' ').next().unwrap_or(words).to_owned();
        Band { from: *began, to: ended.unwrap_or(now).max(least), label, is_fault: true }
    };
    bands.extend(view.faults.iter().map(fault));
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> LiveView {
        let point = |at_s: f64| LivePoint {
            at_s,
            sent_per_s: Some(100.0),
            delivered_per_s: Some(98.0),
            p50_us: Some([110.0, 168.0]),
            p99_us: (at_s > 1.0).then_some([300.0, 900.0]),
            outstanding: Some(3),
            lost: Some(2),
            system: Some((0.25, 64 << 20)),
            ..LivePoint::default()
        };
        LiveView {
            title: "smart-home on builtin".to_owned(),
            state: "measure".to_owned(),
            among: None,
            failure: None,
            over: false,
            share: Some(0.5),
            duration_s: Some(10.0),
            points: (-1..=5).map(|at| point(f64::from(at))).collect(),
            faults: vec![("pause of the system".to_owned(), 2.0, None)],
            log: vec![(3.0, "fault begins: <b>pause</b>".to_owned())],
        }
    }

    #[test]
    fn figures_are_shown_and_text_of_peers_is_escaped() {
        let html = live_view(&view());
        assert!(html.contains("110") && html.contains("168") && html.contains(">3<"), "{html}");
        assert!(html.contains("2 of them lost, at least"), "{html}");
        assert!(html.contains("&lt;b&gt;pause") && !html.contains("<b>pause"), "{html}");
        assert!(html.contains("band fault"), "{html}");
        assert_eq!(html.matches("<figure").count(), 4);
    }

    #[test]
    fn figures_that_nodes_measure_are_no_zeros() {
        let warm_up = view().points.into_iter().filter(|point| point.at_s < 0.0);
        let warm_up = warm_up.map(|point| LivePoint { p50_us: None, nodes_measure: true, ..point });
        let window = |at: i32| LivePoint {
            at_s: f64::from(at),
            nodes_measure: true,
            system: Some((0.25, 64 << 20)),
            ..LivePoint::default()
        };
        let points: Vec<LivePoint> = warm_up.chain((0..=5).map(window)).collect();
        let text = |tile: &Markup| tile.0.clone();
        for (name, tile) in
            ["Delivered", "Latency p50", "Latency p99", "Not delivered yet", "In flight"].iter().zip(&tiles(&points))
        {
            let shown = text(tile);
            let is_missing = format!(r#"<span class="value">{MISSING}</span>"#);
            assert!(
                shown.contains(name) && shown.contains(&is_missing) && shown.contains(">nodes measure<"),
                "{shown}"
            );
        }
        let counted = tiles(&points[..1]);
        assert!(text(&counted[0]).contains(">98.0 "), "{}", text(&counted[0]));
        assert!(text(&counted[1]).contains(">nodes measure<"), "{}", text(&counted[1]));
        let drain = LivePoint { at_s: 6.0, ..LivePoint::default() };
        let waits = tiles(&[&points[..], &[drain]].concat());
        for number in [0, 3, 4] {
            assert!(text(&waits[number]).contains(">waiting for the counts of all nodes<"), "{}", text(&waits[number]));
        }
        assert!(text(&waits[1]).contains(">nodes measure<"), "{}", text(&waits[1]));
        let current = LivePoint { outstanding: Some(20), ..drain };
        let current = tiles(&[&points[..], &[drain, current]].concat());
        assert!(text(&current[0]).contains(">— sent<"), "no rate yet: {}", text(&current[0]));
        assert!(text(&current[3]).contains(">20<"), "{}", text(&current[3]));
        let drawn = |points: &[LivePoint]| charts(&LiveView { points: points.to_vec(), ..view() });
        let all = drawn(&points);
        assert_eq!(all[0].1.finding, NO_COUNTS, "not the rates of the warm-up");
        let is_missing = |chart: &Chart| matches!(&chart.picture, Picture::Missing(why) if why == NO_COUNTS);
        assert!(is_missing(&all[1].1) && is_missing(&drawn(&points[1..])[0].1));
        assert!(all[2].1.finding.contains("system"), "this process measures the system");
    }

    #[test]
    fn a_run_among_others_says_which_and_how_long_the_rest_takes() {
        let run = LiveRun {
            place: "run 3 of 12".to_owned(),
            what: "<nats>, QoS 1".to_owned(),
            done: Some((2, 12)),
            left: "about 8 min left".to_owned(),
        };
        let html = live_view(&LiveView { among: Some(run), ..view() });
        assert!(html.contains("run 3 of 12") && html.contains("&lt;nats&gt;, QoS 1"), "{html}");
        assert!(html.contains(r#"max="12" value="2""#) && html.contains("about 8 min left"), "{html}");
        assert!(!live_view(&view()).contains("class=\"among\""));
    }

    #[test]
    fn a_run_that_failed_before_its_load_shows_the_reason_and_what_to_do_and_no_tiles() {
        let hint = Some("check `--user`".to_owned());
        let failure = Some(("failed to connect to `<a>`: not authorized".to_owned(), hint));
        let html = live_view(&LiveView { failure, over: true, points: vec![], ..view() });
        assert!(html.contains("Failed to connect to <code>&lt;a&gt;</code>: not authorized."), "{html}");
        assert!(html.contains("Check <code>--user</code>."), "{html}");
        assert!(!html.contains("Charts appear") && !html.contains("tiles"), "{html}");
    }

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let html = live_view(&LiveView { points: vec![LivePoint::default()], ..view() });
        assert!(html.contains("— sent"), "no unit of nothing: {html}");
        assert!(html.contains(MISSING) && html.contains("Charts appear when the load begins"), "{html}");
    }
}
