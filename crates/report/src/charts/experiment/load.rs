//! Latency over the offered load, if the experiment varied the load.

use std::collections::BTreeMap;

use pubmark_model::experiment::axis_words;
use pubmark_record::experiment::{Axis as Varied, CellFigure};

use super::{CELLS, Member, View};
use crate::charts::{Chart, Picture};
use crate::experiment::is_unusable;
use crate::numbers::{interval, significant};
use crate::plot::{Axis, Join, Line, Plot};
use crate::words::{UNUSABLE, sentence};

/// Axes that are loads, in order of preference.
const LOADS: [&str; 3] = ["rate", "scale", "payload"];
/// Figures drawn, one panel each.
const SHOWN: [(&str, &str); 2] = [("latency p50", "p50"), ("latency p99", "p99")];
const HEIGHT: f64 = 290.0;

pub(super) fn draw(view: &View) -> Option<Chart> {
    let swept = swept(view)?;
    let mut panels = Vec::new();
    let mut settings: Vec<BTreeMap<&str, &str>> = Vec::new();
    for group in &view.groups {
        let others: BTreeMap<&str, &str> =
            group.among.iter().filter(|(name, _)| **name != swept.name).map(|(name, value)| (*name, *value)).collect();
        if !settings.contains(&others) {
            settings.push(others);
        }
    }
    for others in &settings {
        let label: Vec<String> = others.iter().map(|(name, value)| axis_words(name, value)).collect();
        for (figure, head) in SHOWN {
            let name = if label.is_empty() { head.to_string() } else { format!("{head}, {}", label.join(", ")) };
            panels.extend(plot(view, swept, others, figure).map(|plot| (name, plot)));
        }
    }
    if panels.is_empty() {
        return None;
    }
    Some(Chart {
        title: "How does latency grow with the load?",
        finding: finding(view, swept),
        notes: vec![
            "a mark is the mean over the repetitions, its whisker the 95 % interval of both bounds".to_string(),
            "lower is better".to_string(),
        ],
        csv: CELLS,
        picture: Picture::Panels(panels),
    })
}

/// The load axis that was varied.
fn swept<'a>(view: &View<'a>) -> Option<&'a Varied> {
    let is_varied = |axis: &&Varied| axis.values.len() > 1 && axis.name != view.compared;
    let loads =
        LOADS.iter().rev().filter_map(|name| view.record.axes.iter().filter(is_varied).find(|axis| axis.name == *name));
    // The axis with most values; if several have as many, the first of `LOADS`, because `max_by_key` returns the last
    // maximum.
    loads.max_by_key(|axis| axis.values.len())
}

