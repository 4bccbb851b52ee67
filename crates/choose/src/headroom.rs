//! How much more load a candidate carries with the same objectives: a search for its capacity, with the time that is left.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pubmark_experiment::Observer;
use pubmark_experiment::capacity::Capacity;
use pubmark_experiment::capacity::search::Bounds;
use pubmark_experiment::capacity::trial::{Trials, WARMUP};
use pubmark_model::adjust::LARGEST_RATE_FACTOR;
use pubmark_model::workload::Workload;
use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Knob, Trial, TrialOutcome, limiting_trial};
use pubmark_record::record::{Status, SystemInfo, VerdictStatus};
use pubmark_record::store::{self, RunFolder};
use pubmark_record::threshold::Objectives;
use pubmark_report::numbers::short;
use pubmark_runner::{ErrorKind, Host, JoinedNodes, RunError, RunSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cleared::cleared;
use crate::cost::LoadCost;
use crate::record::State;

/// The search ends when the load that failed is at most 10 % above the one that held.
const PRECISION: f64 = 1.1;
/// Longest wait for late messages after the window of each trial, as `pubmark capacity` has it, besides the delay of links.
const DRAIN: Duration = Duration::from_secs(2);
/// How often packets cross a link before a message is delivered: with QoS 2, three times the publisher's (PUBLISH, PUBREC, PUBREL) and
/// three times the subscriber's.
const CROSSINGS: u32 = 6;
/// Shortest time for a search whose trials warm up for [`WARMUP`]: less does not even double the load once.
const LEAST_TIME: Duration = Duration::from_secs(20);
/// The same where growth is required: its first trial has that load, and a second one begins in this time if windows are short.
const LEAST_TIME_OF_GROWTH: Duration = Duration::from_secs(8);

/// Shortest time that is worth a search with this growth and this warm-up of each trial.
pub fn least_time(growth: f64, warmup: Duration) -> Duration {
    let (time, trials) = if growth > 1.0 { (LEAST_TIME_OF_GROWTH, 1) } else { (LEAST_TIME, 3) };
    time + warmup.saturating_sub(WARMUP) * trials
}

/// Does a candidate carry the load that growth requires?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// A load as high held in two trials.
    Covered,
    /// A load as low did not hold, and that was the system's doing.
    NotCovered,
    /// Neither was seen: it lies between both, it held in one trial only, pubmark was the limit, or there was no time.
    Undecided,
}

impl Coverage {
    /// In tables and sentences.
    pub fn word(self) -> &'static str {
        match self {
            Coverage::Covered => "covered",
            Coverage::NotCovered => "not covered",
            Coverage::Undecided => "undecided",
        }
    }
}

