//! One publisher on its shard: the state of its schedule and of its messages.

use std::collections::VecDeque;

use pubmark_model::fleet::Device;
use pubmark_model::payload::SizeDistribution;
use pubmark_model::schedule::{ChurnCursor, Cursor, Due, Rules};
use pubmark_model::template::BodyDraw;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::header;
use pubmark_protocol::timing::Timing;

use super::requester::Requester;
use super::slowing::Slowing;
use super::timetable::Timetable;
use super::totals::Totals;
use super::wait::Wait;
use crate::content::matches::Matching;
use crate::message_log::row::RowKind;
use crate::probes;
use crate::shard_outcome::PublisherBook;
use crate::transform::PublisherSteps;

/// A message passed to the adapter and not yet written.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Index of the publisher on this shard.
    pub publisher: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Ready time, ns of `CLOCK_MONOTONIC`.
    pub ready_ns: u64,
    /// Upper bound of the generator's part in the time from then until it was passed to the adapter, ns.
    pub own_ns: u64,
    /// It was due in the measured window.
    pub measured: bool,
    /// Size of the whole payload, bytes.
    pub payload_bytes: u32,
    /// Number of subscriptions in its fan-out that the system's content filter excludes.
    pub excluded: u32,
    /// The adapter does not send it, because nobody has subscribed to it.
    pub withheld: bool,
}

/// How far sending is behind the schedule.
#[derive(Clone)]
pub struct WaitingMessages {
    /// The first waiting message.
    pub cursor: Cursor,
    /// Upper bound of the generator's part in the wait of any of these messages, ns: the longest lag of a message when
    /// it joined them, and the generator's part after that.
    lag_ns: u64,
    wait: Wait,
}

impl WaitingMessages {
    /// A message that was reached with this lag waits from now on.
    pub fn new(cursor: Cursor, lag_ns: u64, now_ns: u64) -> WaitingMessages {
        WaitingMessages { cursor, lag_ns, wait: Wait::new(now_ns) }
    }

    /// Adds a message to the waiting ones.
    pub fn join(&mut self, lag_ns: u64) {
        self.lag_ns = self.lag_ns.max(lag_ns);
    }

    /// Upper bound of the generator's part in the wait of any of these messages so far, ns: see [`Wait::generator_ns`].
    pub fn lag_ns(&mut self, free_since_ns: Option<u64>, now_ns: u64) -> u64 {
        self.lag_ns = self.lag_ns.saturating_add(self.wait.generator_ns(free_since_ns, now_ns));
        self.lag_ns
    }
}

/// Messages of one session in the order in which they were passed to the adapter.
pub type PendingQueue = VecDeque<Pending>;

/// A publisher.
pub struct Publisher {
    /// Session that carries its messages.
    pub session: u32,
    /// Index in that session's publications.
    pub publication: u16,
    /// It sends as fast as it can.
    pub flood: bool,
    /// It floods and waits until the adapter reports that the session is writable.
    pub blocked: bool,
    /// The schedule. Every due time is processed here, whatever the system does.
    pub schedule: Cursor,
    /// The position of sending, if it is behind the schedule. The backlog is the distance between the two cursors,
    /// never a queue.
    pub waiting: Option<Box<WaitingMessages>>,
    /// Number of messages between the two cursors.
    pub backlog: u32,
    /// Planned disconnects and reconnects.
    pub churn: Option<Box<ChurnCursor>>,
    /// Sequence number of the next message passed to the adapter.
    pub next_sequence: u32,
    /// Number of subscriptions that its messages match.
    pub fan_out: u32,
    /// Number of acknowledgements still expected.
    pub unacknowledged: u32,
    /// It requests acknowledgements.
    pub acknowledged: bool,
    /// For a reaction: this publisher sends the reactions to messages of the warm-up.
    pub warm_up: bool,
    /// Its side of the message accounting.
    pub book: PublisherBook,
    /// Largest number of entries in its epochs.
    pub epochs_limit: usize,
    /// Its state as a requester, if its messages are requests.
    pub requester: Option<Box<Requester>>,
    /// When it sends less, if received messages make it do so.
    pub slowing: Option<Box<Slowing>>,
    /// The predicates of subscribers that receive its messages.
    pub matching: Option<Box<Matching>>,
    /// The steps of `transform` that are applied to its payloads.
    pub steps: Option<Box<PublisherSteps>>,
}

