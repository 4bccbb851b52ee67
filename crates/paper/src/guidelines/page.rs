//! The guidelines as Markdown.

use pubmark_report::markdown::{escaped, table};
use pubmark_report::numbers::{MISSING, counted, seconds};
use pubmark_report::words::capitalised;

use super::{Collection, Evidence, machines_of, unconfirmed};
use crate::definition::{self, Better, Need};
use crate::guidelines::machines::Machine;
use crate::guidelines::ranking::{DELIVERED_AT_LEAST, Ranked};
use crate::words::{self, TableLayout};

/// Mark of a figure from a single run.
const ONCE: &str = "¹";
/// Mark of a comparison that may contain systems that lost messages.
const UNKNOWN: &str = "²";

/// The page as Markdown.
pub(super) fn page(collection: &Collection) -> String {
    let mut text = "# Which system for which need\n\n".to_owned();
    let answers: Vec<Evidence<'_>> = collection.answers().collect();
    introduction(&mut text, collection);
    overview(&mut text, &answers);
    for need in Need::ALL {
        text.push_str(&format!("\n## {}\n\n", need.title()));
        let mut own = answers.iter().filter(|answer| answer.guideline.need == need).peekable();
        if own.peek().is_none() {
            text.push_str(&format!("No record here answers this. {}\n", what_would(need)));
        }
        for answer in own {
            text.push_str(&format!("- {}\n", answer_words(answer)));
        }
    }
    unconfirmed::section(&mut text, collection);
    text
}

/// The commands that would produce the missing records for a requirement.
fn what_would(need: Need) -> String {
    let mut commands: Vec<String> = vec![];
    for paper in definition::names().into_iter().filter_map(definition::find) {
        for guideline in paper.guidelines.iter().filter(|guideline| guideline.need == need) {
            let tables = paper.tables.iter().filter(|table| table.title == guideline.table);
            commands.extend(tables.map(|table| format!("`pubmark paper {} --only {}`", paper.name, table.experiment)));
        }
    }
    commands.dedup();
    if commands.is_empty() { String::new() } else { format!("{} would.", commands.join(" or ")) }
}

fn introduction(text: &mut String, collection: &Collection) {
    let machines = collection.machines();
    let on = match machines.as_slice() {
        [] => format!("one machine ({MISSING})"),
        [only] => format!("one machine ({}, {})", escaped(&only.kind), escaped(&only.details())),
        [first, ..] => format!("{} machines of one type ({})", machines.len(), escaped(&first.kind)),
    };
    let shared = if machines.iter().any(Machine::has_nodes) { "" } else { ", which clients and systems share" };
    text.push_str(&format!(
        "From {} of repeated publications on {on}{shared}. `pubmark report` of their folder regenerates this page.\n",
        counted(collection.records.len() as u64, "record", "records"),
    ));
    if machines.len() > 1 {
        text.push_str("\nEach ranking is of the runs of one machine, which it names:\n\n");
    }
    for machine in &machines {
        if let Some(name) = collection.name_of(machine) {
            let folders =
                collection.records.iter().filter(|(_, record)| machines_of(record).iter().any(|own| own.is(machine)));
            let folders: Vec<&str> = folders.map(|(folder, _)| folder.as_str()).collect();
            text.push_str(&format!("- {name}: {} ({})\n", escaped(&machine.details()), escaped(&folders.join(", "))));
        }
    }
    text.push_str(&format!(
        "\nA system is *first* where no other system's interval, of measurement and noise together, is wholly better than its own. \
         A figure with {ONCE} is of one run: no noise is known, and no order \
         is shown. Latency and cost are compared among systems that delivered at least {} % of the messages; where a record \
         has no shares delivered, marked {UNKNOWN}, among all. ≥ stands where the next step was not judged. System memory is the \
         largest resident set of all processes of a system together, its runtime (a Java or Erlang machine, an interpreter) \
         included; pages that its processes share count once for each.\n",
        DELIVERED_AT_LEAST * 100.0,
    ));
}

