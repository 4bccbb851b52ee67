//! What a candidate costs: cores and memory for this fleet, measured in the race, and for ten times it, estimated.

use pubmark_record::record::Record;
use pubmark_record::statistics::description::mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many times the fleet the cost is estimated for.
pub const TIMES: f64 = 10.0;

/// Cost of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Cores that it used, mean over the runs of the race; `null` where that was not measured.
    pub cores: Option<f64>,
    /// Of each run, in order.
    pub cores_of_runs: Vec<f64>,
    /// Largest resident set, bytes, mean over the runs of the race; `null` where that was not measured.
    pub memory_bytes: Option<f64>,
    /// Of each run, in order.
    pub memory_bytes_of_runs: Vec<f64>,
    /// For ten times the fleet.
    pub ten_times: Extrapolated,
}

/// Cost of a fleet that was not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extrapolated {
    /// Cores; `null` where nothing can be said.
    pub cores: Option<f64>,
    /// How that was found, or why not.
    pub cores_from: String,
    /// Resident set, bytes; `null` where nothing can be said.
    pub memory_bytes: Option<f64>,
    /// How that was found, or why not.
    pub memory_from: String,
}

/// What one run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunCost {
    /// Cores.
    pub cores: Option<f64>,
    /// Largest resident set, bytes.
    pub memory_bytes: Option<f64>,
    /// Growth of the resident set per connection, bytes.
    pub bytes_per_connection: Option<f64>,
    /// Connections established.
    pub connections: u64,
}

impl RunCost {
    /// Of a run's record.
    pub fn of(record: &Record) -> RunCost {
        let usage = record.cost.system;
        RunCost {
            cores: usage.map(|usage| usage.cores),
            memory_bytes: usage.map(|usage| usage.peak_rss_bytes as f64),
            bytes_per_connection: record.cost.system_bytes_per_connection,
            connections: record.connections.established,
        }
    }
}

/// A load that was carried: how many times the fleet's, and the cores that it took.
pub type LoadCost = (f64, f64);

impl Cost {
    /// From the runs of the race and the loads above that were carried; `None` where nothing was measured.
    pub fn new(runs: &[RunCost], carried: &[LoadCost]) -> Option<Cost> {
        let cores_of_runs: Vec<f64> = runs.iter().filter_map(|run| run.cores).collect();
        let memory_bytes_of_runs: Vec<f64> = runs.iter().filter_map(|run| run.memory_bytes).collect();
        if cores_of_runs.is_empty() && memory_bytes_of_runs.is_empty() {
            return None;
        }
        let (cores, memory_bytes) = (mean(&cores_of_runs), mean(&memory_bytes_of_runs));
        let loads: Vec<LoadCost> =
            cores_of_runs.iter().map(|cores| (1.0, *cores)).chain(carried.iter().copied()).collect();
        let (ten_cores, cores_from) = cores_at(TIMES, &loads);
        let (ten_memory, memory_from) = memory_at(TIMES, runs, memory_bytes);
        let ten_times = Extrapolated { cores: ten_cores, cores_from, memory_bytes: ten_memory, memory_from };
        Some(Cost { cores, cores_of_runs, memory_bytes, memory_bytes_of_runs, ten_times })
    }
}

