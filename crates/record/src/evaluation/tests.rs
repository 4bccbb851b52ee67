#![allow(clippy::unwrap_used)]

mod bounds;

use pubmark_metrics::distribution::{Distribution, Precision};

use super::*;
use crate::experiment::{FailureKind, Grade};
use crate::nodes::{NodeMachine, NodeRow};
use crate::record::{Reason, Status, VerdictStatus};
use crate::sample;

fn axis(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect()
}

/// A histogram of N samples, all close to one time.
fn histogram(time_us: f64, samples: u64) -> Vec<u8> {
    let mut times = Distribution::new(Precision::Total);
    (0..samples).for_each(|sample| times.record((time_us * 1e3) as i64 + sample as i64));
    times.to_hdr_v2()
}

fn run(folder: &str, repetition: u32, p50_us: f64) -> RunInput {
    let mut record = sample::record();
    record.system.ranked = true;
    // Pubmark may have caused a tenth of each latency.
    let bounds = record.latency.total.as_mut().unwrap();
    bounds.lower = Some(bounds.upper.clone());
    for (latency, p50_us) in [(&mut bounds.upper, p50_us), (bounds.lower.as_mut().unwrap(), 0.9 * p50_us)] {
        let change = p50_us / latency.p50.unwrap();
        latency.p50 = Some(p50_us);
        latency.p99 = latency.p99.map(|p99| p99 * change);
    }
    RunInput {
        run: CellRun {
            repetition,
            order: repetition,
            folder: format!("{folder}-{repetition}"),
            verdict: VerdictStatus::Valid,
            waited_ms: 0,
            busy: false,
        },
        latency: Some(histogram(p50_us, 100)),
        latency_lower: Some(histogram(0.9 * p50_us, 100)),
        record,
    }
}

fn cell(system: &str, others: &[(&str, &str)], p50s_us: &[f64]) -> CellInput {
    let mut settings = settings(others);
    settings.insert("system".to_owned(), system.to_owned());
    let id = settings.values().cloned().collect::<Vec<_>>().join("_");
    let runs = (1..).zip(p50s_us).map(|(repetition, p50_us)| run(&id, repetition, *p50_us)).collect();
    CellInput { label: id.clone(), id, settings, runs, failures: Vec::new() }
}

fn failure(kind: FailureKind) -> CellFailure {
    CellFailure { repetition: 4, kind, text: "made up".to_owned(), folder: Some("runs/4".to_owned()) }
}

fn contest<'a>(found: &'a Evaluation, figure: &str) -> &'a Contest {
    found.contests.iter().find(|contest| contest.figure == figure).unwrap()
}

fn systems() -> Vec<Axis> {
    vec![axis("system", &["fast", "slow"])]
}

#[test]
fn the_faster_of_two_systems_wins_by_latency_and_by_nothing_else() {
    let cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert_eq!(contest(&found, "latency p99").winner.as_deref(), Some("fast"));
    assert_eq!(contest(&found, "system memory").winner, None);
    assert!(found.contests.iter().all(|contest| contest.figure != "latency max"), "not judged");
    assert_eq!(found.cautions, Vec::<String>::new());
    let p50 = found.cells[1].figures.iter().find(|figure| figure.figure == "latency p50").unwrap();
    assert!((p50.mean.unwrap() - 304.97).abs() < 0.1 && p50.quartiles.is_none(), "{p50:?}");
    assert!(p50.interval.as_ref().unwrap().low < 305.0);
}

#[test]
fn percentiles_over_all_runs_come_from_merged_histograms() {
    let cells = [cell("fast", &[], &[100.0, 100.0, 900.0])];
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let latency = upper(&found.cells[0].latency).unwrap();
    assert_eq!(latency.count, 300);
    assert!((latency.p50.unwrap() - 100.0).abs() < 1.0 && (latency.p90.unwrap() - 900.0).abs() < 2.0, "{latency:?}");
    assert!(latency.p99.is_none(), "3 samples beyond");
    assert_eq!(found.cells[0].latency_curve.as_ref().unwrap().count, 300);
    let lower = lower(&found.cells[0].latency).unwrap();
    assert!((lower.p50.unwrap() - 90.0).abs() < 1.0 && (lower.p90.unwrap() - 810.0).abs() < 2.0, "{lower:?}");
    assert_eq!(found.cells[0].latency_curve_lower.as_ref().unwrap().count, 300);
}

