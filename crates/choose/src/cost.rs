//! What a candidate costs: cores and memory for this fleet, measured in the race; for the grown load, measured where the search for headroom
//! ran at it, estimated otherwise; and for ten times the fleet, estimated.

use pubmark_record::figures::figure;
use pubmark_record::record::Record;
use pubmark_record::statistics::description::mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many times the fleet the cost is estimated for.
pub const TIMES: f64 = 10.0;
/// Figure of the CPU time by which candidates are ranked. A system that loses messages needs fewer cores for the same load.
pub const CPU_TIME: &str = "system CPU a million";
/// Loads that differ by less, as a share, are one: a factor is computed from a rate and back.
const SAME_LOAD: f64 = 1e-6;

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
    /// For the load that growth requires; `null` where none is required.
    #[serde(default)]
    pub grown: Option<CostAt>,
    /// For ten times the fleet.
    pub ten_times: CostAt,
}

/// Cost of a multiple of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostAt {
    /// How many times the load.
    #[serde(default = "ten")]
    pub times: f64,
    /// Cores; `null` where nothing can be said.
    pub cores: Option<f64>,
    /// How far they are known; `null` with them.
    #[serde(default)]
    pub cores_basis: Option<Basis>,
    /// How that was found, or why not.
    pub cores_from: String,
    /// Resident set, bytes; `null` where nothing can be said.
    pub memory_bytes: Option<f64>,
    /// How far it is known; `null` with it.
    #[serde(default)]
    pub memory_basis: Option<Basis>,
    /// How that was found, or why not.
    pub memory_from: String,
}

/// How far a cost is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// In runs at this load.
    Measured,
    /// From loads below and above.
    Interpolated,
    /// From lower loads alone.
    Extrapolated,
}

impl Basis {
    /// In tables and sentences.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Interpolated => "interpolated",
            Basis::Extrapolated => "extrapolated",
        }
    }
}

/// A value with how far it is known, and how it was found or why there is none.
type Found = (Option<(f64, Basis)>, String);

fn ten() -> f64 {
    TIMES
}

/// What one run cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCost {
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// Cores.
    pub cores: Option<f64>,
    /// CPU time per million messages that arrived, s; of those sent where nobody subscribes.
    pub cpu_per_million: Option<f64>,
    /// Largest resident set, bytes.
    pub memory_bytes: Option<f64>,
    /// Growth of the resident set per connection, bytes.
    pub bytes_per_connection: Option<f64>,
    /// Connections that were open at once: the number that the growth was divided by.
    pub connections: u64,
}

impl RunCost {
    /// Of a run's record.
    pub fn of(record: &Record) -> RunCost {
        let usage = record.cost.system;
        RunCost {
            started_at: record.run.started_at.clone(),
            cores: usage.map(|usage| usage.cores),
            cpu_per_million: figure(CPU_TIME).and_then(|figure| figure.of(record)).or_else(|| of_sent(record)),
            memory_bytes: usage.map(|usage| usage.peak_rss_bytes as f64),
            bytes_per_connection: record.cost.system_bytes_per_connection,
            connections: connections(record),
        }
    }
}

/// CPU time per million messages sent, s, of a workload without subscribers; `None` for others.
fn of_sent(record: &Record) -> Option<f64> {
    let sent_per_s = record.throughput.sent_per_s;
    let is_alone = record.delivery.messages.expected == 0 && record.requests.is_none() && sent_per_s > 0.0;
    record.cost.system.filter(|_| is_alone).map(|usage| usage.cores * 1e6 / sent_per_s)
}

/// Connections that were open at once. Records without them divide by the clients that were connected; connects are more, because their
/// number grows with each reconnect, and records without sessions of threads have only those.
fn connections(record: &Record) -> u64 {
    if let Some(at_once) = record.cost.connections_at_once {
        return at_once;
    }
    let sessions: u64 = record.cost.threads.iter().map(|thread| thread.sessions).sum();
    match sessions {
        0 => record.connections.established,
        _ => sessions.saturating_sub(record.connections.never_connected.unwrap_or(0)),
    }
}

/// A higher load that was carried, and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadCost {
    /// How many times the load.
    pub times: f64,
    /// Cores.
    pub cores: Option<f64>,
    /// Largest resident set, bytes.
    pub memory_bytes: Option<f64>,
}

impl LoadCost {
    fn is_at(&self, times: f64) -> bool {
        (self.times / times - 1.0).abs() < SAME_LOAD
    }
}

