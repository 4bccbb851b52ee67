//! Comparison of runs. Only runs with the same schedule can be compared: otherwise the load differs, and the figures
//! with it. A flood has no schedule: what a record has of its load must be the same.
//!
//! The best value is marked among runs that may be ranked: valid runs of a system that is not built in. A single run of
//! each system shows what was observed, not what a repetition would show; [`Comparison::caution`] states this.

mod load;
mod settings;

pub use crate::figures::{Better, FIGURES, Figure, Judged, Unit};
use crate::figures::{custom_figures, is_fewer};
use crate::record::{Record, VerdictStatus};
pub(crate) use load::{Load, SAME_PAYLOAD, SAME_PAYLOAD_AS_BASELINE};
pub use settings::{MACHINE, machine};
pub(crate) use settings::{differences, settings_of};

/// Most runs in a comparison: more curves in one chart cannot be distinguished.
pub const MOST_RUNS: usize = 8;
/// Hash of a schedule that is not fixed before the run.
pub(crate) const NO_HASH: &str = "none";

/// Why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Fewer than two or more than [`MOST_RUNS`].
    #[error("a comparison takes 2 to {MOST_RUNS} runs, got {found}")]
    Count {
        /// Number of runs given.
        found: usize,
    },
    /// The schedules differ.
    #[error("runs of different schedules cannot be compared: `{first}` has {first_hash}, `{other}` has {other_hash}")]
    DifferentSchedules {
        /// Name of the first run.
        first: String,
        /// Hash of its schedule.
        first_hash: String,
        /// Name of the first run that differs from it.
        other: String,
        /// Hash of its schedule.
        other_hash: String,
    },
    /// The runs have no schedule fixed before the run (flood), and their loads differ.
    #[error(
        "runs of different workloads cannot be compared: `{first}` ran {first_workload}, `{other}` ran {other_workload}"
    )]
    DifferentWorkloads {
        /// Name of the first run.
        first: String,
        /// Its workload with variant, scale, and what else differs.
        first_workload: String,
        /// Name of the first run that differs from it.
        other: String,
        /// Its workload with variant, scale, and what else differs.
        other_workload: String,
    },
}

/// A run of a comparison.
#[derive(Clone, Debug)]
pub struct ComparedRun<'a> {
    /// Its record.
    pub record: &'a Record,
    /// System and version, numbered if several runs have the same.
    pub label: String,
    /// Why the run is not ranked; `None` if it is.
    pub not_ranked: Option<String>,
}

/// A figure of every run.
pub struct ComparedFigure<'a> {
    /// The figure.
    pub figure: Figure<'a>,
    /// Values in the order of the runs; upper bounds of a latency; `None` where not measured.
    pub values: Vec<Option<f64>>,
    /// Lower bounds; `None` where a value has none.
    pub lower: Vec<Option<f64>>,
    /// The run with the best value, if it is better than all other ranked runs even when the bounds of both are
    /// considered.
    pub best: Option<usize>,
    /// No value is best because the best one is a latency of fewer messages than another ranked run delivered: the lost ones may be
    /// those that would have been late.
    pub is_of_fewer: bool,
}

impl ComparedFigure<'_> {
    /// Both bounds of a run's value, the lower one first.
    pub fn bounds(&self, run: usize) -> [Option<f64>; 2] {
        [self.lower.get(run).copied().flatten(), self.values.get(run).copied().flatten()]
    }
}

/// A setting in which the runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The setting.
    pub name: &'static str,
    /// Its values in the order of the runs.
    pub values: Vec<String>,
}

/// A comparison of runs.
pub struct Comparison<'a> {
    /// The runs, in the order given.
    pub runs: Vec<ComparedRun<'a>>,
    /// Their figures.
    pub figures: Vec<ComparedFigure<'a>>,
    /// User-defined metrics.
    pub custom: Vec<ComparedFigure<'a>>,
    /// Settings, versions and machines in which the runs differ, besides the system.
    pub differences: Vec<Difference>,
}

