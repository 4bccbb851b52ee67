//! The main function of a worker process: executes commands until its socket is closed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pubmark_protocol::clock;

use super::access::{AccessNetwork, Service};
use super::frames;
use super::heartbeat::beat;
use super::messages::{FromWorker, ToWorker};
use super::task::{MemoryFile, WorkerTask};
use crate::command::Command;
use crate::error::EngineError;
use crate::message_log::{self, part};
use crate::progress::Progress;
use crate::setup;
use crate::shares::{Side, shares};
use crate::worker::Worker;

/// Interval between two checks of whether a shard has ended by itself.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs shards as commanded by the other end of `control`, with counters in `memory`, until that end closes. Must be
/// called while the process has no other thread.
///
/// # Errors
/// The other end closed within a message.
pub fn serve(control: UnixStream, memory: OwnedFd, service: Service) -> io::Result<()> {
    let mut from = control.try_clone()?;
    let to = Mutex::new(control);
    let report = |message: &FromWorker| {
        send(&mut *to.lock().unwrap_or_else(PoisonError::into_inner), message, frames::LONGEST);
    };
    // The process that leads a run started this one, so it may use any amount of its memory.
    let mut allowed = u64::MAX;
    let Some(first) = frames::read(&mut from, &mut allowed)? else { return Ok(()) };
    let ToWorker::Task(task) = first else {
        report(&FromWorker::Failed("its first message did not start a run".to_owned()));
        return Ok(());
    };
    let Started { mut worker, mut access, log, library_sockets, files: _files } = match start(&task, memory, service) {
        Ok(started) => started,
        Err(why) => {
            report(&FromWorker::Failed(why));
            return Ok(());
        }
    };
    report(&FromWorker::Opened);
    let (commands, inbox) = mpsc::channel();
    // When the socket has closed, the process ends whatever its shards are doing, because nothing can be reported any
    // more.
    std::thread::Builder::new().name("commands".to_owned()).spawn(move || {
        while let Ok(Some(message @ (ToWorker::Command { .. } | ToWorker::SendLog))) =
            frames::read(&mut from, &mut allowed)
        {
            if commands.send(message).is_err() {
                return;
            }
        }
        (service.on_node_lost)();
    })?;
    let mut has_ended = false;
    let mut unfinished = task.shards.len();
    let mut window_ns = None;
    // Start of the window in which sockets of libraries are observed.
    let mut observe_ns: Option<u64> = None;
    loop {
        if observe_ns.take_if(|start_ns| clock::monotonic_ns() >= *start_ns).is_some() {
            worker.window_begins();
        }
        match inbox.recv_timeout(POLL_INTERVAL) {
            Ok(ToWorker::SendLog) => {
                // An empty piece, also without a log, says that all was sent.
                match log.as_ref().map_or(Ok(()), |log| part::send(log, |piece| report(&FromWorker::Log(piece)))) {
                    Ok(()) => report(&FromWorker::Log(vec![])),
                    Err(error) => report(&FromWorker::Failed(format!("failed to read the message log: {error}"))),
                }
            }
            // The task was the first message.
            Ok(ToWorker::Task(_)) => {}
            Ok(ToWorker::Command { shard, command }) => {
                let Some(place) = task.shards.iter().position(|own| *own == shard) else { continue };
                match command {
                    Command::Finish => {
                        if unfinished == task.shards.len()
                            && let Some(access) = &mut access
                        {
                            access.drained();
                        }
                        // The process that leads the run gives this one up if the run is stopped.
                        let outcome = worker.finish_one(place, &AtomicBool::new(false));
                        unfinished = unfinished.saturating_sub(1);
                        if let Some(mut access) = access.take_if(|_| unfinished == 0) {
                            report(&FromWorker::Access(access.finish()));
                        }
                        match outcome {
                            Ok(outcome) => report(&FromWorker::Outcome { shard, outcome: Box::new(outcome) }),
                            Err(error) => report(&FromWorker::Failed(words(&error))),
                        }
                    }
                    command => {
                        if let Command::Prepare { start_ns } = command {
                            window_ns = Some(start_ns);
                            observe_ns = library_sockets.then_some(start_ns);
                        }
                        // Each shard receives the command; the first one counts.
                        if command == Command::Begin
                            && let (Some(access), Some(start_ns)) = (&mut access, window_ns.take())
                        {
                            access.begin(start_ns);
                        }
                        worker.command(command, |index| index == place);
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if !has_ended && worker.has_failed() {
                    has_ended = true;
                    report(&FromWorker::Ended);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Sends a message of at most `longest` bytes, or the reason why it cannot be sent.
fn send(to: &mut impl Write, message: &FromWorker, longest: usize) {
    if let Err(error) = frames::write_within(to, message, longest) {
        // The process that led the run may have ended. Then this fails as well, and the reader detects that.
        let _ = frames::write(to, &FromWorker::Failed(format!("its message could not be sent: {error}")));
    }
}

/// Running shards, and the access network that was set up for them.
struct Started {
    worker: Worker,
    access: Option<Box<dyn AccessNetwork>>,
    /// The message log of a process on a node, to be sent after the run.
    log: Option<File>,
    /// [`RunPlan::library_sockets`](crate::plan::RunPlan::library_sockets).
    library_sockets: bool,
    /// Certificates and keys of a process on a node.
    files: Vec<MemoryFile>,
}

fn start(task: &WorkerTask, memory: OwnedFd, service: Service) -> Result<Started, String> {
    let mut access = task.access.as_deref().map(service.access).transpose()?;
    let progress = Progress::of_run(memory).map_err(|error| error.to_string())?;
    let progress = Arc::new(progress);
    // Started before any step that takes long: computing a large fleet, opening a library.
    beat(&progress, task.shards.first().map_or(0, |shard| *shard as usize)).map_err(|error| error.to_string())?;
    let sides = (service.sides)(&task.adapter_names)?;
    let files = task.files().map_err(|error| format!("failed to store the files of the run in memory: {error}"))?;
    let plan = task.plan(&files);
    let shares = shares(&plan);
    if progress.shards().len() != shares.len() {
        return Err(format!("memory for {} shards in a run of {}", progress.shards().len(), shares.len()));
    }
    follow_clock(&progress, service.on_node_lost).map_err(|error| error.to_string())?;
    let plan = match &mut access {
        Some(access) => access.connect(plan)?,
        None => plan,
    };
    let own = |index: usize| u32::try_from(index).is_ok_and(|index| task.shards.contains(&index));
    let mut setups = setup::shards(&plan, &progress, own);
    let attached = match plan.on_nodes {
        true => message_log::attach_on_node(&mut setups, &plan),
        false => message_log::attach(&mut setups, &plan).map(|()| None),
    };
    let log = attached.map_err(|error| format!("failed to write or read the message log: {error}"))?;
    let setups = setups.into_iter().map(|setup| match shares[setup.index].side {
        Side::Publish => (setup, sides.publish),
        Side::Subscribe => (setup, sides.subscribe),
    });
    let worker = Worker::start(setups.collect(), progress).map_err(|error| words(&error))?;
    Ok(Started { worker, access, log, library_sockets: plan.library_sockets, files })
}

/// Longest time without a heartbeat of the node that maintains the run's clock. After it the node is frozen or gone,
/// and nothing else could end this process.
const KEEPER_LIMIT: Duration = Duration::from_secs(4);

/// If a node maintains the run's clock, this process follows it. `on_node_lost` is called when the node no longer
/// maintains the clock, and should end the process.
///
/// # Errors
/// The thread that watches the node cannot be started.
pub fn follow_clock(progress: &Arc<Progress>, on_node_lost: fn()) -> io::Result<()> {
    if progress.run_clock().alive_ns().is_none() {
        return Ok(());
    }
    // Timestamps use it until the process ends.
    let progress: &'static Arc<Progress> = Box::leak(Box::new(Arc::clone(progress)));
    let kept = progress.run_clock();
    clock::follow(kept);
    std::thread::Builder::new().name("keeper-watch".to_owned()).spawn(move || {
        loop {
            let alive_ns = kept.alive_ns().unwrap_or(0);
            let silent = Duration::from_nanos(clock::machine_ns().saturating_sub(alive_ns));
            if silent > KEEPER_LIMIT {
                on_node_lost();
            }
            std::thread::sleep(POLL_INTERVAL * 5);
        }
    })?;
    Ok(())
}

/// An error with its causes.
fn words(error: &EngineError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        text.push_str(&format!(": {deeper}"));
        cause = deeper.source();
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn in_place_of_a_message_that_is_too_long_its_reader_gets_the_reason() {
        let mut sent = vec![];
        // Two bytes more: which message it is, and its length.
        let report = FromWorker::Access(vec![7; 99]);
        send(&mut sent, &report, 101);
        send(&mut sent, &report, 100);
        let mut rest = sent.as_slice();
        let mut next = || frames::read::<FromWorker>(&mut rest, &mut 999).unwrap();
        assert!(matches!(next(), Some(FromWorker::Access(report)) if report.len() == 99));
        let Some(FromWorker::Failed(why)) = next() else { panic!("no reason") };
        assert_eq!(why, "its message could not be sent: a message of 101 bytes where at most 100 are allowed");
    }
}
