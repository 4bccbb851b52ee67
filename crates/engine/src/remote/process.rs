//! A worker process, as seen by the process that leads the run.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pubmark_model::schedule::Timeline;

use super::access::{AccessReport, LARGEST_REPORT};
use super::allowance::{allowance, log_allowance};
use super::frames;
use super::heartbeat::{HeartbeatWatch, START_LIMIT};
use super::launcher::{Launcher, Started};
use super::messages::{FromWorker, ToWorker};
use super::order::Order;
use crate::command::Command;
use crate::error::EngineError;
use crate::message_log::files::file_in;
use crate::message_log::part::{PIECE_BYTES, PartReceiver};
use crate::plan::RunPlan;
use crate::progress::Progress;
use crate::shard_outcome::ShardOutcome;
use crate::shares::WorkerLocation;

/// Longest wait for a process to open its adapters, and for a shard to end its sessions: longer than any limit of the
/// process.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// The same for a shard, also one of this process, and for a part of the message log, after `stop` was set.
pub(crate) const STOPPED_LIMIT: Duration = Duration::from_secs(30);
/// A part of the message log that arrives more slowly than this is cut off, after [`ANSWER_LIMIT`].
const SLOWEST_LOG_BYTES_PER_S: u64 = 128 << 10;
/// Memory for a piece of the message log and for the end of the log, bytes.
const LOG_MESSAGES: u64 = 2 * PIECE_BYTES as u64;
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
    /// Of its plan: the time series of its shards have these times.
    timeline: Timeline,
    /// It sets up an access network.
    makes_access: bool,
    /// The report of that network.
    access: Option<Vec<u8>>,
    /// The arrival of its part of the message log, for a process on a node.
    log: Option<Arc<LogArrival>>,
    /// The reason why it was given up, if it was.
    given_up: Option<String>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a process at a location of a plan, and sends its order, which [`Order::check`] accepted. The adapters are
    /// open when [`Process::opened`] returns.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(
        launcher: &dyn Launcher,
        place: WorkerLocation,
        plan: &RunPlan,
        order: Order,
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> io::Result<Process> {
        let Order { shards, makes_access, body } = order;
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
            timeline: plan.timeline,
            makes_access,
            access: None,
            log: None,
            given_up: None,
            reader: None,
        };
        let of_access = if makes_access { LARGEST_REPORT as u64 } else { 0 };
        let part = match &plan.message_log {
            Some(folder) if plan.on_nodes => {
                let file = OpenOptions::new().write(true).create_new(true).open(file_in(folder, first))?;
                Some(PartReceiver::of_plan(file, log_allowance(plan), plan))
            }
            _ => None,
        };
        process.log = part.as_ref().map(|_| Arc::default());
        let of_log = if part.is_some() { LOG_MESSAGES } else { 0 };
        let allowed = allowance(plan, shards.len()).saturating_add(of_access + of_log);
        let log = part.zip(process.log.clone());
        let mut limits = ReceiveLimits { allowed, outcomes: shards, access: makes_access, log };
        let (from, failed) = (process.control.try_clone()?, Arc::clone(&process.failed));
        let converse = move || {
            // An order is large, and a process that was stopped does not read it. This thread waits for that, and wakes
            // when the socket is shut down. The consequence of a failure is reported by the reading end.
            let _ = frames::write_body(&mut &from, &body, frames::LONGEST);
            drop(body);
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
                Ok(Some(
                    FromWorker::Ended | FromWorker::Outcome { .. } | FromWorker::Access(_) | FromWorker::Log(_),
                )) => {
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

    /// Number of its node.
    pub fn node(&self) -> u16 {
        self.location.node
    }

    /// Ends a shard and waits for its outcome, only briefly if `stop` is set.
    ///
    /// # Errors
    /// The shard failed, its time series are not those of the plan, or the process has ended or stopped responding: in
    /// words.
    pub fn finish(&mut self, shard: u32, stop: &AtomicBool) -> Result<ShardOutcome, String> {
        if self.given_up.is_none() {
            self.command(shard, Command::Finish);
        }
        let began = Instant::now();
        loop {
            if let Some(place) = self.early.iter().position(|(number, _)| *number == shard)
                && let Some((_, outcome)) = self.early.remove(place)
            {
                return if has_series_of(self.timeline, &outcome) {
                    Ok(*outcome)
                } else {
                    Err("its time series have another window".to_owned())
                };
            }
            let limit = if stop.load(Relaxed) { STOPPED_LIMIT } else { ANSWER_LIMIT };
            match self.next(began + limit) {
                Ok(Some(FromWorker::Outcome { shard, outcome })) => self.early.push_back((shard, outcome)),
                Ok(Some(FromWorker::Access(report))) => self.access = Some(report),
                Ok(Some(FromWorker::Ended | FromWorker::Opened | FromWorker::Log(_)) | None) => {}
                Ok(Some(FromWorker::Failed(why))) | Err(why) => return Err(why),
            }
        }
    }

    /// Receives its part of the message log into the file of the plan, if the process is on a node. To be called after
    /// its shards have ended. Waits only briefly if `stop` is set.
    ///
    /// # Errors
    /// The part is missing or incomplete: the reason, in words.
    pub fn receive_log(&mut self, stop: &AtomicBool) -> Result<(), String> {
        let Some(log) = self.log.clone() else { return Ok(()) };
        if self.given_up.is_none() {
            log.is_requested.store(true, Relaxed);
            // If the process is gone, `next` returns how.
            let _ = self.send(&ToWorker::SendLog);
        }
        let began = Instant::now();
        loop {
            let slowest = Duration::from_secs(log.bytes.load(Relaxed) / SLOWEST_LOG_BYTES_PER_S);
            let limit = if stop.load(Relaxed) { STOPPED_LIMIT } else { ANSWER_LIMIT + slowest };
            match self.next(began + limit) {
                Ok(Some(FromWorker::Log(_))) => return Ok(()),
                Ok(Some(FromWorker::Failed(why))) | Err(why) => return Err(why),
                Ok(_) => {}
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

/// Do the time series of an outcome have these times? Bins of other times cannot be added to those of other shards.
fn has_series_of(timeline: Timeline, outcome: &ShardOutcome) -> bool {
    let start_ns = timeline.start_ns();
    let fine = outcome.faults.as_ref().map(|notes| &notes.fine);
    outcome.series.matches(start_ns, timeline.duration_ns) && fine.is_none_or(|fine| fine.start_ns() == start_ns)
}

/// The arrival of a process's part of the message log, shared by the thread that receives it and the one that waits.
#[derive(Debug, Default)]
struct LogArrival {
    /// Whether the process was requested to send it.
    is_requested: AtomicBool,
    /// Bytes that have arrived.
    bytes: AtomicU64,
}

/// Limits what a process may still send. It may be on another machine, and its messages are queued in memory.
struct ReceiveLimits {
    /// Bytes that it may still send.
    allowed: u64,
    /// Shards whose outcome has not arrived.
    outcomes: Vec<u32>,
    /// A report of its access network is still expected.
    access: bool,
    /// Its part of the message log is still expected.
    log: Option<(PartReceiver, Arc<LogArrival>)>,
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
            FromWorker::Log(_) => self.log.as_ref().is_some_and(|(_, log)| log.is_requested.load(Relaxed)),
            FromWorker::Opened | FromWorker::Failed(_) | FromWorker::Ended => true,
        }
    }

    /// Stores a piece of the message log.
    ///
    /// # Errors
    /// The piece is refused; in words.
    fn store(&mut self, piece: &[u8]) -> Result<(), String> {
        let Some((part, log)) = &mut self.log else { return Ok(()) };
        part.add(piece)?;
        log.bytes.fetch_add(piece.len() as u64, Relaxed);
        Ok(())
    }
}

/// Passes on the messages of a process until it closes its end or sends a message that is not permitted. Pieces of the
/// message log are stored here, and only their end is passed on.
fn listen(mut from: UnixStream, limits: &mut ReceiveLimits, letters: &Sender<FromWorker>, failed: &AtomicBool) {
    loop {
        let allowed = limits.allowed;
        let message = match frames::read(&mut from, &mut limits.allowed) {
            Ok(Some(message)) if !limits.is_wanted(&message) => {
                FromWorker::Failed("it sent something that was not requested".to_owned())
            }
            Ok(Some(FromWorker::Log(piece))) if !piece.is_empty() => {
                // A stored piece is not in memory any more.
                limits.allowed = allowed;
                match limits.store(&piece) {
                    Ok(()) => continue,
                    Err(why) => FromWorker::Failed(why),
                }
            }
            Ok(Some(message)) => {
                limits.log.take_if(|_| matches!(message, FromWorker::Log(_)));
                message
            }
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
    use crate::message_log::files::LogFiles;
    use crate::message_log::row::ROW_BYTES;
    use crate::virtual_time::{ONE_TO_ONE, ended_at_once, plan};
    use std::io::Write as _;

    fn response_to(sent: &[u8], allowed: u64) -> Vec<FromWorker> {
        response_with(sent, allowed, None)
    }

    fn response_with(sent: &[u8], allowed: u64, log: Option<(PartReceiver, Arc<LogArrival>)>) -> Vec<FromWorker> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (letters, inbox) = mpsc::channel();
        let failed = AtomicBool::new(false);
        thread::scope(|scope| {
            // A reader that gives the process up leaves the rest unread.
            scope.spawn(|| (&theirs).write_all(sent).is_ok());
            let mut limits = ReceiveLimits { allowed, outcomes: vec![0], access: false, log };
            // The other end stays open: the reader does not wait for announced data.
            listen(ours, &mut limits, &letters, &failed);
        });
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

    #[test]
    fn a_shard_whose_time_series_have_another_window_is_lost() {
        let plan = plan(ONE_TO_ONE, Duration::from_secs(1));
        let finish = |timeline: Timeline| {
            let (control, _other) = UnixStream::pair().unwrap();
            let (letters, inbox) = mpsc::channel();
            let outcome = Box::new(ended_at_once(plan.clone()));
            letters.send(FromWorker::Outcome { shard: 0, outcome }).unwrap();
            let mut process = Process {
                child: None,
                control,
                inbox,
                early: VecDeque::new(),
                failed: Arc::default(),
                heartbeat: None,
                location: WorkerLocation { node: 0, network: None, group: None },
                timeline,
                makes_access: false,
                access: None,
                log: None,
                given_up: None,
                reader: None,
            };
            process.finish(0, &AtomicBool::new(false)).map(drop)
        };
        assert_eq!(finish(plan.timeline), Ok(()));
        let refused = Err("its time series have another window".to_owned());
        let Timeline { warmup_ns, duration_ns } = plan.timeline;
        assert_eq!(finish(Timeline { warmup_ns, duration_ns: duration_ns + 1 }), refused);
        assert_eq!(finish(Timeline { warmup_ns: warmup_ns + 1, duration_ns }), refused);
    }

    /// What arrives of these pieces of a message log, of which memory has space for two: the messages that are passed on,
    /// and the bytes that are stored.
    fn log_of(pieces: &[Vec<u8>], is_requested: bool) -> (Vec<FromWorker>, u64) {
        let mut sent = vec![];
        pieces.iter().for_each(|piece| frames::write(&mut sent, &FromWorker::Log(piece.clone())).unwrap());
        frames::write(&mut sent, &FromWorker::Failed("the end of the test".to_owned())).unwrap();
        let files = LogFiles::create(&std::env::temp_dir()).unwrap();
        let file = std::fs::File::create(files.file(0)).unwrap();
        let arrival = LogArrival { is_requested: is_requested.into(), bytes: 0.into() };
        let log = (PartReceiver::new(file.try_clone().unwrap(), u64::MAX, 1, 1), Arc::new(arrival));
        let received = response_with(&sent, LOG_MESSAGES, Some(log));
        (received, file.metadata().unwrap().len())
    }

    #[test]
    fn a_message_log_of_any_length_needs_the_memory_of_a_piece() {
        let mut pieces = vec![vec![0; PIECE_BYTES]; 40];
        pieces.push(vec![]);
        let (received, stored) = log_of(&pieces, true);
        assert!(matches!(&received[..], [FromWorker::Log(end), FromWorker::Failed(_)] if end.is_empty()));
        assert_eq!(stored, 40 * PIECE_BYTES as u64);
    }

    #[test]
    fn a_message_log_that_was_not_requested_or_goes_on_after_its_end_is_given_up() {
        let why = |(received, stored): (Vec<FromWorker>, u64)| match received.last() {
            Some(FromWorker::Failed(why)) => (why.clone(), stored),
            _ => panic!("{} messages", received.len()),
        };
        let piece = || vec![0; ROW_BYTES];
        let unrequested = "it sent something that was not requested".to_owned();
        assert_eq!(why(log_of(&[piece()], false)), (unrequested.clone(), 0));
        assert_eq!(why(log_of(&[piece(), vec![], piece()], true)), (unrequested, ROW_BYTES as u64));
        let (refused, stored) = why(log_of(&[vec![0; PIECE_BYTES + ROW_BYTES]], true));
        assert!(refused.contains("a piece of 57400 bytes") && stored == 0, "{refused}");
    }
}