impl Comparison<'_> {
    /// Limits of the comparison, in one sentence.
    pub fn caution(&self) -> &'static str {
        if self.runs.iter().filter(|run| run.not_ranked.is_none()).count() < 2 {
            "no best value is marked: fewer than two runs may be ranked"
        } else if self.figures.iter().any(|row| row.is_of_fewer) {
            "best values as seen in single runs: repeat them before deciding, a small difference may be chance; the lower \
             latencies are those of fewer messages and not marked: the lost ones may be those that would have been late"
        } else {
            "best values as seen in single runs: repeat them before deciding, a small difference may be chance"
        }
    }
}

/// Compares runs, or returns why they cannot be compared.
pub fn compare(records: &[Record]) -> Result<Comparison<'_>, CompareError> {
    if !(2..=MOST_RUNS).contains(&records.len()) {
        return Err(CompareError::Count { found: records.len() });
    }
    for other in &records[1..] {
        same_load(&records[0], other)?;
    }
    let runs: Vec<ComparedRun> = labels(records)
        .into_iter()
        .zip(records)
        .map(|(label, record)| ComparedRun { record, label, not_ranked: why_not_ranked(record) })
        .collect();
    let same_meaning_of_sent =
        records.iter().all(|record| record.protocol.sent_means == records[0].protocol.sent_means);
    let figures = FIGURES
        .iter()
        // Service latencies that start at different points are not comparable.
        .filter(|figure| same_meaning_of_sent || figure.name != "service latency p99")
        .filter(|figure| records.iter().any(|record| figure.concerns(record)))
        .map(|figure| compared(*figure, records, &runs))
        .collect();
    let custom = custom_figures(records.iter()).into_iter().map(|figure| compared(figure, records, &runs)).collect();
    Ok(Comparison { runs, figures, custom, differences: differences(records) })
}

fn compared<'a>(figure: Figure<'a>, records: &[Record], runs: &[ComparedRun]) -> ComparedFigure<'a> {
    let values: Vec<Option<f64>> = records.iter().map(|record| figure.value(record)).collect();
    let lower: Vec<Option<f64>> = records.iter().map(|record| figure.lower(record)).collect();
    let best = best(&figure, runs, &values, &lower);
    let is_of_fewer = best.is_some_and(|best| is_of_fewer(&figure, runs, best));
    ComparedFigure { figure, values, lower, best: best.filter(|_| !is_of_fewer), is_of_fewer }
}

/// Whether a figure is a latency of a run that delivered fewer of its messages than another ranked one.
fn is_of_fewer(figure: &Figure, runs: &[ComparedRun], run: usize) -> bool {
    let Some(share) = figure.of_arrived() else { return false };
    let Some(mine) = share.value(runs[run].record) else { return false };
    let ranked = runs.iter().filter(|other| other.not_ranked.is_none());
    ranked.filter_map(|other| share.value(other.record)).any(|other| is_fewer(mine, other))
}

fn same_load(first: &Record, other: &Record) -> Result<(), CompareError> {
    let (first_hash, other_hash) = (&first.workload.schedule_hash, &other.workload.schedule_hash);
    if first_hash != other_hash {
        return Err(CompareError::DifferentSchedules {
            first: first.run.name.clone(),
            first_hash: first_hash.clone(),
            other: other.run.name.clone(),
            other_hash: other_hash.clone(),
        });
    }
    let differences = Load::of_run(first).differences(&Load::of_run(other), SAME_PAYLOAD);
    if first_hash != NO_HASH || differences.is_empty() {
        return Ok(());
    }
    let describe = |record: &Record, side: usize| {
        let rest = differences.iter().filter(|found| !matches!(&*found.name, "workload" | "variant" | "scale"));
        let rest: String = rest.map(|found| format!(", {} {}", found.name, found.values[side])).collect();
        format!("{} ({}, scale {}{rest})", record.workload.name, record.workload.variant, record.workload.scale)
    };
    Err(CompareError::DifferentWorkloads {
        first: first.run.name.clone(),
        first_workload: describe(first, 0),
        other: other.run.name.clone(),
        other_workload: describe(other, 1),
    })
}

