//! One CSV file for each table of a record: a header line, one observation per line, times in µs, an empty field for
//! values that were not measured.

mod content;
mod custom;
mod efficiency;
mod experiment;
mod latency_bins;
mod latency_breakdown;
mod nodes;
mod sites;
mod transform;

use std::borrow::Cow;
use std::fmt::Display;

use pubmark_record::cost::Usage;
use pubmark_record::latency::{lower, upper};
use pubmark_record::record::{Delivery, Record, Summary};
use pubmark_record::requests::RequestFigures;
use pubmark_record::wanted::not_delivered;

use crate::words::{self, STATISTICS, distributions};

pub use experiment::{cells, runs, trials, unit};

/// A table as a CSV file.
pub struct CsvTable {
    /// Name of the file.
    pub file: &'static str,
    /// Description of the content.
    pub holds: &'static str,
    /// Renders the file.
    pub render: fn(&Record) -> String,
}

/// All tables. A new one is a function and a row here.
pub const TABLES: [CsvTable; 14] = [
    CsvTable { file: "summary.csv", holds: "every single figure: figure, statistic, unit, value", render: summary },
    CsvTable { file: "by_type.csv", holds: "messages and latencies of each device type", render: by_type },
    CsvTable { file: "by_pair.csv", holds: "delivery and latency from node to node", render: by_pair },
    CsvTable { file: "by_label.csv", holds: "delivery and latency from site to site", render: sites::by_label },
    CsvTable { file: "by_node.csv", holds: "what each node received a second and took", render: nodes::by_node },
    CsvTable { file: "series.csv", holds: "rates and latencies over time", render: series },
    CsvTable {
        file: "latency_bins.csv",
        holds: "distributions of the latency over time",
        render: latency_bins::latency_bins,
    },
    CsvTable { file: "resources.csv", holds: "CPU and memory over time", render: resources },
    CsvTable { file: "curve.csv", holds: "percentile curves", render: curve },
    CsvTable { file: "efficiency.csv", holds: "payload over bytes carried, by group", render: efficiency::efficiency },
    CsvTable {
        file: "latency_breakdown.csv",
        holds: "the latency breakdown",
        render: latency_breakdown::latency_breakdown,
    },
    CsvTable {
        file: "content.csv",
        holds: "what subscribers with `where` matched and filtered",
        render: content::content,
    },
    CsvTable {
        file: "transform.csv",
        holds: "what steps of `transform` did and cost, by device group",
        render: transform::transform,
    },
    CsvTable { file: "custom.csv", holds: "metrics of your own, whole and by part", render: custom::custom },
];

