//! `choose --dry-run`: which systems are excluded, what would be run, and for how long; nothing is started.

use std::path::Path;
use std::time::Duration;

use pubmark_choose::candidate::{Candidate, Runs};
use pubmark_choose::headroom::least_time;
use pubmark_choose::load_of;
use pubmark_choose::requirements::Requirements;
use pubmark_choose::rule::Rule;
use pubmark_experiment::capacity::trial::Trials;
use pubmark_experiment::experiment::pace::{self, about};
use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::threshold::Objectives;
use pubmark_runner::PreparedRun;
use pubmark_runner::progress_text::seconds;

use pubmark_report::numbers::counted;
use pubmark_report::wrapping::wrap;

/// The plan as text. `earlier` is an interrupted choice that would go on: its folder, and the runs that were made.
pub fn text(
    requirements: &Requirements,
    objectives: &Objectives,
    candidates: &[Candidate],
    earlier: Option<(&Path, usize)>,
) -> String {
    let runs: Vec<(&str, &Runs)> = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.label.as_str(), candidate.runs.as_deref().ok()?)))
        .collect();
    let mut text = String::new();
    let mut field = |head: &str, words: &str| text.push_str(&wrap(&format!("  {head:<12}"), 14, words));
    if let Some((_, first)) = runs.first() {
        let (workload, devices) = (&first.race.workload, first.race.fleet.device_count() as u64);
        field("load", &load_of(&workload.name, devices, Trials::offered_per_s(workload), requirements));
    }
    let limits: Vec<&str> = objectives.clauses().iter().map(|clause| clause.text.trim()).collect();
    field("must hold", &limits.join(", "));
    if let Some(limit) = requirements.recovery {
        field("recovery", &format!("all clients are back {} after the system was killed", seconds(limit)));
    }
    if requirements.growth > 1.0 {
        field("growth", &format!("a system must carry {} times this load, too", requirements.growth));
    }
    let listed: Vec<String> = runs.iter().map(|(label, runs)| format!("{label} over {}", runs.protocol())).collect();
    field("candidates", &if listed.is_empty() { "none that can be run".to_owned() } else { listed.join(", ") });
    for (reason, labels) in by_reason(refused(candidates)) {
        field("not run", &format!("{}: {reason}", named(&labels)));
    }
    // Each run must also reach its end, which counts as an objective.
    let count = 1 + objectives.clauses().len() + usize::from(requirements.recovery.is_some());
    let rule = Rule::for_objectives(count);
    if let Some((_, first)) = runs.first() {
        for (head, words) in stages(requirements, first, rule) {
            field(head, &words);
        }
        let mut least: Duration = runs.iter().map(|(_, runs)| least(runs, rule)).sum();
        let without = match requirements.growth > 1.0 {
            true => ", with one trial of the growth for each",
            false if requirements.headroom => ", without the search for headroom",
            false => "",
        };
        if requirements.growth > 1.0 {
            let of = |runs: &Runs| least_time(requirements.growth, runs.warm_up_of_trials());
            least += runs.iter().map(|(_, runs)| of(runs)).sum::<Duration>();
        }
        field(
            "time",
            &format!(
                "about {} at least{without}; no run begins that would end after {}",
                about(least),
                about(requirements.within)
            ),
        );
    }
    if let Some((folder, made)) = earlier {
        let made = counted(made as u64, "run", "runs");
        field("continues", &format!("`{}` ({made} made); `--fresh` starts again", folder.display()));
    }
    text
}

/// What is run in each stage.
fn stages(requirements: &Requirements, first: &Runs, rule: Rule) -> Vec<(&'static str, String)> {
    let (lead, window) = (rule.lead, |run: &PreparedRun| seconds(run.spec.window.duration));
    let mut stages = vec![
        ("screening", format!("1 to {lead} short runs of {} for each candidate", window(&first.screening))),
        (
            "race",
            format!(
                "{lead} to {} runs of {} for each that is left, in blocks in a random order",
                rule.most_runs(),
                window(&first.race)
            ),
        ),
    ];
    match &first.recovery {
        Some(Ok(run)) => {
            stages.push(("kill", format!("{lead} or more runs of {} for each that holds", window(run))));
        }
        Some(Err(reason)) => stages.push(("kill", format!("not possible: {reason}"))),
        None => {}
    }
    let search = match requirements.headroom {
        true => "in the time that is left, the highest load of each that qualifies",
        false => "not searched (`--no-headroom`)",
    };
    stages.push(("headroom", search.to_owned()));
    stages
}

fn refused(candidates: &[Candidate]) -> impl Iterator<Item = (&str, &str)> {
    candidates.iter().filter_map(|candidate| Some((candidate.label.as_str(), candidate.runs.as_ref().err()?.reason())))
}

/// Shortest time of all runs of a candidate that qualifies.
fn least(runs: &Runs, rule: Rule) -> Duration {
    let of = |run: &PreparedRun| pace::of_a_run(run.spec.window.warmup + run.spec.window.duration);
    let recovery = runs.recovery.as_ref().and_then(|run| run.as_ref().ok()).map(of).unwrap_or_default();
    of(&runs.screening) + (of(&runs.race) + recovery) * rule.lead
}
