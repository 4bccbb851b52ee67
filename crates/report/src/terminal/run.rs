//! A run on a terminal: at most 14 lines if nothing was unusual, in the order of a reader's questions: did messages
//! arrive, how late, at what rate, at what cost; how well is that known; what was unusual; where are the details.

use pubmark_record::cost::Usage;
use pubmark_record::figures::delivered_share;
use pubmark_record::latency::{LatencyBounds, Summary, both, upper};
use pubmark_record::objectives::{Objective, ObjectiveOutcome};
use pubmark_record::record::{Record, Status, VerdictStatus, Warning};
use pubmark_record::verdict::usable::{Usable, usable};

use super::layout::{self, Page, Tone};
use super::{LINES, TerminalOptions, latency_breakdown};
use crate::numbers::{MISSING, bytes, cores, count, counted, percentage, share, significant};
use crate::words;

/// The summary of a run, with a final newline.
pub fn summary(record: &Record, options: &TerminalOptions) -> String {
    if options.verbose {
        return draw(record, options, &Detail::ALL).text(options.colour);
    }
    // Show fewer reasons and links until everything fits; omitted ones are counted.
    let limits = [(4, 3), (3, 2), (2, 2), (2, 1), (1, 1), (1, 0)];
    let mut page = Page::new(options.columns);
    for (reasons, parts) in limits {
        page = draw(record, options, &Detail { reasons, parts });
        if page.lines() <= LINES {
            break;
        }
    }
    page.text(options.colour)
}

/// Number of items to show in parts of variable length.
struct Detail {
    reasons: usize,
    /// Links, faults, and classes of the latency breakdown.
    parts: usize,
}

impl Detail {
    const ALL: Detail = Detail { reasons: usize::MAX, parts: usize::MAX };
}

/// A warning that the first screen shows implicitly: a percentile of too few samples is not printed.
const SHOWN_BY_ITSELF: &str = "W01";

/// Most lines of the reason why a metric has no value: more than 400 characters of a program's output take.
const MOST_FAILURE_LINES: usize = 8;

fn draw(record: &Record, options: &TerminalOptions, room: &Detail) -> Page {
    let mut page = Page::new(options.columns);
    what(&mut page, record, options.verbose);
    page.blank();
    delivery(&mut page, record, options.verbose);
    if options.verbose {
        latency_table(&mut page, record)
    } else {
        latency(&mut page, record)
    }
    page.items("rate", &rate(record), 2);
    page.items("cost", &cost(record, options.verbose), 3);
    for row in record.delivery.content.iter().filter(|_| options.verbose) {
        page.field("where", &words::content(row), 3);
    }
    for row in record.cost.transform.iter().filter(|_| options.verbose) {
        page.field("transform", &words::transform(row), 3);
    }
    custom(&mut page, record);
    objectives(&mut page, &record.objectives);
    conditions(&mut page, record, room, options.verbose);
    page.blank();
    verdict(&mut page, record, room.reasons);
    warnings(&mut page, record, options.verbose);
    page.blank();
    if let Some(folder) = options.folder {
        let beside = if options.verbose { "(also record.json, summary.md, csv/)" } else { "" };
        page.path("report", &format!("{folder}/report.html"), beside);
    }
    next(&mut page, record, options);
    page
}

/// Metrics of the user's own. Why one has no value is printed in full: nothing else on the page says what to mend.
fn custom(page: &mut Page, record: &Record) {
    let texts = words::custom_values(&record.custom);
    let (failed, valued): (Vec<_>, Vec<_>) =
        record.custom.iter().zip(texts).partition(|(metric, _)| metric.failure.is_some());
    let valued: Vec<String> = valued.into_iter().map(|(_, text)| text).collect();
    if !valued.is_empty() {
        page.items("custom", &valued, 3);
    }
    for (place, (_, text)) in failed.into_iter().enumerate() {
        page.field(if place == 0 && valued.is_empty() { "custom" } else { "" }, &text, MOST_FAILURE_LINES);
    }
}

/// The workload and the system.
fn what(page: &mut Page, record: &Record, verbose: bool) {
    let workload = if verbose { words::workload(record) } else { words::short_workload(record) };
    page.field("workload", &workload, 2);
    page.field("system", &words::system(record), 2);
    if let Some(client) = words::client(record) {
        page.field("client", &client, 2);
    }
    let facts = words::system_facts(&record.system);
    // Versions in papers are only relevant for a comparison with the papers.
    for fact in facts.iter().filter(|fact| verbose || fact.name != "papers") {
        page.field(fact.name, &fact.text, 1);
    }
    let is_plain = record.run.repetitions <= 1 && record.run.status == Status::Complete;
    if verbose || !is_plain {
        page.field("run", &words::phases(record), 2);
    }
}

