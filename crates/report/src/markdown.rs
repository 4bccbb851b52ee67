//! Records as Markdown, to paste into an issue or a page.

mod experiment;
mod faults;

use pubmark_record::comparison::Comparison;
use pubmark_record::custom::CustomMetric;
use pubmark_record::latency::{Summary, both, upper};
use pubmark_record::objectives::Objective;
use pubmark_record::record::Record;
use pubmark_record::tables::TypeRow;
use pubmark_record::wanted::{not_delivered, prevented};
use pubmark_record::warnings::warnings;

use crate::numbers::{MISSING, TimeUnit, bounded_figure, bytes, cores, count, share, significant};
use crate::words::{self, STATISTICS, UNUSABLE, UNUSABLE_MEANS, distributions, verdict_word};

pub use experiment::{capacity, experiment};

/// The page of a run.
pub fn run(record: &Record) -> String {
    let mut text = format!("# {}\n\n", escaped(&record.run.name));
    text.push_str(&format!("- **Workload:** {}\n", escaped(&words::workload(record))));
    text.push_str(&format!("- **System:** {}\n", escaped(&words::system(record))));
    if let Some(client) = words::client(record) {
        text.push_str(&format!("- **Client:** {}\n", escaped(&client)));
    }
    for fact in words::system_facts(&record.system) {
        text.push_str(&format!("- **{}:** {}\n", words::capitalised(fact.name), escaped(&fact.text)));
    }
    text.push_str(&format!(
        "- **Run:** {}, started {}\n",
        escaped(&words::phases(record)),
        escaped(&record.run.started_at)
    ));
    text.push_str(&format!("- **Command:** {}\n", code(&words::command_line(&record.run.command))));
    verdict(&mut text, record);
    objectives(&mut text, record);
    delivery(&mut text, record);
    requests(&mut text, record);
    faults::section(&mut text, record);
    latencies(&mut text, record);
    latency_breakdown(&mut text, record);
    cost(&mut text, record);
    if let Some(figures) = &record.cost.efficiency {
        let how = words::how_efficiency_is_counted(figures);
        text.push_str(&format!(
            "\n## Protocol efficiency\n\n{}. {how}\n",
            words::capitalised(&words::efficiency(figures))
        ));
    }
    if !record.cost.transform.is_empty() {
        text.push_str("\n## Transformed bodies\n\n");
        record.cost.transform.iter().for_each(|row| text.push_str(&format!("- {}\n", escaped(&words::transform(row)))));
    }
    connecting(&mut text, record);
    custom(&mut text, record);
    types(&mut text, record);
    notes(&mut text, record);
    text
}

/// User-defined metrics.
fn custom(text: &mut String, record: &Record) {
    if record.custom.is_empty() {
        return;
    }
    text.push_str("\n## Metrics of your own\n\n");
    let row = |metric: &CustomMetric| {
        let command = code(&words::command_line(&metric.command)).replace('|', "\\|");
        vec![escaped(&metric.name), escaped(&words::custom_value(metric)), command]
    };
    let rows: Vec<Vec<String>> = record.custom.iter().map(row).collect();
    table_of_words(text, &["metric", "value", "computed by"].map(String::from), &rows);
}

fn connecting(text: &mut String, record: &Record) {
    let Some(figures) = &record.connections.tls else { return };
    text.push_str(&format!("\n## TLS\n\n{}.\n", escaped(&words::capitalised(&words::tls(figures)))));
    if let Some(opening) = &figures.opening {
        text.push_str(&format!("\nThe protocol's opening after it: {}.\n", words::middle_and_largest(opening)));
    }
    if let Some(ramps) = words::ramp_ups(&record.connections) {
        text.push_str(&format!("\nCame up before the schedule began: {ramps}.\n"));
    }
}

