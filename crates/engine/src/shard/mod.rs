//! A shard: one thread that owns its sessions, its part of the schedule and its part of the message accounting.
//!
//! This code reads no clock and never blocks: [`event_loop`] does both, and passes the time with each task, command and
//! event. Each part of a shard uses only the parts below it: a [`Timetable`] and the [`Totals`] at the bottom, the
//! [`Sessions`] on them, then [`Requests`], [`Publishing`] and [`Receiving`]. This file connects them: `tasks` maps
//! tasks to the parts that execute them, `events` maps the adapter's events to the parts that handle them.

mod arrived;
mod connecting;
mod dropped;
pub mod event_loop;
mod events;
pub mod figures;
mod following;
mod jobs;
mod leaving;
pub mod presence;
pub mod publisher;
mod publishing;
mod reacting;
pub mod reactions;
pub mod receiver;
mod receiving;
pub mod requester;
mod requesting;
mod requests;
pub mod responder;
mod responding;
mod sending;
mod session;
mod sessions;
mod settling;
pub mod setup;
pub mod slowing;
mod streams;
mod subscribing;
mod tasks;
mod timers;
mod timetable;
mod totals;
mod traffic;
mod wait;
pub mod window;
mod window_usage;
mod work;
mod working;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use pubmark_protocol::clients::{Clients, SessionConfig, ShardConfig};

use crate::command::Command;
use crate::progress::{Progress, ShardProgress};
use crate::shard_outcome::ShardOutcome;
use crate::usage::ThreadUsage;
use figures::Figures;
use publishing::Publishing;
use receiving::Receiving;
use requests::Requests;
use sessions::Sessions;
use setup::Setup;
use timers::Task;
use timetable::Timetable;
use totals::Totals;
use traffic::Tally;

/// The state that tasks, commands and an adapter's events change. Each of them comes with its time.
pub struct Shard {
    name: String,
    timetable: Timetable,
    totals: Totals,
    sessions: Sessions,
    requests: Requests,
    publishing: Publishing,
    receiving: Receiving,
    /// Commands received. The newest one counts as executed when none of its due tasks is left.
    commands: u64,
    progress: (Arc<Progress>, usize),
}

impl Shard {
    /// A shard, and the configuration for opening its adapter.
    fn new(setup: Setup) -> (Shard, ShardConfig, Vec<SessionConfig>) {
        let progress = setup.progress;
        let live = Some((Arc::clone(&progress), setup.index));
        let log = setup.log.map(Box::new);
        let figures = Figures {
            live,
            log,
            due_times: setup.due_times,
            ..Figures::new(setup.rules.len(), setup.series_start_ns, setup.duration_ns)
        };
        let tally = Tally::new(setup.sessions.iter().map(|session| session.connection_group).collect());
        let networks = setup.sessions.iter().map(|session| session.config.network);
        let receiving = Receiving::new(setup.receiver, setup.follows, networks);
        let timetable =
            Timetable::new(setup.workload, setup.rules, setup.warmup_ns, setup.duration_ns, Arc::clone(&progress));
        let (sessions, configs) =
            Sessions::new(setup.sessions, &timetable, setup.presence, setup.faults, setup.ramp_up, setup.backoff);
        let shard = Shard {
            name: setup.name,
            timetable,
            totals: Totals::new(figures, tally),
            sessions,
            requests: Requests::new(setup.requests, setup.seed, setup.run),
            publishing: Publishing::new(setup.publishers, setup.reactions, setup.announced, setup.series_start_ns),
            receiving,
            commands: 0,
            progress: (progress, setup.index),
        };
        (shard, setup.config, configs)
    }

    fn shown(&self) -> &ShardProgress {
        &self.progress.0.shards()[self.progress.1]
    }

