//! The page of a choice: who qualifies, who does not and why, at what cost, how sure that is, what was not tested, how to repeat it.

use maud::{Markup, html};
use pubmark_record::record::Status;
use pubmark_report::html::{page, with_code};
use pubmark_report::words::{capitalised, command_line, sentence, verdict_word};

use crate::record::{Choice, State};
use crate::requirements::REQUIREMENTS_FILE;
use crate::{table, words};

/// The page.
pub fn html(choice: &Choice) -> String {
    let body = html! {
        header {
            p.kind { "pubmark choose" }
            h1 { "Which system for " (choice.workload) "?" }
            p { (words::load(choice)) "; must hold: " @for (position, limit) in words::must_hold(choice).iter().enumerate() {
                @if position > 0 { ", " } code { (limit) } } }
            p { (words::took(choice)) "; started " (choice.started_at) "; on " (words::machine(choice)) }
        }
        (recommendation(choice))
        main {
            section #candidates { h2 { "Candidates" } (candidates(choice)) }
            section #cost { h2 { "Cost" } (cost(choice)) }
            section #sure { h2 { "How sure" } p { (words::rule(choice)) } (confidence(choice)) }
            section #objectives { h2 { "Objectives" } (objectives(choice)) }
            section #headroom { h2 { "Headroom" } (headroom(choice)) }
            section #runs { h2 { "Every run" } (runs(choice)) }
            section #untested { h2 { "Not tested" } ul { @for one in &choice.not_tested { li { (with_code(&capitalised(one))) } } } }
        }
        section #reproduce {
            h2 { "Repeat it" }
            pre { code { (command_line(&choice.command)) } }
            p { "Files beside this page: " a href="choice.json" { "choice.json" } ", " a href="choice.md" { "choice.md" } ", "
                a href=(table::FILE) { (table::FILE) } ", "
                a href=(REQUIREMENTS_FILE) { (REQUIREMENTS_FILE) } ". pubmark " (choice.pubmark_version) "." }
        }
    };
    page(&format!("{}: choice", choice.workload), &body)
}

fn recommendation(choice: &Choice) -> Markup {
    let qualifies = choice.candidates.iter().any(|candidate| candidate.state == State::Qualifies);
    let status = match (choice.status, &choice.recommendation.candidate, qualifies) {
        (Status::Complete, Some(_), _) => "valid",
        (_, _, true) | (Status::Interrupted, ..) => "suspect",
        _ => "invalid",
    };
    html! {
        section #verdict.(status) {
            h2 { "Recommended: " (with_code(&choice.recommendation.text)) }
            p { "Of the candidates, " (words::counts(choice)) "." }
            @if choice.status == Status::Interrupted { p { "It was interrupted: this is what was known then." } }
        }
    }
}

/// Class of a row by what became of its candidate.
fn class(state: &State) -> &'static str {
    match state {
        State::Qualifies => "held",
        State::Fails { .. } | State::Broken { .. } => "missed",
        State::Undecided { .. } => "limited",
        State::Excluded { .. } => "none",
    }
}

fn candidates(choice: &Choice) -> Markup {
    let has_reasons = choice.candidates.iter().any(|candidate| !candidate.state.reason().is_empty());
    html! {
        div.scroll { table {
            thead { tr {
                th { "candidate" } th { "result" } th.number { "headroom" }
                @if let Some(growth) = words::growth(choice) { th { (unbroken(&growth)) " the load" } }
                @if has_reasons { th { "why" } }
            } }
            tbody {
                @for candidate in words::in_order(choice) {
                    tr.(class(&candidate.state)) {
                        th scope="row" { (candidate.label) @if let Some(what) = words::what(candidate) { small { (what) } } }
                        td.result { (candidate.state.word()) }
                        td.number { (candidate.headroom.shown()) }
                        @if words::growth(choice).is_some() { td { (words::coverage(candidate)) } }
                        @if has_reasons { td { (with_code(candidate.state.reason())) } }
                    }
                }
            }
        } }
    }
}

