//! The session of a node with its coordinator.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tonic::Streaming;

use super::clock::NodeClock;
use super::connection::Membership;
use super::counts::CountWatch;
use super::worker::Worker;
use super::{Happening, Launch, MachineReading, NodeSettings, ports};
use crate::coordinator::words;
use crate::lanes::Lanes;
use crate::limits;
use crate::machine;
use crate::messages::{
    Began, Begin, CoordinatorMessage, FromNode, NodeMessage, Piece, Report, Rows, Run, Time, ToNode,
};

/// Interval at which the session checks whether it must end.
const LOOK: Duration = Duration::from_millis(50);

/// The connection of a node to its coordinator, with its workers.
pub(super) struct Session<'a> {
    launch: Launch<'a>,
    machine: fn(Option<IpAddr>) -> Option<MachineReading>,
    /// Address at which clients on other machines reach the node's clients.
    clients_at: Option<IpAddr>,
    inbound: Streaming<ToNode>,
    lanes: Lanes<FromNode>,
    clock: NodeClock,
    workers: BTreeMap<u32, Worker>,
    /// `None` if the counts are not reported.
    counts: Option<CountWatch>,
    is_watched: bool,
    joined: Instant,
    heard: Instant,
    /// When the newest request for the time was sent, and whether its response arrived.
    asked: (Instant, bool),
    heartbeat: Instant,
    /// Requests of a burst that are not sent yet.
    burst: u32,
    /// Reports of workers that have ended; they are sent after the burst of time requests that follows.
    over: Vec<Report>,
}

/// What a session continues with.
enum Next {
    Message(Option<CoordinatorMessage>),
    Lost(String),
    Tick,
}

