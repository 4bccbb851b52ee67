//! A choice on a terminal: at most twenty lines of eighty columns. What is cut stands in the report.

use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::record::Status;
use pubmark_report::terminal::layout::{Page, Tone, cut};
use pubmark_report::terminal::{COLUMNS, TerminalOptions};

use crate::record::{CandidateResult, Choice, State};
use crate::words;

/// Rows of candidates at most.
const ROWS: usize = 9;
/// Columns of a candidate's name, and of each of its values.
const NAME: usize = 26;
const VALUE: usize = 13;

/// The choice as text, with a final newline.
pub fn summary(choice: &Choice, options: &TerminalOptions<'_>) -> String {
    // Cut in redirected output, too: it is the first look, and the report has all of it.
    let mut page = Page::new(Some(options.columns.unwrap_or(COLUMNS)));
    page.field("choose", &words::load(choice), 1);
    page.field("must hold", &choice.objectives.join(", "), 1);
    page.blank();
    page.line(&row("", "candidate", &["cores", "memory", "headroom"].map(str::to_owned)), Tone::Plain);
    candidates(&mut page, choice);
    page.blank();
    let tone = if choice.recommendation.candidate.is_some() { Tone::Good } else { Tone::Caution };
    page.toned_field("recommend", &choice.recommendation.text, 2, tone);
    let tone = if choice.status == Status::Interrupted { Tone::Caution } else { Tone::Plain };
    page.toned_field("race", &format!("{}; {}", words::counts(choice), words::took(choice)), 1, tone);
    if let Some(folder) = options.folder {
        page.path("report", &format!("{folder}/choice.html"), "(also choice.json, choice.md)");
    }
    page.text(options.colour)
}

fn row(state: &str, name: &str, values: &[String]) -> String {
    let mut line = format!("  {state:<10}{:<NAME$}", cut(name, NAME - 1));
    for value in values {
        line.push_str(&format!("{:>VALUE$}", cut(value, VALUE - 1)));
    }
    line
}

fn tone(state: &State) -> Tone {
    match state {
        State::Qualifies => Tone::Good,
        State::Fails { .. } | State::Broken { .. } => Tone::Bad,
        State::Undecided { .. } => Tone::Caution,
        State::Excluded { .. } => Tone::Plain,
    }
}

/// A row a candidate; those that are excluded for one reason in one.
fn candidates(page: &mut Page, choice: &Choice) {
    let (excluded, others): (Vec<&CandidateResult>, Vec<&CandidateResult>) =
        words::in_order(choice).into_iter().partition(|candidate| matches!(candidate.state, State::Excluded { .. }));
    let mut rows: Vec<(String, Tone)> =
        others.iter().map(|candidate| (text(candidate), tone(&candidate.state))).collect();
    let reasons = by_reason(excluded.iter().map(|candidate| (candidate.label.as_str(), candidate.state.reason())));
    rows.extend(
        reasons
            .iter()
            .map(|(reason, labels)| (format!("  {:<10}{}: {reason}", "excluded", named(labels)), Tone::Plain)),
    );
    let more = rows.len().saturating_sub(ROWS);
    let shown = if more > 0 { ROWS - 1 } else { rows.len() };
    for (line, tone) in &rows[..shown] {
        page.line(line, *tone);
    }
    if more > 0 {
        page.line(&format!("  {:<10}and {} more: see the report", "", rows.len() - shown), Tone::Plain);
    }
}

fn text(candidate: &CandidateResult) -> String {
    let state = &candidate.state;
    if *state != State::Qualifies {
        return format!("  {:<10}{}: {}", state.word(), candidate.label, state.reason());
    }
    let [cores, memory, ..] = words::cost_columns(candidate.cost.as_ref());
    row(state.word(), &candidate.label, &[cores, memory, candidate.headroom.shown()])
}