#[test]
fn a_cell_has_both_bounds_of_a_latency_and_a_duel_the_interval_of_both() {
    let cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let figure = |name: &str| found.cells[0].figures.iter().find(|figure| figure.figure == name).unwrap();
    let p50 = figure("latency p50");
    let [low, high] = p50.mean_bounds().map(Option::unwrap);
    assert!((low - 0.9 * high).abs() < 1e-9, "{low} {high}");
    let (from, to) = p50.whole_interval().unwrap();
    assert!(from < low && high < to, "{from} {to}");
    assert!(figure("system memory").lower.is_none());
    let duel = &contest(&found, "latency p50").duels[0];
    let (least, most) = duel.measured.unwrap();
    assert!((least - 0.9 * duel.difference).abs() < 1e-9 && (most - duel.difference / 0.9).abs() < 1e-9, "{duel:?}");
    let (low, high) = duel.interval.unwrap();
    assert!(low < least && most < high && duel.grade() == Grade::Proven, "{duel:?}");
}

#[test]
fn the_mean_of_the_lower_bounds_is_never_above_that_of_the_upper_ones() {
    let mut cells = [cell("fast", &[], &[100.0, 100.0, 10_000.0])];
    // A lower bound of nothing has no logarithm.
    cells[0].runs[0].record.latency.total.as_mut().unwrap().lower.as_mut().unwrap().p50 = Some(0.0);
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let p50 = found.cells[0].figures.iter().find(|figure| figure.figure == "latency p50").unwrap();
    let [low, high] = p50.mean_bounds().map(Option::unwrap);
    assert!((low - 3_030.0).abs() < 1e-6 && (high - 3_400.0).abs() < 1e-6, "{low} {high}");
    let methods = [p50.interval.as_ref(), p50.lower.as_ref().unwrap().interval.as_ref()];
    assert_eq!(methods[0].map(|found| &found.method), methods[1].map(|found| &found.method), "{p50:?}");
}

#[test]
fn a_cell_has_no_lower_bound_if_one_of_its_runs_lacks_it() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0])];
    cells[0].runs[1].latency_lower = None;
    cells[0].runs[1].record.latency.total.as_mut().unwrap().lower = None;
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.cells[0].latency.as_ref().unwrap().lower.is_none() && found.cells[0].latency_curve_lower.is_none());
    let p50 = found.cells[0].figures.iter().find(|figure| figure.figure == "latency p50").unwrap();
    assert_eq!(p50.mean_bounds()[0], None);
}

#[test]
fn a_missing_histogram_is_reported_and_a_broken_one_refused() {
    let mut cells = [cell("fast", &[], &[100.0, 100.0, 100.0])];
    cells[0].runs[1].latency = None;
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert_eq!(found.cells[0].latency, None);
    assert!(found.cautions.iter().any(|caution| caution.contains("histogram")), "{:?}", found.cautions);
    cells[0].runs[1].latency = Some(b"torn".to_vec());
    assert!(matches!(evaluate(&systems(), 1, &cells), Err(EvaluationError::Histogram { .. })));
}

