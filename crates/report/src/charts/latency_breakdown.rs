//! Latency breakdown: the median of each part of a message's way, by class of device.

use pubmark_record::latency::both;
use pubmark_record::latency_breakdown::{BreakdownRow, PARTS};
use pubmark_record::record::Record;

use super::{Chart, Picture};
use crate::numbers::{count, interval, time, time_label};
use crate::plot::Axis;
use crate::plot::stacks::{Piece, Stack, Stacks};
use crate::words::{self, sentence};

const TITLE: &str = "Where did the time go?";
const CSV: &str = "csv/latency_breakdown.csv";

/// Most rows; the table has all.
const MOST_ROWS: usize = 16;

/// Colour classes of [`PARTS`], in order.
const CLASSES: [&str; 6] = ["w-device", "w-up", "w-system", "w-down", "w-subscriber", "w-rest"];

pub(super) fn draw(record: &Record) -> Chart {
    let Some(figures) = &record.latency.breakdown else {
        return Chart::missing(TITLE, CSV, "No message crossed an emulated link.");
    };
    let mut shown: Vec<&BreakdownRow> = figures.rows.iter().filter(|row| row.complete > 0).collect();
    // Those with most messages, as on the terminal.
    shown.sort_by_key(|row| std::cmp::Reverse(row.complete));
    shown.truncate(MOST_ROWS);
    if shown.is_empty() {
        return Chart::missing(
            TITLE,
            CSV,
            "No message was seen wholly on its way: encrypted, masked or cut into pieces.",
        );
    }
    // A class with too few messages for a median is only in the table.
    let rows: Vec<Stack> = shown.iter().map(|row| stack(row)).filter(|row| !row.pieces.is_empty()).collect();
    if rows.is_empty() {
        return Chart::missing(TITLE, CSV, "No class has enough messages for a median.");
    }
    let longest = rows.iter().map(|row| row.pieces.iter().map(|piece| piece.value).sum::<f64>()).fold(0.0, f64::max);
    let [_, seen, _] = figures.totals();
    let mut notes = vec![
        format!("n = {}", count(seen)),
        "medians of each part; they need not add up to the median of the whole".to_string(),
    ];
    if rows.len() < figures.rows.len() {
        notes.push(format!("{} of {} classes", count(rows.len() as u64), count(figures.rows.len() as u64)));
    }
    Chart {
        title: TITLE,
        finding: sentence(&words::latency_breakdown(figures)),
        notes,
        csv: CSV,
        picture: Picture::Stacks(Stacks { axis: Axis::from_zero(longest, "time, median", time_label), rows }),
    }
}

fn stack(row: &BreakdownRow) -> Stack {
    let parts = row.parts.in_order().into_iter().zip(PARTS).zip(CLASSES);
    let pieces = parts.filter_map(|((summary, name), class)| {
        // Parts with too few samples for a median are not drawn.
        let median = summary.and_then(|summary| summary.p50)?;
        let text = format!("{name}: p50 {}, p99 {}", time(Some(median)), time(summary.and_then(|summary| summary.p99)));
        Some(Piece { name, class, value: median.max(0.0), label: time(Some(median)), text })
    });
    let p50 = interval(both(&row.parts.whole, |whole| whole.p50));
    let p99 = interval(both(&row.parts.whole, |whole| whole.p99));
    Stack { name: row.class.clone(), note: format!("whole: p50 {p50}, p99 {p99}"), pieces: pieces.collect() }
}