/// Requested conditions, and further costs.
fn conditions(page: &mut Page, record: &Record, room: &Detail, verbose: bool) {
    requests(page, record);
    links(page, record, room.parts);
    if !record.tables.nodes.is_empty() {
        page.field("nodes", &words::nodes(record), 3);
        for node in record.tables.nodes.iter().filter(|_| verbose) {
            page.field("", &format!("{}: {}", node.name, words::node(node)), 3);
        }
        for (number, row) in record.tables.by_label.iter().filter(|_| verbose).enumerate() {
            let words = format!("{} {}", row.label, words::site_to_site(row));
            page.field(if number == 0 { "sites" } else { "" }, &words, 3);
        }
    }
    // A run with faults always shows their effects.
    faults(page, record, if verbose { room.parts } else { room.parts.min(FAULTS) });
    latency_breakdown::latency_breakdown(page, record, if verbose { room.parts } else { room.parts.min(CLASSES) });
    if let Some(figures) = record.cost.efficiency.as_ref().filter(|_| verbose) {
        page.field("payload", &words::efficiency(figures), 2);
    }
    if let Some(figures) = record.connections.tls.as_ref().filter(|_| room.parts > 0) {
        page.field("TLS", &words::tls(figures), 3);
    }
    if let Some(effect) = words::limit_effect(record) {
        let is_binding = record.cost.limits.is_some_and(|effect| effect.was_binding());
        page.toned_field("limited", &effect, 2, if is_binding { Tone::Caution } else { Tone::Plain });
    }
    if let Some(host) = &record.cost.host {
        page.field("host", &words::host(host), 2);
    }
}

/// One line for each distribution: its median and its highest percentile with enough samples.
fn latency(page: &mut Page, record: &Record) {
    let mut rows: Vec<(&str, &Option<LatencyBounds>)> = vec![("latency", &record.latency.total)];
    if let Some(reactions) = &record.delivery.reactions {
        rows.push(("chains", &reactions.chain_latency));
    }
    if let Some(requests) = &record.requests {
        rows.push(("RTT", &requests.round_trip));
    }
    for (label, bounds) in rows {
        page.items(label, &percentiles(bounds), 2);
    }
}