#[test]
fn schedules_may_differ_between_loads_and_not_between_systems() {
    let load = |system: &str, scale: &str, hash: &str| {
        let mut cell = cell(system, &[("scale", scale)], &[100.0; 3]);
        cell.runs.iter_mut().for_each(|run| run.record.workload.schedule_hash = hash.to_owned());
        cell
    };
    let axes = [axis("system", &["a", "b"]), axis("scale", &["1", "2"])];
    let fine = [load("a", "1", "aa"), load("b", "1", "aa"), load("a", "2", "bb"), load("b", "2", "bb")];
    let found = evaluate(&axes, 1, &fine).unwrap();
    assert_eq!(found.contests.iter().filter(|contest| contest.figure == "latency p50").count(), 2, "one a scale");
    assert_eq!(found.contests[0].among, settings(&[("scale", "1")]));
    let wrong = [load("a", "1", "aa"), load("b", "1", "cc")];
    let message = evaluate(&axes, 1, &wrong).unwrap_err().to_string();
    assert!(["1_a-1", "1_b-1", "aa", "cc"].iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn limits_of_one_system_are_a_contest_too() {
    let limited = |limit: &str, p50_us: f64| cell("one", &[("limit", limit)], &[p50_us, p50_us * 1.01, p50_us]);
    let axes = [axis("system", &["one"]), axis("limit", &["none", "cpu=0.2"])];
    let found = evaluate(&axes, 1, &[limited("none", 100.0), limited("cpu=0.2", 400.0)]).unwrap();
    let contest = contest(&found, "latency p99");
    assert_eq!((contest.axis.as_str(), contest.winner.as_deref()), ("limit", Some("none_one")));
}

#[test]
fn lower_latencies_of_fewer_messages_have_a_caution_with_the_shares() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    for run in &mut cells[0].runs {
        let messages = &mut run.record.delivery.messages;
        (messages.delivered, messages.lost) = (messages.expected * 9 / 10, messages.expected / 10);
    }
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert_eq!(contest(&found, "latency p99").winner, None);
    let told: Vec<&String> =
        found.cautions.iter().filter(|caution| caution.contains("those of fewer messages")).collect();
    let [told] = told[..] else { panic!("one for the pair, whatever the figures: {:?}", found.cautions) };
    let shares = "the lower latencies of fast are those of fewer messages, 90 % delivered and 100 % of slow: ";
    assert!(told.starts_with(shares) && told.ends_with("so there is no winner by latency p50, latency p99"), "{told}");
    for run in &mut cells[0].runs {
        let messages = &mut run.record.delivery.messages;
        (messages.delivered, messages.lost) = (messages.expected, 0);
    }
    assert_eq!(evaluate(&systems(), 1, &cells).unwrap().cautions, Vec::<String>::new());
}

#[test]
fn a_share_of_fewer_messages_is_100_percent_only_if_nothing_is_missing() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    for (cell, lost) in cells.iter_mut().zip([1_000, 2]) {
        for run in &mut cell.runs {
            let messages = &mut run.record.delivery.messages;
            (messages.expected, messages.delivered, messages.lost) = (10_000, 10_000 - lost, lost);
        }
    }
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let is_told = |caution: &String| caution.contains(" fewer messages, 90 % delivered and 99.98 % of slow: ");
    assert!(found.cautions.iter().any(is_told), "{:?}", found.cautions);
}

#[test]
fn who_failed_by_itself_is_not_ranked() {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[300.0, 301.0, 302.0])];
    cells[0].failures.push(failure(FailureKind::OutOfMemory));
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.contests.is_empty());
    assert!(
        found.cautions[0].contains("1 of 4") && found.cautions[0].contains("out of memory"),
        "{:?}",
        found.cautions
    );
    cells[0].failures[0].kind = FailureKind::GeneratorLimited;
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert_eq!(contest(&found, "latency p50").winner.as_deref(), Some("fast"), "that was our fault");
    let left_out = "1 repetition is left out as invalid: ";
    assert!(found.cautions[0].starts_with(left_out), "{:?}", found.cautions);
}

#[test]
fn runs_that_a_system_without_cpu_survived_are_said_to_represent_the_others() {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[300.0; 3])];
    let is_said = |cells: &[CellInput]| {
        let found = evaluate(&systems(), 1, cells).unwrap();
        let is_its = |caution: &String| {
            caution.starts_with("runs in which the system lacked CPU (V28) count if") && caution.ends_with(", in slow")
        };
        found.cautions.iter().any(is_its)
    };
    let text = "V28: it had no CPU".to_owned();
    cells[1].failures.push(CellFailure { text, ..failure(FailureKind::GeneratorLimited) });
    assert!(!is_said(&cells), "all such runs are left out");
    let (code, status) = ("V28".to_owned(), VerdictStatus::Suspect);
    cells[1].runs[0].record.verdict.reasons = vec![Reason { code, status, text: String::new(), hint: String::new() }];
    assert!(is_said(&cells));
    cells[1].failures.clear();
    assert!(!is_said(&cells), "all such runs count");
}

