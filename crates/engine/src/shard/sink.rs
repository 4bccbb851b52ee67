//! What becomes of sessions and messages, as the adapter tells it.

use std::sync::atomic::Ordering::Relaxed;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Connected, Delivery, Said, Sink, Token};

use super::Shard;
use super::publisher::{Pending, Publisher};
use super::receiver::{Figures, type_row};
use super::session::State;

impl Shard {
    pub(super) fn series_start_ns(&self) -> i64 {
        self.series.bin_start_ns(0)
    }

    fn publisher_of(&mut self, session: SessionId, token: Token) -> Option<&mut Publisher> {
        let first = self.sessions[session.0 as usize].publishers.start;
        self.publishers.get_mut((first + u32::from(token.publication)) as usize)
    }

    /// The oldest message of a session that was handed over and not written, if the token names it.
    fn take_pending(&mut self, session: SessionId, token: Token) -> Option<Pending> {
        let pending = &mut self.sessions[session.0 as usize].pending;
        let front = pending.front().filter(|front| front.sequence == token.sequence)?;
        let front = *front;
        pending.pop_front();
        Some(front)
    }

    fn subscriber_present(&mut self, session: SessionId) {
        let entry = &mut self.sessions[session.0 as usize];
        let Some(subscriber) = entry.subscriber.filter(|_| !entry.subscribed) else { return };
        entry.subscribed = true;
        if !std::mem::replace(&mut entry.held, true) {
            let epoch = self.progress.epoch.fetch_add(1, Relaxed) + 1;
            self.receiver.present_from(subscriber, epoch);
        }
        self.subscribed += 1;
    }

    fn subscriber_gone(&mut self, session: SessionId) {
        let entry = &mut self.sessions[session.0 as usize];
        let Some(subscriber) = entry.subscriber.filter(|_| entry.subscribed) else { return };
        entry.subscribed = false;
        self.subscribed -= 1;
        if !entry.persistent && !self.finishing {
            entry.held = false;
            let epoch = self.progress.epoch.fetch_add(1, Relaxed) + 1;
            self.receiver.absent_from(subscriber, epoch);
        }
    }

    /// A message is settled: a session that waited for it can leave.
    fn note_settled(&mut self, session: SessionId) {
        if self.sessions[session.0 as usize].leaving && !self.is_busy(session.0) {
            self.writable.push(session.0);
        }
    }

    fn unblock(&mut self, session: SessionId) {
        for index in self.sessions[session.0 as usize].publishers.clone() {
            self.publishers[index as usize].blocked = false;
        }
        self.writable.push(session.0);
    }
}

impl Sink for Shard {
    fn connected(&mut self, session: SessionId, connected: Connected) {
        let now_ns = clock::monotonic_ns();
        let entry = &mut self.sessions[session.0 as usize];
        if let State::Connecting(since_ns) = entry.state {
            self.times.connect.record(now_ns as i64 - since_ns as i64);
        }
        entry.state = State::Online;
        entry.lost = false;
        entry.was_up = true;
        if entry.failures > 0 {
            entry.failures = 0;
            self.failing -= 1;
        }
        let subscribes = entry.subscriber.is_some();
        self.online += 1;
        self.counters.established += 1;
        self.last_event_ns = now_ns;
        self.counters.publish_level_lower += u64::from(connected.maximum_qos.is_some());
        self.counters.topic_alias_refused += u64::from(connected.topic_alias_refused);
        if connected.maximum_qos == Some(Qos::BestEffort) {
            // Messages go out at the level the server takes: nothing will be acknowledged.
            for index in self.sessions[session.0 as usize].publishers.clone() {
                self.publishers[index as usize].acknowledged = false;
            }
        }
        if subscribes && connected.session_present {
            // The server kept the subscriptions: nothing is answered, nothing was missed.
            self.subscriber_present(session);
        }
        self.unblock(session);
    }

