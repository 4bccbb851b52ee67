//! Values of a run and of the queue, gathered from the events of the run.

use std::path::Path;

use pubmark_runner::stream::{Begins, FaultWord, Latencies, PhaseWord, Progress, StreamEvent, Usage, WindowLatencies};
use pubmark_runner::{Totals, WindowLatency};

use super::Label;
use crate::store::State;

/// Maximum length of a label's value, characters.
const LONGEST_LABEL: usize = 128;

/// All exposed values.
#[derive(Clone, Debug, Default)]
pub struct Exposed {
    /// The current or last run.
    pub run: Option<RunValues>,
    /// Submissions, if this is a server.
    pub queue: Option<QueueValues>,
}

/// Number of submissions in each state.
#[derive(Clone, Debug, Default)]
pub struct QueueValues(pub Vec<(State, u64)>);

impl QueueValues {
    /// Number of submissions in this state.
    pub fn of(&self, state: State) -> u64 {
        self.0.iter().find(|(other, _)| *other == state).map_or(0, |(_, count)| *count)
    }
}

/// Counts of a run up to a point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages due in the window.
    pub offered: u64,
    /// Number of these that were written.
    pub sent: u64,
    /// First copies of these that were delivered.
    pub delivered: u64,
    /// Deliveries still expected, including the warm-up; a node does not know those of messages that other nodes send.
    pub outstanding: Option<u64>,
    /// Number of these that are known to be lost; a node does not know those of other nodes' messages.
    pub known_lost: Option<u64>,
    /// Messages that are due and not yet passed to their clients.
    pub backlog: u64,
    /// Messages that are passed to their clients and not yet written or not yet acknowledged.
    pub in_flight: u64,
    /// Connected sessions.
    pub online: u64,
    /// Sessions whose last attempt to connect failed.
    pub failing: u64,
    /// Sessions of subscribers that are subscribed.
    pub subscribed: u64,
}

impl Counts {
    fn of(progress: &Progress) -> Counts {
        Counts {
            offered: progress.offered,
            sent: progress.measured_sent,
            delivered: progress.measured_delivered,
            outstanding: progress.outstanding,
            known_lost: progress.lost,
            backlog: progress.backlog,
            in_flight: progress.in_flight,
            online: progress.online,
            failing: progress.failing,
            subscribed: progress.subscribed,
        }
    }

    fn of_totals(totals: &Totals) -> Counts {
        Counts {
            offered: totals.offered,
            sent: totals.measured_sent,
            delivered: totals.measured_delivered,
            outstanding: None,
            known_lost: None,
            backlog: totals.backlog,
            in_flight: totals.in_flight,
            online: totals.online,
            failing: totals.failing,
            subscribed: totals.subscribed,
        }
    }

    /// Counters must not decrease within a run, whatever is found out later.
    fn never_below(&mut self, [offered, sent, delivered]: [u64; 3]) {
        self.offered = self.offered.max(offered);
        self.sent = self.sent.max(sent);
        self.delivered = self.delivered.max(delivered);
    }

    fn counters(&self) -> [u64; 3] {
        [self.offered, self.sent, self.delivered]
    }
}

/// Values of one run. Its last values remain until the next run begins.
#[derive(Clone, Debug, Default)]
pub struct RunValues {
    pub(super) labels: Vec<Label>,
    pub(super) phase: Option<PhaseWord>,
    counts: Option<Counts>,
    /// Nodes count, and send no counts while they measure: `counts` are older.
    are_counts_old: bool,
    pub(super) window: Option<WindowLatencies>,
    pub(super) latency: Option<Latencies>,
    pub(super) system: Option<Usage>,
    pub(super) generator: Option<Usage>,
    pub(super) faults: Option<u64>,
    pub(super) lost: Option<u64>,
    pub(super) unknown: Option<u64>,
    pub(super) over: bool,
    /// The folder of an experiment; its runs are numbered within it.
    folder: String,
}

impl RunValues {
    /// Values of the clients of one node in a run that began at this time.
    pub fn of_node(node: &str, began: String, totals: &Totals, latency: &WindowLatency) -> RunValues {
        RunValues {
            labels: vec![("run", began), ("node", bounded(node))],
            counts: Some(Counts::of_totals(totals)),
            window: Some(latency.into()),
            ..RunValues::default()
        }
    }

