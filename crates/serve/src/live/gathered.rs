//! State of a run, an experiment or a search, gathered from its events, and the HTML drawn from it.

use std::time::Duration;

use pubmark_experiment::experiment::pace::about;
use pubmark_report::html::{LivePoint, LiveRun, LiveView, live_view};
use pubmark_report::numbers::three_digits;
use pubmark_report::words::sentence;
use pubmark_runner::stream::{FaultWord, Interval, PhaseWord, Progress, RunBegins, StreamEvent, TrialBegins, Usage};
use serde::Serialize;

use crate::store::State;

/// Maximum number of points in time that are stored: an hour.
const MOST_POINTS: usize = 3_600;
/// Maximum number of log entries that are stored.
const MOST_LOGGED: usize = 200;

/// Content that is sent to a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Workload on system.
    pub title: String,
    /// Tiles, charts, log.
    pub html: String,
    /// Text that a screen reader announces when it changes.
    pub announce: String,
    /// Whether it can be stopped.
    pub can_stop: bool,
    /// Whether it is over and has a report.
    pub over: bool,
    /// Whether it is over, with or without a report.
    pub ended: bool,
    /// The failure of one that is over, in sentences. A report may be that of an earlier repetition, and does not mention it.
    pub failure: Option<String>,
}

/// The submission or command that writes the events, and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Workload on system.
    pub title: String,
    /// Current state.
    pub state: State,
    /// Reason of the failure, if it failed, and what to do.
    pub error: Option<(String, Option<String>)>,
    /// What it waits for besides earlier submissions.
    pub waits_for: Option<String>,
    /// Whether there is a report once it is over.
    pub has_report: bool,
}

/// State gathered from the events.
#[derive(Default)]
pub struct Gathered {
    /// Repetition of a run.
    repetition: String,
    among: Option<Among>,
    /// Time of the newest event, seconds.
    now_s: f64,
    warmup_s: Option<f64>,
    duration_s: Option<f64>,
    /// Start of the window, past or planned, in the time of the events.
    window_s: Option<f64>,
    phase: Option<PhaseWord>,
    points: Vec<LivePoint>,
    faults: Vec<(String, f64, Option<f64>)>,
    log: Vec<(f64, String)>,
}

/// The current run of an experiment, or trial of a search.
struct Among {
    run: LiveRun,
    /// Time of its start, in the time of the events, seconds.
    began_s: f64,
    /// Estimated time for it and the rest from its start, seconds; for a search, time in which further trials may start.
    left_s: f64,
    is_trial: bool,
}

impl Among {
    fn of_run(run: &RunBegins) -> Among {
        let repetition = if run.repetition > 1 { format!(", repetition {}", run.repetition) } else { String::new() };
        let place = format!("run {} of {}", run.number, run.of);
        let done = Some((run.number.saturating_sub(1), run.of));
        let run_of = LiveRun { place, what: format!("{}{repetition}", run.cell), done, left: String::new() };
        Among { run: run_of, began_s: run.t_s, left_s: run.left_s, is_trial: false }
    }

    fn of_trial(trial: &TrialBegins) -> Among {
        let again = if trial.attempt > 1 { format!(", try {}", trial.attempt) } else { String::new() };
        let whose = trial.candidate.as_ref().map(|label| format!("headroom of {label}: ")).unwrap_or_default();
        let what = format!("{whose}{} msg/s{again}", three_digits(trial.offered_per_s));
        let run = LiveRun { place: format!("trial {}", trial.number), what, done: None, left: String::new() };
        Among { run, began_s: trial.t_s, left_s: trial.left_s, is_trial: true }
    }

    fn words(&self) -> String {
        format!("{}: {}", self.run.place, self.run.what)
    }

    fn shown(&self, now_s: f64) -> LiveRun {
        let left_s = (self.left_s - (now_s - self.began_s)).max(0.0);
        let left = about(Duration::try_from_secs_f64(left_s).unwrap_or_default());
        let left = match self.is_trial {
            true if left_s == 0.0 => "no further trial begins".to_owned(),
            true => format!("further trials may begin for about {left}"),
            false => format!("about {left} left"),
        };
        LiveRun { left, ..self.run.clone() }
    }
}

