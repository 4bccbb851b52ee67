//! Handles the events that the adapter reports about sessions and messages: each event is passed to the part of the
//! shard that it concerns.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink, Token};
use pubmark_protocol::header::Header;
use pubmark_protocol::requests::{REPLY, ReplyTo};

use super::Shard;
use super::publishing::Publishing;
use super::requesting::Reply;
use super::settling::Written;
use crate::probes;

/// A shard that handles events at a time: the time of the call in which they are noticed, or the newest time that one
/// of them carried.
pub(super) struct EventsAt<'a> {
    shard: &'a mut Shard,
    now_ns: u64,
}

impl Sink for EventsAt<'_> {
    #[inline]
    fn event(&mut self, session: SessionId, event: Event<'_>) {
        let stamp_ns = match &event {
            Event::Delivered(delivery) | Event::Requested { delivery, .. } | Event::Replied { delivery, .. } => {
                delivery.at_ns
            }
            Event::Written { written_ns, .. } => *written_ns,
            Event::Secured(secured) => secured.done_ns,
            _ => 0,
        };
        self.now_ns = self.now_ns.max(stamp_ns);
        self.shard.event(self.now_ns, session, event);
    }

    #[inline]
    fn is_at_work(&self, session: SessionId) -> bool {
        self.shard.sessions.is_at_work(session)
    }
}

/// Is it a probe? Nothing is counted for probes.
fn is_probe(token: Token) -> bool {
    token.sequence == probes::SEQUENCE && token.publication != REPLY
}

