//! Writes the progress and events of a run.

use pubmark_engine::progress::Totals;
use pubmark_engine::run::Phase;

use super::event::{FaultWord, Progress, StreamEvent};
use super::{EventStream, rounded};
use crate::observer::{RunEvent, RunObserver, RunProgress};

/// Time between two lines of progress, seconds.
const EVERY_S: f64 = 1.0;

/// Shortest time between two lines for which a rate is computed, seconds: in a shorter time, one message more or less
/// changes the rate by a multiple.
const LEAST_S: f64 = 0.5;

/// A [`RunObserver`] that writes lines.
pub struct StreamObserver {
    stream: EventStream,
    /// Time of the latest line of this phase, and the totals at that time if they were current.
    newest: Option<(f64, Option<Totals>)>,
    /// Progress since the latest line: it is written when the phase ends, so that the last totals of the phase are in a
    /// line.
    waiting: Option<RunProgress>,
}

impl StreamObserver {
    pub(super) fn new(stream: EventStream) -> StreamObserver {
        StreamObserver { stream, newest: None, waiting: None }
    }

    fn write(&mut self, t_s: f64, progress: &RunProgress) {
        let before = self.newest.and_then(|(at_s, totals)| Some((at_s, totals?)));
        let line = line(t_s, progress, before.filter(|_| progress.are_counts_current));
        self.stream.write(&StreamEvent::Progress(Box::new(line)));
    }
}

impl RunObserver for StreamObserver {
    fn phase(&mut self, phase: Phase) {
        let t_s = self.stream.now_s();
        if let Some(last) = self.waiting.take() {
            self.write(t_s, &last);
        }
        self.newest = None;
        self.stream.write(&StreamEvent::Phase { t_s, phase: phase.into() });
    }

    fn progress(&mut self, progress: &RunProgress) {
        let t_s = self.stream.now_s();
        if self.newest.is_some_and(|(at_s, _)| t_s - at_s < EVERY_S) {
            self.waiting = Some(progress.clone());
            return;
        }
        self.waiting = None;
        self.write(t_s, progress);
        self.newest = Some((t_s, progress.are_counts_current.then_some(progress.totals)));
    }

    fn event(&mut self, event: &RunEvent) {
        let t_s = self.stream.now_s();
        self.stream.write(&match event {
            RunEvent::FaultBegins { fault } => {
                StreamEvent::Fault { t_s, what: FaultWord::Begins, fault: fault.clone() }
            }
            RunEvent::FaultEnds { fault } => StreamEvent::Fault { t_s, what: FaultWord::Ends, fault: fault.clone() },
            RunEvent::NodeJoined { name, address } => StreamEvent::Node {
                t_s,
                name: name.clone(),
                joined: true,
                address: Some(address.to_string()),
                reason: None,
            },
            RunEvent::NodeLeft { name, reason } => {
                let (name, reason) = (name.clone(), Some(reason.clone()));
                StreamEvent::Node { t_s, name, joined: false, address: None, reason }
            }
            other => StreamEvent::Note { t_s, text: other.to_string() },
        });
    }
}

