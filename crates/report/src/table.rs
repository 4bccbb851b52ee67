//! Runs as a tidy table: one row per run, one column per setting, count or figure, with the unit in the name of the
//! column.
//!
//! [`COLUMNS`] has the settings of a run and the outcomes of its messages; one column for each of [`FIGURES`] follows,
//! even if the verdict excludes the figure: the verdict is a column, too. User-defined metrics of all runs follow; a value with
//! bounds is the upper one. Lower bounds, of latencies and of user-defined metrics, are last.

use pubmark_record::custom::PREFIX;
use pubmark_record::figures::{FIGURES, Figure, Unit, custom_figures};
use pubmark_record::record::{Delivery, Record};
use serde_json::Value;

use crate::words::verdict_word;

/// Format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header (RFC 4180); an empty field for values that were not measured.
    Csv,
    /// One JSON object per line; `null` for values that were not measured.
    Ndjson,
    /// A Markdown table; `—` for values that were not measured.
    Markdown,
}

/// A column of all tables: its name, and its value for a run.
pub struct Column {
    /// Name, ending with the unit.
    pub name: &'static str,
    get: fn(&Record) -> Value,
}

const fn column(name: &'static str, get: fn(&Record) -> Value) -> Column {
    Column { name, get }
}

/// Settings of a run, its verdict, and its messages; the figures follow. A new column is a row here.
pub const COLUMNS: [Column; 41] = [
    column("run", |record| record.run.name.clone().into()),
    column("started_at", |record| record.run.started_at.clone().into()),
    column("status", |record| record.run.status.as_str().into()),
    column("verdict", |record| verdict_word(record.verdict.status).into()),
    column("reasons", |record| codes(record.verdict.reasons.iter().map(|reason| reason.code.as_str()))),
    column("warnings", |record| codes(record.verdict.warnings.iter().map(|warning| warning.code.as_str()))),
    column("pubmark_version", |record| record.run.pubmark_version.clone().into()),
    column("system", |record| record.system.name.clone().into()),
    column("version", |record| record.system.version.clone().into()),
    column("back_end", |record| record.system.back_end.as_str().into()),
    column("profile", |record| record.system.profile.clone().into()),
    column("brokers", |record| record.system.topology.as_ref().map_or(1, |topology| topology.brokers).into()),
    column("limits", |record| record.system.limits.as_ref().map(|limits| limits.requested.clone()).into()),
    column("protocol", |record| record.protocol.publish.clone().into()),
    column("subscribe_protocol", |record| record.protocol.subscribe.clone().into()),
    column("sent_means", |record| record.protocol.sent_means.as_str().into()),
    column("tls", |record| record.settings.tls.into()),
    column("qos", qos),
    column("workload", |record| record.workload.name.clone().into()),
    column("variant", |record| record.workload.variant.as_str().into()),
    column("scale", |record| record.workload.scale.into()),
    column("seed", |record| record.workload.seed.into()),
    column("schedule_hash", |record| record.workload.schedule_hash.clone().into()),
    column("repetition", |record| record.run.repetition.into()),
    column("nodes", |record| record.tables.nodes.len().max(1).into()),
    column("devices", |record| record.workload.devices.into()),
    column("subscribers", |record| record.workload.subscribers.into()),
    column("links", links),
    column("faults", faults),
    column("warmup_s", |record| record.settings.warmup_s.into()),
    column("duration_s", |record| record.settings.duration_s.into()),
    column("offered_per_s", |record| record.throughput.offered_per_s.into()),
    column("offered", |record| messages(record).offered.into()),
    column("sent", |record| messages(record).sent.into()),
    column("skipped_planned", |record| messages(record).skipped_planned.into()),
    column("skipped_disconnected", |record| messages(record).skipped_disconnected.into()),
    column("refused", |record| messages(record).refused.into()),
    column("unsent", |record| messages(record).unsent.into()),
    column("expected", |record| messages(record).expected.into()),
    column("delivered", |record| messages(record).delivered.into()),
    column("late", |record| messages(record).late.into()),
];

/// The table of these runs, with a final newline.
pub fn table(records: &[Record], format: Format) -> String {
    let figures: Vec<Figure> = FIGURES.iter().copied().chain(custom_figures(records.iter())).collect();
    let uppers = figures.iter().map(|figure| figure_column(figure, false));
    let lowers = figures.iter().filter(|figure| has_lower(figure)).map(|figure| figure_column(figure, true));
    let names: Vec<String> = COLUMNS.iter().map(|column| column.name.to_owned()).chain(uppers).chain(lowers).collect();
    render(&names, records.iter().map(|record| row(record, &figures)), format)
}

/// A table of rows with a value for each name of a column, with a final newline.
pub fn render(names: &[String], rows: impl Iterator<Item = Vec<Value>>, format: Format) -> String {
    match format {
        Format::Csv => lines(csv_head(names), rows.map(|row| row.iter().map(csv_field).collect::<Vec<_>>().join(","))),
        // Keys in the order of the columns; a map of serde_json would sort them.
        Format::Ndjson => rows
            .map(|row| {
                let fields = names.iter().zip(row).map(|(name, value)| format!("{}:{value}", Value::from(&**name)));
                format!("{{{}}}\n", fields.collect::<Vec<_>>().join(","))
            })
            .collect(),
        Format::Markdown => {
            // Names of user-defined metrics may come from a record of others.
            let heads: Vec<String> = names.iter().map(|name| crate::markdown::escaped(name)).collect();
            let head = format!("| {} |\n|{}", heads.join(" | "), "---|".repeat(names.len()));
            let line = |row: Vec<Value>| format!("| {} |", row.iter().map(cell).collect::<Vec<_>>().join(" | "));
            lines(head, rows.map(line))
        }
    }
}

