//! From due to handed over. A due time is met whatever the system does; a message that the system does not take yet waits as
//! the way between two cursors of one schedule, never in a queue.

use pubmark_model::schedule::Due;
use pubmark_protocol::clients::{Clients, Outgoing, SessionId, Taken};

use super::Shard;
use super::publisher::Pending;
use super::session::State;
use super::timers::Task;

/// Bytes that a flooding publisher hands over between two writes.
const FLOOD_BYTES: usize = 64 * 1024;

/// A message that became due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) due: Due,
    /// Due time of the root of its chain, if it is a reaction, ns of `CLOCK_MONOTONIC`.
    pub(super) root_ns: Option<u64>,
    /// Its *ready* stamp, same clock: when the scheduler reached it; its due time if it waited for its session.
    pub(super) ready_ns: u64,
}

impl Message {
    fn scheduled(due: Due, ready_ns: u64) -> Message {
        Message { due, root_ns: None, ready_ns }
    }
}

/// What became of a message that was to be sent.
pub(super) enum Step {
    /// Handed over.
    Handed,
    /// Skipped or refused.
    Settled,
    /// It must wait.
    Waits,
}

impl Shard {
    /// Plans a publisher's next send.
    pub(super) fn plan_send(&mut self, index: u32) {
        if let Some(due_ns) = self.publishers[index as usize].schedule.peek_ns() {
            self.timers.add(self.window.absolute(due_ns), Task::Send(index));
        }
    }

    /// Meets a due time: it is offered, and sent if nothing of this publisher waits before it.
    pub(super) fn send_due<C: Clients>(&mut self, clients: &mut C, index: u32, ready_ns: u64) {
        let publisher = &mut self.publishers[index as usize];
        let is_offered = |due_ns| self.window.offers(self.window.absolute(due_ns));
        if !publisher.schedule.peek_ns().is_some_and(is_offered) {
            return;
        }
        let rules = &self.rules[usize::from(publisher.book.group)];
        let before = publisher.schedule.clone();
        let Some(due) = publisher.schedule.take(rules) else { return };
        self.plan_send(index);
        self.offer(index, &due, None, ready_ns);
        if self.publishers[index as usize].backlog == 0 {
            let session = self.publishers[index as usize].session;
            match self.step(clients, index, &Message::scheduled(due, ready_ns), ready_ns) {
                Step::Handed => clients.flush(SessionId(session), &mut self.at(ready_ns)),
                Step::Settled => {}
                Step::Waits => {
                    self.publishers[index as usize].behind = Some(Box::new(before));
                    self.add_to_backlog(index);
                }
            }
        } else {
            self.add_to_backlog(index);
        }
    }

    fn add_to_backlog(&mut self, index: u32) {
        self.publishers[index as usize].backlog += 1;
        self.backlog += 1;
    }

    /// Does a message belong to the measured window? A reaction belongs to that of its root.
    fn is_measured(&self, due: &Due, root_ns: Option<u64>) -> bool {
        root_ns.map_or(due.due_ns >= 0, |root_ns| self.window.measures(root_ns))
    }

    /// Counts a message as offered, with our lag.
    pub(super) fn offer(&mut self, index: u32, due: &Due, root_ns: Option<u64>, ready_ns: u64) {
        let lag_ns = self.window.relative(ready_ns) - due.due_ns;
        self.series.enter_offer(due.due_ns, u64::try_from(lag_ns).ok());
        if self.is_measured(due, root_ns) {
            self.times.scheduler_lag.record(lag_ns);
            self.enter_offer(index, due);
        }
    }

    /// Counts a reaction as offered that never became ready.
    pub(super) fn count_offer(&mut self, index: u32, due: &Due, root_ns: u64) {
        if self.is_measured(due, Some(root_ns)) {
            self.enter_offer(index, due);
        }
    }

    fn enter_offer(&mut self, index: u32, due: &Due) {
        self.offered += 1;
        let book = &mut self.publishers[index as usize].book;
        book.offered += 1;
        book.planned_online += u64::from(due.planned_online);
        book.sizes_raised += u64::from(due.size_raised);
    }

    /// Settles one message, or says that it must wait.
    pub(super) fn step<C: Clients>(&mut self, clients: &mut C, index: u32, message: &Message, now_ns: u64) -> Step {
        let Message { due, root_ns, ready_ns } = message;
        let (root_ns, ready_ns) = (*root_ns, *ready_ns);
        let measured = self.is_measured(due, root_ns);
        let segment = self.faults.as_ref().map(|log| log.segment());
        let publisher = &mut self.publishers[index as usize];
        let session = &mut self.sessions[publisher.session as usize];
        if !due.planned_online {
            publisher.book.skipped_planned += u64::from(measured);
            return Step::Settled;
        }
        if session.lost {
            publisher.book.skipped_disconnected += u64::from(measured);
            self.tally_skipped(index, measured);
            return Step::Settled;
        }
        if session.state != State::Online || !publisher.may_send() {
            return Step::Waits;
        }
        self.announced.announce(publisher.book.publisher, publisher.next_sequence);
        let message = Outgoing {
            publication: publisher.publication,
            sequence: publisher.next_sequence,
            due_ns: self.window.absolute(due.due_ns),
            root_ns,
            payload_bytes: due.payload_bytes,
        };
        match clients.send(SessionId(publisher.session), message) {
            Taken::Yes => {
                let epoch = self.progress.epoch(|| self.window.since_schedule(now_ns));
                let sequence = publisher.use_sequence(measured, epoch, segment);
                let payload_bytes = due.payload_bytes;
                session.pending.push_back(Pending { publisher: index, sequence, ready_ns, measured, payload_bytes });
                self.in_flight += 1;
                self.open_request(index, sequence, measured, now_ns);
                Step::Handed
            }
            Taken::NotReady => Step::Waits,
            Taken::TooLarge(_) => {
                publisher.book.too_large += u64::from(measured);
                Step::Settled
            }
        }
    }

