//! Percentile curves of all systems, one panel per setting: shows the tail.

use super::View;
use crate::charts::curves::{NamedCurve, overlaid, time_axis};
use crate::charts::{Chart, Picture};
use crate::experiment::Group;
use crate::numbers::{count, time};
use crate::plot::Plot;
use crate::words::{sentence, share_arrived};
use pubmark_record::latency::upper;

/// Most points at which values can be read: with one panel, with several panels.
const READINGS: (usize, usize) = (120, 40);
/// Height of one of several panels, pixels.
const HEIGHT: f64 = 300.0;

/// Most lines of the whole chart that have a band down to the lower bound: more bands make a page large and cover each
/// other.
const MOST_BANDS: usize = 24;

pub(super) fn draw(view: &View) -> Option<Chart> {
    let most_readings = if view.groups.len() == 1 { READINGS.0 } else { READINGS.1 };
    let with_bands = view.members().count() <= MOST_BANDS;
    let all: Vec<NamedCurve> = view.groups.iter().flat_map(|group| curves(group, with_bands)).collect();
    let mut panels: Vec<(String, Plot)> = view
        .groups
        .iter()
        .filter_map(|group| Some((group.label.clone(), overlaid(&curves(group, with_bands), most_readings)?)))
        .collect();
    let picture = match panels.len() {
        0 => return None,
        1 => {
            let (_, plot) = panels.remove(0);
            Picture::Plot(Box::new(Plot { is_labelled: true, ..plot }))
        }
        _ => {
            // The same scale in all panels, so that they can be compared.
            let y = time_axis(&all);
            let panel = |(name, plot)| (name, Plot { height: HEIGHT, y: y.clone(), ..plot });
            Picture::Panels(panels.into_iter().map(panel).collect())
        }
    };
    let fewest = view.members().filter_map(|member| member.cell.latency_curve.as_ref()).map(|curve| curve.count).min();
    Some(Chart {
        title: "How bad is the tail?",
        finding: finding(view),
        notes: vec![
            format!("n ≥ {} a line, over all runs of a cell", count(fewest.unwrap_or(0))),
            "lower is better".to_string(),
        ],
        csv: "",
        picture,
    })
}

fn curves<'a>(group: &'a Group, with_bands: bool) -> Vec<NamedCurve<'a>> {
    let with_curve = group.members.iter().filter_map(|member| {
        let curve = member.cell.latency_curve.as_ref().filter(|curve| !curve.points.is_empty())?;
        let lower = member.cell.latency_curve_lower.as_ref().filter(|_| with_bands);
        Some(NamedCurve { name: member.name_in_chart(&["latency p50"]), style: member.style, curve, lower })
    });
    with_curve.collect()
}

/// The smallest and the largest p99.9, or p99, over all messages of a cell.
fn finding(view: &View) -> String {
    for (name, get) in [("99.9 %", true), ("99 %", false)] {
        let mut values: Vec<(f64, String)> = view
            .members()
            .filter_map(|member| {
                let latency = upper(&member.cell.latency)?;
                let label = format!("{}{}", member.cell.label, share_arrived(member.mean("delivered")));
                Some((if get { latency.p999? } else { latency.p99? }, label))
            })
            .collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let [first, .., last] = &values[..] {
            return sentence(&format!(
                "{name} of the delivered messages arrive within {} with {}, within {} with {}",
                time(Some(first.0)),
                first.1,
                time(Some(last.0)),
                last.1
            ));
        }
    }
    "There are too few samples to compare tails.".to_string()
}

#[cfg(test)]
mod tests {
    use pubmark_record::sample_experiment::experiment;

    use super::*;

    #[test]
    fn a_cell_that_lost_messages_is_named_with_the_share_that_arrived() {
        let found = |delivered: f64| {
            let mut record = experiment();
            let figures = record.cells.iter_mut().flat_map(|cell| &mut cell.figures);
            figures.filter(|figure| figure.figure == "delivered").for_each(|figure| figure.mean = Some(delivered));
            finding(&View::of(&record))
        };
        assert!(!found(1.0).contains("arrived)"), "{}", found(1.0));
        let found = found(0.7);
        assert!(found.contains("of the delivered messages") && found.contains("(70 % arrived)"), "{found}");
    }
}
