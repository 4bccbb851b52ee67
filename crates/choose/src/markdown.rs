//! A choice as Markdown: for a ticket, a merge request, a wiki.

use pubmark_report::words::command_line;

use crate::cost::Cost;
use crate::record::Choice;
use crate::requirements::REQUIREMENTS_FILE;
use crate::words;

/// The choice as Markdown.
pub fn markdown(choice: &Choice) -> String {
    let mut text = format!("# Which system for {}?\n\n", cell(&choice.workload));
    text.push_str(&format!("Load: {}. Must hold: {}.\n\n", words::load(choice), code(&choice.objectives)));
    text.push_str(&format!(
        "**Recommended:** {}. Of the candidates, {}.\n\n",
        choice.recommendation.text,
        words::counts(choice)
    ));
    text.push_str(&candidates(choice));
    text.push_str("\n## How sure\n\n");
    text.push_str(&words::rule(choice));
    text.push_str("\n\n");
    for candidate in words::in_order(choice) {
        let (label, word) = (cell(&candidate.label), candidate.state.word());
        text.push_str(&format!("- {label}, {word}: {}.\n", words::confidence(choice, candidate)));
    }
    text.push_str(&objectives(choice));
    text.push_str(&extrapolations(choice));
    text.push_str("\n## Not tested\n\n");
    for sentence in &choice.not_tested {
        text.push_str(&format!("- {}\n", cell(sentence)));
    }
    text.push_str(&format!("\n## Repeat it\n\n```console\n$ {}\n```\n\n", command_line(&choice.command)));
    text.push_str(&format!(
        "`{REQUIREMENTS_FILE}` in this folder has the same requirements. {}.\n",
        words::took(choice)
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
    let mut text = String::from(
        "| candidate | result | why | cores | memory | headroom | cores, 10 × fleet | memory, 10 × fleet |\n\
         |---|---|---|---:|---:|---:|---:|---:|\n",
    );
    for candidate in words::in_order(choice) {
        let [cores, memory, ten_cores, ten_memory] = words::cost_columns(candidate.cost.as_ref());
        text.push_str(&format!(
            "| {} | **{}** | {} | {cores} | {memory} | {} | {ten_cores} | {ten_memory} |\n",
            cell(&candidate.label),
            candidate.state.word(),
            cell(candidate.state.reason()),
            candidate.headroom.shown()
        ));
    }
    text
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

/// How the cost of ten times the fleet was found.
fn extrapolations(choice: &Choice) -> String {
    let costs: Vec<(&str, &Cost)> = words::in_order(choice)
        .into_iter()
        .filter_map(|candidate| Some((candidate.label.as_str(), candidate.cost.as_ref()?)))
        .collect();
    if costs.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n## Ten times the fleet\n\nEstimated, not measured:\n\n");
    for (label, cost) in costs {
        let ten = &cost.ten_times;
        text.push_str(&format!("- {}: cores: {}; memory: {}.\n", cell(label), ten.cores_from, ten.memory_from));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_candidate_has_a_row_of_eight_cells() {
        let text = markdown(&sample::choice(1));
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("**") && line.starts_with('|')).collect();
        assert_eq!(rows.len(), 5, "{text}");
        assert!(rows.iter().all(|row| row.replace("\\|", "").matches('|').count() == 9), "{rows:#?}");
        assert!(
            rows[0].starts_with("| small | **qualifies** |  | 0.0123 | 8.9 MB | 4.2 × | 0.123 | — |"),
            "{}",
            rows[0]
        );
        for words in [
            "fewer than 100 connections",
            "networks: no link",
            "$ pubmark choose requirements.yaml",
            "nothing is claimed",
        ] {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
    }
}
