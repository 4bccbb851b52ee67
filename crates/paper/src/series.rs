//! A figure over time: messages in flight at some seconds of a run, or the latency of the messages due between them, beside the
//! publication's values.

use std::path::Path;

use pubmark_model::experiment::{PlannedCell, cells};
use pubmark_record::experiment::Cell;
use pubmark_record::latency_bin::{LatencyBin, bucket_edges_us};
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::store;
use pubmark_record::tables::{SeriesRow, Tables};

use crate::collect::{NOT_RUN, Part};
use crate::definition::{Series, SeriesFigure};
use crate::record::{MeanFigure, TableCell, TableResult};
use crate::table::failed;

/// Head of the rows of a figure at single seconds.
pub(crate) const SECOND: &str = "second";

/// Fewest messages of which a median is shown: ten on either side.
const FEWEST_OF_A_MEDIAN: u64 = 20;

/// Builds the table of a figure over time: a row per second, or from one to the next, a column per value of the axis.
pub(crate) fn table(series: &Series, part: &Part, base: &Path) -> TableResult {
    let is_meant = |cell: &PlannedCell| series.at.iter().all(|(axis, value)| cell.values.get(axis) == Some(value));
    let found = cells(&part.experiment)
        .into_iter()
        .filter(is_meant)
        .flat_map(|cell| column(series, part, base, &cell))
        .collect();
    let is_under_way = series.figure == SeriesFigure::UnderWay;
    TableResult {
        title: series.title.clone(),
        experiment: series.experiment.clone(),
        figure: series.figure.name().to_owned(),
        rows: vec![if is_under_way { SECOND } else { "seconds" }.to_owned()],
        columns: vec![series.columns.clone()],
        printed_of: String::new(),
        differs: series.differs.clone(),
        comparable: series.comparable,
        cells: found,
    }
}

fn column(series: &Series, part: &Part, base: &Path, planned: &PlannedCell) -> Vec<TableCell> {
    let name = planned.values.get(&series.columns).cloned().unwrap_or_default();
    let printed = series.printed.get(&name);
    let complete = Some(part.is_cell_complete(&planned.id));
    let found = part.cell(&planned.id);
    let failed = found.as_ref().ok().and_then(|cell| failed(cell));
    let run = found.and_then(|cell| best_run(cell, part, base));
    let cell = |(position, span): (usize, (f64, f64))| {
        let (measured, (reason, detail)) = match &run {
            Ok((tables, verdict)) => match value(series.figure, tables, span) {
                Some((lower, value)) => {
                    let measured =
                        MeanFigure { lower, ..MeanFigure::of_one_run(value, *verdict == VerdictStatus::Invalid) };
                    (Some(measured), failed.clone().unzip())
                }
                None => (None, (Some("not measured".to_owned()), None)),
            },
            Err(why) => (None, (Some(why.clone()), None)),
        };
        TableCell {
            row: vec![heading(series.figure, span)],
            column: vec![name.clone()],
            printed: printed.and_then(|values| values.get(position)).copied(),
            measured,
            reason,
            system_failed: failed.is_some(),
            detail,
            started_at: None,
            complete,
        }
    };
    series.spans().into_iter().enumerate().map(cell).collect()
}

/// Heading of a row: `20`, or `20–50`.
fn heading(figure: SeriesFigure, (from, to): (f64, f64)) -> String {
    match figure {
        SeriesFigure::UnderWay => to.to_string(),
        SeriesFigure::Median | SeriesFigure::Longest => format!("{from}–{to}"),
    }
}

/// The figure with its lower bound, if it has one.
fn value(figure: SeriesFigure, tables: &Tables, span: (f64, f64)) -> Option<(Option<f64>, f64)> {
    match figure {
        SeriesFigure::UnderWay => Some((None, under_way(&tables.series, span.1)?)),
        SeriesFigure::Median => Some((None, median(&tables.latency_bins, span)?)),
        SeriesFigure::Longest => longest(&tables.series, span),
    }
}

/// The tables and the verdict of the run of a cell with the best verdict; the first one of several.
fn best_run(cell: &Cell, part: &Part, base: &Path) -> Result<(Tables, VerdictStatus), String> {
    let with = |verdict: VerdictStatus| cell.runs.iter().find(move |run| run.verdict == verdict);
    let best = with(VerdictStatus::Valid).or_else(|| with(VerdictStatus::Suspect)).or(cell.runs.first());
    let (Some(run), Some(folder)) = (best, &part.folder) else {
        return Err(cell.failures.first().map_or(NOT_RUN, |failure| failure.kind.words()).to_owned());
    };
    let record: Record = store::load(&base.join(folder).join(&run.folder)).map_err(|error| error.to_string())?;
    Ok((record.tables, run.verdict))
}

/// Messages that were sent before this second and had not arrived by then. `None` if no bin ends at this second.
fn under_way(rows: &[SeriesRow], second: f64) -> Option<f64> {
    let ends_there = |row: &SeriesRow| (row.t_s + row.width_s - second).abs() < row.width_s / 2.0;
    rows.iter().find(|row| ends_there(row))?;
    let before = rows.iter().filter(|row| row.t_s + row.width_s / 2.0 < second);
    Some(before.map(|row| row.sent as f64 - row.delivered as f64).sum())
}

