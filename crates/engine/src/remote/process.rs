//! The leading end of a worker process.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::frames;
use super::messages::{FromWorker, ToWorker};
use super::order::Order;
use super::{Launcher, Started};
use crate::error::EngineError;
use crate::outcome::ShardOutcome;
use crate::plan::RunPlan;
use crate::progress::Progress;
use crate::shares::Place;
use crate::worker::Command;

/// Longest wait for a process to open its adapters, and for a shard to end its sessions: longer than any of its own limits.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// Longest wait for a process to end once its socket is closed.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A worker process, of this machine or of a node. It ends when this is dropped.
pub(crate) struct Process {
    child: Option<Child>,
    control: UnixStream,
    inbox: Receiver<FromWorker>,
    /// Outcomes that came before they were asked for.
    early: VecDeque<(u32, Box<ShardOutcome>)>,
    failed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts one at a place of a plan, for shards by their index, and says what to do. The adapters are open when
    /// [`Process::opened`] returns.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        launcher: &dyn Launcher,
        place: Place,
        plan: &RunPlan,
        shards: Vec<u32>,
        progress: &Arc<Progress>,
    ) -> io::Result<Process> {
        let Started { control, child } = launcher.launch(place, &shards, progress)?;
        let failed = Arc::new(AtomicBool::new(false));
        let (letters, inbox) = mpsc::channel();
        let mut process = Process { child, control, inbox, early: VecDeque::new(), failed, reader: None };
        let (from, failed) = (process.control.try_clone()?, Arc::clone(&process.failed));
        process.reader = Some(
            thread::Builder::new().name("worker-reader".to_owned()).spawn(move || listen(from, &letters, &failed))?,
        );
        process.say(&ToWorker::Order(Box::new(Order::new(plan, launcher.speaks(), shards))))?;
        Ok(process)
    }

    fn say(&self, message: &ToWorker) -> io::Result<()> {
        frames::write(&mut &self.control, message)
    }

    /// Waits until all its shards have opened their adapters.
    ///
    /// # Errors
    /// One could not; the process is gone, or says nothing.
    pub fn opened(&mut self) -> Result<(), EngineError> {
        match self.next(Instant::now() + ANSWER_LIMIT)? {
            FromWorker::Opened => Ok(()),
            _ => Err(EngineError::Worker("it was not ready and said something else".to_owned())),
        }
    }

    /// Tells a shard.
    pub fn tell(&self, shard: u32, command: Command) {
        if self.say(&ToWorker::Tell { shard, command }).is_err() {
            // It is gone: `finish` says how.
            self.failed.store(true, Relaxed);
        }
    }

    /// Is it gone, or has a shard ended before it was told to?
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Ends a shard and waits for what it found out.
    ///
    /// # Errors
    /// It failed, or the process is gone.
    pub fn finish(&mut self, shard: u32) -> Result<ShardOutcome, EngineError> {
        self.tell(shard, Command::Finish);
        let until = Instant::now() + ANSWER_LIMIT;
        loop {
            if let Some(place) = self.early.iter().position(|(number, _)| *number == shard)
                && let Some((_, outcome)) = self.early.remove(place)
            {
                return Ok(*outcome);
            }
            match self.next(until)? {
                FromWorker::Outcome { shard, outcome } => self.early.push_back((shard, outcome)),
                FromWorker::Ended | FromWorker::Opened => {}
                FromWorker::Failed(why) => return Err(EngineError::Worker(why)),
            }
        }
    }

    fn next(&mut self, until: Instant) -> Result<FromWorker, EngineError> {
        match self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(FromWorker::Failed(why)) => Err(EngineError::Worker(why)),
            Ok(message) => Ok(message),
            Err(RecvTimeoutError::Timeout) => {
                Err(EngineError::Worker(format!("it did not answer within {} s", ANSWER_LIMIT.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let end = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
                let end = end.map(|status| format!(" ({status})")).unwrap_or_default();
                Err(EngineError::Worker(format!("it is gone{end}")))
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends by itself when nobody can tell it anything any more; if not, it is made to.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + END_LIMIT;
        if let Some(child) = &mut self.child {
            while matches!(child.try_wait(), Ok(None)) {
                if Instant::now() >= until {
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

/// Passes on what a process says until it closes its end.
fn listen(mut from: UnixStream, letters: &Sender<FromWorker>, failed: &AtomicBool) {
    loop {
        let message = match frames::read(&mut from) {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(error) => FromWorker::Failed(format!("what it said could not be read: {error}")),
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
