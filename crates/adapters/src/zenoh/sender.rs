//! The thread that passes messages to the library. A put may block for up to five seconds, and the shard must not.
//!
//! It passes on one message after another, so the order of a session's messages is preserved. The queue is bounded by the
//! shard, which counts the messages that it queued and the results that it got.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ::zenoh::Wait as _;
use ::zenoh::query::Query;
use pubmark_protocol::clients::{Outgoing, ShardConfig};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_protocol::timing::Timing;
use pubmark_protocol::{clock, header};

use super::connection::Connection;
use super::helpers;
use super::mailbox::{Done, Key, Mailbox, Outcome};
use crate::payload;

/// Most messages whose results are reported to the shard together: each time needs a lock that the library's threads use too.
const REPORTED_TOGETHER: usize = 64;
/// A put that takes longer has waited, ns; others take some µs.
const WAIT_NS: u64 = 100_000;

/// A message for the library.
pub struct Job {
    /// Where it goes.
    pub to: To,
    /// The same by number.
    pub key: Key,
    /// What goes.
    pub content: JobContent,
}

/// Where a message goes.
pub enum To {
    /// Over this connection.
    Over(Arc<Connection>),
    /// Over that of the job before it: to count who holds a connection, message by message, on two cores costs more than the message's way
    /// to the sender.
    Same,
    /// Nowhere.
    Nowhere,
}

