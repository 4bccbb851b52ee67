//! Where a candidate stands: what its runs said of each objective, and what follows. Pure: it is given outcomes and nothing else.

use pubmark_record::objectives::ObjectiveOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::Rule;

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A short run: who misses an objective in each of them leaves.
    Screening,
    /// A run of the whole window.
    Race,
    /// A run in which the system is killed.
    Recovery,
}

impl Phase {
    /// In sentences and names of folders.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Screening => "screening",
            Phase::Race => "race",
            Phase::Recovery => "recovery",
        }
    }
}

/// What is known of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It holds.
    Holds,
    /// It is missed.
    Missed,
    /// Neither is known.
    Open,
}

/// Runs by what they said of an objective. Runs of the screening are counted apart: a short run says less of what holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveStanding {
    /// As it was written: `p99<50ms`.
    pub limit: String,
    /// Which runs count: those of the race, or those in which the system is killed.
    pub judged_in: Phase,
    /// Runs of the screening that missed it, before the first that did not.
    pub screening_missed: u32,
    /// Runs that met it.
    pub held: u32,
    /// Runs that missed it.
    pub missed: u32,
    /// Runs that said neither: the interval contains the limit, it was not measured, or the run is invalid.
    pub undecided: u32,
    /// What follows.
    pub decision: Decision,
}

impl ObjectiveStanding {
    fn new(limit: String, judged_in: Phase) -> ObjectiveStanding {
        let decision = Decision::Open;
        ObjectiveStanding { limit, judged_in, screening_missed: 0, held: 0, missed: 0, undecided: 0, decision }
    }

    /// Counts what a run said. The decision is that of all runs so far: runs that are made because another objective is open count
    /// here, too, and may take back what was decided.
    fn add(&mut self, outcome: ObjectiveOutcome, rule: Rule) {
        match outcome {
            ObjectiveOutcome::Passed => self.held += 1,
            ObjectiveOutcome::Missed => self.missed += 1,
            ObjectiveOutcome::Undecided | ObjectiveOutcome::NotMeasured => self.undecided += 1,
        }
        self.decision = if self.missed >= self.held + rule.lead {
            Decision::Missed
        } else if self.held >= self.missed + rule.lead {
            Decision::Holds
        } else {
            Decision::Open
        };
    }

    /// Fewest runs after which something may be known.
    fn runs_left(&self, rule: Rule) -> u32 {
        match self.decision {
            Decision::Open => rule.lead - self.held.abs_diff(self.missed).min(rule.lead),
            Decision::Holds | Decision::Missed => 0,
        }
    }
}

/// Where a candidate stands.
#[derive(Clone, Debug)]
pub struct Standing {
    rule: Rule,
    /// Its objectives, in the order of the outcomes that [`Standing::add`] takes.
    pub objectives: Vec<ObjectiveStanding>,
    made: [u32; 3],
}

impl Standing {
    /// Of a candidate without runs. `limits` are judged in the race, `recovery` where the system is killed.
    pub fn new(rule: Rule, limits: &[String], recovery: Option<&str>) -> Standing {
        let in_race = limits.iter().map(|limit| ObjectiveStanding::new(limit.clone(), Phase::Race));
        let in_recovery = recovery.map(|limit| ObjectiveStanding::new(limit.to_owned(), Phase::Recovery));
        Standing { rule, objectives: in_race.chain(in_recovery).collect(), made: [0; 3] }
    }

    /// Runs of a phase that were made, those that decide nothing too.
    pub fn made(&self, phase: Phase) -> u32 {
        self.made[phase as usize]
    }

    /// Objectives that a phase judges.
    fn judged_in(&self, phase: Phase) -> impl Iterator<Item = &ObjectiveStanding> {
        let judged_in = if phase == Phase::Screening { Phase::Race } else { phase };
        self.objectives.iter().filter(move |objective| objective.judged_in == judged_in)
    }

    /// Counts a run: what it said of each objective that its phase judges, in their order.
    pub fn add(&mut self, phase: Phase, outcomes: &[ObjectiveOutcome]) {
        let (rule, before) = (self.rule, self.made(phase));
        self.made[phase as usize] += 1;
        let judged_in = if phase == Phase::Screening { Phase::Race } else { phase };
        let judged = self.objectives.iter_mut().filter(|objective| objective.judged_in == judged_in);
        for (objective, outcome) in judged.zip(outcomes) {
            if phase != Phase::Screening {
                objective.add(*outcome, rule);
            } else if *outcome == ObjectiveOutcome::Missed && objective.screening_missed == before {
                objective.screening_missed += 1;
                if objective.screening_missed >= rule.lead {
                    objective.decision = Decision::Missed;
                }
            }
        }
    }

    /// The first objective that is missed.
    pub fn missed(&self) -> Option<&ObjectiveStanding> {
        self.objectives.iter().find(|objective| objective.decision == Decision::Missed)
    }

    /// The first objective of which nothing is known.
    pub fn open(&self) -> Option<&ObjectiveStanding> {
        self.objectives.iter().find(|objective| objective.decision == Decision::Open)
    }

    /// Do all objectives hold?
    pub fn holds(&self) -> bool {
        self.objectives.iter().all(|objective| objective.decision == Decision::Holds)
    }