impl Shard {
    /// Handles events at this time.
    pub(super) fn at(&mut self, now_ns: u64) -> EventsAt<'_> {
        EventsAt { shard: self, now_ns }
    }

    fn event(&mut self, now_ns: u64, session: SessionId, event: Event<'_>) {
        let Shard { sessions, publishing, requests, timetable, totals, .. } = self;
        match event {
            Event::Delivered(mut delivery) => {
                delivery.behind_ns = sessions[session].work.behind_ns(&delivery);
                self.delivered(session, &delivery);
            }
            Event::Written { token, write_start_ns, written_ns, own_ns } => {
                self.written(session, token, Written { start_ns: write_start_ns, end_ns: written_ns, own_ns });
            }
            Event::Acknowledged { token, outcome } => self.acknowledged(session, token, outcome),
            Event::Requested { reply_to, mut delivery } => {
                delivery.behind_ns = sessions[session].work.behind_ns(&delivery);
                self.requested(session, reply_to, &delivery);
            }
            Event::Replied { request, delivery } => {
                totals.note_event();
                let reply = Reply { session, request, delivery: &delivery };
                requests.record_reply(&reply, &mut publishing.publishers, sessions, &timetable.window, totals);
            }
            Event::Writable => sessions.unblock(session, &mut publishing.publishers),
            Event::Secured(secured) => sessions.secured(session, &secured, totals),
            Event::Connected(connected) => {
                sessions.connected(session, connected, &mut publishing.publishers, timetable, totals, now_ns);
                self.note_presence(session);
            }
            Event::Subscribed { index, granted } => self.subscribed(now_ns, session, index, granted),
            Event::WillLeft => sessions.will_left(session, totals),
            Event::Closed(cause) => self.closed(now_ns, session, &cause),
            Event::Withheld(token)
            | Event::Abandoned(token)
            | Event::Declined(token)
            | Event::Unacknowledged(token)
                if is_probe(token) => {}
            Event::Withheld(token) => Publishing::withheld(session, token, sessions, totals),
            Event::Abandoned(token) | Event::Declined(token) if token.publication == REPLY => {
                requests.reply_abandoned(token);
            }
            Event::Abandoned(token) => publishing.abandoned(session, token, sessions, requests),
            Event::Declined(token) => publishing.declined(session, token, sessions, requests, totals),
            // Whether a reply without acknowledgement arrived is known from the message accounting of its requester.
            Event::Unacknowledged(token) if token.publication == REPLY => {}
            Event::Unacknowledged(token) => publishing.unacknowledged(session, token, sessions),
            Event::NotPermitted(what) => totals.count_cause(format!("not permitted: {what}")),
            Event::Reauthenticated => totals.figures.counters.reauthenticated += 1,
            Event::Resent(_) => totals.figures.counters.resent += 1,
            Event::Discarded => totals.figures.counters.discarded += 1,
            Event::Missed(messages) => totals.figures.counters.missed += messages,
            Event::Overflowed(datagrams) => totals.figures.counters.overflowed += datagrams,
            Event::IdsReused(messages) => totals.figures.counters.ids_reused += messages,
            Event::Misreported(misreport) => *totals.figures.counters.misreports.entry(misreport).or_default() += 1,
            Event::ProgramEnded(how) => totals.figures.counters.program_ended = Some(how.to_owned()),
            Event::ProgramRoundTrip(took_ns) => totals.figures.times.program_round_trip.record(took_ns as i64),
        }
    }

    /// Processes a message that a session received, and reacts to it. Returns its header if it was a first copy.
    fn receive(&mut self, session: SessionId, delivery: &Delivery<'_>) -> Option<Header> {
        let (timetable, totals) = (&mut self.timetable, &mut self.totals);
        let header = self.receiving.enter(session, delivery, &mut self.sessions, timetable, totals)?;
        self.publishing.react_to(session, &header, delivery, timetable, totals);
        Some(header)
    }

    fn delivered(&mut self, session: SessionId, delivery: &Delivery<'_>) {
        let is_responder = self.sessions[session].responder.is_some();
        let Some(header) = self.receive(session, delivery).filter(|_| is_responder) else { return };
        // The message has no reply topic. If it is a request, the system lost the reply topic.
        let group = usize::from(self.receiving.receiver.group_of(header.publisher));
        let is_request = self.timetable.workload.devices[group].requests.is_some();
        if is_request && self.timetable.window.measures(header.due_ns) {
            self.requests.count_request_without_reply_topic();
        }
    }

    fn requested(&mut self, session: SessionId, reply_to: ReplyTo<'_>, delivery: &Delivery<'_>) {
        let Some(header) = self.receive(session, delivery) else { return };
        let request = (&header, self.timetable.window.measures(header.due_ns));
        let (sessions, timers) = (&mut self.sessions, &mut self.timetable.timers);
        let received = (delivery.at_ns, delivery.late_ns(header.earliest_write_start_ns()));
        self.requests.record_request(session, request, reply_to, received, sessions, timers);
    }

    fn written(&mut self, session: SessionId, token: Token, written: Written) {
        if is_probe(token) {
            return;
        }
        let Shard { sessions, publishing, requests, timetable, totals, .. } = self;
        if token.publication == REPLY {
            if let Some(responder) = &sessions[session].responder {
                totals.tally.sent(session, u64::from(responder.reply_bytes()));
            }
            totals.note_event();
            return requests.reply_written(token);
        }
        publishing.written(session, token, written, sessions, &timetable.window, totals);
    }

    fn acknowledged(&mut self, session: SessionId, token: Token, outcome: Result<(), Reason>) {
        if is_probe(token) {
            return;
        }
        let Shard { sessions, publishing, requests, totals, .. } = self;
        totals.note_event();
        if token.publication != REPLY {
            return publishing.acknowledged(session, token, outcome, sessions, requests, totals);
        }
        if let Err(reason) = outcome {
            requests.reply_refused(token);
            totals.count_cause(format!("reply refused: {reason}"));
        }
    }

    fn subscribed(&mut self, now_ns: u64, session: SessionId, index: usize, granted: Result<Qos, Reason>) {
        let (timetable, totals) = (&self.timetable, &mut self.totals);
        let are_granted = self.sessions.subscribed(session, index, granted, timetable, totals, now_ns);
        if let Some(are_granted) = are_granted {
            self.publishing.note_replies_granted(session, are_granted, &mut self.sessions);
        }
        self.note_presence(session);
    }

    fn closed(&mut self, now_ns: u64, session: SessionId, cause: &Cause) {
        self.publishing.orphan_requests(session, &self.sessions);
        let ended = self.sessions.closed(session, cause, &mut self.timetable, &mut self.totals, now_ns);
        if let Some(epoch) = ended {
            self.note_session_end(session, epoch);
        }
        self.note_presence(session);
    }

    /// Records which messages may be lost with a session that ended, in a run with faults. `epoch` is the first one after it.
    fn note_session_end(&mut self, session: SessionId, epoch: u32) {
        let Some(audience) = self.sessions[session].subscriber.filter(|_| self.timetable.window.is_set()) else {
            return;
        };
        let number = self.sessions.presence.number(audience);
        if let Some(log) = &mut self.sessions.faults {
            log.notes.session_ended(number, epoch, self.receiving.receiver.next_numbers(audience));
        }
    }

    /// Messages that are missing because of a subscriber's absence are not counted as lost during the run.
    fn note_presence(&mut self, session: SessionId) {
        let Some(audience) = self.sessions[session].subscriber.filter(|_| self.timetable.window.is_set()) else {
            return;
        };
        let is_present = self.sessions.presence.is_whole(audience);
        self.receiving.receiver.note_presence(audience, is_present);
    }
}
