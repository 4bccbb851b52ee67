//! A worker: shards that generate load and measure, controlled by commands. Shards that are threads of this process
//! receive commands from channels, those in worker processes ([`crate::remote`]) from a socket.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed},
};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use pubmark_protocol::clients::Waker;

use crate::command::Command;
use crate::error::EngineError;
use crate::message_log::{self, IncompletePart};
use crate::outcome::LostShard;
use crate::plan::RunPlan;
use crate::progress::Progress;
use crate::remote::AccessReport;
use crate::remote::launcher::Launcher;
use crate::remote::order::Order;
use crate::remote::process::{Process, STOPPED_LIMIT};
use crate::setup;
use crate::shard::setup::Setup;
use crate::shard_outcome::ShardOutcome;
use crate::shares::{Share, Side, WorkerLocation, shares};
use crate::sides::{ShardRun, Sides};
use crate::socket_drops::SocketDrops;

/// Longest wait for the shards of a process to open their adapters, and for a shard to end its sessions: longer than any
/// limit of an adapter and of the message log, and shorter than the wait for a worker process, which then reports the
/// shard. A client library that does not return from a call exceeds it. Once the run is stopped, both waits are shorter.
const SHARD_LIMIT: Duration = Duration::from_secs(100);
/// The same for each further shard, after one did not end: the run has failed.
const FAILED_LIMIT: Duration = Duration::from_secs(10);
/// Interval between two checks of `stop`, during a wait for a shard.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Longest waits for a shard that is a thread of this process.
#[derive(Clone, Copy)]
struct Limits {
    whole: Duration,
    /// From the time on at which `stop` was set.
    stopped: Duration,
}

impl Limits {
    /// Receives from a shard, within these limits of a wait that began then.
    fn receive<T>(self, from: &Receiver<T>, began: Instant, stop: &AtomicBool) -> Result<T, RecvTimeoutError> {
        let (mut until, mut stopped) = (began + self.whole, false);
        loop {
            let now = Instant::now();
            if !stopped && stop.load(Relaxed) {
                (until, stopped) = (until.min(now + self.stopped), true);
            }
            match from.recv_timeout(POLL_INTERVAL.min(until.saturating_duration_since(now))) {
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                result => return result,
            }
        }
    }

    /// The time in which a shard did not do what it was waited for.
    fn passed(self, stop: &AtomicBool) -> Duration {
        if stop.load(Relaxed) { self.whole.min(self.stopped) } else { self.whole }
    }
}

struct Thread {
    name: String,
    commands: Sender<Command>,
    opened: Receiver<Waker>,
    waker: Option<Waker>,
    outcome: Receiver<Result<ShardOutcome, EngineError>>,
    handle: JoinHandle<()>,
    /// Why nobody waits for it any more, if so.
    given_up: Option<EngineError>,
}

impl Thread {
    fn start(setup: Setup, run: ShardRun) -> Result<Thread, EngineError> {
        let name = setup.name.clone();
        let (commands, inbox) = mpsc::channel();
        let (announce_opened, opened) = mpsc::channel();
        let (report, outcome) = mpsc::channel();
        let main = move || {
            // If the shard was given up, nobody receives it.
            let _ = report.send(run(setup, &inbox, &announce_opened));
        };
        let handle = Builder::new()
            .name(name.replace(' ', "-"))
            .spawn(main)
            .map_err(|source| EngineError::Thread { shard: name.clone(), source })?;
        Ok(Thread { name, commands, opened, waker: None, outcome, handle, given_up: None })
    }

    /// Waits until the shard has opened its adapter, in a wait that began then. Returns false if the shard failed and ended,
    /// or was given up; its result has the reason.
    fn wait_until_open(&mut self, began: Instant, limits: Limits, stop: &AtomicBool) -> bool {
        match limits.receive(&self.opened, began, stop) {
            Ok(waker) => self.waker = Some(waker),
            Err(RecvTimeoutError::Timeout) => self.given_up = Some(self.stuck("open its client", limits.passed(stop))),
            Err(RecvTimeoutError::Disconnected) => {}
        }
        self.waker.is_some()
    }