impl<'a> Session<'a> {
    /// Creates the session of a node that has just joined.
    pub fn new(settings: &NodeSettings, launch: Launch<'a>, joined: Membership) -> Session<'a> {
        let now = Instant::now();
        Session {
            launch,
            machine: settings.machine,
            clients_at: joined.welcome.clients_at.parse().ok(),
            inbound: joined.inbound,
            lanes: joined.lanes,
            clock: NodeClock::new(&joined.welcome, &machine::boot(), settings.clock_error),
            workers: BTreeMap::new(),
            counts: settings.counts.then(CountWatch::new),
            is_watched: false,
            joined: now,
            heard: now,
            asked: (now, true),
            heartbeat: now,
            burst: limits::BURST,
            over: vec![],
        }
    }

    /// Serves until the coordinator disconnects, or `stop` is set; returns the reason. No worker is left.
    pub async fn serve(mut self, stop: &AtomicBool, seen: &mut dyn FnMut(&Happening)) -> String {
        let mut looks = interval(LOOK);
        let mut rows = interval(limits::ROWS);
        for ticks in [&mut looks, &mut rows] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let why = loop {
            if stop.load(Relaxed) {
                break "interrupted".to_owned();
            }
            let wait = self.until_next_question();
            let next = tokio::select! {
                message = self.inbound.message() => match message {
                    Ok(Some(message)) => Next::Message(message.message),
                    Ok(None) => Next::Lost("the coordinator closed the connection".to_owned()),
                    Err(status) => Next::Lost(format!("the connection broke: {}", words(&status))),
                },
                () = sleep(wait) => Next::Tick,
                _ = looks.tick() => Next::Tick,
                _ = rows.tick(), if self.is_watched => {
                    self.send_rows();
                    Next::Tick
                }
            };
            let ended = match next {
                Next::Message(message) => self.obey(message, seen).await,
                Next::Lost(why) => Some(why),
                Next::Tick => None,
            };
            if ended.is_none() && self.silence().is_some() {
                self.listen_once_more(seen).await;
            }
            if let Some(why) = ended.or_else(|| self.silence()) {
                break why;
            }
            self.ask_when_due();
            self.workers.values_mut().for_each(Worker::look);
            if let Some(counts) = self.counts.as_mut().and_then(CountWatch::look) {
                seen(&Happening::Counts(Box::new(counts)));
            }
        };
        let words = if stop.load(Relaxed) { "interrupted" } else { "its coordinator seemed to be gone" };
        self.lanes.say(FromNode { message: Some(NodeMessage::Goodbye(words.to_owned())) });
        for worker in self.workers.values_mut() {
            worker.end().await;
        }
        if !self.workers.is_empty() {
            seen(&Happening::Ended);
        }
        sleep(limits::FAREWELL).await;
        why
    }

    /// If this process was delayed, the coordinator's message has arrived by now.
    async fn listen_once_more(&mut self, seen: &mut dyn FnMut(&Happening)) {
        if let Ok(Ok(Some(message))) = timeout(limits::GRACE, self.inbound.message()).await {
            self.obey(message.message, seen).await;
        }
    }

    /// The coordinator has been silent for too long.
    fn silence(&self) -> Option<String> {
        let limit = limits::COORDINATOR_SILENCE;
        (self.heard.elapsed() >= limit).then(|| format!("the coordinator was silent for {} s", limit.as_secs()))
    }

    /// Is a worker running while no counters are requested? Then the node sends as little as possible.
    fn is_measuring(&self) -> bool {
        !self.workers.is_empty() && !self.is_watched
    }

    fn until_next_question(&self) -> Duration {
        match (self.burst, self.asked) {
            (0, _) if self.joined.elapsed() < limits::FIRST => {
                limits::FIRST_HEARTBEATS.saturating_sub(self.heartbeat.elapsed())
            }
            (0, _) => limits::HEARTBEAT.saturating_sub(self.heartbeat.elapsed()),
            (_, (_, true)) => Duration::ZERO,
            (_, (at, false)) => limits::ANSWER.saturating_sub(at.elapsed()),
        }
    }

    /// Requests the time if it is due, which is a heartbeat too, and sends a heartbeat to the workers.
    fn ask_when_due(&mut self) {
        if !self.until_next_question().is_zero() {
            return;
        }
        if self.burst == 0 {
            self.burst = limits::PAIR;
            self.heartbeat = Instant::now();
            for worker in self.workers.values() {
                worker.progress.run_clock().keep_alive(pubmark_protocol::clock::machine_ns());
            }
        }
        self.burst -= 1;
        self.asked = (Instant::now(), false);
        // If the request cannot be sent, the missing heartbeats will show that the coordinator is lost.
        self.lanes.say(FromNode { message: Some(NodeMessage::Ask(self.clock.ask())) });
        if self.burst == 0 {
            self.report_what_is_over();
        }
    }

    fn hear(&mut self, time: &Time) {
        self.clock.hear(time);
        self.asked.1 |= time.receive_ns > 0;
        if self.burst == 0 {
            let is_running = !self.workers.is_empty();
            self.clock.set(self.workers.values().map(|worker| worker.progress.as_ref()), is_running);
        }
    }

    /// Executes a message of the coordinator; returns the reason if the session is to end.
    async fn obey(&mut self, message: Option<CoordinatorMessage>, seen: &mut dyn FnMut(&Happening)) -> Option<String> {
        match message {
            Some(CoordinatorMessage::Time(time)) => self.hear(&time),
            Some(CoordinatorMessage::Begin(begin)) => self.begin(&begin, seen).await,
            Some(CoordinatorMessage::Piece(piece)) => self.pass_on(piece).await,
            Some(CoordinatorMessage::Watch(on)) => {
                self.is_watched = on;
                if self.is_measuring() {
                    self.clock.begin();
                }
                let reading = (self.machine)(self.clients_at);
                self.workers.values_mut().for_each(|worker| worker.measures(!on, reading.clone()));
            }
            Some(CoordinatorMessage::WantedPorts(wanted)) => {
                self.lanes.say(FromNode { message: Some(NodeMessage::FreePorts(ports::free(&wanted))) });
            }
            Some(CoordinatorMessage::End(run)) => self.end(run, seen).await,
            Some(CoordinatorMessage::Goodbye(why)) => return Some(why),
            Some(CoordinatorMessage::Welcome(_)) | None => {
                return Some("the coordinator sent an unexpected message".to_owned());
            }
        }
        self.heard = Instant::now();
        None
    }

    async fn begin(&mut self, begin: &Begin, seen: &mut dyn FnMut(&Happening)) {
        let failure = match self.start(begin, seen).await {
            Ok(()) => String::new(),
            Err(why) => why,
        };
        if failure.is_empty() && self.workers.len() == 1 {
            seen(&Happening::Began);
        }
        self.lanes.say(FromNode { message: Some(NodeMessage::Began(Began { number: begin.number, failure })) });
    }

    async fn start(&mut self, begin: &Begin, seen: &mut dyn FnMut(&Happening)) -> Result<(), String> {
        self.finish_burst(begin.number, seen).await?;
        self.clock.set(self.workers.values().map(|worker| worker.progress.as_ref()), !self.workers.is_empty());
        if !self.clock.is_set() {
            return Err("its clock could not be compared with the coordinator's".to_owned());
        }
        if self.workers.is_empty() {
            self.clock.begin();
        }
        let clock = &mut self.clock;
        let prepare = |progress: &pubmark_engine::progress::Progress| clock.set(std::iter::once(progress), true);
        let worker = Worker::start(begin, self.launch, &self.lanes, prepare).map_err(|error| error.to_string())?;
        if let Some(counts) = &mut self.counts {
            counts.begin(begin.number, Arc::clone(&worker.progress), self.workers.is_empty());
        }
        self.workers.insert(begin.number, worker);
        Ok(())
    }

    /// Completes the rest of a burst now: sends the requests and receives the responses. Input of other workers, and its end, may
    /// arrive among them: a `Begin` passes the pieces in the coordinator's queue.
    ///
    /// # Errors
    /// The session has ended, or the coordinator ends the worker `number`, which is to begin.
    async fn finish_burst(&mut self, number: u32, seen: &mut dyn FnMut(&Happening)) -> Result<(), String> {
        while self.burst > 0 {
            self.ask_when_due();
            let wait = self.until_next_question();
            if let Ok(heard) = timeout(wait, self.inbound.message()).await {
                match heard {
                    Ok(Some(ToNode { message: Some(CoordinatorMessage::Time(time)) })) => self.hear(&time),
                    Ok(Some(ToNode { message: Some(CoordinatorMessage::Watch(on)) })) => self.is_watched = on,
                    Ok(Some(ToNode { message: Some(CoordinatorMessage::Piece(piece)) })) => self.pass_on(piece).await,
                    Ok(Some(ToNode { message: Some(CoordinatorMessage::End(run)) })) if run.number == number => {
                        return Err("the coordinator ended it before it began".to_owned());
                    }
                    Ok(Some(ToNode { message: Some(CoordinatorMessage::End(run)) })) => self.end(run, seen).await,
                    Ok(_) => return Err("the coordinator said something else before the worker began".to_owned()),
                    Err(status) => return Err(words(&status)),
                }
            }
        }
        Ok(())
    }

    /// Passes a piece to its worker. If that takes long, heartbeats are still sent to the coordinator, and a worker
    /// that reads nothing because it is frozen is detected.
    async fn pass_on(&mut self, piece: Piece) {
        let Some(inbox) = self.workers.get(&piece.number).and_then(Worker::inbox) else { return };
        let handed_over = inbox.send(piece.bytes);
        tokio::pin!(handed_over);
        loop {
            tokio::select! {
                // The worker has ended, which its output channel reports.
                _ = &mut handed_over => return,
                () = sleep(LOOK) => {
                    self.ask_when_due();
                    self.workers.values_mut().for_each(Worker::look);
                }
            }
        }
    }

    fn send_rows(&self) {
        for (number, worker) in &self.workers {
            let rows = Rows { number: *number, counters: worker.rows() };
            self.lanes.say(FromNode { message: Some(NodeMessage::Rows(rows)) });
        }
    }

    /// Ends a worker, and starts the last readings of the clock for its judgement.
    async fn end(&mut self, run: Run, seen: &mut dyn FnMut(&Happening)) {
        let Some(mut worker) = self.workers.remove(&run.number) else { return };
        worker.end().await;
        // The worker has finished all its messages: these are its last counts.
        if let Some(counts) = &mut self.counts {
            seen(&Happening::Counts(Box::new(counts.now())));
        }
        if self.workers.is_empty() {
            seen(&Happening::Ended);
        }
        self.over.push(Report { number: run.number, ..worker.usage() });
        self.burst = limits::BURST;
    }

    fn report_what_is_over(&mut self) {
        for report in self.over.drain(..) {
            let report = Report { clock: self.clock.report(), ..report };
            self.lanes.say(FromNode { message: Some(NodeMessage::Report(report)) });
        }
    }
}