/// Cores at a multiple of the load: along a straight line through what was measured (least squares), in proportion where one load was.
fn cores_at(times: f64, loads: &[LoadCost]) -> (Option<f64>, String) {
    let factors = || loads.iter().map(|(load, _)| *load);
    // Loads far above say little of this one.
    let Some(most) = factors().filter(|load| *load >= times).reduce(f64::min).or(factors().reduce(f64::max)) else {
        return (None, "the cores were not measured".to_owned());
    };
    let loads: Vec<LoadCost> = loads.iter().copied().filter(|(load, _)| *load <= most).collect();
    let count = loads.len() as f64;
    let middle = loads.iter().map(|(load, _)| load).sum::<f64>() / count;
    let mean_cores = loads.iter().map(|(_, cores)| cores).sum::<f64>() / count;
    let spread: f64 = loads.iter().map(|(load, _)| (load - middle).powi(2)).sum();
    if spread == 0.0 {
        return (Some(mean_cores * times), "extrapolated in proportion to the load, from this load alone".to_owned());
    }
    let slope = loads.iter().map(|(load, cores)| (load - middle) * (cores - mean_cores)).sum::<f64>() / spread;
    let at = mean_cores + slope * (times - middle);
    let (verb, most_text) =
        (if most >= times { "interpolated" } else { "extrapolated" }, pubmark_report::numbers::short(most));
    match at > 0.0 && slope > 0.0 {
        true => (Some(at), format!("{verb} along a straight line through loads of 1 to {most_text} times this one")),
        false => (None, format!("the cores did not grow with loads of 1 to {most_text} times this one")),
    }
}

/// Memory of a multiple of the fleet: what each connection took, times the connections that come on top.
fn memory_at(times: f64, runs: &[RunCost], memory_bytes: Option<f64>) -> (Option<f64>, String) {
    let of_connections: Vec<f64> = runs.iter().filter_map(|run| run.bytes_per_connection).collect();
    let connections: Vec<f64> = runs.iter().map(|run| run.connections as f64).collect();
    match (memory_bytes, mean(&of_connections), mean(&connections)) {
        (Some(bytes), Some(per_connection), Some(connections)) => (
            Some(bytes + (times - 1.0) * connections * per_connection),
            "extrapolated from the growth per connection while this fleet connected".to_owned(),
        ),
        (None, ..) => (None, "the memory was not measured".to_owned()),
        _ => (None, "fewer than 100 connections are too few for a figure per connection".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(cores: f64) -> RunCost {
        RunCost { cores: Some(cores), memory_bytes: Some(10e6), bytes_per_connection: Some(4_000.0), connections: 500 }
    }

    #[test]
    fn ten_times_the_fleet_lies_on_the_line_through_what_was_measured() {
        let runs = [run(0.11), run(0.09), run(0.10)];
        let alone = Cost::new(&runs, &[]).unwrap();
        assert!((alone.ten_times.cores.unwrap() - 1.0).abs() < 1e-9);
        assert!(alone.ten_times.cores_from.contains("in proportion"));
        // 0.05 cores without load, 0.05 for each time.
        let cost = Cost::new(&runs, &[(2.0, 0.15), (4.0, 0.25)]).unwrap();
        assert!((cost.ten_times.cores.unwrap() - 0.55).abs() < 1e-9, "{cost:?}");
        assert!(
            cost.ten_times.cores_from.starts_with("extrapolated along a straight line through loads of 1 to 4 times")
        );
        let measured = Cost::new(&runs, &[(16.0, 0.85), (64.0, 9.0)]).unwrap();
        assert!(
            (measured.ten_times.cores.unwrap() - 0.55).abs() < 1e-9,
            "loads far above do not bend the line: {measured:?}"
        );
        assert!(measured.ten_times.cores_from.starts_with("interpolated"), "{measured:?}");
        assert!((cost.ten_times.memory_bytes.unwrap() - 28e6).abs() < 1.0, "{cost:?}");
    }

    #[test]
    fn what_was_not_measured_is_missing_and_never_nothing() {
        assert_eq!(Cost::new(&[RunCost::default()], &[]), None);
        let few = RunCost { bytes_per_connection: None, ..run(0.1) };
        let cost = Cost::new(&[few], &[]).unwrap();
        assert_eq!(cost.ten_times.memory_bytes, None);
        assert!(cost.ten_times.memory_from.contains("fewer than 100 connections"));
        let falling = Cost::new(&[run(0.2)], &[(4.0, 0.1)]).unwrap();
        assert_eq!(falling.ten_times.cores, None, "{falling:?}");
    }
}