fn plot(view: &View, swept: &Varied, others: &BTreeMap<&str, &str>, figure: &str) -> Option<Plot> {
    let here: Vec<&Member> = view
        .groups
        .iter()
        .filter(|group| others.iter().all(|(name, value)| group.among.get(name) == Some(value)))
        .flat_map(|group| &group.members)
        .collect();
    let place = |member: &Member| place(swept, member);
    let mut places: Vec<f64> = here.iter().filter_map(|member| place(member)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut lines: Vec<Line> = Vec::new();
    for member in &here {
        if lines.iter().all(|line| line.name != member.name) {
            let same: Vec<&Member> = here.iter().filter(|other| other.name == member.name).copied().collect();
            lines.extend(line(&same, figure, &places, &place));
        }
    }
    // The same scale in all panels of a figure, so that they can be compared.
    let figures = || view.members().filter_map(|member| member.figure(figure));
    let ends = || figures().filter_map(CellFigure::whole_interval).flat_map(|(low, high)| [low, high]);
    let values = || figures().filter_map(|figure| figure.mean).chain(ends());
    let smallest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let largest = values().fold(0.0, f64::max);
    if lines.is_empty() || !smallest.is_finite() {
        return None;
    }
    let x = if swept.name == "payload" {
        Axis::named(&swept.values, "payload")
    } else {
        Axis::fitting(&places, "messages offered a second", crate::numbers::short)
    };
    let reading = |at: &f64| (*at, reading(swept, *at));
    let readings = places.iter().map(reading).collect();
    Some(Plot::of_lines(x, Axis::log_time(smallest, largest, "latency, log scale"), lines, readings, HEIGHT))
}

/// Position of a cell on the x axis: by messages offered; payloads in the order written.
fn place(swept: &Varied, member: &Member) -> Option<f64> {
    if swept.name == "payload" {
        let value = member.cell.settings.get(&swept.name)?;
        return swept.values.iter().position(|other| other == value).map(|place| place as f64);
    }
    member.cell.offered_per_s
}

fn reading(swept: &Varied, at: f64) -> String {
    if swept.name == "payload" {
        return swept.values.get(at as usize).cloned().unwrap_or_default();
    }
    format!("{}/s", significant(at))
}

/// The line of one system; a cell without the figure is a gap.
fn line(members: &[&Member], figure: &str, places: &[f64], place: &dyn Fn(&Member) -> Option<f64>) -> Option<Line> {
    let first = members.first()?;
    let mut here: Vec<(f64, &Member)> = members.iter().filter_map(|member| Some((place(member)?, *member))).collect();
    here.sort_by(|a, b| a.0.total_cmp(&b.0));
    let points: Vec<(f64, Option<f64>)> = here.iter().map(|(at, member)| (*at, member.mean(figure))).collect();
    if points.iter().all(|(_, value)| value.is_none()) {
        return None;
    }
    let reading = |at: &f64| {
        let found = here.iter().find(|(place, _)| place == at).and_then(|(_, member)| member.figure(figure));
        let bounds = found.map_or([None; 2], CellFigure::mean_bounds);
        let mark = if found.is_some_and(is_unusable) { format!(" {UNUSABLE}") } else { String::new() };
        bounds[1].map_or_else(String::new, |_| format!("{}{mark}", interval(bounds)))
    };
    let readings = places.iter().map(reading).collect();
    let whisker = |(at, member): &(f64, &Member)| {
        let (low, high) = member.figure(figure)?.whole_interval()?;
        Some((*at, low, high))
    };
    Some(Line {
        lower: Vec::new(),
        intervals: here.iter().filter_map(whisker).collect(),
        is_marked: true,
        ..Line::plain(first.name, first.style, Join::Straight, points, readings)
    })
}

/// The system whose p99 grows most from the smallest to the largest load.
fn finding(view: &View, swept: &Varied) -> String {
    let mut growths: Vec<(f64, String)> = Vec::new();
    let (Some(least), Some(most)) = (swept.values.first(), swept.values.last()) else { return String::new() };
    for member in view.members().filter(|member| member.cell.settings.get(&swept.name) == Some(least)) {
        let twin = view.members().find(|other| {
            other.cell.settings.get(&swept.name) == Some(most)
                && other
                    .cell
                    .settings
                    .iter()
                    .all(|(name, value)| *name == swept.name || member.cell.settings.get(name) == Some(value))
        });
        let low = member.mean("latency p99").filter(|low| *low > 0.0);
        if let (Some(low), Some(high)) = (low, twin.and_then(|twin| twin.mean("latency p99"))) {
            growths.push((high / low, member.name.to_string()));
        }
    }
    let (Some(least_growth), Some(most_growth)) =
        (growths.iter().min_by(|a, b| a.0.total_cmp(&b.0)), growths.iter().max_by(|a, b| a.0.total_cmp(&b.0)))
    else {
        return "No system has a p99 at both ends of the load.".to_string();
    };
    let range = format!("from {} to {}", axis_words(&swept.name, least), axis_words(&swept.name, most));
    if growths.len() == 1 {
        return sentence(&format!("{range}, p99 becomes {} times what it was", significant(most_growth.0)));
    }
    sentence(&format!(
        "{range}, p99 becomes {} times what it was with {}, and {} times with {}",
        significant(least_growth.0),
        least_growth.1,
        significant(most_growth.0),
        most_growth.1
    ))
}