impl Gathered {
    /// Adds an event.
    pub fn add(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Begins(begins) => {
                if begins.repetitions > 1 {
                    self.begin();
                    self.repetition = format!("repetition {} of {}", begins.repetition, begins.repetitions);
                }
                (self.warmup_s, self.duration_s) = (begins.warmup_s, begins.duration_s);
                self.note(begins.t_s, format!("results folder: {}", last(&begins.folder)));
            }
            StreamEvent::RunBegins(run) => self.begin_among(Among::of_run(&run)),
            StreamEvent::TrialBegins(trial) => self.begin_among(Among::of_trial(&trial)),
            StreamEvent::Phase { t_s, phase } => {
                self.phase = Some(phase);
                match phase {
                    PhaseWord::WarmUp => self.window_s = self.warmup_s.map(|warmup| t_s + warmup),
                    PhaseWord::Measure => self.begin_window(t_s),
                    _ => {}
                }
                self.note(t_s, format!("{} begins", phase.as_str()));
            }
            StreamEvent::Progress(progress) => self.add_point(&progress),
            StreamEvent::Fault { t_s, what, fault } => self.add_fault(t_s, what, fault),
            StreamEvent::Node { t_s, name, joined, reason, .. } => {
                let what = if joined { "joined".to_owned() } else { format!("left: {}", reason.unwrap_or_default()) };
                self.note(t_s, format!("{name} {what}"));
            }
            StreamEvent::Note { t_s, text } => self.note(t_s, text),
            StreamEvent::Ends(ends) => {
                let verdict = ends.verdict.map(|verdict| format!(", {verdict}")).unwrap_or_default();
                self.note(ends.t_s, format!("{}{verdict}: {}", ends.status, last(&ends.folder)));
            }
            StreamEvent::Failed(failed) => self.note(failed.t_s, failed.chain.join(": ")),
        }
    }

    /// A new run: its points in time have a separate window.
    fn begin(&mut self) {
        *self = Gathered { now_s: self.now_s, log: std::mem::take(&mut self.log), ..Gathered::default() };
    }

    fn begin_among(&mut self, among: Among) {
        self.begin();
        self.note(among.began_s, among.words());
        self.among = Some(among);
    }

    /// The window begins: earlier points are relative to the actual start, not to the planned one.
    fn begin_window(&mut self, t_s: f64) {
        let planned = self.window_s.replace(t_s).unwrap_or(t_s);
        for point in &mut self.points {
            point.at_s += planned - t_s;
        }
        for (_, began, ended) in &mut self.faults {
            *began += planned - t_s;
            ended.iter_mut().for_each(|ended| *ended += planned - t_s);
        }
    }

    fn note(&mut self, t_s: f64, text: String) {
        self.now_s = self.now_s.max(t_s);
        self.log.insert(0, (t_s, text));
        self.log.truncate(MOST_LOGGED);
    }

    fn add_point(&mut self, progress: &Progress) {
        self.now_s = self.now_s.max(progress.t_s);
        let is_load = matches!(progress.phase, PhaseWord::WarmUp | PhaseWord::Measure | PhaseWord::Drain);
        // Runs of experiments and searches report the lengths of their phases when these have begun: a few milliseconds
        // later than planned.
        let length_s = progress.length_s.map(|length| (length * 10.0).round() / 10.0);
        match (progress.phase, length_s) {
            (PhaseWord::WarmUp, Some(length)) if self.window_s.is_none() => {
                self.window_s = Some(progress.t_s - progress.elapsed_s + length);
            }
            (PhaseWord::Measure, Some(length)) if self.duration_s.is_none() => self.duration_s = Some(length),
            _ => {}
        }
        // If the length of the warm-up is not known, charts begin with the window.
        let Some(window_s) = self.window_s.filter(|_| is_load) else { return };
        let bounds = |interval: Option<Interval>| interval.map(|interval| [interval.lower_us, interval.upper_us]);
        let used = |usage: Option<Usage>| usage.map(|usage| (usage.cores, usage.rss_bytes));
        let latency = progress.latency;
        let is_schedule = matches!(progress.phase, PhaseWord::WarmUp | PhaseWord::Measure);
        self.points.push(LivePoint {
            at_s: progress.t_s - window_s,
            sent_per_s: progress.sent_per_s,
            delivered_per_s: progress.delivered_per_s,
            p50_us: bounds(latency.and_then(|latency| latency.p50)),
            p99_us: bounds(latency.and_then(|latency| latency.p99)),
            nodes_measure: is_schedule && latency.is_none(),
            outstanding: progress.outstanding,
            lost: progress.lost,
            backlog: progress.backlog,
            in_flight: progress.in_flight,
            system: used(progress.system),
            generator: used(progress.generator),
        });
        if self.points.len() > MOST_POINTS {
            self.points.remove(0);
        }
    }

    fn add_fault(&mut self, t_s: f64, what: FaultWord, fault: String) {
        let at_s = t_s - self.window_s.unwrap_or(t_s);
        match what {
            FaultWord::Begins => {
                self.note(t_s, format!("fault begins: {fault}"));
                self.faults.push((fault, at_s, None));
            }
            FaultWord::Ends => {
                self.note(t_s, format!("fault ends: {fault}"));
                let open = self.faults.iter_mut().find(|(words, _, ended)| *words == fault && ended.is_none());
                if let Some((_, _, ended)) = open {
                    *ended = Some(at_s);
                }
            }
        }
    }

    /// Content for a page now.
    pub fn shown(&self, subject: &Subject) -> Shown {
        let state = subject.state;
        let newest = self.points.last().map(|point| point.at_s);
        let share = newest.zip(self.duration_s).map(|(at, length)| (at / length).clamp(0.0, 1.0));
        let words = self.words(subject);
        let view = LiveView {
            title: subject.title.clone(),
            state: words.clone(),
            failure: subject.error.clone(),
            over: state.is_over(),
            among: self.among.as_ref().filter(|_| !state.is_over()).map(|among| among.shown(self.now_s)),
            share: share.filter(|_| state == State::Running),
            duration_s: self.duration_s,
            points: self.points.clone(),
            faults: self.faults.clone(),
            log: self.log.clone(),
        };
        let announce = match (self.log.first(), state) {
            (Some((_, newest)), State::Running) => newest.clone(),
            _ => match &subject.error {
                Some((reason, _)) => format!("{words}: {reason}"),
                None => words,
            },
        };
        Shown {
            title: subject.title.clone(),
            html: live_view(&view),
            announce,
            can_stop: matches!(state, State::Queued | State::Running),
            over: state.is_over() && subject.has_report,
            ended: state.is_over(),
            failure: subject.error.as_ref().filter(|_| state.is_over()).map(sentences),
        }
    }

    fn words(&self, subject: &Subject) -> String {
        let second = self.points.last().map(|point| point.at_s.max(0.0).round());
        let phase = match (subject.state, self.phase) {
            (State::Running, Some(PhaseWord::Measure)) => match second.zip(self.duration_s) {
                Some((second, length)) => format!(": second {second} of {length} of the measured window"),
                None => ": measured window".to_owned(),
            },
            (State::Running, Some(phase)) => format!(": {}", phase.as_str()),
            _ => String::new(),
        };
        let run = if self.repetition.is_empty() { String::new() } else { format!(" ({})", self.repetition) };
        let waits = subject.waits_for.as_ref().map(|what| format!(": waits for {what}")).unwrap_or_default();
        format!("{}{phase}{waits}{run}", subject.state.word())
    }
}

