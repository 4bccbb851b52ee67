//! Distribution of latencies over time: a column for each bin of time, a row for each bucket of latency, shaded by the
//! share of the column's messages.

use std::collections::BTreeSet;

use pubmark_record::latency_bin::{LatencyBin, bucket_edges_us};
use pubmark_record::record::Record;

use super::over_time::panel;
use super::{Chart, Picture};
use crate::numbers::{count, share, time, time_label};
use crate::plot::axis::run_time_label;
use crate::plot::heat::{joined, level_of};
use crate::plot::{Axis, Cell, Join, Line};
use crate::words::sentence;

const TITLE: &str = "How are latencies distributed over time?";
const CSV: &str = "csv/latency_bins.csv";
const HEIGHT: f64 = 280.0;
/// Most columns: each is then 1.5 pixels wide on a telephone.
const MOST_COLUMNS: usize = 180;
/// Share of the messages that lie in the range that the finding names.
const BULK: f64 = 0.9;

pub(super) fn draw(record: &Record) -> Chart {
    let columns = columns(&record.tables.latency_bins, record.window_s());
    let buckets: BTreeSet<u32> = columns.iter().flat_map(|bin| filled(bin).map(|(bucket, _)| bucket)).collect();
    let (Some(lowest), Some(highest)) = (buckets.first(), buckets.last()) else {
        return Chart::missing(TITLE, CSV, "No distribution over time was recorded.");
    };
    let y = Axis::log_time(
        bucket_edges_us(*lowest).0,
        bucket_edges_us(*highest).1,
        "latency of delivered messages due then, log scale",
    );
    let readings = columns.iter().map(|bin| (bin.t_s + bin.width_s / 2.0, label(bin))).collect();
    let texts = columns.iter().map(most).collect();
    let line = Line::plain("most messages", 1, Join::Straight, Vec::new(), texts);
    let Some(plot) = panel(record, y, vec![line], readings) else {
        return Chart::missing(TITLE, CSV, "No distribution over time was recorded.");
    };
    let cells = buckets.iter().flat_map(|bucket| row(&columns, *bucket)).collect();
    Chart {
        title: TITLE,
        finding: finding(&record.tables.latency_bins),
        notes: vec![
            "as measured: upper bounds".to_string(),
            "a shade is the share of the delivered messages that were due then".to_string(),
        ],
        csv: CSV,
        picture: Picture::Plot(Box::new(crate::plot::Plot { cells, height: HEIGHT, ..plot })),
    }
}

/// The bins; adjacent bins are added if there are too many to distinguish, but not across an edge of the window of `window_s`.
fn columns(bins: &[LatencyBin], window_s: f64) -> Vec<LatencyBin> {
    let every = bins.len().div_ceil(MOST_COLUMNS).max(1);
    if every == 1 {
        return bins.to_vec();
    }
    let width_s = bins.iter().map(|bin| bin.width_s).fold(0.0, f64::max) * every as f64;
    // Counted from 0, and in the drain from the end of the window.
    let column_of = |t_s: f64| {
        let is_drain = t_s >= window_s - 1e-9;
        let since_s = if is_drain { t_s - window_s } else { t_s };
        (is_drain, (since_s / width_s + 1e-9).floor() as i64)
    };
    let mut columns: Vec<LatencyBin> = Vec::new();
    for bin in bins {
        match columns.last_mut().filter(|last| column_of(last.t_s) == column_of(bin.t_s)) {
            Some(last) => *last = sum(last, bin),
            None => columns.push(bin.clone()),
        }
    }
    columns
}

/// A bin and a later one, as one bin.
fn sum(one: &LatencyBin, other: &LatencyBin) -> LatencyBin {
    let values = one.buckets().chain(other.buckets()).map(|(bucket, messages)| (middle_us(bucket), messages));
    LatencyBin::of(one.t_s, other.t_s + other.width_s - one.t_s, values)
}

/// A latency inside a bucket.
fn middle_us(bucket: u32) -> f64 {
    let (from, to) = bucket_edges_us(bucket);
    (from * to).sqrt()
}

fn filled(bin: &LatencyBin) -> impl Iterator<Item = (u32, u64)> + '_ {
    bin.buckets().filter(|(_, messages)| *messages > 0)
}

fn total(bin: &LatencyBin) -> u64 {
    bin.counts.iter().sum()
}

/// Cells of a bucket.
fn row(columns: &[LatencyBin], bucket: u32) -> Vec<Cell> {
    let (low, high) = bucket_edges_us(bucket);
    joined(columns.iter().filter_map(|bin| {
        let (_, messages) = filled(bin).find(|(other, _)| *other == bucket)?;
        let level = level_of(messages as f64 / total(bin) as f64);
        Some(Cell { from: bin.t_s, to: bin.t_s + bin.width_s, low, high, level })
    }))
}