/// A factor that does not lose its sign at the end of a line.
fn unbroken(text: &str) -> String {
    text.replace(" ×", "\u{a0}×")
}

fn cost(choice: &Choice) -> Markup {
    let loads = words::larger_loads(choice);
    html! {
        div.scroll { table {
            caption { (words::COST_NOTE) }
            thead { tr {
                th { "candidate" } th.number { "cores" } th.number { "memory" }
                @for (times, _) in &loads {
                    th.number { "cores, " (unbroken(times)) } th.number { "memory, " (unbroken(times)) }
                }
            } }
            tbody {
                @for candidate in words::in_order(choice).into_iter().filter(|candidate| candidate.cost.is_some()) {
                    tr {
                        th scope="row" { (candidate.label) }
                        @for cost in words::cost_now(candidate.cost.as_ref()) { td.number { (cost) } }
                        @for (_, of) in &loads {
                            @for cost in words::cost_at(candidate.cost.as_ref().and_then(of)) { td.number { (cost) } }
                        }
                    }
                }
            }
        } }
        dl { @for (labels, sentences) in words::costs_from(choice) {
            dt { (labels) }
            @for sentence in sentences { dd { (sentence) "." } }
        } }
    }
}

fn confidence(choice: &Choice) -> Markup {
    html! { dl { @for (labels, text) in words::how_sure(choice) { dt { (labels) } dd { (sentence(&text)) } } } }
}

fn objectives(choice: &Choice) -> Markup {
    html! {
        div.scroll { table {
            caption { "Runs that met (or missed) the objective, of all runs that judged it" }
            thead { tr { th { "candidate" } @for limit in &choice.objectives { th { code { (limit) } } } } }
            tbody {
                @for candidate in words::in_order(choice).into_iter().filter(|candidate| !candidate.runs.is_empty()) {
                    tr { th scope="row" { (candidate.label) }
                        @for objective in &candidate.objectives { td { (words::objective_cell(objective)) } } }
                }
            }
        } }
    }
}

fn headroom(choice: &Choice) -> Markup {
    html! {
        dl { @for candidate in words::in_order(choice).into_iter().filter(|candidate| !candidate.runs.is_empty()) {
            dt { (candidate.label) }
            dd { (with_code(&candidate.headroom.text))
                @if let Some(folder) = &candidate.headroom.folder { " (" a href={ (folder) "/capacity.html" } { "the search" } ")" } "." }
        } }
    }
}

fn runs(choice: &Choice) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "candidate" } th { "run" } th { "verdict" } th { "result" } } }
            tbody {
                @for candidate in &choice.candidates {
                    @for run in &candidate.runs {
                        tr {
                            th scope="row" { (candidate.label) }
                            td { @let name = words::run_name(run.phase, run.number);
                                @match &run.folder { Some(folder) => a href={ (folder) "/report.html" } { (name) }, None => (name) } }
                            td { (run.verdict.map_or("—", verdict_word)) }
                            td { (with_code(&words::run_says(run))) }
                        }
                    }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_page_decides_first_and_names_every_candidate() {
        let text = html(&sample::choice(1));
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("`{words}` is not in the page"));
        assert!(place("Recommended: small") < place("id=\"candidates\"") && place("Not tested") < place("Repeat it"));
        for label in ["small", "capped", "noisy", "absent", "plain"] {
            place(&format!("<th scope=\"row\">{label}"));
        }
        place("has no retained messages over &lt;mqtt5&gt;");
        place("href=\"runs/1-small-race-1/report.html\"");
    }

    #[test]
    fn growth_is_answered_beside_the_headroom() {
        let text = html(&sample::grown());
        for words in ["<code>growth 3 ×</code>", "<th>3\u{a0}× the load</th>", "<td>covered</td>", "cores, 3\u{a0}×"]
        {
            assert!(text.contains(words), "`{words}` is not in the page");
        }
        assert!(!html(&sample::choice(1)).contains("the load</th>"), "nobody asked");
    }
}