/// A comparison of runs: one row per figure, one column per run, the best value in bold.
pub fn comparison(comparison: &Comparison) -> String {
    let mut text = String::from("# Comparison\n\n");
    let mut header = vec!["figure".to_string()];
    header.extend(comparison.runs.iter().map(|run| escaped(&run.label)));
    let mut rows = vec![
        std::iter::once("verdict".to_string())
            .chain(comparison.runs.iter().map(|run| verdict_word(run.record.verdict.status).to_string()))
            .collect::<Vec<String>>(),
    ];
    let mut has_excluded = false;
    for row in comparison.figures.iter().chain(&comparison.custom) {
        let mut cells = vec![escaped(&row.figure.label())];
        for position in 0..row.values.len() {
            let value = bounded_figure(row.figure.unit, row.bounds(position));
            let is_excluded = row.values[position].is_some() && !row.figure.is_usable(comparison.runs[position].record);
            has_excluded |= is_excluded;
            cells.push(match row.best == Some(position) {
                true => format!("**{value}**"),
                false if is_excluded => struck(&value),
                false => value,
            });
        }
        rows.push(cells);
    }
    table(&mut text, &header, &rows);
    if has_excluded {
        text.push_str(&format!("\n- {UNUSABLE} {UNUSABLE_MEANS}"));
    }
    for run in &comparison.runs {
        if let Some(reason) = &run.not_ranked {
            text.push_str(&format!("\n- {} is not ranked: {}", escaped(&run.label), escaped(reason)));
        }
    }
    for difference in &comparison.differences {
        text.push_str(&format!("\n- differs: {}: {}", difference.name, escaped(&difference.values.join(" / "))));
    }
    text.push_str(&format!("\n- {}\n", comparison.caution()));
    text
}

/// A figure that must not be used.
fn struck(value: &str) -> String {
    format!("~~{value}~~ {UNUSABLE}")
}

fn verdict(text: &mut String, record: &Record) {
    text.push_str(&format!("\n## Verdict: {}\n\n", verdict_word(record.verdict.status)));
    for reason in &record.verdict.reasons {
        text.push_str(&format!(
            "- **{}** ({}): {} *{}*\n",
            escaped(&reason.code),
            verdict_word(reason.status),
            words::sentence(&escaped(&reason.text)),
            words::sentence(&escaped(&reason.hint))
        ));
    }
    if !record.verdict.reasons.is_empty() {
        text.push('\n');
    }
    let rows: Vec<Vec<String>> = record
        .verdict
        .checks
        .iter()
        .map(|check| {
            vec![escaped(&check.code), escaped(&check.name), verdict_word(check.status).into(), escaped(&check.text)]
        })
        .collect();
    table_of_words(text, &["code", "check", "result", "finding"].map(String::from), &rows);
}

/// Limits that the run was required to keep.
fn objectives(text: &mut String, record: &Record) {
    if record.objectives.is_empty() {
        return;
    }
    text.push_str("\n## Objectives\n\n");
    let is_decided = record.objectives.iter().all(|objective| objective.remedy.is_none());
    let row = |objective: &Objective| {
        let mut cells = vec![
            code(&objective.limit).replace('|', "\\|"),
            objective.outcome.word().to_string(),
            objective.measured.as_deref().map_or_else(|| MISSING.to_string(), escaped),
        ];
        cells.extend((!is_decided).then(|| objective.remedy.as_deref().map_or_else(String::new, escaped)));
        cells
    };
    let rows: Vec<Vec<String>> = record.objectives.iter().map(row).collect();
    let mut header = vec!["limit", "outcome", "measured"];
    header.extend((!is_decided).then_some("to decide it"));
    let header: Vec<String> = header.into_iter().map(String::from).collect();
    table_of_words(text, &header, &rows);
}

fn delivery(text: &mut String, record: &Record) {
    text.push_str("\n## Messages\n\n");
    let books = &record.delivery.messages;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |name: &str, value: u64, of: u64| rows.push(vec![name.into(), count(value), share(value, of)]);
    add("offered", books.offered, books.offered);
    words::sending_outcomes(books).iter().for_each(|part| add(part.name, part.count, books.offered));
    add("expected", books.expected, books.expected);
    words::delivery_outcomes(books).iter().for_each(|part| add(part.name, part.count, books.expected));
    words::further_counts(books).iter().for_each(|part| add(part.name, part.count, books.expected));
    if prevented(record, books).all() > 0 {
        let missing = not_delivered(record, books);
        add("not delivered, of all wanted", missing, books.delivered + missing);
    }
    words::particular_counts(record).iter().for_each(|part| add(part.name, part.count, 0));
    table(text, &["messages", "count", "share"].map(String::from), &rows);
}

