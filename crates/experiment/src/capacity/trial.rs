//! One trial: a short run at a load, compared with the objectives.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::workload::Workload;
use pubmark_record::capacity::{Knob, Trial, TrialLatency, TrialOutcome};
use pubmark_record::experiment::FailureKind;
use pubmark_record::figures::delivered_share;
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::threshold::{ClauseOutcome, Objectives};
use pubmark_runner::{CheckedRun, ErrorKind, Host, JoinedNodes, RunError, RunOutcome, RunSpec};

use super::growth::{falls_behind, growth};
use super::judgement::{Judgement, is_lateness_alone, severity, was_offered};
use super::search::Verdict;
use crate::end::{self, End, one_line};
use crate::machines::NodeEvents;
use crate::observer::{Event, Observer, TrialPlace};

/// Load before the window of each trial, if neither the user nor the system's definition asks for more.
pub const WARMUP: Duration = Duration::from_secs(1);
/// Messages that a window should contain: a p99 needs 1,000, and twice as many make it stable.
const WANTED_MESSAGES: f64 = 2_000.0;
/// Length of the window if the load is high enough, and the longest window for a low load.
const WINDOW: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(30));

/// What all trials of a search have in common.
pub struct Trials<'a> {
    /// The run at factor 1.
    pub spec: RunSpec,
    /// Quantity that the factor multiplies.
    pub knob: Knob,
    /// Objectives that must hold.
    pub objectives: &'a Objectives,
    /// Length of the window, if the user set it.
    pub duration: Option<Duration>,
    /// This machine, and the flag that stops the search.
    pub host: &'a Host,
}

/// A completed trial.
pub struct TrialResult {
    /// Trial for the record.
    pub trial: Trial,
    /// Verdict for the search.
    pub verdict: Verdict,
    /// The run outcome, if the run was measured.
    pub measured: Option<RunOutcome>,
}

impl TrialResult {
    fn without_record(trial: Trial) -> TrialResult {
        let verdict = Verdict { outcome: trial.outcome, is_clear: false };
        TrialResult { trial, verdict, measured: None }
    }
}