fn csv_head(names: &[String]) -> String {
    names.iter().map(|name| crate::csv::text(name)).collect::<Vec<_>>().join(",")
}

fn lines(head: String, rows: impl Iterator<Item = String>) -> String {
    std::iter::once(head).chain(rows).map(|line| line + "\n").collect()
}

fn row(record: &Record, figures: &[Figure]) -> Vec<Value> {
    let own = COLUMNS.iter().map(|column| (column.get)(record));
    let lowers = figures.iter().filter(|figure| has_lower(figure)).map(|figure| Value::from(figure.lower(record)));
    own.chain(figures.iter().map(|figure| figure_value(figure, record))).chain(lowers).collect()
}

/// Whether a figure has a column of its lower bound.
fn has_lower(figure: &Figure) -> bool {
    figure.is_latency || figure.is_custom()
}

/// Value of a figure; counts are integers.
fn figure_value(figure: &Figure, record: &Record) -> Value {
    match (figure.value(record), figure.unit) {
        (Some(count), Unit::Count) => (count as u64).into(),
        (value, _) => value.into(),
    }
}

/// Column name of a figure: `latency p99.9` becomes `latency_p999_us`, `custom.jitter` becomes `custom_jitter_us`; of its lower bound
/// `latency_p999_lower_us`.
fn figure_column(figure: &Figure, is_lower: bool) -> String {
    let label = if figure.is_custom() { format!("{PREFIX}{}", figure.name) } else { figure.name.to_owned() };
    let name = label.replace("p99.9", "p999").replace(['-', ' ', '.'], "_").to_lowercase();
    let name = if is_lower { format!("{name}_lower") } else { name };
    match figure.unit {
        Unit::Count | Unit::Number => name,
        Unit::Share => format!("{name}_share"),
        Unit::Microseconds => format!("{name}_us"),
        Unit::PerSecond => format!("{name}_per_s"),
        Unit::Cores => format!("{name}_cores"),
        Unit::CpuSecondsPerMillion => name.replace("a_million", "s_per_million"),
        Unit::Bytes => format!("{name}_bytes"),
    }
}

fn messages(record: &Record) -> &Delivery {
    &record.delivery.messages
}

/// Codes without repetitions, separated by blanks.
fn codes<'a>(codes: impl Iterator<Item = &'a str>) -> Value {
    codes.collect::<Vec<_>>().join(" ").into()
}

/// The number of a single QoS level, or several levels separated by `+`.
fn qos(record: &Record) -> Value {
    match record.workload.qos[..] {
        [] => Value::Null,
        [only] => only.level().into(),
        ref several => several.iter().map(|qos| qos.level().to_string()).collect::<Vec<_>>().join("+").into(),
    }
}

/// Names of the links, without repetitions.
fn links(record: &Record) -> Value {
    let Some(links) = &record.conditions.links else { return Value::Null };
    let mut names: Vec<&str> = links.groups.iter().map(|group| group.link.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(" ").into()
}

/// Kinds of the faults, in order.
fn faults(record: &Record) -> Value {
    let Some(faults) = &record.conditions.faults else { return Value::Null };
    codes(faults.faults.iter().map(|fault| fault.kind.as_str()))
}

fn csv_field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => crate::csv::text(text),
        other => other.to_string(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => crate::numbers::MISSING.to_owned(),
        Value::String(text) => crate::markdown::escaped(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use pubmark_record::record::Qos;
    use pubmark_record::sample;

    use super::*;

    fn runs() -> Vec<Record> {
        let mut second = sample::record();
        second.run.name = "a \"quoted\", name".to_owned();
        second.workload.qos = vec![Qos::BestEffort, Qos::ExactlyOnce];
        second.latency.total = None;
        vec![sample::record(), second]
    }

    #[test]
    fn every_row_has_every_column_and_names_are_different() {
        let columns = COLUMNS.len() + FIGURES.len() + FIGURES.iter().filter(|figure| figure.is_latency).count();
        for line in table(&[sample::record()], Format::Csv).lines() {
            assert_eq!(line.split(',').count(), columns, "{line}");
        }
        let head = table(&[], Format::Csv);
        let names: BTreeSet<&str> = head.trim().split(',').collect();
        assert_eq!(names.len(), columns, "{head}");
        for name in ["delivered_share", "latency_p999_us", "system_cpu_s_per_million", "system_memory_bytes"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
        assert!(
            names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'))
        );
    }

    #[test]
    fn what_was_not_measured_is_empty_in_csv_null_in_json_and_a_dash_in_markdown() {
        let runs = runs();
        let json: Vec<Value> =
            table(&runs, Format::Ndjson).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(json[0]["latency_p50_us"].as_f64(), runs[0].latency.total.as_ref().unwrap().upper.p50);
        let lower = runs[0].latency.total.as_ref().and_then(|it| it.lower.as_ref()?.p50);
        assert_eq!((json[0]["latency_p50_lower_us"].as_f64(), lower.is_some()), (lower, true));
        assert_eq!((&json[0]["qos"], &json[1]["qos"]), (&1.into(), &"0+2".into()));
        assert_eq!((&json[1]["latency_p50_us"], &json[1]["round_trip_p50_us"]), (&Value::Null, &Value::Null));
        assert_eq!(json[1]["run"], "a \"quoted\", name");
        let csv = table(&runs, Format::Csv);
        let second = csv.lines().nth(2).unwrap();
        assert!(second.starts_with("\"a \"\"quoted\"\", name\",2026-") && second.contains(",,"), "{second}");
        assert!(table(&runs, Format::Markdown).lines().nth(3).unwrap().contains("| — |"));
    }
}