/// A reason and what to do, as sentences.
fn sentences((reason, hint): &(String, Option<String>)) -> String {
    let texts = [Some(reason), hint.as_ref()].into_iter().flatten();
    texts.map(|text| sentence(text)).collect::<Vec<_>>().join(" ")
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn event(text: &str) -> StreamEvent {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn time_does_not_run_backwards_where_the_window_begins_late() {
        let mut gathered = Gathered::default();
        let progress = |t_s: f64, phase: &str| {
            event(&format!(
                r#"{{"event":"progress","t_s":{t_s},"phase":"{phase}","elapsed_s":1,"subscribed":1,"online":1,"failing":0,"offered":1,"sent":1,"delivered":1,"expected":1,"backlog":0,"in_flight":0}}"#
            ))
        };
        gathered.add(event(
            r#"{"event":"begins","t_s":0.0,"stream_version":1,"folder":"runs/a","name":"a","repetition":1,"repetitions":1,"warmup_s":1.0,"duration_s":5.0}"#,
        ));
        gathered.add(event(r#"{"event":"phase","t_s":1.0,"phase":"warm-up"}"#));
        gathered.add(progress(1.5, "warm-up"));
        // Half a second later than planned.
        gathered.add(progress(2.4, "warm-up"));
        gathered.add(event(r#"{"event":"phase","t_s":2.5,"phase":"measure"}"#));
        gathered.add(progress(2.75, "measure"));
        let at: Vec<f64> = gathered.points.iter().map(|point| (point.at_s * 1e3).round() / 1e3).collect();
        assert_eq!(at, [-1.0, -0.1, 0.25]);
    }

    #[test]
    fn nodes_that_measure_are_named_where_a_figure_is_missing() {
        let mut gathered = Gathered::default();
        let progress = |t_s: f64, more: &str| {
            event(&format!(
                r#"{{"event":"progress","t_s":{t_s},"phase":"measure","elapsed_s":1,"length_s":9,"subscribed":1,"online":1,"failing":0,"offered":1,"sent":1,"delivered":1,"expected":1,"backlog":0,"in_flight":0,{more}}}"#
            ))
        };
        gathered.add(event(r#"{"event":"phase","t_s":1.0,"phase":"measure"}"#));
        gathered.add(progress(2.0, r#""outstanding":3,"lost":0,"latency":{"samples":7,"p50":null,"p99":null}"#));
        let html = gathered.shown(&subject()).html;
        assert!(html.contains("too few messages in the last 10 s") && !html.contains("nodes measure"), "{html}");
        gathered.add(progress(3.0, r#""outstanding":null,"lost":null,"latency":null"#));
        let html = gathered.shown(&subject()).html;
        assert!(html.contains("nodes measure") && !html.contains("too few messages"), "{html}");
    }

    fn subject() -> Subject {
        Subject { title: "t".to_owned(), state: State::Running, error: None, waits_for: None, has_report: false }
    }

    #[test]
    fn a_run_of_an_experiment_is_placed_and_the_rest_counts_down() {
        let mut gathered = Gathered::default();
        gathered.add(event(
            r#"{"event":"run-begins","t_s":10.0,"number":3,"of":12,"cell":"qos 1","repetition":2,"left_s":600.0}"#,
        ));
        let progress = |t_s: f64, phase: &str, elapsed_s: f64, length_s: f64| {
            event(&format!(
                r#"{{"event":"progress","t_s":{t_s},"phase":"{phase}","elapsed_s":{elapsed_s},"length_s":{length_s},"subscribed":1,"online":1,"failing":0,"offered":1,"sent":1,"delivered":1,"expected":1,"backlog":0,"in_flight":0}}"#
            ))
        };
        gathered.add(event(r#"{"event":"phase","t_s":11.0,"phase":"warm-up"}"#));
        gathered.add(progress(12.0, "warm-up", 1.0, 2.0));
        gathered.add(event(r#"{"event":"phase","t_s":13.0,"phase":"measure"}"#));
        gathered.add(progress(130.0, "measure", 117.0, 239.998));
        let at: Vec<f64> = gathered.points.iter().map(|point| point.at_s).collect();
        assert_eq!((at, gathered.duration_s), (vec![-1.0, 117.0], Some(240.0)));
        let shown = gathered.shown(&subject());
        for text in ["run 3 of 12", "qos 1, repetition 2", r#"max="12" value="2""#, "about 8 min left"] {
            assert!(shown.html.contains(text), "{text}: {}", shown.html);
        }
        // The next run has separate charts, and shares the log.
        gathered.add(event(
            r#"{"event":"run-begins","t_s":300.0,"number":4,"of":12,"cell":"qos 0","repetition":2,"left_s":400.0}"#,
        ));
        assert!(gathered.points.is_empty() && gathered.log.len() > 2);
        let over = gathered.shown(&Subject { state: State::Complete, has_report: true, ..subject() });
        assert_eq!((over.over, over.failure), (true, None));
        assert!(!over.html.contains("about"), "{}", over.html);
    }

    #[test]
    fn a_failure_is_reported_when_it_is_over_with_what_to_do() {
        let error = Some(("failed to connect to `a`".to_owned(), Some("check the address".to_owned())));
        let shown = |state: State| Gathered::default().shown(&Subject { state, error: error.clone(), ..subject() });
        assert_eq!(shown(State::Failed).failure.as_deref(), Some("Failed to connect to `a`. Check the address."));
        // For instance the reason why the orphan of an earlier server delays it.
        assert_eq!(shown(State::Running).failure, None);
    }

    #[test]
    fn a_trial_of_a_search_says_its_load() {
        let mut gathered = Gathered::default();
        gathered.add(event(
            r#"{"event":"trial-begins","t_s":5.0,"number":4,"offered_per_s":2000.0,"attempt":2,"left_s":0.0}"#,
        ));
        let shown = gathered.shown(&subject());
        for text in ["trial 4", "2,000 msg/s, try 2", "no further trial begins"] {
            assert!(shown.html.contains(text), "{text}: {}", shown.html);
        }
    }
}
