//! Every value of a publication that stands in `experiments/` or `papers/`, compared with the publication's own tables
//! in `crates/model/data/`, whose README has the sources.
//!
//! A value has to be equal to the publication's, or to be it rounded to the digits that are written; the values with
//! fewer digits than the publication are listed below. Some are converted before they are compared: what arrives is
//! 1 − what is lost, and ComBench's rates are its messages of 60 s divided by 60. No value is left out: sums and ratios
//! of printed values stand in no file, and those of mq-bench, which have no licence, in none either.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, HashMap};

use pubmark_model::experiment::{Experiment, load, names};
use pubmark_paper::definition;

const PSMARK: &str = include_str!("../../model/data/psmark_printed.csv");
const COMBENCH: &str = include_str!("../../model/data/combench_printed.csv");
const EDGE: &str = include_str!("../../model/data/edge_printed.csv");

/// Differences from the conversion of decimal numbers, in the unit of the written value.
const OF_CONVERSION: f64 = 1e-5;

/// A value of a publication, in the unit of [`pubmark_model::experiment::PaperRow::value`].
struct Published {
    value: f64,
    /// Only a limit is printed: less than so much was lost.
    is_limit: bool,
}

type Row = HashMap<&'static str, &'static str>;

fn rows(csv: &'static str) -> Vec<Row> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| header.iter().copied().zip(line.split(',')).collect()).collect()
}

fn number(row: &Row) -> f64 {
    row["value"].parse().unwrap_or_else(|_| panic!("{row:?}"))
}

fn key(experiment: &str, figure: &str, at: BTreeMap<&str, String>) -> String {
    format!("{experiment}: {figure} at {at:?}")
}

/// `PSMark-HM-2x` is `smart-home-2x` here.
fn workload(psmark: &str) -> String {
    let name = psmark.strip_prefix("PSMark-").unwrap();
    let (domain, scale) = name.split_once('-').map_or((name, None), |(domain, scale)| (domain, Some(scale)));
    let ours = match domain {
        "C" => "smart-city",
        "F" => "smart-factory",
        "HC" => "smart-healthcare",
        "HM" => "smart-home",
        other => panic!("{other} is no domain"),
    };
    scale.map_or_else(|| ours.to_owned(), |scale| format!("{ours}-{scale}"))
}

/// The tables of PSMark. What could not complete a workload has no value.
fn psmark() -> Vec<(String, Published)> {
    let published = |row: Row| {
        let experiment = match row["table"] {
            "III" | "IV" | "V" => "psmark-low",
            "VI" => "psmark-high",
            "VII" => "psmark-one-node",
            other => panic!("no experiment repeats table {other}"),
        };
        let limit = row["value"].strip_prefix('<');
        let number: f64 = limit.unwrap_or(row["value"]).parse().unwrap_or_else(|_| panic!("{row:?}"));
        // With one node the mean over pairs of nodes is the mean, and the rate of a node is that of the run.
        let is_of_one = experiment == "psmark-one-node";
        let (figure, value) = match row["metric"] {
            "latency_mean_ms" if is_of_one => ("latency mean", number * 1e3),
            "latency_mean_ms" => ("latency mean of pairs", number * 1e3),
            "latency_p90_ms" => ("latency p90", number * 1e3),
            "latency_p95_ms" => ("latency p95", number * 1e3),
            "latency_p99_ms" => ("latency p99", number * 1e3),
            "throughput_msg_per_s" if is_of_one => ("delivered rate", number),
            "throughput_msg_per_s" => ("received per node", number),
            "drop_percent" => ("delivered by the end", 1.0 - number / 100.0),
            "system_cpu_percent" | "cpu_delta_percent" => ("system CPU of the machine", number / 100.0),
            other => panic!("no table has {other}"),
        };
        let system = if row["system"] == "OpenDDS" { "DDS" } else { row["system"] };
        let at = BTreeMap::from([("system", system.to_owned()), ("workload", workload(row["workload"]))]);
        (key(experiment, figure, at), Published { value, is_limit: limit.is_some() })
    };
    rows(PSMARK).into_iter().filter(|row| row["value"] != "N/A").map(published).collect()
}

