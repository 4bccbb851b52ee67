//! Checks whether latency was steady during the measured window. If it was not, a percentile of the window depends on
//! when the window was as much as on the system: the system had not warmed up, or it falls further behind the longer it
//! runs.

use crate::record::Record;
use crate::tables::wide_bins;

/// Number of parts of the window that are compared.
const PARTS: usize = 4;
/// Medians of parts that differ by less than this factor count as steady.
const FACTOR: f64 = 2.0;
/// Medians that differ by less than this, in µs, count as steady too: such differences come from the scheduler of the
/// machine.
const DIFFERENCE_US: f64 = 1_000.0;

/// How latency changed, where it was not steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// Most messages of the last part arrived after the end of the window. Their latencies may decrease: once nothing
    /// more is sent, a system with a queue catches up, and the messages sent last waited the shortest.
    Behind,
    /// Latency decreased from the first part to the last.
    Fell,
    /// Latency increased from the first part to the last.
    Grew,
    /// Latency changed in both directions.
    Varied,
}

/// A latency that was not steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsteady {
    /// How latency changed.
    pub trend: Trend,
    /// The median of each quarter of the window, in µs.
    pub p50_us: [f64; PARTS],
}

/// Analyses the series of a record; `None` where latency was steady, where the series is not sufficient, and where
/// latency was expected to change: in a flood, with faults, and behind a link whose conditions change.
pub fn unsteady(record: &Record) -> Option<Unsteady> {
    let p50_us = if was_to_change(record) { None } else { quarters(record) }?;
    let [first, .., last] = p50_us;
    let (least, most) = p50_us.iter().fold((f64::MAX, 0.0_f64), |(least, most), &p50| (least.min(p50), most.max(p50)));
    if most <= FACTOR * least || most - least <= DIFFERENCE_US {
        return None;
    }
    // On average, a message of the last part is due half a part before the end of the window.
    let until_the_end_us = record.window_s() * 1e6 / PARTS as f64 / 2.0;
    let trend = if last > until_the_end_us {
        Trend::Behind
    } else if last * FACTOR < first {
        Trend::Fell
    } else if first * FACTOR < last {
        Trend::Grew
    } else {
        Trend::Varied
    };
    Some(Unsteady { trend, p50_us })
}

fn was_to_change(record: &Record) -> bool {
    let stepped = |links: &crate::links::LinkFigures| {
        links.groups.iter().any(|group| group.up.requested.len() > 1 || group.down.requested.len() > 1)
    };
    record.settings.flood || record.conditions.faults.is_some() || record.conditions.links.as_ref().is_some_and(stepped)
}