#[test]
fn a_cell_without_runs_has_no_figures() {
    let mut cells = [cell("fast", &[], &[]), cell("slow", &[], &[300.0; 3])];
    cells[0].failures.push(failure(FailureKind::NotInstalled));
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.cells[0].figures.is_empty() && found.cells[0].latency.is_none());
    assert!(found.cautions[0].contains("not installed"), "{:?}", found.cautions);
}

#[test]
fn the_built_in_broker_is_never_ranked() {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[300.0; 3])];
    cells[0].runs.iter_mut().for_each(|run| run.record.system.ranked = false);
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.contests.is_empty() && found.cautions[0].contains("never ranked"), "{:?}", found.cautions);
}

#[test]
fn a_flood_has_no_contest_of_latencies() {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[300.0; 3])];
    for run in cells.iter_mut().flat_map(|cell| &mut cell.runs) {
        run.record.settings.flood = true;
        run.record.workload.schedule_hash = "none".to_owned();
    }
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.contests.iter().all(|contest| !contest.figure.starts_with("latency")));
    assert!(found.contests.iter().any(|contest| contest.figure == "delivered rate"));
}

#[test]
fn cautions_are_shown() {
    let mut cells = [cell("fast", &[], &[100.0; 2]), cell("slow", &[], &[300.0; 2])];
    cells[0].runs[0].run.verdict = VerdictStatus::Suspect;
    cells[0].runs[1].run.busy = true;
    cells[0].runs[1].record.system.version = Some("9.9".to_owned());
    cells[1].runs.iter_mut().for_each(|run| run.record.cost.system = None);
    cells[1].runs[0].record.tables.series[2..4].iter_mut().for_each(|bin| bin.latency.upper.p50_us = Some(500_000.0));
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.contests.iter().all(|contest| contest.winner.is_none()));
    let text = found.cautions.join("\n");
    for part in [
        "fewer than 3 repetitions in every cell",
        "1 of 4 runs suspect",
        "1 run began",
        "9.9",
        "not steady in runs of slow:",
    ] {
        assert!(text.contains(part), "{part} is missing from {text}");
    }
    assert_eq!(cells[0].runs[0].record.run.status, Status::Complete);
}

#[test]
fn cells_of_one_system_with_several_versions_have_a_caution() {
    let mut cells = [
        cell("fast", &[("qos", "0")], &[100.0, 104.0, 98.0]),
        cell("fast", &[("qos", "1")], &[300.0, 310.0, 305.0]),
        cell("slow", &[("qos", "0")], &[200.0, 204.0, 198.0]),
        cell("slow", &[("qos", "1")], &[400.0, 410.0, 405.0]),
    ];
    let axes = [systems(), vec![axis("qos", &["0", "1"])]].concat();
    let of_versions = |cells: &[CellInput]| {
        let found = evaluate(&axes, 1, cells).unwrap().cautions;
        found.into_iter().filter(|caution| caution.contains("version")).collect::<Vec<_>>()
    };
    assert!(of_versions(&cells).is_empty());
    for (cell, version) in cells.iter_mut().zip(["1.0", "1.1"]) {
        cell.runs.iter_mut().for_each(|run| run.record.system.version = Some(version.to_owned()));
    }
    assert_eq!(of_versions(&cells), ["fast has another version in some cells than in others: 1.0, 1.1"]);
    cells[1].settings.insert("client".to_owned(), "another".to_owned());
    assert!(of_versions(&cells).is_empty(), "that of a client library");
    cells[1].settings.remove("client");
    cells[1].runs[0].record.system.version = Some("1.0".to_owned());
    let label = cells[1].label.clone();
    assert_eq!(of_versions(&cells), [format!("{label} changed its version between runs: 1.0, 1.1")]);
}

