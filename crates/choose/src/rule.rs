//! When a race says that an objective holds or is missed, and how often noise alone makes it wrong.
//!
//! A run says of each objective that it was met, missed, or neither: its interval contains the limit, or the run is invalid. A race
//! says that an objective is *missed* when the runs that missed it exceed those that met it by a lead, and that it *holds* when it
//! is the other way round: Wald's sequential probability ratio test of two shares that add up to 1 (*Annals of Mathematical
//! Statistics* 16, 1945). The race goes on while another objective is open, and the runs count for all: an objective holds only
//! while it has its lead. So the error is the chance that a gambler against whom the odds are ever wins the lead (Feller, volume 1,
//! chapter XIV): a system that misses an objective in a share p < 1/2 of its runs is said to miss it with a probability of
//! (p / (1 − p))^lead at most. A test that ended with the first lead would have 1 / (1 + ((1 − p) / p)^lead).
//!
//! Before the race there are short runs. A system leaves after them when each of the first `lead` missed the same objective: p^lead
//! more.

/// Share of its runs in which a system that meets an objective misses it through noise, at most, for the error to be the one stated.
pub const NOISE: f64 = 0.1;
/// Chance that a system that meets all its objectives is said to fail, at most, where noise is [`NOISE`] at most.
pub const ERROR: f64 = 0.01;
/// Smallest lead: fewer runs say nothing about noise.
const LEAST_LEAD: u32 = 3;
/// Runs of a race at most, as a multiple of the lead: a system near a limit would race for ever.
const PATIENCE: u32 = 4;

/// What a race requires before it says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Runs of one kind in excess of those of the other.
    pub lead: u32,
}

impl Rule {
    /// The rule for a system with `count` objectives.
    pub fn for_objectives(count: usize) -> Rule {
        let is_enough = |lead: &u32| count as f64 * error(NOISE, *lead) <= ERROR;
        let lead = (LEAST_LEAD..).find(is_enough).expect("the error falls with the lead");
        Rule { lead }
    }

    /// Runs of a kind at most, for one system.
    pub fn most_runs(self) -> u32 {
        self.lead * PATIENCE
    }

    /// Upper bound of the chance that the race calls a system failing. The system has `objectives` objectives, and misses each in a share
    /// `noise` of its runs.
    pub fn chance_of_wrong_failure(self, objectives: usize, noise: f64) -> f64 {
        (objectives as f64 * error(noise, self.lead)).min(1.0)
    }

    /// Chance that a system that misses an objective in a share of `missed` of its runs is said to meet it, at most.
    pub fn chance_of_wrong_pass(self, missed: f64) -> f64 {
        ever_leads(1.0 - missed, self.lead)
    }
}

/// Chance that a system is said to miss one objective, which it misses in a share `noise` of its runs: in the short runs or in the race.
fn error(noise: f64, lead: u32) -> f64 {
    noise.powi(lead as i32) + ever_leads(noise, lead)
}

/// Chance that events of a share `share` ever lead by `lead`.
fn ever_leads(share: f64, lead: u32) -> f64 {
    (share / (1.0 - share)).powi(lead as i32).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_grows_with_the_objectives() {
        let lead = |count| Rule::for_objectives(count).lead;
        assert_eq!([1, 4, 5, 39, 40].map(lead), [3, 3, 4, 4, 5]);
    }

    #[test]
    fn the_error_is_the_one_that_the_documents_state() {
        let rule = Rule::for_objectives(4);
        let failure = rule.chance_of_wrong_failure(4, NOISE);
        assert!(failure <= ERROR && (failure - 0.009_49).abs() < 1e-5, "{failure}");
        assert!((rule.chance_of_wrong_failure(4, 0.05) - 0.001_08).abs() < 1e-5);
        assert!((rule.chance_of_wrong_pass(0.9) - 0.001_37).abs() < 1e-5);
        assert!((rule.chance_of_wrong_pass(0.5) - 1.0).abs() < 1e-9, "nothing is stated of half and half");
    }
}
