//! Invented experiments and searches for tests: consistent, but with invented figures. Never part of a release.

use std::collections::BTreeMap;

use pubmark_model::topology::TopologyMode;

use crate::capacity::*;
use crate::evaluation::contests::{self, Entrant, Match};
use crate::experiment::*;
use crate::figures;
use crate::record::{
    BackEndKind, LatencyBounds, LimitInfo, PaperVersion, Status, SystemInfo, TopologyInfo, VerdictStatus,
};
use crate::sample::{self, Shape};

/// Figures of the sample: name in [`figures::FIGURES`], and whether it is judged.
const MEASURED: [(&str, bool); 9] = [
    ("delivered", true),
    ("lost", false),
    ("unknown", false),
    ("latency p50", true),
    ("latency p99", true),
    ("latency p99.9", false),
    ("system CPU a million", true),
    ("system memory", true),
    ("memory per connection", false),
];
/// Messages that each run of the sample expects at a scale of 1.
const MESSAGES: u64 = 50_000;
/// Share of a latency that is certainly caused by the system.
const KNOWN: f64 = 0.95;
/// Student's t for 95 % by number of repetitions, from two.
const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Grid of an invented experiment.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Number of systems, at most the number of invented ones.
    pub systems: usize,
    /// QoS levels.
    pub qos: Vec<u8>,
    /// Factors applied to the device counts.
    pub scales: Vec<u32>,
    /// Payload sizes as written; empty if they are not varied.
    pub payloads: Vec<String>,
    /// Repetitions.
    pub repetitions: u32,
}

impl Default for Grid {
    fn default() -> Grid {
        Grid { systems: 4, qos: vec![0], scales: vec![1], payloads: Vec::new(), repetitions: 5 }
    }
}

/// An invented system.
struct Invented {
    name: &'static str,
    version: &'static str,
    median_us: f64,
    tail: f64,
    cpu_s: f64,
    memory: f64,
    loses: f64,
}

const fn invented(name: &'static str, version: &'static str, figures: [f64; 4], loses: f64) -> Invented {
    let [median_us, tail, cpu_s, memory] = figures;
    Invented { name, version, median_us, tail, cpu_s, memory, loses }
}

const INVENTED: [Invented; 12] = [
    invented("alphamq", "2.0.21", [212.0, 0.200, 21.4, 9.8e6], 0.0),
    invented("betamq", "3.10.8", [391.0, 0.260, 96.0, 148e6], 0.0),
    invented("gammamq", "2.9.4", [214.5, 0.225, 27.9, 24.1e6], 0.0),
    invented("deltamq", "1.4.0", [560.0, 0.310, 44.0, 71e6], 4e-4),
    invented("epsilonmq", "5.8.0", [720.0, 0.290, 130.0, 310e6], 0.0),
    invented("zetamq", "0.11.2", [330.0, 0.240, 33.0, 18e6], 0.0),
    invented("etamq", "2024.3", [880.0, 0.330, 150.0, 520e6], 0.0),
    invented("thetamq", "7.0.15", [250.0, 0.230, 24.0, 15e6], 2e-5),
    invented("iotamq", "1.0.0", [460.0, 0.250, 52.0, 66e6], 0.0),
    invented("kappamq", "4.1", [300.0, 0.270, 61.0, 40e6], 0.0),
    invented("lambdamq", "9.2.1", [640.0, 0.220, 77.0, 205e6], 0.0),
    invented("omicronmq", "0.3.7-rc1", [1_050.0, 0.350, 88.0, 33e6], 1e-3),
];