/// How much more a candidate carries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headroom {
    /// Highest load that held, as a multiple of the one required; `null` where it was not searched, or none held.
    pub holds_factor: Option<f64>,
    /// Highest load that is confirmed: two trials held that had this load or more, up to the highest that held; `null` where there are
    /// not two, and in records of older versions.
    #[serde(default)]
    pub confirmed_factor: Option<f64>,
    /// Lowest load that did not hold; `null` where none failed.
    pub fails_factor: Option<f64>,
    /// Lowest load that did not hold because of the system, whatever ended the search; `null` where there is none, and in records of
    /// older versions.
    #[serde(default)]
    pub system_fails_factor: Option<f64>,
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

    /// For tables: `3.2 ×`, `≥ 16 ×` where the system was not the limit, `—`.
    pub fn shown(&self) -> String {
        match (self.holds_factor, self.limit) {
            (Some(factor), Some(CapacityLimit::System)) => format!("{} ×", short(factor)),
            (Some(factor), _) => format!("≥ {} ×", short(factor)),
            (None, _) => "—".to_owned(),
        }
    }

    fn of(record: &CapacityRecord, folder: String) -> Headroom {
        let answer = &record.result;
        let system_fails_factor = failed_by_system(record);
        Headroom {
            holds_factor: answer.holds_factor,
            confirmed_factor: confirmed(record),
            fails_factor: failed(record),
            system_fails_factor,
            limit: Some(answer.limit),
            text: text(record, system_fails_factor),
            folder: Some(folder),
        }
    }

    /// Is `growth` times the load within what it carries? The load that held and the one that the system failed are the ends of an
    /// interval, and what lies between them is undecided. One trial may hold by chance, so the load must be confirmed. Both count
    /// whatever ended the search.
    pub fn coverage(&self, growth: f64) -> Coverage {
        if self.confirmed_factor.is_some_and(|factor| factor >= growth) {
            Coverage::Covered
        } else if self.system_fails_factor.is_some_and(|factor| factor <= growth) {
            Coverage::NotCovered
        } else {
            Coverage::Undecided
        }
    }

    /// What follows for a candidate that meets all objectives and must carry `growth` times the load.
    pub fn judge_growth(&self, growth: f64) -> State {
        let required = growth_objective(growth);
        match self.coverage(growth) {
            _ if growth <= 1.0 => State::Qualifies,
            Coverage::Covered => State::Qualifies,
            Coverage::NotCovered => State::Fails { objective: required, evidence: self.text.clone() },
            Coverage::Undecided => {
                let is_once = self.holds_factor.is_some_and(|factor| factor >= growth);
                let why = match is_once {
                    true => "it held in one trial, and two are needed: more time (`--within`)",
                    false => self.text.as_str(),
                };
                State::Undecided { would_decide: format!("whether {required} holds is not known: {why}") }
            }
        }
    }
}

/// The objective that a system carries `growth` times the load, as a candidate's state names it.
pub fn growth_objective(growth: f64) -> String {
    format!("growth {growth} ×")
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
    /// Load before the window of each trial.
    pub warmup: Duration,
    /// Time after which no further trial is started.
    pub within: Duration,
    /// This machine, and what ends the search.
    pub host: &'a Host,
    /// Folder of the choice.
    pub folder: &'a RunFolder,
    /// Label of the candidate.
    pub label: &'a str,
    /// Name of the candidate's part in it.
    pub id: &'a str,
    /// Machines that the trials use; `None` if everything is on this one.
    pub joined: Option<&'a Arc<JoinedNodes>>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct HeadroomResult {
    /// How much more the candidate carries.
    pub headroom: Headroom,
    /// The loads that held and what they cost.
    pub carried: Vec<LoadCost>,
    /// The system that was searched; `None` if no trial reached it.
    pub system: Option<SystemInfo>,
}

impl HeadroomResult {
    fn not_searched(reason: &str) -> HeadroomResult {
        HeadroomResult { headroom: Headroom::not_searched(reason), carried: vec![], system: None }
    }

    fn of(record: &CapacityRecord, folder: String) -> HeadroomResult {
        // Only a trial that was measured has a folder, and describes the system.
        let is_reached = record.trials.iter().any(|trial| trial.folder.is_some());
        HeadroomResult {
            headroom: Headroom::of(record, folder),
            carried: carried(record),
            system: is_reached.then(|| record.system.clone()),
        }
    }
}

