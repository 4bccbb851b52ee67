//! What is known of a run, an experiment or a search from the events that it writes, and what is drawn of it.

use pubmark_report::html::{LivePoint, LiveView, live_view};
use pubmark_runner::stream::{FaultWord, Interval, PhaseWord, Progress, StreamEvent, Usage};
use serde::Serialize;

use crate::store::State;

/// Moments that are kept: an hour.
const MOST_POINTS: usize = 3_600;
/// Things that happened that are kept.
const MOST_LOGGED: usize = 200;

/// What a page is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Workload on system.
    pub title: String,
    /// Tiles, charts, log.
    pub html: String,
    /// What is read out when it changes.
    pub announce: String,
    /// Can it be stopped?
    pub can_stop: bool,
    /// Is it over, so that there is a report?
    pub over: bool,
    /// Is it over, with or without one?
    pub ended: bool,
}

/// Whose events they are, and how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Workload on system.
    pub title: String,
    /// How far.
    pub state: State,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Is there a report, once it is over?
    pub has_report: bool,
}

/// What the lines came to.
#[derive(Default)]
pub struct Gathered {
    run: String,
    warmup_s: Option<f64>,
    duration_s: Option<f64>,
    /// When the window began, or will begin, by the time of the lines.
    window_s: Option<f64>,
    phase: Option<PhaseWord>,
    points: Vec<LivePoint>,
    faults: Vec<(String, f64, Option<f64>)>,
    log: Vec<(f64, String)>,
}

impl Gathered {
    /// Takes an event.
    pub fn add(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Begins(begins) => {
                if begins.repetitions > 1 {
                    self.begin(format!("repetition {} of {}", begins.repetition, begins.repetitions));
                }
                (self.warmup_s, self.duration_s) = (begins.warmup_s, begins.duration_s);
                self.note(begins.t_s, format!("results go to {}", last(&begins.folder)));
            }
            StreamEvent::RunBegins(run) => {
                self.begin(format!("run {} of {}: {}", run.number, run.of, run.cell));
                (self.warmup_s, self.duration_s) = (None, None);
                self.note(run.t_s, self.run.clone());
            }
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

    /// Another run's moments have their own window.
    fn begin(&mut self, run: String) {
        *self = Gathered { run, log: std::mem::take(&mut self.log), ..Gathered::default() };
    }

    /// The window begins: moments before it count from where it does, not from where it was planned.
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
        self.log.insert(0, (t_s, text));
        self.log.truncate(MOST_LOGGED);
    }

    fn add_point(&mut self, progress: &Progress) {
        let is_load = matches!(progress.phase, PhaseWord::WarmUp | PhaseWord::Measure | PhaseWord::Drain);
        // Without a length of the warm-up, charts begin with the window.
        let Some(window_s) = self.window_s.filter(|_| is_load) else { return };
        let bounds = |interval: Option<Interval>| interval.map(|interval| [interval.lower_us, interval.upper_us]);
        let used = |usage: Option<Usage>| usage.map(|usage| (usage.cores, usage.rss_bytes));
        let latency = progress.latency;
        self.points.push(LivePoint {
            at_s: progress.t_s - window_s,
            sent_per_s: progress.sent_per_s,
            delivered_per_s: progress.delivered_per_s,
            p50_us: bounds(latency.and_then(|latency| latency.p50)),
            p99_us: bounds(latency.and_then(|latency| latency.p99)),
            expected: progress.expected,
            delivered: progress.delivered,
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

    /// What a page is sent of it now.
    pub fn shown(&self, subject: &Subject) -> Shown {
        let state = subject.state;
        let newest = self.points.last().map(|point| point.at_s);
        let share = newest.zip(self.duration_s).map(|(at, length)| (at / length).clamp(0.0, 1.0));
        let words = self.words(subject);
        let view = LiveView {
            title: subject.title.clone(),
            state: words.clone(),
            share: share.filter(|_| state == State::Running),
            duration_s: self.duration_s,
            points: self.points.clone(),
            faults: self.faults.clone(),
            log: self.log.clone(),
        };
        let announce = match (self.log.first(), state) {
            (Some((_, newest)), State::Running) => newest.clone(),
            _ => words,
        };
        Shown {
            title: subject.title.clone(),
            html: live_view(&view),
            announce,
            can_stop: matches!(state, State::Queued | State::Running),
            over: state.is_over() && subject.has_report,
            ended: state.is_over(),
        }
    }

    fn words(&self, subject: &Subject) -> String {
        let error = subject.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let second = self.points.last().map(|point| point.at_s.max(0.0).round());
        let phase = match (subject.state, self.phase) {
            (State::Running, Some(PhaseWord::Measure)) => match second.zip(self.duration_s) {
                Some((second, length)) => format!(": second {second} of {length} of the measured window"),
                None => ": measured window".to_owned(),
            },
            (State::Running, Some(phase)) => format!(": {}", phase.as_str()),
            _ => String::new(),
        };
        let run = if self.run.is_empty() { String::new() } else { format!(" ({})", self.run) };
        format!("{}{phase}{run}{error}", subject.state.word())
    }
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
}
