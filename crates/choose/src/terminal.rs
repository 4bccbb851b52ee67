//! A choice on a terminal: at most twenty lines of eighty columns. What is cut stands in the report.

use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::record::Status;
use pubmark_report::terminal::layout::{Page, Tone, cut};
use pubmark_report::terminal::{COLUMNS, TerminalOptions};

use crate::record::{CandidateResult, Choice, State};
use crate::words;

/// Lines of candidates at most.
const ROWS: usize = 10;
/// Columns of a candidate's name, and of each of its values.
const NAME: usize = 26;
const VALUE: usize = 13;

/// The choice as text, with a final newline.
pub fn summary(choice: &Choice, options: &TerminalOptions<'_>) -> String {
    // Cut in redirected output, too: it is the first look, and the report has all of it.
    let mut page = Page::new(Some(options.columns.unwrap_or(COLUMNS)));
    page.field("choose", &words::load(choice), 1);
    page.field("must hold", &words::must_hold(choice).join(", "), 1);
    page.blank();
    page.line(&row("", "candidate", &["cores", "memory", "headroom"].map(str::to_owned)), Tone::Plain);
    candidates(&mut page, choice);
    page.blank();
    let tone = if choice.recommendation.candidate.is_some() { Tone::Good } else { Tone::Caution };
    page.toned_field("recommend", &choice.recommendation.text, 3, tone);
    let tone = if choice.status == Status::Interrupted { Tone::Caution } else { Tone::Plain };
    page.toned_field("race", &format!("{}; {}", words::took(choice), words::counts(choice)), 1, tone);
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

/// A candidate's text in the table.
enum Row {
    /// Values in columns, and the same for the load that growth requires.
    Columns(String, Option<String>),
    /// A state, and a sentence.
    Sentence(&'static str, String, Tone),
}

/// A row a candidate; those that are excluded for one reason in one. Sentences get a second line where there is room.
fn candidates(page: &mut Page, choice: &Choice) {
    let (excluded, others): (Vec<&CandidateResult>, Vec<&CandidateResult>) =
        words::in_order(choice).into_iter().partition(|candidate| matches!(candidate.state, State::Excluded { .. }));
    let mut rows: Vec<Row> = others.into_iter().map(|candidate| row_of(choice, candidate)).collect();
    let reasons = by_reason(excluded.iter().map(|candidate| (candidate.label.as_str(), candidate.state.reason())));
    let grouped = reasons.iter().map(|(reason, labels)| format!("{}: {reason}", named(labels)));
    rows.extend(grouped.map(|text| Row::Sentence("excluded", text, Tone::Plain)));
    let lines = rows.iter().map(|row| if matches!(row, Row::Columns(_, None)) { 1 } else { 2 }).sum::<usize>();
    let each = if lines <= ROWS { 2 } else { 1 };
    let shown = if rows.len() > ROWS { ROWS - 1 } else { rows.len() };
    for row in &rows[..shown] {
        match row {
            Row::Columns(line, grown) => {
                page.line(line, Tone::Good);
                grown.iter().filter(|_| each == 2).for_each(|line| page.line(line, Tone::Plain));
            }
            Row::Sentence(state, text, tone) => page.toned_field(state, text, each, *tone),
        }
    }
    if rows.len() > shown {
        page.field("", &format!("and {} more: see the report", rows.len() - shown), 1);
    }
}

fn row_of(choice: &Choice, candidate: &CandidateResult) -> Row {
    let state = &candidate.state;
    if *state != State::Qualifies {
        return Row::Sentence(state.word(), format!("{}: {}", candidate.label, state.reason()), tone(state));
    }
    let cost = candidate.cost.as_ref();
    let [cores, memory] = words::cost_now(cost);
    let grown = words::growth(choice).map(|growth| {
        let [cores, memory] = words::cost_at(cost.and_then(|cost| cost.grown.as_ref()));
        row("", &format!("  {growth} the load"), &[cores, memory, words::coverage(candidate)])
    });
    Row::Columns(row(state.word(), &candidate.label, &[cores, memory, candidate.headroom.shown()]), grown)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn twenty_lines_of_eighty_columns_are_enough_for_any_number_of_candidates() {
        for count in [0, 1, 4, 40] {
            let choice = sample::choice(count);
            let options = TerminalOptions {
                folder: Some("runs/20260301-090507-choose-smart-home"),
                ..TerminalOptions::default()
            };
            let text = summary(&choice, &options);
            assert!(text.lines().count() <= 20, "{count}: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            assert_eq!(text.contains("see the report"), count >= 4, "{text}");
        }
    }

    #[test]
    fn each_state_is_shown_with_its_reason() {
        let text = summary(&sample::choice(1), &TerminalOptions::default());
        for words in
            ["qualifies small", "4.2 ×", "fails     capped: p99<50ms missed", "undecided", "broken", "excluded"]
        {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
    }

    #[test]
    fn the_load_that_growth_requires_has_a_row_of_its_own() {
        let text = summary(&sample::grown(), &TerminalOptions::default());
        assert!(text.contains("must hold stays up, p99<50ms, growth 3 ×"), "{text}");
        let row = text.lines().find(|line| line.contains("3 × the load")).unwrap();
        assert!(row.contains("0.0369") && row.contains("8.9 MB") && row.ends_with("covered"), "{row}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }
}
