//! A worker process, as seen by the process that leads the run.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::access::{AccessReport, LARGEST_REPORT};
use super::allowance::allowance;
use super::frames;
use super::heartbeat::{HeartbeatWatch, START_LIMIT};
use super::launcher::{Launcher, Started};
use super::messages::{FromWorker, ToWorker};
use super::task::WorkerTask;
use crate::command::Command;
use crate::error::EngineError;
use crate::plan::RunPlan;
use crate::progress::Progress;
use crate::shard_outcome::ShardOutcome;
use crate::shares::WorkerLocation;

/// Longest wait for a process to open its adapters, and for a shard to end its sessions: longer than any limit of the
/// process.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// The same for a shard after `stop` was set.
const STOPPED_LIMIT: Duration = Duration::from_secs(30);
/// Interval between two checks of a process's heartbeat and of `stop`, during a wait for a message.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest wait for a process to end once its socket is closed.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A worker process, of this machine or of a node. The process ends when this value is dropped.
pub(crate) struct Process {
    child: Option<Child>,
    control: UnixStream,
    inbox: Receiver<FromWorker>,
    /// Outcomes that arrived before they were requested.
    early: VecDeque<(u32, Box<ShardOutcome>)>,
    failed: Arc<AtomicBool>,
    /// For a process of this machine.
    heartbeat: Option<HeartbeatWatch>,
    location: WorkerLocation,
    /// It sets up an access network.
    makes_access: bool,
    /// The report of that network.
    access: Option<Vec<u8>>,
    /// The reason why it was given up, if it was.
    given_up: Option<String>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a process at a location of a plan, for shards by their index, and sends its order. The adapters are open
    /// when [`Process::opened`] returns.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(
        launcher: &dyn Launcher,
        place: WorkerLocation,
        plan: &RunPlan,
        shards: Vec<u32>,
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> io::Result<Process> {
        let Started { control, child } = launcher.launch(place, &shards, progress, stop)?;
        // A process that does not read its socket is lost. The wait for it is no longer than for a process that does
        // not begin.
        control.set_write_timeout(Some(START_LIMIT))?;
        let first = shards.first().map_or(0, |shard| *shard as usize);
        let heartbeat = child.as_ref().map(|_| HeartbeatWatch::new(Arc::clone(progress), first));
        let (letters, inbox) = mpsc::channel();
        let mut process = Process {
            child,
            control,
            inbox,
            early: VecDeque::new(),
            failed: Arc::new(AtomicBool::new(false)),
            heartbeat,
            location: place,
            makes_access: false,
            access: None,
            given_up: None,
            reader: None,
        };
        let access = launcher.access(place);
        process.makes_access = access.is_some();
        let of_access = if access.is_some() { LARGEST_REPORT as u64 } else { 0 };
        let allowed = allowance(plan, shards.len()).saturating_add(of_access);
        let mut limits = ReceiveLimits { allowed, outcomes: shards.clone(), access: access.is_some() };
        let task = ToWorker::Task(Box::new(WorkerTask::new(plan, launcher.adapter_names(), shards, access)));
        let (from, failed) = (process.control.try_clone()?, Arc::clone(&process.failed));
        let converse = move || {
            // An order is large, and a process that was stopped does not read it. This thread waits for that, and wakes
            // when the socket is shut down. The consequence of a failure is reported by the reading end.
            let _ = frames::write(&mut &from, &task);
            listen(from, &mut limits, &letters, &failed);
        };
        process.reader = Some(thread::Builder::new().name("worker-reader".to_owned()).spawn(converse)?);
        Ok(process)
    }

    fn send(&self, message: &ToWorker) -> io::Result<()> {
        frames::write(&mut &self.control, message)
    }

