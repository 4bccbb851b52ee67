//! The responders of a shard: requests wait for a responder, are worked on, and are replied to.
//!
//! Working is a time in the shard's timers, never a sleep. A responder follows its planned times: a waiting request
//! begins when the work on the one before it should have ended. The generator's lag therefore does not add up, but is
//! reported as the *responder lag* of each reply.

use pubmark_protocol::clients::{Clients, SendOutcome, SessionId};
use pubmark_protocol::events::Token;
use pubmark_protocol::header::Header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_protocol::timing::Timing;

use super::dropped::{Dropped, FreedRoom};
use super::jobs::Job;
use super::requests::Requests;
use super::responder::Responder;
use super::sessions::Sessions;
use super::timers::{Task, Timers};

/// This bit is set in the number of a reply to a request of the measured window.
const MEASURED: u32 = 1 << 31;

/// Result of an attempt to send a reply.
enum Step {
    /// It was passed to the adapter, or never will be.
    Settled,
    /// The system accepts no reply now.
    Waits,
}

impl Requests {
    /// The first copy of a request arrived at a responder.
    pub fn record_request(
        &mut self,
        session: SessionId,
        (header, measured): (&Header, bool),
        reply_to: ReplyTo<'_>,
        (received_ns, late_ns): (u64, u64),
        sessions: &mut Sessions,
        timers: &mut Timers,
    ) {
        let Some(responder) = &mut sessions[session].responder else { return };
        let responses = &mut self.figures.responses;
        responses.received += u64::from(measured);
        if !reply_to.is_short() {
            responses.without_address += u64::from(measured);
            return;
        }
        let is_free = responder.is_free();
        if !is_free && responder.waiting.len() >= responder.rules.queue as usize {
            responses.dropped += u64::from(measured);
            let took_ns = responder.rules.processing.draw_ns(self.seed, header.publisher, header.sequence);
            let dropped = Dropped { read_ns: received_ns, took_ns, measured };
            if responder.ready.is_empty() {
                self.judge(responder, &dropped);
            } else {
                responder.note_dropped(dropped);
            }
            return;
        }
        let job = self.jobs.add(session, reply_to, header, (received_ns, late_ns), measured);
        if is_free {
            self.begin_job(job, (received_ns, 0, 0), sessions, timers);
        } else {
            responder.waiting.push_back(job);
        }
    }

    /// The first copy of a measured request arrived at a responder without its reply topic, which the system lost.
    pub fn count_request_without_reply_topic(&mut self) {
        self.figures.responses.received += 1;
        self.figures.responses.without_address += 1;
    }

    /// A responder dropped a request, and the system accepts its replies: is that perhaps pubmark's?
    fn judge(&mut self, responder: &mut Responder, dropped: &Dropped) {
        if responder.may_have_had_room(dropped.read_ns) {
            self.figures.responses.dropped_by_generator += u64::from(dropped.measured);
            self.jobs.extend_first(responder, dropped.took_ns);
        }
    }

    /// The system accepted replies again, or none: the same for the requests that were dropped meanwhile.
    fn judge_all(&mut self, session: u32, mut freed: FreedRoom, sessions: &mut Sessions) {
        let Some(responder) = &mut sessions[session].responder else { return };
        for dropped in std::mem::take(&mut responder.dropped) {
            if freed.take(&dropped) {
                self.figures.responses.dropped_by_generator += u64::from(dropped.measured);
            } else {
                self.judge(responder, &dropped);
            }
        }
    }

    /// A responder starts on a request at this time. `late_ns` is the upper bound of how much later than possible it
    /// starts, because the work before ended late; that work may have ended at `may_begin_ns`.
    fn begin_job(
        &mut self,
        index: u32,
        (at_ns, late_ns, may_begin_ns): (u64, u64, u64),
        sessions: &mut Sessions,
        timers: &mut Timers,
    ) {
        let job = &mut self.jobs.all[index as usize];
        let Some(responder) = &mut sessions[job.session].responder else { return };
        if job.measured {
            self.figures.times.waiting.record(at_ns.saturating_sub(job.received_ns) as i64);
        }
        let took_ns = responder.rules.processing.draw_ns(self.seed, job.publisher, job.sequence);
        job.reply_due_ns = at_ns + took_ns;
        let may_arrive_ns = job.received_ns.saturating_sub(job.late_ns.saturating_add(job.lag_ns));
        job.may_end_ns = may_begin_ns.max(may_arrive_ns) + took_ns;
        responder.working.insert((job.may_end_ns, index));
        job.late_ns = job.late_ns.max(late_ns);
        timers.add(job.reply_due_ns, Task::Reply(index));
    }