impl HeadroomSearch<'_> {
    /// Searches.
    ///
    /// # Errors
    /// Something could not be written, or pubmark failed. What the system did is in the headroom.
    pub fn perform(&self, observer: &mut dyn Observer) -> Result<HeadroomResult, RunError> {
        let mut spec = self.spec.clone();
        let workload = spec.load()?;
        (spec.window.warmup, spec.window.drain) = (self.warmup, drain_of_trials(&workload, self.spec.window.drain));
        if Trials::offered_per_s(&workload).is_none() {
            return Ok(HeadroomResult::not_searched("the devices send as fast as they can"));
        }
        if let Some(why) = Trials::no_capacity(&workload) {
            return Ok(HeadroomResult::not_searched(why));
        }
        let name = folder_name(self.id);
        let folder = cleared(&self.folder.path().join(&name))?;
        let most = LARGEST_RATE_FACTOR / spec.load.rate;
        let first = if self.growth > 1.0 { self.growth } else { 2.0 }.min(most);
        let search = Capacity {
            trials: Trials { spec, knob: Knob::Rate, objectives: self.objectives, duration: None, host: self.host },
            bounds: Bounds { first, least: 1.0, most, precision: PRECISION, whole: false },
            within: self.within,
            objectives: self.written.clone(),
            folder: &folder,
            candidate: Some(self.label),
        };
        let (record, unwritten) = match search.perform_on(self.joined.cloned(), observer) {
            Ok(found) => found,
            Err(error) if error.kind == ErrorKind::System => {
                return Ok(HeadroomResult::not_searched(&error.to_string()));
            }
            Err(error) => return Err(error),
        };
        if let Some(error) = unwritten {
            return Err(error);
        }
        Ok(HeadroomResult::of(&record, name))
    }
}

/// Longest wait for late messages after the window of each trial: [`DRAIN`] and what the links delay a message, within the drain of
/// the race. All of a long drain would empty the queue of a system that is overloaded for the short window of a trial.
fn drain_of_trials(workload: &Workload, of_race: Duration) -> Duration {
    let slowest_ns = workload.links_in_use().iter().map(|(link, _)| link.longest_delay_ns()).max().unwrap_or(0);
    let delay = Duration::from_nanos(slowest_ns).saturating_mul(CROSSINGS);
    DRAIN.saturating_add(delay).min(of_race.max(DRAIN))
}

/// A search that came to its end before the choice was interrupted.
pub struct Earlier {
    /// What it found.
    pub result: HeadroomResult,
    /// Time it took.
    pub took: Duration,
}

impl Earlier {
    /// The one of a candidate in the folder of a choice; one without an end is none.
    pub fn of(choice: &Path, id: &str) -> Option<Earlier> {
        let name = folder_name(id);
        let record: CapacityRecord = store::load_as(&choice.join(&name)).ok()?;
        let took = Duration::try_from_secs_f64(record.took_s).ok()?;
        let is_whole = record.status == Status::Complete;
        is_whole.then(|| Earlier { result: HeadroomResult::of(&record, name), took })
    }
}

fn folder_name(id: &str) -> String {
    format!("headroom/{id}")
}

/// The trials that held at loads that are carried. One above the highest of them may have held by chance.
fn held(record: &CapacityRecord) -> impl Iterator<Item = &Trial> {
    let holds = record.result.holds_factor;
    let is_carried = move |factor: f64| holds.is_some_and(|holds| factor <= holds);
    record.trials.iter().filter(move |trial| trial.outcome == TrialOutcome::Held && is_carried(trial.factor))
}

/// The loads that are carried, and what they cost. An invalid run whose generator was late may show that objectives hold; its CPU time
/// and memory are not to be used.
fn carried(record: &CapacityRecord) -> Vec<LoadCost> {
    let usable = held(record).filter(|trial| trial.verdict != Some(VerdictStatus::Invalid));
    let cost_of = |trial: &Trial| LoadCost {
        times: trial.factor,
        cores: trial.system_cores,
        memory_bytes: trial.system_rss_bytes.map(|bytes| bytes as f64),
    };
    usable.map(cost_of).collect()
}

/// The highest load that two trials had or exceeded of those that are carried.
fn confirmed(record: &CapacityRecord) -> Option<f64> {
    let mut held: Vec<f64> = held(record).map(|trial| trial.factor).collect();
    held.sort_by(|one, other| other.total_cmp(one));
    held.get(1).copied()
}

