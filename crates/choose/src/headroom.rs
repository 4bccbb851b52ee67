//! How much more load a candidate carries with the same objectives: a search for its capacity, with the time that is left.

use std::time::Duration;

use pubmark_experiment::Observer;
use pubmark_experiment::capacity::Capacity;
use pubmark_experiment::capacity::search::Bounds;
use pubmark_experiment::capacity::trial::Trials;
use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Knob, TrialOutcome};
use pubmark_record::store::RunFolder;
use pubmark_record::threshold::Objectives;
use pubmark_report::numbers::short;
use pubmark_runner::{ErrorKind, Host, RunError, RunSpec, save};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::LoadCost;
use crate::record::State;

/// The search ends when the load that failed is at most 10 % above the one that held.
const PRECISION: f64 = 1.1;
/// Load before the window of each trial, and longest wait for late messages after it, as `pubmark capacity` has them.
const WARMUP: Duration = Duration::from_secs(1);
const DRAIN: Duration = Duration::from_secs(2);
/// Shortest time for a search: less does not even double the load once.
pub const LEAST_TIME: Duration = Duration::from_secs(20);

/// How much more a candidate carries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headroom {
    /// Highest load that held, as a multiple of the one required; `null` where it was not searched, or none held.
    pub holds_factor: Option<f64>,
    /// Lowest load that did not hold; `null` where none failed.
    pub fails_factor: Option<f64>,
    /// What set the limit; `null` where it was not searched.
    pub limit: Option<CapacityLimit>,
    /// The same in a sentence.
    pub text: String,
    /// Folder of the search, relative to the record's; `null` where there is none.
    pub folder: Option<String>,
}

impl Headroom {
    /// It was not searched, for a reason.
    pub fn not_searched(reason: &str) -> Headroom {
        Headroom { text: format!("not searched: {reason}"), ..Headroom::default() }
    }

    /// For tables: `3.2 ×`, `at least 16 ×`, `—`.
    pub fn shown(&self) -> String {
        match (self.holds_factor, self.limit) {
            (Some(factor), Some(CapacityLimit::System)) => format!("{} ×", short(factor)),
            (Some(factor), _) => format!("at least {} ×", short(factor)),
            (None, _) => "—".to_owned(),
        }
    }

    fn of(record: &CapacityRecord, folder: String) -> Headroom {
        let answer = &record.answer;
        let at = |rate: Option<f64>| {
            record.trials.iter().find(|trial| Some(trial.offered_per_s) == rate).map(|trial| trial.factor)
        };
        Headroom {
            holds_factor: answer.holds_factor,
            fails_factor: at(answer.fails_per_s),
            limit: Some(answer.limit),
            text: answer.text.clone(),
            folder: Some(folder),
        }
    }

    /// What follows for a candidate that qualifies and must carry `growth` times the load.
    pub fn judge_growth(&self, growth: f64) -> State {
        let required = format!("growth {} ×", short(growth));
        if growth <= 1.0 || self.holds_factor.is_some_and(|factor| factor >= growth) {
            return State::Qualifies;
        }
        let is_systems = matches!(self.limit, Some(CapacityLimit::System | CapacityLimit::NothingHeld));
        if is_systems && self.fails_factor.is_some_and(|factor| factor <= growth) {
            return State::Fails { objective: required, evidence: self.text.clone() };
        }
        State::Undecided { would_decide: format!("whether {required} holds is not known: {}", self.text) }
    }
}

/// What a search needs.
pub struct HeadroomSearch<'a> {
    /// A run of the race.
    pub spec: &'a RunSpec,
    /// What must hold.
    pub objectives: &'a Objectives,
    /// The same as written.
    pub written: String,
    /// How many times the load must be carried: that is tried first.
    pub growth: f64,
    /// Time after which no further trial is started.
    pub within: Duration,
    /// This machine, and what ends the search.
    pub host: &'a Host,
    /// Folder of the choice.
    pub folder: &'a RunFolder,
    /// Name of the candidate's part in it.
    pub id: &'a str,
}

impl HeadroomSearch<'_> {
    /// Searches; with the loads that held and what they cost.
    ///
    /// # Errors
    /// Something could not be written, or pubmark failed. What the system did is in the headroom.
    pub fn perform(&self, observer: &mut dyn Observer) -> Result<(Headroom, Vec<LoadCost>), RunError> {
        let mut spec = self.spec.clone();
        (spec.window.warmup, spec.window.drain) = (WARMUP, DRAIN);
        if Trials::offered_per_s(&spec.load()?).is_none() {
            return Ok((Headroom::not_searched("the devices send as fast as they can"), vec![]));
        }
        let name = format!("headroom/{}", self.id);
        let folder = RunFolder::at(&self.folder.path().join(&name)).map_err(|error| save::unwritten(&error))?;
        let most = LARGEST_RATE_FACTOR / spec.load.rate;
        let first = self.growth.max(2.0).min(most);
        let search = Capacity {
            trials: Trials { spec, knob: Knob::Rate, objectives: self.objectives, duration: None, host: self.host },
            bounds: Bounds { first, least: 1.0, most, precision: PRECISION, whole: false },
            within: self.within,
            objectives: self.written.clone(),
            folder: &folder,
        };
        let (record, unwritten) = match search.perform(observer) {
            Ok(found) => found,
            Err(error) if error.kind == ErrorKind::System => {
                return Ok((Headroom::not_searched(&error.to_string()), vec![]));
            }
            Err(error) => return Err(error),
        };
        if let Some(error) = unwritten {
            return Err(error);
        }
        let held = record.trials.iter().filter(|trial| trial.outcome == TrialOutcome::Held);
        let carried = held.filter_map(|trial| Some((trial.factor, trial.system_cores?))).collect();
        Ok((Headroom::of(&record, name), carried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headroom(holds: Option<f64>, fails: Option<f64>, limit: CapacityLimit) -> Headroom {
        let text = "why".to_owned();
        Headroom { holds_factor: holds, fails_factor: fails, limit: Some(limit), text, folder: None }
    }

    #[test]
    fn growth_is_judged_by_what_was_carried() {
        let carried = headroom(Some(4.0), Some(4.3), CapacityLimit::System);
        assert_eq!(carried.judge_growth(3.0), State::Qualifies);
        assert!(matches!(carried.judge_growth(5.0), State::Fails { .. }));
        assert!(matches!(carried.judge_growth(4.2), State::Undecided { .. }), "it lies between both");
        let ours = headroom(Some(4.0), Some(4.3), CapacityLimit::Generator);
        assert!(matches!(ours.judge_growth(5.0), State::Undecided { .. }), "pubmark was the limit, not the system");
        assert!(matches!(Headroom::not_searched("time").judge_growth(2.0), State::Undecided { .. }));
        assert_eq!(Headroom::not_searched("time").judge_growth(1.0), State::Qualifies);
    }

    #[test]
    fn a_limit_that_is_not_the_systems_is_a_lower_bound() {
        assert_eq!(headroom(Some(4.0), Some(4.3), CapacityLimit::System).shown(), "4 ×");
        assert_eq!(headroom(Some(4.0), None, CapacityLimit::Time).shown(), "at least 4 ×");
        assert_eq!(Headroom::not_searched("time").shown(), "—");
    }
}
