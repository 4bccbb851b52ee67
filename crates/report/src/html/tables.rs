//! Tables of the page of a run.

use maud::{Markup, html};
use pubmark_record::connections::TlsFigures;
use pubmark_record::latency::{Summary, both, upper};
use pubmark_record::record::{Delivery, Record};
use pubmark_record::tables::{LabelRow, SeriesRow, TypeRow};
use pubmark_record::wanted::not_delivered;

use crate::charts::outcomes;
use crate::markdown::unit_of;
use crate::numbers::{MISSING, TimeUnit, bytes, count, percentage, share, short, significant, time};
use crate::words::{self, Outcome, STATISTICS, distributions};

/// Statistics of the first table; the CSV and Markdown files have the others, too.
const HEADLINE: [&str; 6] = ["min", "p50", "p95", "p99", "p99.9", "max"];

/// Statistics of latency for a device type and a pair of nodes.
const TIMES: [fn(&Summary) -> Option<f64>; 3] = [|times| times.p50, |times| times.p99, |times| Some(times.max)];

/// Distributions of delays that pubmark caused; the others are the system's.
const OURS: [&str; 3] = ["scheduler_lag", "receive_lateness", "kernel_receive_lateness"];

/// Latencies and waits, one per row, all in one unit.
pub(super) fn latencies(record: &Record) -> Markup {
    distributions_of(record, unit_of(record), |key| !OURS.contains(&key))
}

/// Delays that pubmark caused, which determine the width of the latency intervals.
pub(super) fn delays(record: &Record) -> Markup {
    let largest = |row: &words::Distribution| row.summary.map_or(0.0, |summary| summary.p99.unwrap_or(summary.max));
    let ours = distributions(record).iter().filter(|row| OURS.contains(&row.key)).map(largest).fold(0.0, f64::max);
    distributions_of(record, TimeUnit::for_value(ours), |key| OURS.contains(&key))
}

fn distributions_of(record: &Record, unit: TimeUnit, is_shown: impl Fn(&str) -> bool) -> Markup {
    let shown = || STATISTICS.iter().filter(|statistic| HEADLINE.contains(&statistic.name));
    html! {
        div.scroll { table.distributions {
            caption { "Distributions in " (unit.symbol()) "; a percentile with fewer than 10 samples beyond it is " (MISSING) }
            thead { tr { th { "" } th.number { "samples" } @for statistic in shown() { th.number { (statistic.name) } } } }
            tbody {
                @for row in distributions(record).iter().filter(|row| is_shown(row.key)) {
                    tr {
                        th scope="row" { (row.name) small { (row.meaning) } }
                        td.number { (row.summary.map_or_else(|| MISSING.to_string(), |summary| count(summary.count))) }
                        @for statistic in shown() { td.number { (row.text(statistic, unit)) } }
                    }
                }
            }
        } }
    }
}

/// Rates over the measured window.
pub(super) fn rates(record: &Record) -> Markup {
    let rates = &record.throughput;
    html! {
        div.scroll { table {
            caption { "Rate over the measured window" }
            tbody {
                (pair("offered", &format!("{}/s", significant(rates.offered_per_s))))
                (pair("sent", &format!("{}/s", significant(rates.sent_per_s))))
                (pair("delivered", &format!("{}/s", significant(rates.delivered_per_s))))
                (pair("payload delivered", &format!("{}/s", bytes(Some(rates.payload_bytes_per_s)))))
                @match &rates.windows_1s {
                    Some(windows) => (pair(
                        "delivered in full seconds, min / median / max",
                        &format!("{} / {} / {}", significant(windows.min), significant(windows.median), significant(windows.max)),
                    )),
                    None => (pair("delivered in full seconds", MISSING)),
                }
            }
        } }
    }
}

fn pair(name: &str, value: &str) -> Markup {
    html! { tr { th scope="row" { (name) } td.number { (value) } } }
}

