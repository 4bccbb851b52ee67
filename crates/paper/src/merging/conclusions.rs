//! Conclusions of an earlier record beside those of a later one.

use std::collections::BTreeMap;

use pubmark_model::experiment::{PlannedCell, cells};

use super::Since;
use crate::collect::Part;
use crate::definition::{Paper, Statement};
use crate::record::{Case, Outcome, PaperRecord, StatementResult};
use crate::statement::is_meant;

/// Adds conclusions of the earlier record, or cases of them. `resumed` has the experiments that got further runs in their folders.
pub(super) fn add_statements(
    statements: &mut Vec<StatementResult>,
    parts: &[Part],
    paper: &Paper,
    earlier: &PaperRecord,
    found: &BTreeMap<&str, Since>,
    resumed: &[&str],
) {
    for statement in &paper.statements {
        let sides = [&statement.larger, &statement.smaller].map(|side| found.get(side.experiment.as_str()));
        let any = |wanted: &Since| sides.contains(&Some(wanted));
        let before = earlier.statements.iter().find(|result| result.conclusion == statement.conclusion);
        let own = statements.iter().position(|result| result.conclusion == statement.conclusion);
        let stands = !sides.iter().any(|since| matches!(since, None | Some(Since::Other(_))));
        if any(&Since::Gone) {
            if let Some(own) = own {
                statements.remove(own);
            }
            // The other side of a case that was run again is no longer here.
            let is_left = |case: &&Case| !was_run_again(statement, &case.label, parts, found);
            let left = before.filter(|_| stands).map(|before| {
                let left = before.cases.iter().filter(is_left);
                let cases: Vec<Case> = left.map(|case| earlier_case(statement, case, resumed)).collect();
                StatementResult { cases, ..before.clone() }
            });
            statements.extend(left.filter(|left| !left.cases.is_empty()));
            continue;
        }
        let Some(before) = before.filter(|_| stands && any(&Since::Beside)) else { continue };
        let is_left =
            |case: &&Case| case.outcome != Outcome::NotMeasured && !was_run_again(statement, &case.label, parts, found);
        let left = before.cases.iter().filter(is_left);
        let cases: Vec<Case> = left.map(|case| earlier_case(statement, case, resumed)).collect();
        match own {
            Some(own) => add_cases(&mut statements[own], cases, before),
            None => {
                let has_cases = !cases.is_empty();
                statements.extend(has_cases.then(|| StatementResult { cases, ..before.clone() }));
            }
        }
    }
}

/// A case as it was judged, with the experiment on one of its sides that got further runs since.
fn earlier_case(statement: &Statement, case: &Case, resumed: &[&str]) -> Case {
    let sides = [&statement.larger, &statement.smaller].map(|side| side.experiment.as_str());
    let now = sides.into_iter().find(|side| resumed.contains(side)).map(str::to_owned);
    Case { judged_before: now.or_else(|| case.judged_before.clone()), ..case.clone() }
}

/// Adds cases that a conclusion does not have, or has without figures. A reason is that of all its measured cases: those of another
/// one are not added.
fn add_cases(result: &mut StatementResult, mut cases: Vec<Case>, before: &StatementResult) {
    let is_measured = |own: &Case| own.outcome != Outcome::NotMeasured;
    if result.reason != before.reason && result.cases.iter().any(is_measured) {
        return;
    }
    cases.retain(|case| !result.cases.iter().any(|own| own.label == case.label && is_measured(own)));
    result.cases.retain(|own| cases.iter().all(|case| case.label != own.label));
    if cases.iter().any(|case| case.outcome == Outcome::Undecided) && result.reason.is_none() {
        result.reason.clone_from(&before.reason);
    }
    result.cases.extend(cases);
}

/// Whether a cell on one of the sides of a case has runs now that it did not have before.
fn was_run_again(statement: &Statement, label: &str, parts: &[Part], found: &BTreeMap<&str, Since>) -> bool {
    let mut others = [&statement.larger, &statement.smaller]
        .into_iter()
        .filter(|side| found.get(side.experiment.as_str()) == Some(&Since::Beside));
    others.any(|side| {
        let part = parts.iter().find(|part| part.experiment.name == side.experiment);
        let is_of_case = |cell: &PlannedCell| {
            let key = statement.each.iter().filter_map(|axis| cell.values.get(axis).map(String::as_str));
            is_meant(side, cell) && key.collect::<Vec<_>>().join(", ") == label
        };
        let has_runs = |part: &Part, cell: &PlannedCell| part.cell(&cell.id).is_ok_and(|found| !found.runs.is_empty());
        part.is_some_and(|part| cells(&part.experiment).iter().any(|cell| is_of_case(cell) && has_runs(part, cell)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_one_judgement_is_not_given_for_the_cases_of_another() {
        let case = |label: &str, outcome: Outcome| Case {
            label: label.to_owned(),
            larger: String::new(),
            smaller: String::new(),
            outcome,
            ratio: None,
            judged_before: None,
        };
        let result = |reason: Option<&str>, cases: &[Case]| StatementResult {
            conclusion: String::new(),
            source: String::new(),
            figure: String::new(),
            each: vec![],
            reason: reason.map(str::to_owned),
            cases: cases.to_vec(),
        };
        let undecided = case("a", Outcome::Undecided);
        let before = result(Some("several machines"), std::slice::from_ref(&undecided));
        let mut own = result(None, &[case("b", Outcome::Holds)]);
        add_cases(&mut own, vec![undecided.clone()], &before);
        assert_eq!((own.cases.len(), own.reason), (1, None));
        let mut own = result(None, &[case("a", Outcome::NotMeasured), case("b", Outcome::NotMeasured)]);
        add_cases(&mut own, vec![undecided], &before);
        assert_eq!((own.cases.len(), own.reason.as_deref()), (2, Some("several machines")));
    }
}