#[test]
fn runs_of_several_versions_of_pubmark_or_machines_have_a_caution() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    assert_eq!(evaluate(&systems(), 1, &cells).unwrap().cautions, Vec::<String>::new());
    cells[1].runs[1].record.run.pubmark_version = "0.9.0".to_owned();
    cells[0].runs[2].record.environment.cpu = "Other CPU".to_owned();
    cells[1].runs[2].record.environment.kernel = "7.1".to_owned();
    let found = evaluate(&systems(), 1, &cells).unwrap().cautions;
    let cpu = "Example CPU at 2.60 GHz";
    let machines = format!("4 × {cpu}, kernel 6.12.0; 4 × Other CPU, kernel 6.12.0; 4 × {cpu}, kernel 7.1");
    assert_eq!(
        found,
        [
            "pubmark changed its version between runs: 0.1.0, 0.9.0".to_owned(),
            format!("the machine changed between runs: {machines}"),
        ]
    );
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    for run in cells.iter_mut().flat_map(|cell| &mut cell.runs) {
        run.record.environment.memory_bytes = 8_000;
    }
    cells[1].runs[1].record.environment.memory_bytes = 16_000;
    let found = evaluate(&systems(), 1, &cells).unwrap().cautions;
    let kind = format!("4 × {cpu}, kernel 6.12.0");
    let machines = format!("{kind}, 8,000 B of memory; {kind}, 16,000 B of memory");
    assert_eq!(found, [format!("the machine changed between runs: {machines}")]);
    cells[1].runs[1].record.environment.memory_bytes = 8_016;
    assert_eq!(evaluate(&systems(), 1, &cells).unwrap().cautions, Vec::<String>::new(), "0.2 %: its kernel varies");
}

#[test]
fn runs_on_several_sets_of_nodes_have_a_caution() {
    let node = |host: &str, kernel: &str| NodeRow {
        machine: Some(NodeMachine {
            host: host.to_owned(),
            kernel: kernel.to_owned(),
            cores: 4,
            ..NodeMachine::default()
        }),
        ..NodeRow::default()
    };
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    let cautions = |cells: &[CellInput]| evaluate(&systems(), 1, cells).unwrap().cautions;
    for run in cells.iter_mut().flat_map(|cell| &mut cell.runs) {
        run.record.tables.nodes = vec![node("a", "6.12.0"), node("b", "6.12.0")];
    }
    cells[0].runs[1].record.tables.nodes.reverse();
    assert_eq!(cautions(&cells), Vec::<String>::new(), "they joined in another order");
    for cell in &mut cells {
        cell.runs[2].record.tables.nodes[1] = node("c", "6.12.0");
    }
    assert_eq!(cautions(&cells), Vec::<String>::new(), "a machine of the same kind");
    let changed = "the machines of the nodes changed between runs: only some had";
    for cell in &mut cells {
        cell.runs[2].record.tables.nodes[1] = node("b", "7.1");
    }
    assert_eq!(cautions(&cells), [format!("{changed} b (4 cores, kernel 6.12.0); b (4 cores, kernel 7.1)")]);
    for run in &mut cells[0].runs {
        run.record.tables.nodes = vec![node("a", "6.12.0")];
    }
    cells[1].runs[2].record.tables.nodes[1] = node("b", "6.12.0");
    assert_eq!(cautions(&cells), Vec::<String>::new(), "a cell with fewer nodes");
}

#[test]
fn a_figure_is_ranked_without_a_system_that_lacks_it_and_the_page_names_it() {
    let mut cells = [cell("a", &[], &[100.0; 3]), cell("b", &[], &[300.0; 3]), cell("c", &[], &[300.0; 3])];
    cells[2].runs.iter_mut().for_each(|run| run.record.cost.system = None);
    let found = evaluate(&[axis("system", &["a", "b", "c"])], 1, &cells).unwrap();
    assert_eq!(contest(&found, "system memory").ranking.len(), 2);
    assert_eq!(contest(&found, "latency p50").ranking.len(), 3);
    assert!(
        found.cautions.iter().any(|caution| caution == "system memory was not measured of c: c is not ranked by it")
    );
}

