//! A shard: one thread that owns its sessions, its part of the schedule and its part of the books.
//!
//! It reads no clock and waits for nothing: [`event_loop`] does both, and gives it the time with each task, command and event.
//! [`sending`] is the way from due to written, [`sink`] what becomes of it, [`receiver`] the other side.

mod breaking;
pub mod connecting;
pub mod event_loop;
pub mod following;
pub mod presence;
pub mod publisher;
pub mod reacting;
pub mod receiver;
pub mod requesting;
pub mod responding;
pub mod sending;
pub mod session;
pub mod sink;
pub mod spending;
pub mod timers;
pub mod traffic;
pub mod window;
pub mod working;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use pubmark_metrics::distribution::Distribution;
use pubmark_metrics::series::Series;
use pubmark_model::random::Stream;
use pubmark_model::schedule::Rules;
use pubmark_model::workload::Workload;
use pubmark_protocol::clients::{Clients, Goodbye, SessionConfig, SessionId, ShardConfig};
use pubmark_protocol::sampling::Sampling;

use crate::announced::Announced;
use crate::epochs;
use crate::faults::FaultLog;
use crate::outcome::{Counters, ShardOutcome, TYPE_LIMIT, Times, TypeTimes};
use crate::progress::{Progress, ShardProgress};
use crate::requests::ShardRequests;
use crate::worker::Command;
use connecting::Ramp;
use following::Following;
use publisher::Publisher;
use reacting::Reacting;
use receiver::Receiver;
use responding::{Jobs, Responder};
use session::{Session, State};
use sink::EventsAt;
use spending::Spent;
use timers::{Task, Timers};
use traffic::Tally;
use window::Window;
use working::Work;

/// A session with what it carries, to be made by a shard.
pub struct SessionSetup {
    /// For the adapter.
    pub config: SessionConfig,
    /// Its publishers, by index on the shard.
    pub publishers: std::ops::Range<u32>,
    /// Its subscriber, by index on the shard.
    pub subscriber: Option<u32>,
    /// The group of that subscriber.
    pub listens: Option<u16>,
    /// What tells its client from all others, the same in every run.
    pub identity: u64,
    /// What makes it answer requests.
    pub responder: Option<Box<Responder>>,
    /// Among the groups whose traffic is told together: [`pubmark_model::connection_groups`].
    pub connection_group: u16,
}

/// All that a shard needs to know.
pub struct Setup {
    /// Its name: `publisher 0`, …
    pub name: String,
    /// Its index in [`Progress::shards`].
    pub index: usize,
    /// For the adapter.
    pub config: ShardConfig,
    /// Who sends and listens.
    pub workload: Arc<Workload>,
    /// Rules of every group.
    pub rules: Arc<[Rules]>,
    /// Its sessions.
    pub sessions: Vec<SessionSetup>,
    /// Its publishers.
    pub publishers: Vec<Publisher>,
    /// Its subscribers.
    pub receiver: Receiver,
    /// Messages whose deliveries it notes.
    pub follows: Option<Sampling>,
    /// What its clients react to.
    pub reacting: Reacting,
    /// Its requesters' books.
    pub requests: ShardRequests,
    /// Seed of draws of processing times.
    pub seed: u64,
    /// Number of this run.
    pub run: u32,
    /// Start of series: −warm-up, ns.
    pub series_start_ns: i64,
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Length of the measured window, ns.
    pub duration_ns: u64,
    /// Connects started per second at most.
    pub connects_per_s: f64,
    /// Ask for SCHED_FIFO.
    pub realtime: bool,
    /// Least time of a send.
    pub handicap: Option<Duration>,
    /// Pause between two turns, in a flood.
    pub pause: Option<Duration>,
    /// Draws of pauses before reconnects.
    pub backoff: Stream,
    /// Faults, in a run that has some.
    pub faults: Option<Box<FaultLog>>,
    /// How far publishers of this process have come.
    pub announced: Arc<Announced>,
    /// Shared with the other shards.
    pub progress: Arc<Progress>,
}

