//! The record of a choice: what was required, what each candidate's runs said, and what follows.

use pubmark_record::conclusion::Conclusion;
use pubmark_record::experiment::{Contest, Grade};
use pubmark_record::nodes::JoinedMachines;
use pubmark_record::objectives::{Objective, Undecided};
use pubmark_record::record::{Environment, Status, SystemInfo, VerdictStatus};
use pubmark_record::schema1::Step;
use pubmark_record::store::Stored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pubmark_record::headline::{CHOICE_FILE, CHOICE_SCHEMA_VERSION};

use crate::cost::Cost;
use crate::headroom::{Coverage, Headroom};
use crate::requirements::Requirements;
use crate::standing::{ObjectiveStanding, Phase};

/// A choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// [`CHOICE_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of pubmark that wrote it.
    pub pubmark_version: String,
    /// Name of its folder.
    pub name: String,
    /// The exact command line, without passwords.
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Time it took, seconds.
    pub took_s: f64,
    /// Whether it came to its end. Where the time was over, it did: [`Choice::not_tested`] says what is missing.
    pub status: Status,
    /// What was required, without passwords.
    pub requirements: Requirements,
    /// The objectives, one a limit, in the order in which candidates have them.
    pub objectives: Vec<String>,
    /// Name of the workload.
    pub workload: String,
    /// Devices of the fleet.
    pub devices: u64,
    /// Messages that they offer per second, devices that are offline included; `null` where they send as fast as they can.
    pub offered_per_s: Option<f64>,
    /// How runs decide, and how often that is wrong.
    pub rule: RuleFigures,
    /// The candidates, in the order given.
    pub candidates: Vec<CandidateResult>,
    /// Which of those that qualify costs least.
    pub recommendation: Recommendation,
    /// Their cost, each figure against each other.
    pub contests: Vec<Contest>,
    /// What was required or is usual and was not tested; one sentence each.
    pub not_tested: Vec<String>,
    /// The machine.
    pub environment: Environment,
    /// Machines that joined all runs; absent if everything was on the one of `environment`, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<JoinedMachines>,
}

/// How runs decide, and how often that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleFigures {
    /// Runs that meet (or miss) an objective in excess of those that do not, before it is said to hold (or to be missed).
    pub lead: u32,
    /// Share of its runs in which noise makes a system miss an objective, up to which the errors are those stated.
    pub noise: f64,
    /// Chance that a system that meets all objectives is said to fail, at most.
    pub wrong_failure: f64,
    /// Chance that a system that misses an objective in all but a share `noise` of its runs is said to meet it, at most.
    pub wrong_pass: f64,
}

/// A candidate with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateResult {
    /// What it is called here; unique.
    pub label: String,
    /// What was run, of its first run; `null` where none came to a record.
    pub system: Option<SystemInfo>,
    /// Protocol of its clients; `null` where it was excluded before one was chosen.
    pub protocol: Option<String>,
    /// What follows.
    pub state: State,
    /// Its objectives.
    pub objectives: Vec<ObjectiveStanding>,
    /// Its runs, in the order in which they were made.
    pub runs: Vec<ChoiceRun>,
    /// What it cost in the race; `null` where nothing could be measured.
    pub cost: Option<Cost>,
    /// How much more it carries.
    pub headroom: Headroom,
    /// Whether that covers the growth; `null` where no growth is required, or the objectives do not hold at this load.
    #[serde(default)]
    pub growth: Option<Coverage>,
}

/// What follows for a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// All objectives hold.
    Qualifies,
    /// An objective is missed.
    Fails {
        /// As it was written.
        objective: String,
        /// What was seen, in a sentence.
        evidence: String,
    },
    /// Neither is known.
    Undecided {
        /// What would decide it, in a sentence.
        would_decide: String,
    },
    /// It lacks something that is needed; nothing was run.
    Excluded {
        /// What, in a sentence.
        reason: String,
    },
    /// It never started.
    Broken {
        /// Why, in a sentence.
        reason: String,
    },
}

