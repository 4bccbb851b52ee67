//! The tasks that a shard executes over its adapter, each at its time.

use pubmark_model::churn::Leave;
use pubmark_protocol::clients::{Break, Clients, Goodbye, SessionId};
use pubmark_protocol::events::Cause;

use super::Shard;
use super::publishing::Publishing;
use super::sending::Sending;
use super::session::State;
use super::timers::Task;
use crate::pacing::LEAST_SAMPLES;
use crate::plan::ATTEMPT_LIMIT;

impl Shard {
    /// Executes the next task that is due by now, and returns it.
    pub(super) fn next_task<C: Clients>(&mut self, clients: &mut C, now_ns: u64) -> Option<Task> {
        let (at_ns, task) = self.timetable.timers.take(now_ns)?;
        match task {
            Task::Send(publisher) => {
                let (publishing, mut sending) = self.sending(clients, now_ns);
                let submitted = publishing.send_due(&mut sending, publisher);
                self.flush(clients, submitted, now_ns);
            }
            Task::React(number) => {
                let (publishing, mut sending) = self.sending(clients, now_ns);
                let submitted = publishing.react(&mut sending, number);
                self.flush(clients, submitted, now_ns);
            }
            Task::Reply(job) => {
                let (sessions, timers) = (&mut self.sessions, &mut self.timetable.timers);
                let submitted = self.requests.reply_due(clients, job, sessions, timers, now_ns);
                self.flush(clients, submitted, now_ns);
            }
            Task::RequestLimit(index) => {
                let publisher = &mut self.publishing.publishers[index as usize];
                self.requests.expire(index, publisher, &mut self.sessions, &mut self.timetable.timers, now_ns);
            }
            Task::Resume(session) => self.resume(clients, session, at_ns, now_ns),
            Task::Churn(publisher) => self.change_connectivity(clients, publisher, now_ns),
            Task::Connect(session) => self.connect(clients, session, now_ns),
            Task::Probe => self.probe(clients, now_ns),
            Task::AttemptLimit(session) => self.end_attempt(clients, session, at_ns, now_ns),
            Task::Leave(session) => {
                // Unless it disconnected before and is disconnecting once more by now.
                if self.sessions[session].leaving == Some(at_ns) {
                    self.finish_leave(clients, session, now_ns);
                }
            }
            Task::WindowStart => {
                self.totals.tally.begin();
                if let Some(typical_ns) = self.totals.figures.series.median_before(0, LEAST_SAMPLES) {
                    self.progress.0.note_typical(typical_ns);
                }
            }
            Task::WindowEnd => self.totals.tally.end(),
            Task::Fault(fault) => self.begin_fault(clients, fault, now_ns),
            Task::FaultEnd(fault) => self.end_fault(clients, fault, now_ns),
        }
        Some(task)
    }

    /// Sends a probe on each topic of the connected sessions. A probe that is not accepted is not repeated, because
    /// another round follows.
    fn probe<C: Clients>(&mut self, clients: &mut C, now_ns: u64) {
        for index in 0..self.sessions.count() {
            if self.sessions[index].state != State::Online {
                continue;
            }
            let own = self.sessions[index].publishers.clone();
            for publisher in &self.publishing.publishers[own.start as usize..own.end as usize] {
                if let Some(probe) = publisher.probe(&self.timetable, now_ns) {
                    // Its outcome is reported by a reader.
                    let _ = clients.send(SessionId(index), probe);
                }
            }
            clients.flush(SessionId(index), &mut self.at(now_ns));
        }
    }