    /// Stores the counters where other threads can read them.
    fn show(&mut self, now_ns: u64) {
        self.totals.stamp_events(now_ns);
        let (shown, sessions, publishing) = (self.shown(), &self.sessions, &self.publishing);
        shown.online.store(sessions.online, Relaxed);
        shown.subscribed.store(sessions.subscribed, Relaxed);
        shown.failing.store(sessions.failing, Relaxed);
        shown.not_resumed.store(sessions.not_resumed, Relaxed);
        shown.not_authorized.store(self.totals.figures.counters.auth_failed, Relaxed);
        shown.reached.store(self.receiving.receiver.reached(), Relaxed);
        shown.offered.store(publishing.offered, Relaxed);
        shown.sent.store(publishing.sent, Relaxed);
        shown.expected.store(publishing.expected, Relaxed);
        shown.delivered.store(self.receiving.delivered, Relaxed);
        // Each histogram has one sample per measured message, so nothing is counted twice.
        let times = &self.totals.figures.times;
        shown.measured_sent.store(times.backpressure.upper.count(), Relaxed);
        shown.measured_delivered.store(times.latency.upper.count(), Relaxed);
        let gaps = self.receiving.receiver.ledger.gaps();
        shown.gaps_opened.store(gaps.opened, Relaxed);
        shown.gaps_filled.store(gaps.filled, Relaxed);
        shown.excused.store(publishing.excused, Relaxed);
        shown.unexpected.store(publishing.unexpected, Relaxed);
        let thinking = publishing.reactions.thinking() as u64;
        shown.backlog.store(publishing.backlog + thinking, Relaxed);
        shown.in_flight.store(publishing.in_flight + self.requests.in_flight(), Relaxed);
        // A client that is thinking or working will cause further events, so the shard is not silent.
        let is_silent = thinking == 0 && sessions.at_work == 0;
        shown.last_event_ns.store(if is_silent { self.totals.last_event_ns } else { now_ns }, Relaxed);
        // Stored last, so that a thread that reads a command as executed also reads its effects.
        shown.executed.store(self.commands - u64::from(self.timetable.is_behind()), Release);
    }

    /// Smallest p50 of the warm-up that a shard of this machine measured, ns.
    fn typical_ns(&self) -> Option<u64> {
        self.progress.0.typical_ns()
    }

    /// When the loop must continue even if nothing arrives; a time in the past if there is work now.
    fn next_ns(&self) -> Option<u64> {
        let works = !self.sessions.writable.is_empty()
            || self.publishing.wants_to_flood(&self.sessions, &self.timetable)
            || self.totals.tally.is_reading();
        if works { Some(0) } else { self.timetable.timers.next_ns() }
    }

    fn execute(&mut self, command: Command, now_ns: u64) {
        let timetable = &mut self.timetable;
        match command {
            Command::Connect => {
                self.sessions.connect_all(&self.publishing.publishers, &mut timetable.timers, now_ns);
            }
            Command::Probe => timetable.timers.add(now_ns, Task::Probe),
            // From now on a delivery can be assigned to the warm-up or the window, before any device sends.
            Command::Prepare { start_ns } => {
                timetable.fix_window(start_ns);
                self.sessions.presence.begin();
                self.receiving.receiver.note_absent(&self.sessions.presence);
            }
            Command::Begin => {
                timetable.plan_window();
                self.sessions.plan_faults(timetable);
                self.publishing.begin(timetable);
            }
            Command::Close { at_ns } => {
                timetable.close(at_ns);
                self.totals.figures.series.close(timetable.window.length_ns());
                self.totals.tally.end();
            }
            Command::Finish => {}
        }
        self.commands += 1;
        self.show(now_ns);
    }

    /// Ends all sessions and settles all open messages. `usage` has the CPU time and wake-ups of the thread in the
    /// window.
    fn finish<C: Clients>(mut self, mut clients: C, usage: Option<ThreadUsage>, now_ns: u64) -> ShardOutcome {
        let (unsent_bytes, held_bytes) = (clients.unsent_bytes(), clients.held_bytes());
        self.totals.figures.counters.never_connected = self.sessions.never_connected();
        self.totals.figures.counters.not_resumed = self.sessions.not_resumed;
        self.totals.tally.finish(&clients);
        self.disconnect_all(&mut clients, now_ns);
        self.publishing.settle(&self.timetable, &mut self.totals, now_ns);
        self.publishing.settle_reactions(&self.timetable, &mut self.totals);
        self.requests.settle_requesters(&mut self.publishing.publishers);
        self.requests.settle_responders();
        self.show(now_ns);
        let Shard { totals, mut sessions, requests, publishing, mut receiving, .. } = self;
        let faults = sessions.take_fault_notes(&publishing.publishers, clients.silenced());
        let figures = totals.figures;
        ShardOutcome {
            name: self.name,
            streams: receiving.receiver.stream_rows(),
            publishers: publishing.publishers.into_iter().map(|publisher| publisher.book).collect(),
            followed: receiving.take_followed(),
            ledger: receiving.receiver.ledger,
            absences: sessions.presence.absences(),
            requests: requests.figures,
            times: figures.times,
            types: figures.types,
            counters: figures.counters,
            content: figures.content,
            transform: figures.transform,
            series: figures.series,
            from_nodes: figures.from_nodes,
            due_times: figures.due_times.into_claims(),
            traffic: totals.tally.into_groups(),
            unsent_bytes,
            held_bytes,
            usage,
            sessions: u64::from(sessions.count()),
            ramp: sessions.ramp,
            faults,
            logged: figures.log.map(|log| log.finish()),
        }
    }
}
