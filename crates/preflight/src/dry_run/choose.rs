//! `choose --dry-run`: which systems are excluded, what would be run, and for how long; nothing is started.

use std::time::Duration;

use pubmark_choose::candidate::{Candidate, Runs};
use pubmark_choose::requirements::Requirements;
use pubmark_choose::rule::Rule;
use pubmark_experiment::experiment::pace::{self, about};
use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::threshold::Objectives;
use pubmark_runner::PreparedRun;
use pubmark_runner::progress_text::seconds;

use pubmark_report::wrapping::wrap;

/// The plan as text.
pub fn text(requirements: &Requirements, objectives: &Objectives, candidates: &[Candidate]) -> String {
    let runs: Vec<(&str, &Runs)> = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.label.as_str(), candidate.runs.as_deref().ok()?)))
        .collect();
    let mut text = String::new();
    let mut field = |head: &str, words: &str| text.push_str(&wrap(&format!("  {head:<12}"), 14, words));
    let limits: Vec<&str> = objectives.clauses().iter().map(|clause| clause.text.trim()).collect();
    field("must hold", &limits.join(", "));
    if let Some(limit) = requirements.recovery {
        field("recovery", &format!("all clients are back {} after the system was killed", seconds(limit)));
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
        let windows = [&first.screening, &first.race].map(|run| seconds(run.spec.window.duration));
        field(
            "runs",
            &format!(
                "1 to {0} short ones of {1} each, then {0} or more of {2} each, in blocks in a random order; none begins that would \
                 end after {3}",
                rule.lead,
                windows[0],
                windows[1],
                about(requirements.within)
            ),
        );
        let least: Duration = runs.iter().map(|(_, runs)| least(runs, rule)).sum();
        field("time", &format!("about {} at least, without the search for headroom", about(least)));
    }
    text
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
