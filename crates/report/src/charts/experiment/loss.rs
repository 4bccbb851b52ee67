//! Share of messages that did not arrive, for each cell.

use super::{CELLS, Member, View, rows};
use crate::charts::{Chart, Picture};
use crate::numbers::{counted, percentage, short};
use crate::plot::Axis;
use crate::plot::rows::{Content, RowPanel, Rows};
use crate::words::sentence;

const TITLE: &str = "Do messages get lost?";

pub(super) fn draw(view: &View) -> Option<Chart> {
    let lost: Vec<(f64, &str)> =
        view.members().filter_map(|member| Some((missing_percent(member)?, member.cell.label.as_str()))).collect();
    let (worst, label) = lost.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    if worst <= 0.0 {
        let finding = format!("in {} every wanted delivery arrived", counted(lost.len() as u64, "cell", "cells"));
        let picture = Picture::Missing("Nothing is missing.".to_string());
        return Some(Chart { title: TITLE, finding: sentence(&finding), notes: Vec::new(), csv: CELLS, picture });
    }
    let losing = lost.iter().filter(|(share, _)| *share > 0.0).count();
    let highest = view.members().filter_map(|member| interval(member).map(|(_, high)| high)).fold(worst, f64::max);
    let panel = RowPanel {
        name: "not delivered".to_string(),
        axis: Axis::from_zero(highest, "% of the wanted deliveries", short),
    };
    let contents = |member: &Member| vec![content(member)];
    Some(Chart {
        title: TITLE,
        finding: sentence(&format!(
            "messages are missing in {} of {} cells, most with {label}: {}",
            losing,
            lost.len(),
            percentage(Some(worst / 100.0))
        )),
        notes: vec!["mean over the repetitions with its 95 % interval".to_string(), "lower is better".to_string()],
        csv: CELLS,
        picture: Picture::Rows(Rows { groups: rows(view, &["delivered"], contents, 1), panels: vec![panel] }),
    })
}

/// Share of the wanted deliveries that did not arrive, in percent.
fn missing_percent(member: &Member) -> Option<f64> {
    member.mean("delivered").map(|delivered| (1.0 - delivered).max(0.0) * 100.0)
}

fn interval(member: &Member) -> Option<(f64, f64)> {
    let (low, high) = member.figure("delivered")?.whole_interval()?;
    // A share cannot be above 1, even if the interval extends beyond it.
    Some(((1.0 - high).max(0.0) * 100.0, (1.0 - low).max(0.0) * 100.0))
}

fn content(member: &Member) -> Content {
    match missing_percent(member) {
        None => Content::Words("not measured".to_string()),
        Some(value) if value <= 0.0 => Content::Words("none".to_string()),
        Some(value) => Content::Bar { value, interval: interval(member), text: percentage(Some(value / 100.0)) },
    }
}