#[test]
fn a_cell_that_lacks_a_figure_in_some_runs_is_not_ranked_by_the_others() {
    let mut cells = [cell("a", &[], &[100.0; 3]), cell("b", &[], &[300.0; 3]), cell("c", &[], &[50.0; 4])];
    // Messages are lost in one run. The samples that are left are too few for the percentile.
    cells[2].runs[1].record.latency.total.as_mut().unwrap().upper.p99 = None;
    let found = evaluate(&[axis("system", &["a", "b", "c"])], 1, &cells).unwrap();
    assert_eq!(contest(&found, "latency p99").ranking, ["a", "b"]);
    assert_eq!(contest(&found, "latency p50").ranking.len(), 3);
    let told = "latency p99 is missing in 1 of 4 runs of c: c is not ranked by it";
    assert!(found.cautions.iter().any(|caution| caution == told), "{:?}", found.cautions);
    let found = evaluate(&[axis("system", &["b", "c"])], 1, &cells[1..]).unwrap();
    assert!(found.contests.iter().all(|contest| contest.figure != "latency p99"));
    assert!(found.cautions.iter().any(|caution| caution == told), "{:?}", found.cautions);
}

#[test]
fn a_system_that_was_run_after_the_others_is_not_proven_to_differ() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    for (place, run) in cells.iter_mut().flat_map(|cell| &mut cell.runs).enumerate() {
        run.record.run.started_at = format!("2026-03-01T09:0{place}:00Z");
    }
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let contest = contest(&found, "latency p50");
    assert_eq!((contest.winner.as_deref(), contest.duels[0].grade()), (None, Grade::Likely));
    let [told] = &found.cautions[..] else { panic!("one caution: {:?}", found.cautions) };
    assert!(told.starts_with("fast ran before slow: their runs were not interleaved"), "{told}");
}

#[test]
fn one_repetition_of_each_cell_says_nothing_of_the_order() {
    let mut cells = [cell("fast", &[], &[100.0]), cell("slow", &[], &[300.0])];
    for (place, run) in cells.iter_mut().flat_map(|cell| &mut cell.runs).enumerate() {
        run.record.run.started_at = format!("2026-03-01T09:0{place}:00Z");
    }
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.cautions.iter().all(|caution| !caution.contains("interleaved")), "{:?}", found.cautions);
}

#[test]
fn ids_are_file_names_and_labels_are_words() {
    let axes = [axis("system", &["a", "b"]), axis("qos", &["0", "2"]), axis("limit", &["cpu=0.5,memory=256MB"])];
    let settings = settings(&[("system", "a"), ("qos", "2"), ("limit", "cpu=0.5,memory=256MB")]);
    assert_eq!(cell_id(&axes, &settings), "a_2_cpu=0.5-memory=256MB");
    assert_eq!(cell_label(&axes, &settings), "a, qos 2");
    assert_eq!(cell_label(&axes[2..], &settings), "cpu=0.5,memory=256MB");
}

/// The same run with clocks that have no error bound: its times must not be used.
fn without_times(mut run: RunInput) -> RunInput {
    run.run.verdict = VerdictStatus::Invalid;
    run.record.verdict.status = VerdictStatus::Invalid;
    run.record.verdict.reasons = vec![crate::record::Reason {
        code: "V22".to_owned(),
        status: VerdictStatus::Invalid,
        text: "made up".to_owned(),
        hint: String::new(),
    }];
    run
}

#[test]
fn a_run_without_usable_times_has_its_counts_in_the_cell_and_its_times_are_not_judged() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    cells[0].runs[1] = without_times(cells[0].runs[1].clone());
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let figure = |name: &str| found.cells[0].figures.iter().find(|figure| figure.figure == name).unwrap();
    let p50 = figure("latency p50");
    assert_eq!((&p50.values[..], p50.shown_only), (&[Some(100.0), Some(104.0), Some(98.0)][..], false));
    assert!((p50.mean.unwrap() - 99.0).abs() < 0.1, "of the two that may be used: {p50:?}");
    assert!(figure("delivered").values.iter().all(Option::is_some));
    assert!(figure("system CPU a million").values.iter().all(Option::is_some));
    assert_eq!(upper(&found.cells[0].latency).unwrap().count, 200, "of two runs");
    assert_eq!(contest(&found, "latency p99").winner, None, "two runs are too few");
    let told = found
        .cautions
        .iter()
        .any(|caution| caution == "the times of 1 run are shown and not judged, as the verdict says (V22)");
    assert!(told, "{:?}", found.cautions);
}