/// Four systems at two QoS levels, five repetitions each: one does not grant the higher level, one ran out of memory
/// twice.
pub fn experiment() -> ExperimentRecord {
    let mut record = experiment_over(&Grid { qos: vec![0, 2], ..Grid::default() });
    let refuse = record.cells.len() - 2;
    fail_whole(&mut record, refuse, FailureKind::Unsupported, "gammamq grants at-least-once at most");
    let starved = record.cells.len() - 1;
    let cell = &mut record.cells[starved];
    for repetition in [4, 5] {
        cell.failures.push(CellFailure {
            repetition,
            kind: FailureKind::OutOfMemory,
            text: "OOM-killed after 31 s: 256 MB asked, 2 kills".to_string(),
            folder: Some(format!("runs/{}-{repetition}", cell.id)),
        });
    }
    cell.runs.truncate(3);
    cell.figures.iter_mut().for_each(|figure| figure.values.truncate(3));
    cell.figures.iter_mut().for_each(settle);
    record.cells[0].runs[3].verdict = VerdictStatus::Suspect;
    record.cells[0].runs[1].busy = true;
    record.contests = contests(&record);
    record.cautions = vec![
        "1 of 33 runs is suspect: see the runs for its reasons".to_string(),
        "before 1 run the machine did not become quiet within 60 s; it was made all the same".to_string(),
    ];
    let value = |cell: usize, value| PaperValue { cell: record.cells[cell].id.clone(), value };
    record.papers = vec![PaperFigures {
        source: "An invented paper, Table 3".to_string(),
        versions: "alphamq 1.0, gammamq 0.9".to_string(),
        figure: "latency p50".to_string(),
        differs: "there every percentile was an average of percentiles".to_string(),
        values: vec![value(0, 900.0), value(1, 1_250.0), value(refuse, 2_000.0)],
    }];
    record
}

/// The same system in every cell under different names, so that there is no winner.
pub fn no_winner() -> ExperimentRecord {
    let mut record = experiment_over(&Grid { systems: 2, repetitions: 3, ..Grid::default() });
    let first = record.cells[0].clone();
    let second = &mut record.cells[1];
    second.latency = first.latency;
    second.latency_curve = first.latency_curve;
    second.latency_curve_lower = first.latency_curve_lower;
    for (mine, other) in second.figures.iter_mut().zip(&first.figures) {
        // Its repetitions in another order, which have the same noise.
        mine.values = other.values.iter().rev().copied().collect();
        settle(mine);
    }
    record.contests = contests(&record);
    record
}

/// An experiment in which every cell failed.
pub fn all_failed() -> ExperimentRecord {
    let mut record = experiment_over(&Grid { systems: 2, repetitions: 3, ..Grid::default() });
    fail_whole(&mut record, 0, FailureKind::DidNotStart, "not ready within 20 s; its log ends: <b>address in use</b>");
    fail_whole(&mut record, 1, FailureKind::NotInstalled, "`betamq` is not on this machine: apt-get install betamq");
    record.status = Status::Interrupted;
    record.contests.clear();
    record.cautions = vec!["no cell has figures".to_string()];
    record
}

/// An experiment over a grid, without failures.
pub fn experiment_over(grid: &Grid) -> ExperimentRecord {
    let mut cells = Vec::new();
    let payloads: Vec<Option<&String>> =
        if grid.payloads.is_empty() { vec![None] } else { grid.payloads.iter().map(Some).collect() };
    for payload in &payloads {
        for qos in &grid.qos {
            for scale in &grid.scales {
                for system in INVENTED.iter().take(grid.systems) {
                    cells.push(cell(grid, system, *qos, *scale, payload.map(String::as_str)));
                }
            }
        }
    }
    let runs: u32 = cells.iter().map(|cell| cell.runs.len() as u32).sum();
    let mut record = ExperimentRecord {
        schema_version: EXPERIMENT_SCHEMA_VERSION,
        pubmark_version: "0.1.0".to_string(),
        name: "20260302-090000-brokers".to_string(),
        title: "Brokers on smart-home".to_string(),
        command: ["pubmark", "compare", "smart-home", "--systems", "alphamq,betamq,gammamq,deltamq", "--repeat", "5"]
            .map(String::from)
            .to_vec(),
        started_at: "2026-03-02T09:00:00Z".to_string(),
        took_s: f64::from(runs) * 71.0,
        status: Status::Complete,
        workload: "smart-home".to_string(),
        variant: "corrected".to_string(),
        has_readings: true,
        seed: 42,
        order_seed: 7,
        repetitions: grid.repetitions,
        warmup_s: 5.0,
        duration_s: 60.0,
        axes: axes(grid),
        cells,
        contests: Vec::new(),
        cautions: Vec::new(),
        papers: Vec::new(),
        environment: sample::record().environment,
        nodes: None,
        definition: "name: brokers\nworkload: smart-home\nrepeat: 5\naxes:\n  system: [alphamq, betamq]\n".to_string(),
    };
    record.contests = contests(&record);
    record
}