    /// Goes on with the messages that waited for a session.
    pub(super) fn serve_writable<C: Clients>(&mut self, clients: &mut C, now_ns: u64) {
        let mut sessions = std::mem::take(&mut self.writable);
        for session in sessions.drain(..) {
            for index in self.sessions[session as usize].publishers.clone() {
                self.catch_up(clients, index, now_ns);
            }
            self.catch_up_reactions(clients, session, now_ns);
            self.send_ready_answers(clients, session, now_ns);
            clients.flush(SessionId(session), &mut self.at(now_ns));
            if self.sessions[session as usize].leaving.is_some() && !self.is_busy(session) {
                self.finish_leave(clients, session, now_ns);
            }
        }
        if self.writable.is_empty() {
            // Keep the allocation; nothing was added meanwhile.
            self.writable = sessions;
        }
    }

    /// Sends what waits, in order, until it must wait again. A waiting message was ready when it was due: our lag then is in
    /// the scheduler lag, and what came after is the system's.
    pub(super) fn catch_up<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        while self.publishers[index as usize].backlog > 0 {
            let publisher = &mut self.publishers[index as usize];
            let rules = &self.rules[usize::from(publisher.book.group)];
            let Some(mut cursor) = publisher.behind.take() else { return };
            let before = (*cursor).clone();
            let Some(due) = cursor.take(rules) else { return };
            let ready_ns = self.window.absolute(due.due_ns);
            match self.step(clients, index, &Message::scheduled(due, ready_ns), now_ns) {
                Step::Handed | Step::Settled => {
                    let publisher = &mut self.publishers[index as usize];
                    publisher.backlog -= 1;
                    self.backlog -= 1;
                    publisher.behind = (publisher.backlog > 0).then_some(cursor);
                }
                Step::Waits => {
                    *cursor = before;
                    self.publishers[index as usize].behind = Some(cursor);
                    return;
                }
            }
        }
    }

    /// Is there a publisher that could send right now without being due?
    pub(super) fn wants_to_flood(&self) -> bool {
        !self.closed && self.window.is_set() && self.flooding.iter().any(|index| self.can_flood(*index))
    }

    fn can_flood(&self, index: u32) -> bool {
        let publisher = &self.publishers[index as usize];
        !publisher.blocked && self.sessions[publisher.session as usize].state == State::Online
    }

    /// A write of the publisher at this position among those that flood, if it can. Due = ready = now. Returns the bytes handed over.
    pub(super) fn flood_one<C: Clients>(&mut self, clients: &mut C, position: usize, now_ns: u64) -> usize {
        let index = self.flooding[position];
        if !self.can_flood(index) || self.window.relative(now_ns) < self.series_start_ns() {
            return 0;
        }
        let session = self.publishers[index as usize].session;
        let mut bytes = 0;
        while bytes < FLOOD_BYTES {
            let publisher = &mut self.publishers[index as usize];
            let rules = &self.rules[usize::from(publisher.book.group)];
            let before = publisher.schedule.clone();
            let Some(mut due) = publisher.schedule.take(rules) else { break };
            due.due_ns = self.window.relative(now_ns);
            if due.due_ns >= self.duration_ns as i64 {
                publisher.schedule = before;
                break;
            }
            match self.step(clients, index, &Message::scheduled(due, now_ns), now_ns) {
                Step::Handed | Step::Settled => self.offer(index, &due, None, now_ns),
                Step::Waits => {
                    // Not offered: a flood has no schedule to keep. `can_flood` is false until the adapter says writable.
                    let publisher = &mut self.publishers[index as usize];
                    publisher.schedule = before;
                    publisher.blocked = true;
                    break;
                }
            }
            bytes += due.payload_bytes as usize;
        }
        clients.flush(SessionId(session), &mut self.at(now_ns));
        bytes
    }

    /// Offers what was due before publishing ended and was never got to, as this thread stood still: it was not sent, and its lag is
    /// ours.
    fn offer_the_rest(&mut self, now_ns: u64) {
        for index in 0..self.publishers.len() as u32 {
            while let Some(due) = self.take_offered(index) {
                self.offer(index, &due, None, now_ns);
                let book = &mut self.publishers[index as usize].book;
                match (due.due_ns >= 0, due.planned_online) {
                    (false, _) => {}
                    (true, true) => book.unsent += 1,
                    (true, false) => book.skipped_planned += 1,
                }
            }
        }
    }

    /// The next message of a publisher's schedule, if it was due before publishing ended.
    fn take_offered(&mut self, index: u32) -> Option<Due> {
        let publisher = &mut self.publishers[index as usize];
        let due_ns = publisher.schedule.peek_ns().filter(|_| !publisher.flood)?;
        self.window.offers(self.window.absolute(due_ns)).then_some(())?;
        publisher.schedule.take(&self.rules[usize::from(publisher.book.group)])
    }

    /// Ends the books: what still waits was not sent.
    pub(super) fn settle(&mut self, now_ns: u64) {
        if self.closed {
            self.offer_the_rest(now_ns);
        }
        for publisher in &mut self.publishers {
            let rules = &self.rules[usize::from(publisher.book.group)];
            let Some(mut cursor) = publisher.behind.take() else { continue };
            while publisher.backlog > 0 {
                let Some(due) = cursor.take(rules) else { break };
                publisher.backlog -= 1;
                match (due.due_ns >= 0, due.planned_online) {
                    (false, _) => {}
                    (true, true) => publisher.book.unsent += 1,
                    (true, false) => publisher.book.skipped_planned += 1,
                }
            }
        }
    }
}