#[test]
fn the_limits_of_the_workload_are_in_each_cell_and_missed_ones_in_a_caution() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    assert_eq!(evaluate(&systems(), 1, &cells).unwrap().cells[0].objectives, Some(vec![]), "there were none");
    let limits = crate::threshold::Objectives::parse("p50<0.2ms,loss=0,memory_per_connection<1MB").unwrap();
    let runs = cells.iter_mut().flat_map(|cell| &mut cell.runs);
    runs.for_each(|run| crate::objectives::assess(&mut run.record, &limits));
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let written = ["p50<0.2ms", "loss=0", "memory_per_connection<1MB"].map(str::to_owned);
    assert_eq!(found.cells[1].objectives, Some(written.to_vec()));
    let expected = "limits of the runs were missed: p50<0.2ms in 3 of 6 runs; not measured: memory_per_connection<1MB in 6 of 6 \
                    runs (`pubmark check` has more)";
    assert!(found.cautions.iter().any(|caution| caution == expected), "{:?}", found.cautions);
}

#[test]
fn a_value_that_the_verdict_excludes_is_marked() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    cells[0].runs[1] = without_times(cells[0].runs[1].clone());
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let excluded = |name: &str| {
        let figure = found.cells[0].figures.iter().find(|figure| figure.figure == name).unwrap();
        figure.excluded.clone()
    };
    assert_eq!((excluded("latency p50"), excluded("delivered")), (vec![2], vec![]));
}

#[test]
fn a_cell_of_runs_without_usable_times_is_ranked_by_what_they_count() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    cells[0].runs = cells[0].runs.drain(..).map(without_times).collect();
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert!(found.contests.iter().all(|contest| !contest.figure.starts_with("latency")), "no latency to compare");
    assert_eq!(contest(&found, "system memory").ranking.len(), 2);
    let p50 = found.cells[0].figures.iter().find(|figure| figure.figure == "latency p50").unwrap();
    assert!(p50.shown_only && p50.mean.is_some() && found.cells[0].latency.is_some(), "shown all the same");
}

#[test]
fn metrics_of_the_users_own_have_figures_beside_the_others_and_are_not_judged() {
    let mut cells = [cell("one", &[], &[100.0, 101.0, 102.0]), cell("other", &[], &[100.0, 101.0, 102.0])];
    for (cell, ms) in cells.iter_mut().zip([1.0, 2.0]) {
        for run in &mut cell.runs {
            run.record.custom =
                vec![sample::custom("lost", "ms", [0.9 * ms, ms]), sample::custom("energy", "mJ", [5.0, 5.0])];
        }
    }
    let found = evaluate(&[axis("system", &["one", "other"])], 1, &cells).unwrap();
    let [lost, energy] = &found.cells[1].custom[..] else { panic!("two metrics: {:?}", found.cells[1].custom) };
    let bounds = lost.figure.mean_bounds().map(|mean| mean.map(f64::round));
    assert_eq!((&*lost.figure.figure, bounds), ("lost", [Some(1_800.0), Some(2_000.0)]), "in µs");
    assert_eq!((&*energy.unit, energy.figure.mean), ("mJ", Some(5.0)));
    assert_eq!(
        (lost.as_figure().label(), energy.as_figure().label()),
        ("custom.lost".into(), "custom.energy (mJ)".into())
    );
    let own = found.cells[0].figures.iter().find(|figure| figure.figure == "lost").unwrap();
    assert_eq!(own.mean, Some(0.0), "pubmark's own figure of that name is another");
    assert!(found.contests.iter().all(|contest| !["lost", "energy"].contains(&contest.figure.as_str())));
}