fn requests(text: &mut String, record: &Record) {
    let (Some(requests), Some(parties)) = (&record.requests, words::parties(record)) else { return };
    text.push_str(&format!("\n## Requests\n\n{}.\n\n", words::capitalised(&parties)));
    let books = &requests.outcomes;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |name: &str, value: u64, of: u64| rows.push(vec![name.into(), count(value), share(value, of)]);
    add("sent", books.sent, books.sent);
    words::request_outcomes(books).iter().for_each(|part| add(part.name, part.count, books.sent));
    words::late_by_pubmark(books).iter().for_each(|part| add(part.name, part.count, books.sent));
    words::further_answers(books).iter().for_each(|part| add(part.name, part.count, books.sent));
    let received = requests.responses.received;
    add("received by responders", received, received);
    for part in words::response_outcomes(&requests.responses) {
        add(&format!("there: {}", part.name), part.count, received);
    }
    words::dropped_by_pubmark(&requests.responses).iter().for_each(|part| add(part.name, part.count, received));
    table(text, &["requests", "count", "share"].map(String::from), &rows);
    let unit = unit_of(record);
    let header = ["requesters", "sent", "answered", "p50", "p99", "max"].map(String::from);
    text.push_str(&format!("\nRound trip by group, {}:\n\n", unit.symbol()));
    let rows: Vec<Vec<String>> = requests
        .by_group
        .iter()
        .map(|group| {
            let round_trip = |figure: fn(&Summary) -> Option<f64>| unit.interval(both(&group.round_trip, figure));
            vec![
                escaped(&group.name),
                count(group.outcomes.sent),
                share(group.outcomes.answered, group.outcomes.sent),
                round_trip(|summary| summary.p50),
                round_trip(|summary| summary.p99),
                round_trip(|summary| Some(summary.max)),
            ]
        })
        .collect();
    table(text, &header, &rows);
}

fn latencies(text: &mut String, record: &Record) {
    let unit = unit_of(record);
    text.push_str(&format!("\n## Latency, {}\n\n", unit.symbol()));
    let mut header = vec!["distribution".to_string(), "samples".to_string()];
    header.extend(STATISTICS.iter().map(|statistic| statistic.name.to_string()));
    let rows: Vec<Vec<String>> = distributions(record)
        .iter()
        .map(|row| {
            let mut cells = vec![
                format!("{} ({})", row.name, row.meaning),
                row.summary.map_or_else(|| MISSING.to_string(), |summary| count(summary.count)),
            ];
            cells.extend(STATISTICS.iter().map(|statistic| row.text(statistic, unit)));
            cells
        })
        .collect();
    table(text, &header, &rows);
}

fn latency_breakdown(text: &mut String, record: &Record) {
    let Some(figures) = &record.latency.breakdown else { return };
    let (unit, columns) = (words::breakdown_unit(figures), words::breakdown_columns(figures));
    text.push_str(&format!("\n## Where the time went, {}\n\n", unit.symbol()));
    text.push_str(&format!("{}\n\n", words::sentence(&words::latency_breakdown(figures))));
    let mut header = vec!["devices, p50 / p99".to_string()];
    header.extend(columns.iter().map(|(_, name)| (*name).to_string()).chain(["whole".to_string()]));
    let rows: Vec<Vec<String>> = figures
        .rows
        .iter()
        .map(|row| {
            let parts = row.parts.in_order();
            let number = |place: usize, figure: fn(&Summary) -> Option<f64>| unit.number(parts[place].and_then(figure));
            let shown = columns
                .iter()
                .map(|(place, _)| format!("{} / {}", number(*place, |part| part.p50), number(*place, |part| part.p99)));
            let whole = |figure: fn(&Summary) -> Option<f64>| unit.interval(both(&row.parts.whole, figure));
            let whole = format!("{} / {}", whole(|whole| whole.p50), whole(|whole| whole.p99));
            std::iter::once(escaped(&row.class)).chain(shown).chain([whole]).collect()
        })
        .collect();
    table(text, &header, &rows);
}

/// The unit for the latency tables of a record.
pub(crate) fn unit_of(record: &Record) -> TimeUnit {
    let typical = upper(&record.latency.total).map_or(0.0, |latency| latency.p99.unwrap_or(latency.max));
    TimeUnit::for_value(typical)
}