    /// The work on a request has ended: its reply is due. Returns the session that the caller must flush, if the reply
    /// was passed to the adapter.
    pub fn reply_due<C: Clients>(
        &mut self,
        clients: &mut C,
        index: u32,
        sessions: &mut Sessions,
        timers: &mut Timers,
        now_ns: u64,
    ) -> Option<SessionId> {
        let job = &self.jobs.all[index as usize];
        if job.measured {
            self.figures.times.responder_lag.record(now_ns as i64 - job.reply_due_ns as i64);
        }
        let (session, reply_due_ns, may_end_ns) = (job.session, job.reply_due_ns, job.may_end_ns);
        let is_behind = sessions[session].responder.as_mut().is_some_and(|responder| {
            responder.working.remove(&(may_end_ns, index));
            !responder.ready.is_empty()
        });
        let lag_ns = now_ns.saturating_sub(reply_due_ns);
        if is_behind || matches!(self.send_reply(clients, index, sessions, (now_ns, lag_ns)), Step::Waits) {
            let job = &mut self.jobs.all[index as usize];
            job.late_ns = job.late_ns.saturating_add(lag_ns);
            if let Some(responder) = &mut sessions[session].responder {
                responder.ready.push_back(index);
            }
            return None;
        }
        self.end_job(index, (reply_due_ns, 0, may_end_ns), sessions, timers);
        Some(SessionId(session))
    }

    /// Continues with replies that the system did not accept. The back-pressure certainly lasted until `free_since_ns`,
    /// if that is known. The caller flushes the session.
    pub fn send_ready<C: Clients>(
        &mut self,
        clients: &mut C,
        session: u32,
        free_since_ns: Option<u64>,
        sessions: &mut Sessions,
        timers: &mut Timers,
        now_ns: u64,
    ) {
        let mut freed = FreedRoom::default();
        while let Some(responder) = &sessions[session].responder {
            let Some(index) = responder.ready.front().copied() else { break };
            let Job { reply_due_ns, may_end_ns, .. } = self.jobs.all[index as usize];
            let since_ns = free_since_ns.unwrap_or(reply_due_ns);
            let lag_ns = now_ns.saturating_sub(since_ns);
            if matches!(self.send_reply(clients, index, sessions, (now_ns, lag_ns)), Step::Waits) {
                break;
            }
            if let Some(responder) = &mut sessions[session].responder {
                responder.ready.pop_front();
            }
            // The request counts as worked on until now, because the system did not accept its reply: the next one
            // begins now.
            let has_next = self.end_job(index, (now_ns, lag_ns, since_ns.min(now_ns)), sessions, timers);
            freed.add(since_ns.max(may_end_ns), has_next);
        }
        self.judge_all(session, freed, sessions);
    }

    /// Passes a reply to the adapter at `now_ns`, if the system accepts it. `lag_ns` is the generator's part of its
    /// wait.
    fn send_reply<C: Clients>(
        &mut self,
        clients: &mut C,
        index: u32,
        sessions: &Sessions,
        (now_ns, lag_ns): (u64, u64),
    ) -> Step {
        let job = &self.jobs.all[index as usize];
        let Some(responder) = &sessions[job.session].responder else { return Step::Settled };
        let number = (self.jobs.replies & !MEASURED) | if job.measured { MEASURED } else { 0 };
        let answer = OutgoingReply {
            to: ReplyTo { address: &job.address, correlation: &job.correlation },
            qos: responder.qos,
            number,
            publisher: job.publisher,
            sequence: job.sequence,
            due_ns: job.due_ns,
            timing: Timing {
                due_ns: job.received_ns,
                submitted_ns: now_ns,
                lag_ns: job.lag_ns.saturating_add(job.late_ns).saturating_add(lag_ns),
            },
            payload_bytes: responder.reply_bytes(),
        };
        match clients.reply(SessionId(job.session), &answer) {
            SendOutcome::Accepted => {
                self.jobs.replies = self.jobs.replies.wrapping_add(1);
                self.replies_handed += 1;
                Step::Settled
            }
            SendOutcome::TooLarge(_) => {
                self.figures.responses.refused += u64::from(job.measured);
                Step::Settled
            }
            SendOutcome::WouldBlock => Step::Waits,
        }
    }

    /// A responder has finished a request, and starts on the next one; is there one? It may have finished at `may_end_ns`.
    fn end_job(
        &mut self,
        index: u32,
        (at_ns, lag_ns, may_end_ns): (u64, u64, u64),
        sessions: &mut Sessions,
        timers: &mut Timers,
    ) -> bool {
        let Job { session, late_ns, .. } = self.jobs.all[index as usize];
        let ended = (at_ns, late_ns.saturating_add(lag_ns), may_end_ns);
        self.jobs.free.push(index);
        let next = sessions[session].responder.as_mut().and_then(|responder| responder.waiting.pop_front());
        if let Some(next) = next {
            self.begin_job(next, ended, sessions, timers);
        }
        next.is_some()
    }

    /// A reply was written to the socket completely.
    pub fn reply_written(&mut self, reply: Token) {
        self.replies_handed = self.replies_handed.saturating_sub(1);
        self.figures.responses.answered += is_measured(reply);
    }

    /// A reply's connection ended before it was written.
    pub fn reply_abandoned(&mut self, reply: Token) {
        self.replies_handed = self.replies_handed.saturating_sub(1);
        self.figures.responses.broken += is_measured(reply);
    }

    /// The system refused a reply after it was sent.
    pub fn reply_refused(&mut self, reply: Token) {
        self.figures.responses.refused_later += is_measured(reply);
    }

    /// Completes the accounting of responders: requests that a responder still has received no reply.
    pub fn settle_responders(&mut self) {
        self.figures.responses.unsent += self.jobs.count_measured();
    }
}

fn is_measured(reply: Token) -> u64 {
    u64::from(reply.sequence & MEASURED != 0)
}