/// The figures of ComBench, except that over time.
fn combench() -> Vec<(String, Published)> {
    let published = |row: Row| {
        let (kind, x, number) = (row["protocol_or_broker"], row["x"], number(&row));
        let (experiment, figure, first, second, value) = match (row["experiment"], row["metric"]) {
            ("efficiency_protocols", "protocol_efficiency") => {
                let system = if kind == "coap" { "CoAP".to_owned() } else { kind.to_uppercase() };
                ("combench-efficiency", "sent efficiency", ("system", system), ("payload", format!("{x}B")), number)
            }
            ("efficiency_mqtt_qos", "protocol_efficiency") => {
                let level = kind.strip_prefix("qos").unwrap().to_owned();
                ("combench-efficiency-qos", "sent efficiency", ("qos", level), ("payload", format!("{x}B")), number)
            }
            ("packet_loss", "message_loss_ratio_pooled") => {
                let percent = x.parse::<f64>().unwrap() * 100.0;
                let link = format!("subscriber={{series: [{{at: 1ms, loss: {percent:.0}%}}]}}");
                let link = if percent == 0.0 { "none".to_owned() } else { link };
                let system = ("system", kind.to_uppercase());
                ("combench-loss", "delivered by the end", system, ("link", link), 1.0 - number)
            }
            ("broker_resilience", "received_messages_60s_mean_of_runs") => {
                let (system, scale) = (("system", kind.to_owned()), ("scale", x.to_owned()));
                ("combench-resilience", "delivered rate", system, scale, number / 60.0)
            }
            ("broker_resilience", "mean_latency_ms_mean_of_runs") => {
                let (system, scale) = (("system", kind.to_owned()), ("scale", x.to_owned()));
                ("combench-resilience", "latency mean", system, scale, number * 1e3)
            }
            other => panic!("no experiment repeats {other:?}"),
        };
        (key(experiment, figure, BTreeMap::from([first, second])), Published { value, is_limit: false })
    };
    rows(COMBENCH).into_iter().filter(|row| !is_over_time(row)).map(published).collect()
}

fn is_over_time(row: &Row) -> bool {
    row["experiment"] == "bandwidth_limitation"
}

/// Tables III and IV of the edge testbed, and what its text says of single brokers at 11 B.
fn edge() -> Vec<(String, Published)> {
    let published = |row: Row| {
        let experiment = match row["platform"] {
            "VM" => "edge-testbed",
            "RPi" => "edge-pi",
            other => panic!("no experiment repeats {other}"),
        };
        let figure = match row["metric"] {
            "iqr" => "latency IQR",
            "median_latency" | "median_response_time_approx" => "latency p50",
            other => panic!("no table has {other}"),
        };
        let link = match row["scenario"] {
            "local" => "edge-local",
            "optimal" => "edge-optimal-printed",
            "worst" => "edge-worst-printed",
            other => panic!("{other} is no scenario"),
        };
        let payload = match row["payload"] {
            "hello-world (11 B)" => "11B",
            "1KB" => "1024B",
            "10KB" => "10240B",
            "1MB" => "1024000B",
            other => panic!("{other} is no payload"),
        };
        let at = BTreeMap::from([
            ("system", row["broker"].to_lowercase()),
            ("link", link.to_owned()),
            ("payload", payload.to_owned()),
        ]);
        (key(experiment, figure, at), Published { value: number(&row) * 1e3, is_limit: false })
    };
    rows(EDGE).into_iter().map(published).collect()
}

#[derive(Debug, PartialEq)]
enum Match {
    Equal,
    /// Equal after rounding to the digits that are written.
    Rounded,
    Wrong,
}

/// Compares a value as written, such as `3.94ms`, with the publication's.
fn compare(written: &str, value: f64, published: f64) -> Match {
    let number = written.trim_start_matches(['<', '>']);
    let digits = number.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match &number[digits.len()..] {
        "" => 1.0,
        "%" => 0.01,
        "ms" => 1e3,
        other => panic!("`{other}` of `{written}` is none of the units here"),
    };
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half_a_digit = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap());
    match (value - published).abs() / unit {
        difference if difference <= OF_CONVERSION => Match::Equal,
        difference if difference <= half_a_digit + OF_CONVERSION => Match::Rounded,
        _ => Match::Wrong,
    }
}