    fn sending<'a, C>(&'a mut self, clients: &'a mut C, now_ns: u64) -> (&'a mut Publishing, Sending<'a, C>) {
        let Shard { publishing, sessions, requests, timetable, totals, .. } = self;
        (publishing, Sending { clients, sessions, requests, timetable, totals, now_ns })
    }

    fn flush<C: Clients>(&mut self, clients: &mut C, submitted: Option<SessionId>, now_ns: u64) {
        if let Some(session) = submitted {
            clients.flush(session, &mut self.at(now_ns));
        }
    }

    /// Continues with the messages that waited for a session.
    pub(super) fn serve_writable<C: Clients>(&mut self, clients: &mut C, now_ns: u64) {
        let mut writable = std::mem::take(&mut self.sessions.writable);
        for session in writable.drain(..) {
            let (publishing, mut sending) = self.sending(clients, now_ns);
            let free_since_ns = sending.take_free_since_ns(session);
            publishing.catch_up_session(&mut sending, session, free_since_ns);
            let (sessions, timers) = (&mut self.sessions, &mut self.timetable.timers);
            self.requests.send_ready(clients, session, free_since_ns, sessions, timers, now_ns);
            clients.flush(SessionId(session), &mut self.at(now_ns));
            let leaves = self.sessions[session].leaving.is_some();
            if leaves && !self.sessions.is_busy(session, &self.publishing.publishers) {
                self.finish_leave(clients, session, now_ns);
            }
        }
        if self.sessions.writable.is_empty() {
            // Reuse the allocation; nothing was added meanwhile.
            self.sessions.writable = writable;
        }
    }

    /// Lets a flooding publisher, by its position among them, pass one write to the adapter. Returns the bytes passed.
    pub(super) fn flood_one<C: Clients>(&mut self, clients: &mut C, position: usize, now_ns: u64) -> usize {
        let (publishing, mut sending) = self.sending(clients, now_ns);
        let Some((session, bytes)) = publishing.flood_one(&mut sending, position) else { return 0 };
        clients.flush(session, &mut self.at(now_ns));
        bytes
    }

    /// Lets a session's subscriber receive the next message, if it has finished its work.
    fn resume<C: Clients>(&mut self, clients: &mut C, session: u32, due_ns: u64, now_ns: u64) {
        if self.sessions.end_work(session, due_ns, &mut self.timetable.timers) {
            clients.resume(SessionId(session), due_ns, &mut self.at(now_ns));
        }
    }

    /// Starts an attempt, if the session should be connected and is not, when the adapter can connect one more.
    fn connect<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        self.sessions.to_connect.push_back(index);
        self.connect_waiting(clients, now_ns);
    }

    /// Starts attempts of sessions that waited for the adapter, as long as it can connect one more.
    pub(super) fn connect_waiting<C: Clients>(&mut self, clients: &mut C, now_ns: u64) {
        while clients.can_connect()
            && let Some(index) = self.sessions.to_connect.pop_front()
        {
            if self.sessions.begin_attempt(index, &mut self.timetable, &mut self.totals, now_ns) {
                clients.connect(SessionId(index), &mut self.at(now_ns));
            }
        }
    }

    /// Ends an attempt that has used up its time.
    fn end_attempt<C: Clients>(&mut self, clients: &mut C, index: u32, at_ns: u64, now_ns: u64) {
        if !self.sessions.is_over(index, at_ns, &mut self.timetable.timers, now_ns) {
            return;
        }
        clients.disconnect(SessionId(index), Goodbye::Cut, &mut self.at(now_ns));
        let cause = Cause::Unreachable(format!("no response within {} s", ATTEMPT_LIMIT.as_secs()));
        self.sessions.note_failure(now_ns, index, &cause, &mut self.timetable.timers, &mut self.totals);
    }

    /// Executes a planned disconnect or reconnect.
    fn change_connectivity<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        if self.timetable.closed {
            return;
        }
        let Some(change) = self.publishing.take_churn(index, &mut self.timetable) else { return };
        let publisher = &self.publishing.publishers[index as usize];
        let session = publisher.session;
        if change.online {
            self.sessions[session].wanted = true;
            return self.connect(clients, session, now_ns);
        }
        let group = &self.timetable.workload.devices[usize::from(publisher.book.group)];
        let leave = group.churn.map_or(Leave::Graceful, |churn| churn.leave);
        let (publishers, timers) = (&self.publishing.publishers, &mut self.timetable.timers);
        match self.sessions.leave(session, leave, publishers, timers, &mut self.totals, now_ns) {
            Some(Goodbye::Graceful) => self.finish_leave(clients, session, now_ns),
            Some(goodbye) => clients.disconnect(SessionId(session), goodbye, &mut self.at(now_ns)),
            None => {}
        }
    }

    /// Completes a graceful disconnect, and reconnects at once if the reconnect was planned for a time before now.
    fn finish_leave<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        if self.sessions[index].leaving.take().is_none() {
            return;
        }
        let is_up = self.sessions[index].state == State::Online;
        let goodbye = if is_up { Goodbye::Graceful } else { Goodbye::Cut };
        clients.disconnect(SessionId(index), goodbye, &mut self.at(now_ns));
        self.connect(clients, index, now_ns);
    }

    /// A fault begins. The connections that it breaks are broken now.
    fn begin_fault<C: Clients>(&mut self, clients: &mut C, number: u16, now_ns: u64) {
        let Some(log) = self.sessions.faults.as_mut() else { return };
        let place = usize::from(number);
        if self.timetable.closed {
            if log.planned[place].connections.is_some() {
                log.notes.missed[place] += log.chosen[place].len() as u64;
            }
            return;
        }
        log.begin(number);
        let Some(breaks) = log.planned[place].connections.clone() else { return };
        // Not longer on a shard that is late: the fault ends for all clients at the time that the record states.
        let length_ns = log.planned[place].length_ns.unwrap_or(0);
        let end_ns = log.planned[place].at_ns.saturating_add(length_ns);
        let until_ns = self.timetable.window.absolute(i64::try_from(end_ns).unwrap_or(i64::MAX));
        let chosen = log.chosen[place].clone();
        if !breaks.silent {
            chosen.iter().for_each(|session| log.hold(*session, until_ns));
        }
        let open = chosen.iter().filter(|session| self.sessions[**session].state == State::Online).count() as u64;
        let how = if breaks.silent { Break::Silence } else { Break::Reset };
        chosen.iter().for_each(|session| clients.break_connection(SessionId(*session), how, &mut self.at(now_ns)));
        if let Some(log) = self.sessions.faults.as_mut().filter(|_| !chosen.is_empty()) {
            log.notes.chosen[place] += open;
            log.notes.broken_at_ns[place] = Some((now_ns, now_ns));
            log.notes.last_begun_at_ns[place] = now_ns;
        }
    }

    /// A fault that breaks connections ends. Clients whose connections were cut abandon them.
    fn end_fault<C: Clients>(&mut self, clients: &mut C, number: u16, now_ns: u64) {
        let Some(log) = &self.sessions.faults else { return };
        let place = usize::from(number);
        if !log.planned[place].connections.as_ref().is_some_and(|breaks| breaks.silent) {
            return;
        }
        for session in log.chosen[place].clone() {
            clients.break_connection(SessionId(session), Break::GiveUp, &mut self.at(now_ns));
        }
    }

    /// Ends all sessions.
    pub(super) fn disconnect_all<C: Clients>(&mut self, clients: &mut C, now_ns: u64) {
        self.sessions.finishing = true;
        for index in 0..self.sessions.count() {
            if self.sessions[index].state != State::Offline {
                clients.disconnect(SessionId(index), Goodbye::Final, &mut self.at(now_ns));
            }
        }
        clients.finish(&mut self.at(now_ns));
    }
}