/// Whether a bin lies in this time: most of it does.
fn is_within(t_s: f64, width_s: f64, (from, to): (f64, f64)) -> bool {
    (from..to).contains(&(t_s + width_s / 2.0))
}

/// Upper bound of the median of the latency of the messages due in this time, µs: the upper edge of its bucket. The lower edge is no
/// lower bound, because the buckets hold latencies as measured, which are upper bounds. `None` with fewer than
/// [`FEWEST_OF_A_MEDIAN`] messages.
fn median(bins: &[LatencyBin], span: (f64, f64)) -> Option<f64> {
    let within = bins.iter().filter(|bin| is_within(bin.t_s, bin.width_s, span));
    let mut buckets: Vec<(u32, u64)> = within.flat_map(LatencyBin::buckets).collect();
    buckets.sort_unstable();
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut below = 0u64;
    let holds_the_middle = |(_, count): &&(u32, u64)| {
        below += *count;
        2 * below >= all
    };
    let (bucket, _) = buckets.iter().find(holds_the_middle).filter(|_| all >= FEWEST_OF_A_MEDIAN)?;
    Some(bucket_edges_us(*bucket).1)
}

/// Longest latency of the messages due in this time, with its lower bound, µs.
fn longest(rows: &[SeriesRow], span: (f64, f64)) -> Option<(Option<f64>, f64)> {
    let within = || rows.iter().filter(|row| is_within(row.t_s, row.width_s, span));
    let upper = within().filter_map(|row| row.latency.upper.max_us).reduce(f64::max)?;
    // The lower bound of a bin that has none is not known, and might be the largest.
    let with_messages = within().filter(|row| row.latency.upper.max_us.is_some());
    let lower = with_messages.map(|row| row.latency.lower?.max_us).collect::<Option<Vec<f64>>>();
    Some((lower.and_then(|lower| lower.into_iter().reduce(f64::max)), upper))
}

#[cfg(test)]
mod tests {
    use pubmark_record::tables::{SeriesLatency, SeriesQuantiles};

    use super::*;

    fn row(t_s: f64, sent: u64, delivered: u64) -> SeriesRow {
        SeriesRow {
            t_s,
            width_s: 1.0,
            offered: sent,
            sent,
            delivered,
            delivered_bytes: 0,
            latency: SeriesLatency::default(),
            max_scheduler_lag_us: None,
        }
    }

    #[test]
    fn messages_in_flight_were_sent_and_have_not_arrived() {
        let rows = [row(0.0, 10, 10), row(1.0, 10, 4), row(2.0, 10, 4), row(3.0, 0, 12)];
        let at = |second: f64| under_way(&rows, second);
        assert_eq!([at(1.0), at(2.0), at(3.0), at(4.0)], [Some(0.0), Some(6.0), Some(12.0), Some(0.0)]);
        assert_eq!(at(9.0), None);
    }
    #[test]
    fn the_median_of_a_time_is_at_most_the_upper_edge_of_the_bucket_of_its_middle_message() {
        let bin = |t_s: f64, values: &[(f64, u64)]| LatencyBin::of(t_s, 1.0, values.iter().copied());
        let bins = [
            bin(-1.0, &[(1e6, 1_000)]),
            bin(0.0, &[(100.0, 30), (9e6, 5)]),
            bin(1.0, &[(9e6, 30)]),
            bin(2.0, &[(5e3, 40)]),
        ];
        let contains = |span: (f64, f64), value_us: f64| {
            let upper = median(&bins, span).expect("enough messages");
            assert!(value_us < upper && upper < 1.4 * value_us, "{span:?}: {upper}");
        };
        contains((0.0, 1.0), 100.0);
        contains((0.0, 2.0), 9e6);
        contains((2.0, 3.0), 5e3);
        assert_eq!(median(&[bin(0.0, &[(100.0, 19)])], (0.0, 1.0)), None, "too few");
        assert_eq!(median(&[], (0.0, 1.0)), None);
        let tables = Tables { latency_bins: bins.to_vec(), ..Tables::default() };
        let (lower, upper) = value(SeriesFigure::Median, &tables, (0.0, 1.0)).expect("enough messages");
        assert_eq!((lower, upper < 140.0), (None, true), "the buckets hold upper bounds only");
    }

    #[test]
    fn the_longest_latency_of_a_time_has_a_lower_bound_if_all_its_bins_have_one() {
        let with = |t_s: f64, lower: Option<f64>, upper: f64| {
            let of = |max_us: f64| SeriesQuantiles { max_us: Some(max_us), ..SeriesQuantiles::default() };
            SeriesRow { latency: SeriesLatency { upper: of(upper), lower: lower.map(of) }, ..row(t_s, 1, 1) }
        };
        let rows = [with(0.0, Some(90.0), 100.0), with(1.0, Some(150.0), 160.0), row(2.0, 0, 0), with(3.0, None, 50.0)];
        assert_eq!(longest(&rows, (0.0, 3.0)), Some((Some(150.0), 160.0)));
        assert_eq!(longest(&rows, (0.0, 4.0)), Some((None, 160.0)));
        assert_eq!(longest(&rows, (0.0, 1.0)), Some((Some(90.0), 100.0)));
        assert_eq!(longest(&rows, (2.0, 3.0)), None, "nothing was due");
    }
}
