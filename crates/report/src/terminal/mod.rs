//! What a run comes to on a terminal: at most 30 lines of 80 columns, in the order of the questions a reader has:
//! what ran, may I believe it, did messages arrive, how late, at what rate, at what cost, what should I know, what next.

mod capacity;
mod comparison;
mod experiment;
mod latency_breakdown;
mod layout;

pub use capacity::{capacity, trial_line};
pub use comparison::comparison;
pub use experiment::experiment;

use pubmark_record::cost::Usage;
use pubmark_record::latency::{Summary, both, upper};
use pubmark_record::record::Warning;
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::verdict::usable::{Usable, usable};

use crate::numbers::{MISSING, bytes, cores, count, counted, share, significant};
use crate::words;
use layout::{Page, Tone};

/// Columns of the terminal that everything fits into.
pub const COLUMNS: usize = 80;
/// Lines of a summary at most.
pub const LINES: usize = 30;

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminalOptions<'a> {
    /// Colours, in addition to the words; the caller honours `NO_COLOR` and asks whether this is a terminal.
    pub colour: bool,
    /// The run's folder as the reader would type it, if the run was kept.
    pub folder: Option<&'a str>,
}

/// The summary of a run, with a final newline.
pub fn summary(record: &Record, options: &TerminalOptions) -> String {
    let warnings = &record.verdict.warnings;
    // Reasons, warnings and single links give way until everything fits; what is left out is counted.
    let limits = [
        (4, 3, 4, 3),
        (4, 2, 4, 2),
        (3, 2, 3, 2),
        (3, 1, 3, 1),
        (2, 1, 2, 1),
        (1, 1, 2, 1),
        (1, 1, 1, 1),
        (1, 0, 1, 1),
        (1, 0, 1, 0),
    ];
    let mut page = Page::default();
    for (reasons, shown_warnings, facts, parts) in limits {
        page = draw(record, warnings, options, Room { reasons, warnings: shown_warnings, facts, parts });
        if page.lines() <= LINES {
            break;
        }
    }
    page.text(options.colour)
}

/// How much of what varies in length is shown.
struct Room {
    reasons: usize,
    warnings: usize,
    facts: usize,
    /// Links, faults, and classes of messages whose time is divided.
    parts: usize,
}

fn draw(record: &Record, warnings: &[Warning], options: &TerminalOptions, room: Room) -> Page {
    let shown = room.warnings;
    let mut page = Page::default();
    page.field("workload", &words::workload(record), 2);
    page.field("system", &words::system(record), 2);
    for fact in words::system_facts(&record.system).iter().take(room.facts) {
        page.field(fact.name, &fact.text, 1);
    }
    page.field("run", &words::phases(record), 2);
    page.blank();
    verdict(&mut page, record, room.reasons);
    page.blank();
    delivery(&mut page, record);
    requests(&mut page, record);
    links(&mut page, record, room.parts);
    if !record.tables.nodes.is_empty() {
        page.field("nodes", &words::nodes(record), 3);
    }
    // Whoever breaks something wants to know what came of it.
    faults(&mut page, record, room.parts.min(FAULTS));
    latency(&mut page, record);
    latency_breakdown::latency_breakdown(&mut page, record, room.parts.min(CLASSES));
    page.items("rate", &rate(record), 2);
    if let Some(figures) = record.cost.efficiency.as_ref().filter(|_| room.parts > 0) {
        page.field("payload", &words::efficiency(figures), 2);
    }
    if let Some(figures) = record.connections.tls.as_ref().filter(|_| room.parts > 0) {
        page.field("TLS", &words::tls(figures), 3);
    }
    page.items("cost", &cost(record), 3);
    if let Some(effect) = words::limit_effect(record) {
        let is_binding = record.cost.limits.is_some_and(|effect| effect.was_binding());
        page.toned_field("limited", &effect, 2, if is_binding { Tone::Caution } else { Tone::Plain });
    }
    if let Some(host) = &record.cost.host {
        page.field("host", &words::host(host), 2);
    }
    page.blank();
    for warning in &warnings[..warnings.len().min(shown)] {
        page.paragraph(&format!("  warning[{}]: ", warning.code), &warning.text, 2, Tone::Caution);
        page.paragraph("    hint: ", &warning.hint, 1, Tone::Hint);
    }
    if warnings.len() > shown {
        let left = (warnings.len() - shown) as u64;
        let line = match shown {
            0 => format!("  {} in the report", counted(left, "warning", "warnings")),
            _ => format!("  and {} in the report", counted(left, "more warning", "more warnings")),
        };
        page.line(&line, Tone::Plain);
    }
    if !warnings.is_empty() {
        page.blank();
    }
    if let Some(folder) = options.folder {
        page.path("report", &format!("{folder}/report.html"), "(also record.json, summary.md, csv/)");
    }
    next(&mut page, record, options);
    page
}