/// For each quarter of the window, the middle one of the medians of its bins: of those whose middle is in it. Bins with too few
/// samples and those that are short are left out; `None` if a quarter has no other.
fn quarters(record: &Record) -> Option<[f64; PARTS]> {
    let window_s = record.window_s();
    let window = |start: f64, width: f64| start >= 0.0 && start + width <= window_s + 1e-9;
    let mut medians: [Vec<f64>; PARTS] = Default::default();
    wide_bins(&record.tables.series, window_s)
        .filter(|bin| window(bin.t_s, bin.width_s))
        .filter(|bin| bin.latency.upper.p50_width_s.is_some_and(|width| width <= bin.width_s))
        .filter_map(|bin| Some((bin.t_s + bin.width_s / 2.0, bin.latency.upper.p50_us?)))
        .for_each(|(middle_s, p50_us)| {
            let part = (middle_s / window_s * PARTS as f64) as usize;
            medians[part.min(PARTS - 1)].push(p50_us);
        });
    let is_complete = medians.iter().all(|own| !own.is_empty());
    is_complete.then(|| {
        medians.map(|mut own| {
            own.sort_by(f64::total_cmp);
            own[(own.len() - 1) / 2]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// The sample record with these medians, one per second.
    fn with(medians_us: &[f64]) -> Record {
        let mut record = sample::record();
        let row = record.tables.series[2];
        record.settings.duration_s = medians_us.len() as f64;
        record.tables.series = (0..)
            .zip(medians_us)
            .map(|(second, &p50)| {
                let mut bin = crate::tables::SeriesRow { t_s: f64::from(second), ..row };
                bin.latency.upper.p50_us = Some(p50);
                bin
            })
            .collect();
        record
    }

    fn trend(medians_us: &[f64]) -> Option<Trend> {
        unsteady(&with(medians_us)).map(|found| found.trend)
    }

    #[test]
    fn a_system_that_warms_up_or_falls_behind_is_seen() {
        assert_eq!(trend(&[239_600.0, 1_320.0, 1_050.0, 670.0]), Some(Trend::Fell));
        assert_eq!(trend(&[2_000.0, 20_000.0, 110_000.0, 390_000.0]), Some(Trend::Grew));
        assert_eq!(trend(&[19_200.0, 36_600.0, 1_100.0, 37_400.0]), Some(Trend::Varied));
    }

    #[test]
    fn who_is_behind_when_the_window_ends_has_not_warmed_up_by_that() {
        assert_eq!(trend(&[2_100_000.0, 2_900_000.0, 3_800_000.0, 4_800_000.0]), Some(Trend::Behind));
        assert_eq!(trend(&[4_500_000.0, 4_300_000.0, 3_600_000.0, 2_100_000.0]), Some(Trend::Behind));
    }

    #[test]
    fn what_differs_by_less_than_a_scheduler_does_is_steady() {
        assert_eq!(trend(&[100.0, 900.0, 200.0, 700.0]), None);
        assert_eq!(trend(&[20_000.0, 30_000.0, 39_000.0, 21_000.0]), None);
    }

    #[test]
    fn one_bad_second_of_many_is_no_trend() {
        assert_eq!(trend(&[1.0e3, 1.0e3, 5.0e5, 1.0e3, 1.0e3, 1.0e3, 1.0e3, 1.0e3, 1.0e3, 1.0e3, 1.0e3, 1.0e3]), None);
    }

    #[test]
    fn a_short_bin_at_the_end_is_not_counted() {
        let mut record = with(&[1.0e3, 1.0e3, 1.0e3, 1.0e6]);
        assert!(unsteady(&record).is_some());
        let last = record.tables.series.last_mut().expect("four bins");
        (last.width_s, last.latency.upper.p50_width_s) = (0.001, Some(0.001));
        record.settings.duration_s = 3.001;
        assert_eq!(unsteady(&record), None, "three bins are too few");
    }

    #[test]
    fn no_warning_about_short_windows_or_borrowed_samples() {
        assert_eq!(trend(&[1.0e6, 1.0e3, 1.0e3]), None);
        let mut borrowed = with(&[1.0e6, 1.0e5, 1.0e4, 1.0e3]);
        borrowed.tables.series.iter_mut().for_each(|bin| bin.latency.upper.p50_width_s = Some(4.0));
        assert_eq!(unsteady(&borrowed), None);
    }

    #[test]
    fn quarters_are_parts_of_the_window_whatever_bins_are_missing() {
        let missing = |medians_us: &[f64]| {
            let mut record = with(medians_us);
            record.tables.series.retain(|bin| bin.latency.upper.p50_us > Some(0.0));
            unsteady(&record)
        };
        let found = missing(&[4.0e4, 0.0, 0.0, 2.0e4, 0.0, 0.0, 1.0e4, 1.0e4, 1.0e4, 1.0e3, 1.0e3, 1.0e3]);
        assert_eq!(found.map(|found| found.p50_us), Some([4.0e4, 2.0e4, 1.0e4, 1.0e3]));
        let half = [0.0, 0.0, 0.0, 0.0, 1.0e6, 1.0e5, 1.0e4, 1.0e3];
        assert_eq!(missing(&half), None, "nothing is known of the first half");
    }

    #[test]
    fn no_warning_about_a_latency_that_should_change() {
        let mut flood = with(&[1.0e6, 1.0e5, 1.0e4, 1.0e3]);
        assert!(unsteady(&flood).is_some());
        flood.settings.flood = true;
        assert_eq!(unsteady(&flood), None);
    }
}