fn axes(grid: &Grid) -> Vec<Axis> {
    let axis = |name: &str, values: Vec<String>| Axis { name: name.to_string(), values };
    let mut axes = vec![
        axis("system", INVENTED.iter().take(grid.systems).map(|system| system.name.to_string()).collect()),
        axis("qos", grid.qos.iter().map(u8::to_string).collect()),
        axis("scale", grid.scales.iter().map(u32::to_string).collect()),
        axis("limit", vec!["cpu=1,memory=256MB".to_string()]),
    ];
    if !grid.payloads.is_empty() {
        axes.push(axis("payload", grid.payloads.clone()));
    }
    axes
}

fn cell(grid: &Grid, system: &Invented, qos: u8, scale: u32, payload: Option<&str>) -> Cell {
    let mut settings = BTreeMap::from([
        ("system".to_string(), system.name.to_string()),
        ("qos".to_string(), qos.to_string()),
        ("scale".to_string(), scale.to_string()),
        ("limit".to_string(), "cpu=1,memory=256MB".to_string()),
    ]);
    if let Some(payload) = payload {
        settings.insert("payload".to_string(), payload.to_string());
    }
    let varied =
        |name: &str| name == "system" || axes(grid).iter().any(|axis| axis.name == name && axis.values.len() > 1);
    let order = ["system", "qos", "scale", "payload"];
    let words: Vec<String> = order
        .iter()
        .filter(|name| varied(name))
        .filter_map(|name| {
            settings.get(*name).map(|value| if *name == "system" { value.clone() } else { format!("{name} {value}") })
        })
        .collect();
    let id = order.iter().filter_map(|name| settings.get(*name)).cloned().collect::<Vec<String>>().join("_");
    let load = f64::from(scale) * (1.0 + f64::from(qos) * 0.6);
    // Latency grows with the load.
    let shape = Shape {
        median_us: system.median_us
            * (1.0 + 0.05 * load.powf(1.1))
            * (1.0 + payload.map_or(0.0, |text| text.len() as f64 * 0.1)),
        tail: system.tail * (1.0 + 0.05 * f64::from(qos)) + 0.01 * load.ln_1p(),
        count: MESSAGES * u64::from(scale) * u64::from(grid.repetitions),
    };
    let offset = id.bytes().map(u32::from).sum::<u32>();
    let mut figures: Vec<CellFigure> = MEASURED
        .iter()
        .map(|(name, _)| CellFigure {
            figure: (*name).to_string(),
            values: (0..grid.repetitions)
                .map(|run| Some(value(name, system, shape, scale, noise(offset + run * 7))))
                .collect(),
            mean: None,
            median: None,
            quartiles: None,
            interval: None,
            lower: None,
            shown_only: false,
            excluded: Vec::new(),
            limited: Vec::new(),
        })
        .collect();
    figures.iter_mut().for_each(settle);
    Cell {
        label: words.join(", "),
        runs: (1..=grid.repetitions).map(|repetition| run(&id, repetition, offset)).collect(),
        id,
        settings,
        system: Some(system_info(system)),
        schedule_hash: Some(format!("5f3a9c0de1b74{scale:03}")),
        offered_per_s: Some(MESSAGES as f64 / 60.0 * f64::from(scale)),
        failures: Vec::new(),
        objectives: Some(Vec::new()),
        figures,
        latency: Some(LatencyBounds { upper: shape.summary(), lower: Some(known(shape).summary()) }),
        latency_curve: Some(shape.curve("latency")),
        custom: Vec::new(),
        latency_curve_lower: Some(known(shape).curve("latency")),
    }
}

/// Lower bound of a latency.
fn known(shape: Shape) -> Shape {
    Shape { median_us: shape.median_us * KNOWN, ..shape }
}