/// The message accounting with the meaning of each category.
pub(super) fn books(record: &Record) -> Markup {
    let books = &record.delivery.messages;
    let none: [&str; 0] = [];
    html! {
        div.scroll { table.books {
            thead { tr { th { "messages" } th.number { "count" } th.number { "share" } th { "meaning" } } }
            tbody {
                (whole("offered", books.offered, "due in the measured window"))
                (outcome_rows(&words::sending_outcomes(books), &outcomes::SENDING, books.offered))
                (whole("expected", books.expected, "sent, once for each subscription that held a session then"))
                (outcome_rows(&words::delivery_outcomes(books), &outcomes::DELIVERY, books.expected))
                tr.whole { th scope="row" colspan="4" { "beside them" } }
                (outcome_rows(&words::further_counts(books), &none, books.expected))
                (outcome_rows(&words::particular_counts(record), &none, 0))
            }
        } }
        @if books.approximate { p.hint { "A cap was reached: the counts of missing and further copies may be off." } }
    }
}

pub(super) fn whole(name: &str, value: u64, meaning: &str) -> Markup {
    html! { tr.whole { th scope="row" { (name) small.on-narrow { (meaning) } } td.number { (count(value)) } td {} td { (meaning) } } }
}

pub(super) fn outcome_rows(rows: &[Outcome], classes: &[&str], of: u64) -> Markup {
    html! {
        @for (position, row) in rows.iter().enumerate() {
            tr.none[row.count == 0] {
                th scope="row" {
                    @if let Some(class) = classes.get(position) { span class={ "swatch " (class) } {} }
                    (row.name)
                    small.on-narrow { (row.meaning) }
                }
                td.number { (count(row.count)) }
                td.number { (share(row.count, of)) }
                td { (row.meaning) }
            }
        }
    }
}