impl Trials<'_> {
    /// The run at a factor.
    pub fn at(&self, factor: f64) -> RunSpec {
        let mut spec = self.spec.clone();
        let load = &mut spec.load;
        match self.knob {
            Knob::Rate => load.rate *= factor,
            Knob::Scale => load.scale = (f64::from(load.scale) * factor).round().clamp(1.0, f64::from(u32::MAX)) as u32,
        }
        spec
    }

    /// Messages offered per second by a workload, devices that are offline included; `None` for a flood.
    pub fn offered_per_s(workload: &Workload) -> Option<f64> {
        pubmark_model::listing::messages_per_s(workload)
    }

    /// Why a workload has no capacity; `None` if it has one.
    pub fn no_capacity(workload: &Workload) -> Option<&'static str> {
        if !workload.faults.is_empty() {
            return Some("a workload with faults has no capacity: what the system carries changes during the run");
        }
        let slows_down = workload.has_slowdowns();
        slows_down
            .then_some("a workload with `when` has no capacity: its devices send less the more messages they receive")
    }

    /// Length of the measured window at a load, messages per second.
    pub fn window(&self, offered_per_s: f64) -> Duration {
        self.duration.unwrap_or_else(|| window(offered_per_s))
    }

    /// Runs a trial; `None` if it was stopped. `joined` are the machines that the trials share: the first trial waits
    /// for them, and later ones for those that were lost. A load that is too large for the machine, where the first one was not, is
    /// a trial in which the machine was the limit.
    ///
    /// # Errors
    /// The load cannot be made here, a node stayed away, or pubmark failed.
    pub fn make(
        &self,
        factor: f64,
        place: &TrialPlace<'_>,
        joined: &mut Option<Arc<JoinedNodes>>,
        observer: &mut dyn Observer,
    ) -> Result<Option<TrialResult>, RunError> {
        let mut spec = self.at(factor);
        let workload = Arc::new(spec.load()?);
        if let Some(why) = Trials::no_capacity(&workload) {
            return Err(RunError::input(why)
                .hint("`pubmark run` shows what such a workload does, with `--rate N` at N times the rate"));
        }
        let offered_per_s = Trials::offered_per_s(&workload).unwrap_or(0.0);
        spec.window.duration = self.window(offered_per_s);
        let mut trial = Trial {
            offered_per_s,
            devices: workload.devices.iter().map(|group| u64::from(group.count)).sum(),
            duration_s: spec.window.duration.as_secs_f64(),
            ..begun(factor, place.attempt)
        };
        let mut run = match spec.check_loaded(workload, self.host).and_then(CheckedRun::prepare) {
            Ok(run) => run,
            Err(error) => return not_begun(trial, error, place),
        };
        observer.event(&Event::TrialBegins {
            place,
            offered_per_s,
            workload: &run.workload.name,
            system: run.system_name(),
            protocol: run.protocol_pair.publish.capabilities.name,
        });
        let shared = joined.as_ref().map_or(Ok(()), |joined| run.use_nodes(joined));
        let gathered = match shared {
            Ok(()) => run.gather(&mut NodeEvents(observer)),
            refused => refused,
        };
        if let Err(error) = gathered {
            return not_begun(trial, error, place);
        }
        *joined = run.nodes().cloned();
        trial.devices = run.fleet.device_count() as u64;
        let measured = match run.repeat(1, spec.workload.name(), &mut *observer.run()) {
            Ok(measured) => measured,
            Err(error) if error.kind == ErrorKind::TooLarge => return not_begun(trial, error, place),
            Err(error) => return not_finished(trial, error),
        };
        let end = end::measured(&measured);
        if end == End::Stopped {
            return Ok(None);
        }
        fill(&mut trial, &measured.record);
        let judgement = self.judge(&measured.record, &end);
        let outcome = judgement.outcome;
        conclude(&mut trial, end, judgement);
        let is_clear = outcome == TrialOutcome::Missed && falls_behind(&measured.record);
        Ok(Some(TrialResult { trial, verdict: Verdict { outcome, is_clear }, measured: Some(measured) }))
    }

    /// Objectives are met if their upper bounds meet them, however late the generator or the machine was, if the load was sent.
    /// Objectives that even the lower bound breaks are missed by the system, if the load was the scheduled one. In between, the
    /// generator is the limit. Objectives that were not measured are neither met nor missed.
    fn judge(&self, record: &Record, end: &End) -> Judgement {
        let judged = self.objectives.judge(record);
        let worst = judged.iter().max_by_key(|judged| severity(judged, record));
        let worst = worst.filter(|judged| judged.outcome != ClauseOutcome::True);
        let because = |outcome: TrialOutcome, text: &str| Judgement::of(outcome, Some(text.to_owned()));
        match (end, worst) {
            // The messages of a lost worker or node are missing from the load.
            (End::Fails { text, .. }, _) if record.has_lost() => because(TrialOutcome::GeneratorLimited, text),
            (End::Fails { kind: FailureKind::GeneratorLimited, .. }, None)
                if is_lateness_alone(record) && was_offered(record) =>
            {
                Judgement::of(TrialOutcome::Held, None)
            }
            (End::Fails { kind, text, .. }, _) if kind.is_systems() => because(TrialOutcome::Failed, text),
            // Of the generator, clocks, accounting or clients without a broker that never met: it says nothing of the system.
            (End::Fails { text, .. }, _) => because(TrialOutcome::GeneratorLimited, text),
            (End::Counts(_) | End::Stopped, Some(worst)) => Judgement::of_objective(worst, record),
            (End::Counts(_) | End::Stopped, None) => Judgement::of(TrialOutcome::Held, None),
        }
    }
}

/// Long enough for a steady p99.
fn window(offered_per_s: f64) -> Duration {
    let needed = Duration::try_from_secs_f64(WANTED_MESSAGES / offered_per_s).unwrap_or(WINDOW.1);
    needed.clamp(WINDOW.0, WINDOW.1)
}

