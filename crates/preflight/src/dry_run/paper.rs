//! `paper --dry-run`: the experiments of a publication, and how long they would take; nothing is started.

use std::time::Duration;

use pubmark_experiment::experiment::pace::about;
use pubmark_experiment::experiment::planning::{Plan, absolute};
use pubmark_paper::Repetition;
use pubmark_record::by_reason::{by_reason, named};
use pubmark_report::numbers::counted;
use pubmark_runner::{Host, RunError};

use super::experiment::least;

/// The experiments that would be run, their duration, and those that are not possible here.
///
/// # Errors
/// An experiment cannot be planned.
pub fn text(repetition: &Repetition, host: &Host) -> Result<String, RunError> {
    let paper = repetition.paper();
    let mut text = format!("  {:<12}{}\n", "paper", paper.title);
    let mut all = Duration::ZERO;
    for experiment in repetition.experiments() {
        let plan = Plan::new(experiment.clone(), &absolute(None)?, host, repetition.machines())?;
        let runs = plan.runs().count() as u64;
        let time = least(&plan);
        all += time;
        let possible = plan.cells.iter().filter(|cell| cell.run.is_ok()).count();
        text.push_str(&format!(
            "\n  {:<26}{possible} of {}, {}, about {}\n",
            experiment.name,
            counted(plan.cells.len() as u64, "cell", "cells"),
            counted(runs, "run", "runs"),
            about(time)
        ));
        let refused =
            plan.cells.iter().filter_map(|cell| Some((cell.planned.label.as_str(), cell.run.as_ref().err()?)));
        for (refusal, cells) in by_reason(refused) {
            text.push_str(&format!("✗ {}: {}: {}\n", named(&cells), refusal.kind.words(), refusal.text));
        }
    }
    text.push_str(&format!("\n  {:<12}about {}\n", "time", about(all)));
    for one in &paper.not_repeated {
        text.push_str(&format!("  {:<12}{}: {}\n", "left out", one.what, one.why));
    }
    Ok(text)
}