impl Cost {
    /// From the runs of the race and the loads above that were carried; `None` where nothing was measured. `growth` is how many times the
    /// load is required, 1 where that is all.
    pub fn new(runs: &[RunCost], carried: &[LoadCost], growth: f64) -> Option<Cost> {
        let cores_of_runs: Vec<f64> = runs.iter().filter_map(|run| run.cores).collect();
        let memory_bytes_of_runs: Vec<f64> = runs.iter().filter_map(|run| run.memory_bytes).collect();
        if cores_of_runs.is_empty() && memory_bytes_of_runs.is_empty() {
            return None;
        }
        let at = |times: f64| {
            let (cores, cores_from) = cores_at(times, &cores_of_runs, carried);
            let (memory, memory_from) = memory_at(times, runs, carried);
            CostAt {
                times,
                cores: cores.map(|(cores, _)| cores),
                cores_basis: cores.map(|(_, basis)| basis),
                cores_from,
                memory_bytes: memory.map(|(bytes, _)| bytes),
                memory_basis: memory.map(|(_, basis)| basis),
                memory_from,
            }
        };
        Some(Cost {
            cores: mean(&cores_of_runs),
            memory_bytes: mean(&memory_bytes_of_runs),
            grown: (growth > 1.0).then(|| at(growth)),
            ten_times: at(TIMES),
            cores_of_runs,
            memory_bytes_of_runs,
        })
    }
}

/// How many runs a measured value rests on.
fn measured(runs: usize) -> String {
    let runs = pubmark_report::numbers::counted(runs as u64, "run", "runs");
    format!("measured: {runs} of the search for headroom had this load")
}

/// Cores at a multiple of the load: measured there, or along a straight line through what was measured (least squares), or in proportion
/// where one load was.
fn cores_at(times: f64, of_runs: &[f64], carried: &[LoadCost]) -> Found {
    let there: Vec<f64> = carried.iter().filter(|load| load.is_at(times)).filter_map(|load| load.cores).collect();
    if let Some(cores) = mean(&there) {
        return (Some((cores, Basis::Measured)), measured(there.len()));
    }
    let higher = carried.iter().filter_map(|load| Some((load.times, load.cores?)));
    let loads: Vec<(f64, f64)> = of_runs.iter().map(|cores| (1.0, *cores)).chain(higher).collect();
    let factors = || loads.iter().map(|(load, _)| *load);
    // Loads far above say little of this one.
    let Some(most) = factors().filter(|load| *load >= times).reduce(f64::min).or(factors().reduce(f64::max)) else {
        return (None, "the cores were not measured".to_owned());
    };
    let loads: Vec<(f64, f64)> = loads.iter().copied().filter(|(load, _)| *load <= most).collect();
    let count = loads.len() as f64;
    let middle = loads.iter().map(|(load, _)| load).sum::<f64>() / count;
    let mean_cores = loads.iter().map(|(_, cores)| cores).sum::<f64>() / count;
    let spread: f64 = loads.iter().map(|(load, _)| (load - middle).powi(2)).sum();
    if spread == 0.0 {
        let text = "extrapolated in proportion to the load, from this load alone".to_owned();
        return (Some((mean_cores * times, Basis::Extrapolated)), text);
    }
    let slope = loads.iter().map(|(load, cores)| (load - middle) * (cores - mean_cores)).sum::<f64>() / spread;
    let at = mean_cores + slope * (times - middle);
    let basis = if most >= times { Basis::Interpolated } else { Basis::Extrapolated };
    let most = pubmark_report::numbers::short(most);
    match at > 0.0 && slope > 0.0 {
        true => {
            let word = basis.word();
            (Some((at, basis)), format!("{word} along a straight line through loads of 1 to {most} times this one"))
        }
        false => (None, format!("the cores did not grow with loads of 1 to {most} times this one")),
    }
}