/// A count of the message accounting with its name in the record.
type BookColumn = (&'static str, fn(&Delivery) -> u64);

const BOOKS: [BookColumn; 23] = [
    ("offered", |books| books.offered),
    ("sent", |books| books.sent),
    ("skipped_planned", |books| books.skipped_planned),
    ("skipped_disconnected", |books| books.skipped_disconnected),
    ("refused", |books| books.refused),
    ("unsent", |books| books.unsent),
    ("expected", |books| books.expected),
    ("delivered", |books| books.delivered),
    ("lost", |books| books.lost),
    ("unknown", |books| books.unknown),
    ("late", |books| books.late),
    ("duplicated", |books| books.duplicated),
    ("out_of_order", |books| books.out_of_order),
    ("overlap", |books| books.overlap),
    ("retained_replay", |books| books.retained_replay),
    ("truncated", |books| books.truncated),
    ("corrupt", |books| books.corrupt),
    ("foreign", |books| books.foreign),
    ("absent", |books| books.absent),
    ("prevented", |books| books.prevented),
    ("delivered_after_refusal", |books| books.delivered_after_refusal),
    ("filtered_out", |books| books.filtered_out),
    ("unmatched", |books| books.unmatched),
];

/// A cost figure of one side with its name and unit.
type CostColumn = (&'static str, &'static str, fn(&Usage) -> Option<u64>);

const FURTHER_COSTS: [CostColumn; 9] = [
    ("idle_rss", "bytes", |usage| usage.idle_rss_bytes),
    ("peak_pss", "bytes", |usage| usage.peak_pss_bytes),
    ("cgroup_peak", "bytes", |usage| usage.cgroup_peak_bytes),
    ("threads", "threads", |usage| usage.threads),
    ("descriptors", "descriptors", |usage| usage.descriptors),
    ("voluntary_switches", "switches", |usage| usage.voluntary_switches),
    ("involuntary_switches", "switches", |usage| usage.involuntary_switches),
    ("received", "bytes", |usage| usage.received_bytes),
    ("sent", "bytes", |usage| usage.sent_bytes),
];

fn summary(record: &Record) -> String {
    let mut table = Table::new(&["run", "figure", "statistic", "unit", "value"]);
    let mut add = |figure: &str, statistic: &str, unit: &str, value: Option<f64>| {
        table.row(&[text(&record.run.name), text(figure), text(statistic), text(unit), optional(value)]);
    };
    for (name, get) in BOOKS {
        add("delivery", name, "messages", Some(get(&record.delivery.messages) as f64));
    }
    let missing = not_delivered(record, &record.delivery.messages);
    add("delivery", "not_delivered", "messages", Some(missing as f64));
    if let Some(requests) = &record.requests {
        for (name, value) in request_counts(requests) {
            add("requests", name, "requests", Some(value as f64));
        }
        add("requests", "answered_rate", "requests/s", Some(requests.answered_per_s));
        for group in &requests.by_group {
            let figure = format!("requests of {}", group.name);
            add(&figure, "sent", "requests", Some(group.outcomes.sent as f64));
            add(&figure, "answered", "requests", Some(group.outcomes.answered as f64));
            add(&figure, "round_trip_p50", "us", upper(&group.round_trip).and_then(|summary| summary.p50));
            add(&figure, "round_trip_p99", "us", upper(&group.round_trip).and_then(|summary| summary.p99));
            add(&figure, "round_trip_p50_lower", "us", lower(&group.round_trip).and_then(|summary| summary.p50));
            add(&figure, "round_trip_p99_lower", "us", lower(&group.round_trip).and_then(|summary| summary.p99));
        }
    }
    for distribution in distributions(record) {
        add(distribution.key, "count", "samples", distribution.summary.map(|summary| summary.count as f64));
        for statistic in &STATISTICS {
            add(distribution.key, statistic.name, "us", distribution.summary.and_then(statistic.get));
        }
        if let Some(lower) = distribution.lower {
            let key = format!("{}_lower", distribution.key);
            STATISTICS.iter().for_each(|statistic| add(&key, statistic.name, "us", (statistic.get)(lower)));
        }
        add(distribution.key, "negative", "samples", distribution.summary.map(|summary| summary.negative as f64));
        add(distribution.key, "clipped", "samples", distribution.summary.map(|summary| summary.clipped as f64));
    }
    let rates = &record.throughput;
    add("throughput", "offered", "messages/s", Some(rates.offered_per_s));
    add("throughput", "sent", "messages/s", Some(rates.sent_per_s));
    add("throughput", "delivered", "messages/s", Some(rates.delivered_per_s));
    add("throughput", "payload", "bytes/s", Some(rates.payload_bytes_per_s));
    for (side, usage) in words::costs(record, "generator") {
        let side = side.as_str();
        add(side, "cpu", "s", usage.map(|usage| usage.cpu_seconds));
        add(side, "cores", "cores", usage.map(|usage| usage.cores));
        add(side, "peak_rss", "bytes", usage.map(|usage| usage.peak_rss_bytes as f64));
        for (name, unit, get) in FURTHER_COSTS {
            add(side, name, unit, usage.and_then(|usage| get(&usage)).map(|value| value as f64));
        }
    }
    add("system", "cpu_per_million", "s", record.cost.system_cpu_s_per_million);
    add("generator", "cpu_per_million", "s", record.cost.generator_cpu_s_per_million);
    if record.cost.client_programs.is_some() {
        add("client program", "cpu_per_million", "s", record.cost.client_programs_cpu_s_per_million);
    }
    add("system", "memory_per_connection", "bytes", record.cost.system_bytes_per_connection);
    if let Some(limits) = &record.cost.limits {
        for (name, unit, value) in [
            ("periods", "periods", limits.periods.map(|value| value as f64)),
            ("throttled", "periods", limits.throttled_periods.map(|value| value as f64)),
            ("throttled_time", "s", limits.throttled_seconds),
            ("memory_limit_hits", "times", limits.memory_limit_hits.map(|value| value as f64)),
            ("out_of_memory_kills", "times", limits.out_of_memory_kills.map(|value| value as f64)),
        ] {
            add("limits", name, unit, value);
        }
    }
    if let Some(contention) = &record.cost.contention {
        let wait = |of: fn(&Usage) -> Option<u64>, usage: Option<Usage>| Some(of(&usage?)? as f64 / 1e9);
        let cost = &record.cost;
        for (name, unit, value) in [
            ("cpu_pressure", "share", contention.cpu_pressure),
            ("other_programs", "cores", contention.other_cores),
            ("system_run_queue_wait", "s", wait(|usage| usage.run_queue_wait_ns, cost.system)),
            ("system_long_wait", "s", wait(|usage| usage.run_queue_long_wait_ns, cost.system)),
            ("generator_run_queue_wait", "s", wait(|usage| usage.run_queue_wait_ns, cost.generator)),
        ] {
            add("contention", name, unit, value);
        }
    }
    if let Some(host) = &record.cost.host {
        for (name, unit, value) in [
            ("cores", "cores", host.cores),
            ("peak_used", "bytes", host.peak_used_bytes.map(|value| value as f64)),
            ("received", "bytes", host.received_bytes.map(|value| value as f64)),
            ("sent", "bytes", host.sent_bytes.map(|value| value as f64)),
            ("failed_readings", "readings", Some(host.failed_readings as f64)),
        ] {
            add("host", name, unit, value);
        }
    }
    table.text
}

/// Counts of requests with their names in the record; those of responders have the prefix `responder_`.
fn request_counts(requests: &RequestFigures) -> [(&'static str, u64); 21] {
    let (books, done) = (&requests.outcomes, &requests.responses);
    [
        ("requesters", requests.requesters),
        ("responders", requests.responders),
        ("sent", books.sent),
        ("answered", books.answered),
        ("late", books.late),
        ("late_by_generator", books.late_by_generator),
        ("timed_out", books.timed_out),
        ("unknown", books.unknown),
        ("duplicated", books.duplicated),
        ("misdirected", books.misdirected),
        ("after_refusal", books.after_refusal),
        ("peak_in_flight", requests.peak_in_flight),
        ("responder_received", done.received),
        ("responder_answered", done.answered),
        ("responder_dropped", done.dropped),
        ("responder_dropped_by_generator", done.dropped_by_generator),
        ("responder_without_address", done.without_address),
        ("responder_refused", done.refused),
        ("responder_broken", done.broken),
        ("responder_unsent", done.unsent),
        ("responder_refused_later", done.refused_later),
    ]
}

fn by_type(record: &Record) -> String {
    let mut names: Vec<String> = ["type", "devices", "availability"].map(String::from).to_vec();
    names.extend(BOOKS.iter().map(|(name, _)| (*name).to_string()));
    names.push("not_delivered".to_owned());
    for key in ["latency_us", "service_latency_us", "backpressure_us", "latency_lower_us", "service_latency_lower_us"] {
        names.extend(summary_names(key));
    }
    let mut table = Table::new(&names);
    for row in &record.tables.by_type {
        let mut fields = vec![text(&row.name), row.devices.to_string(), optional(row.availability)];
        fields.extend(BOOKS.iter().map(|(_, get)| get(&row.delivery).to_string()));
        fields.push(not_delivered(record, &row.delivery).to_string());
        for summary in [upper(&row.latency), upper(&row.service_latency), row.backpressure.as_ref()] {
            fields.extend(summary_fields(summary));
        }
        for summary in [lower(&row.latency), lower(&row.service_latency)] {
            fields.extend(summary_fields(summary));
        }
        table.row(&fields);
    }
    table.text
}

fn by_pair(record: &Record) -> String {
    let mut names: Vec<String> =
        ["publisher_node", "subscriber_node", "expected", "delivered", "lost", "clock_bound_us"]
            .map(String::from)
            .to_vec();
    names.extend(summary_names("latency_us"));
    names.push("silent_pairs".to_owned());
    names.extend(summary_names("latency_lower_us"));
    let mut table = Table::new(&names);
    for row in &record.tables.by_pair {
        let mut fields = vec![
            text(&row.publisher_node),
            text(&row.subscriber_node),
            row.expected.to_string(),
            row.delivered.to_string(),
            row.lost.to_string(),
            optional(row.clock_bound_us),
        ];
        fields.extend(summary_fields(upper(&row.latency)));
        fields.push(optional(row.silent_pairs));
        fields.extend(summary_fields(lower(&row.latency)));
        table.row(&fields);
    }
    table.text
}

fn series(record: &Record) -> String {
    let mut table = Table::new(&[
        "t_s",
        "width_s",
        "offered",
        "sent",
        "delivered",
        "delivered_bytes",
        "p50_us",
        "p50_width_s",
        "p99_us",
        "p99_width_s",
        "max_us",
        "max_lag_us",
        "p50_lower_us",
        "p99_lower_us",
        "max_lower_us",
    ]);
    for row in &record.tables.series {
        let lower = row.latency.lower.unwrap_or_default();
        table.row(&[
            row.t_s.to_string(),
            row.width_s.to_string(),
            row.offered.to_string(),
            row.sent.to_string(),
            row.delivered.to_string(),
            row.delivered_bytes.to_string(),
            optional(row.latency.upper.p50_us),
            optional(row.latency.upper.p50_width_s),
            optional(row.latency.upper.p99_us),
            optional(row.latency.upper.p99_width_s),
            optional(row.latency.upper.max_us),
            optional(row.max_scheduler_lag_us),
            optional(lower.p50_us),
            optional(lower.p99_us),
            optional(lower.max_us),
        ]);
    }
    table.text
}

fn resources(record: &Record) -> String {
    let mut table = Table::new(&[
        "t_s",
        "system_cores",
        "system_rss_bytes",
        "system_pss_bytes",
        "system_cgroup_bytes",
        "system_threads",
        "system_descriptors",
        "system_switches_per_s",
        "system_received_per_s",
        "system_sent_per_s",
        "system_throttled",
        "generator_cores",
        "generator_rss_bytes",
    ]);
    for row in &record.tables.resource_series {
        table.row(&[
            row.t_s.to_string(),
            optional(row.system_cores),
            optional(row.system_rss_bytes),
            optional(row.system_pss_bytes),
            optional(row.system_cgroup_bytes),
            optional(row.system_threads),
            optional(row.system_descriptors),
            optional(row.system_switches_per_s),
            optional(row.system_received_per_s),
            optional(row.system_sent_per_s),
            optional(row.system_throttled),
            optional(row.generator_cores),
            optional(row.generator_rss_bytes),
        ]);
    }
    table.text
}

fn curve(record: &Record) -> String {
    let mut table = Table::new(&["curve", "samples", "fraction", "value_us"]);
    for curve in &record.tables.curves {
        for (fraction, value_us) in &curve.points {
            table.row(&[text(&curve.name), curve.count.to_string(), fraction.to_string(), value_us.to_string()]);
        }
    }
    table.text
}

fn summary_names(key: &str) -> impl Iterator<Item = String> {
    let stem = key.trim_end_matches("_us").to_string();
    let count = format!("{stem}_count");
    std::iter::once(count)
        .chain(STATISTICS.iter().map(move |statistic| format!("{stem}_{}_us", statistic.name.replace('.', ""))))
}

fn summary_fields(summary: Option<&Summary>) -> Vec<String> {
    let mut fields = vec![optional(summary.map(|summary| summary.count))];
    fields.extend(STATISTICS.iter().map(|statistic| optional(summary.and_then(statistic.get))));
    fields
}

struct Table {
    text: String,
}

impl Table {
    fn new<S: AsRef<str>>(names: &[S]) -> Table {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Table { text: format!("{}\n", names.join(",")) }
    }

    fn row(&mut self, fields: &[String]) {
        self.text.push_str(&fields.join(","));
        self.text.push('\n');
    }
}

/// A text field, quoted where RFC 4180 requires it. A spreadsheet would execute a text that begins like a formula
/// (<https://owasp.org/www-community/attacks/CSV_Injection>): an apostrophe before it prevents that. Numbers stay as they are.
pub fn text(value: &str) -> String {
    let is_formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']) && value.parse::<f64>().is_err();
    let value = if is_formula { Cow::Owned(format!("'{value}")) } else { Cow::Borrowed(value) };
    if value.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", value.replace('"', "\"\""));
    }
    value.into_owned()
}

/// A field; empty for a value that was not measured, or that is no number, such as a quotient by 0.
fn optional<T: Display>(value: Option<T>) -> String {
    let text = value.map_or_else(String::new, |value| value.to_string());
    if ["NaN", "inf", "-inf"].contains(&&*text) { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pubmark_record::sample;

    #[test]
    fn every_line_of_every_table_has_the_header_s_fields() {
        let mut record = sample::record();
        record.custom = vec![sample::custom("jitter", "ms", [0.5, 1.5])];
        record.delivery.content = vec![sample::content()];
        record.cost.transform = vec![sample::transform()];
        for table in &TABLES {
            let text = (table.render)(&record);
            let fields = text.lines().next().unwrap().split(',').count();
            // The sample crossed no link and has no nodes; other tests of this crate use a run that did.
            let is_empty =
                ["efficiency.csv", "latency_breakdown.csv", "by_label.csv", "by_node.csv"].contains(&table.file);
            assert_eq!(text.lines().count() > 1, !is_empty, "{}", table.file);
            assert!(text.lines().all(|line| line.split(',').count() == fields), "{}", table.file);
        }
    }

    #[test]
    fn a_latency_has_its_lower_bound_behind_the_earlier_columns() {
        let record = sample::record();
        let lower_p99 = record.tables.by_type[0].latency.as_ref().and_then(|it| it.lower.as_ref()?.p99);
        for (table, column, value) in [
            (by_type(&record), "latency_lower_p99_us", lower_p99),
            (series(&record), "p99_lower_us", record.tables.series[0].latency.lower.unwrap_or_default().p99_us),
        ] {
            let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let (head, first) = (lines.next().unwrap(), lines.next().unwrap());
            let place = head.iter().position(|name| *name == column).unwrap();
            assert_eq!(first[place], optional(value), "{table}");
            let is_new = |name: &&str| name.contains("lower");
            assert!(head.iter().skip_while(|name| !is_new(name)).all(is_new), "{head:?}");
        }
        let pairs = by_pair(&record);
        assert!(pairs.lines().next().unwrap().contains(",silent_pairs,latency_lower_count,"), "{pairs}");
    }

    #[test]
    fn what_was_not_measured_is_an_empty_field() {
        let mut record = sample::record();
        record.latency.total = None;
        let text = summary(&record);
        assert!(text.contains(",latency,p99,us,\n"), "{text}");
        assert!(text.contains(",delivery,lost,messages,0\n"), "{text}");
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|value| optional(Some(value))), [""; 3]);
    }

    #[test]
    fn what_the_system_prevented_was_not_delivered() {
        let mut record = sample::record();
        (record.delivery.messages.refused, record.delivery.messages.prevented) = (4, 8);
        let text = summary(&record);
        assert!(text.contains(",delivery,prevented,messages,8\n"), "{text}");
        assert!(text.contains(",delivery,not_delivered,messages,8\n"), "{text}");
        assert!(by_type(&record).lines().next().unwrap().contains(",not_delivered,"));
    }

    #[test]
    fn names_with_commas_and_quotes_are_quoted() {
        assert_eq!(text("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(text("plain"), "plain");
    }

    #[test]
    fn a_text_is_no_formula_of_a_spreadsheet() {
        for formula in ["=cmd()", "+cmd()", "-cmd()", "@cmd()", "\tcmd()"] {
            assert_eq!(text(formula), format!("'{formula}"));
        }
        assert_eq!(text("=cmd(\"a\",1)"), "\"'=cmd(\"\"a\"\",1)\"");
        assert_eq!(["-1.5", "+2", "a=b", ""].map(text), ["-1.5", "+2", "a=b", ""]);
    }
}
