//! What the live view shows of a submission: the lines of its child, gathered; drawn once a second for all who watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pubmark_report::html::{LivePoint, LiveView, live_view};
use pubmark_runner::stream::{FaultWord, Interval, PhaseWord, Progress, StreamEvent, Usage};
use serde::Serialize;

use crate::store::{EVENTS_FILE, Entry, State, Store};
use crate::tail::Tail;

/// Time between two drawings.
pub const EVERY: Duration = Duration::from_millis(900);
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

/// Views of submissions that somebody watches or watched.
#[derive(Default)]
pub struct Views {
    views: Mutex<HashMap<String, Arc<Mutex<View>>>>,
}

/// One submission's.
struct View {
    tail: Tail,
    gathered: Gathered,
    drawn: Option<(Instant, Arc<Shown>)>,
}

impl Views {
    /// What is shown of a submission now; the same for all who ask within a second. `None` if there is none.
    pub fn show(&self, store: &Store, id: &str) -> Option<Arc<Shown>> {
        let entry = store.get(id)?;
        let view = {
            let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
            if !views.contains_key(id) {
                // Those that are over are read again when they are asked for.
                views.retain(|other, _| store.get(other).is_some_and(|entry| !entry.status.state.is_over()));
            }
            let new = || View {
                tail: Tail::of(store.folder(id).join(EVENTS_FILE)),
                gathered: Gathered::default(),
                drawn: None,
            };
            Arc::clone(views.entry(id.to_owned()).or_insert_with(|| Arc::new(Mutex::new(new()))))
        };
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        Some(view.show(&entry))
    }
}

impl View {
    fn show(&mut self, entry: &Entry) -> Arc<Shown> {
        let over = entry.status.state.is_over();
        if let Some((at, shown)) = &self.drawn
            && at.elapsed() < EVERY
            && shown.ended == over
        {
            return Arc::clone(shown);
        }
        // A file that cannot be read shows what was there before.
        while let Ok(lines) = self.tail.lines() {
            if lines.is_empty() {
                break;
            }
            lines.iter().filter_map(|line| serde_json::from_str(line).ok()).for_each(|event| self.gathered.add(event));
        }
        let shown = Arc::new(self.gathered.shown(entry));
        self.drawn = Some((Instant::now(), Arc::clone(&shown)));
        shown
    }
}

/// What the lines came to.
#[derive(Default)]
struct Gathered {
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
    fn add(&mut self, event: StreamEvent) {
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
                    PhaseWord::Measure => self.window_s = Some(t_s),
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

    fn shown(&self, entry: &Entry) -> Shown {
        let state = entry.status.state;
        let title = format!("{} on {}", entry.submitted.name, entry.submitted.systems.join(", "));
        let newest = self.points.last().map(|point| point.at_s);
        let share = newest.zip(self.duration_s).map(|(at, length)| (at / length).clamp(0.0, 1.0));
        let words = self.words(entry);
        let view = LiveView {
            title: title.clone(),
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
            title,
            html: live_view(&view),
            announce,
            can_stop: matches!(state, State::Queued | State::Running),
            over: state.is_over() && !entry.status.folders.is_empty(),
            ended: state.is_over(),
        }
    }

    fn words(&self, entry: &Entry) -> String {
        let error =
            entry.status.error.as_ref().map(|error| format!(": {}", error.chain.join(": "))).unwrap_or_default();
        let second = self.points.last().map(|point| point.at_s.max(0.0).round());
        let phase = match (entry.status.state, self.phase) {
            (State::Running, Some(PhaseWord::Measure)) => match second.zip(self.duration_s) {
                Some((second, length)) => format!(": second {second} of {length} of the measured window"),
                None => ": measured window".to_owned(),
            },
            (State::Running, Some(phase)) => format!(": {}", phase.as_str()),
            _ => String::new(),
        };
        let run = if self.run.is_empty() { String::new() } else { format!(" ({})", self.run) };
        format!("{}{phase}{run}{error}", entry.status.state.word())
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
