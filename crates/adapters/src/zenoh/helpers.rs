//! Threads that open and close: both wait for the other side, and a shard must not.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::zenoh::Wait as _;
use pubmark_protocol::events::{Cause, Reason};

use super::connection::Connection;
use super::mailbox::{Mailbox, Notice};
use super::opening::{self, Opening};

/// Threads of a shard: N openings and closings can wait at a time.
const THREADS: usize = 4;
/// Longest wait for a thread at the end. The library gives a closing ten seconds.
const JOIN_WITHIN: Duration = Duration::from_secs(12);
/// Longest wait for a message that the library is being given. With `Block` it waits 5 s for space in its queue.
const LEFT_WITHIN: Duration = Duration::from_secs(5);
/// Time between two checks for what is waited for.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Something to do.
enum Task {
    Open(Box<Opening>),
    Close(Arc<Connection>),
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    stopped: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    /// Openings that a thread has or that wait for one.
    openings: AtomicUsize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads of a shard. When dropped, they close what is to be closed and end.
pub struct Helpers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Helpers {
    /// Starts the threads.
    pub fn start(mailbox: &Arc<Mailbox>) -> std::io::Result<Helpers> {
        let mut helpers = Helpers { shared: Arc::new(Shared::default()), threads: Vec::with_capacity(THREADS) };
        for _ in 0..THREADS {
            let (shared, mailbox) = (Arc::clone(&helpers.shared), Arc::clone(mailbox));
            let thread = std::thread::Builder::new().name("zenoh-helper".to_owned());
            helpers.threads.push(thread.spawn(move || run(&shared, &mailbox))?);
        }
        Ok(helpers)
    }

    /// Opens a connection, whose fate comes to the mailbox.
    pub fn open(&self, opening: Box<Opening>) {
        self.shared.openings.fetch_add(1, Ordering::AcqRel);
        self.give(Task::Open(opening));
    }

    /// Would a thread open one more now?
    pub fn can_open(&self) -> bool {
        self.shared.openings.load(Ordering::Acquire) < THREADS
    }

    /// Closes a connection.
    pub fn close(&self, connection: Arc<Connection>) {
        self.give(Task::Close(connection));
    }

    fn give(&self, task: Task) {
        self.shared.lock().tasks.push_back(task);
        self.shared.filled.notify_one();
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.stopped = true;
        queue.tasks.retain(|task| matches!(task, Task::Close(_)));
        drop(queue);
        self.shared.filled.notify_all();
        let deadline = Instant::now() + JOIN_WITHIN;
        for thread in self.threads.drain(..) {
            join_until(thread, deadline);
        }
    }
}

/// Waits for a thread, but not for one that the library does not let go.
pub fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        join_until(thread, Instant::now() + JOIN_WITHIN);
    }
}

fn join_until(thread: JoinHandle<()>, deadline: Instant) {
    while !thread.is_finished() && Instant::now() < deadline {
        std::thread::sleep(CHECK_INTERVAL);
    }
    if thread.is_finished() {
        // A panic of the library has been printed by the thread itself.
        let _ = thread.join();
    }
}

fn run(shared: &Shared, mailbox: &Arc<Mailbox>) {
    loop {
        let mut queue = shared.lock();
        let task = loop {
            match queue.tasks.pop_front() {
                Some(task) => break task,
                None if queue.stopped => return,
                None => queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(queue);
        match task {
            Task::Open(opening) => {
                let key = opening.key;
                let open = || match opening.is_wanted() {
                    true => opening::open(*opening, mailbox),
                    false => Err(Cause::Ours),
                };
                let opened = catch_unwind(AssertUnwindSafe(open));
                let panicked = || Err(Cause::Refused(Reason::words("the library panicked")));
                shared.openings.fetch_sub(1, Ordering::AcqRel);
                // The shard, which this wakes, ignores the outcome of an opening that its session does not want any more.
                mailbox.tell(Notice::Opened(key, opened.unwrap_or_else(|_| panicked())));
            }
            Task::Close(connection) => close(&connection),
        }
    }
}

/// The library's goodbye, after the message that it is being given: that one counts as handed over, and a session that is closed
/// meanwhile drops it without an error. That the goodbye failed changes nothing: the session is not used any more.
fn close(connection: &Connection) {
    let deadline = Instant::now() + LEFT_WITHIN;
    while connection.gate.is_entered() && Instant::now() < deadline {
        std::thread::sleep(CHECK_INTERVAL);
    }
    let _ = catch_unwind(AssertUnwindSafe(|| connection.session.close().wait()));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::zenoh::connection::unconnected;

    #[test]
    fn a_session_is_not_closed_while_the_library_is_being_given_a_message() {
        let connection = unconnected();
        assert!(connection.gate.enter());
        connection.gate.close();
        let left = Arc::clone(&connection);
        let closing = std::thread::spawn(move || close(&left));
        // A close that does not wait takes some microseconds until the session accepts no message.
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until {
            assert!(!connection.session.is_closed());
            std::thread::sleep(CHECK_INTERVAL);
        }
        connection.gate.leave();
        closing.join().unwrap();
        assert!(connection.session.is_closed());
    }
}
