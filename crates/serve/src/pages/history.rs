//! Content of the history page: heading, conditions, chart and table.

use maud::{Markup, PreEscaped, html};
use pubmark_report::html::{HistoryRun as ShownRun, HistoryView, SCRIPT, history_view};
use pubmark_report::numbers;

use crate::library::history::{FAIL_ON, History, HistoryQuery, HistoryRun, MOST_RUNS};

/// The whole content.
pub fn fragment(history: &History, query: &HistoryQuery) -> String {
    let view = HistoryView { fail_on: history.fail_on.clone(), runs: history.runs.iter().map(shown).collect() };
    html! {
        title { (history.workload) " on " (history.system) ": history" }
        header {
            p.kind { "pubmark history" }
            h1 { (history.workload) " on " (history.system) }
            p { "Runs of one schedule (" code { (history.schedule_hash) } ") with the same settings" @if history.runs.len() >= MOST_RUNS { "; the newest " (MOST_RUNS) } "." }
        }
        main {
            (gates(history, query))
            (PreEscaped(history_view(&view)))
        }
        script { (PreEscaped(SCRIPT)) }
    }
    .into_string()
}

fn gates(history: &History, query: &HistoryQuery) -> Markup {
    let chosen = query.baseline.as_deref().unwrap_or_default();
    html! {
        form #gates {
            input type="hidden" name="run" value=(query.run);
            label for="fail-on" { "A regression is" }
            input #fail-on name="fail_on" value=(history.fail_on) placeholder=(FAIL_ON) autocomplete="off" spellcheck="false";
            label for="baseline" { "compared with" }
            select #baseline name="baseline" {
                option value="" selected[chosen.is_empty()] { "the previous run" }
                @for run in history.runs.iter().rev() {
                    option value=(run.folder) selected[run.folder == chosen] { (run.folder) }
                }
            }
            button type="submit" { "Check" }
        }
    }
}

fn shown(run: &HistoryRun) -> ShownRun {
    ShownRun {
        folder: run.folder.clone(),
        started_at: run.started_at.clone(),
        system_version: run.system_version.clone(),
        pubmark_version: run.pubmark_version.clone(),
        machine: run.machine.clone(),
        verdict: run.verdict,
        delivered: numbers::percentage(run.delivered_share),
        p50_us: run.p50_us,
        p99_us: run.p99_us,
        baseline: run.baseline.clone(),
        regressions: run.regressions.clone(),
        remark: run.remark.clone(),
        notes: run.notes.clone(),
    }
}
