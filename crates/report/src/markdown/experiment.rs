//! An experiment and a capacity search as Markdown.

use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::{CellFigure, ExperimentRecord, PaperFigures};

use super::{code, escaped, struck, table};
use crate::charts::capacity::outcome;
use crate::experiment::{Beside, CustomTable, Group, Member, View, headline, is_unusable};
use crate::numbers::{TimeUnit, duration};
use crate::words::{self, UNUSABLE, UNUSABLE_MEANS};

/// An experiment: the winners, then a table for each setting.
pub fn experiment(record: &ExperimentRecord) -> String {
    let view = View::of(record);
    let mut text = format!("# {}\n\n**{}**\n\n", escaped(&record.title), escaped(&headline(&view)));
    for conclusion in view.conclusions() {
        text.push_str(&format!("- {}\n", escaped(&conclusion.text)));
    }
    for caution in &record.cautions {
        text.push_str(&format!("- caution: {}\n", escaped(caution)));
    }
    text.push_str(&format!("\n{}; took {}.\n", escaped(&view.what_ran()), duration(record.took_s)));
    if let Some(nodes) = &record.nodes {
        text.push_str(&format!("\nWith {}.\n", escaped(&nodes.in_words())));
    }
    for group in &view.groups {
        cells(&mut text, &view, group);
    }
    text.push_str(
        "\nMean over the repetitions, of a latency its two bounds; in parentheses the 95 % interval, bounds and noise \
         together. Bold is better than every other: proven.\n",
    );
    if view.has_unusable() {
        text.push_str(&format!("\n{UNUSABLE} {UNUSABLE_MEANS}.\n"));
    }
    if let Some(own) = CustomTable::of(record) {
        text.push_str("\n## Metrics of your own\n\n");
        let header: Vec<String> =
            [String::new()].into_iter().chain(own.heads.iter().map(|head| escaped(head))).collect();
        let rows: Vec<Vec<String>> =
            own.rows.into_iter().map(|(label, values)| [escaped(&label)].into_iter().chain(values).collect()).collect();
        table(&mut text, &header, &rows);
    }
    for paper in &record.papers {
        beside(&mut text, &view, paper);
    }
    text.push_str(&format!("\nCommand: {}\n", code(&words::command_line(&record.command))));
    text
}

/// Figures of a publication beside the results.
fn beside(text: &mut String, view: &View, paper: &PaperFigures) {
    let Beside { unit, rows, versions_here } = Beside::of(view, paper);
    text.push_str(&format!("\n## {}: {}\n\n", escaped(&paper.source), escaped(&paper.figure)));
    let with_unit = |name: &str| match unit.symbol {
        "" => name.to_string(),
        symbol => format!("{name}, {symbol}"),
    };
    let header = ["cell".to_string(), with_unit("printed"), with_unit("here"), "here / printed".to_string()];
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let here = row.failed.map_or_else(|| unit.bounds([row.here_lower, row.here]), str::to_string);
            let here = if row.is_unusable { struck(&here) } else { here };
            vec![escaped(row.label), unit.number(row.printed), here, row.times()]
        })
        .collect();
    table(text, &header, &rows);
    if !paper.versions.is_empty() {
        text.push_str(&format!("\nMeasured there: {}.\n", escaped(&paper.versions)));
    }
    if !versions_here.is_empty() {
        text.push_str(&format!("\nMeasured here: {}.\n", escaped(&versions_here)));
    }
    if !paper.differs.is_empty() {
        text.push_str(&format!("\nWhy ours differ: {}\n", escaped(&paper.differs)));
    }
}

fn cells(text: &mut String, view: &View, group: &Group) {
    text.push('\n');
    if !group.label.is_empty() {
        text.push_str(&format!("## {}\n\n", escaped(&group.label)));
    }
    let mut header = vec![escaped(view.compared)];
    header.extend(view.columns.iter().map(|(column, unit)| match unit.symbol {
        "" => column.head.to_string(),
        symbol => format!("{}, {symbol}", column.head),
    }));
    header.push("runs".to_string());
    let rows: Vec<Vec<String>> = group.members.iter().map(|member| row(view, member)).collect();
    table(text, &header, &rows);
}

fn row(view: &View, member: &Member) -> Vec<String> {
    let mut fields = vec![escaped(&member.name_with_version())];
    match member.failed() {
        Some(why) => {
            // A failed cell has no numbers; the reason is in its first column of figures.
            let reason = member.cell.failures.first().map_or_else(String::new, |failure| format!(": {}", failure.text));
            fields.push(escaped(&format!("{why}{reason}")));
            fields.extend(vec![String::new(); view.columns.len().saturating_sub(1)]);
        }
        None => fields.extend(view.columns.iter().map(|(column, unit)| {
            let figure = member.figure(column.figure);
            let mean = unit.bounds(figure.map_or([None; 2], CellFigure::mean_bounds));
            let mean = match figure {
                _ if view.wins(member.cell, column.figure) => format!("**{mean}**"),
                Some(figure) if is_unusable(figure) => struck(&mean),
                _ => mean,
            };
            match figure.and_then(CellFigure::whole_interval).filter(|(low, high)| low < high) {
                Some((low, high)) => format!("{mean} ({}–{})", unit.number(low), unit.number(high)),
                None => mean,
            }
        })),
    }
    fields.push(format!("{} of {}", member.whole_runs(), view.record.repetitions));
    fields
}

/// A capacity search: the result, then every trial.
pub fn capacity(record: &CapacityRecord) -> String {
    let mut text = format!(
        "# Capacity of {} on {}\n\n**{}**\n\n{}\n\n",
        escaped(&words::system_name(&record.system)),
        escaped(&record.workload),
        words::capitalised(&words::capacity_headline(record)),
        words::sentence(&escaped(&record.result.text))
    );
    text.push_str(&format!("- Objectives: {}\n", code(&record.objectives)));
    text.push_str(&format!("- The limit: {}\n", escaped(&words::capacity_limit(record))));
    for caution in &record.cautions {
        text.push_str(&format!("- caution: {}\n", escaped(caution)));
    }
    text.push('\n');
    let unit =
        TimeUnit::for_value(record.trials.iter().filter_map(|trial| trial.latency.upper.p99_us).fold(0.0, f64::max));
    let rows: Vec<Vec<String>> = record
        .trials
        .iter()
        .map(|trial| {
            let outcome = outcome(trial).0.to_string();
            words::trial_numbers(trial, unit).into_iter().chain([outcome]).collect()
        })
        .collect();
    let time = |name: &str| format!("{name}, {}", unit.symbol());
    let header: Vec<String> =
        ["offered/s", "delivered/s", "lost", &time("p50"), &time("p99"), "system cores", "pubmark cores", "outcome"]
            .map(String::from)
            .to_vec();
    table(&mut text, &header, &rows);
    text.push_str(&format!("\nCommand: {}\n", code(&words::command_line(&record.command))));
    text
}
