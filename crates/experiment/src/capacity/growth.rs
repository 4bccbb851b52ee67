//! Whether a trial shows a queue that grows.

use pubmark_record::figures::delivered_share;
use pubmark_record::record::Record;
use pubmark_record::tables::{SeriesRow, wide_bins};

/// If a smaller share of the expected deliveries arrives within the window, and latency grows ([`CLEAR_GROWTH`]) or as much is lost, no
/// second try is needed.
const CLEAR_SHARE: f64 = 0.95;
/// Growth of the latency of a queue that grows, µs per second: half of what it is if [`CLEAR_SHARE`] of the load is carried. After a stall
/// at the end of the window as much is missing, and latency did not grow.
const CLEAR_GROWTH: f64 = (1.0 - CLEAR_SHARE) * 1e6 / 2.0;
/// Whether so much less arrived within the window than was sent that a queue must have grown, or much was lost.
pub fn falls_behind(record: &Record) -> bool {
    let expected_per_s = record.delivery.messages.expected as f64 / record.settings.duration_s;
    let waits_to_be_sent =
        record.delivery.messages.unsent as f64 > (1.0 - CLEAR_SHARE) * record.delivery.messages.offered as f64;
    let is_short = record.throughput.delivered_per_s < CLEAR_SHARE * expected_per_s;
    let is_lost = || delivered_share(record).is_some_and(|share| share < CLEAR_SHARE);
    // Of a short window the last bin is a third: a stall in it alone must not decide. With fewer bins growth is unknown.
    let grows = || {
        let bins = bins(record);
        bins.len() >= 3 && slope(&bins[..bins.len() - 1]) >= CLEAR_GROWTH
    };
    waits_to_be_sent || is_short && (is_lost() || grows())
}

/// Growth of the latency over the window, µs per second; `None` for fewer than three bins.
pub fn growth(record: &Record) -> Option<f64> {
    let bins = bins(record);
    (bins.len() >= 3).then(|| slope(&bins))
}

/// Times of the bins of the window, s, and their latencies, µs: the medians, or the largest latencies of all bins if one has messages and
/// too few of them for a median, because between one and the other there is no slope.
fn bins(record: &Record) -> Vec<(f64, f64)> {
    let in_window = |row: &&SeriesRow| row.t_s >= 0.0 && row.t_s + row.width_s <= record.settings.duration_s + 1e-9;
    let rows = wide_bins(&record.tables.series, record.settings.duration_s).filter(in_window);
    let largest: Vec<(&SeriesRow, f64)> = rows.filter_map(|row| Some((row, row.latency.upper.max_us?))).collect();
    let medians: Option<Vec<f64>> = largest.iter().map(|(row, _)| row.latency.upper.p50_us).collect();
    let values = medians.unwrap_or_else(|| largest.iter().map(|(_, max_us)| *max_us).collect());
    largest.iter().map(|(row, _)| row.t_s).zip(values).collect()
}

/// The median of the slopes between all pairs of two bins or more (Theil 1950, Sen 1968), which a single stall among many bins does not
/// change.
fn slope(bins: &[(f64, f64)]) -> f64 {
    let mut slopes = Vec::with_capacity(bins.len() * bins.len().saturating_sub(1) / 2);
    for (index, first) in bins.iter().enumerate() {
        slopes.extend(bins[index + 1..].iter().map(|second| (second.1 - first.1) / (second.0 - first.0)));
    }
    slopes.sort_by(f64::total_cmp);
    let middle = slopes.len() / 2;
    if slopes.len() % 2 == 1 { slopes[middle] } else { (slopes[middle - 1] + slopes[middle]) / 2.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::sample;

    use super::*;

    #[test]
    fn a_stall_at_the_end_of_the_window_is_no_queue_that_grows() {
        let mut record = sample::record();
        let behind = |record: &mut Record, growth: f64| {
            for row in &mut record.tables.series {
                row.latency.upper.p50_us = Some(200.0 + growth * row.t_s.max(0.0));
            }
            falls_behind(record)
        };
        assert!(!behind(&mut record, 50_000.0), "all of it arrived in time");
        record.throughput.delivered_per_s *= 0.9;
        assert_eq!([0.0, 10_000.0, 50_000.0].map(|growth| behind(&mut record, growth)), [false, false, true]);
        let books = &mut record.delivery.messages;
        (books.delivered, books.lost) = (books.delivered * 9 / 10, books.delivered / 10);
        assert!(behind(&mut record, 0.0), "what is lost does not wait");
    }

    #[test]
    fn a_stall_in_the_last_of_three_bins_decides_nothing() {
        let mut record = sample::record();
        record.settings.duration_s = 3.0;
        record.throughput.delivered_per_s *= 0.8;
        record.tables.series.retain(|row| row.t_s < 3.0);
        let mut behind = |p50_us: [f64; 3]| {
            for row in record.tables.series.iter_mut().filter(|row| row.t_s >= 0.0) {
                row.latency.upper.p50_us = Some(p50_us[row.t_s as usize]);
            }
            assert_eq!(bins(&record).len(), 3);
            falls_behind(&record)
        };
        assert!(!behind([200.0, 200.0, 300_000.0]));
        assert!(behind([200.0, 52_000.0, 104_000.0]));
    }

    #[test]
    fn a_window_of_two_bins_shows_no_growth() {
        let mut record = sample::record();
        record.settings.duration_s = 2.0;
        record.throughput.delivered_per_s *= 0.9;
        record.tables.series.retain(|row| row.t_s < 2.0);
        for row in record.tables.series.iter_mut().filter(|row| row.t_s >= 0.0) {
            row.latency.upper.p50_us = Some(200.0);
        }
        assert_eq!(bins(&record).len(), 2);
        assert!(!falls_behind(&record));
        let books = &mut record.delivery.messages;
        (books.delivered, books.lost) = (books.delivered * 9 / 10, books.delivered / 10);
        assert!(falls_behind(&record), "what is lost does not wait");
    }
}
