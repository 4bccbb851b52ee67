//! The answering side of a shard: requests that wait for a responder, are worked on, and are answered.
//!
//! Working is a time in the shard's timers, never a sleep. A responder's clock is its own plan: what waited begins when what was
//! before it should have ended, so that our lag is not added up but shown, as the *responder lag* of each answer.

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_model::requests::Responds;
use pubmark_protocol::clients::{Clients, SessionId, Taken};
use pubmark_protocol::events::{Delivery, Token};
use pubmark_protocol::header::Header;
use pubmark_protocol::requests::{Answer, ReplyTo};

use super::Shard;
use super::timers::Task;

/// Set in the number of an answer to a request of the measured window.
const MEASURED: u32 = 1 << 31;

/// A request at a responder. Its memory is used again for later ones.
#[derive(Debug, Default)]
struct Job {
    session: u32,
    address: String,
    mark: Vec<u8>,
    publisher: u32,
    sequence: u32,
    due_ns: u64,
    received_ns: u64,
    /// When its answer is due.
    answer_due_ns: u64,
    measured: bool,
}

/// All requests at the responders of a shard.
#[derive(Debug, Default)]
pub struct Jobs {
    all: Vec<Job>,
    free: Vec<u32>,
    /// Answers handed over, ever.
    answers: u32,
}

impl Jobs {
    /// Requests that are not answered yet.
    pub fn count(&self) -> u64 {
        (self.all.len() - self.free.len()) as u64
    }

    fn add(&mut self, session: SessionId, to: ReplyTo<'_>, header: &Header, received_ns: u64, measured: bool) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Job::default());
            self.all.len() as u32 - 1
        });
        let job = &mut self.all[index as usize];
        job.session = session.0;
        job.address.clear();
        job.address.push_str(to.address);
        job.mark.clear();
        job.mark.extend_from_slice(to.mark);
        (job.publisher, job.sequence, job.due_ns) = (header.publisher, header.sequence, header.due_ns);
        (job.received_ns, job.answer_due_ns, job.measured) = (received_ns, received_ns, measured);
        index
    }
}

/// What a session has besides, if it answers requests.
#[derive(Debug)]
pub struct Responder {
    rules: Responds,
    qos: Qos,
    /// Requests worked on.
    busy: u16,
    /// Requests that wait for that, in the order of their arrival.
    waiting: VecDeque<u32>,
    /// Worked on, but the system takes no answer now.
    ready: VecDeque<u32>,
}

impl Responder {
    /// Payload of its answers.
    pub fn answer_bytes(&self) -> u32 {
        self.rules.answer_bytes
    }

    /// A responder that was asked nothing; its answers go out at the level of its subscriptions.
    pub fn new(rules: Responds, qos: Qos) -> Responder {
        Responder { rules, qos, busy: 0, waiting: VecDeque::new(), ready: VecDeque::new() }
    }
}

/// What became of an answer that was to be sent.
enum Step {
    /// It is out of our hands, or never will be.
    Settled,
    /// The system takes none now.
    Waits,
}

impl Shard {
    /// A request arrived: it is heard like any message, and if it is a first copy, answered.
    pub(super) fn enter_request(&mut self, session: SessionId, reply_to: ReplyTo<'_>, delivery: &Delivery<'_>) {
        let Some(header) = self.hear(session, delivery) else { return };
        let measured = self.window.measures(header.due_ns);
        let Some(responder) = &mut self.sessions[session.0 as usize].responder else { return };
        let responses = &mut self.requests.responses;
        responses.received += u64::from(measured);
        if !reply_to.is_short() {
            responses.without_address += u64::from(measured);
            return;
        }
        let is_free = responder.busy < responder.rules.concurrency;
        if !is_free && responder.waiting.len() >= responder.rules.queue as usize {
            responses.dropped += u64::from(measured);
            return;
        }
        let job = self.jobs.add(session, reply_to, &header, delivery.at_ns, measured);
        if is_free {
            responder.busy += 1;
            self.begin_job(job, delivery.at_ns);
        } else {
            responder.waiting.push_back(job);
        }
    }

    /// A message arrived at a responder that asks for no answer. If it is a request, the system lost the part that says where to.
    pub(super) fn enter_mute_request(&mut self, session: SessionId, delivery: &Delivery<'_>) {
        let Some(header) = self.hear(session, delivery) else { return };
        let group = usize::from(self.receiver.group_of(header.publisher));
        if self.workload.devices[group].requests.is_some() && self.window.measures(header.due_ns) {
            self.requests.responses.received += 1;
            self.requests.responses.without_address += 1;
        }
    }