fn cost(text: &mut String, record: &Record) {
    text.push_str("\n## Rate and cost\n\n");
    let rates = &record.throughput;
    text.push_str(&format!(
        "Offered {}/s, sent {}/s, delivered {}/s, payload {}/s.\n\n",
        significant(rates.offered_per_s),
        significant(rates.sent_per_s),
        significant(rates.delivered_per_s),
        bytes(Some(rates.payload_bytes_per_s))
    ));
    let rows: Vec<Vec<String>> = words::costs(record, "generator")
        .iter()
        .map(|(name, usage)| {
            vec![
                escaped(name),
                usage.map_or_else(|| MISSING.to_string(), |usage| format!("{} s", significant(usage.cpu_seconds))),
                cores(usage.map(|usage| usage.cores)),
                bytes(usage.map(|usage| usage.peak_rss_bytes as f64)),
            ]
        })
        .collect();
    table(text, &["side", "CPU time", "of a core", "peak memory"].map(String::from), &rows);
    let unit_costs = words::unit_costs(record);
    if !unit_costs.is_empty() {
        text.push_str(&format!("\nThe system takes {}.\n", unit_costs.join(", ")));
    }
    if let Some(effect) = words::limit_effect(record) {
        text.push_str(&format!("\nIts limits were {effect}.\n"));
    }
    if let Some(contention) = words::contention(record) {
        text.push_str(&format!("\nThe machine: {contention}.\n"));
    }
    if let Some(host) = &record.cost.host {
        text.push_str(&format!("\nIts whole machine: {}.\n", words::host(host)));
    }
}

fn types(text: &mut String, record: &Record) {
    if record.tables.by_type.is_empty() {
        return;
    }
    let unit = unit_of(record);
    text.push_str(&format!("\n## By device type, latency in {}\n\n", unit.symbol()));
    let with_prevented = words::has_prevented_by_type(record);
    let fields = |row: &TypeRow| {
        let mut fields = vec![
            escaped(&row.name),
            count(row.devices),
            count(row.delivery.offered),
            share(row.delivery.delivered, row.delivery.expected),
            count(row.delivery.lost),
        ];
        fields.extend(with_prevented.then(|| count(not_delivered(record, &row.delivery))));
        fields.extend([
            unit.interval(both(&row.latency, |times| times.p50)),
            unit.interval(both(&row.latency, |times| times.p99)),
            unit.interval(both(&row.latency, |times| Some(times.max))),
        ]);
        fields
    };
    let rows: Vec<Vec<String>> = record.tables.by_type.iter().map(fields).collect();
    let mut header = vec!["type", "devices", "offered", "delivered of expected", "lost"];
    header.extend(with_prevented.then_some("not delivered"));
    header.extend(["p50", "p99", "max"]);
    let header: Vec<String> = header.into_iter().map(String::from).collect();
    table(text, &header, &rows);
}

fn notes(text: &mut String, record: &Record) {
    let warnings = warnings(record);
    if !warnings.is_empty() {
        text.push_str("\n## Warnings\n\n");
    }
    for warning in warnings {
        text.push_str(&format!(
            "- **{}**: {} *{}*\n",
            warning.code,
            words::sentence(&escaped(&warning.text)),
            words::sentence(&escaped(&warning.hint))
        ));
    }
    if !record.settings.deviations.is_empty() {
        text.push_str("\n## Deviations\n\n");
    }
    for deviation in &record.settings.deviations {
        text.push_str(&format!("- **{}**: {}\n", escaped(&deviation.name), escaped(&deviation.detail)));
    }
}

/// A table with a left-aligned first column; the other columns are figures and right-aligned.
pub fn table(text: &mut String, header: &[String], rows: &[Vec<String>]) {
    aligned_table(text, header, rows, "---:|");
}

/// A table with all columns left-aligned.
fn table_of_words(text: &mut String, header: &[String], rows: &[Vec<String>]) {
    aligned_table(text, header, rows, "---|");
}

fn aligned_table(text: &mut String, header: &[String], rows: &[Vec<String>], further_columns: &str) {
    text.push_str(&format!("| {} |\n|---|", header.join(" | ")));
    text.push_str(&further_columns.repeat(header.len() - 1));
    text.push('\n');
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
}

/// Text from other programs as a code span, which a backtick or a line end would end.
fn code(text: &str) -> String {
    let safe = text.chars().map(|letter| match letter {
        '`' => '\'',
        letter if letter.is_control() => ' ',
        letter => letter,
    });
    format!("`{}`", safe.collect::<String>())
}

/// Text from other programs, on one line, with the special characters of Markdown and HTML escaped.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '*' | '~' | '<' | '>' | '[' | ']' | '\\' => {
                safe.push('\\');
                safe.push(letter);
            }
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}
