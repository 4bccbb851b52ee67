//! A summary of an experiment in a few lines: what is run, how often, and for how long. It does not depend on this
//! machine, unlike [`super::planning`].

use std::time::Duration;

use pubmark_model::experiment::{Experiment, cells};
use pubmark_report::numbers;
use pubmark_runner::progress_text::seconds;

use super::definition;
use super::pace::{self, about};

/// The content of the summary.
pub struct Outline<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The reading of its workloads, if it is to be shown.
    pub reading: Option<&'a str>,
    /// Number of machines that join.
    pub machines: Option<u16>,
    /// Number of cells.
    pub cells: usize,
    /// Number of cells that cannot be run here.
    pub refused: usize,
    /// Number of runs of the other cells.
    pub runs: u32,
    /// Total duration as text.
    pub time: String,
}

impl Outline<'_> {
    /// The summary of an experiment under the assumption that every cell can be run here.
    pub fn of(experiment: &Experiment) -> Outline<'_> {
        let cells = cells(experiment).len();
        let runs = experiment.repeat.saturating_mul(cells as u32);
        let time = format!("about {}", about(least(experiment, runs)));
        Outline { experiment, reading: None, machines: None, cells, refused: 0, runs, time }
    }

    /// Head and text of each line.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let experiment = self.experiment;
        let reading = self.reading.map_or_else(String::new, |reading| format!(", {reading}"));
        let workload = format!("{}{reading}, seed {}", definition::workload_words(experiment), experiment.seed);
        let mut rows = vec![("experiment", experiment.title.clone()), ("workload", workload)];
        for choice in &experiment.axes.system {
            if let Some(endpoint) = &choice.endpoint {
                rows.push(("endpoint", format!("{} at {}, which runs already", choice.label, endpoint.url)));
            }
        }
        if let Some(count) = self.machines {
            let nodes = numbers::counted(count.into(), "machine", "machines");
            rows.push(("nodes", format!("{nodes}, waited for once, before the first run")));
        }
        let times = [experiment.warmup, experiment.duration, experiment.drain].map(seconds);
        rows.push((
            "each run",
            format!("{} warm-up, {} measured, up to {} for late messages", times[0], times[1], times[2]),
        ));
        let refused = self.refused;
        let without = if refused > 0 { format!(", {refused} of them not possible") } else { String::new() };
        rows.push(("cells", format!("{}{without}", self.cells)));
        let repetitions = numbers::counted(experiment.repeat.into(), "repetition", "repetitions");
        rows.push(("runs", format!("{}: {repetitions}, interleaved, order seed {}", self.runs, experiment.order_seed)));
        rows.push(("time", self.time.clone()));
        rows
    }
}

/// Shortest duration of `runs` runs: start, warm-up and measured window of each, without a wait for missing messages.
pub fn least(experiment: &Experiment, runs: u32) -> Duration {
    pace::of_a_run(experiment.warmup + experiment.duration).saturating_mul(runs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_time_follow_from_cells_and_repetitions() {
        let text = "{name: t, title: Two levels, workload: hello, duration: 8s, warmup: 0s, repeat: 3, \
                    axes: {system: builtin, protocol: mqtt5, qos: [0, 1]}}";
        let experiment = pubmark_model::experiment::parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let rows = Outline::of(&experiment).rows();
        let row = |head: &str| rows.iter().find(|(found, _)| *found == head).map(|(_, words)| words.as_str());
        assert_eq!(row("cells"), Some("2"));
        assert!(row("runs").unwrap().starts_with("6: 3 repetitions, interleaved"), "{rows:?}");
        // Six runs of 8 s, each with a second of sampling the machine and a second of overhead.
        assert_eq!(row("time"), Some("about 60 s"));
    }
}