/// The lowest load that did not hold, whatever the cause.
fn failed(record: &CapacityRecord) -> Option<f64> {
    let answer = &record.result;
    // Two loads that differ by little may offer equally many messages in their windows.
    let is_above = |factor: f64| answer.holds_factor.is_none_or(|holds| factor > holds);
    let failed = record.trials.iter().filter(|trial| Some(trial.offered_per_s) == answer.fails_per_s);
    failed.map(|trial| trial.factor).filter(|factor| is_above(*factor)).reduce(f64::max)
}

/// Whether the search found that the system failed the lowest load that did not hold.
fn is_limited_by_system(record: &CapacityRecord) -> bool {
    matches!(record.result.limit, CapacityLimit::System | CapacityLimit::NothingHeld)
}

/// The lowest load that the system failed. A search that ran out of time does not say what its limit is, and one that the generator
/// limited may have tried a higher load that was too much for the system.
fn failed_by_system(record: &CapacityRecord) -> Option<f64> {
    let found = failed(record).filter(|_| is_limited_by_system(record));
    let factors = record.trials.iter().map(|trial| trial.factor);
    factors.filter(|factor| has_failed_by_system(record, *factor)).chain(found).reduce(f64::min)
}

/// Whether the trials of a load show that the system failed it: it missed twice, or once so clearly that the search did not try the
/// load again. What the generator limited shows nothing of the system.
fn has_failed_by_system(record: &CapacityRecord, factor: f64) -> bool {
    let of_load = || record.trials.iter().filter(move |trial| trial.factor == factor);
    let missed = of_load().filter(|trial| matches!(trial.outcome, TrialOutcome::Missed | TrialOutcome::Failed)).count();
    // An open load is always the next one to be tried.
    let was_left = record.trials.last().is_some_and(|last| last.factor != factor) || failed(record) == Some(factor);
    missed >= 2 || (missed == 1 && of_load().count() == 1 && was_left)
}