fn line(t_s: f64, progress: &RunProgress, before: Option<(f64, Totals)>) -> Progress {
    let RunProgress { phase, elapsed, length, totals, are_counts_current, lost, latency, ref window_latency, usage } =
        *progress;
    let per_s = |now: u64, then: fn(&Totals) -> u64| {
        let (at_s, before) = before?;
        // The last line of a phase may be only a few milliseconds after the one before.
        (t_s - at_s >= LEAST_S).then(|| rounded(now.saturating_sub(then(&before)) as f64 / (t_s - at_s)))
    };
    Progress {
        t_s,
        phase: phase.into(),
        elapsed_s: rounded(elapsed.as_secs_f64()),
        length_s: length.map(|length| rounded(length.as_secs_f64())),
        subscribed: totals.subscribed,
        online: totals.online,
        failing: totals.failing,
        offered: totals.offered,
        sent: totals.sent,
        expected: totals.expected,
        delivered: totals.delivered,
        // Shards continue while the sums are computed: a message may be counted as delivered and not yet as expected.
        outstanding: are_counts_current.then(|| totals.expected.saturating_sub(totals.delivered)),
        lost,
        measured_sent: totals.measured_sent,
        measured_delivered: totals.measured_delivered,
        backlog: totals.backlog,
        in_flight: totals.in_flight,
        sent_per_s: per_s(totals.sent, |totals| totals.sent),
        delivered_per_s: per_s(totals.delivered, |totals| totals.delivered),
        latency: latency.map(Into::into),
        window: window_latency.as_deref().map(Into::into),
        system: usage.system.map(Into::into),
        generator: usage.generator.map(Into::into),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::observer::{LiveInterval, LiveLatency, LiveUsage};

    fn progress(sent: u64) -> RunProgress {
        let p50 = Some(LiveInterval { lower_ns: 110_000, upper_ns: 168_500, over_s: 1 });
        RunProgress {
            phase: Phase::Measure,
            elapsed: Duration::from_millis(2_500),
            length: Some(Duration::from_secs(4)),
            totals: Totals { sent, ..Totals::default() },
            are_counts_current: true,
            lost: Some(0),
            latency: Some(LiveLatency { samples: 7, p50, p99: None }),
            window_latency: None,
            usage: LiveUsage::default(),
        }
    }

    #[test]
    fn rates_are_over_the_time_between_two_lines() {
        let first = line(2.0, &progress(100), None);
        assert_eq!((first.sent_per_s, first.delivered_per_s), (None, None));
        let second = line(4.0, &progress(400), Some((2.0, Totals { sent: 100, ..Totals::default() })));
        assert_eq!((second.sent_per_s, second.delivered_per_s), (Some(150.0), Some(0.0)));
        let soon = line(2.02, &progress(100), Some((2.0, Totals { sent: 100, ..Totals::default() })));
        assert_eq!((soon.sent_per_s, soon.delivered_per_s), (None, None), "the load did not stop");
    }

    #[test]
    fn what_nodes_do_not_report_while_they_measure_is_no_zero() {
        let lines: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let sink = Arc::clone(&lines);
        let listener = move |event: &StreamEvent| {
            if let StreamEvent::Progress(line) = event {
                sink.lock().unwrap().push(line.as_ref().clone());
            }
        };
        let mut observer = EventStream::new(None, Some(Box::new(listener))).observer();
        let warm_up = Totals { sent: 90, expected: 90, delivered: 80, ..Totals::default() };
        let all = Totals { sent: 990, expected: 990, delivered: 970, ..Totals::default() };
        // Of two nodes, one has sent its counts of the drain.
        let partial = Totals { sent: 540, expected: 540, delivered: 80, ..Totals::default() };
        let mut written = |phase: Phase, totals: Totals, are_counts_current: bool| {
            // Two seconds have passed since the line before.
            observer.newest = observer.newest.map(|(_, before)| (-2.0, before));
            observer.progress(&RunProgress { phase, totals, are_counts_current, ..progress(0) });
            let line = lines.lock().unwrap().pop().unwrap();
            (line.sent_per_s.is_some(), line.delivered_per_s.is_some(), line.outstanding)
        };
        assert_eq!(written(Phase::WarmUp, Totals::default(), true), (false, false, Some(0)), "the first line");
        assert_eq!(written(Phase::WarmUp, warm_up, true), (true, true, Some(10)));
        assert_eq!(written(Phase::Measure, warm_up, false), (false, false, None));
        assert_eq!(written(Phase::Drain, warm_up, false), (false, false, None), "no counts have come yet");
        assert_eq!(written(Phase::Drain, partial, false), (false, false, None), "not those of all nodes");
        assert_eq!(written(Phase::Drain, all, true), (false, false, Some(20)), "those of the whole window");
        assert_eq!(written(Phase::Drain, all, true), (true, true, Some(20)), "as in a run without nodes");
    }

    #[test]
    fn what_has_not_come_yet_is_lost_only_as_far_as_it_is_known() {
        let totals = Totals { expected: 10, delivered: 7, ..Totals::default() };
        let text =
            serde_json::to_string(&line(2.0, &RunProgress { totals, lost: Some(2), ..progress(100) }, None)).unwrap();
        assert!(text.contains(r#""outstanding":3,"lost":2"#), "{text}");
        let totals = Totals { expected: 7, delivered: 8, ..Totals::default() };
        assert_eq!(line(2.0, &RunProgress { totals, ..progress(100) }, None).outstanding, Some(0));
    }

    #[test]
    fn a_line_is_read_as_it_was_written_and_lacks_no_measurement_silently() {
        let event = StreamEvent::Progress(Box::new(line(2.0, &progress(100), None)));
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<StreamEvent>(&text).unwrap(), event);
        assert!(text.starts_with(r#"{"event":"progress","t_s":2.0,"phase":"measure""#), "{text}");
        assert!(text.contains(r#""p50":{"lower_us":110.0,"upper_us":168.5,"over_s":1},"p99":null"#), "{text}");
        assert!(text.contains(r#""system":null"#), "{text}");
    }
}