/// A percentile by its name.
type Percentile = (&'static str, fn(&Summary) -> Option<f64>);

fn percentiles(bounds: &Option<LatencyBounds>) -> Vec<String> {
    let Some(summary) = upper(bounds) else { return vec![MISSING.to_owned()] };
    let unit = layout::unit_of([summary].into_iter());
    let text = |name: &str, get: fn(&Summary) -> Option<f64>| {
        format!("{name} {} {}", unit.interval(both(bounds, get)), unit.symbol())
    };
    let known = |(name, get): Percentile| get(summary).map(|_| text(name, get));
    let tail: [Percentile; 3] = [("p99", |it| it.p99), ("p95", |it| it.p95), ("p90", |it| it.p90)];
    let mut parts: Vec<String> = known(("p50", |it| it.p50)).into_iter().collect();
    parts.extend(tail.into_iter().find_map(known));
    parts.push(text("max", |it| Some(it.max)));
    parts
}

/// Limits and their outcomes; for an undecided one, what would decide it.
fn objectives(page: &mut Page, objectives: &[Objective]) {
    for (number, objective) in objectives.iter().enumerate() {
        let tone = match objective.outcome {
            ObjectiveOutcome::Passed => Tone::Good,
            ObjectiveOutcome::Undecided => Tone::Caution,
            ObjectiveOutcome::Missed | ObjectiveOutcome::NotMeasured => Tone::Bad,
        };
        let measured = objective.measured.as_ref().map_or_else(String::new, |measured| format!(", {measured}"));
        let remedy = objective.remedy.as_ref().map_or_else(String::new, |remedy| format!("; to decide it, {remedy}"));
        let text = format!("{} {}{measured}{remedy}", objective.limit, objective.outcome.word());
        page.toned_field(if number == 0 { "SLO" } else { "" }, &text, 2, tone);
    }
}

fn warnings(page: &mut Page, record: &Record, verbose: bool) {
    let is_shown = |warning: &&Warning| verbose || warning.code != SHOWN_BY_ITSELF;
    let warnings: Vec<&Warning> = record.verdict.warnings.iter().filter(is_shown).collect();
    if warnings.is_empty() {
        return;
    }
    if !verbose {
        let codes: Vec<&str> = warnings.iter().map(|warning| warning.code.as_str()).collect();
        let counted = counted(warnings.len() as u64, "warning", "warnings");
        return page.toned_field(
            "",
            &format!("{counted}: {} (`-v` or the report shows them)", codes.join(", ")),
            2,
            Tone::Caution,
        );
    }
    page.blank();
    for warning in warnings {
        page.paragraph(&format!("  warning[{}]: ", warning.code), &warning.text, 2, Tone::Caution);
        page.paragraph("    hint: ", &warning.hint, 1, Tone::Hint);
    }
}

fn verdict(page: &mut Page, record: &Record, reasons: usize) {
    let verdict = &record.verdict;
    let (word, tone) = match verdict.status {
        VerdictStatus::Valid => ("yes", Tone::Good),
        VerdictStatus::Suspect => ("suspect", Tone::Caution),
        VerdictStatus::Invalid => ("no", Tone::Bad),
    };
    if verdict.reasons.is_empty() {
        let text = format!("{word}: {}", words::trust(record));
        page.toned_field("valid", &text, 2, tone);
        return;
    }
    let shown = &verdict.reasons[..verdict.reasons.len().min(reasons)];
    for (position, reason) in shown.iter().enumerate() {
        let first = position == 0;
        let start = if first { format!("{word}: ") } else { String::new() };
        let text = format!("{start}[{}] {}", reason.code, reason.text);
        page.toned_field(if first { "valid" } else { "" }, &text, 2, tone);
        if first {
            page.paragraph("            hint: ", &reason.hint, 2, Tone::Hint);
        }
    }
    if verdict.reasons.len() > shown.len() {
        page.field("", &format!("and {} more in the report", verdict.reasons.len() - shown.len()), 1);
    }
    if verdict.status == VerdictStatus::Suspect {
        page.field("", &words::trust(record), 2);
    }
    if usable(record) == Usable::AllButTimes {
        page.field("", "no time is to be used; counts, bytes, CPU and memory may be", 1);
    }
}

fn delivery(page: &mut Page, record: &Record, verbose: bool) {
    let books = &record.delivery.messages;
    let sending = words::sending_outcomes(books);
    let is_plain = books.offered == books.sent && books.sent == books.expected;
    let (of_expected, of_wanted) = (share(books.delivered, books.expected), percentage(delivered_share(record)));
    let (delivered, expected) = (count(books.delivered), count(books.expected));
    let mut items = vec![match of_expected == of_wanted {
        true => format!("{delivered} of {expected} ({of_expected})"),
        false => format!("{delivered} of {expected} expected, {of_wanted} of all wanted"),
    }];
    if verbose || !is_plain {
        items.push(format!("offered {}", count(books.offered)));
    }
    if verbose || books.sent != books.expected {
        items.push(format!("sent {}", count(books.sent)));
    }
    items.extend(sending.iter().skip(1).filter(|part| part.count > 0).map(named));
    items.push(format!("lost {}", count(books.lost)));
    items.extend(
        words::delivery_outcomes(books).iter().skip(1).filter(|part| part.name != "lost" && part.count > 0).map(named),
    );
    for (position, part) in words::further_counts(books).iter().enumerate() {
        // Duplicates and order are delivery guarantees, so they are printed even if they are 0.
        if position < 2 || part.count > 0 {
            items.push(named(part));
        }
    }
    items.extend(words::particular_counts(record).iter().map(named));
    page.items("delivered", &items, 4);
}

fn named(part: &words::Outcome) -> String {
    format!("{} {}", part.name, count(part.count))
}

fn requests(page: &mut Page, record: &Record) {
    let Some(requests) = &record.requests else { return };
    let books = &requests.outcomes;
    let mut items = vec![format!("sent {}", count(books.sent))];
    items.push(format!("answered {} ({})", count(books.answered), share(books.answered, books.sent)));
    let outcomes = words::request_outcomes(books);
    let late_by_pubmark = words::late_by_pubmark(books).map(|part| count(part.count));
    items.extend(outcomes.iter().skip(1).filter(|part| part.name == "timed out" || part.count > 0).map(|part| {
        match late_by_pubmark.as_ref().filter(|_| part.name == "late") {
            Some(number) => format!("{} ({number} by pubmark)", named(part)),
            None => named(part),
        }
    }));
    items.extend(words::further_answers(books).iter().filter(|part| part.count > 0).map(named));
    let dropped_by_pubmark = words::dropped_by_pubmark(&requests.responses).map(|part| count(part.count));
    items.extend(words::response_outcomes(&requests.responses).iter().skip(1).filter(|part| part.count > 0).map(
        |part| match dropped_by_pubmark.as_ref().filter(|_| part.name == "dropped") {
            Some(number) => format!("{} at responders ({number} perhaps by pubmark)", named(part)),
            None => format!("{} at responders", named(part)),
        },
    ));
    items.push(format!("{}/s", significant(requests.answered_per_s)));
    items.push(format!("at once {}", count(requests.peak_in_flight)));
    page.items("requests", &items, 3);
}

fn links(page: &mut Page, record: &Record, most: usize) {
    let Some(links) = &record.conditions.links else { return };
    let lines = words::links(links);
    for (number, line) in lines.iter().take(most).enumerate() {
        page.field(if number == 0 { "links" } else { "" }, line, 3);
    }
    match lines.len().saturating_sub(most) {
        0 => {}
        _ if most == 0 => {
            let groups = counted(links.groups.len() as u64, "group behind a link", "groups behind links");
            page.field("links", &format!("{groups}: see the report"), 1);
        }
        left => page.field("", &format!("and {left} more in the report"), 1),
    }
    page.field("", &words::emulator(links), 2);
    if let Some(relay) = &links.relay {
        page.field("", &words::relay(relay), 2);
    }
    if let Some(trunk) = &links.trunk {
        page.field("", &words::trunk(trunk), 2);
    }
}

/// Most faults shown; the report has all.
const FAULTS: usize = 2;
/// Most classes of messages shown, those with most messages; the report has all.
const CLASSES: usize = 2;

/// At least one fault, in two lines if one is not enough.
fn faults(page: &mut Page, record: &Record, room: usize) {
    let Some(figures) = &record.conditions.faults else { return };
    let (most, lines) = if room == 0 { (1, 2) } else { (room, 3) };
    for (number, fault) in figures.faults.iter().take(most).enumerate() {
        let (what, clients) = (words::fault(fault), words::fault_connections(fault));
        let text = format!("{what}: {clients}; {}", words::fault_latency(fault.latency.as_ref()));
        page.field(if number == 0 { "faults" } else { "" }, &text, lines);
    }
    if figures.faults.len() > most {
        page.field("", &format!("and {} more in the report", figures.faults.len() - most), 1);
    }
    for (number, promise) in figures.promises.iter().enumerate() {
        page.field(if number == 0 { "promises" } else { "" }, &words::promise(promise), 2);
    }
}

fn latency_table(page: &mut Page, record: &Record) {
    let mut rows = vec![("due → delivery", &record.latency.total), ("write → delivery", &record.latency.service)];
    if let Some(reactions) = &record.delivery.reactions {
        rows.push(("root → delivery", &reactions.chain_latency));
    }
    if let Some(requests) = &record.requests {
        rows.push(("RTT", &requests.round_trip));
        rows.push(("  its travel", &requests.travel));
    }
    let unit = layout::unit_of(rows.iter().filter_map(|(_, bounds)| upper(bounds)));
    let header = ["p50", "p99", "p99.9", "max"].map(String::from);
    page.table_row("latency", unit.symbol(), &header);
    type Quantile = fn(&Summary) -> Option<f64>;
    let quantiles: [Quantile; 4] = [|times| times.p50, |times| times.p99, |times| times.p999, |times| Some(times.max)];
    for (name, bounds) in rows {
        let values = quantiles.map(|quantile| unit.interval(both(bounds, quantile)));
        page.table_row("", name, &values);
    }
}

fn rate(record: &Record) -> [String; 2] {
    let rates = &record.throughput;
    [
        format!("{}/s delivered of {}/s offered", significant(rates.delivered_per_s), significant(rates.offered_per_s)),
        format!("payload {}/s", bytes(Some(rates.payload_bytes_per_s))),
    ]
}

fn cost(record: &Record, verbose: bool) -> Vec<String> {
    let side = |name: &str, usage: Option<Usage>| match usage {
        Some(usage) => {
            format!("{name} {} of a core, {}", cores(Some(usage.cores)), bytes(Some(usage.peak_rss_bytes as f64)))
        }
        None => format!("{name} {MISSING}"),
    };
    let costs = words::costs(record, "pubmark");
    let mut items: Vec<String> = costs.iter().map(|(name, usage)| side(name, *usage)).collect();
    // Only a few fit: the sides, the cost per message, then groups.
    let groups = items.split_off(words::sides(record));
    if verbose {
        items.extend(words::unit_costs(record));
    }
    items.extend(groups);
    items
}

fn next(page: &mut Page, record: &Record, options: &TerminalOptions) {
    let mut commands: Vec<(String, &str)> = Vec::new();
    if let Some(reason) = record.verdict.reasons.first() {
        commands.push((format!("pubmark explain {}", reason.code), "what the verdict means"));
    } else if !record.system.ranked {
        let workload = typed_workload(record);
        commands.push((format!("pubmark run {workload} --system mosquitto"), "measure a real broker"));
    } else if let Some(folder) = options.folder {
        commands.push((format!("pubmark compare RUN {folder}"), "beside another run"));
    }
    for (position, (command, purpose)) in commands.iter().take(2).enumerate() {
        page.command(if position == 0 { "next" } else { "" }, command, purpose);
    }
}

/// The workload as the user typed it: a name or a path.
fn typed_workload(record: &Record) -> &str {
    let after_run = record.run.command.iter().skip_while(|word| *word != "run").nth(1);
    after_run.filter(|word| !word.starts_with('-')).unwrap_or(&record.workload.name)
}