    fn subscribed(&mut self, session: SessionId, index: usize, granted: Result<Qos, Said>) {
        let Some((asked, count)) = self.sessions[session.0 as usize].asked else { return };
        match granted {
            Ok(level) if level < asked => self.counters.granted_lower += 1,
            Ok(_) => {}
            Err(said) => {
                self.counters.subscriptions_refused += 1;
                self.counters.count_cause(format!("subscription refused: {said}"));
            }
        }
        if index + 1 == count {
            self.subscriber_present(session);
        }
    }

    fn closed(&mut self, session: SessionId, cause: Cause) {
        self.subscriber_gone(session);
        self.sessions[session.0 as usize].leaving = false;
        let was_online = self.sessions[session.0 as usize].state == State::Online;
        if cause == Cause::Ours {
            self.online -= u64::from(was_online);
            self.sessions[session.0 as usize].state = State::Offline;
        } else {
            self.note_failure(session.0, &cause);
            // A device that lost its connection drops what waited for it: see `step`.
            self.writable.push(session.0);
        }
    }

    fn written(&mut self, session: SessionId, token: Token, _write_start_ns: u64, written_ns: u64) {
        let Some(pending) = self.take_pending(session, token) else { return };
        self.last_event_ns = written_ns;
        let at_ns = self.window.relative(written_ns);
        self.series.bin(at_ns).sent += 1;
        self.sent_ever += 1;
        let publisher = &mut self.publishers[pending.publisher as usize];
        self.expected_ever += u64::from(publisher.fan_out);
        if publisher.acknowledged {
            publisher.unacknowledged += 1;
        } else {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        if pending.measured {
            publisher.book.written += 1;
            let wait_ns = written_ns as i64 - pending.ready_ns as i64;
            self.times.backpressure.record(wait_ns);
            type_row(&mut self.types, publisher.book.group).backpressure.record(wait_ns);
        }
        self.note_settled(session);
    }

    fn acknowledged(&mut self, session: SessionId, token: Token, outcome: Result<(), Said>) {
        self.last_event_ns = clock::monotonic_ns();
        let Some(publisher) = self.publisher_of(session, token) else { return };
        if publisher.unacknowledged > 0 {
            publisher.unacknowledged -= 1;
        }
        let fan_out = u64::from(publisher.fan_out);
        let (measured, awaited) = (publisher.is_measured(token.sequence), publisher.acknowledged);
        if let Err(said) = outcome {
            if measured {
                publisher.book.refused.push(token.sequence);
            }
            self.expected_ever = self.expected_ever.saturating_sub(fan_out);
            self.counters.count_cause(format!("message refused: {said}"));
        }
        // One that no acknowledgement is waited for left when it was written, and can be refused all the same.
        self.in_flight = self.in_flight.saturating_sub(u64::from(awaited));
        self.note_settled(session);
    }

    fn abandoned(&mut self, session: SessionId, token: Token) {
        let Some(pending) = self.take_pending(session, token) else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        let finishing = self.finishing;
        let book = &mut self.publishers[pending.publisher as usize].book;
        if pending.measured {
            if finishing { &mut book.stuck } else { &mut book.broken }.push(pending.sequence);
        }
    }

    fn unanswered(&mut self, session: SessionId, token: Token) {
        let Some(publisher) = self.publisher_of(session, token) else { return };
        publisher.unacknowledged = publisher.unacknowledged.saturating_sub(1);
        if publisher.is_measured(token.sequence) {
            publisher.book.unanswered.push(token.sequence);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn resent(&mut self, _session: SessionId, _token: Token) {
        self.counters.resent += 1;
    }

    fn writable(&mut self, session: SessionId) {
        self.unblock(session);
    }

    fn delivered(&mut self, session: SessionId, delivery: Delivery<'_>) {
        self.last_event_ns = delivery.at_ns;
        let Some(subscriber) = self.sessions[session.0 as usize].subscriber else {
            self.counters.foreign += 1;
            return;
        };
        let mut figures = Figures {
            times: &mut self.times,
            types: &mut self.types,
            counters: &mut self.counters,
            series: &mut self.series,
        };
        let first = self.receiver.enter(subscriber, &delivery, &self.window, &mut figures);
        self.delivered_ever += u64::from(first);
    }
}