/// What an error says of a trial whose run did not begin; `None` if it was stopped. Where the first load was possible, one that is too
/// large shows nothing of the system, and the search goes on below it.
fn not_begun(mut trial: Trial, error: RunError, place: &TrialPlace<'_>) -> Result<Option<TrialResult>, RunError> {
    match error.kind {
        ErrorKind::Interrupted => Ok(None),
        ErrorKind::TooLarge if place.number > 1 => {
            (trial.outcome, trial.is_too_large) = (TrialOutcome::GeneratorLimited, true);
            trial.reason = Some(one_line(&format!("the load is too large: {error}")));
            Ok(Some(TrialResult::without_record(trial)))
        }
        _ => Err(error),
    }
}

/// What an error says of a trial whose run has no record; `None` if it was stopped.
fn not_finished(mut trial: Trial, error: RunError) -> Result<Option<TrialResult>, RunError> {
    if error.kind == ErrorKind::NodeLost {
        trial.outcome = TrialOutcome::GeneratorLimited;
    }
    match end::failed(error)? {
        End::Fails { code, text, .. } => {
            (trial.code, trial.reason) = (code, Some(text));
            Ok(Some(TrialResult::without_record(trial)))
        }
        End::Stopped | End::Counts(_) => Ok(None),
    }
}

/// A trial of which nothing is known yet.
fn begun(factor: f64, attempt: u32) -> Trial {
    Trial {
        factor,
        offered_per_s: 0.0,
        devices: 0,
        duration_s: 0.0,
        attempt,
        outcome: TrialOutcome::Failed,
        reason: None,
        code: None,
        not_measured: None,
        is_too_large: false,
        delivered_per_s: None,
        loss: None,
        latency: TrialLatency::default(),
        latency_growth_us_per_s: None,
        system_cores: None,
        generator_cores: None,
        system_rss_bytes: None,
        verdict: None,
        folder: None,
    }
}

/// Enters the outcome. Without a reason the objectives were met, and a rule that the run violated did not decide.
fn conclude(trial: &mut Trial, end: End, judgement: Judgement) {
    trial.outcome = judgement.outcome;
    trial.code = match end {
        End::Fails { code, .. } if judgement.reason.is_some() => code,
        _ => judgement.held_up_by,
    };
    (trial.reason, trial.not_measured) = (judgement.reason, judgement.not_measured);
}

fn fill(trial: &mut Trial, record: &Record) {
    trial.offered_per_s = record.throughput.offered_per_s;
    trial.delivered_per_s = Some(record.throughput.delivered_per_s);
    trial.loss = delivered_share(record).map(|share| 1.0 - share);
    trial.latency = record.latency.total.as_ref().map(TrialLatency::of).unwrap_or_default();
    trial.latency_growth_us_per_s = growth(record);
    trial.system_cores = record.cost.system.map(|usage| usage.cores);
    trial.generator_cores = record.cost.generator.map(|usage| usage.cores);
    trial.system_rss_bytes = record.cost.system.map(|usage| usage.peak_rss_bytes);
    trial.verdict = Some(record.verdict.status);
}