    /// Ends the shard, and waits for its outcome within these limits.
    fn finish(mut self, limits: Limits, stop: &AtomicBool) -> Result<ShardOutcome, EngineError> {
        // Also if it was given up: it ends if its client returns after all.
        self.command(Command::Finish);
        if let Some(error) = self.given_up.take() {
            return Err(error);
        }
        let outcome = match limits.receive(&self.outcome, Instant::now(), stop) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => return Err(self.stuck("end its sessions", limits.passed(stop))),
            // It panicked.
            Err(RecvTimeoutError::Disconnected) => Err(EngineError::Lost(self.name)),
        };
        // The thread has nothing left to do.
        let _ = self.handle.join();
        outcome
    }

    fn stuck(&self, what: &'static str, limit: Duration) -> EngineError {
        EngineError::Stuck { shard: self.name.clone(), what, within_s: limit.as_secs_f64() }
    }

    fn command(&self, command: Command) {
        // A shard that has ended has failed, which `finish` reports.
        let _ = self.commands.send(command);
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Access to a shard.
enum ShardHandle {
    /// On a thread of this process; `None` after the thread was ended.
    Thread(Option<Thread>),
    /// In a worker process, by its index in [`Worker::processes`], with this number and name, for this node.
    Remote { process: usize, shard: u32, node: u16, name: String },
}

/// The outcomes of shards by their index, and the shards that were lost.
#[derive(Default)]
pub struct Finished {
    /// Outcomes, by index of the shard.
    pub outcomes: Vec<(usize, ShardOutcome)>,
    /// Shards of worker processes that were lost.
    pub lost: Vec<LostShard>,
    /// What access networks of worker processes carried.
    pub access: Vec<AccessReport>,
    /// Parts of the message log that nodes did not send completely.
    pub incomplete: Vec<IncompletePart>,
}

/// Running shards.
pub struct Worker {
    handles: Vec<ShardHandle>,
    /// By shard: number of commands sent to it.
    given: Vec<u64>,
    processes: Vec<Process>,
    /// From the start of the measured window until the first shard of this process ends.
    drops: Option<SocketDrops>,
    limits: Limits,
    /// Shared with the shards.
    pub progress: Arc<Progress>,
}

impl Worker {
    /// Starts the shards as threads, each with its main function for its adapter, and waits until each has opened the
    /// adapter.
    pub fn start(setups: Vec<(Setup, ShardRun)>, progress: Arc<Progress>) -> Result<Worker, EngineError> {
        Worker::start_within(SHARD_LIMIT, setups, progress)
    }

    /// The same with another limit for each shard.
    fn start_within(
        limit: Duration,
        setups: Vec<(Setup, ShardRun)>,
        progress: Arc<Progress>,
    ) -> Result<Worker, EngineError> {
        let mut worker = Worker::new(limit, progress);
        for (setup, run) in setups {
            let thread = Thread::start(setup, run)?;
            worker.handles.push(ShardHandle::Thread(Some(thread)));
        }
        worker.opened(&AtomicBool::new(false))
    }

    fn new(limit: Duration, progress: Arc<Progress>) -> Worker {
        let limits = Limits { whole: limit, stopped: STOPPED_LIMIT };
        Worker { handles: vec![], given: vec![], processes: vec![], drops: None, limits, progress }
    }

    /// Starts the shards of a plan: as threads, or in processes that `launcher` starts if the plan requires them. Does
    /// not wait for processes once `stop` is set.
    pub fn of_plan(
        plan: &RunPlan,
        sides: Sides,
        launcher: Option<&dyn Launcher>,
        progress: Arc<Progress>,
        stop: &AtomicBool,
    ) -> Result<Worker, EngineError> {
        let mut worker = Worker::new(SHARD_LIMIT, progress);
        if plan.message_log.is_some() {
            // What remains of the log is written first.
            worker.limits.stopped += message_log::WRITE_LIMIT;
        }
        let mut places: Vec<WorkerLocation> = vec![];
        let shares = shares(plan);
        let remote = |share: &Share| share.remote(plan).zip(launcher);
        if plan.nodes > 1 && launcher.is_none() {
            return Err(EngineError::Unsupported("nodes that nobody starts".to_owned()));
        }
        plan.fleet.limits(&plan.workload).map_err(|found| EngineError::Unsupported(found.to_string()))?;
        let mut own = setup::shards(plan, &worker.progress, |index| remote(&shares[index]).is_none());
        message_log::attach(&mut own, plan).map_err(EngineError::MessageLog)?;
        let mut own = own.into_iter();
        for (index, share) in shares.iter().enumerate() {
            let run = match share.side {
                Side::Publish => sides.publish,
                Side::Subscribe => sides.subscribe,
            };
            let handle = match remote(share) {
                Some((place, launcher)) => {
                    let process = match places.iter().position(|known| *known == place) {
                        Some(process) => process,
                        None => {
                            let its = (0u32..).zip(&shares).filter(|(_, share)| share.remote(plan) == Some(place));
                            let its = its.map(|(index, _)| index).collect();
                            let failed =
                                |source| EngineError::Launch { shard: setup::name(plan, &shares, index), source };
                            let order = Order::new(launcher, place, plan, its).map_err(failed)?;
                            order.check()?;
                            let process = Process::start(launcher, place, plan, order, &worker.progress, stop);
                            let process = process.map_err(failed)?;
                            places.push(place);
                            worker.processes.push(process);
                            places.len() - 1
                        }
                    };
                    let name = setup::name(plan, &shares, index);
                    ShardHandle::Remote { process, shard: index as u32, node: place.node, name }
                }
                None => {
                    let setup = own.next().ok_or_else(|| EngineError::Lost(setup::name(plan, &shares, index)))?;
                    ShardHandle::Thread(Some(Thread::start(setup, run)?))
                }
            };
            worker.handles.push(handle);
        }
        worker.opened(stop)
    }

    /// Waits until each shard has opened its adapter.
    fn opened(mut self, stop: &AtomicBool) -> Result<Worker, EngineError> {
        for process in &mut self.processes {
            process.opened(stop)?;
        }
        self.given = vec![0; self.handles.len()];
        let (began, mut all) = (Instant::now(), true);
        for handle in &mut self.handles {
            if let ShardHandle::Thread(Some(thread)) = handle {
                all &= thread.wait_until_open(began, self.limits, stop);
            }
        }
        match all {
            true => Ok(self),
            false => Err(self.finish(stop).err().unwrap_or_else(|| EngineError::Lost("unknown".to_owned()))),
        }
    }

    /// Sends a command to the chosen shards.
    pub fn command(&mut self, command: Command, chosen: impl Fn(usize) -> bool) {
        for (index, handle) in self.handles.iter().enumerate().filter(|(index, _)| chosen(*index)) {
            self.given[index] += 1;
            match handle {
                ShardHandle::Thread(thread) => thread.iter().for_each(|thread| thread.command(command)),
                ShardHandle::Remote { process, shard, .. } => self.processes[*process].command(*shard, command),
            }
        }
    }

    /// Has each shard executed every command that was sent to it? For shards on other machines, the answer is as recent
    /// as their last counters.
    pub fn has_executed_all(&self) -> bool {
        self.first_late().is_none()
    }

    /// Name of a shard that has not executed every command; `None` if each has. See [`Worker::has_executed_all`].
    pub fn late_shard(&self) -> Option<&str> {
        match self.handles.get(self.first_late()?)? {
            ShardHandle::Thread(thread) => thread.as_ref().map(|thread| thread.name.as_str()),
            ShardHandle::Remote { name, .. } => Some(name),
        }
    }

    fn first_late(&self) -> Option<usize> {
        let mut shards = self.progress.shards().iter().zip(&self.given);
        shards.position(|(shard, given)| shard.executed.load(Acquire) < *given)
    }

    /// Has a shard ended before its `Finish` command, or has its process ended or stopped responding? Must be called
    /// several times a second.
    pub fn has_failed(&mut self) -> bool {
        let ended =
            |handle: &ShardHandle| matches!(handle, ShardHandle::Thread(Some(thread)) if thread.handle.is_finished());
        self.handles.iter().any(ended)
            | self.processes.iter_mut().fold(false, |any, process| any | process.has_failed())
    }

    /// The measured window begins, in a run whose client libraries have UDP sockets: from now on this process counts
    /// the datagrams that the kernel drops in them.
    pub fn window_begins(&mut self) {
        if self.handles.iter().any(|handle| matches!(handle, ShardHandle::Thread(_))) {
            self.drops.get_or_insert_with(SocketDrops::begin);
        }
    }

    /// Ends a shard that is a thread of this process and returns its outcome, which it waits for only briefly once `stop` is
    /// set. The first one has the drops of all.
    pub fn finish_one(&mut self, index: usize, stop: &AtomicBool) -> Result<ShardOutcome, EngineError> {
        match self.handles.get_mut(index) {
            Some(ShardHandle::Thread(thread)) => match thread.take() {
                Some(thread) => {
                    // Before the shard closes its sockets.
                    let dropped = self.drops.take().map_or(0, |drops| drops.since());
                    let mut outcome = thread.finish(self.limits, stop).inspect_err(|error| {
                        if matches!(error, EngineError::Stuck { .. }) {
                            self.limits.whole = self.limits.whole.min(FAILED_LIMIT);
                        }
                    })?;
                    outcome.counters.library_overflowed += dropped;
                    Ok(outcome)
                }
                None => Err(EngineError::Lost("ended before".to_owned())),
            },
            _ => Err(EngineError::Lost("unknown".to_owned())),
        }
    }

    /// Ends all shards and collects their outcomes; returns the first error of a shard that is a thread of this
    /// process. Shards end one after the other, in their order: without a broker, a subscriber that ended before its
    /// devices would break their connections.
    pub fn finish(mut self, stop: &AtomicBool) -> Result<Finished, EngineError> {
        let mut finished = Finished::default();
        let mut failure = None;
        for index in 0..self.handles.len() {
            match &self.handles[index] {
                ShardHandle::Remote { process, shard, node, name } => {
                    match self.processes[*process].finish(*shard, stop) {
                        Ok(outcome) => finished.outcomes.push((index, outcome)),
                        Err(why) => {
                            finished.lost.push(LostShard { node: *node, shard: *shard, name: name.clone(), why });
                        }
                    }
                }
                ShardHandle::Thread(_) => match self.finish_one(index, stop) {
                    Ok(outcome) => finished.outcomes.push((index, outcome)),
                    Err(error) => failure = failure.or(Some(error)),
                },
            }
        }
        finished.access = self.processes.iter_mut().filter_map(Process::access).collect();
        // After all shards have ended: the wait for one process's part must not delay the end of others.
        for process in &mut self.processes {
            if let Err(why) = process.receive_log(stop) {
                finished.incomplete.push(IncompletePart { node: process.node(), why });
            }
        }
        failure.map_or(Ok(finished), Err)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;
    use crate::virtual_time::{ONE_TO_ONE, plan};

    /// A limit for shards that never do what they are waited for.
    const AT_ONCE: Duration = Duration::from_millis(10);
    /// Whether the shard of [`ends`] was ended; one test has such a shard.
    static HAS_ENDED: AtomicBool = AtomicBool::new(false);

    /// A shard whose client library does not return from its opening.
    fn does_not_open(_: Setup, _: &Receiver<Command>, _: &Sender<Waker>) -> Result<ShardOutcome, EngineError> {
        loop {
            thread::park();
        }
    }

    /// A shard whose client library does not return once it is open.
    fn does_not_end(_: Setup, _: &Receiver<Command>, opened: &Sender<Waker>) -> Result<ShardOutcome, EngineError> {
        opened.send(Waker::new(|| {})).unwrap();
        loop {
            thread::park();
        }
    }

    /// A shard that ends on `Command::Finish`, with an error.
    fn ends(_: Setup, commands: &Receiver<Command>, opened: &Sender<Waker>) -> Result<ShardOutcome, EngineError> {
        opened.send(Waker::new(|| {})).unwrap();
        while commands.recv().unwrap() != Command::Finish {}
        HAS_ENDED.store(true, Relaxed);
        Err(EngineError::Lost("ended".to_owned()))
    }

    /// A worker of two shards.
    fn start(limit: Duration, runs: [ShardRun; 2]) -> Result<Worker, EngineError> {
        let plan = plan(ONE_TO_ONE, Duration::from_secs(1));
        let progress = Arc::new(Progress::new(runs.len()).unwrap());
        let setups = setup::shards(&plan, &progress, |_| true);
        Worker::start_within(limit, setups.into_iter().zip(runs).collect(), progress)
    }

    #[test]
    fn a_client_that_does_not_open_is_an_error_that_names_its_shard() {
        let error = start(AT_ONCE, [does_not_open, does_not_open]).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "shard `publisher 0` did not open its client within 0 s");
    }

    #[test]
    fn a_client_that_does_not_end_is_an_error_and_the_other_shards_are_ended() {
        let mut worker = start(SHARD_LIMIT, [does_not_end, ends]).unwrap();
        worker.limits.whole = AT_ONCE;
        let error = worker.finish(&AtomicBool::new(false)).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "shard `publisher 0` did not end its sessions within 0 s");
        let until = Instant::now() + SHARD_LIMIT;
        while !HAS_ENDED.load(Relaxed) {
            assert!(Instant::now() < until, "the other shard was not ended");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_client_that_does_not_end_is_given_up_sooner_once_the_run_is_stopped() {
        let mut worker = start(SHARD_LIMIT, [does_not_end, does_not_end]).unwrap();
        worker.limits.stopped = AT_ONCE;
        let error = worker.finish(&AtomicBool::new(true)).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "shard `publisher 0` did not end its sessions within 0 s");
    }

    #[test]
    fn a_shard_that_panics_is_lost() {
        fn panics(_: Setup, _: &Receiver<Command>, _: &Sender<Waker>) -> Result<ShardOutcome, EngineError> {
            panic!("a defect")
        }
        let error = start(SHARD_LIMIT, [panics, panics]).map(drop).unwrap_err();
        assert!(matches!(&error, EngineError::Lost(shard) if shard == "publisher 0"), "{error:?}");
    }
}