fn experiment(name: &str) -> Experiment {
    load(name, |_, _, _| Ok(())).unwrap().experiment
}

#[test]
fn a_printed_value_is_what_the_publication_prints() {
    let all: Vec<(String, Published)> = psmark().into_iter().chain(combench()).chain(edge()).collect();
    let number = all.len();
    let mut published: BTreeMap<String, Published> = all.into_iter().collect();
    assert_eq!(published.len(), number, "a value is twice in the data");
    let (mut wrong, mut rounded) = (vec![], vec![]);
    for name in names() {
        for figures in &experiment(name).papers {
            for row in &figures.rows {
                let at = figures.columns.iter().map(String::as_str).zip(row.at.iter().cloned()).collect();
                let key = key(name, &figures.figure, at);
                let written = &row.written;
                let Some(found) = published.remove(&key) else {
                    wrong.push(format!("{key}: {written} is in no table, or twice in the file"));
                    continue;
                };
                if written.starts_with('>') != found.is_limit {
                    wrong.push(format!("{key}: only one of {written} and the table's value is a limit"));
                }
                match compare(written, row.value, found.value) {
                    Match::Equal => {}
                    Match::Rounded => rounded.push(format!("{key}: {written}")),
                    Match::Wrong => wrong.push(format!("{key}: {written}, where the table has {}", found.value)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(published.is_empty(), "in no experiment: {:?}", published.keys());
    // Messages of 60 s, divided by 60, have no last digit.
    rounded.retain(|one| !one.starts_with("combench-resilience: delivered rate"));
    assert_eq!(
        rounded,
        ["psmark-low: latency mean of pairs at {\"system\": \"DDS\", \"workload\": \"smart-factory-2x\"}: 25991ms"],
        "these have fewer digits than the publication"
    );
}

/// The figures over time: by figure, column, and second or seconds.
fn combench_over_time() -> BTreeMap<(&'static str, String, String), f64> {
    let published = |row: Row| {
        let (figure, unit) = match row["metric"] {
            "delayed_messages" => ("messages under way", 1.0),
            "latency_median_ms" => ("latency p50", 1e3),
            "latency_max_ms" => ("latency max", 1e3),
            other => panic!("no figure has {other}"),
        };
        ((figure, row["protocol_or_broker"].to_owned(), row["x"].to_owned()), number(&row) * unit)
    };
    rows(COMBENCH).into_iter().filter(is_over_time).map(published).collect()
}

#[test]
fn a_value_over_time_is_what_the_publication_prints() {
    let mut published = combench_over_time();
    assert_eq!(published.len(), 69 + 24);
    for series in definition::find("combench").unwrap().series {
        let figure = series.figure.name();
        for (column, values) in &series.printed {
            for ((from, to), value) in series.spans().into_iter().zip(values) {
                let x = if figure == "messages under way" { to.to_string() } else { format!("{from}-{to}") };
                let found = published.remove(&(figure, column.to_lowercase(), x));
                let is_equal = found.is_some_and(|found| (found - value).abs() < 0.5);
                assert!(is_equal, "{}: {column} at {to} s: {value}, where the table has {found:?}", series.title);
            }
        }
    }
    assert!(published.is_empty(), "in no figure over time: {published:?}");
}

#[test]
fn a_wrong_digit_is_noticed() {
    assert_eq!(compare("15.23ms", 15_230.0, 15_230.0), Match::Equal);
    assert_eq!(compare("15.24ms", 15_240.0, 15_230.0), Match::Wrong);
    assert_eq!(compare("28.09%", 0.2809, 0.2808), Match::Wrong);
    assert_eq!(compare("0.0187", 0.0187, 0.0186), Match::Wrong);
    assert_eq!(compare("690", 690.0, 691.0), Match::Wrong);
    assert_eq!(compare("66.7", 66.7, 3_999.333 / 60.0), Match::Rounded);
    assert_eq!(compare("66.6", 66.6, 3_999.333 / 60.0), Match::Wrong);
    assert_eq!(compare(">99.9%", 0.999, 0.999), Match::Equal);
}