fn system_info(system: &Invented) -> SystemInfo {
    SystemInfo {
        name: system.name.to_string(),
        version: Some(system.version.to_string()),
        back_end: BackEndKind::Process,
        profile: Some("default".to_string()),
        endpoint: "mqtt://127.0.0.1:21883".to_string(),
        ranked: true,
        limits: Some(limits()),
        papers: vec![
            PaperVersion { paper: "First paper".to_string(), version: "1.9".to_string() },
            PaperVersion { paper: "Second paper".to_string(), version: "1.10".to_string() },
        ],
        ..SystemInfo::default()
    }
}

/// Resource limits of the samples.
pub fn limits() -> LimitInfo {
    LimitInfo {
        requested: "cpu=1,memory=256MB".to_string(),
        cpu: Some(1.0),
        cpu_period_ms: Some(10.0),
        memory_bytes: Some(256_000_000),
        cores: None,
        held_by: "cgroup v2".to_string(),
    }
}

/// A topology of the samples.
pub fn topology() -> TopologyInfo {
    TopologyInfo {
        brokers: 3,
        mode: TopologyMode::Bridge,
        endpoints: (0..3).map(|broker| format!("mqtt://127.0.0.1:{}", 21_883 + broker)).collect(),
    }
}

fn run(id: &str, repetition: u32, offset: u32) -> CellRun {
    CellRun {
        repetition,
        order: (offset * 13 + repetition * 5) % 97 + 1,
        folder: format!("runs/{id}-{repetition}"),
        verdict: VerdictStatus::Valid,
        waited_ms: 1_000 + u64::from(offset % 4) * 500,
        busy: false,
    }
}

/// A value between −1 and 1 that depends only on `number`.
fn noise(number: u32) -> f64 {
    (f64::from(number) * 12.9898).sin() * (f64::from(number) * 4.1414).cos()
}

fn value(figure: &str, system: &Invented, shape: Shape, scale: u32, noise: f64) -> f64 {
    let messages = (MESSAGES * u64::from(scale)) as f64;
    let lost = (messages * system.loses * (1.0 + 0.3 * noise)).round();
    match figure {
        "delivered" => 1.0 - lost / messages,
        "lost" => lost,
        "unknown" => 0.0,
        "latency p50" => shape.value_us(0.5) * (1.0 + 0.02 * noise),
        "latency p99" => shape.value_us(0.99) * (1.0 + 0.06 * noise),
        "latency p99.9" => shape.value_us(0.999) * (1.0 + 0.11 * noise),
        "system CPU a million" => system.cpu_s * (1.0 + 0.03 * noise),
        "system memory" => system.memory * (1.0 + 0.1 * f64::from(scale)) * (1.0 + 0.01 * noise),
        _ => system.memory / 2_000.0 * (1.0 + 0.01 * noise),
    }
}

/// Computes everything that follows from the values, for both bounds of a latency.
fn settle(figure: &mut CellFigure) {
    let of = |values: &[Option<f64>]| settled(&figure.figure, values);
    let LowerBounds { mean, median, quartiles, interval, .. } = of(&figure.values);
    let lower: Vec<Option<f64>> = figure.values.iter().map(|value| value.map(|value| value * KNOWN)).collect();
    figure.lower = figure.figure.starts_with("latency").then(|| of(&lower));
    (figure.mean, figure.median, figure.quartiles, figure.interval) = (mean, median, quartiles, interval);
}

