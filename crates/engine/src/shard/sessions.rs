//! The sessions of a shard: which are connected, which should be, and which can continue to send.
//!
//! `connecting` handles connects and reconnects, `leaving` planned disconnects, `subscribing` what the system holds for
//! the sessions, `working` when their subscribers start on arrived messages.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use pubmark_model::random::Stream;
use pubmark_protocol::clients::{SessionConfig, SessionId};
use pubmark_protocol::events::Token;

use super::presence::Presence;
use super::publisher::{Pending, Publisher};
use super::session::Session;
use super::setup::SessionSetup;
use super::timers::Task;
use super::timetable::Timetable;
use super::work::Work;
use crate::faults::log::{FaultLog, FaultNotes, SessionChange};
use crate::ramp::Ramp;

/// The sessions of a shard, by their index on it.
pub struct Sessions {
    pub(super) all: Vec<Session>,
    /// Sessions that can accept messages again, or that connected while messages waited.
    pub writable: Vec<u32>,
    /// Sessions that are to connect when the adapter can.
    pub(super) to_connect: VecDeque<u32>,
    /// When the system held the filters of the shard's audiences.
    pub presence: Presence,
    /// Their ramp-up before the schedule began.
    pub ramp: Ramp,
    /// Log of faults, in a run with faults.
    pub faults: Option<Box<FaultLog>>,
    /// The shard is ending its sessions: a connection that ends now was not lost.
    pub finishing: bool,
    pub(super) ramp_up: Duration,
    pub(super) backoff: Stream,
    pub(super) backoffs_drawn: u64,
    /// Number of sessions that are connected, are subscribed, failed at their newest attempt, and have a subscriber at
    /// work on a message.
    pub(super) online: u64,
    pub(super) subscribed: u64,
    pub(super) failing: u64,
    pub(super) not_resumed: u64,
    pub(super) at_work: u64,
}

impl Sessions {
    /// Sessions that were never connected, and their configuration for the adapter.
    pub fn new(
        setups: Vec<SessionSetup>,
        timetable: &Timetable,
        presence: Presence,
        faults: Option<Box<FaultLog>>,
        ramp_up: Duration,
        backoff: Stream,
    ) -> (Sessions, Vec<SessionConfig>) {
        let mut configs = Vec::with_capacity(setups.len());
        let mut all = Vec::with_capacity(setups.len());
        for setup in setups {
            let session = Session::new(setup.publishers, setup.subscriber, &setup.config);
            let processing =
                setup.subscriber_group.map(|group| timetable.workload.subscribers[usize::from(group)].processing);
            let work = processing.map(Work::of).unwrap_or_default();
            all.push(Session { responder: setup.responder, work, ..session });
            configs.push(setup.config);
        }
        let sessions = Sessions {
            all,
            writable: Vec::new(),
            to_connect: VecDeque::new(),
            presence,
            ramp: Ramp::default(),
            faults,
            finishing: false,
            ramp_up,
            backoff,
            backoffs_drawn: 0,
            online: 0,
            subscribed: 0,
            failing: 0,
            not_resumed: 0,
            at_work: 0,
        };
        (sessions, configs)
    }

    /// All sessions.
    pub fn all(&self) -> &[Session] {
        &self.all
    }

    /// Number of sessions that should be or should have been connected, and never were.
    pub fn never_connected(&self) -> u64 {
        let is_missing = |session: &&Session| !session.was_up && (session.wanted || session.failures > 0);
        self.all.iter().filter(is_missing).count() as u64
    }

    /// Number of sessions.
    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Index on the shard of the publisher that a token of a session names, if it belongs to the shard.
    pub fn publisher_of(&self, session: SessionId, token: Token) -> u32 {
        self[session].publishers.start + u32::from(token.publication)
    }

    /// The place of the message that a token names among those of its session that were passed to the adapter and not
    /// written.
    #[inline]
    fn find_pending(&self, session: SessionId, token: Token) -> Option<usize> {
        let publisher = self.publisher_of(session, token);
        let is_it = |pending: &Pending| (pending.publisher, pending.sequence) == (publisher, token.sequence);
        // It is the first one, unless a client program reports writes in another order.
        self[session].pending.iter().position(is_it)
    }

    /// The message that a token names, if it was passed to the adapter and not written.
    pub fn pending_mut(&mut self, session: SessionId, token: Token) -> Option<&mut Pending> {
        let place = self.find_pending(session, token)?;
        self[session].pending.get_mut(place)
    }