/// Memory of a multiple of the fleet: what it took at this load, or at the highest below, and what each connection that comes on top took.
fn memory_at(times: f64, runs: &[RunCost], carried: &[LoadCost]) -> Found {
    let of_runs: Vec<f64> = runs.iter().filter_map(|run| run.memory_bytes).collect();
    let there: Vec<f64> =
        carried.iter().filter(|load| load.is_at(times)).filter_map(|load| load.memory_bytes).collect();
    let of_connections: Vec<f64> = runs.iter().filter_map(|run| run.bytes_per_connection).collect();
    // Those of runs without a figure per connection may be sessions of two connections each.
    let divided = runs.iter().filter(|run| run.bytes_per_connection.is_some());
    let connections: Vec<f64> = divided.map(|run| run.connections as f64).collect();
    // A search's runs are shorter: what was taken in longer ones is taken at a higher load, too.
    let Some(bytes) = [mean(&there), mean(&of_runs)].into_iter().flatten().reduce(f64::max) else {
        return (None, "the memory was not measured".to_owned());
    };
    match (mean(&of_connections), mean(&connections)) {
        (Some(per_connection), Some(connections)) => {
            let more = (times - 1.0) * connections * per_connection;
            (
                Some((bytes + more, Basis::Extrapolated)),
                "extrapolated from the growth per connection while this fleet connected".to_owned(),
            )
        }
        _ if !there.is_empty() => {
            (Some((bytes, Basis::Measured)), format!("{}, with the connections of this fleet", measured(there.len())))
        }
        _ => (None, "fewer than 100 connections are too few for a figure per connection".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::sample;

    use super::*;

    fn run(cores: f64) -> RunCost {
        RunCost {
            cores: Some(cores),
            memory_bytes: Some(10e6),
            bytes_per_connection: Some(4_000.0),
            connections: 500,
            ..RunCost::default()
        }
    }

    fn load(times: f64, cores: f64) -> LoadCost {
        LoadCost { times, cores: Some(cores), memory_bytes: Some(12e6) }
    }

    fn close(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9)
    }

    #[test]
    fn ten_times_the_fleet_lies_on_the_line_through_what_was_measured() {
        let runs = [run(0.11), run(0.09), run(0.10)];
        let alone = Cost::new(&runs, &[], 1.0).unwrap();
        assert!(close(alone.ten_times.cores, 1.0) && alone.grown.is_none());
        assert!(alone.ten_times.cores_from.contains("in proportion"));
        // 0.05 cores without load, 0.05 for each time.
        let cost = Cost::new(&runs, &[load(2.0, 0.15), load(4.0, 0.25)], 1.0).unwrap();
        assert!(close(cost.ten_times.cores, 0.55), "{cost:?}");
        assert!(
            cost.ten_times.cores_from.starts_with("extrapolated along a straight line through loads of 1 to 4 times")
        );
        let measured = Cost::new(&runs, &[load(16.0, 0.85), load(64.0, 9.0)], 1.0).unwrap();
        assert!(close(measured.ten_times.cores, 0.55), "loads far above do not bend the line: {measured:?}");
        assert_eq!(measured.ten_times.cores_basis, Some(Basis::Interpolated), "{measured:?}");
        assert!(close(cost.ten_times.memory_bytes, 28e6), "{cost:?}");
    }

    #[test]
    fn the_grown_load_is_measured_where_the_search_ran_at_it_and_estimated_elsewhere() {
        let runs = [run(0.11), run(0.09), run(0.10)];
        let carried = [load(3.0, 0.28), load(3.0, 0.32), load(6.0, 0.4)];
        let grown = Cost::new(&runs, &carried, 3.0).unwrap().grown.unwrap();
        assert_eq!((grown.times, grown.cores_basis), (3.0, Some(Basis::Measured)));
        assert!(close(grown.cores, 0.3) && grown.cores_from.starts_with("measured: 2 runs"), "{grown:?}");
        let less = LoadCost { memory_bytes: Some(8e6), ..carried[0] };
        let kept = Cost::new(&runs, &[less], 3.0).unwrap().grown.unwrap();
        assert!(close(kept.memory_bytes, 14e6), "a larger load does not take less: {kept:?}");
        // The search had this load, but not the connections of the grown fleet: 2 × 500 × 4 kB on top.
        assert!(close(grown.memory_bytes, 16e6), "{grown:?}");
        assert_eq!(grown.memory_basis, Some(Basis::Extrapolated));
        let between = Cost::new(&runs, &carried, 4.0).unwrap().grown.unwrap();
        assert_eq!(between.cores_basis, Some(Basis::Interpolated), "{between:?}");
        let few = RunCost { bytes_per_connection: None, connections: 20, ..run(0.1) };
        let grown = Cost::new(&[few], &carried, 3.0).unwrap().grown.unwrap();
        assert_eq!((grown.memory_bytes, grown.memory_basis), (Some(12e6), Some(Basis::Measured)));
        assert!(grown.memory_from.ends_with("with the connections of this fleet"), "{grown:?}");
    }

    #[test]
    fn clients_that_reconnect_are_not_more_clients() {
        let mut record = sample::record();
        assert_eq!(RunCost::of(&record).connections, 201);
        record.cost.system_bytes_per_connection = Some(4_000.0);
        let of = |record: &Record| Cost::new(&[RunCost::of(record)], &[], 1.0).unwrap().ten_times.memory_bytes.unwrap();
        let before = of(&record);
        record.connections.established *= 3;
        assert!(close(Some(of(&record)), before), "each client reconnected twice: {} and {before}", of(&record));
        record.connections.never_connected = Some(1);
        assert_eq!(RunCost::of(&record).connections, 200);
        record.cost.threads.clear();
        assert_eq!(RunCost::of(&record).connections, record.connections.established, "nothing else is known");
        record.cost.connections_at_once = Some(150);
        assert_eq!(RunCost::of(&record).connections, 150, "of 200 clients some had disconnected");
    }

    #[test]
    fn what_was_not_measured_is_missing_and_never_nothing() {
        assert_eq!(Cost::new(&[RunCost::default()], &[], 3.0), None);
        let few = RunCost { bytes_per_connection: None, ..run(0.1) };
        let cost = Cost::new(&[few], &[], 1.0).unwrap();
        assert_eq!((cost.ten_times.memory_bytes, cost.ten_times.memory_basis), (None, None));
        assert!(cost.ten_times.memory_from.contains("fewer than 100 connections"));
        let falling = Cost::new(&[run(0.2)], &[load(4.0, 0.1)], 1.0).unwrap();
        assert_eq!(falling.ten_times.cores, None, "{falling:?}");
    }
}