/// A count of a type that has a column only if it is not 0 for some type.
type TypeCount = (&'static str, fn(&Delivery) -> u64);

const FURTHER: [TypeCount; 3] = [
    ("unknown", |books| books.unknown),
    ("duplicated", |books| books.duplicated),
    ("out of order", |books| books.out_of_order),
];

/// Device types, worst first: by share not delivered, then by p99.
pub(super) fn types(record: &Record) -> Markup {
    if record.tables.by_type.is_empty() {
        return html! { p.missing { "No breakdown by type was recorded." } };
    }
    let unit = unit_of(record);
    let mut rows: Vec<&TypeRow> = record.tables.by_type.iter().collect();
    let badness = |row: &TypeRow| badness(record, row);
    rows.sort_by(|a, b| badness(b).partial_cmp(&badness(a)).unwrap_or(std::cmp::Ordering::Equal));
    let with_prevented = words::has_prevented_by_type(record);
    let with_churn = rows.iter().any(|row| row.availability.is_some());
    let has_some = |(_, get): &&TypeCount| rows.iter().any(|row| get(&row.delivery) > 0);
    let (further, none): (Vec<&TypeCount>, Vec<&TypeCount>) = FURTHER.iter().partition(|column| has_some(column));
    let with_instead = rows.iter().any(|row| words::instead_of_p99(&row.latency).is_some());
    html! {
        div.scroll { table.sortable {
            caption {
                "Worst first: by share not delivered, then by p99; latency in " (unit.symbol())
                @if with_prevented { "; not delivered: lost, unknown, or prevented by the system" }
                @if with_instead { "; where p99 has too few samples, the highest percentile that has enough" }
                @if !none.is_empty() { "; no message was " (none.iter().map(|(name, _)| *name).collect::<Vec<&str>>().join(", ")) }
            }
            thead { tr {
                th { "type" }
                @for name in ["devices", "offered", "delivered of expected", "lost"] { th.number { (name) } }
                @if with_prevented { th.number { "not delivered" } }
                @for name in ["p50", "p99", "max"] { th.number { (name) } }
                @if with_churn { th.number { "online" } }
                @for (name, _) in &further { th.number { (name) } }
            } }
            tbody { @for row in rows {
                @let missing = with_prevented.then(|| not_delivered(record, &row.delivery));
                (type_row(row, unit, missing, with_churn, &further))
            } }
        } }
    }
}

fn type_row(row: &TypeRow, unit: TimeUnit, missing: Option<u64>, with_churn: bool, further: &[&TypeCount]) -> Markup {
    let books = &row.delivery;
    let [p50, p99, max] = TIMES.map(|time| both(&row.latency, time));
    html! {
        tr {
            th scope="row" { (row.name) }
            (number(row.devices)) (number(books.offered))
            td.number data-sort=(delivered_share(row)) { (share(books.delivered, books.expected)) }
            (number(books.lost))
            @if let Some(missing) = missing { (number(missing)) }
            (interval(unit, p50))
            @match words::instead_of_p99(&row.latency) {
                Some((name, times)) => td.number.instead data-sort=(times[1].unwrap_or(-1.0)) { small { (name) } " " (unit.interval(times)) },
                None => (interval(unit, p99)),
            }
            (interval(unit, max))
            @if with_churn {
                td.number data-sort=(row.availability.unwrap_or(-1.0)) {
                    (percentage(row.availability))
                }
            }
            @for (_, get) in further { (number(get(books))) }
        }
    }
}

fn interval(unit: TimeUnit, times: [Option<f64>; 2]) -> Markup {
    html! { td.number data-sort=(times[1].unwrap_or(-1.0)) { (unit.interval(times)) } }
}

fn number(value: u64) -> Markup {
    html! { td.number data-sort=(value) { (count(value)) } }
}

fn delivered_share(row: &TypeRow) -> f64 {
    if row.delivery.expected == 0 { -1.0 } else { row.delivery.delivered as f64 / row.delivery.expected as f64 }
}

fn badness(record: &Record, row: &TypeRow) -> (f64, f64) {
    let missing = not_delivered(record, &row.delivery);
    let missing = missing as f64 / (row.delivery.delivered + missing).max(1) as f64;
    let latency = upper(&row.latency).map_or(0.0, |latency| latency.p99.unwrap_or(latency.max));
    (missing, latency)
}

/// Messages between nodes, if there is more than one pair.
pub(super) fn pairs(record: &Record) -> Markup {
    if record.tables.by_pair.len() < 2 {
        return html! {};
    }
    let unit = unit_of(record);
    html! {
        h3 { "From node to node" }
        div.scroll { table.sortable {
            caption { "Latency in " (unit.symbol()) "; beside it the error bound of the clocks" }
            thead { tr {
                th { "from" } th { "to" }
                @for name in ["expected", "delivered", "lost", "p50", "p99", "max", "clocks ±"] { th.number { (name) } }
            } }
            tbody {
                @for row in &record.tables.by_pair {
                    tr {
                        th scope="row" { (row.publisher_node) } td { (row.subscriber_node) }
                        (number(row.expected)) (number(row.delivered)) (number(row.lost))
                        @for times in TIMES.map(|time| both(&row.latency, time)) { (interval(unit, times)) }
                        td.number data-sort=(row.clock_bound_us.unwrap_or(f64::MAX)) { (unit.number(row.clock_bound_us)) }
                    }
                }
            }
        } }
    }
}

/// Messages between sites, by the values of a label.
pub(super) fn sites(record: &Record, label: &str, rows: &[&LabelRow]) -> Markup {
    let unit = unit_of(record);
    html! {
        h3 { "From " (label) " to " (label) }
        div.scroll { table.sortable {
            caption { "Nodes by their label " (label) "; latency in " (unit.symbol()) }
            thead { tr {
                th { "from" } th { "to" }
                @for name in ["expected", "delivered", "lost", "p50", "p99", "max"] { th.number { (name) } }
            } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (words::site(&row.publisher_site)) } td { (words::site(&row.subscriber_site)) }
                        (number(row.expected)) (number(row.delivered)) (number(row.lost))
                        @for times in TIMES.map(|time| both(&row.latency, time)) { (interval(unit, times)) }
                    }
                }
            }
        } }
    }
}

/// Both bounds of the median, the 99th percentile and the largest latency of a bin.
fn latencies_of(row: &SeriesRow) -> [[Option<f64>; 2]; 3] {
    let (lower, upper) = (row.latency.lower.unwrap_or_default(), row.latency.upper);
    [[lower.p50_us, upper.p50_us], [lower.p99_us, upper.p99_us], [lower.max_us, upper.max_us]]
}

