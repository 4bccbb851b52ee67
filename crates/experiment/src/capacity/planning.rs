//! The plan of a search for capacity, computed from the options. Nothing is started here.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_record::capacity::Knob;
use pubmark_report::numbers::{self, three_digits};
use pubmark_runner::progress_text::seconds;
use pubmark_runner::{CheckedRun, RunError, RunSpec};

use super::search::Bounds;
use super::trial::Trials;
use crate::experiment::pace::{self, about};

/// Messages per second at which a search begins if the workload itself offers less.
const FIRST_RATE_PER_S: f64 = 1_000.0;
/// Default limit of devices in a search over them. Source ports and open files mostly allow as many; a load for which they do not
/// suffice is a trial in which the machine was the limit.
const MOST_DEVICES: f64 = 20_000.0;

/// Range of a search, as far as the user set it.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// Factor of the workload to begin with.
    pub first: Option<f64>,
    /// Largest factor of the workload.
    pub most: Option<f64>,
    /// The search ends when the capacity is known to this precision, percent.
    pub precision_percent: f64,
}

impl Range {
    /// The bounds for a run at factor 1.
    ///
    /// # Errors
    /// The workload cannot be loaded or has no load to vary, or the range is empty.
    pub fn bounds(&self, spec: &RunSpec, knob: Knob) -> Result<Bounds, RunError> {
        let workload = spec.load()?;
        let Some(offered_per_s) = Trials::offered_per_s(&workload).filter(|rate| *rate > 0.0) else {
            let name = spec.workload.name();
            return Err(RunError::input(format!("`{name}` sends as fast as it can: it has no load to vary"))
                .hint("`pubmark run` with this workload shows the highest throughput itself"));
        };
        let devices: f64 = workload.devices.iter().map(|group| f64::from(group.count)).sum();
        let whole = knob == Knob::Scale;
        let most = match (self.most, whole) {
            (Some(most), _) => most,
            (None, true) => (MOST_DEVICES / devices).floor().max(1.0),
            (None, false) => LARGEST_RATE_FACTOR,
        };
        let least = if whole { 1.0 } else { (1.0 / LARGEST_RATE_FACTOR).max(1e-3) };
        let first = self.first.unwrap_or_else(|| (FIRST_RATE_PER_S / offered_per_s).max(1.0));
        if most < least {
            return Err(RunError::input(format!("`--most {most}` is below {least}, the least that can be tried")));
        }
        let precision = 1.0 + self.precision_percent / 100.0;
        Ok(Bounds { first: first.clamp(least, most), least, most, precision, whole })
    }
}

/// The checked run of the first trial.
///
/// # Errors
/// As [`RunSpec::check`].
pub fn first_trial(trials: &Trials<'_>, bounds: &Bounds) -> Result<CheckedRun, RunError> {
    let mut spec = trials.at(bounds.first);
    let workload = Arc::new(spec.load()?);
    spec.window.duration = trials.window(Trials::offered_per_s(&workload).unwrap_or(0.0));
    spec.check_loaded(workload, trials.host)
}

/// Outline of a search, in a few lines.
pub struct Outline<'a> {
    /// Objectives as the user wrote them.
    pub objectives: &'a str,
    /// No trial begins after this time.
    pub within: Duration,
    /// Bounds of the searched loads.
    pub bounds: &'a Bounds,
    /// What is varied.
    pub knob: Knob,
    /// The first trial.
    pub first: &'a CheckedRun,
}

impl Outline<'_> {
    /// Heading and text of each line.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let Outline { bounds, first, .. } = self;
        let per_factor = Trials::offered_per_s(&first.workload).unwrap_or(0.0) / bounds.first;
        let load =
            |factor: f64| format!("{} msg/s (factor {})", three_digits(per_factor * factor), three_digits(factor));
        let what = match self.knob {
            Knob::Rate => "how often devices send",
            Knob::Scale => "how many devices there are",
        };
        let window = &first.spec.window;
        let each = pace::of_a_run(window.warmup + window.duration);
        let mut rows = Vec::new();
        if let Some(count) = first.spec.nodes.nodes {
            let nodes = numbers::counted(count.into(), "machine", "machines");
            rows.push(("nodes", format!("{nodes}, waited for once, before the first trial")));
        }
        rows.extend([
            ("search", format!("{what}, from {} up, at most {}", load(bounds.first), load(bounds.most))),
            ("must hold", self.objectives.to_owned()),
            (
                "steps",
                format!(
                    "doubled until it does not hold, then about {} halvings of the gap, to {} %; the loads on both sides \
                     of the answer are tried again",
                    halvings(bounds),
                    three_digits((bounds.precision - 1.0) * 100.0)
                ),
            ),
            (
                "each trial",
                format!(
                    "{} warm-up, {} measured: about {} with its start; none begins after {}",
                    seconds(window.warmup),
                    seconds(window.duration),
                    seconds(each),
                    about(self.within)
                ),
            ),
        ]);
        rows
    }
}

/// Number of trials until a gap of a factor of two is as narrow as the precision.
fn halvings(bounds: &Bounds) -> u32 {
    (2.0_f64.ln() / bounds.precision.ln()).log2().ceil().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_halved_until_it_is_narrow_enough() {
        let bounds = |precision| Bounds { first: 1.0, least: 1.0, most: 10.0, precision, whole: false };
        assert_eq!([2.0, 1.5, 1.03].map(|precision| halvings(&bounds(precision))), [0, 1, 5]);
    }
}
