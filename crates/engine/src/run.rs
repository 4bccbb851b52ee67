//! A run, from the first connect to the completed message accounting.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use pubmark_protocol::clock;
use pubmark_protocol::header::COMPACT_STEP_NS;
use pubmark_record::record::ProbedPairs;

use crate::command::Command;
use crate::error::EngineError;
use crate::live::{LiveLatency, LiveWatch};
use crate::merging::merge_outcomes;
use crate::message_log::files::LogFiles;
use crate::outcome::Outcome;
use crate::plan::{RunPlan, STALL};
use crate::probes;
use crate::progress::{Progress, Totals};
use crate::ramp;
use crate::remote::launcher::Launcher;
use crate::shares::{self, Side, shares};
pub use crate::sides::{ShardRun, Sides, over};
use crate::window_latency::{WindowLatency, WindowWatch};
use crate::worker::Worker;

/// Interval between two reads of the shards' progress.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time between the last connect and the start of the schedule.
const LEAD: Duration = Duration::from_millis(100);
/// The same lead if commands are sent to other machines.
const NODES_LEAD: Duration = Duration::from_millis(500);
/// Longest lead, which is reached if shards are paused.
const LONGEST_LEAD: Duration = Duration::from_secs(4);
/// Interval between two checks of whether all shards have executed `Prepare`.
const PREPARE_POLL: Duration = Duration::from_millis(1);
/// Once everything has arrived, wait this much longer for duplicates.
const SETTLE: Duration = Duration::from_millis(300);

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Subscribers connect and subscribe.
    Subscribe,
    /// Devices connect.
    Connect,
    /// The schedule runs, nothing is measured yet.
    WarmUp,
    /// The measured window.
    Measure,
    /// Waiting for late messages.
    Drain,
    /// Sessions are ended and the message accounting is completed.
    Collect,
}

/// Receives the progress of a run. Called about a hundred times a second, and at the start and end of the measured
/// window.
pub trait Observer {
    /// A phase begins.
    fn phase(&mut self, phase: Phase);
    /// The present state of the run. `elapsed` is the time since the phase began, `length` the length of the phase if
    /// it is known. `are_current` is whether the totals are: nodes send no counters while a run measures, so the totals
    /// remain those of the warm-up until each shard has sent its own in the drain.
    fn progress(
        &mut self,
        phase: Phase,
        elapsed: Duration,
        length: Option<Duration>,
        totals: &Totals,
        are_current: bool,
    );
    /// Latencies of the last seconds. Called about a hundred times a second while devices follow their schedule on this
    /// machine.
    fn latency(&mut self, latency: &LiveLatency) {
        let _ = latency;
    }
    /// Latencies since the beginning of the measured window, as a snapshot. Called once a second, and once after the
    /// last message has arrived. Not called if other machines measure the latencies.
    fn window_latency(&mut self, latency: &Arc<WindowLatency>) {
        let _ = latency;
    }
    /// Devices follow their schedule from now on. The measured window will start at this time of `CLOCK_MONOTONIC`, ns.
    fn schedule_begins(&mut self, start_ns: u64) {
        let _ = start_ns;
    }
    /// The measured window begins now: sample the system's resources.
    fn window_began(&mut self);
    /// The measured window is over: sample again.
    fn window_ended(&mut self);
    /// Has the system under test ended? Called while sessions are being established, so that the run does not wait for
    /// sessions of a system that has ended.
    fn system_has_ended(&mut self) -> bool {
        false
    }
    /// Has the run lost what carries its clients' connections to the system? It then ends, with what was measured until then.
    fn has_lost_links(&mut self) -> bool {
        false
    }
    /// Has the system work that it could not do yet: do its threads wait for a processor, or has it not read what was sent
    /// to it? Called when no more messages arrive: the missing messages may be there. The call may take a tenth of a second.
    fn system_is_behind(&mut self) -> bool {
        false
    }
    /// The wait for late messages is over; connections are still open.
    fn drained(&mut self) {}
}

struct RunDriver<'a> {
    plan: &'a RunPlan,
    publisher_shards: usize,
    worker: Worker,
    stop: &'a AtomicBool,
    observer: &'a mut dyn Observer,
    /// Latencies of the measured window; `None` unless they are measured on this machine.
    window: Option<WindowWatch>,
    /// Result of the probes.
    probed: Option<ProbedPairs>,
    /// Most sessions that were connected at one poll.
    most_online: u64,
    /// Whether the counters are current.
    are_current: bool,
}