/// The answer to a requirement that the overview shows: of the most systems, the first of several. One among systems that
/// deliver comes before others if it has at least half as many systems as the largest.
fn leading_answer<'a, 'b>(answers: &'a [Evidence<'b>], need: Need) -> Option<&'a Evidence<'b>> {
    let own = || answers.iter().rev().filter(|answer| answer.guideline.need == need);
    let systems = |answer: &Evidence<'_>| answer.ranking.ranked.len();
    let most = own().map(systems).max()?;
    own().max_by_key(|answer| (!answer.lacks_delivered && systems(answer) * 2 >= most, systems(answer)))
}

/// The table of systems by requirements, with one answer to each.
fn overview(text: &mut String, answers: &[Evidence<'_>]) {
    let leading: Vec<&Evidence<'_>> = Need::ALL.into_iter().filter_map(|need| leading_answer(answers, need)).collect();
    let mut systems: Vec<&str> = vec![];
    for ranked in leading.iter().flat_map(|answer| &answer.ranking.ranked) {
        if !systems.iter().any(|system| is_same(system, &ranked.name)) {
            systems.push(&ranked.name);
        }
    }
    if systems.is_empty() {
        return;
    }
    systems.sort_by_key(|system| system.to_lowercase());
    let heads = leading.iter().map(|answer| {
        let machine = answer.machine.as_ref().map_or_else(String::new, |machine| format!(", {machine}"));
        let mark = if answer.lacks_delivered { format!(" {UNKNOWN}") } else { String::new() };
        escaped(&format!("{}: {}{machine}{mark}", answer.guideline.need.title().to_lowercase(), figure_words(answer)))
    });
    let header: Vec<String> = std::iter::once("system".to_owned()).chain(heads).collect();
    let rows: Vec<Vec<String>> = systems
        .iter()
        .map(|system| {
            let cells = leading.iter().map(|answer| {
                let ranked = answer.ranking.ranked.iter().find(|ranked| is_same(&ranked.name, system));
                ranked.map_or_else(|| MISSING.to_string(), |ranked| overview_cell(answer, ranked))
            });
            std::iter::once(escaped(system)).chain(cells).collect()
        })
        .collect();
    text.push('\n');
    table(text, &header, &rows);
}

/// Whether two names mean the same system: the labels of older records are not written in the same way.
fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn overview_cell(answer: &Evidence<'_>, ranked: &Ranked) -> String {
    let value = value(answer, ranked);
    match answer.no_order() {
        _ if !answer.ranking.is_repeated => format!("{value} {ONCE}"),
        None if ranked.is_first => format!("**{value}**"),
        _ => value,
    }
}

/// The figure that was compared and its cell: `latency p50 in ms at payload 1024B`.
fn figure_words(answer: &Evidence<'_>) -> String {
    let at = &answer.guideline.at;
    let (axes, values): (Vec<String>, Vec<String>) =
        at.iter().map(|(axis, value)| (axis.clone(), value.clone())).unzip();
    let place = if at.is_empty() { String::new() } else { format!(" at {}", words::head(&axes, &values)) };
    match &answer.guideline.better {
        Better::Further(along) => {
            format!("{} up to which everything is delivered{place}", words::axes(std::slice::from_ref(along)))
        }
        Better::Smaller | Better::Larger => {
            let layout = TableLayout::of(answer.table);
            match layout.unit.symbol {
                "" => format!("{}{place}", answer.table.figure),
                symbol => format!("{} in {symbol}{place}", answer.table.figure),
            }
        }
    }
}

fn value(answer: &Evidence<'_>, ranked: &Ranked) -> String {
    let (low, high) = ranked.ends;
    match answer.guideline.better {
        Better::Further(_) if high > low => format!("≥ {low}"),
        Better::Further(_) => format!("{low}"),
        Better::Smaller | Better::Larger => {
            let lower = (low < high).then_some(low);
            TableLayout::of(answer.table).unit.bounds([lower, Some(high)])
        }
    }
}

/// One answer in a sentence or two, with a link to its table.
fn answer_words(answer: &Evidence<'_>) -> String {
    let ranking = &answer.ranking;
    let with_value = |ranked: &Ranked| format!("{} {}", escaped(&ranked.name), value(answer, ranked));
    let (first, behind): (Vec<_>, Vec<_>) = ranking.ranked.iter().partition(|ranked| ranked.is_first);
    let listed = |ranked: &[&Ranked]| ranked.iter().map(|one| with_value(one)).collect::<Vec<_>>().join(", ");
    let mut text = format!("{}: ", capitalised(&escaped(&figure_words(answer))));
    let no_order = answer.no_order();
    if no_order.is_none() {
        text.push_str(&format!("first **{}**", listed(&first)));
        if !behind.is_empty() {
            text.push_str(&format!("; behind {}", listed(&behind)));
        }
    } else {
        text.push_str(&listed(&ranking.ranked.iter().collect::<Vec<_>>()));
    }
    text.push('.');
    if !ranking.left_out.is_empty() {
        let reasons = ranking.left_out.iter().map(|(name, why)| format!("{} ({why})", escaped(name)));
        text.push_str(&format!(" Not compared: {}.", reasons.collect::<Vec<_>>().join(", ")));
    }
    if answer.lacks_delivered {
        text.push_str(" The record has no shares delivered: systems that lost messages may be compared, too.");
    }
    let runs = answer.runs;
    text.push_str(&format!(
        " {} of {}{}{}: [{}]({}/paper.md#{}).",
        counted(runs.repetitions.into(), "run", "runs"),
        seconds(runs.duration_s),
        answer.machine.as_ref().map_or_else(String::new, |machine| format!(" on {machine}")),
        no_order.map_or_else(String::new, |why| format!(", {why}")),
        escaped(&answer.table.title),
        answer.folder,
        anchor(&answer.table.title)
    ));
    text
}

/// The anchor of a Markdown heading: lower-case letters, digits, and hyphens for spaces.
pub(super) fn anchor(title: &str) -> String {
    let is_part = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    title.to_lowercase().chars().filter(is_part).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    fn committed() -> Collection {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        Collection::load(&results).unwrap().unwrap()
    }

    #[test]
    fn the_overview_shows_the_answer_of_most_systems_among_those_that_deliver() {
        let collection = committed();
        let is_meant = |answer: &Evidence<'_>| answer.guideline.need == Need::LatencyBound;
        let mut answers: Vec<Evidence<'_>> = collection.answers().filter(is_meant).collect();
        assert!(answers.len() > 1, "one answer leaves no choice");
        for answer in &mut answers {
            answer.lacks_delivered = false;
        }
        let systems =
            |answers: &[Evidence<'_>]| leading_answer(answers, Need::LatencyBound).unwrap().ranking.ranked.len();
        answers.truncate(2);
        let some = answers[1].ranking.ranked[0].clone();
        answers[1].ranking.ranked.resize(8, some.clone());
        for (few, expected) in [(4, 4), (3, 8)] {
            answers[0].ranking.ranked.resize(few, some.clone());
            answers[1].lacks_delivered = false;
            assert_eq!(systems(&answers), 8);
            answers[1].lacks_delivered = true;
            assert_eq!(systems(&answers), expected, "{few} of 8 systems that deliver");
        }
        assert!(leading_answer(&answers, Need::AfterACrash).is_none());
    }

    #[test]
    fn an_answer_without_shares_delivered_says_so() {
        let mut collection = committed();
        for (_, record) in &mut collection.records {
            record.tables.retain(|table| table.figure != "delivered");
        }
        let text = page(&collection);
        assert!(text.contains("systems that lost messages may be compared, too."), "{text}");
        assert!(text.contains(&format!(" {UNKNOWN} |")), "{text}");
    }

    #[test]
    fn an_anchor_is_that_of_the_heading() {
        assert_eq!(anchor("Section 5.3, figure 6: by loss"), "section-53-figure-6-by-loss");
        assert_eq!(anchor("MQTT is more efficient than AMQP"), "mqtt-is-more-efficient-than-amqp");
    }
}
