//! Box plots of the latencies of all messages, one for each cell over all its runs, as in the paper on the edge
//! testbed.

use super::{CELLS, Member, View, rows};
use crate::charts::{Chart, Picture};
use crate::numbers::time;
use crate::plot::Axis;
use crate::plot::rows::{Boxed, Content, RowPanel, Rows};
use crate::words::sentence;
use pubmark_record::latency::upper;

pub(super) fn draw(view: &View) -> Option<Chart> {
    let boxes: Vec<Boxed> = view.members().filter_map(boxed).collect();
    let smallest = boxes.iter().map(|one| one.whiskers.0).filter(|value| *value > 0.0).reduce(f64::min)?;
    let largest = boxes.iter().map(|one| one.whiskers.1).reduce(f64::max)?;
    let panel =
        RowPanel { name: "latency".to_string(), axis: Axis::log_time(smallest, largest, "latency, logarithmic") };
    let content =
        |member: &Member| vec![boxed(member).map_or(Content::Words("too few samples".to_string()), Content::Boxed)];
    Some(Chart {
        picture: Picture::Rows(Rows { groups: rows(view, &["latency p50"], content, 1), panels: vec![panel] }),
        title: "Where do the messages lie?",
        finding: finding(view),
        notes: vec![
            "a box from the first to the third quartile of all delivered messages, a stroke at the median, whiskers from the fastest to 99 %"
                .to_string(),
            "lower is better".to_string(),
        ],
        csv: CELLS,
    })
}

fn boxed(member: &Member) -> Option<Boxed> {
    let latency = upper(&member.cell.latency)?;
    let (low, median, high, most) = (latency.p25?, latency.p50?, latency.p75?, latency.p99?);
    let us = |value: f64| time(Some(value));
    Some(Boxed {
        text: format!(
            "{}: fastest {}, quartiles {} and {}, median {}, 99 % {}",
            member.cell.label,
            us(latency.min),
            us(low),
            us(high),
            us(median),
            us(most)
        ),
        // The axis is logarithmic.
        whiskers: (if latency.min > 0.0 { latency.min } else { low }, most),
        quartiles: (low, high),
        median,
    })
}

/// The cell with the largest ratio of the upper to the lower quartile.
fn finding(view: &View) -> String {
    let spread = |member: &Member| {
        let latency = upper(&member.cell.latency)?;
        let (low, high) = (latency.p25.filter(|low| *low > 0.0)?, latency.p75?);
        Some((high / low, low, high, member.cell.label.clone()))
    };
    match view.members().filter_map(spread).max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, low, high, label)) => sentence(&format!(
            "the middle half of the delivered messages is spread most with {label}: from {} to {}",
            time(Some(low)),
            time(Some(high))
        )),
        None => "There are too few samples to see how messages spread.".to_string(),
    }
}
