//! The publishers of a shard and where their messages stand: `sending` is the way from due to handed over, `reacting` what received
//! messages trigger, `settling` what becomes of messages that were handed over.

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
    /// Reactions that are not handed over.
    pub reactions: Reactions,
    /// Those that send as fast as they can.
    pub(super) flooding: Vec<u32>,
    /// When series begin, ns since the start of the window.
    pub(super) series_start_ns: i64,
    /// For notes of what predicates choose.
    pub(super) note_room: NoteBuffer,
    /// How far they have come.
    pub(super) announced: Arc<Announced>,
    /// Measured messages that were due; messages written, and deliveries that they should bring, warm-up included.
    pub(super) offered: u64,
    pub(super) sent: u64,
    pub(super) expected: u64,
    /// Deliveries whose absence may be no loss: nobody knows yet whether their messages were sent, or the system refused them.
    pub(super) excused: u64,
    /// Messages due and not handed over; handed over and not settled.
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
            backlog: 0,
            in_flight: 0,
        }
    }

    /// Begins the schedules in the window that was fixed.
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

    /// Plans a publisher's next send.
    pub(super) fn plan_send(&self, index: u32, timetable: &mut Timetable) {
        if let Some(due_ns) = self.publishers[index as usize].schedule.peek_ns() {
            timetable.plan(due_ns, Task::Send(index));
        }
    }

    /// Plans a publisher's next leave or return.
    fn plan_churn(&self, index: u32, timetable: &mut Timetable) {
        if let Some(at_ns) = self.publishers[index as usize].churn.as_ref().and_then(|churn| churn.peek_ns()) {
            timetable.plan(at_ns, Task::Churn(index));
        }
    }

    /// A publisher's planned leave or return, which is due now; the next one is planned.
    pub fn take_churn(&mut self, index: u32, timetable: &mut Timetable) -> Option<Transition> {
        let publisher = &mut self.publishers[index as usize];
        let change = publisher.churn.as_mut()?.take(timetable.rules(publisher.book.group))?;
        self.plan_churn(index, timetable);
        Some(change)
    }

    /// A session's subscription for replies was granted or not: its requesters may go on, or not.
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

    /// A session's connection ended: its open requests are orphans.
    pub fn orphan_requests(&mut self, session: SessionId, sessions: &Sessions) {
        for publisher in sessions[session].own_mut(&mut self.publishers) {
            if let Some(requester) = &mut publisher.requester {
                requester.orphan();
            }
        }
    }
}
