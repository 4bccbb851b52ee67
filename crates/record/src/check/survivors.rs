//! Times of unequal shares of messages. A latency is that of the messages that arrived, and the lost ones may be those that would
//! have been late: on the side where fewer arrived, it may be longer than it looks.

use crate::figures::{ShownOf, is_fewer};
use crate::threshold::{Limited, shares_apart};

/// Shares that arrived of the messages, or of the requests, whose times are compared: one side has fewer.
pub(super) struct Survivors {
    /// Metric of the shares.
    metric: Limited,
    /// Mean of the baseline, and of the subject.
    pub(super) shares: [f64; 2],
}

impl Survivors {
    /// `None` if the shares differ by stray messages at most, or if one is not known.
    pub(super) fn between(metric: Option<Limited>, shares: [Option<f64>; 2]) -> Option<Survivors> {
        let [before, after] = shares;
        let (metric, before, after) = (metric?, before?, after?);
        let is_unequal = is_fewer(before, after) || is_fewer(after, before);
        is_unequal.then_some(Survivors { metric, shares: [before, after] })
    }

    /// Fewer arrived in the subject than in the baseline.
    fn is_of_subject(&self) -> bool {
        self.shares[1] < self.shares[0]
    }

    /// A time of the baseline and one of the subject, which differ as much as they would if everything that is missing arrived at
    /// last.
    pub(super) fn extreme(&self) -> (f64, f64) {
        // The baseline's time is at most infinite, and beside that the subject's is nothing.
        if self.is_of_subject() { (1.0, f64::INFINITY) } else { (1.0, 0.0) }
    }