impl State {
    /// In tables and sentences.
    pub fn word(&self) -> &'static str {
        match self {
            State::Qualifies => "qualifies",
            State::Fails { .. } => "fails",
            State::Undecided { .. } => "undecided",
            State::Excluded { .. } => "excluded",
            State::Broken { .. } => "broken",
        }
    }

    /// Why, in a sentence; empty for one that qualifies.
    pub fn reason(&self) -> &str {
        match self {
            State::Qualifies => "",
            State::Fails { evidence, .. } => evidence,
            State::Undecided { would_decide } => would_decide,
            State::Excluded { reason } | State::Broken { reason } => reason,
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceRun {
    /// What it was for.
    pub phase: Phase,
    /// Its number among the candidate's runs of this phase, from 1.
    pub number: u32,
    /// Its folder, relative to this record's; `null` where nothing was recorded.
    pub folder: Option<String>,
    /// Its verdict; `null` where nothing was recorded.
    pub verdict: Option<VerdictStatus>,
    /// Why it decides nothing, or how the system failed; `null` where it counts.
    pub failure: Option<String>,
    /// What it said of each objective that its phase judges.
    pub objectives: Vec<Objective>,
}

/// Which of the candidates that qualify costs least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// Its label; `null` where none is recommended over the others.
    pub candidate: Option<String>,
    /// How sure it is that it costs less than each other; `null` where there is no other, or no cost.
    pub grade: Option<Grade>,
    /// The same in a sentence.
    pub text: String,
}

impl Choice {
    /// What it came to: of the candidate that has to qualify, or of all.
    pub fn conclusion(&self, required: Option<&str>, undecided: Option<Undecided>) -> Conclusion {
        if self.status == Status::Interrupted {
            return Conclusion::Interrupted;
        }
        let meant = self.candidates.iter().filter(|one| required.is_none_or(|label| label == one.label));
        let states: Vec<&State> = meant.map(|candidate| &candidate.state).collect();
        let any = |is_one: fn(&State) -> bool| states.iter().any(|state| is_one(state));
        if any(|state| *state == State::Qualifies) {
            Conclusion::Done
        } else if any(|state| matches!(state, State::Undecided { .. })) {
            Conclusion::of_undecided(undecided)
        } else if any(|state| matches!(state, State::Broken { .. }))
            && !any(|state| matches!(state, State::Fails { .. }))
        {
            Conclusion::SystemFailed
        } else {
            Conclusion::ThresholdMissed
        }
    }
}

impl Stored for Choice {
    const FILE: &'static str = CHOICE_FILE;
    const VERSION: u32 = CHOICE_SCHEMA_VERSION;
    // Version 1 is the first.
    const FROM_SCHEMA_1: &'static [Step] = &[];
}

/// The JSON Schema of `choice.json`, indented, ending with a line feed.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Choice)).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_list_of_past_runs_shows_a_choice_by_its_candidates() {
        use pubmark_record::headline::{Kind, of_folder};
        let folder = tempfile::tempdir().expect("a folder");
        let choice = sample::choice(1);
        let text = pubmark_record::store::to_json(&choice).expect("JSON");
        std::fs::write(folder.path().join(CHOICE_FILE), text).expect("written");
        let found = of_folder(folder.path()).expect("readable").expect("there");
        assert_eq!((found.kind, found.cells, found.runs_counted), (Kind::Choice, Some(5), Some(4)));
        assert_eq!(found.system, ["small", "capped", "noisy", "absent"], "one that was excluded was not run");
        assert_eq!((found.qualify, found.recommended.as_deref()), (vec!["small".to_owned()], Some("small")));
        assert_eq!(found.objectives.as_deref(), Some("stays up,p99<50ms"));
    }

    #[test]
    fn a_choice_is_concluded_by_the_candidate_that_has_to_qualify_or_by_the_best() {
        let mut choice = sample::choice(1);
        let of = |label| sample::choice(1).conclusion(Some(label), None);
        assert_eq!(choice.conclusion(None, None), Conclusion::Done);
        assert_eq!((of("small"), of("noisy")), (Conclusion::Done, Conclusion::Undecided));
        assert_eq!((of("capped"), of("plain")), (Conclusion::ThresholdMissed, Conclusion::ThresholdMissed));
        assert_eq!(of("absent"), Conclusion::SystemFailed);
        assert_eq!(choice.conclusion(Some("noisy"), Some(Undecided::Pass)), Conclusion::Done);
        choice.candidates.remove(0);
        assert_eq!(choice.conclusion(None, Some(Undecided::Fail)), Conclusion::ThresholdMissed);
        choice.status = Status::Interrupted;
        assert_eq!(choice.conclusion(None, None), Conclusion::Interrupted);
    }
}