fn verdict(page: &mut Page, record: &Record, reasons: usize) {
    let verdict = &record.verdict;
    let (word, tone) = match verdict.status {
        VerdictStatus::Valid => ("yes", Tone::Good),
        VerdictStatus::Suspect => ("suspect", Tone::Caution),
        VerdictStatus::Invalid => ("no", Tone::Bad),
    };
    if verdict.reasons.is_empty() {
        let text = format!("{word}: {}", words::valid_because(record));
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
    if usable(record) == Usable::AllButTimes {
        page.field("", "no time is to be used; counts, bytes, CPU and memory may be", 1);
    }
}

fn delivery(page: &mut Page, record: &Record) {
    let books = &record.delivery.messages;
    let mut items = vec![format!("offered {}", count(books.offered))];
    let sending = words::sending_outcomes(books);
    items.push(format!("sent {}", count(books.sent)));
    items.extend(sending.iter().skip(1).filter(|part| part.count > 0).map(named));
    if books.expected != books.sent {
        items.push(format!("expected {}", count(books.expected)));
    }
    items.push(format!("delivered {} ({})", count(books.delivered), share(books.delivered, books.expected)));
    items.push(format!("lost {}", count(books.lost)));
    items.extend(
        words::delivery_outcomes(books).iter().skip(1).filter(|part| part.name != "lost" && part.count > 0).map(named),
    );
    for (position, part) in words::further_counts(books).iter().enumerate() {
        // Duplicates and order are promises: they are printed when they are 0, too.
        if position < 2 || part.count > 0 {
            items.push(named(part));
        }
    }
    items.extend(words::particular_counts(record).iter().map(named));
    page.items("delivery", &items, 4);
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
    items.extend(outcomes.iter().skip(1).filter(|part| part.name == "timed out" || part.count > 0).map(named));
    items.extend(words::further_answers(books).iter().filter(|part| part.count > 0).map(named));
    items.extend(
        words::response_outcomes(&requests.responses)
            .iter()
            .skip(1)
            .filter(|part| part.count > 0)
            .map(|part| format!("{} at responders", named(part))),
    );
    items.push(format!("{}/s", significant(requests.answered_per_s)));
    items.push(format!("at once {}", count(requests.peak_in_flight)));
    page.items("requests", &items, 3);
}

fn links(page: &mut Page, record: &Record, most: usize) {
    let Some(links) = &record.conditions.links else { return };
    for (number, group) in links.groups.iter().take(most).enumerate() {
        page.field(if number == 0 { "links" } else { "" }, &words::link(group), 2);
    }
    match links.groups.len().saturating_sub(most) {
        0 => {}
        left if most == 0 => page.field("links", &format!("{left} groups behind links: see the report"), 1),
        left => page.field("", &format!("and {left} more in the report"), 1),
    }
    page.field("", &words::emulator(links), 2);
}

/// Faults shown at most; the report has all.
const FAULTS: usize = 2;
/// Classes of messages shown at most, those with most messages; the report has all.
const CLASSES: usize = 2;

/// One fault at least, in two lines where there is no room.
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

fn latency(page: &mut Page, record: &Record) {
    let mut rows = vec![("due → delivery", &record.latency.total), ("write → delivery", &record.latency.service)];
    if let Some(reactions) = &record.delivery.reactions {
        rows.push(("root → delivery", &reactions.chain_latency));
    }
    if let Some(requests) = &record.requests {
        rows.push(("round trip", &requests.round_trip));
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

fn rate(record: &Record) -> [String; 4] {
    let rates = &record.throughput;
    [
        format!("offered {}/s", significant(rates.offered_per_s)),
        format!("sent {}/s", significant(rates.sent_per_s)),
        format!("delivered {}/s", significant(rates.delivered_per_s)),
        format!("payload {}/s", bytes(Some(rates.payload_bytes_per_s))),
    ]
}

fn cost(record: &Record) -> Vec<String> {
    let side = |name: &str, usage: Option<Usage>| match usage {
        Some(usage) => {
            format!("{name} {} of a core, {}", cores(Some(usage.cores)), bytes(Some(usage.peak_rss_bytes as f64)))
        }
        None => format!("{name} {MISSING}"),
    };
    let costs = words::costs(record, "generator");
    let mut items: Vec<String> = costs.iter().map(|(name, usage)| side(name, *usage)).collect();
    // There is room for a few only: the sides, what a message takes, then groups.
    let groups = items.split_off(2);
    items.extend(words::unit_costs(record));
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

/// The workload as the reader typed it: a name or a path.
fn typed_workload(record: &Record) -> &str {
    let after_run = record.run.command.iter().skip_while(|word| *word != "run").nth(1);
    after_run.filter(|word| !word.starts_with('-')).unwrap_or(&record.workload.name)
}