/// Whether a verdict below valid needs a note.
pub fn is_doubtful(trial: &Trial) -> bool {
    trial.outcome == TrialOutcome::Held && trial.verdict.is_some_and(|verdict| verdict != VerdictStatus::Valid)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::record::Reason;
    use pubmark_record::requests::RequestFigures;
    use pubmark_record::sample;
    use pubmark_record::verdict::rules::Blame;

    use super::*;

    #[test]
    fn a_window_is_as_long_as_a_percentile_needs() {
        assert_eq!(window(10_000.0), Duration::from_secs(3));
        assert_eq!(window(200.0), Duration::from_secs(10));
        assert_eq!(window(0.0), Duration::from_secs(30));
    }

    #[test]
    fn a_load_that_is_too_large_is_an_error_only_if_it_is_the_first() {
        let objectives = Objectives::parse("loss=0").unwrap();
        let (host, spec) = (Host::this(), RunSpec::new("pairs"));
        let trials = Trials { spec, knob: Knob::Scale, objectives: &objectives, duration: None, host: &host };
        // More connections to one endpoint than there are ports, on any machine; nothing is started.
        let make = |number: usize| {
            let place = TrialPlace { number, attempt: 1, candidate: None, left: Duration::from_secs(60) };
            trials.make(400.0, &place, &mut None, &mut ())
        };
        assert_eq!(make(1).err().unwrap().kind, ErrorKind::TooLarge);
        let TrialResult { trial, verdict, measured } = make(2).unwrap().unwrap();
        assert!(measured.is_none() && !verdict.is_clear);
        assert_eq!((verdict.outcome, trial.outcome), (TrialOutcome::GeneratorLimited, TrialOutcome::GeneratorLimited));
        assert_eq!(trial.blame(), Blame::Machine);
        assert_eq!((trial.devices, trial.offered_per_s, trial.code), (40_000, 40_000.0, None));
        let reason = trial.reason.unwrap();
        assert!(reason.starts_with("the load is too large: 80000 connections"), "{reason}");
    }

    #[test]
    fn a_trial_has_both_bounds_of_its_latency_and_what_was_not_delivered() {
        let mut record = sample::record();
        let mut trial = begun(1.0, 1);
        fill(&mut trial, &record);
        let total = record.latency.total.clone().unwrap();
        let lower = total.lower.unwrap();
        assert_eq!(trial.latency.bounds(|it| it.p50_us), [lower.p50, total.upper.p50]);
        assert_eq!(trial.latency.lower.unwrap().p99_us, lower.p99);
        assert_eq!(trial.latency.bounds(|it| it.max_us), [Some(lower.max), Some(total.upper.max)]);
        assert_eq!(trial.loss, Some(0.0));
        record.latency.total.as_mut().unwrap().lower = None;
        fill(&mut trial, &record);
        assert_eq!((trial.latency.lower, trial.latency.upper.p99_us), (None, total.upper.p99));
        record.latency.total = None;
        fill(&mut trial, &record);
        assert_eq!(trial.latency, TrialLatency::default());
    }

    #[test]
    fn a_trial_that_a_rule_decided_has_its_code() {
        let mut trial = begun(1.0, 1);
        let limited = |code: &str| End::Fails {
            kind: FailureKind::GeneratorLimited,
            code: Some(code.to_owned()),
            text: format!("{code}: slow"),
        };
        let slow = Judgement::of(TrialOutcome::GeneratorLimited, Some("V28: slow".to_owned()));
        conclude(&mut trial, limited("V28"), slow);
        assert_eq!((trial.code.as_deref(), trial.outcome), (Some("V28"), TrialOutcome::GeneratorLimited));
        conclude(&mut trial, limited("V01"), Judgement::of(TrialOutcome::Held, None));
        assert_eq!((trial.code.as_deref(), trial.outcome), (None, TrialOutcome::Held), "the objectives were met");
        let counts = End::Counts(VerdictStatus::Valid);
        conclude(&mut trial, counts, Judgement::of(TrialOutcome::Missed, Some("p99 is 2 s".to_owned())));
        assert_eq!((trial.code.as_deref(), trial.reason.as_deref()), (None, Some("p99 is 2 s")));
    }

    #[test]
    fn a_trial_whose_system_was_held_up_blames_the_machine() {
        let blame = |limit: &str, codes: &[&str]| {
            let (objectives, host) = (Objectives::parse(limit).unwrap(), Host::this());
            let spec = RunSpec::new("hello");
            let trials = Trials { spec, knob: Knob::Rate, objectives: &objectives, duration: None, host: &host };
            let mut record = sample::record();
            record.verdict.status = VerdictStatus::Suspect;
            let reason = |code: &&str| Reason {
                code: (*code).to_owned(),
                status: VerdictStatus::Suspect,
                text: String::new(),
                hint: String::new(),
            };
            record.verdict.reasons = codes.iter().map(reason).collect();
            let end = End::Counts(VerdictStatus::Suspect);
            let (judgement, mut trial) = (trials.judge(&record, &end), begun(1.0, 1));
            fill(&mut trial, &record);
            conclude(&mut trial, end, judgement);
            assert_eq!(trial.outcome, TrialOutcome::GeneratorLimited, "{limit} {codes:?}");
            (trial.blame(), trial.code)
        };
        let of = |blame: Blame, code: &str| (blame, Some(code.to_owned()));
        assert_eq!(blame("p99<1us", &["V28"]), of(Blame::Machine, "V28"));
        assert_eq!(blame("p99<1us", &["V06"]), of(Blame::Machine, "V06"));
        assert_eq!(blame("p99<1us", &["V28", "V01"]), of(Blame::Generator, "V01"), "it may have used the CPU");
        assert_eq!(blame("p50<0.28ms", &["V28"]), (Blame::Generator, None), "the limit lies between both bounds");
    }

    #[test]
    fn a_loss_that_a_late_read_may_have_caused_is_not_the_systems() {
        let (objectives, host) = (Objectives::parse("p99<1s,loss=0").unwrap(), Host::this());
        let spec = RunSpec::new("hello");
        let trials = Trials { spec, knob: Knob::Rate, objectives: &objectives, duration: None, host: &host };
        let outcome = |code: &str| {
            let mut record = sample::record();
            let books = &mut record.delivery.messages;
            (books.delivered, books.lost) = (books.delivered - 1, 1);
            let (code, text, hint) = (code.to_owned(), String::new(), String::new());
            record.verdict.reasons = vec![Reason { code, status: VerdictStatus::Suspect, text, hint }];
            trials.judge(&record, &End::Counts(VerdictStatus::Suspect)).outcome
        };
        assert_eq!([outcome("V02"), outcome("V10")], [TrialOutcome::GeneratorLimited, TrialOutcome::Missed]);
    }

    #[test]
    fn a_growing_queue_is_distinguished_from_a_stall() {
        let mut record = sample::record();
        record.settings.duration_s = 10.0;
        for (second, row) in record.tables.series.iter_mut().enumerate() {
            row.t_s = second as f64;
            row.width_s = 1.0;
            row.latency.upper.p50_us = Some(200.0 + 1_000.0 * second as f64);
        }
        assert!((growth(&record).unwrap() - 1_000.0).abs() < 1.0);
        for row in &mut record.tables.series {
            row.latency.upper.p50_us = Some(200.0);
        }
        record.tables.series[4].latency.upper.p50_us = Some(90_000.0);
        assert_eq!(growth(&record), Some(0.0));
        record.tables.series[9].latency.upper.p50_us = None;
        for (second, row) in record.tables.series.iter_mut().enumerate() {
            row.latency.upper.max_us = Some(5_000.0 + 100.0 * second as f64);
        }
        assert!(
            (growth(&record).unwrap() - 100.0).abs() < 1.0,
            "one has no median, and the largest latencies of all grow"
        );
        record.tables.series.truncate(3);
        assert!(growth(&record).is_some());
        record.tables.series[2].width_s = 0.001;
        assert_eq!(growth(&record), None, "a bin of 1 ms is none");
    }

    #[test]
    fn a_load_that_was_not_offered_is_not_held() {
        let objectives = Objectives::parse("cpu<1,loss=0").unwrap();
        let (host, spec) = (Host::this(), RunSpec::new("hello"));
        let trials = Trials { spec, knob: Knob::Rate, objectives: &objectives, duration: None, host: &host };
        let (kind, text) = (FailureKind::GeneratorLimited, "V01: slow".to_owned());
        let late = End::Fails { kind, code: Some("V01".to_owned()), text };
        let judged = |share: f64, skipped_planned: u64| {
            let mut record = sample::record();
            record.throughput.sent_per_s *= share;
            record.delivery.messages.skipped_planned = skipped_planned;
            trials.judge(&record, &late).outcome
        };
        assert_eq!((judged(0.98, 0), judged(0.5, 0)), (TrialOutcome::Held, TrialOutcome::GeneratorLimited));
        assert_eq!(judged(0.5, 5_000), TrialOutcome::Held, "half of the devices were offline");
    }

    #[test]
    fn an_objective_that_was_not_measured_is_missed_only_where_nothing_arrived() {
        let host = Host::this();
        let judge = |limits: &str, record: &Record| {
            let objectives = Objectives::parse(limits).unwrap();
            let spec = RunSpec::new("hello");
            let trials = Trials { spec, knob: Knob::Rate, objectives: &objectives, duration: None, host: &host };
            trials.judge(record, &End::Counts(VerdictStatus::Valid))
        };
        let mut record = sample::record();
        record.latency.backpressure = None;
        let found = judge("p99<1s,backpressure_p99<1ms", &record);
        assert_eq!(found.outcome, TrialOutcome::GeneratorLimited);
        assert_eq!(found.not_measured.as_deref(), Some("backpressure_p99<1ms"));
        let reason = found.reason.unwrap();
        assert!(reason.starts_with("backpressure_p99 was not measured: longer trials"), "{reason}");
        let found = judge("memory_per_connection<1MB", &record);
        assert!(found.reason.unwrap().ends_with("leave it out of the objectives"));
        let found = judge("p50<1us,backpressure_p99<1ms", &record);
        assert_eq!((found.outcome, found.not_measured), (TrialOutcome::Missed, None), "the other one is missed");
        record.latency.total = None;
        record.verdict.reasons.clear();
        (record.delivery.messages.lost, record.delivery.messages.delivered) = (record.delivery.messages.expected, 0);
        let mut starved = record.clone();
        let (code, status) = ("V28".to_owned(), VerdictStatus::Suspect);
        starved.verdict.reasons = vec![Reason { code, status, text: String::new(), hint: String::new() }];
        assert!(judge("p99<1s", &starved).not_measured.is_some(), "with CPU time they may have arrived");
        let found = judge("p99<1s", &record);
        assert_eq!((found.outcome, found.not_measured), (TrialOutcome::Missed, None));
        assert_eq!(found.reason.as_deref(), Some("nothing arrived, so p99 was not measured"));
        (record.cost.system, record.requests) = (None, Some(RequestFigures::default()));
        for limit in ["backpressure_p99<1ms", "memory_per_connection<1MB", "round_trip_p99<1s"] {
            let found = judge(&format!("p99<1s,{limit}"), &record);
            assert_eq!((found.outcome, found.not_measured), (TrialOutcome::Missed, None), "{limit}: p99 decides");
            let found = judge(limit, &record);
            assert_eq!(
                (found.outcome, found.not_measured.as_deref()),
                (TrialOutcome::GeneratorLimited, Some(limit)),
                "no delivery was needed for it"
            );
        }
        record.requests.as_mut().unwrap().outcomes.sent = 1;
        assert_eq!(judge("round_trip_p99<1s", &record).outcome, TrialOutcome::Missed, "no reply arrived");
        record.requests.as_mut().unwrap().outcomes.late_by_generator = 1;
        assert!(judge("round_trip_p99<1s", &record).not_measured.is_some(), "pubmark made the reply late");
        (record.delivery.messages.lost, record.delivery.messages.delivered) = (0, record.delivery.messages.expected);
        assert_eq!(judge("p99<1s", &record).outcome, TrialOutcome::GeneratorLimited, "messages arrived, and no reply");
    }

    #[test]
    fn objectives_that_are_met_are_met_whatever_the_generators_state() {
        let objectives = Objectives::parse("p99<1s,loss=0").unwrap();
        let host = Host::this();
        let spec = RunSpec::new("hello");
        let trials = Trials { spec, knob: Knob::Rate, objectives: &objectives, duration: None, host: &host };
        let mut record = sample::record();
        let limited = End::Fails {
            kind: FailureKind::GeneratorLimited,
            code: Some("V01".to_owned()),
            text: "V01: slow".to_owned(),
        };
        assert_eq!(trials.judge(&record, &limited).outcome, TrialOutcome::Held);
        for (also, status, expected) in [
            ("V28", VerdictStatus::Invalid, TrialOutcome::Held),
            ("V10", VerdictStatus::Suspect, TrialOutcome::Held),
            ("V07", VerdictStatus::Invalid, TrialOutcome::GeneratorLimited),
            ("V31", VerdictStatus::Invalid, TrialOutcome::GeneratorLimited),
        ] {
            let mut invalid = record.clone();
            let reason = |code: &str, status| {
                let (code, text, hint) = (code.to_owned(), String::new(), String::new());
                Reason { code, status, text, hint }
            };
            invalid.verdict.reasons = vec![reason("V01", VerdictStatus::Invalid), reason(also, status)];
            let found = trials.judge(&invalid, &limited);
            assert_eq!(found.outcome, expected, "V01 and {also}");
            assert_eq!(found.reason.is_some(), expected != TrialOutcome::Held, "V01 and {also}");
        }
        // Without an objective of losses, what did not arrive has no time.
        let of_times = Objectives::parse("p99<1s").unwrap();
        let trials = Trials { spec: RunSpec::new("hello"), objectives: &of_times, ..trials };
        for (code, lost, expected) in [
            ("V18", 0, TrialOutcome::Held),
            ("V18", 1, TrialOutcome::GeneratorLimited),
            ("V02", 1, TrialOutcome::GeneratorLimited),
            ("V01", 1, TrialOutcome::Held),
        ] {
            let mut invalid = record.clone();
            let books = &mut invalid.delivery.messages;
            (books.delivered, books.lost) = (books.delivered - lost, lost);
            let (code, text, hint) = (code.to_owned(), String::new(), String::new());
            invalid.verdict.reasons = vec![Reason { code, status: VerdictStatus::Invalid, text, hint }];
            assert_eq!(trials.judge(&invalid, &limited).outcome, expected, "{:?}", invalid.verdict.reasons);
        }
        let trials = Trials { spec: RunSpec::new("hello"), objectives: &objectives, ..trials };
        let mut behind = record.clone();
        (behind.delivery.messages.unsent, behind.delivery.messages.prevented) = (1, 1);
        assert_eq!(
            trials.judge(&behind, &limited).outcome,
            TrialOutcome::GeneratorLimited,
            "not all of the load was carried"
        );
        (behind.delivery.messages.unsent, behind.delivery.messages.refused) = (0, 1);
        assert_eq!(trials.judge(&behind, &End::Counts(VerdictStatus::Valid)).outcome, TrialOutcome::Missed);
        let total = record.latency.total.as_mut().unwrap();
        let mut lower = total.upper.clone();
        (total.upper.p99, total.upper.max, lower.p99) = (Some(2e6), 3e6, Some(1_500_000.0));
        total.lower = Some(lower);
        assert_eq!(trials.judge(&record, &limited).outcome, TrialOutcome::GeneratorLimited);
        let counts = End::Counts(VerdictStatus::Valid);
        assert_eq!(trials.judge(&record, &counts).outcome, TrialOutcome::Missed, "the lower bound breaks it, too");
        record.latency.total.as_mut().unwrap().lower.as_mut().unwrap().p99 = Some(500_000.0);
        assert_eq!(trials.judge(&record, &counts).outcome, TrialOutcome::GeneratorLimited, "nobody knows");
        // Too few messages for a p99: the largest latency is used where it gives an answer.
        let total = record.latency.total.as_mut().unwrap();
        (total.upper.p99, total.upper.max, total.lower) = (None, 900_000.0, None);
        assert_eq!(trials.judge(&record, &counts).outcome, TrialOutcome::Held);
        let lost = End::Fails {
            kind: FailureKind::Invalid,
            code: Some("V21".to_owned()),
            text: "V21: a node was lost".to_owned(),
        };
        assert_eq!(
            trials.judge(&record, &lost).outcome,
            TrialOutcome::GeneratorLimited,
            "it says nothing of the system"
        );
        let refused = End::Fails { kind: FailureKind::Refused, code: Some("V31".to_owned()), text: "V31".to_owned() };
        assert_eq!(trials.judge(&record, &refused).outcome, TrialOutcome::Failed);
        record.tables.lost_workers = vec![Default::default()];
        assert_eq!(trials.judge(&record, &lost).outcome, TrialOutcome::GeneratorLimited, "not the system's");
    }
}
