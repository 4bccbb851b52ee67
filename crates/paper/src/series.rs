//! A figure over time: messages in flight at some seconds of a run, beside the publication's values.

use std::path::Path;

use pubmark_model::experiment::{PlannedCell, cells};
use pubmark_record::experiment::Cell;
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::store;
use pubmark_record::tables::SeriesRow;

use crate::collect::Part;
use crate::definition::Series;
use crate::record::{MeanFigure, TableCell, TableResult};
use crate::table::failed;

/// Name of the row axis.
const SECOND: &str = "second";
/// Name of the figure.
const UNDER_WAY: &str = "messages under way";

/// Builds the table of a figure over time: a row per second, a column per value of the axis.
pub(crate) fn table(series: &Series, part: &Part, base: &Path) -> TableResult {
    let is_meant = |cell: &PlannedCell| series.at.iter().all(|(axis, value)| cell.values.get(axis) == Some(value));
    let found = cells(&part.experiment)
        .into_iter()
        .filter(is_meant)
        .flat_map(|cell| column(series, part, base, &cell))
        .collect();
    TableResult {
        title: series.title.clone(),
        experiment: series.experiment.clone(),
        figure: UNDER_WAY.to_owned(),
        rows: vec![SECOND.to_owned()],
        columns: vec![series.columns.clone()],
        printed_of: String::new(),
        differs: series.differs.clone(),
        divided_by: None,
        // The counts are near 0, so that ratios mean nothing.
        comparable: false,
        cells: found,
    }
}

fn column(series: &Series, part: &Part, base: &Path, planned: &PlannedCell) -> Vec<TableCell> {
    let name = planned.values.get(&series.columns).cloned().unwrap_or_default();
    let printed = series.printed.get(&name);
    let found = part.cell(&planned.id);
    let failed = found.as_ref().ok().and_then(|cell| failed(cell));
    let run = found.and_then(|cell| best_run(cell, part, base));
    let cell = |(position, second): (usize, &f64)| {
        let (measured, (reason, detail)) = match &run {
            Ok((rows, verdict)) => match under_way(rows, *second) {
                Some(count) => {
                    let measured = MeanFigure::of_one_run(count, *verdict == VerdictStatus::Invalid);
                    (Some(measured), failed.clone().unzip())
                }
                None => (None, (Some("not measured".to_owned()), None)),
            },
            Err(why) => (None, (Some(why.clone()), None)),
        };
        TableCell {
            row: vec![second.to_string()],
            column: vec![name.clone()],
            printed: printed.and_then(|values| values.get(position)).copied(),
            measured,
            reason,
            system_failed: failed.is_some(),
            detail,
        }
    };
    series.seconds.iter().enumerate().map(cell).collect()
}

/// The time series and verdict of the run of a cell with the best verdict; the first one of several.
fn best_run(cell: &Cell, part: &Part, base: &Path) -> Result<(Vec<SeriesRow>, VerdictStatus), String> {
    let with = |verdict: VerdictStatus| cell.runs.iter().find(move |run| run.verdict == verdict);
    let best = with(VerdictStatus::Valid).or_else(|| with(VerdictStatus::Suspect)).or(cell.runs.first());
    let (Some(run), Some(folder)) = (best, &part.folder) else {
        return Err(cell.failures.first().map_or("not run", |failure| failure.kind.words()).to_owned());
    };
    let record: Record = store::load(&base.join(folder).join(&run.folder)).map_err(|error| error.to_string())?;
    Ok((record.tables.series, run.verdict))
}

/// Messages that were sent before this second and had not arrived by then. `None` if no bin ends at this second.
fn under_way(rows: &[SeriesRow], second: f64) -> Option<f64> {
    let ends_there = |row: &SeriesRow| (row.t_s + row.width_s - second).abs() < row.width_s / 2.0;
    rows.iter().find(|row| ends_there(row))?;
    let before = rows.iter().filter(|row| row.t_s + row.width_s / 2.0 < second);
    Some(before.map(|row| row.sent as f64 - row.delivered as f64).sum())
}

#[cfg(test)]
mod tests {
    use pubmark_record::tables::SeriesLatency;

    use super::*;

    #[test]
    fn messages_in_flight_were_sent_and_have_not_arrived() {
        let row = |t_s: f64, sent: u64, delivered: u64| SeriesRow {
            t_s,
            width_s: 1.0,
            offered: sent,
            sent,
            delivered,
            delivered_bytes: 0,
            latency: SeriesLatency::default(),
            max_scheduler_lag_us: None,
        };
        let rows = [row(0.0, 10, 10), row(1.0, 10, 4), row(2.0, 10, 4), row(3.0, 0, 12)];
        let at = |second: f64| under_way(&rows, second);
        assert_eq!([at(1.0), at(2.0), at(3.0), at(4.0)], [Some(0.0), Some(6.0), Some(12.0), Some(0.0)]);
        assert_eq!(at(9.0), None);
    }
}
