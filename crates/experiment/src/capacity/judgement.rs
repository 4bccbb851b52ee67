//! What the run of a trial says of the objectives.

use pubmark_record::capacity::TrialOutcome;
use pubmark_record::figures::{Unit, delivered_share};
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::threshold::metrics::held_up_by;
use pubmark_record::threshold::{ClauseOutcome, Judged, MeasuredFigure};
use pubmark_record::verdict::rules::{Blame, blame};

/// Share of what was due that must have been sent within the window: what is missing must be less than the default precision of a search (3 %),
/// or another load was tried.
const OFFERED_SHARE: f64 = 0.97;

/// What a trial says of the objectives.
pub(super) struct Judgement {
    pub(super) outcome: TrialOutcome,
    /// Why they were not met, in one sentence.
    pub(super) reason: Option<String>,
    /// Code of the verdict's reason by which the system was held up, if that leaves an objective undecided.
    pub(super) held_up_by: Option<String>,
    /// The objective, as written, that was not measured, if that is why.
    pub(super) not_measured: Option<String>,
}

impl Judgement {
    pub(super) fn of(outcome: TrialOutcome, reason: Option<String>) -> Judgement {
        Judgement { outcome, reason, held_up_by: None, not_measured: None }
    }

    /// Of a run that counts, by the objective that decides.
    pub(super) fn of_objective(decides: &Judged<'_>, record: &Record) -> Judgement {
        let name = decides.clause.metric.name();
        match decides.outcome {
            ClauseOutcome::True => Judgement::of(TrialOutcome::Held, None),
            ClauseOutcome::False => Judgement::of(TrialOutcome::Missed, decides.complaint()),
            ClauseOutcome::Undecided => {
                let code = held_up_by(record).filter(|_| is_missed_but_for_delays(decides));
                Judgement {
                    held_up_by: code.map(str::to_owned),
                    ..Judgement::of(TrialOutcome::GeneratorLimited, decides.complaint())
                }
            }
            ClauseOutcome::NotMeasured => {
                if let Some(why) = decides.missed_because(record) {
                    let reason = format!("{why}, so {name} was not measured");
                    return Judgement::of(TrialOutcome::Missed, Some(reason));
                }
                let remedy = match decides.clause.metric.unit() {
                    Unit::Microseconds => "longer trials (`--duration`) or more messages may measure it",
                    _ => "such trials do not measure it; leave it out of the objectives",
                };
                let reason = format!("{name} was not measured: {remedy}");
                Judgement {
                    not_measured: Some(decides.clause.text.trim().to_owned()),
                    ..Judgement::of(TrialOutcome::GeneratorLimited, Some(reason))
                }
            }
        }
    }
}

/// Whether an objective is undecided only because the system was held up: both bounds of what was measured miss it. If the limit lies
/// between them, pubmark's own delays leave it open, too.
fn is_missed_but_for_delays(judged: &Judged<'_>) -> bool {
    let held_up = judged.figure.filter(|figure| figure.held_up);
    held_up.is_some_and(|figure| {
        judged.clause.judge(Some(MeasuredFigure { held_up: false, ..figure })) == ClauseOutcome::False
    })
}

/// Whether delays by pubmark or by the machine are all that made a run invalid. They can only worsen what the system shows under the
/// load that was sent ([`was_offered`]). A run that is invalid for another reason as well, such as accounting that does not close,
/// shows nothing.
pub(super) fn is_lateness_alone(record: &Record) -> bool {
    let mut invalid = record.verdict.reasons.iter().filter(|reason| reason.status == VerdictStatus::Invalid);
    // Where something is missing, it may be what was dropped on the way, which was no load of the system.
    let lacks = delivered_share(record).is_some_and(|share| share < 1.0);
    invalid.all(|reason| match reason.code.as_str() {
        "V02" | "V18" | "V28" if lacks => false,
        code => matches!(blame(code), Blame::Generator | Blame::Machine),
    })
}

/// Whether the load was sent within the window. Where the generator could not, a system uses less CPU time and loses less than under the
/// load that was due, and a window may be too short for latencies to show the delay.
pub(super) fn was_offered(record: &Record) -> bool {
    let messages = &record.delivery.messages;
    let due = messages.offered.saturating_sub(messages.skipped_planned) as f64;
    record.throughput.sent_per_s * record.window_s() >= OFFERED_SHARE * due
}

/// Ranks outcomes: the highest one decides.
pub(super) fn severity(judged: &Judged<'_>, record: &Record) -> u8 {
    match judged.outcome {
        ClauseOutcome::True => 0,
        ClauseOutcome::Undecided => 1,
        ClauseOutcome::NotMeasured if judged.missed_because(record).is_some() => 3,
        ClauseOutcome::NotMeasured => 2,
        ClauseOutcome::False => 3,
    }
}