/// The state that tasks, commands and an adapter's events change, each at a time that comes with it.
pub struct Shard {
    name: String,
    index: usize,
    workload: Arc<Workload>,
    rules: Arc<[Rules]>,
    timers: Timers,
    window: Window,
    warmup_ns: u64,
    duration_ns: u64,
    sessions: Vec<Session>,
    publishers: Vec<Publisher>,
    flooding: Vec<u32>,
    receiver: Receiver,
    reacting: Reacting,
    requests: ShardRequests,
    jobs: Jobs,
    seed: u64,
    run: u32,
    /// Requests that wait for their answers, and answers handed over and not written.
    open_requests: u64,
    answers_handed: u64,
    /// Sessions whose subscribers are at work on a message.
    at_work: u64,
    times: Times,
    types: Vec<Option<Box<TypeTimes>>>,
    counters: Counters,
    series: Series,
    from_nodes: Vec<Option<Box<Distribution>>>,
    tally: Tally,
    following: Option<Box<Following>>,
    /// Sessions that can take messages again, or came up with messages waiting.
    writable: Vec<u32>,
    /// Publishing is over: only what was due before is still sent.
    closed: bool,
    /// Commands taken; the newest counts as carried out when nothing due is left of it.
    commands: u64,
    /// The shard is ending its sessions: what ends now was not lost.
    finishing: bool,
    connects_per_s: f64,
    ramp: Ramp,
    backoff: Stream,
    backoffs_drawn: u64,
    faults: Option<Box<FaultLog>>,
    announced: Arc<Announced>,
    progress: Arc<Progress>,
    online: u64,
    subscribed: u64,
    failing: u64,
    /// Counters that the progress shows, kept here and stored once a turn.
    sent_ever: u64,
    expected_ever: u64,
    delivered_ever: u64,
    offered: u64,
    backlog: u64,
    in_flight: u64,
    last_event_ns: u64,
}

impl Shard {
    /// A shard, and what its adapter is opened with.
    fn new(mut setup: Setup) -> (Shard, ShardConfig, Vec<SessionConfig>) {
        let epochs_limit = epochs::limit_for(setup.publishers.len());
        let mut configs = Vec::with_capacity(setup.sessions.len());
        let mut sessions = Vec::with_capacity(setup.sessions.len());
        let networks = || setup.sessions.iter().map(|entry| entry.config.network).collect();
        let following = setup.follows.map(|sampling| Box::new(Following::new(sampling, networks())));
        let tally = Tally::new(setup.sessions.iter().map(|entry| entry.connection_group).collect());
        for entry in setup.sessions {
            let session = Session::new(entry.publishers, entry.subscriber, &entry.config);
            let listens = entry.listens.map(|group| setup.workload.subscribers[usize::from(group)].processing);
            let work = listens.map(Work::of).unwrap_or_default();
            sessions.push(Session { responder: entry.responder, work, ..session });
            configs.push(entry.config);
        }
        for publisher in &mut setup.publishers {
            publisher.epochs_limit = epochs_limit;
            setup.announced.begin(publisher.book.publisher);
        }
        let types = setup.rules.len().min(TYPE_LIMIT) + usize::from(setup.rules.len() > TYPE_LIMIT);
        let shard = Shard {
            name: setup.name,
            index: setup.index,
            workload: setup.workload,
            rules: setup.rules,
            timers: Timers::default(),
            window: Window::NONE,
            warmup_ns: setup.warmup_ns,
            duration_ns: setup.duration_ns,
            sessions,
            publishers: setup.publishers,
            flooding: Vec::new(),
            receiver: setup.receiver,
            reacting: setup.reacting,
            requests: setup.requests,
            jobs: Jobs::default(),
            seed: setup.seed,
            run: setup.run,
            open_requests: 0,
            answers_handed: 0,
            at_work: 0,
            times: Times::new(),
            types: vec![None; types.max(1)],
            counters: Counters::default(),
            series: Series::new(setup.series_start_ns),
            from_nodes: vec![],
            tally,
            following,
            writable: Vec::new(),
            closed: false,
            commands: 0,
            finishing: false,
            connects_per_s: setup.connects_per_s,
            ramp: Ramp::default(),
            backoff: setup.backoff,
            backoffs_drawn: 0,
            faults: setup.faults,
            announced: setup.announced,
            progress: setup.progress,
            online: 0,
            subscribed: 0,
            failing: 0,
            sent_ever: 0,
            expected_ever: 0,
            delivered_ever: 0,
            offered: 0,
            backlog: 0,
            in_flight: 0,
            last_event_ns: 0,
        };
        (shard, setup.config, configs)
    }

    fn shown(&self) -> &ShardProgress {
        &self.progress.shards()[self.index]
    }

    /// Stores the counters where other threads can read them.
    fn show(&self, now_ns: u64) {
        let shown = self.shown();
        shown.online.store(self.online, Relaxed);
        shown.subscribed.store(self.subscribed, Relaxed);
        shown.failing.store(self.failing, Relaxed);
        shown.not_authorized.store(self.counters.auth_failed, Relaxed);
        shown.offered.store(self.offered, Relaxed);
        shown.sent.store(self.sent_ever, Relaxed);
        shown.expected.store(self.expected_ever, Relaxed);
        shown.delivered.store(self.delivered_ever, Relaxed);
        let requests = self.open_requests + self.answers_handed + self.jobs.count();
        shown.backlog.store(self.backlog + self.reacting.thinking() as u64, Relaxed);
        shown.in_flight.store(self.in_flight + requests, Relaxed);
        // Who thinks or works is not silent: something is still to come.
        let thinks = self.reacting.thinking() > 0 || self.at_work > 0;
        shown.last_event_ns.store(if thinks { now_ns } else { self.last_event_ns }, Relaxed);
        // Last, so that whoever sees a command carried out sees what it led to.
        shown.carried_out.store(self.commands - u64::from(self.is_behind()), Release);
    }

