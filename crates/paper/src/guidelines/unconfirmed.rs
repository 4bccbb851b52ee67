//! The publications' conclusions that not all measured cases confirm.

use pubmark_report::markdown::escaped;
use pubmark_report::numbers::{MISSING, counted};
use pubmark_report::words::sentence;

use super::page::anchor;
use super::{Collection, machines_of};
use crate::definition;
use crate::record::{Case, Outcome, PaperRecord, StatementResult};
use crate::words;

/// The section, with its heading. A conclusion whose cases disagree is listed, too.
pub(super) fn section(text: &mut String, collection: &Collection) {
    let is_listed = |statement: &&StatementResult| statement.cases.iter().any(is_unconfirmed);
    let mut lines = vec![];
    for (folder, record) in &collection.records {
        for statement in record.statements.iter().filter(is_listed) {
            lines.push(format!(
                "- *{}* ({}, {}{}): {}; {} by {}. [The cases]({folder}/paper.md#{}).",
                sentence(&escaped(&statement.conclusion)),
                escaped(&record.citation),
                escaped(&statement.source),
                on_machines(collection, record),
                outcomes(statement),
                escaped(&ratios(record, statement)),
                statement.figure,
                anchor(&statement.conclusion)
            ));
        }
    }
    text.push_str("\n## Conclusions of the publications that are not confirmed in every case\n\n");
    match lines.is_empty() {
        true => text.push_str("Every conclusion that was measured holds in every measured case.\n"),
        false => text.push_str(&format!("{}\n", lines.join("\n"))),
    }
}

/// The case was measured and does not confirm the conclusion.
fn is_unconfirmed(case: &Case) -> bool {
    matches!(case.outcome, Outcome::DoesNotHold | Outcome::Undecided)
}

/// `; machine 2`, or nothing if all records are of one machine.
fn on_machines(collection: &Collection, record: &PaperRecord) -> String {
    let mut names: Vec<String> = machines_of(record).iter().filter_map(|machine| collection.name_of(machine)).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { String::new() } else { format!("; {}", names.join(", ")) }
}

/// In how many cases a conclusion is confirmed: `confirmed in 2 of 3 cases, undecided in 1`.
fn outcomes(statement: &StatementResult) -> String {
    let count = |outcome: Outcome| statement.cases.iter().filter(|case| case.outcome == outcome).count();
    let confirmed = count(Outcome::Holds);
    if confirmed == 0 {
        return words::counts(statement);
    }
    let mut text = format!("confirmed in {confirmed} of {}", counted(statement.cases.len() as u64, "case", "cases"));
    for outcome in [Outcome::DoesNotHold, Outcome::Undecided, Outcome::NotMeasured] {
        if count(outcome) > 0 {
            text.push_str(&format!(", {} in {}", outcome.words(), count(outcome)));
        }
    }
    text
}

/// The ratios of the unconfirmed cases, the lowest first, with what distinguishes these cases.
fn ratios(record: &PaperRecord, statement: &StatementResult) -> String {
    let axes = axes(record, statement);
    let unconfirmed = statement.cases.iter().filter(|case| is_unconfirmed(case));
    let mut ratios: Vec<((f64, f64), &str)> =
        unconfirmed.filter_map(|case| Some((case.ratio?, case.label.as_str()))).collect();
    ratios.sort_by(|(one, _), (other, _)| one.0.total_cmp(&other.0));
    if ratios.is_empty() {
        return MISSING.to_string();
    }
    let worded = ratios.into_iter().map(|(ratio, label)| format!("{}{}", words::times(ratio), place(&axes, label)));
    worded.collect::<Vec<_>>().join(", ")
}

/// ` (scale 10)`; nothing for the only case of a conclusion.
fn place(axes: &[String], label: &str) -> String {
    if label.is_empty() {
        return String::new();
    }
    let values: Vec<String> = label.split(", ").map(str::to_owned).collect();
    // A value may contain the separator.
    if values.len() == axes.len() { format!(" ({})", words::head(axes, &values)) } else { format!(" ({label})") }
}

/// The axes whose values distinguish the cases of a conclusion. An older record does not name them: its axes are those of the
/// definition that its tables of the experiment have, because the experiment may have got another axis since.
fn axes(record: &PaperRecord, statement: &StatementResult) -> Vec<String> {
    if !statement.each.is_empty() {
        return statement.each.clone();
    }
    let statements = definition::find(&record.paper).map_or_else(Vec::new, |paper| paper.statements);
    let Some(own) = statements.into_iter().find(|own| own.conclusion == statement.conclusion) else { return vec![] };
    let tables = || record.tables.iter().filter(|table| table.experiment == own.larger.experiment);
    let is_there = |axis: &String| tables().any(|table| table.rows.iter().chain(&table.columns).any(|had| had == axis));
    if tables().next().is_none() { own.each } else { own.each.into_iter().filter(is_there).collect() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use pubmark_record::store;

    use super::*;

    /// The committed record of PSMark with one conclusion, of cases with these outcomes.
    fn record(outcomes: &[Outcome]) -> PaperRecord {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/psmark");
        let mut record: PaperRecord = store::load_as(&folder).unwrap();
        record.statements.retain(|statement| statement.conclusion.starts_with("Several small brokers"));
        let statement = &mut record.statements[0];
        let case = |(number, outcome): (usize, &Outcome)| Case {
            label: number.to_string(),
            larger: "one".to_owned(),
            smaller: "five".to_owned(),
            outcome: *outcome,
            ratio: Some((number as f64, number as f64 + 0.5)),
            judged_before: None,
        };
        statement.cases = outcomes.iter().enumerate().map(case).collect();
        record
    }

    fn section_of(outcomes: &[Outcome]) -> String {
        page_of(record(outcomes))
    }

    fn page_of(record: PaperRecord) -> String {
        let mut text = String::new();
        section(&mut text, &Collection { records: vec![("psmark".to_owned(), record)] });
        text
    }

    #[test]
    fn a_case_has_the_axes_that_its_record_had() {
        let mut record = record(&[Outcome::Undecided]);
        let statement = &mut record.statements[0];
        statement.conclusion = "Defaults hinder".to_owned();
        statement.cases[0].label = "2".to_owned();
        // The experiment varied only the QoS then; now its conclusion is judged by scale and QoS.
        assert!(page_of(record.clone()).contains("× (QoS 2) by"), "{}", page_of(record));
        let statement = &mut record.statements[0];
        statement.each = vec!["scale".to_owned(), "qos".to_owned()];
        statement.cases[0].label = "50, 2".to_owned();
        assert!(page_of(record.clone()).contains("× (scale 50, QoS 2) by"), "{}", page_of(record));
    }

    #[test]
    fn a_conclusion_whose_cases_disagree_is_listed_with_its_counts_and_figures() {
        use Outcome::{DoesNotHold, Holds, NotMeasured, Undecided};
        let text = section_of(&[Holds, Undecided, Holds, DoesNotHold, NotMeasured]);
        let counts = "confirmed in 2 of 5 cases, does not hold in 1, undecided in 1, not measured in 1; ";
        assert!(text.contains(counts), "{text}");
        assert!(text.contains("; 1.00–1.50 × (scale 1), 3.00–3.50 × (scale 3) by latency p99."), "{text}");
        let none = section_of(&[Undecided]);
        assert!(none.contains("undecided in 1 of 1 case; 0–0.500 × (scale 0) by latency p99."), "{none}");
        let all = section_of(&[Holds, NotMeasured]);
        assert!(all.ends_with("Every conclusion that was measured holds in every measured case.\n"), "{all}");
    }
}
