//! The table of built-in experiments.

use std::path::Path;
use std::time::Duration;

use pubmark_model::experiment::{self, AXES, Experiment, Listed, axis_description};
use pubmark_runner::{ErrorKind, RunError};

use pubmark_experiment::experiment::definition;
use pubmark_experiment::experiment::pace::{self, about};
use pubmark_report::wrapping::wrap;
use pubmark_runner::progress_text::seconds;

fn rows() -> Result<Vec<Listed>, RunError> {
    experiment::all().map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to load a built-in experiment")
    })
}

/// What the listed times are of.
const NOTE: &str =
    "Times are those if every cell can be run: all have the longest warm-up that one of the systems needs.";

/// Warm-up of an experiment if every cell can be run.
fn warm_up(experiment: &Experiment) -> Result<Duration, RunError> {
    if experiment.exact_warmup {
        return Ok(experiment.warmup);
    }
    let needed = definition::warm_ups(experiment, Path::new(""))?;
    Ok(needed.into_iter().fold(experiment.warmup, Duration::max))
}

/// Duration of an experiment if every cell can be run.
fn time(cells: usize, experiment: &Experiment) -> Result<String, RunError> {
    let run = warm_up(experiment)? + experiment.duration;
    Ok(about(pace::of_a_run(run) * (cells as u32 * experiment.repeat)))
}

/// For the terminal: for each experiment a line of figures, then its description.
pub fn text() -> Result<String, RunError> {
    let rows = rows()?;
    let mut text = String::new();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let runs = row.cells as u32 * row.experiment.repeat;
        let (full, quick) = (time(row.cells, &row.experiment)?, time(row.cells, &row.experiment.clone().quickly())?);
        text.push_str(&format!("{:<width$} {runs:>4} runs, {full}; {quick} with --quick\n", row.name));
        text.push_str(&format!("  {}\n", row.experiment.description));
    }
    text.push('\n');
    text.push_str(&wrap("", 0, NOTE));
    Ok(text)
}

/// Names of the experiments.
pub fn names() -> Result<Vec<String>, RunError> {
    Ok(rows()?.into_iter().map(|row| row.name.to_string()).collect())
}

/// Details of one experiment: what it varies, how many runs it has, how long it takes.
pub fn details(name: &str) -> Result<Option<String>, RunError> {
    let Some(row) = rows()?.into_iter().find(|row| row.name == name) else { return Ok(None) };
    let experiment = &row.experiment;
    let quick = time(row.cells, &experiment.clone().quickly())?;
    let repetitions = format!(
        "{} of each of {} cells, {} after {} each",
        experiment.repeat,
        row.cells,
        seconds(experiment.duration),
        seconds(warm_up(experiment)?)
    );
    let mut text = format!("{}\n{}", row.name, wrap("  ", 2, &experiment.description));
    for (head, words) in [
        ("title", experiment.title.clone()),
        ("workload", definition::workload_words(experiment)),
        ("varies", row.varied.join(", ")),
        ("runs", repetitions),
        ("takes", format!("{}; {quick} with --quick", time(row.cells, experiment)?)),
        ("type", format!("`pubmark experiment {name}`; with `--dry-run` it says what can be run here")),
    ] {
        text.push_str(&wrap(&format!("  {head:<10}"), 12, &words));
    }
    Ok(Some(text))
}

/// The page `docs/reference/experiments.md`.
pub fn markdown() -> Result<String, RunError> {
    let mut text = String::from(
        "# Built-in experiments\n\n\
         `pubmark experiment NAME` runs one; the files in `experiments/` hold all settings. Times are those of a quiet \
         machine on which every cell can be run: all have the longest warm-up that one of the systems needs.\n\n\
         | experiment | workload | varies | cells | repetitions | takes | with `--quick` | what it is |\n\
         |---|---|---|---:|---:|---:|---:|---|\n",
    );
    for row in rows()? {
        let experiment = &row.experiment;
        text.push_str(&format!(
            "| `{}` | `{}` | {} | {} | {} | {} | {} | {} |\n",
            row.name,
            definition::workload_words(experiment),
            row.varied.join(", "),
            row.cells,
            experiment.repeat,
            time(row.cells, experiment)?,
            time(row.cells, &experiment.clone().quickly())?,
            experiment.description,
        ));
    }
    text.push_str(
        "\n## Axes\n\n\
         An experiment's file varies these under `axes`, each with one value or a list.\n\n\
         | axis | example | values |\n|---|---|---|\n",
    );
    for row in AXES {
        text.push_str(&format!("| `{}` | `{}` | {} |\n", row.name, row.example, axis_description(row.name)));
    }
    text.push_str(&format!("| `set` | `{{size: [1KB, 2KB]}}` | {} |\n", axis_description("set")));
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_list_says_what_its_times_are_of() {
        let listed = text().unwrap();
        let last: Vec<&str> = listed.split("\n\n").last().unwrap().split_whitespace().collect();
        assert_eq!(last.join(" "), NOTE);
        assert!(markdown().unwrap().contains("all have the longest warm-up that one of the systems needs"));
    }
}