    /// Removes and returns the message that a token names, if it was passed to the adapter and not written.
    #[inline]
    pub fn take_pending(&mut self, session: SessionId, token: Token) -> Option<Pending> {
        let place = self.find_pending(session, token)?;
        self[session].pending.remove(place)
    }

    /// Does the session have messages that wait, are not written, or are not acknowledged?
    pub fn is_busy(&self, index: u32, publishers: &[Publisher]) -> bool {
        let session = &self[index];
        let is_open = |publisher: &Publisher| publisher.backlog > 0 || publisher.unacknowledged > 0;
        !session.pending.is_empty() || session.own(publishers).iter().any(is_open)
    }

    /// A message is settled: a session that waited for it can disconnect.
    pub fn note_settled(&mut self, session: SessionId, publishers: &[Publisher]) {
        if self[session].leaving.is_some() && !self.is_busy(session.0, publishers) {
            self.writable.push(session.0);
        }
    }

    /// A session can accept messages again.
    pub fn unblock(&mut self, session: SessionId, publishers: &mut [Publisher]) {
        for publisher in self[session].own_mut(publishers) {
            publisher.blocked = false;
        }
        self.writable.push(session.0);
    }

    /// Records an event of a session, in a run with faults.
    pub fn note_fault(&mut self, now_ns: u64, session: u32, change: SessionChange) {
        if let Some(log) = self.faults.as_mut().filter(|_| !self.finishing) {
            if matches!(change, SessionChange::Lost | SessionChange::Left) && !self.all[session as usize].persistent {
                log.ended.insert(session);
            }
            log.note(session, change, now_ns);
        }
    }

    /// The records of the faults, which silenced connections of these addresses; at the end of a run with faults.
    pub fn take_fault_notes(&mut self, publishers: &[Publisher], silenced: Vec<SocketAddr>) -> Option<FaultNotes> {
        let FaultLog { mut notes, ended, .. } = *self.faults.take()?;
        notes.silenced = silenced;
        for session in ended {
            let session = &self.all[session as usize];
            notes.ended.publishers.extend(session.own(publishers).iter().map(|publisher| publisher.book.publisher));
        }
        Some(notes)
    }

    /// Schedules the faults of the run. Each fault begins on every shard, whichever process injects it.
    pub fn plan_faults(&self, timetable: &mut Timetable) {
        let Some(log) = &self.faults else { return };
        let relative = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        for (number, fault) in (0u16..).zip(log.planned.iter()) {
            timetable.plan(relative(fault.at_ns), Task::Fault(number));
            if let (Some(length_ns), Some(_)) = (fault.length_ns, &fault.connections) {
                timetable.plan(relative(fault.at_ns.saturating_add(length_ns)), Task::FaultEnd(number));
            }
        }
    }

    /// All connections that a fault breaks were broken by this time.
    pub fn note_broken_until(&mut self, fault: u16, until_ns: u64) {
        let Some(log) = &mut self.faults else { return };
        if let Some((_, last_ns)) = &mut log.notes.broken_at_ns[usize::from(fault)] {
            *last_ns = until_ns;
        }
    }

    /// The present segment between faults, in a run with faults.
    #[inline]
    pub fn segment(&self) -> Option<u16> {
        self.faults.as_ref().map(|log| log.segment())
    }

    /// Counts a message that its device could not send, at its QoS level, in a run with faults.
    pub fn note_skipped(&mut self, level: usize) {
        if let Some(log) = &mut self.faults {
            log.tally(level).skipped_disconnected += 1;
        }
    }

    /// Draws a number in [0, 1) for the next pause before a reconnect.
    pub(super) fn draw_backoff(&mut self) -> f64 {
        self.backoffs_drawn += 1;
        self.backoff.unit(self.backoffs_drawn)
    }
}

impl Index<u32> for Sessions {
    type Output = Session;

    #[inline]
    fn index(&self, index: u32) -> &Session {
        &self.all[index as usize]
    }
}

impl IndexMut<u32> for Sessions {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Session {
        &mut self.all[index as usize]
    }
}

impl Index<SessionId> for Sessions {
    type Output = Session;

    #[inline]
    fn index(&self, session: SessionId) -> &Session {
        &self[session.0]
    }
}

impl IndexMut<SessionId> for Sessions {
    #[inline]
    fn index_mut(&mut self, session: SessionId) -> &mut Session {
        &mut self[session.0]
    }
}
