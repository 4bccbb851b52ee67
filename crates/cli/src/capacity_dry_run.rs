//! `capacity --dry-run`: what a search would try, and whether this machine can give its first load; nothing is started.

use std::time::Duration;

use pubmark_experiment::capacity::search::Bounds;
use pubmark_experiment::capacity::trial::Trials;
use pubmark_experiment::experiment::pace::{self, about};
use pubmark_record::capacity::Knob;
use pubmark_report::numbers;
use pubmark_runner::CheckedRun;

use crate::dry_run;
use crate::failure::Failure;
use crate::figures::three_digits;
use crate::values::seconds;
use crate::wrapping::wrap;

/// What was asked for besides the bounds.
pub struct Asked<'a> {
    /// Objectives, as typed.
    pub objectives: &'a str,
    /// Precision of the answer, percent.
    pub precision: f64,
    /// No trial begins after this time.
    pub within: Duration,
}

/// The plan as text; judging the first load takes a second.
pub fn text(asked: &Asked<'_>, bounds: &Bounds, trials: &Trials<'_>, first: &CheckedRun) -> Result<String, Failure> {
    let offered_per_s = Trials::offered_per_s(&first.workload).unwrap_or(0.0);
    let per_factor = offered_per_s / bounds.first;
    let load = |factor: f64| format!("{} msg/s (factor {})", three_digits(per_factor * factor), three_digits(factor));
    let what = match trials.knob {
        Knob::Rate => "how often devices send",
        Knob::Scale => "how many devices there are",
    };
    let window = &first.spec.window;
    let each = pace::of_a_run(window.warmup + window.duration);
    let mut text = String::new();
    if let Some(count) = first.spec.nodes.nodes {
        let nodes = numbers::counted(count.into(), "machine", "machines");
        text.push_str(&format!("  {:<12}{nodes}, waited for once, before the first trial\n", "nodes"));
    }
    for (head, words) in [
        ("search", format!("{what}, from {} up, at most {}", load(bounds.first), load(bounds.most))),
        ("must hold", asked.objectives.to_owned()),
        (
            "steps",
            format!(
                "doubled until it does not hold, then about {} halvings of the gap, to {} %; the loads on both sides \
                 of the answer are tried again",
                halvings(bounds),
                three_digits(asked.precision)
            ),
        ),
        (
            "each trial",
            format!(
                "{} warm-up, {} measured: about {} with its start; none begins after {}",
                seconds(window.warmup),
                seconds(window.duration),
                seconds(each),
                about(asked.within)
            ),
        ),
    ] {
        text.push_str(&wrap(&format!("  {head:<12}"), 14, &words));
    }
    text.push_str("\nThe first trial:\n\n");
    text.push_str(&dry_run::text(first, true)?);
    Ok(text)
}

/// Trials until a gap of a factor of two is as narrow as the precision.
fn halvings(bounds: &Bounds) -> u32 {
    (2.0_f64.ln() / bounds.precision.ln()).log2().ceil().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_halved_until_it_is_narrow_enough() {
        let bounds = |precision| Bounds { first: 1.0, least: 1.0, most: 10.0, precision, whole: false };
        assert_eq!([2.0, 1.5, 1.03].map(|precision| halvings(&bounds(precision))), [0, 1, 5]);
    }
}
