//! The publishers of a shard and the state of their messages. `sending` handles a message from its due time until it is
//! passed to the adapter, `reacting` plans what received messages trigger, `settling` handles messages after that.

use std::sync::Arc;

use pubmark_model::schedule::Transition;
use pubmark_protocol::clients::SessionId;

use super::publisher::Publisher;
use super::reactions::Reactions;
use super::sessions::Sessions;
use super::timers::Task;
use super::timetable::Timetable;
use crate::announced::Announced;
use crate::content::matches::NoteBuffer;
use crate::epochs;

/// The publishers of a shard, by their index on it.
pub struct Publishing {
    /// The publishers.
    pub publishers: Vec<Publisher>,
    /// Reactions not yet passed to the adapter.
    pub reactions: Reactions,
    /// Publishers that send as fast as they can.
    pub(super) flooding: Vec<u32>,
    /// Start of the time series, ns relative to the start of the window.
    pub(super) series_start_ns: i64,
    /// Buffer for notes of which messages the predicates match.
    pub(super) note_room: NoteBuffer,
    /// How far the publishers have sent.
    pub(super) announced: Arc<Announced>,
    /// Measured messages that were due; messages written, and deliveries expected of them, warm-up included.
    pub(super) offered: u64,
    pub(super) sent: u64,
    pub(super) expected: u64,
    /// Deliveries that may be missing without a loss: it is not known yet whether their messages were sent, or the
    /// system refused them.
    pub(super) excused: u64,
    /// Deliveries that may arrive although they are not expected: their messages were refused, or not written completely.
    pub(super) unexpected: u64,
    /// Messages due and not passed to the adapter; messages passed to the adapter and not settled.
    pub(super) backlog: u64,
    pub(super) in_flight: u64,
}

impl Publishing {
    /// Publishers that have sent nothing.
    pub fn new(
        mut publishers: Vec<Publisher>,
        reactions: Reactions,
        announced: Arc<Announced>,
        series_start_ns: i64,
    ) -> Publishing {
        let epochs_limit = epochs::limit_for(publishers.len());
        for publisher in &mut publishers {
            publisher.epochs_limit = epochs_limit;
            announced.begin(publisher.book.publisher);
        }
        Publishing {
            publishers,
            reactions,
            flooding: Vec::new(),
            series_start_ns,
            note_room: NoteBuffer::default(),
            announced,
            offered: 0,
            sent: 0,
            expected: 0,
            excused: 0,
            unexpected: 0,
            backlog: 0,
            in_flight: 0,
        }
    }

    /// Begins the schedules in the agreed window.
    pub fn begin(&mut self, timetable: &mut Timetable) {
        for index in 0..self.publishers.len() as u32 {
            if self.publishers[index as usize].flood {
                self.flooding.push(index);
            } else {
                self.plan_send(index, timetable);
            }
            self.plan_churn(index, timetable);
        }
    }

    /// Schedules a publisher's next send.
    pub(super) fn plan_send(&self, index: u32, timetable: &mut Timetable) {
        if let Some(due_ns) = self.publishers[index as usize].schedule.peek_ns() {
            timetable.plan(due_ns, Task::Send(index));
        }
    }

    /// Schedules a publisher's next planned disconnect or reconnect.
    fn plan_churn(&self, index: u32, timetable: &mut Timetable) {
        if let Some(at_ns) = self.publishers[index as usize].churn.as_ref().and_then(|churn| churn.peek_ns()) {
            timetable.plan(at_ns, Task::Churn(index));
        }
    }

    /// Returns a publisher's planned disconnect or reconnect, which is due now, and schedules the next one.
    pub fn take_churn(&mut self, index: u32, timetable: &mut Timetable) -> Option<Transition> {
        let publisher = &mut self.publishers[index as usize];
        let change = publisher.churn.as_mut()?.take(timetable.rules(publisher.book.group))?;
        self.plan_churn(index, timetable);
        Some(change)
    }

    /// A session's subscription for replies was granted or not: its requesters may send requests only if it was
    /// granted.
    pub fn note_replies_granted(&mut self, session: SessionId, granted: bool, sessions: &mut Sessions) {
        for index in sessions[session].publishers.clone() {
            let publisher = &mut self.publishers[index as usize];
            if let Some(requester) = &mut publisher.requester {
                requester.note_granted(granted);
                publisher.blocked = false;
                sessions.writable.push(session.0);
            }
        }
    }

    /// A session's connection ended: its open requests become orphans.
    pub fn orphan_requests(&mut self, session: SessionId, sessions: &Sessions) {
        for publisher in sessions[session].own_mut(&mut self.publishers) {
            if let Some(requester) = &mut publisher.requester {
                requester.orphan();
            }
        }
    }
}