    /// Why a change is undecided, and what would decide it.
    pub(super) fn text(&self) -> String {
        let what = if self.metric.figure().shown_of == ShownOf::Requests { "replies" } else { "messages" };
        let [before, after] = shares_apart(self.shares);
        let name = self.metric.name();
        let whose = match self.is_of_subject() {
            true => format!("it is of fewer {what} ({name} {after}, {before} in the baseline)"),
            false => format!("the baseline's is of fewer {what} ({name} {before}, {after} here)"),
        };
        format!(
            "undecided: {whose}, and the missing ones may be those that would have been late; to decide it, compare at a load \
             at which both deliver as much"
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::check::subject::{of_experiment, of_run};
    use crate::check::{Demands, Kind, Outcome, Row, Subject, judge};
    use crate::record::Record;
    use crate::requests::{RequestBooks, RequestFigures};
    use crate::threshold::Conditions;
    use crate::{sample, sample_experiment};

    fn judged(before: &Subject, after: &Subject, condition: &str) -> Row {
        let demands = Demands { fail_on: Some(Conditions::parse(condition).unwrap()), ..Demands::default() };
        let rows = judge(after, &demands, Some(before)).unwrap().rows;
        rows.into_iter().find(|row| row.kind == Kind::Regression).unwrap()
    }

    /// A run whose latency has this p99, µs, and which lost `lost` of its 10,000 messages.
    fn run((p99_us, lost): (f64, u64)) -> Record {
        let mut record = sample::record();
        let total = record.latency.total.as_mut().unwrap();
        (total.upper.p99, total.lower.as_mut().unwrap().p99) = (Some(p99_us), Some(p99_us));
        let messages = &mut record.delivery.messages;
        (messages.lost, messages.delivered) = (lost, messages.expected - lost);
        record
    }

    #[test]
    fn a_latency_of_fewer_messages_is_neither_equal_nor_better() {
        let change = |before, after, condition| judged(&of_run(&run(before)), &of_run(&run(after)), condition);
        for (before, after, condition, outcome) in [
            ((1_000.0, 0), (1_000.0, 1_000), "p99>+10%", Outcome::Undecided),
            ((1_000.0, 0), (800.0, 1_000), "p99>+10%", Outcome::Undecided),
            ((1_000.0, 0), (800.0, 1_000), "p99<-5%", Outcome::Undecided),
            // A lost message can only make it worse.
            ((1_000.0, 0), (1_300.0, 1_000), "p99>+10%", Outcome::Failed),
            ((1_000.0, 1_000), (1_000.0, 0), "p99>+10%", Outcome::Passed),
            ((1_000.0, 1_000), (1_300.0, 0), "p99>+10%", Outcome::Undecided),
            // Both lost as many, or a stray message.
            ((1_000.0, 1_000), (1_000.0, 1_000), "p99>+10%", Outcome::Passed),
            ((1_000.0, 1_000), (1_300.0, 1_000), "p99>+10%", Outcome::Failed),
            ((1_000.0, 0), (1_000.0, 1), "p99>+10%", Outcome::Passed),
            ((1_000.0, 0), (1_000.0, 2), "p99>+10%", Outcome::Undecided),
            // Other times of messages, and what is none.
            ((1_000.0, 0), (1_000.0, 1_000), "max>+10%", Outcome::Undecided),
            ((1_000.0, 0), (1_000.0, 1_000), "service_p99>+10%", Outcome::Undecided),
            ((1_000.0, 0), (1_000.0, 1_000), "backpressure_p99>+10%", Outcome::Passed),
            ((1_000.0, 0), (1_000.0, 1_000), "rate<-5%", Outcome::Passed),
            ((1_000.0, 0), (1_000.0, 1_000), "loss>+1%", Outcome::Failed),
        ] {
            let row = change(before, after, condition);
            assert_eq!(row.outcome, outcome, "{before:?} {after:?}: {row:?}");
            assert_eq!(row.survivors.is_some(), outcome == Outcome::Undecided, "{row:?}");
        }
        let row = change((1_000.0, 0), (1_000.0, 1_000), "p99>+10%");
        assert_eq!(row.survivors, Some([1.0, 0.9]));
        assert!(
            row.detail.starts_with("+0.0 % (") && row.detail.contains("), undecided: it is of fewer messages"),
            "{row:?}"
        );
        assert!(row.detail.contains("(delivered 90 %, 100 % in the baseline)"), "{row:?}");
        let row = change((1_000.0, 500), (1_000.0, 502), "p99>+10%");
        assert!(row.detail.contains("(delivered 94.98 %, 95 % in the baseline)"), "{row:?}");
        let row = change((1_000.0, 1_000), (1_300.0, 0), "p99>+10%");
        assert!(row.detail.contains("the baseline's is of fewer messages (delivered 90 %, 100 % here)"), "{row:?}");
    }

    #[test]
    fn round_trips_are_those_of_the_requests_that_were_answered() {
        let with = |answered: u64| {
            let mut record = sample::record();
            let outcomes = RequestBooks { sent: 1_000, answered, ..RequestBooks::default() };
            let round_trip = record.latency.total.clone();
            record.requests = Some(RequestFigures { outcomes, round_trip, ..RequestFigures::default() });
            of_run(&record)
        };
        let row = judged(&with(1_000), &with(985), "round_trip_p99>+10%");
        assert_eq!((row.outcome, row.survivors), (Outcome::Undecided, Some([1.0, 0.985])), "{row:?}");
        assert!(row.detail.contains("fewer replies (answered 98.5 %, 100 % in the baseline)"), "{row:?}");
        assert_eq!(judged(&with(985), &with(1_000), "round_trip_p99>+10%").outcome, Outcome::Passed);
        assert_eq!(judged(&with(1_000), &with(985), "p99>+10%").outcome, Outcome::Passed, "no message was lost");
    }

    #[test]
    fn of_several_runs_the_mean_share_counts() {
        let with = |share: f64| {
            let mut record = sample_experiment::experiment();
            let mut cell = record.cells.remove(1);
            let delivered = cell.figures.iter_mut().find(|figure| figure.figure == "delivered").unwrap();
            delivered.values.iter_mut().for_each(|value| *value = Some(1.0));
            (delivered.values[0], delivered.lower) = (Some(share), None);
            record.cells = vec![cell];
            of_experiment(record)
        };
        let row = judged(&with(1.0), &with(0.5), "p99>+10%");
        assert_eq!((row.outcome, row.survivors), (Outcome::Undecided, Some([1.0, 0.9])), "{row:?}");
        assert_eq!(judged(&with(0.5), &with(1.0), "p99>+10%").outcome, Outcome::Passed);
        assert_eq!(judged(&with(0.5), &with(0.5), "p99>+10%").outcome, Outcome::Passed);
    }
}