    /// The current counts; `None` while they are not known.
    pub(super) fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref().filter(|_| !self.are_counts_old)
    }

    /// Adds an event of the run.
    pub fn add(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Begins(begins) => *self = RunValues::begun(begins),
            StreamEvent::RunBegins(run) => {
                self.begin_numbered(run.number);
                self.relabel([
                    ("workload", run.workload.as_ref()),
                    ("system", run.system.as_ref()),
                    ("protocol", run.protocol.as_ref()),
                    ("cell", Some(&run.cell)),
                ]);
            }
            StreamEvent::TrialBegins(trial) => {
                self.begin_numbered(trial.number);
                // Labels of the run or trial before.
                self.labels.retain(|(label, _)| !matches!(*label, "cell" | "candidate" | "load"));
                self.relabel([
                    ("workload", trial.workload.as_ref()),
                    ("system", trial.system.as_ref()),
                    ("protocol", trial.protocol.as_ref()),
                    ("candidate", trial.candidate.as_ref()),
                    ("load", Some(&format!("{:.0}", trial.offered_per_s))),
                ]);
            }
            StreamEvent::Phase { phase, .. } => {
                // A race of `pubmark choose` executes its runs one after the other under one name: counters start again at
                // zero.
                if *phase == PhaseWord::Subscribe {
                    let labels = std::mem::take(&mut self.labels);
                    *self = RunValues { labels, folder: std::mem::take(&mut self.folder), ..RunValues::default() };
                }
                self.phase = Some(*phase);
                self.faults.get_or_insert(0);
            }
            StreamEvent::Progress(progress) => self.take(progress),
            StreamEvent::Fault { what, .. } => {
                let active = self.faults.unwrap_or(0);
                self.faults = Some(match what {
                    FaultWord::Begins => active + 1,
                    FaultWord::Ends => active.saturating_sub(1),
                });
            }
            StreamEvent::Ends(ends) => {
                self.over = true;
                if let Some(counted) = ends.counted {
                    (self.lost, self.unknown) = (Some(counted.lost), counted.unknown);
                    self.are_counts_old = false;
                    let counts = self.counts.get_or_insert_with(Counts::default);
                    counts.never_below([counted.offered, counted.sent, counted.delivered]);
                }
            }
            StreamEvent::Failed(_) => self.over = true,
            StreamEvent::Node { .. } | StreamEvent::Note { .. } => {}
        }
    }

    /// Each run of an experiment, and each trial of a search, has separate series.
    fn begin_numbered(&mut self, number: u64) {
        let name = format!("{}/{number}", self.folder);
        let (folder, mut labels) = (std::mem::take(&mut self.folder), std::mem::take(&mut self.labels));
        labels.iter_mut().filter(|(label, _)| *label == "run").for_each(|label| label.1 = bounded(&name));
        *self = RunValues { labels, folder, ..RunValues::default() };
    }

    /// Replaces the values of existing labels by the known ones, and appends those that are missing.
    fn relabel<const COUNT: usize>(&mut self, known: [(&'static str, Option<&String>); COUNT]) {
        for (name, value) in known {
            let Some(value) = value.map(|value| bounded(value)) else { continue };
            match self.labels.iter_mut().find(|(label, _)| *label == name) {
                Some(label) => label.1 = value,
                None => self.labels.push((name, value)),
            }
        }
    }

    fn begun(begins: &Begins) -> RunValues {
        let folder = Path::new(&begins.folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known = [
            ("run", Some(&folder)),
            ("workload", Some(&begins.name)),
            ("system", begins.system.as_ref()),
            ("protocol", begins.protocol.as_ref()),
        ];
        let labels = known.into_iter().filter_map(|(name, value)| Some((name, bounded(value?)))).collect();
        RunValues { labels, folder, ..RunValues::default() }
    }

    fn take(&mut self, progress: &Progress) {
        let mut counts = Counts::of(progress);
        if let Some(before) = &self.counts {
            counts.never_below(before.counters());
        }
        self.counts = Some(counts);
        self.are_counts_old = progress.outstanding.is_none();
        self.phase = Some(progress.phase);
        if let Some(window) = &progress.window {
            self.window = Some(window.clone());
        }
        self.latency = progress.latency;
        self.system = progress.system;
        self.generator = progress.generator;
    }
}

/// Limits the length: the name of a user's file may be long.
fn bounded(value: &str) -> String {
    value.chars().take(LONGEST_LABEL).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn event(text: &str) -> StreamEvent {
        serde_json::from_str(text).unwrap()
    }

    fn begun() -> RunValues {
        let mut values = RunValues::default();
        values.add(&event(
            r#"{"event":"begins","t_s":0,"stream_version":1,"folder":"runs/one","name":"hel\"lo","repetition":1,
                "repetitions":1,"system":"builtin","protocol":"mqtt5","warmup_s":0,"duration_s":1}"#,
        ));
        values
    }

    fn progress(sent: u64, buckets: &str) -> StreamEvent {
        event(&format!(
            r#"{{"event":"progress","t_s":1,"phase":"measure","elapsed_s":1,"length_s":2,"subscribed":1,"online":2,"failing":0,
                "offered":9,"sent":9,"measured_sent":{sent},"measured_delivered":3,"expected":9,"delivered":4,
                "outstanding":5,"backlog":0,
                "in_flight":1,"sent_per_s":null,"delivered_per_s":null,"latency":null,"system":null,"generator":null,
                "window":{{"upper":{{"below_ns":{buckets},"longer":1,"sum_s":0.5}},"lower":{{"below_ns":[],"longer":0,"sum_s":0}}}}}}"#
        ))
    }

    fn text(run: &RunValues) -> String {
        super::super::text(&Exposed { run: Some(run.clone()), queue: None }).unwrap()
    }

    #[test]
    fn a_counter_never_goes_back_and_lost_is_unknown_until_the_end() {
        let mut values = begun();
        values.add(&progress(5, "[]"));
        values.add(&progress(4, "[]"));
        let labels = r#"{run="one",workload="hel\"lo",system="builtin",protocol="mqtt5"}"#;
        let line = format!("messaging_client_sent_messages_total{labels} 5\n");
        assert!(text(&values).contains(&line), "{}", text(&values));
        assert!(!text(&values).contains("pubmark_lost"), "not known yet");
        assert!(!text(&values).contains("pubmark_cpu_cores"), "not measured");
        values.add(&event(
            r#"{"event":"ends","t_s":2,"folder":"runs/one","status":"complete","verdict":"valid",
                "counted":{"offered":9,"sent":6,"delivered":3,"lost":2,"unknown":40}}"#,
        ));
        assert!(text(&values).contains(&format!("pubmark_lost_messages_total{labels} 2\n")), "{}", text(&values));
        assert!(text(&values).contains(&format!("pubmark_unknown_messages_total{labels} 40\n")), "{}", text(&values));
        assert!(text(&values).contains(&format!("messaging_client_sent_messages_total{labels} 6\n")));
    }

    #[test]
    fn counts_that_nodes_do_not_send_while_they_measure_have_no_series() {
        let without_counts = |event: StreamEvent| match event {
            StreamEvent::Progress(line) => StreamEvent::Progress(Box::new(Progress { outstanding: None, ..*line })),
            other => other,
        };
        let mut values = begun();
        values.add(&progress(5, "[]"));
        assert!(text(&values).contains("pubmark_outstanding_deliveries{"), "{}", text(&values));
        values.add(&without_counts(progress(5, "[]")));
        let counted = ["_messages", "_deliveries{", "_connections", "_sessions"];
        assert!(!counted.iter().any(|name| text(&values).contains(name)), "{}", text(&values));
        values.add(&progress(7, "[]"));
        assert!(text(&values).contains("messaging_client_sent_messages_total{") && text(&values).contains(" 7\n"));
    }

    #[test]
    fn cells_of_an_experiment_have_different_labels() {
        let mut values = RunValues::default();
        values.add(&event(
            r#"{"event":"begins","t_s":0,"stream_version":1,"folder":"runs/two","name":"levels","repetition":1,"repetitions":1,
                "warmup_s":null,"duration_s":null}"#,
        ));
        for (number, system, cell) in [(1, "mosquitto", "mosquitto, QoS 0"), (2, "nats", "nats")] {
            values.add(&event(&format!(
                r#"{{"event":"run-begins","t_s":1,"number":{number},"of":2,"cell":"{cell}","workload":"hello","system":"{system}",
                    "protocol":"mqtt5","repetition":1,"left_s":9}}"#
            )));
            values.add(&progress(5, "[]"));
            let labels =
                format!(r#"{{run="two/{number}",workload="hello",system="{system}",protocol="mqtt5",cell="{cell}"}}"#);
            let line = format!("messaging_client_sent_messages_total{labels} 5\n");
            assert!(text(&values).contains(&line), "{}", text(&values));
        }
        // Events of an older version have fewer fields.
        values.add(&event(r#"{"event":"run-begins","t_s":1,"number":3,"of":3,"cell":"c","repetition":1,"left_s":9}"#));
        values.add(&progress(5, "[]"));
        assert!(text(&values).contains(r#"run="two/3""#) && text(&values).contains(r#"cell="c""#));
    }

    #[test]
    fn trials_have_labels_by_load_in_a_search_and_by_candidate_in_a_choice() {
        let mut values = RunValues::default();
        values.add(&event(
            r#"{"event":"begins","t_s":0,"stream_version":1,"folder":"runs/three","name":"hello","repetition":1,"repetitions":1,
                "warmup_s":null,"duration_s":null}"#,
        ));
        values.add(&event(
            r#"{"event":"run-begins","t_s":1,"number":1,"of":2,"cell":"nats, race","workload":"hello","system":"nats",
                "protocol":"nats","repetition":1,"left_s":9}"#,
        ));
        let trial = |fields: &str| {
            event(&format!(r#"{{"event":"trial-begins","t_s":1,"number":2,{fields}"attempt":1,"left_s":9}}"#))
        };
        for (fields, labels) in [
            (
                r#""offered_per_s":1234.5,"workload":"hello","system":"builtin","protocol":"mqtt5","#,
                r#"{run="three/2",workload="hello",system="builtin",protocol="mqtt5",load="1234"}"#,
            ),
            (
                r#""offered_per_s":50,"workload":"hello","system":"mosquitto","protocol":"mqtt5","candidate":"small","#,
                r#"{run="three/2",workload="hello",system="mosquitto",protocol="mqtt5",candidate="small",load="50"}"#,
            ),
        ] {
            values.add(&trial(fields));
            values.add(&progress(5, "[]"));
            let line = format!("messaging_client_sent_messages_total{labels} 5\n");
            assert!(text(&values).contains(&line), "{}", text(&values));
        }
        // Events of an older version have fewer fields.
        values.add(&trial(r#""offered_per_s":7,"#));
        values.add(&progress(5, "[]"));
        assert!(text(&values).contains(r#"load="7""#), "{}", text(&values));
    }

    #[test]
    fn a_histogram_adds_up_and_ends_with_its_count() {
        let mut values = begun();
        values.add(&progress(5, "[[5120,2],[1048576,3]]"));
        let text = text(&values);
        let bucket = |le: &str| {
            let name = "pubmark_delivery_latency_seconds_bucket{";
            let line = text.lines().find(|line| line.starts_with(name) && line.contains(&format!("le=\"{le}\"")));
            line.unwrap_or_else(|| panic!("no {le} in {text}")).rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!([bucket("0.00000512"), bucket("0.001048576"), bucket("+Inf")], ["2", "5", "6"]);
        let count = text.lines().find(|line| line.starts_with("pubmark_delivery_latency_seconds_count")).unwrap();
        assert!(count.ends_with(" 6"), "{count}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn options_that_do_not_concern_a_run_are_hidden() {
        let queue = QueueValues(vec![(State::Queued, 3)]);
        let text = super::super::text(&Exposed { run: None, queue: Some(queue) }).unwrap();
        assert!(text.contains("pubmark_queue_length 3"), "{text}");
        assert!(text.contains(r#"pubmark_submissions{state="failed"} 0"#), "{text}");
        assert!(!text.contains("messaging_"), "{text}");
    }
}
