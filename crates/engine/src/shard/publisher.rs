//! One publisher on its shard: where its schedule stands, what it has handed over, what became of it.

use std::collections::VecDeque;

use pubmark_model::fleet::Device;
use pubmark_model::payload::SizeDistribution;
use pubmark_model::schedule::{ChurnCursor, Cursor, Due, Rules};
use pubmark_model::template::BodyDraw;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::header;
use pubmark_protocol::timing::Timing;

use super::requester::Requester;
use super::timetable::Timetable;
use super::totals::Totals;
use super::wait::Wait;
use crate::content::matches::Matching;
use crate::message_log::row::RowKind;
use crate::probes;
use crate::shard_outcome::PublisherBook;
use crate::transform::PublisherSteps;

/// A message handed to the adapter and not yet written.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Index of the publisher on this shard.
    pub publisher: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Ready time, ns of `CLOCK_MONOTONIC`.
    pub ready_ns: u64,
    /// Due in the measured window.
    pub measured: bool,
    /// Whole payload.
    pub payload_bytes: u32,
    /// Of the subscriptions that it is for, those that the system's content filter keeps it from.
    pub kept_back: u32,
}

/// Where sending stands behind the schedule.
#[derive(Clone)]
pub struct Behind {
    /// The first message that waits.
    pub cursor: Cursor,
    /// How much of the wait of any of them is ours, at most, ns: the longest lag of one when it joined them, and what came after that.
    lag_ns: u64,
    wait: Wait,
}

impl Behind {
    /// A message waits from now on that was reached with this lag.
    pub fn new(cursor: Cursor, lag_ns: u64, now_ns: u64) -> Behind {
        Behind { cursor, lag_ns, wait: Wait::new(now_ns) }
    }

    /// A message joins those that wait.
    pub fn join(&mut self, lag_ns: u64) {
        self.lag_ns = self.lag_ns.max(lag_ns);
    }

    /// How much of the wait of any of them is the generator's by now, at most, ns: see [`Wait::ours_ns`].
    pub fn lag_ns(&mut self, free_since_ns: Option<u64>, now_ns: u64) -> u64 {
        self.lag_ns = self.lag_ns.saturating_add(self.wait.ours_ns(free_since_ns, now_ns));
        self.lag_ns
    }
}

/// Messages of one session in the order in which they were handed over.
pub type PendingQueue = VecDeque<Pending>;

/// A publisher.
pub struct Publisher {
    /// Session that carries it.
    pub session: u32,
    /// Index in that session's publications.
    pub publication: u16,
    /// Sends as fast as it can.
    pub flood: bool,
    /// A flooding publisher that waits for the adapter to say writable.
    pub blocked: bool,
    /// The schedule: every due time is met here, whatever the system does.
    pub schedule: Cursor,
    /// Where sending stands, if behind the schedule. The backlog is the way between the two, never a queue.
    pub behind: Option<Box<Behind>>,
    /// Messages between the two.
    pub backlog: u32,
    /// Planned leaving and returning.
    pub churn: Option<Box<ChurnCursor>>,
    /// Sequence number of the next message handed over.
    pub next_sequence: u32,
    /// Subscriptions that its messages are for.
    pub fan_out: u32,
    /// Acknowledgements still to come.
    pub unacknowledged: u32,
    /// Asks for acknowledgements.
    pub acknowledged: bool,
    /// Of a reaction: it publishes what follows from the warm-up.
    pub warm_up: bool,
    /// Its side of the books.
    pub book: PublisherBook,
    /// Entries that its epochs may have.
    pub epochs_limit: usize,
    /// Its messages are requests.
    pub requester: Option<Box<Requester>>,
    /// What subscribers with predicates ask of its messages.
    pub matching: Option<Box<Matching>>,
    /// What is done with its bodies.
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
            behind: None,
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
            matching: None,
            steps: None,
        }
    }

    /// A probe on its topic; none of one that sends none.
    pub fn probe(&self, timetable: &Timetable, now_ns: u64) -> Option<Outgoing> {
        let group = &timetable.workload.devices[usize::from(self.book.group)];
        // Small, but whatever a template draws has room.
        let bytes = match group.size {
            SizeDistribution::Rendered { .. } => group.size.upper_bound(),
            _ => group.size.lower_bound(),
        };
        probes::sends(group).then(|| Outgoing {
            publication: self.publication,
            sequence: probes::SEQUENCE,
            timing: Timing { due_ns: now_ns, handed_ns: now_ns, lag_ns: 0 },
            root: None,
            payload_bytes: bytes.max(header::COMPACT as u32),
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
        })
    }

    /// Does nothing but the system keep it from sending one more message?
    pub fn may_send(&self) -> bool {
        // Its last number is not used: the one behind it would be none.
        self.next_sequence < u32::MAX && self.requester.as_ref().is_none_or(|requester| requester.has_room())
    }

    /// Is it planned to be online when the schedule begins?
    pub fn online_at_start(&self) -> bool {
        self.churn.as_ref().is_none_or(|churn| churn.online_at_start())
    }

    /// Uses the next sequence number; notes the epoch, and the segment if there are any, in which it was handed over.
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

    /// Notes a measured message of it that was not handed over, in a run with a message log.
    pub fn note_unsent(&self, kind: RowKind, due: &Due, timetable: &Timetable, totals: &mut Totals) {
        let due_ns = timetable.window.absolute(due.due_ns);
        totals.figures.note_unsent(kind, self.book.publisher, due, due_ns);
    }

    /// Was this sequence number of a measured message?
    pub fn is_measured(&self, sequence: u32) -> bool {
        self.book.first_measured > 0 && sequence >= self.book.first_measured
    }
}