/// What goes.
pub enum JobContent {
    /// A message, or a request.
    Message(Outgoing),
    /// A reply with its request; its address is not used.
    Reply(Box<(Query, OutgoingReply<'static>)>),
    /// Requests without a reply: the library notifies the requester as they are dropped, and may block.
    Forget(Vec<Query>),
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    /// The shard waits for space in the queue.
    is_full: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's handle; stops it when dropped.
pub struct Sender {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    /// Starts the thread, which makes payloads as `config` specifies.
    pub fn start(config: ShardConfig, mailbox: Arc<Mailbox>) -> std::io::Result<Sender> {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("zenoh-sender".to_owned());
        let thread = Some(thread.spawn(move || run(&seen, &config, &mailbox))?);
        Ok(Sender { shared, thread })
    }

    /// Gives it messages.
    pub fn give(&self, jobs: &mut Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        let was_empty = queue.jobs.is_empty();
        queue.jobs.append(jobs);
        drop(queue);
        if was_empty {
            self.shared.filled.notify_one();
        }
    }

    /// The queue is full, and the shard must be woken when it is not.
    pub fn mark_full(&self) {
        self.shared.is_full.store(true, Ordering::Release);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.filled.notify_one();
        helpers::join(self.thread.take());
    }
}

fn run(shared: &Shared, config: &ShardConfig, mailbox: &Mailbox) {
    let mut jobs = Vec::new();
    let mut done = Vec::with_capacity(REPORTED_TOGETHER);
    let mut connection = None;
    loop {
        let mut queue = shared.lock();
        while queue.jobs.is_empty() {
            if queue.stopped {
                return;
            }
            queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut queue.jobs, &mut jobs);
        drop(queue);
        let all = jobs.len();
        for (place, job) in jobs.drain(..).enumerate() {
            let Job { to, key, content } = job;
            match to {
                To::Over(other) => connection = Some(other),
                To::Same => {}
                To::Nowhere => connection = None,
            }
            done.extend(hand_over(connection.as_deref(), key, content, config));
            // Half of the queue is done: there is space for as much again.
            let wakes = 2 * (place + 1) >= all
                && shared.is_full.load(Ordering::Acquire)
                && shared.is_full.swap(false, Ordering::AcqRel);
            if wakes || place + 1 == all || done.len() == REPORTED_TOGETHER || done.last().is_some_and(has_waited) {
                mailbox.settle(&mut done, wakes);
            }
        }
        // Each that is given begins with a connection of its own; those that end are not held.
        connection = None;
    }
}

/// Did the library block on this message? Then it may block on the next one too, and the shard gets this result first.
fn has_waited(done: &Done) -> bool {
    match done.outcome {
        Outcome::Handed { write_start_ns, written_ns, .. } => written_ns - write_start_ns > WAIT_NS,
        Outcome::Failed(_) => true,
        Outcome::Skipped => false,
    }
}

/// Passes a message to the library, which may block until there is space in its queues. Its payload is made here: memory that
/// one thread allocates and another frees costs more. `None` if its result is not awaited.
fn hand_over(connection: Option<&Connection>, key: Key, content: JobContent, config: &ShardConfig) -> Option<Done> {
    let (payload_bytes, outcome) = match (content, connection) {
        (JobContent::Message(message), Some(to)) => (message.payload_bytes as usize, put_message(to, message, config)),
        (JobContent::Reply(of), Some(to)) => (payload::reply_bytes(&of.1), send_reply(to, of, config)),
        (JobContent::Forget(requests), _) => {
            forget(requests);
            return None;
        }
        // There is nothing that goes somewhere without a connection.
        (JobContent::Message(_) | JobContent::Reply(_), None) => return None,
    };
    Some(Done { key, payload_bytes, outcome })
}

/// Drops a value of the library's. A panic of the library must not end the thread.
fn forget<T>(dropped: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(dropped)));
}

fn put_message(connection: &Connection, message: Outgoing, config: &ShardConfig) -> Outcome {
    let entry = connection.publications.get(usize::from(message.publication));
    let Some((topic, entry)) = entry.filter(|_| connection.gate.enter()) else { return Outcome::Skipped };
    let mut payload = Vec::with_capacity(message.payload_bytes as usize);
    payload::append(config, entry, &message, &mut payload);
    let write_start_ns = clock::monotonic_ns();
    header::patch_write_start(&mut payload, &message.timing, write_start_ns);
    let timing = &message.timing;
    let outcome = match &connection.requesting {
        Some(requesting) => {
            let token = message.token();
            begun(timing, write_start_ns, || {
                requesting.ask(&connection.session, topic, connection.congestion, payload, token)
            })
        }
        None => {
            let put = connection.session.put(topic, payload).congestion_control(connection.congestion);
            begun(timing, write_start_ns, || put.wait().map_err(|error| error.to_string()))
        }
    };
    connection.gate.leave();
    outcome
}

fn send_reply(connection: &Connection, of: Box<(Query, OutgoingReply<'static>)>, config: &ShardConfig) -> Outcome {
    let (request, answer) = &*of;
    if !connection.gate.enter() {
        forget(of);
        return Outcome::Skipped;
    }
    let mut payload = Vec::with_capacity(payload::reply_bytes(answer));
    payload::append_reply(config, answer, &mut payload);
    let write_start_ns = clock::monotonic_ns();
    // Its header's time counts from the request's arrival.
    header::patch_write_start(&mut payload, &answer.timing, write_start_ns);
    // It goes with the priority and congestion control of its request.
    let reply = request.reply(request.key_expr(), payload);
    let outcome = begun(&answer.timing, write_start_ns, || reply.wait().map_err(|error| error.to_string()));
    // Word that there is no further reply.
    forget(of);
    connection.gate.leave();
    outcome
}

/// A panic of the library is the end of this message, not of the thread that all others wait for.
fn begun(timing: &Timing, write_start_ns: u64, hand: impl FnOnce() -> Result<(), String>) -> Outcome {
    let own_ns = timing.since_submitted_ns(write_start_ns);
    match catch_unwind(AssertUnwindSafe(hand)) {
        Ok(Ok(())) => Outcome::Handed { write_start_ns, written_ns: clock::monotonic_ns(), own_ns },
        Ok(Err(words)) => Outcome::Failed(words),
        Err(_) => Outcome::Failed("it panicked".to_owned()),
    }
}