    /// Is a further run of this phase needed? Each phase presumes that those before are over.
    pub fn wants(&self, phase: Phase) -> bool {
        if self.missed().is_some() || self.made(phase) >= self.rule.most_runs() {
            return false;
        }
        match phase {
            Phase::Screening => self.judged_in(phase).any(|one| one.screening_missed == self.made(phase)),
            Phase::Race => self.judged_in(phase).any(|one| one.decision == Decision::Open),
            Phase::Recovery => {
                let is_raced = self.judged_in(Phase::Race).all(|one| one.decision == Decision::Holds);
                is_raced && self.judged_in(phase).any(|one| one.decision == Decision::Open)
            }
        }
    }

    /// Fewest runs of this phase after which all of it may be known.
    pub fn runs_left(&self, phase: Phase) -> u32 {
        match phase {
            _ if self.missed().is_some() => 0,
            Phase::Screening => u32::from(self.wants(phase)),
            _ => self.judged_in(phase).map(|one| one.runs_left(self.rule)).max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use pubmark_record::objectives::ObjectiveOutcome::{Missed, NotMeasured, Passed, Undecided};

    use super::*;

    fn standing(recovery: Option<&str>) -> Standing {
        Standing::new(Rule { lead: 3 }, &["p99<50ms".to_owned(), "loss=0".to_owned()], recovery)
    }

    #[test]
    fn one_miss_decides_nothing_and_a_lead_of_three_does() {
        let mut found = standing(None);
        found.add(Phase::Race, &[Missed, Passed]);
        found.add(Phase::Race, &[Missed, Passed]);
        assert!(found.missed().is_none() && found.wants(Phase::Race));
        found.add(Phase::Race, &[Passed, Passed]);
        assert_eq!(found.objectives[1].decision, Decision::Holds);
        found.add(Phase::Race, &[Missed, Passed]);
        assert!(found.missed().is_none(), "three misses and one that holds");
        found.add(Phase::Race, &[Missed, Missed]);
        assert_eq!(found.missed().map(|one| one.limit.as_str()), Some("p99<50ms"));
        assert_eq!(found.objectives[1].decision, Decision::Holds, "it leads by three");
        assert!(!found.wants(Phase::Race) && !found.holds());
    }

    #[test]
    fn an_objective_that_later_runs_miss_does_not_hold() {
        let mut found = standing(None);
        for _ in 0..3 {
            found.add(Phase::Race, &[Undecided, Passed]);
        }
        assert_eq!(found.objectives[1].decision, Decision::Holds);
        found.add(Phase::Race, &[Passed, Missed]);
        assert_eq!(found.objectives[1].decision, Decision::Open, "it leads by two");
        found.add(Phase::Race, &[Passed, Missed]);
        found.add(Phase::Race, &[Passed, Missed]);
        assert_eq!(found.objectives[0].decision, Decision::Holds);
        assert!(!found.holds() && found.wants(Phase::Race), "three runs met it and three missed it");
        assert_eq!(found.open().map(|one| one.limit.as_str()), Some("loss=0"));
        for _ in 0..3 {
            found.add(Phase::Race, &[Passed, Missed]);
        }
        assert_eq!(found.missed().map(|one| (one.held, one.missed)), Some((3, 6)));
    }

    #[test]
    fn what_says_neither_moves_nothing() {
        let mut found = standing(None);
        for outcome in [Undecided, NotMeasured].iter().cycle().take(12) {
            assert!(found.wants(Phase::Race));
            found.add(Phase::Race, &[*outcome, Passed]);
        }
        assert!(!found.wants(Phase::Race), "it is given up");
        assert_eq!(found.open().map(|one| (one.limit.as_str(), one.undecided)), Some(("p99<50ms", 12)));
        assert!(found.missed().is_none() && !found.holds());
    }

    #[test]
    fn a_candidate_leaves_the_screening_after_one_run_that_misses_nothing() {
        let mut found = standing(None);
        assert!(found.wants(Phase::Screening));
        found.add(Phase::Screening, &[Passed, Undecided]);
        assert!(!found.wants(Phase::Screening) && found.wants(Phase::Race));
        assert_eq!(found.objectives[0].held, 0, "a short run proves nothing");
    }

    #[test]
    fn a_candidate_that_misses_the_same_objective_in_each_short_run_fails() {
        let mut found = standing(None);
        found.add(Phase::Screening, &[Missed, Missed]);
        found.add(Phase::Screening, &[Passed, Missed]);
        assert!(found.wants(Phase::Screening));
        let mut other = found.clone();
        found.add(Phase::Screening, &[Passed, Missed]);
        assert_eq!(found.missed().map(|one| one.limit.as_str()), Some("loss=0"));
        other.add(Phase::Screening, &[Missed, Passed]);
        assert!(other.missed().is_none() && !other.wants(Phase::Screening), "none was missed in all of them");
    }

    #[test]
    fn recovery_is_judged_after_the_race_in_runs_of_its_own() {
        let mut found = standing(Some("recovery<=10s"));
        for _ in 0..3 {
            assert!(!found.wants(Phase::Recovery));
            found.add(Phase::Race, &[Passed, Passed]);
        }
        assert_eq!((found.wants(Phase::Recovery), found.holds()), (true, false));
        assert_eq!([Phase::Race, Phase::Recovery].map(|phase| found.runs_left(phase)), [0, 3]);
        for _ in 0..3 {
            found.add(Phase::Recovery, &[Missed]);
        }
        assert_eq!(found.missed().map(|one| one.limit.as_str()), Some("recovery<=10s"));
        assert_eq!(found.objectives[0].missed, 0, "the other objectives are not judged where the system is killed");
    }
}