/// Executes a run. If the plan requires separate processes, `launcher` starts them. `stop` ends the run early at any
/// moment; the outcome then has what was measured until that moment.
pub fn run(
    plan: &RunPlan,
    sides: Sides,
    launcher: Option<&dyn Launcher>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, EngineError> {
    let works = plan.workload.subscribers.iter().any(|group| !group.processing.is_zero());
    if works && plan.subscribe_at.sessions_per_subscriber() > 1 {
        let text = "a subscriber with a processing time, with independent brokers";
        return Err(EngineError::Unsupported(text.to_owned()));
    }
    let share_clients = plan.workload.subscribers.iter().any(|group| group.client.is_some());
    if share_clients && plan.subscribe_at.sessions_per_subscriber() > 1 {
        let text = "clients that send and receive on one connection, with independent brokers";
        return Err(EngineError::Unsupported(text.to_owned()));
    }
    let shares = shares(plan);
    let publisher_shards = shares::count(&shares, Side::Publish);
    let progress =
        Progress::new(shares.len()).map_err(|source| EngineError::Memory { shards: shares.len(), source })?;
    let files = plan.message_log.as_deref().map(LogFiles::create).transpose().map_err(EngineError::MessageLog)?;
    let inside = files.as_ref().map(|files| files.folder().to_owned());
    let plan = &RunPlan { message_log: inside, ..plan.clone() };
    let worker = Worker::of_plan(plan, sides, launcher, Arc::new(progress), stop)?;
    // Every process has opened its file, so the file names are no longer needed.
    let files = files.map(LogFiles::open).transpose().map_err(EngineError::MessageLog)?;
    let mut outcome = {
        let window = (!plan.on_nodes).then(WindowWatch::default);
        let (probed, most_online, are_current) = (None, 0, true);
        RunDriver { plan, publisher_shards, worker, stop, observer, window, probed, most_online, are_current }.run()?
    };
    if let (Some(log), Some(files)) = (&mut outcome.log, files) {
        log.files = files;
    }
    Ok(outcome)
}

/// How the wait for sessions ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectOutcome {
    All,
    Some,
    None,
    Stopped,
}