fn label(bin: &LatencyBin) -> String {
    format!("{} + {}", run_time_label(bin.t_s), run_time_label(bin.width_s))
}

/// Range of most messages of a bin.
fn most(bin: &LatencyBin) -> String {
    let most = filled(bin).max_by_key(|(_, messages)| *messages);
    most.map_or_else(String::new, |(bucket, messages)| {
        format!("{}: {}", range(bucket, bucket), share(messages, total(bin)))
    })
}

fn range(first: u32, last: u32) -> String {
    format!("{} to {}", time_label(bucket_edges_us(first).0), time_label(bucket_edges_us(last).1))
}

/// Range of most messages of the measured window, and of the others.
fn finding(bins: &[LatencyBin]) -> String {
    let measured = bins.iter().filter(|bin| bin.t_s >= 0.0).flat_map(LatencyBin::buckets);
    let whole = LatencyBin::of(0.0, 1.0, measured.map(|(bucket, messages)| (middle_us(bucket), messages)));
    let messages = total(&whole);
    let Some((slowest, _)) = filled(&whole).last() else {
        return "Nothing was measured after the warm-up.".to_string();
    };
    let beside = messages as f64 * (1.0 - BULK) / 2.0;
    let within = |from_below: bool| {
        let mut passed = 0.0;
        let mut buckets: Vec<(u32, u64)> = filled(&whole).collect();
        if !from_below {
            buckets.reverse();
        }
        let found = buckets.iter().find(|(_, messages)| {
            passed += *messages as f64;
            passed > beside
        });
        found.map_or(slowest, |(bucket, _)| *bucket)
    };
    let bulk = range(within(true), within(false));
    let most = time(Some(bucket_edges_us(slowest).1));
    sentence(&format!(
        "at least 90 % of {} delivered messages took {bulk}, the slowest less than {most}",
        count(messages)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_record::sample;

    #[test]
    fn many_bins_are_added_up_and_no_message_is_lost() {
        let mut bins = Vec::new();
        for second in -5..1_000 {
            bins.push(LatencyBin::of(f64::from(second), 1.0, [(300.0, 7), (9_000.0, 1)].into_iter()));
        }
        let columns = columns(&bins, 1_000.0);
        assert!(columns.len() <= MOST_COLUMNS + 1, "{}", columns.len());
        assert_eq!(columns.iter().map(total).sum::<u64>(), 8 * 1_005);
        assert!(columns.windows(2).all(|pair| (pair[1].t_s - pair[0].t_s - pair[0].width_s).abs() < 1e-6));
    }

    #[test]
    fn a_column_is_as_wide_as_its_bins_and_none_spans_an_edge_of_the_window() {
        let bin = |t_s: f64, width_s: f64| LatencyBin::of(t_s, width_s, [(300.0, 1)].into_iter());
        let mut bins = vec![bin(-5.0, 1.0), bin(-4.0, 2.0), bin(-2.0, 2.0)];
        let spans =
            |bins: &[LatencyBin]| columns(bins, 598.0).iter().map(|it| (it.t_s, it.width_s)).collect::<Vec<_>>();
        assert_eq!(spans(&bins), [(-5.0, 1.0), (-4.0, 2.0), (-2.0, 2.0)]);
        bins.extend((0..300).map(|place| bin(2.0 * f64::from(place), 2.0)));
        let spans = spans(&bins);
        assert_eq!(spans[..3], [(-5.0, 1.0), (-4.0, 4.0), (0.0, 4.0)]);
        assert_eq!(spans[spans.len() - 3..], [(592.0, 4.0), (596.0, 2.0), (598.0, 2.0)]);
    }

    #[test]
    fn the_bulk_is_shown_with_the_edges_of_its_buckets() {
        let bins = [LatencyBin::of(0.0, 1.0, [(120.0, 96), (5_000.0, 4)].into_iter())];
        assert_eq!(
            finding(&bins),
            "At least 90 % of 100 delivered messages took 100 µs to 133 µs, the slowest less than 5.62 ms."
        );
    }

    #[test]
    fn a_record_without_distributions_draws_nothing() {
        let mut record = sample::record();
        assert!(matches!(draw(&record).picture, Picture::Plot(plot) if !plot.cells.is_empty()));
        record.tables.latency_bins.clear();
        assert!(matches!(draw(&record).picture, Picture::Missing(_)));
    }
}