/// The result in a sentence, with the load that the system failed where the search names another limit.
fn text(record: &CapacityRecord, system_fails_factor: Option<f64>) -> String {
    let answer = &record.result;
    let Some(factor) = system_fails_factor.filter(|_| !is_limited_by_system(record)) else {
        return answer.text.clone();
    };
    let trial = limiting_trial(&record.trials, factor, CapacityLimit::System);
    let why = trial.and_then(|trial| trial.reason.as_ref()).map_or_else(String::new, |reason| format!(": {reason}"));
    let miss = format!("{} × the load did not hold{why}", short(factor));
    match (answer.holds_factor, answer.limit) {
        // The search says then that nothing is known of the system.
        (None, CapacityLimit::Generator) => miss,
        _ => format!("{}; {miss}", answer.text),
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::link::{Conditions, Delay, Link};
    use pubmark_record::sample_experiment;

    use super::*;

    #[test]
    fn a_trial_waits_for_messages_that_links_delay() {
        let mut workload = RunSpec::new("hello").load().expect("a built-in workload");
        let mut drain_s = |delay_ms: u64, of_race_s: u64| {
            let delay = Delay { mean_ns: delay_ms * 1_000_000, ..Delay::default() };
            workload.links = vec![Link::symmetric("far", Conditions { delay, ..Conditions::default() })];
            workload.devices[0].link = (delay_ms > 0).then(|| "far".to_owned());
            drain_of_trials(&workload, Duration::from_secs(of_race_s)).as_secs_f64()
        };
        assert_eq!(drain_s(0, 10), 2.0, "a queue of ten seconds is overload");
        assert_eq!(drain_s(1_500, 10), 10.0, "3 s to the subscriber, and what the last of them took");
        assert_eq!(drain_s(500, 10), 5.0);
        assert_eq!(drain_s(1_500, 1), 2.0);
    }

    fn headroom(holds: Option<f64>, fails: Option<f64>, limit: CapacityLimit) -> Headroom {
        let text = "why".to_owned();
        Headroom {
            holds_factor: holds,
            confirmed_factor: holds,
            fails_factor: fails,
            system_fails_factor: fails.filter(|_| limit == CapacityLimit::System),
            limit: Some(limit),
            text,
            folder: None,
        }
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
        assert_eq!([3.0, 4.0, 4.2, 4.3].map(|growth| carried.coverage(growth)), {
            use Coverage::{Covered, NotCovered, Undecided};
            [Covered, Covered, Undecided, NotCovered]
        });
    }

    #[test]
    fn a_load_that_the_system_failed_is_not_covered_whatever_ended_the_search() {
        let mut record = sample_experiment::capacity();
        let of = |record: &CapacityRecord| Headroom::of(record, String::new());
        let coverage = |record: &CapacityRecord| [11.7, 12.0, 16.0].map(|growth| of(record).coverage(growth));
        use Coverage::{NotCovered, Undecided};
        let by_system = of(&record);
        assert_eq!((coverage(&record), &by_system.text), ([Undecided, NotCovered, NotCovered], &record.result.text));
        record.result.limit = CapacityLimit::Time;
        assert_eq!(coverage(&record), [Undecided, NotCovered, NotCovered]);
        let State::Fails { objective, evidence } = of(&record).judge_growth(12.0) else { panic!("{record:?}") };
        let why = "; 12 × the load did not hold: p99 is ";
        assert!(objective == "growth 12 ×" && evidence.contains(why), "{evidence}");
        // One of two misses is the generator's: only the higher load is too much for the system.
        let mut limited = record.clone();
        let second = limited.trials.iter_mut().rfind(|trial| trial.factor == 12.0).expect("two trials");
        second.outcome = TrialOutcome::GeneratorLimited;
        for limit in [CapacityLimit::Time, CapacityLimit::Generator] {
            limited.result.limit = limit;
            assert_eq!(coverage(&limited), [Undecided, Undecided, NotCovered], "{limit:?}");
            assert_eq!(of(&limited).fails_factor, Some(12.0), "{limit:?}");
        }
        limited.result.holds_factor = None;
        assert!(of(&limited).text.starts_with("16 × the load did not hold: p99 is "), "{limited:?}");
        // A search with time left tries a load again that did not miss clearly.
        let is_second = |trial: &Trial| trial.factor == 12.0 && trial.attempt == 2;
        record.trials.retain(|trial| !is_second(trial));
        assert_eq!(coverage(&record), [Undecided, NotCovered, NotCovered], "one clear miss");
        let once = record.trials.iter().position(|trial| trial.factor == 12.0).expect("one trial");
        let open = record.trials.remove(once);
        record.trials.push(open);
        record.result.fails_per_s = Some(16_000.0);
        assert_eq!(coverage(&record), [Undecided, Undecided, NotCovered], "12 × was to be tried again");
        record.result.fails_per_s = Some(12_000.0);
        assert_eq!(coverage(&record), [Undecided, NotCovered, NotCovered], "the search counted it as failed");
    }

    #[test]
    fn a_load_that_held_in_one_trial_covers_no_growth() {
        let mut record = sample_experiment::capacity();
        let (trial, time) = (record.trials[0].clone(), CapacityLimit::Time);
        record.trials.retain(|trial| trial.factor == 4.0);
        (record.result.holds_factor, record.result.fails_per_s, record.result.limit) = (Some(4.0), None, time);
        let of = |record: &CapacityRecord| Headroom::of(record, String::new());
        let once = of(&record);
        assert_eq!(
            (once.holds_factor, once.confirmed_factor, once.coverage(4.0)),
            (Some(4.0), None, Coverage::Undecided)
        );
        let State::Undecided { would_decide } = once.judge_growth(4.0) else { panic!("{once:?}") };
        assert!(would_decide.contains("growth 4 × holds is not known: it held in one trial"), "{would_decide}");
        record.trials.push(Trial { factor: 1.0, ..trial.clone() });
        assert_eq!(of(&record).coverage(4.0), Coverage::Undecided, "the other trial had less load");
        record.trials.push(Trial { factor: 8.0, ..trial.clone() });
        assert_eq!(of(&record).confirmed_factor, Some(1.0), "what held above the result held by chance");
        record.result.holds_factor = Some(8.0);
        assert_eq!([4.0, 8.0].map(|growth| of(&record).coverage(growth)), [Coverage::Covered, Coverage::Undecided]);
        record.trials.push(Trial { factor: 8.0, attempt: 2, ..trial });
        assert_eq!(of(&record).coverage(8.0), Coverage::Covered);
    }

    #[test]
    fn a_search_of_long_warm_ups_needs_more_time() {
        let least = |growth: f64, warmup_s: u64| least_time(growth, Duration::from_secs(warmup_s)).as_secs();
        assert_eq!([least(1.0, 1), least(3.0, 1)], [20, 8]);
        assert_eq!([least(1.0, 20), least(3.0, 20)], [77, 27]);
    }

    #[test]
    fn a_search_names_its_system_if_a_trial_reached_it() {
        let mut record = sample_experiment::capacity();
        let found = HeadroomResult::of(&record, "headroom/1-small".to_owned());
        assert_eq!(found.system, Some(record.system.clone()));
        record.trials.iter_mut().for_each(|trial| trial.folder = None);
        assert_eq!(HeadroomResult::of(&record, "headroom/1-small".to_owned()).system, None);
    }

    #[test]
    fn a_load_that_failed_is_above_the_one_that_held_if_both_offered_as_much() {
        let mut record = sample_experiment::capacity();
        let of = |record: &CapacityRecord| Headroom::of(record, String::new());
        assert_eq!((of(&record).holds_factor, of(&record).fails_factor), (Some(11.5), Some(12.0)));
        let fails_per_s = record.result.fails_per_s.expect("a load that failed");
        record.trials.iter_mut().filter(|one| one.factor == 11.5).for_each(|one| one.offered_per_s = fails_per_s);
        assert_eq!(of(&record).fails_factor, Some(12.0));
        record.trials.sort_by(|one, other| one.factor.total_cmp(&other.factor));
        assert_eq!(of(&record).fails_factor, Some(12.0));
        assert_eq!(of(&record).coverage(11.7), Coverage::Undecided);
    }

    #[test]
    fn a_load_that_held_by_chance_above_the_answer_is_not_carried() {
        let mut record = sample_experiment::capacity();
        let times = |record: &CapacityRecord| carried(record).iter().map(|load| load.times).reduce(f64::max);
        assert_eq!(times(&record), Some(11.5));
        let lucky = record.trials.iter_mut().find(|trial| trial.factor == 12.0).expect("a load that failed");
        lucky.outcome = TrialOutcome::Held;
        assert_eq!(times(&record), Some(11.5));
        record.result.holds_factor = None;
        assert_eq!(times(&record), None);
    }

    #[test]
    fn a_trial_of_an_invalid_run_confirms_a_load_and_does_not_tell_what_it_costs() {
        let mut record = sample_experiment::capacity();
        let costs = |record: &CapacityRecord| carried(record).iter().filter(|load| load.times == 11.5).count();
        assert_eq!((confirmed(&record), costs(&record)), (Some(11.0), 1));
        let best = record.trials.iter_mut().find(|trial| trial.factor == 11.5).expect("the load that held");
        best.verdict = Some(VerdictStatus::Invalid);
        assert_eq!((confirmed(&record), costs(&record)), (Some(11.0), 0));
    }

    #[test]
    fn a_limit_that_is_not_the_systems_is_a_lower_bound() {
        assert_eq!(headroom(Some(4.0), Some(4.3), CapacityLimit::System).shown(), "4 ×");
        assert_eq!(headroom(Some(4.0), None, CapacityLimit::Time).shown(), "≥ 4 ×");
        assert_eq!(Headroom::not_searched("time").shown(), "—");
    }
}