    /// Publishing is over, and something that was due before has not been done yet.
    fn is_behind(&self) -> bool {
        self.closed && self.timers.next_ns().is_some_and(|at_ns| at_ns < self.window.closed_ns())
    }

    /// Takes events at this time.
    fn at(&mut self, now_ns: u64) -> EventsAt<'_> {
        EventsAt { shard: self, now_ns }
    }

    /// Does the next task that is due by now; which it was.
    fn next_task<C: Clients>(&mut self, clients: &mut C, now_ns: u64) -> Option<Task> {
        let (at_ns, task) = self.timers.take(now_ns)?;
        match task {
            Task::Send(publisher) => self.send_due(clients, publisher, now_ns),
            Task::React(number) => self.react(clients, number, now_ns),
            Task::Answer(job) => self.answer_due(clients, job, now_ns),
            Task::Resume(session) => self.resume(clients, session, at_ns, now_ns),
            Task::RequestLimit(publisher) => self.expire_requests(publisher, now_ns),
            Task::Churn(publisher) => self.change_connectivity(clients, publisher, now_ns),
            Task::Connect(session) => self.connect(clients, session, now_ns),
            Task::AttemptLimit(session) => self.end_attempt(clients, session, at_ns, now_ns),
            Task::Leave(session) => self.end_leave(clients, session, at_ns, now_ns),
            Task::WindowStart => self.tally.begin(),
            Task::WindowEnd => self.tally.end(),
            Task::Fault(fault) => self.begin_fault(clients, fault, now_ns),
            Task::FaultEnd(fault) => self.end_fault(clients, fault, now_ns),
        }
        Some(task)
    }

    /// When the loop must go on even if nothing arrives; a time in the past if there is work now.
    fn next_ns(&self) -> Option<u64> {
        let works = !self.writable.is_empty() || self.wants_to_flood() || self.tally.is_looking();
        if works { Some(0) } else { self.timers.next_ns() }
    }

    /// Fixes the measured window. Deliveries can be placed from now on, before any device sends.
    fn prepare(&mut self, start_ns: u64) {
        self.window = Window::new(start_ns, self.warmup_ns, self.duration_ns);
        self.receiver.presence.begin();
    }

    /// Begins the schedule in the window that was fixed.
    fn begin(&mut self) {
        self.timers.add(self.window.absolute(0), Task::WindowStart);
        self.timers.add(self.window.closed_ns(), Task::WindowEnd);
        self.plan_faults();
        for index in 0..self.publishers.len() as u32 {
            if self.publishers[index as usize].flood {
                self.flooding.push(index);
            } else {
                self.plan_send(index);
            }
            self.plan_churn(index);
        }
    }

    fn carry_out(&mut self, command: Command, now_ns: u64) {
        match command {
            Command::Connect => self.connect_all(now_ns),
            Command::Prepare { start_ns } => self.prepare(start_ns),
            Command::Begin => self.begin(),
            Command::Close { at_ns } => self.close(at_ns),
            Command::Finish => {}
        }
        self.commands += 1;
        self.show(now_ns);
    }

    /// Ends the schedules at an instant; what was due before it is still sent.
    fn close(&mut self, at_ns: u64) {
        self.closed = true;
        self.window.close(at_ns);
        self.tally.end();
    }

    /// Ends all sessions and settles what is still open; `spent` is what its thread spent in the window.
    fn finish<C: Clients>(mut self, mut clients: C, spent: Option<Spent>, now_ns: u64) -> ShardOutcome {
        let (unsent_bytes, held_bytes) = (clients.unsent_bytes(), clients.held_bytes());
        self.tally.finish(&clients);
        self.finishing = true;
        for index in 0..self.sessions.len() as u32 {
            if self.sessions[index as usize].state != State::Offline {
                clients.disconnect(SessionId(index), Goodbye::Final, &mut self.at(now_ns));
            }
        }
        clients.finish(&mut self.at(now_ns));
        self.settle(now_ns);
        self.settle_reactions();
        self.settle_requests();
        self.settle_answers();
        self.show(now_ns);
        let absences = self.receiver.presence.absences();
        ShardOutcome {
            name: self.name,
            streams: self.receiver.stream_rows(),
            publishers: self.publishers.into_iter().map(|publisher| publisher.book).collect(),
            ledger: self.receiver.ledger,
            absences,
            requests: self.requests,
            times: self.times,
            types: self.types,
            counters: self.counters,
            series: self.series,
            from_nodes: self.from_nodes,
            traffic: self.tally.into_groups(),
            followed: self.following.map(|following| following.into_followed()).unwrap_or_default(),
            unsent_bytes,
            held_bytes,
            spent,
            sessions: self.sessions.len() as u64,
            ramp: self.ramp,
            faults: self.faults.map(|log| log.notes),
        }
    }
}