fn why_not_ranked(record: &Record) -> Option<String> {
    if !record.system.ranked {
        return Some(format!("{} is a demonstration, never ranked", record.system.name));
    }
    match record.verdict.status {
        VerdictStatus::Valid => None,
        VerdictStatus::Suspect => Some("its run is suspect".to_string()),
        VerdictStatus::Invalid => Some("its run is invalid".to_string()),
    }
}

fn labels(records: &[Record]) -> Vec<String> {
    let plain: Vec<String> = records
        .iter()
        .map(|record| match &record.system.version {
            Some(version) => format!("{} {version}", record.system.name),
            None => record.system.name.clone(),
        })
        .collect();
    let numbered = |position: usize, label: &String| {
        if plain.iter().filter(|other| *other == label).count() < 2 {
            return label.clone();
        }
        let number = plain[..=position].iter().filter(|other| *other == label).count();
        format!("{label} #{number}")
    };
    plain.iter().enumerate().map(|(position, label)| numbered(position, label)).collect()
}

fn best(figure: &Figure, runs: &[ComparedRun], values: &[Option<f64>], lower: &[Option<f64>]) -> Option<usize> {
    let judged = |run: &ComparedRun| run.not_ranked.is_none() && !(figure.is_latency && run.record.settings.flood);
    let bounds = values.iter().zip(lower).map(|(value, lower)| {
        let upper = (*value)?;
        Some((lower.map_or(upper, |lower| lower.min(upper)), upper))
    });
    let mut ranked: Vec<(usize, (f64, f64))> = runs
        .iter()
        .zip(bounds)
        .enumerate()
        .filter(|(_, (run, _))| judged(run))
        .filter_map(|(position, (_, bounds))| bounds.map(|bounds| (position, bounds)))
        .collect();
    match figure.better {
        Better::Lower => ranked.sort_by(|(_, a), (_, b)| a.1.total_cmp(&b.1)),
        Better::Higher => ranked.sort_by(|(_, a), (_, b)| b.1.total_cmp(&a.1)),
        Better::Neither => return None,
    }
    let ((first, (low, high)), others) = ranked.split_first()?;
    let is_behind = |(_, (other_low, other_high)): &(usize, (f64, f64))| match figure.better {
        Better::Higher => low > other_high,
        _ => high < other_low,
    };
    (!others.is_empty() && others.iter().all(is_behind)).then_some(*first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sample;

    fn pair() -> [Record; 2] {
        let mut first = sample::record();
        first.system.ranked = true;
        first.system.name = "mosquitto".to_string();
        first.run.name = "one".to_string();
        let mut second = first.clone();
        second.run.name = "two".to_string();
        let latency = second.latency.total.as_mut().unwrap();
        (latency.upper.p99, latency.lower.as_mut().unwrap().p99) = (Some(1.0), Some(0.5));
        [first, second]
    }

    fn figure_of<'a>(comparison: &'a Comparison, name: &str) -> &'a ComparedFigure<'a> {
        comparison.figures.iter().find(|row| row.figure.name == name).unwrap()
    }

    #[test]
    fn the_better_of_two_ranked_runs_is_marked() {
        let records = pair();
        let comparison = compare(&records).unwrap();
        assert_eq!(figure_of(&comparison, "latency p99").best, Some(1));
        assert_eq!(figure_of(&comparison, "latency p50").best, None, "equal values have no best");
        assert_eq!(comparison.runs[1].label, "mosquitto 0.1.0 #2");
    }

    #[test]
    fn latencies_whose_bounds_overlap_have_no_best() {
        let mut records = pair();
        let lowest = records[0].latency.total.as_mut().unwrap().lower.as_mut().unwrap();
        lowest.p99 = Some(0.9);
        let comparison = compare(&records).unwrap();
        let row = figure_of(&comparison, "latency p99");
        assert_eq!((row.best, row.bounds(0)[0], row.bounds(1)), (None, Some(0.9), [Some(0.5), Some(1.0)]));
    }

    #[test]
    fn a_latency_of_fewer_messages_is_not_the_best() {
        let found = |lost: [u64; 2]| {
            let mut records = pair();
            for (record, lost) in records.iter_mut().zip(lost) {
                let messages = &mut record.delivery.messages;
                (messages.lost, messages.delivered) = (lost, messages.expected - lost);
            }
            let comparison = compare(&records).unwrap();
            let row = figure_of(&comparison, "latency p99");
            (row.best, row.is_of_fewer, comparison.caution().contains("fewer messages and not marked"))
        };
        assert_eq!(found([0, 1_000]), (None, true, true), "the late ones may be lost");
        assert_eq!(found([1_000, 0]), (Some(1), false, false), "a lost message can only make the other worse");
        assert_eq!(found([1_000, 1_000]), (Some(1), false, false));
        assert_eq!(found([0, 1]), (Some(1), false, false), "a stray message");
    }

    #[test]
    fn the_built_in_broker_and_invalid_runs_are_never_ranked() {
        let mut records = pair();
        records[1].system.ranked = false;
        assert_eq!(figure_of(&compare(&records).unwrap(), "latency p99").best, None);
        let mut records = pair();
        records[1].verdict.status = VerdictStatus::Invalid;
        let comparison = compare(&records).unwrap();
        assert_eq!(figure_of(&comparison, "latency p99").best, None);
        assert!(comparison.caution().starts_with("no best value"));
    }

    #[test]
    fn limits_brokers_and_cores_that_differ_are_named() {
        let mut records = pair();
        let limits = crate::record::LimitInfo { requested: "cpu=0.5".to_string(), ..Default::default() };
        records[1].system.limits = Some(limits);
        let topology =
            crate::record::TopologyInfo { brokers: 3, mode: crate::record::TopologyMode::Bridge, endpoints: vec![] };
        records[1].system.topology = Some(topology);
        records[1].system.pinned_cores = Some("0".to_string());
        let comparison = compare(&records).unwrap();
        let named: Vec<_> = comparison.differences.iter().map(|found| (found.name, found.values[1].as_str())).collect();
        assert_eq!(named, [("brokers", "3:bridge"), ("limits", "cpu=0.5"), ("cores of the system", "0")]);
    }

    #[test]
    fn limits_are_compared_by_what_held() {
        let with = |requested: &str, cpu_period_ms: Option<f64>, cores: Option<u32>| crate::record::LimitInfo {
            requested: requested.to_string(),
            cpu: Some(0.5),
            cpu_period_ms,
            memory_bytes: Some(2 << 30),
            cores,
            ..Default::default()
        };
        let values = |limits: [crate::record::LimitInfo; 2]| {
            let mut records = pair();
            for (record, limits) in records.iter_mut().zip(limits) {
                record.system.limits = Some(limits);
            }
            let differences = compare(&records).unwrap().differences;
            differences.into_iter().find(|found| found.name == "limits").map(|found| found.values)
        };
        let set = with("mq-bench-1", Some(10.0), Some(1));
        assert_eq!(values([set.clone(), with("cores=1,memory=2GiB,cpu=0.5", Some(10.0), Some(1))]), None);
        let deployed = values([set.clone(), with("mq-bench-1", None, Some(1))]).unwrap();
        let [here, there] =
            ["in every 10 ms", "the engine's period"].map(|period| format!("cpu=0.5 ({period}),memory=2GiB,cores=1"));
        assert_eq!(deployed, [here, there]);
        assert!(values([set, with("mq-bench-1", Some(10.0), None)]).is_some());
    }

    #[test]
    fn other_schedules_are_refused_with_both_hashes() {
        let mut records = pair();
        records[1].workload.schedule_hash = "beef".to_string();
        let message = compare(&records).err().unwrap().to_string();
        assert!(message.contains("beef") && message.contains(&records[0].workload.schedule_hash), "{message}");
    }

    #[test]
    fn floods_compare_only_with_the_same_workload_and_have_no_best_latency() {
        let mut records = pair();
        for record in &mut records {
            record.workload.schedule_hash = NO_HASH.to_string();
            record.settings.flood = true;
        }
        assert_eq!(figure_of(&compare(&records).unwrap(), "latency p99").best, None);
        records[1].workload.scale = 2;
        assert!(matches!(compare(&records), Err(CompareError::DifferentWorkloads { .. })));
    }

    #[test]
    fn floods_of_another_load_are_refused_with_what_differs() {
        let refused = |change: fn(&mut Record)| {
            let mut records = pair();
            for record in &mut records {
                record.workload.schedule_hash = NO_HASH.to_string();
                record.settings.flood = true;
                record.tables.by_type.truncate(1);
            }
            change(&mut records[1]);
            compare(&records).err().map(|error| error.to_string())
        };
        assert_eq!(refused(|_| ()), None);
        let message = refused(|record| record.throughput.payload_bytes_per_s *= 100.0).unwrap();
        assert!(message.contains("mean payload 96.4 B)") && message.contains("mean payload 9.64 kB)"), "{message}");
        let message = refused(|record| record.workload.devices = 7).unwrap();
        assert!(message.contains("scale 1, devices 200)") && message.contains("scale 1, devices 7)"), "{message}");
        let others: [fn(&mut Record); 3] = [
            |record| record.workload.subscribers = 7,
            |record| record.workload.topics = 7,
            |record| record.settings.duration_s = 30.0,
        ];
        for change in others {
            assert!(refused(change).is_some());
        }
    }

    #[test]
    fn links_faults_and_clients_that_differ_are_named() {
        use crate::faults::{FaultFigures, FaultRow};
        use crate::links::{LinkDirection, LinkFigures, LinkGroup};
        let mut records = pair();
        let way = |words: &str| LinkDirection { requested: vec![words.to_string()], ..LinkDirection::default() };
        let group = |name: &str, link: &str, up: &str| LinkGroup {
            group: name.to_string(),
            link: link.to_string(),
            up: way(up),
            down: way("30 ms"),
            ..LinkGroup::default()
        };
        let groups = vec![group("a", "lte", "40 ms"), group("b", "lte", "40 ms"), group("c", "wifi", "30 ms")];
        records[1].conditions.links = Some(LinkFigures { groups, ..LinkFigures::default() });
        let fault = FaultRow {
            target: "the system".to_string(),
            requested_at_s: 5.0,
            requested_for_s: Some(1.5),
            ..FaultRow::default()
        };
        records[1].conditions.faults = Some(FaultFigures { faults: vec![fault], ..FaultFigures::default() });
        (records[1].workload.devices, records[1].workload.subscribers) = (201, 2);
        let comparison = compare(&records).unwrap();
        let named: Vec<_> = comparison.differences.iter().map(|found| (found.name, found.values[1].as_str())).collect();
        assert_eq!(
            named,
            [
                ("devices", "201"),
                ("subscribers", "2"),
                ("links", "lte (up 40 ms, down 30 ms) for a, b; wifi (30 ms) for c"),
                ("faults", "kill of the system at 5 s for 1.5 s"),
            ]
        );
        assert_eq!(comparison.differences[2].values[0], "none");
        records[0].conditions.links = records[1].conditions.links.clone();
        records[0].conditions.links.as_mut().unwrap().back_end = crate::links::LinkBackEnd::KernelNetem;
        let comparison = compare(&records).unwrap();
        let links = comparison.differences.iter().find(|found| found.name == "links").unwrap();
        assert!(links.values[0].ends_with("for c, emulated by kernel netem"), "{links:?}");
    }

    #[test]
    fn service_latencies_of_different_kinds_are_left_out() {
        let mut records = pair();
        records[1].protocol.sent_means = crate::record::SentMeans::HandedOver;
        let comparison = compare(&records).unwrap();
        assert!(comparison.figures.iter().all(|row| row.figure.name != "service latency p99"));
        assert_eq!(comparison.differences[0].values, ["wire", "handed-over"]);
    }

    #[test]
    fn one_run_alone_is_refused() {
        assert_eq!(compare(&pair()[..1]).err(), Some(CompareError::Count { found: 1 }));
    }
}
