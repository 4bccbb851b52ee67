//! A choice as Markdown: for a ticket, a merge request, a wiki.

use pubmark_report::words::command_line;

use crate::record::Choice;
use crate::requirements::REQUIREMENTS_FILE;
use crate::words;

/// The choice as Markdown.
pub fn markdown(choice: &Choice) -> String {
    let mut text = format!("# Which system for {}?\n\n", cell(&choice.workload));
    text.push_str(&format!("Load: {}. Must hold: {}.\n\n", words::load(choice), code(&words::must_hold(choice))));
    text.push_str(&format!(
        "**Recommended:** {}. Of the candidates, {}.\n\n",
        choice.recommendation.text,
        words::counts(choice)
    ));
    text.push_str(&candidates(choice));
    text.push_str(&costs(choice));
    text.push_str("\n## How sure\n\n");
    text.push_str(&words::rule(choice));
    text.push_str("\n\n");
    for (labels, sentence) in words::how_sure(choice) {
        text.push_str(&format!("- {}: {sentence}.\n", cell(&labels)));
    }
    text.push_str(&objectives(choice));
    text.push_str("\n## Not tested\n\n");
    for sentence in &choice.not_tested {
        text.push_str(&format!("- {}\n", cell(sentence)));
    }
    text.push_str(&format!("\n## Repeat it\n\n```console\n$ {}\n```\n\n", command_line(&choice.command)));
    text.push_str(&format!(
        "`{REQUIREMENTS_FILE}` in this folder has the same requirements. {}; on {}.\n",
        words::took(choice),
        words::machine(choice)
    ));
    text
}

fn code(limits: &[String]) -> String {
    limits.iter().map(|limit| format!("`{limit}`")).collect::<Vec<_>>().join(", ")
}

/// A text in a cell: no line end, no column of its own.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn candidates(choice: &Choice) -> String {
    let growth = words::growth(choice);
    let mut heads = ["candidate", "what was run", "result", "headroom"].map(str::to_owned).to_vec();
    heads.extend(growth.iter().map(|growth| format!("{growth} the load")));
    heads.push("why".to_owned());
    let rows = words::in_order(choice).into_iter().map(|candidate| {
        let mut cells = vec![
            cell(&candidate.label),
            cell(&words::what(candidate).unwrap_or_default()),
            format!("**{}**", candidate.state.word()),
            candidate.headroom.shown(),
        ];
        cells.extend(growth.iter().map(|_| words::coverage(candidate)));
        cells.push(cell(candidate.state.reason()));
        cells
    });
    table(&heads, |head| head == "headroom", rows)
}

/// What those that were raced cost, now and at larger loads, and how that was found.
fn costs(choice: &Choice) -> String {
    let loads = words::larger_loads(choice);
    let mut heads = ["candidate", "cores", "memory"].map(str::to_owned).to_vec();
    heads.extend(loads.iter().flat_map(|(times, _)| [format!("cores, {times}"), format!("memory, {times}")]));
    let raced: Vec<_> = words::in_order(choice).into_iter().filter(|candidate| candidate.cost.is_some()).collect();
    if raced.is_empty() {
        return String::new();
    }
    let rows = raced.into_iter().map(|candidate| {
        let cost = candidate.cost.as_ref();
        let mut cells = vec![cell(&candidate.label)];
        cells.extend(words::cost_now(cost));
        cells.extend(loads.iter().flat_map(|(_, of)| words::cost_at(cost.and_then(of))));
        cells
    });
    let table = table(&heads, |head| head != "candidate", rows);
    let mut text = format!("\n## Cost\n\n{table}\n{}\n\n", words::COST_NOTE);
    for (labels, sentences) in words::costs_from(choice) {
        for sentence in sentences {
            text.push_str(&format!("- {}, {sentence}.\n", cell(&labels)));
        }
    }
    text
}

/// A table; columns of numbers stand to the right.
fn table(heads: &[String], is_number: fn(&str) -> bool, rows: impl Iterator<Item = Vec<String>>) -> String {
    let rule = |head: &String| if is_number(head) { "---:|" } else { "---|" };
    let rules: String = heads.iter().map(rule).collect();
    let rows = rows.map(|cells| format!("| {} |\n", cells.join(" | "))).collect::<String>();
    format!("| {} |\n|{rules}\n{rows}", heads.join(" | "))
}

/// Which objective held in how many runs.
fn objectives(choice: &Choice) -> String {
    let raced = || words::in_order(choice).into_iter().filter(|candidate| !candidate.runs.is_empty());
    if raced().next().is_none() {
        return String::new();
    }
    let heads: Vec<String> = choice.objectives.iter().map(|limit| format!("`{}`", cell(limit))).collect();
    let mut text =
        format!("\n## Objectives\n\n| candidate | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for candidate in raced() {
        let cells: Vec<String> = candidate.objectives.iter().map(words::objective_cell).collect();
        text.push_str(&format!("| {} | {} |\n", cell(&candidate.label), cells.join(" | ")));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_candidate_has_a_row_and_those_that_were_raced_have_their_cost() {
        let text = markdown(&sample::choice(1));
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("**") && line.starts_with('|')).collect();
        assert_eq!(rows.len(), 5, "{text}");
        assert!(rows.iter().all(|row| row.replace("\\|", "").matches('|').count() == 6), "{rows:#?}");
        assert!(rows[0].starts_with("| small | ") && rows[0].ends_with("| **qualifies** | 4.2 × |  |"), "{}", rows[0]);
        assert!(text.contains("| small | 0.0123 | 8.9 MB | ≈ 0.123 | — |"), "{text}");
        for words in [
            "fewer than 100 connections",
            "networks: no link",
            "$ pubmark choose requirements.yaml",
            "nothing is claimed",
        ] {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
    }

    #[test]
    fn growth_has_a_column_for_its_answer_and_two_for_its_cost() {
        let text = markdown(&sample::grown());
        assert!(text.contains("`p99<50ms`, `growth 3 ×`"), "{text}");
        assert!(text.contains("| headroom | 3 × the load | why |"), "{text}");
        assert!(text.contains("| cores, 3 × | memory, 3 × | cores, 10 × | memory, 10 × |"), "{text}");
        assert!(text.contains("| **qualifies** | 4.2 × | covered |"), "{text}");
        assert!(text.contains("| small | 0.0123 | 8.9 MB | 0.0369 | 8.9 MB | ≈ 0.123 | — |"), "{text}");
        assert!(text.contains("- small, 3 × the load: cores: measured: 1 run of"), "{text}");
    }
}
