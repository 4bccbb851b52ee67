//! The page of a choice: who qualifies, who does not and why, at what cost, how sure that is, what was not tested, how to repeat it.

use maud::{Markup, html};
use pubmark_record::record::Status;
use pubmark_report::html::{page, with_code};
use pubmark_report::words::{capitalised, command_line, sentence, system_name, verdict_word};

use crate::record::{CandidateResult, Choice, State};
use crate::requirements::REQUIREMENTS_FILE;
use crate::words;

/// The page.
pub fn html(choice: &Choice) -> String {
    let body = html! {
        header {
            p.kind { "pubmark choose" }
            h1 { "Which system for " (choice.workload) "?" }
            p { (words::load(choice)) "; must hold: " @for (position, limit) in choice.objectives.iter().enumerate() {
                @if position > 0 { ", " } code { (limit) } } }
            p { (words::took(choice)) "; started " (choice.started_at) }
        }
        (recommendation(choice))
        main {
            section #candidates { h2 { "Candidates" } (candidates(choice)) }
            section #sure { h2 { "How sure" } p { (words::rule(choice)) } (confidence(choice)) }
            section #objectives { h2 { "Objectives" } (objectives(choice)) }
            section #headroom { h2 { "Headroom and ten times the fleet" } (headroom(choice)) }
            section #runs { h2 { "Every run" } (runs(choice)) }
            section #untested { h2 { "Not tested" } ul { @for one in &choice.not_tested { li { (with_code(&capitalised(one))) } } } }
        }
        section #reproduce {
            h2 { "Repeat it" }
            pre { code { (command_line(&choice.command)) } }
            p { "Files beside this page: " a href="choice.json" { "choice.json" } ", " a href="choice.md" { "choice.md" } ", "
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
            h2 { "Recommended: " (choice.recommendation.text) }
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
    html! {
        div.scroll { table {
            caption { "Cost in the race: mean over its runs. Ten times the fleet is estimated, not measured." }
            thead { tr {
                th { "candidate" } th { "result" } th { "why" } th.number { "cores" } th.number { "memory" } th.number { "headroom" }
                th.number { "cores, 10 × fleet" } th.number { "memory, 10 × fleet" }
            } }
            tbody {
                @for candidate in words::in_order(choice) {
                    tr.(class(&candidate.state)) {
                        th scope="row" { (candidate.label) (what(candidate)) }
                        td.result { (candidate.state.word()) }
                        td { (with_code(candidate.state.reason())) }
                        @let [cores, memory, ten_cores, ten_memory] = words::cost_columns(candidate.cost.as_ref());
                        td.number { (cores) } td.number { (memory) } td.number { (candidate.headroom.shown()) }
                        td.number { (ten_cores) } td.number { (ten_memory) }
                    }
                }
            }
        } }
    }
}

/// The system with its version, and what it was spoken to over.
fn what(candidate: &CandidateResult) -> Markup {
    html! {
        @if let Some(system) = &candidate.system {
            small { (system_name(system)) @if let Some(protocol) = &candidate.protocol { " over " (protocol) }
                @if let Some(limits) = &system.limits { ", " (limits.asked) } }
        }
    }
}

fn confidence(choice: &Choice) -> Markup {
    html! {
        dl { @for candidate in words::in_order(choice) {
            dt { (candidate.label) ": " (candidate.state.word()) }
            dd { (sentence(&words::confidence(choice, candidate))) }
        } }
    }
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
            dd { (with_code(&capitalised(&candidate.headroom.text)))
                @if let Some(folder) = &candidate.headroom.folder { " (" a href={ (folder) "/capacity.html" } { "the search" } ")" } "." }
            @if let Some(cost) = &candidate.cost {
                dd { "Ten times the fleet: cores: " (cost.ten_times.cores_from) "; memory: " (cost.ten_times.memory_from) "." }
            }
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
}