/// Mean, median, quartiles and interval; on logarithms if all values are above zero.
fn settled(figure: &str, measured: &[Option<f64>]) -> LowerBounds {
    let mut values: Vec<f64> = measured.iter().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let on_logarithms = values.first().is_some_and(|least| *least > 0.0) && figure != "delivered";
    let (forth, back) = scale(on_logarithms);
    let (mean, error) = mean_and_error(&values, forth);
    let at = |fraction: f64| {
        let place = fraction * (count - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    LowerBounds {
        values: measured.to_vec(),
        mean: (count > 0).then(|| back(mean)),
        median: (count > 0).then(|| at(0.5)),
        quartiles: (count >= 4).then(|| (at(0.25), at(0.75))),
        interval: (count >= 3).then(|| Interval {
            low: back(mean - STUDENT[count - 2] * error),
            high: back(mean + STUDENT[count - 2] * error),
            level: 0.95,
            method: if on_logarithms { "t on logarithms" } else { "t" }.to_string(),
        }),
    }
}

/// A pair of functions: to a scale and back.
type Scale = (fn(f64) -> f64, fn(f64) -> f64);

fn scale(on_logarithms: bool) -> Scale {
    if on_logarithms { (f64::ln, f64::exp) } else { (std::convert::identity, std::convert::identity) }
}

/// The mean of the transformed values and its standard error.
fn mean_and_error(values: &[f64], forth: fn(f64) -> f64) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| forth(*value)).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (forth(*value) - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// A cell without figures.
fn fail_whole(record: &mut ExperimentRecord, position: usize, kind: FailureKind, text: &str) {
    let cell = &mut record.cells[position];
    cell.runs.clear();
    cell.figures.clear();
    cell.latency = None;
    cell.latency_curve = None;
    cell.latency_curve_lower = None;
    cell.system = None;
    let repetition = if kind == FailureKind::Unsupported { 0 } else { 1 };
    cell.failures = vec![CellFailure { repetition, kind, text: text.to_string(), folder: None }];
}

/// Contests between the systems.
fn contests(record: &ExperimentRecord) -> Vec<Contest> {
    let mut groups: Vec<BTreeMap<String, String>> = Vec::new();
    for cell in &record.cells {
        let among = among(record, cell);
        if !groups.contains(&among) {
            groups.push(among);
        }
    }
    let judged = || MEASURED.iter().filter(|(_, judged)| *judged).map(|(name, _)| *name);
    let matches: Vec<Match> =
        groups.iter().flat_map(|group| judged().filter_map(|name| contest(record, group, name))).collect();
    contests::decide(&matches)
}

/// Values of the axes with more than one value, except the system.
fn among(record: &ExperimentRecord, cell: &Cell) -> BTreeMap<String, String> {
    let varied = record.axes.iter().filter(|axis| axis.values.len() > 1 && axis.name != "system");
    varied.filter_map(|axis| Some((axis.name.clone(), cell.settings.get(&axis.name)?.clone()))).collect()
}

fn contest(record: &ExperimentRecord, group: &BTreeMap<String, String>, name: &str) -> Option<Match> {
    let entrant = |cell: &Cell| {
        let figure = cell.figures.iter().find(|figure| figure.figure == name)?;
        let values = |values: &[Option<f64>]| values.iter().flatten().copied().collect::<Vec<f64>>();
        let lower = values(figure.lower.as_ref().map_or(&figure.values, |lower| &lower.values));
        Some(Entrant {
            cell: cell.id.clone(),
            values: values(&figure.values),
            lower,
            started_at: vec![],
            delivered: None,
            may_be_higher: false,
        })
    };
    let entrants: Vec<Entrant> =
        record.cells.iter().filter(|cell| among(record, cell) == *group).filter_map(entrant).collect();
    let figure = figures::figure(name)?;
    (entrants.len() >= 2).then(|| Match { axis: "system".to_string(), among: group.clone(), figure, entrants })
}

/// A search over rates that is limited by the system: it holds at 11,500 messages/s and misses from 12,000 on.
pub fn capacity() -> CapacityRecord {
    let loads = [1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 12.0, 12.0, 10.0, 11.0, 11.5];
    let mut trials: Vec<Trial> = Vec::new();
    for factor in loads {
        let attempt = 1 + trials.iter().filter(|other| other.factor == factor).count() as u32;
        trials.push(trial(factor, attempt));
    }
    CapacityRecord {
        schema_version: CAPACITY_SCHEMA_VERSION,
        pubmark_version: "0.1.0".to_string(),
        name: "20260302-120000-capacity-smart-home".to_string(),
        command: ["pubmark", "capacity", "smart-home", "--system", "alphamq", "--slo", "p99<50ms,loss=0"]
            .map(String::from)
            .to_vec(),
        started_at: "2026-03-02T12:00:00Z".to_string(),
        took_s: 84.0,
        status: Status::Complete,
        workload: "smart-home".to_string(),
        seed: 42,
        knob: Knob::Rate,
        objectives: "p99<50ms,loss=0".to_string(),
        system: system_info(&INVENTED[0]),
        protocol: "mqtt5".to_string(),
        result: CapacityResult {
            holds_per_s: Some(11_500.0),
            holds_factor: Some(11.5),
            holds_devices: Some(200),
            fails_per_s: Some(12_000.0),
            limit: CapacityLimit::System,
            text:
                "alphamq 2.0.21 carries 11,500 messages/s of smart-home with p99 < 50 ms and no loss; at 12,000/s p99 \
                   is 212 ms and grows"
                    .to_string(),
        },
        trials,
        cautions: vec!["the machine was busy before 1 of 11 trials".to_string()],
        environment: sample::record().environment,
    }
}

/// A search that is limited by the generator.
pub fn generator_limited() -> CapacityRecord {
    let mut record = capacity();
    record.trials.retain(|trial| trial.factor <= 8.0);
    for trial in &mut record.trials {
        if trial.factor == 8.0 {
            trial.outcome = TrialOutcome::GeneratorLimited;
            trial.reason = Some("V01: scheduler lag p99 is 31.0 ms, above 50 % of latency p99".to_string());
            trial.code = Some("V01".to_string());
            trial.generator_cores = Some(0.99);
            trial.verdict = Some(VerdictStatus::Invalid);
        }
    }
    record.result = CapacityResult {
        holds_per_s: Some(4_000.0),
        holds_factor: Some(4.0),
        holds_devices: Some(200),
        fails_per_s: Some(8_000.0),
        limit: CapacityLimit::Generator,
        text: "alphamq 2.0.21 carries at least 4,000 messages/s: at 8,000/s the generator was the limit".to_string(),
    };
    record
}

fn trial(factor: f64, attempt: u32) -> Trial {
    let offered = factor * 1_000.0;
    let held = factor < 12.0;
    let fill = (offered / 11_900.0_f64).min(0.995);
    let queue = 1.0 / (1.0 - fill);
    let p99_us = if held { 700.0 * queue } else { 180_000.0 * (factor - 11.0) * (1.0 + 0.1 * f64::from(attempt)) };
    Trial {
        factor,
        offered_per_s: offered,
        devices: 200,
        duration_s: 5.0,
        attempt,
        outcome: if held { TrialOutcome::Held } else { TrialOutcome::Missed },
        reason: (!held)
            .then(|| format!("p99 is {:.0} ms, not below 50 ms; latency grows by 41 ms a second", p99_us / 1e3)),
        code: None,
        not_measured: None,
        is_too_large: false,
        delivered_per_s: Some(offered.min(11_870.0)),
        loss: Some(if factor > 14.0 { 0.021 } else { 0.0 }),
        latency: TrialLatency {
            upper: TrialQuantiles {
                p50_us: Some(if held { 220.0 * queue.sqrt() } else { p99_us * 0.5 }),
                p99_us: Some(p99_us),
                max_us: Some(p99_us * 1.8),
            },
            lower: None,
        },
        latency_growth_us_per_s: Some(if held { 3.0 } else { 41_000.0 }),
        system_cores: Some(0.02 + 0.98 * fill),
        generator_cores: Some(0.03 + 0.04 * factor),
        system_rss_bytes: Some(9_800_000 + (offered * 310.0) as u64),
        verdict: Some(VerdictStatus::Valid),
        folder: Some(format!("trials/{factor}-{attempt}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_as_many_values_as_runs_and_contests_name_cells() {
        for record in [experiment(), no_winner(), all_failed()] {
            for cell in &record.cells {
                assert!(cell.figures.iter().all(|figure| figure.values.len() == cell.runs.len()), "{}", cell.id);
                assert_eq!(cell.runs.is_empty(), cell.figures.is_empty(), "{}", cell.id);
            }
            let exists = |id: &String| record.cells.iter().any(|cell| cell.id == *id);
            assert!(record.contests.iter().flat_map(|contest| &contest.ranking).all(exists));
        }
    }

    #[test]
    fn the_sample_has_winners_and_the_same_system_twice_has_none() {
        assert!(experiment().contests.iter().any(|contest| contest.winner.is_some()));
        assert!(experiment().contests.iter().any(|contest| contest.winner.is_none()));
        assert!(!no_winner().contests.is_empty());
        assert!(no_winner().contests.iter().all(|contest| contest.winner.is_none()));
    }
}