impl RunDriver<'_> {
    fn run(mut self) -> Result<Outcome, EngineError> {
        let [subscribers, devices] =
            [Side::Subscribe, Side::Publish].map(|side| ramp::sessions_at_start(self.plan, side));
        let mut unreachable = false;
        let mut interrupted = false;
        for (phase, wanted) in [(Phase::Subscribe, subscribers), (Phase::Connect, devices)] {
            match self.wait_for_sessions(phase, wanted) {
                ConnectOutcome::All | ConnectOutcome::Some => {}
                ConnectOutcome::None => unreachable = true,
                ConnectOutcome::Stopped => interrupted = true,
            }
            if unreachable || interrupted {
                return self.collect(None, 0, interrupted, unreachable);
            }
        }
        if self.plan.probes && !self.probe_pairs() {
            return self.collect(None, 0, true, false);
        }
        let start_ns = match self.prepare() {
            Ok(Some(start_ns)) => start_ns,
            Ok(None) => return self.collect(None, 0, true, false),
            // The shards are ended first. An error of a shard is the cause.
            Err(late) => return self.collect(None, 0, true, false).and(Err(late)),
        };
        // The machine may pause between the two clock reads for longer than the lead.
        let started_at_ns = clock::realtime_ns().wrapping_add(start_ns.wrapping_sub(clock::monotonic_ns()));
        self.observer.schedule_begins(start_ns);
        self.worker.command(Command::Begin, |_| true);
        let end_ns = start_ns + self.plan.timeline.duration_ns;
        self.observer.phase(Phase::WarmUp);
        interrupted = !self.wait_until(Phase::WarmUp, start_ns);
        if !interrupted {
            self.observer.window_began();
            if self.plan.library_sockets {
                self.worker.window_begins();
            }
            self.observer.phase(Phase::Measure);
            self.are_current = !self.plan.on_nodes;
            interrupted = !self.wait_until(Phase::Measure, end_ns);
            self.observer.window_ended();
        }
        let until_ns = if interrupted { clock::monotonic_ns().min(end_ns) } else { end_ns };
        self.worker.command(Command::Close { at_ns: until_ns }, |_| true);
        let closed_ns = until_ns.max(start_ns);
        let (drain_ns, cut_short) = if interrupted { (0, true) } else { self.drain(end_ns) };
        self.observer.drained();
        self.collect(Some((start_ns, closed_ns, started_at_ns)), drain_ns, cut_short, false)
    }

    /// The counters of all shards now.
    fn totals(&mut self) -> Totals {
        let totals = self.worker.progress.totals();
        self.most_online = self.most_online.max(totals.online);
        totals
    }

    /// Makes devices send probes until every reader has received one from each device whose topic it reads, or until
    /// the time limit. Then waits for the probes still in transit, which would otherwise arrive in the measured window.
    /// Returns false if the run ends here.
    fn probe_pairs(&mut self) -> bool {
        let wanted = probes::pairs(self.plan);
        if wanted == 0 {
            return true;
        }
        let mut rounds = probes::Rounds::new(wanted);
        let began_ns = clock::monotonic_ns();
        let mut over_ns = None;
        loop {
            let now_ns = clock::monotonic_ns();
            let totals = self.totals();
            let elapsed = Duration::from_nanos(now_ns.saturating_sub(began_ns));
            self.observer.progress(Phase::Connect, elapsed, None, &totals, self.are_current);
            if over_ns.is_none() && (totals.reached >= wanted || elapsed > probes::LIMIT) {
                over_ns = Some(now_ns);
                self.probed =
                    Some(ProbedPairs { expected: wanted, reached: totals.reached, ms: elapsed.as_millis() as u64 });
            }
            if self.stop.load(Relaxed) || self.has_failed() {
                return false;
            }
            match over_ns {
                Some(over_ns) if probes::have_arrived(over_ns, totals.last_event_ns, now_ns) => return true,
                None if rounds.is_due(totals.reached, now_ns) => self.worker.command(Command::Probe, |_| true),
                _ => {}
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Agrees with every shard on the start of the measured window, ns of `CLOCK_MONOTONIC`, before any device sends. A
    /// shard that was paused and did not know the start could not decide whether a received message belongs to the
    /// window. Returns `None` if the run ends here.
    ///
    /// # Errors
    /// A shard does not reply in time.
    fn prepare(&mut self) -> Result<Option<u64>, EngineError> {
        let mut lead = if self.plan.on_nodes { NODES_LEAD } else { LEAD };
        let limit_ns = clock::monotonic_ns() + self.plan.connect_limit.as_nanos() as u64;
        loop {
            let schedule_ns = clock::monotonic_ns() + lead.as_nanos() as u64;
            // The start is a multiple of the step of compact due times, so that rounding moves no due time out of the
            // window.
            let start_ns = (schedule_ns + self.plan.timeline.warmup_ns).next_multiple_of(COMPACT_STEP_NS);
            self.worker.command(Command::Prepare { start_ns }, |_| true);
            // Half of the lead is reserved for the `Begin` command.
            let until_ns = schedule_ns - lead.as_nanos() as u64 / 2;
            while clock::monotonic_ns() < until_ns {
                if self.worker.has_executed_all() {
                    return Ok(Some(start_ns));
                }
                if self.stop.load(Relaxed) || self.has_failed() {
                    return Ok(None);
                }
                std::thread::sleep(PREPARE_POLL);
            }
            if let Some(shard) = self.worker.late_shard().filter(|_| clock::monotonic_ns() > limit_ns) {
                let (shard, within_s) = (shard.to_owned(), self.plan.connect_limit.as_secs_f64());
                return Err(EngineError::Unprepared { shard, within_s });
            }
            lead = (lead * 2).min(LONGEST_LEAD);
        }
    }

    /// Has a part of the run ended without which it cannot go on?
    fn has_failed(&mut self) -> bool {
        self.worker.has_failed() || self.observer.has_lost_links()
    }

    fn is_publisher_shard(&self, index: usize) -> bool {
        index < self.publisher_shards
    }

    /// Establishes the sessions of one side.
    fn wait_for_sessions(&mut self, phase: Phase, wanted: u64) -> ConnectOutcome {
        self.observer.phase(phase);
        let publishers = phase == Phase::Connect;
        let shards = self.publisher_shards;
        self.worker.command(Command::Connect, |index| (index < shards) == publishers);
        let (mut began_ns, mut checked_ns) = (clock::monotonic_ns(), clock::monotonic_ns());
        let limit = self.plan.connect_limit.saturating_add(self.plan.ramp_up(wanted));
        loop {
            let totals = self.totals();
            let up = match phase {
                Phase::Subscribe => totals.subscribed,
                _ => self.side_online(publishers),
            };
            let now_ns = clock::monotonic_ns();
            let stalled_ns = now_ns.saturating_sub(checked_ns);
            checked_ns = now_ns;
            if stalled_ns > (STALL + POLL_INTERVAL).as_nanos() as u64 {
                began_ns += stalled_ns;
            }
            let elapsed = Duration::from_nanos(now_ns.saturating_sub(began_ns));
            self.observer.progress(phase, elapsed, None, &totals, self.are_current);
            if up >= wanted {
                return ConnectOutcome::All;
            }
            if self.stop.load(Relaxed) || self.has_failed() {
                return ConnectOutcome::Stopped;
            }
            if self.observer.system_has_ended() {
                return ConnectOutcome::None;
            }
            // Every session that is not established has failed at least once.
            let all_tried = up + totals.failing >= wanted;
            let refused_all = up == 0 && totals.not_authorized >= wanted;
            let hopeless = all_tried && (refused_all || elapsed > self.plan.hopeless_after);
            if hopeless || elapsed > limit {
                return if up == 0 { ConnectOutcome::None } else { ConnectOutcome::Some };
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn side_online(&self, publishers: bool) -> u64 {
        let shards = self.worker.progress.shards().iter().enumerate();
        shards
            .filter(|(index, _)| self.is_publisher_shard(*index) == publishers)
            .map(|(_, shard)| shard.online.load(Relaxed))
            .sum()
    }

    /// Waits until a time; returns false if the run was stopped before that time.
    fn wait_until(&mut self, phase: Phase, until_ns: u64) -> bool {
        let began_ns = clock::monotonic_ns();
        let length = Duration::from_nanos(until_ns.saturating_sub(began_ns));
        let progress = Arc::clone(&self.worker.progress);
        let mut live = (!self.plan.on_nodes).then(|| LiveWatch::start(&progress, began_ns));
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= until_ns {
                return true;
            }
            if self.stop.load(Relaxed) || self.has_failed() {
                return false;
            }
            if let Some(live) = &mut live {
                self.observer.latency(&live.sample(&progress, now_ns));
            }
            self.sample_window(&progress, now_ns);
            let totals = self.totals();
            let elapsed = Duration::from_nanos(now_ns - began_ns);
            self.observer.progress(phase, elapsed, Some(length), &totals, self.are_current);
            std::thread::sleep(POLL_INTERVAL.min(Duration::from_nanos(until_ns - now_ns)));
        }
    }

    /// Waits for late messages: until all have arrived, until there is no more activity, or until the limit. Returns
    /// the time that it took, ns, and whether it was stopped early. If it was stopped early, messages still in transit
    /// may wrongly be counted as lost.
    fn drain(&mut self, end_ns: u64) -> (u64, bool) {
        self.observer.phase(Phase::Drain);
        let mut complete_since_ns = None;
        let mut waited_until_ns = end_ns;
        let before = copied(&self.worker.progress);
        loop {
            let now_ns = clock::monotonic_ns();
            let elapsed = Duration::from_nanos(now_ns.saturating_sub(end_ns));
            let progress = Arc::clone(&self.worker.progress);
            self.sample_window(&progress, now_ns);
            // Before the totals are read, so that they contain the copies that make them current.
            self.are_current = !self.plan.on_nodes || are_copied_again(&progress, &before);
            let totals = self.totals();
            self.observer.progress(Phase::Drain, elapsed, Some(self.plan.drain_limit), &totals, self.are_current);
            // A shard that was paused may still have due messages to send.
            let has_closed = self.worker.has_executed_all();
            let complete = self.are_current && has_closed && self.plan.have_all_arrived(&totals);
            let since_ns = *complete_since_ns.get_or_insert(now_ns);
            if !complete {
                complete_since_ns = None;
            }
            let settled = complete && now_ns - since_ns >= SETTLE.as_nanos() as u64;
            let quiet_since_ns = totals.last_event_ns.max(waited_until_ns);
            let mut quiet = self.are_current
                && has_closed
                && now_ns.saturating_sub(quiet_since_ns) >= self.plan.quiet().as_nanos() as u64;
            // Silence says nothing about what the system has stored for subscribers that are not connected again.
            quiet &= totals.not_resumed == 0 || self.observer.system_has_ended();
            if quiet && !settled && self.observer.system_is_behind() {
                // A system that is behind is silent, but has not lost anything.
                waited_until_ns = clock::monotonic_ns();
                quiet = false;
            }
            let over = elapsed >= self.plan.drain_limit || self.has_failed();
            let done = settled || quiet || over;
            let stopped = self.stop.load(Relaxed);
            if done || stopped {
                return (now_ns.saturating_sub(end_ns), !done);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn sample_window(&mut self, progress: &Progress, now_ns: u64) {
        if let Some(latency) = self.window.as_mut().and_then(|window| window.sample(progress, now_ns)) {
            self.observer.window_latency(&latency);
        }
    }

    fn collect(
        mut self,
        window: Option<(u64, u64, u64)>,
        drain_ns: u64,
        interrupted: bool,
        unreachable: bool,
    ) -> Result<Outcome, EngineError> {
        self.observer.phase(Phase::Collect);
        let progress = Arc::clone(&self.worker.progress);
        let realtime = progress.shards().iter().all(|shard| shard.realtime.load(Relaxed));
        let began_ns = clock::monotonic_ns();
        let finished = self.worker.finish(self.stop)?;
        // Shards have settled all open messages, so these are the final counts.
        if let Some(window) = &mut self.window {
            self.observer.window_latency(&window.last(&progress));
        }
        let elapsed = Duration::from_nanos(clock::monotonic_ns().saturating_sub(began_ns));
        self.observer.progress(Phase::Collect, elapsed, None, &progress.totals(), self.are_current);
        let (start_ns, closed_ns, started_at_ns) = window.unwrap_or((0, 0, clock::realtime_ns()));
        let mut outcome = merge_outcomes(self.plan, finished.outcomes, (start_ns, closed_ns));
        if let Some(log) = &mut outcome.log {
            if let Some(lost) = finished.lost.first().filter(|_| !self.plan.on_nodes) {
                log.logged.why.get_or_insert_with(|| format!("the worker of `{}` was lost", lost.name));
            }
            log.incomplete.extend(finished.incomplete);
        }
        outcome.lost = finished.lost;
        outcome.access = finished.access;
        outcome.started_at_ns = started_at_ns;
        outcome.drain_ns = drain_ns;
        outcome.probed = self.probed;
        // Nodes send no counters while a run measures.
        outcome.most_online = (!self.plan.on_nodes).then_some(self.most_online);
        outcome.interrupted = interrupted;
        outcome.unreachable = unreachable;
        outcome.realtime = realtime && self.plan.realtime;
        Ok(outcome)
    }
}

/// By shard: how often its counters were copied from another machine. Counters that are read after it contain these copies.
fn copied(progress: &Progress) -> Vec<u64> {
    progress.shards().iter().map(|shard| shard.copied.load(Acquire)).collect()
}

/// Were the counters of all shards copied from other machines since the drain began, when they had been copied `before`
/// times? A copy that was already in transit then does not count.
fn are_copied_again(progress: &Progress, before: &[u64]) -> bool {
    copied(progress).iter().zip(before).all(|(now, before)| *now > before + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_current_when_each_shard_has_sent_its_counters_in_the_drain() {
        let (ours, theirs) = (Progress::new(2).unwrap(), Progress::new(2).unwrap());
        let copy = |shard: usize| ours.shards()[shard].copy(&theirs.shards()[shard].row());
        (0..2).for_each(copy);
        let before = copied(&ours);
        theirs.shards()[0].delivered.store(9, Relaxed);
        [0, 1, 0].into_iter().for_each(copy);
        assert_eq!(ours.totals().delivered, 9, "the totals have changed");
        assert!(!are_copied_again(&ours, &before), "what came of the second shard was in transit");
        copy(1);
        assert!(are_copied_again(&ours, &before));
    }
}