    /// A responder takes up a request at this time.
    fn begin_job(&mut self, index: u32, at_ns: u64) {
        let job = &mut self.jobs.all[index as usize];
        let Some(responder) = &self.sessions[job.session as usize].responder else { return };
        if job.measured {
            self.requests.times.waiting.record(at_ns.saturating_sub(job.received_ns) as i64);
        }
        job.answer_due_ns = at_ns + responder.rules.processing.draw_ns(self.seed, job.publisher, job.sequence);
        self.timers.add(job.answer_due_ns, Task::Answer(index));
    }

    /// A request was worked on: its answer is due.
    pub(super) fn answer_due<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        let job = &self.jobs.all[index as usize];
        if job.measured {
            self.requests.times.responder_lag.record(now_ns as i64 - job.answer_due_ns as i64);
        }
        let session = job.session;
        let Some(responder) = &mut self.sessions[session as usize].responder else { return };
        let is_behind = !responder.ready.is_empty();
        if is_behind {
            responder.ready.push_back(index);
            return;
        }
        match self.send_answer(clients, index) {
            Step::Settled => {
                let ended_ns = self.jobs.all[index as usize].answer_due_ns;
                self.end_job(index, ended_ns);
                clients.flush(SessionId(session), &mut self.at(now_ns));
            }
            Step::Waits => {
                if let Some(responder) = &mut self.sessions[session as usize].responder {
                    responder.ready.push_back(index);
                }
            }
        }
    }

    /// Goes on with answers that the system did not take; the caller writes them.
    pub(super) fn send_ready_answers<C: Clients>(&mut self, clients: &mut C, session: u32, now_ns: u64) {
        while let Some(responder) = &self.sessions[session as usize].responder {
            let Some(index) = responder.ready.front().copied() else { return };
            if matches!(self.send_answer(clients, index), Step::Waits) {
                return;
            }
            if let Some(responder) = &mut self.sessions[session as usize].responder {
                responder.ready.pop_front();
            }
            // It held its place until now, because the system took no answer: what follows begins now.
            self.end_job(index, now_ns);
        }
    }

    fn send_answer<C: Clients>(&mut self, clients: &mut C, index: u32) -> Step {
        let job = &self.jobs.all[index as usize];
        let Some(responder) = &self.sessions[job.session as usize].responder else { return Step::Settled };
        let number = (self.jobs.answers & !MEASURED) | if job.measured { MEASURED } else { 0 };
        let answer = Answer {
            to: ReplyTo { address: &job.address, mark: &job.mark },
            qos: responder.qos,
            number,
            publisher: job.publisher,
            sequence: job.sequence,
            due_ns: job.due_ns,
            received_ns: job.received_ns,
            payload_bytes: responder.rules.answer_bytes,
        };
        match clients.answer(SessionId(job.session), &answer) {
            Taken::Yes => {
                self.jobs.answers = self.jobs.answers.wrapping_add(1);
                self.answers_handed += 1;
                Step::Settled
            }
            Taken::TooLarge(_) => {
                self.requests.responses.refused += u64::from(job.measured);
                Step::Settled
            }
            Taken::NotReady => Step::Waits,
        }
    }

    /// A responder is done with a request, and takes up the next one.
    fn end_job(&mut self, index: u32, ended_ns: u64) {
        let session = self.jobs.all[index as usize].session;
        self.jobs.free.push(index);
        let Some(responder) = &mut self.sessions[session as usize].responder else { return };
        match responder.waiting.pop_front() {
            Some(next) => self.begin_job(next, ended_ns),
            None => responder.busy -= 1,
        }
    }

    /// An answer is in the socket wholly.
    pub(super) fn note_answer_written(&mut self, answer: Token, written_ns: u64) {
        self.last_event_ns = written_ns;
        self.answers_handed = self.answers_handed.saturating_sub(1);
        self.requests.responses.answered += is_measured(answer);
    }

    /// An answer's connection ended before it was written.
    pub(super) fn note_answer_abandoned(&mut self, answer: Token) {
        self.answers_handed = self.answers_handed.saturating_sub(1);
        self.requests.responses.broken += is_measured(answer);
    }

    /// The system refused an answer after it was sent.
    pub(super) fn note_answer_refused(&mut self, answer: Token) {
        self.requests.responses.refused_later += is_measured(answer);
    }

    /// Ends the books: what a responder still has was not answered.
    pub(super) fn settle_answers(&mut self) {
        let mut held = vec![true; self.jobs.all.len()];
        self.jobs.free.iter().for_each(|index| held[*index as usize] = false);
        let unsent = self.jobs.all.iter().zip(held).filter(|(job, held)| *held && job.measured).count();
        self.requests.responses.unsent += unsent as u64;
    }
}

fn is_measured(answer: Token) -> u64 {
    u64::from(answer.sequence & MEASURED != 0)
}
