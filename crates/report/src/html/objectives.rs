//! Limits that the run was required to keep: all of them in one table.

use maud::{Markup, html};
use pubmark_record::objectives::ObjectiveOutcome;
use pubmark_record::record::Record;

use super::with_code;
use crate::numbers::MISSING;

/// Section of a record with objectives.
pub(super) fn section(record: &Record) -> Markup {
    let objectives = &record.objectives;
    let is_decided = objectives.iter().all(|objective| objective.remedy.is_none());
    html! {
        div.scroll { table {
            thead { tr { th { "limit" } th { "outcome" } th { "measured" } @if !is_decided { th { "to decide it" } } } }
            tbody { @for objective in objectives { tr {
                th scope="row" { (objective.limit) }
                td class={ "objective " (class(objective.outcome)) } { (objective.outcome.word()) }
                td { (objective.measured.as_deref().unwrap_or(MISSING)) }
                @if !is_decided { td { (with_code(objective.remedy.as_deref().unwrap_or_default())) } }
            } } }
        } }
    }
}

/// Class of an outcome's colour.
pub(super) fn class(outcome: ObjectiveOutcome) -> &'static str {
    match outcome {
        ObjectiveOutcome::Passed => "passed",
        ObjectiveOutcome::Undecided => "undecided",
        ObjectiveOutcome::Missed | ObjectiveOutcome::NotMeasured => "missed",
    }
}

#[cfg(test)]
mod tests {
    use pubmark_record::objectives::Objective;
    use pubmark_record::sample;
    use pubmark_record::threshold::metrics;

    use super::*;
    use crate::{html, markdown};

    fn objective(metric: &str, outcome: ObjectiveOutcome) -> Objective {
        let limit = format!("{metric}<1ms");
        let (lower, upper, measured) = (Some(2.0), Some(2.0), Some("2.00 ms".to_owned()));
        Objective { limit, metric: metric.to_owned(), outcome, lower, upper, measured, remedy: None }
    }

    #[test]
    fn every_objective_is_in_the_page_and_in_the_markdown_with_its_outcome() {
        let mut record = sample::record();
        assert!(!html::run(&record).contains("id=\"objectives\"") && !markdown::run(&record).contains("Objectives"));
        for name in metrics::names().chain(["custom.jitter"]) {
            record.objectives = vec![objective(name, ObjectiveOutcome::Missed)];
            let page = html::run(&record);
            let row = format!(
                "<th scope=\"row\">{name}&lt;1ms</th><td class=\"objective missed\">missed</td><td>2.00 ms</td>"
            );
            assert!(page.contains(&row) && page.contains("href=\"#objectives\""), "{name}");
            let text = markdown::run(&record);
            assert!(text.contains(&format!("| `{name}<1ms` | missed | 2.00 ms |")), "{name}: {text}");
        }
    }

    #[test]
    fn what_would_decide_a_limit_and_what_was_not_measured_is_said() {
        let remedy = Some("run with `--realtime`".to_owned());
        let undecided = Objective { remedy, ..objective("p99", ObjectiveOutcome::Undecided) };
        let unknown = Objective { measured: None, ..objective("answered", ObjectiveOutcome::NotMeasured) };
        let mut record = sample::record();
        record.objectives = vec![undecided, unknown];
        let text = markdown::run(&record);
        assert!(text.contains("| limit | outcome | measured | to decide it |"), "{text}");
        assert!(text.contains("| `p99<1ms` | undecided | 2.00 ms | run with `--realtime` |"), "{text}");
        assert!(text.contains("| `answered<1ms` | not measured | — |  |"), "{text}");
        let page = section(&record).into_string();
        assert!(page.contains("<td>—</td><td></td>") && page.contains("run with <code>--realtime</code>"), "{page}");
    }
}