impl Publisher {
    /// A publisher that has sent nothing.
    pub fn new(
        device: &Device,
        rules: &Rules,
        session: u32,
        acknowledged: bool,
        fan_out: u32,
        churns: bool,
    ) -> Publisher {
        Publisher {
            session,
            publication: 0,
            flood: rules.is_flood(),
            blocked: false,
            schedule: Cursor::new(rules, device),
            waiting: None,
            backlog: 0,
            churn: churns.then(|| Box::new(ChurnCursor::new(rules, device))),
            next_sequence: 1,
            fan_out,
            unacknowledged: 0,
            acknowledged,
            warm_up: device.warm_up,
            book: PublisherBook { publisher: device.publisher, group: device.group, ..PublisherBook::default() },
            epochs_limit: usize::MAX,
            requester: None,
            slowing: None,
            matching: None,
            steps: None,
        }
    }

    /// A probe on its topic; `None` if the publisher sends no probes.
    pub fn probe(&self, timetable: &Timetable, now_ns: u64) -> Option<Outgoing> {
        let group = &timetable.workload.devices[usize::from(self.book.group)];
        // Small, but large enough for whatever a template renders.
        let bytes = match group.size {
            SizeDistribution::Rendered { .. } => group.size.upper_bound(),
            _ => group.size.lower_bound(),
        };
        probes::sends(group).then(|| Outgoing {
            publication: self.publication,
            sequence: probes::SEQUENCE,
            timing: Timing { due_ns: now_ns, submitted_ns: now_ns, lag_ns: 0 },
            root: None,
            payload_bytes: bytes.max(header::COMPACT as u32),
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
        })
    }

    /// May it send one more message, unless the system prevents it?
    pub fn may_send(&self) -> bool {
        // The largest sequence number is never used, because it has no successor.
        self.next_sequence < u32::MAX && self.requester.as_ref().is_none_or(|requester| requester.has_room())
    }

    /// Does it wait until it can send?
    pub fn is_waiting(&self) -> bool {
        self.backlog > 0 || self.blocked
    }

    /// Its client received a message that makes it send less.
    pub fn slow_down(&mut self, at_ns: i64) {
        let waiting_ns = self.waiting.as_ref().map(|waiting| waiting.cursor.peek_ns());
        let next_due_ns = waiting_ns.unwrap_or_else(|| self.schedule.peek_ns());
        if let Some(slowing) = &mut self.slowing {
            slowing.begin(at_ns, next_due_ns);
        }
    }

    /// Does it leave out a message because it sends less at that time?
    pub fn leaves_out(&self, due: &Due) -> bool {
        due.planned_online && self.slowing.as_ref().is_some_and(|slowing| slowing.leaves_out(due.due_ns))
    }

    /// A message was sent, or failed: in a slow period, the next one is due later.
    pub fn note_turn(&mut self, due: &Due) {
        if let Some(slowing) = &mut self.slowing {
            slowing.note(due.due_ns);
        }
    }

    /// Is it planned to be online when the schedule begins?
    pub fn online_at_start(&self) -> bool {
        self.churn.as_ref().is_none_or(|churn| churn.online_at_start())
    }

    /// Uses the next sequence number. Records the epoch in which it was passed to the adapter, and the segment if there
    /// are segments.
    pub fn use_sequence(&mut self, measured: bool, epoch: u32, segment: Option<u16>) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.book.last = sequence;
        if measured && self.book.first_measured == 0 {
            self.book.first_measured = sequence;
        }
        self.book.epochs.note(epoch, sequence, self.epochs_limit);
        if let Some(segment) = segment
            && self.book.segments.last().is_none_or(|(last, _)| *last != segment)
        {
            self.book.segments.push((segment, sequence));
        }
        sequence
    }

    /// Logs a measured message that was not passed to the adapter, in a run with a message log.
    pub fn note_unsent(&self, kind: RowKind, due: &Due, timetable: &Timetable, totals: &mut Totals) {
        let due_ns = timetable.window.absolute(due.due_ns);
        totals.figures.note_unsent(kind, self.book.publisher, due, due_ns);
    }

    /// Does this sequence number belong to a measured message?
    pub fn is_measured(&self, sequence: u32) -> bool {
        self.book.first_measured > 0 && sequence >= self.book.first_measured
    }
}