/// Data of the charts over time.
pub(super) fn series(record: &Record) -> Markup {
    if record.tables.series.is_empty() {
        return html! {};
    }
    let unit = unit_of(record);
    let row_of = |row: &SeriesRow| {
        html! {
            tr {
                th scope="row" { (short(row.t_s)) } td { (short(row.width_s)) }
                td { (count(row.offered)) } td { (count(row.sent)) } td { (count(row.delivered)) }
                @for time in latencies_of(row) { td { (unit.interval(time)) } }
                td { (unit.number(row.max_scheduler_lag_us)) }
            }
        }
    };
    html! {
        details {
            summary { "The figures over time" }
            div.scroll { table.numbers {
                caption { "Times in " (unit.symbol()) }
                thead { tr {
                    th { "from, s" } th { "width, s" } th { "offered" } th { "sent" } th { "delivered" }
                    th { "p50" } th { "p99" } th { "max" } th { "max lag" }
                } }
                tbody { @for row in &record.tables.series { (row_of(row)) } }
            } }
        }
    }
}

/// Connections: counts, and causes of failures.
pub(super) fn connections(record: &Record) -> Markup {
    let connections = &record.connections;
    let rows = [
        ("attempted", connections.attempted),
        ("established", connections.established),
        ("refused", connections.refused),
        ("not logged in", connections.auth_failed),
        ("failed in TLS", connections.tls_failed),
        ("dropped", connections.dropped),
        ("of these, credentials no longer valid", connections.log_in_ended),
        ("tokens renewed on open connections", connections.reauthenticated),
        ("tried again", connections.retried),
        ("planned leaves", connections.planned_leaves),
        ("subscriptions refused", connections.subscriptions_refused),
        ("subscriptions revoked during the run", connections.subscriptions_revoked),
        ("subscriptions granted a lower level", record.connections.granted_qos_lower),
    ];
    html! {
        div.pair {
            div.scroll { table { tbody {
                @for (name, value) in rows { tr.none[value == 0] { th scope="row" { (name) } td.number { (count(value)) } } }
                // Records of older versions do not have this count.
                (pair("clients never connected", &connections.never_connected.map_or_else(|| MISSING.to_owned(), count)))
                @if let Some(connect) = &connections.connect_time {
                    (pair("time to connect, median", &time(connect.p50)))
                    (pair("time to connect, largest", &time(Some(connect.max))))
                }
                @for ramp in &connections.ramp_up { (pair("came up", &words::ramp_up(ramp))) }
            } } }
            @if connections.causes.is_empty() {
                p { "No connection failed or ended unplanned." }
            } @else {
                div.scroll { table {
                    thead { tr { th { "cause" } th.number { "count" } } }
                    tbody { @for cause in &connections.causes { tr { th scope="row" { (cause.cause) } td.number { (count(cause.count)) } } } }
                } }
            }
        }
        @if let Some(figures) = &record.connections.tls { (tls(figures)) }
    }
}

/// TLS handshakes.
fn tls(figures: &TlsFigures) -> Markup {
    let parts = [
        ("full handshake", figures.full, &figures.full_handshake),
        ("resumed handshake", figures.resumed, &figures.resumed_handshake),
        ("the protocol's opening after it", figures.full + figures.resumed, &figures.opening),
    ];
    let unit =
        TimeUnit::for_value(parts.iter().filter_map(|(_, _, times)| Some(times.as_ref()?.max)).fold(0.0, f64::max));
    let resumption = match figures.resumption {
        Some(true) => "each client keeps its own last session",
        Some(false) => "off",
        None => "up to the client library",
    };
    html! {
        div.scroll { table.numbers {
            caption { "TLS, from the first connect to the last; resumption: " (resumption) "; times in " (unit.symbol()) }
            thead { tr { th { "part" } th { "count" } th { "p50" } th { "p90" } th { "p99" } th { "max" } } }
            tbody { @for (name, number, times) in parts { tr.none[number == 0] {
                @let times = times.as_ref();
                th scope="row" { (name) } td { (count(number)) }
                @for value in [times.and_then(|t| t.p50), times.and_then(|t| t.p90), times.and_then(|t| t.p99), times.map(|t| t.max)] {
                    td { (unit.number(value)) }
                }
            } } }
        } }
        @for agreed in &figures.agreed {
            p { (count(agreed.count)) " × " (words::agreed_on(agreed)) @if agreed.resumed { ", resumed" } }
        }
    }
}