    /// Waits until all its shards have opened their adapters, or the process is lost, or `stop` is set;
    /// [`Process::finish`] returns which of these happened.
    ///
    /// # Errors
    /// A shard could not open its adapter.
    pub fn opened(&mut self, stop: &AtomicBool) -> Result<(), EngineError> {
        let until = Instant::now() + ANSWER_LIMIT;
        while !stop.load(Relaxed) {
            match self.next(until) {
                Ok(Some(FromWorker::Opened)) => return Ok(()),
                Ok(Some(FromWorker::Failed(why))) => return Err(EngineError::Worker { node: self.location.node, why }),
                Ok(None) => {}
                Ok(Some(FromWorker::Ended | FromWorker::Outcome { .. } | FromWorker::Access(_))) => {
                    self.give_up("it was not ready and sent an unexpected message".to_owned());
                    return Ok(());
                }
                Err(why) => {
                    self.give_up(why);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Sends a command to a shard.
    pub fn command(&self, shard: u32, command: Command) {
        if self.send(&ToWorker::Command { shard, command }).is_err() {
            // The process is gone: `finish` reports how.
            self.failed.store(true, Relaxed);
        }
    }

    /// Has the process ended or stopped responding, or has a shard ended before its `Finish` command? Must be called
    /// several times a second.
    pub fn has_failed(&mut self) -> bool {
        self.check();
        self.failed.load(Relaxed)
    }

    /// Gives up a process without heartbeats.
    fn check(&mut self) {
        let silent = self.heartbeat.as_mut().and_then(HeartbeatWatch::too_long);
        if let (Some(length), None) = (silent, &self.given_up) {
            self.give_up(format!("it was silent for {} s", length.as_secs()));
        }
    }

    /// Gives the process up and kills it, because a frozen process does not end by itself.
    fn give_up(&mut self, why: String) {
        self.failed.store(true, Relaxed);
        self.given_up.get_or_insert(why);
        if let Some(child) = &mut self.child {
            // It may have ended already.
            let _ = child.kill();
        }
    }

    /// Ends a shard and waits for its outcome, only briefly if `stop` is set.
    ///
    /// # Errors
    /// The shard failed, or the process has ended or stopped responding: in words.
    pub fn finish(&mut self, shard: u32, stop: &AtomicBool) -> Result<ShardOutcome, String> {
        if self.given_up.is_none() {
            self.command(shard, Command::Finish);
        }
        let began = Instant::now();
        loop {
            if let Some(place) = self.early.iter().position(|(number, _)| *number == shard)
                && let Some((_, outcome)) = self.early.remove(place)
            {
                return Ok(*outcome);
            }
            let limit = if stop.load(Relaxed) { STOPPED_LIMIT } else { ANSWER_LIMIT };
            match self.next(began + limit) {
                Ok(Some(FromWorker::Outcome { shard, outcome })) => self.early.push_back((shard, outcome)),
                Ok(Some(FromWorker::Access(report))) => self.access = Some(report),
                Ok(Some(FromWorker::Ended | FromWorker::Opened) | None) => {}
                Ok(Some(FromWorker::Failed(why))) | Err(why) => return Err(why),
            }
        }
    }

    /// The report of its access network, after its shards have ended. The report is empty if the process was lost
    /// before; `None` if it set up no network.
    pub fn access(&mut self) -> Option<AccessReport> {
        let report = self.access.take().unwrap_or_default();
        self.makes_access.then_some(AccessReport { location: self.location, report })
    }

    /// The next message of the process; `None` if nothing arrived within one interval between checks.
    ///
    /// # Errors
    /// The process has ended or stopped responding, or time is up: in words.
    fn next(&mut self, until: Instant) -> Result<Option<FromWorker>, String> {
        match self.inbox.recv_timeout(if self.given_up.is_some() { Duration::ZERO } else { POLL_INTERVAL }) {
            Ok(message) => return Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => self.check(),
            Err(RecvTimeoutError::Disconnected) => {
                let end = self.end();
                self.give_up(format!("it has ended{end}"));
            }
        }
        if Instant::now() >= until {
            self.give_up("it did not respond in time".to_owned());
        }
        self.given_up.clone().map_or(Ok(None), Err)
    }

    /// How a process of this machine ended, in words, once its socket is closed.
    fn end(&mut self) -> String {
        let until = Instant::now() + POLL_INTERVAL;
        let Some(child) = &mut self.child else { return String::new() };
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return format!(" ({status})"),
                // The kernel closes the sockets of a process before its exit status is available.
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
                _ => return String::new(),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends by itself when its socket closes; if it does not, it is killed.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + END_LIMIT;
        if let Some(child) = &mut self.child {
            while matches!(child.try_wait(), Ok(None)) {
                if self.given_up.is_some() || Instant::now() >= until {
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Limits what a process may still send. It may be on another machine, and its messages are queued in memory.
struct ReceiveLimits {
    /// Bytes that it may still send.
    allowed: u64,
    /// Shards whose outcome has not arrived.
    outcomes: Vec<u32>,
    /// A report of its access network is still expected.
    access: bool,
}

impl ReceiveLimits {
    /// Is this message expected? Each of its shards sends one outcome, and its access network one report.
    fn is_wanted(&mut self, message: &FromWorker) -> bool {
        match message {
            FromWorker::Outcome { shard, .. } => {
                let place = self.outcomes.iter().position(|waited| waited == shard);
                place.map(|place| self.outcomes.swap_remove(place)).is_some()
            }
            FromWorker::Access(report) => std::mem::take(&mut self.access) && report.len() <= LARGEST_REPORT,
            FromWorker::Opened | FromWorker::Failed(_) | FromWorker::Ended => true,
        }
    }
}

/// Passes on the messages of a process until it closes its end or sends a message that is not permitted.
fn listen(mut from: UnixStream, limits: &mut ReceiveLimits, letters: &Sender<FromWorker>, failed: &AtomicBool) {
    loop {
        let message = match frames::read(&mut from, &mut limits.allowed) {
            Ok(Some(message)) if !limits.is_wanted(&message) => {
                FromWorker::Failed("it sent something that was not requested".to_owned())
            }
            Ok(Some(message)) => message,
            Ok(None) => break,
            // The process ended while data sent to it was unread: unix(7).
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => FromWorker::Failed(format!("its message could not be read: {error}")),
        };
        let is_failure = matches!(message, FromWorker::Ended | FromWorker::Failed(_));
        if is_failure {
            failed.store(true, Relaxed);
        }
        let is_last = matches!(message, FromWorker::Failed(_));
        if letters.send(message).is_err() || is_last {
            break;
        }
    }
    failed.store(true, Relaxed);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn response_to(sent: &[u8], allowed: u64) -> Vec<FromWorker> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(sent).unwrap();
        let (letters, inbox) = mpsc::channel();
        let failed = AtomicBool::new(false);
        // The other end stays open: the reader does not wait for announced data.
        listen(ours, &mut ReceiveLimits { allowed, outcomes: vec![0], access: false }, &letters, &failed);
        assert!(failed.load(Relaxed));
        drop(letters);
        inbox.iter().collect()
    }

    #[test]
    fn a_process_that_announces_more_than_its_plan_allows_is_given_up_at_once() {
        let received = response_to(&(1_u32 << 29).to_le_bytes(), 64 << 20);
        let [FromWorker::Failed(why)] = &received[..] else { panic!("{} messages", received.len()) };
        assert!(why.contains("a message of 536870912 bytes where 67108864 more are allowed"), "{why}");
    }

    #[test]
    fn a_process_that_sends_empty_messages_repeatedly_is_given_up() {
        let mut sent = vec![];
        (0..1_000).for_each(|_| frames::write(&mut sent, &FromWorker::Opened).unwrap());
        let received = response_to(&sent, 10 * 65);
        assert!(
            received.len() == 11 && matches!(received.last(), Some(FromWorker::Failed(_))),
            "{} messages",
            received.len()
        );
    }
}
