//! The loop of a shard: waits for events or for the next task, whichever is first, and passes the time of each to the
//! shard. No other code of a shard reads the clock; only adapters do, to timestamp writes and reads when they happen.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver as Commands, Sender, TryRecvError};
use std::time::Duration;

use pubmark_protocol::clients::{Clients, Waker};
use pubmark_protocol::clock;

use super::Shard;
use super::arrived::ArrivedBy;
use super::setup::Setup;
use super::timers::Task;
use super::window_usage::WindowUsage;
use crate::command::Command;
use crate::error::EngineError;
use crate::pacing::{Pacing, Turns};
use crate::plan::{READER_BEAT, REALTIME_LEAD};
use crate::realtime::Realtime;
use crate::shard_outcome::ShardOutcome;
use crate::usage::ThreadUsage;

/// Tasks executed before the shard polls its sockets again.
const TASKS_PER_TURN: usize = 128;

/// Bytes that all flooding publishers of a shard pass to the adapter before the shard polls its sockets again.
const FLOOD_TURN_BYTES: usize = 4 << 20;

/// Longest time after the drain in which a shard handles what had arrived before its end. What is left then is dropped and
/// counted, for at most as long again. Far shorter than the wait for a shard's outcome.
const ARRIVED_LIMIT: Duration = Duration::from_secs(10);

/// The clock that the loop reads.
pub trait Clock {
    /// ns of `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;
    /// CPU time of the calling thread, ns.
    fn cpu_ns(&self) -> u64;
    /// Sleeps for this time.
    fn pause(&self, time: Duration);
}

/// The machine's clock, or the run's clock if this process follows it.
struct MachineClock;

impl Clock for MachineClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn cpu_ns(&self) -> u64 {
        clock::thread_cpu_ns()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A shard with its adapter and its clock.
pub struct EventLoop<C, T> {
    shard: Shard,
    clients: C,
    clock: T,
    /// Its real-time priority, if it was requested and obtained.
    realtime: Option<Realtime>,
    /// Waits end this long before a task is due, ns.
    lead_ns: u64,
    /// The shard has subscribers: the loop turns at regular intervals even if nothing arrives.
    receives: bool,
    /// How exactly messages are sent at their due times.
    pacing: Pacing,
    turns: Turns,
    /// Minimum duration of a send.
    handicap: Option<Duration>,
    /// Pause between two turns, in a flood.
    pause: Option<Duration>,
    wakeups: u64,
    window_usage: WindowUsage,
}

impl<C: Clients, T: Clock> EventLoop<C, T> {
    /// Opens the adapter.
    ///
    /// # Errors
    /// The adapter cannot be opened, or does not support what the workload requires.
    pub fn open(setup: Setup, clock: T) -> Result<EventLoop<C, T>, EngineError> {
        let (handicap, pause, realtime, pacing) = (setup.handicap, setup.pause, setup.realtime, setup.pacing);
        let (shard, config, sessions) = Shard::new(setup);
        if !C::PAUSES && shard.sessions.all().iter().any(|session| session.work.takes_time()) {
            let text = "a subscriber with a processing time, over a client library that reads by itself";
            return Err(EngineError::Unsupported(text.to_owned()));
        }
        let realtime = realtime.and_then(Realtime::claim);
        shard.shown().realtime.store(realtime.is_some(), Relaxed);
        let receives = shard.receiving.receiver.has_subscribers() || shard.requests.has_requesters();
        let lead_ns = lead_ns(realtime.is_some());
        let mut clients = C::open(config)?;
        for session in sessions {
            clients.add_session(session);
        }
        Ok(EventLoop {
            shard,
            clients,
            clock,
            realtime,
            lead_ns,
            receives,
            pacing,
            turns: Turns::default(),
            handicap,
            pause,
            wakeups: 0,
            window_usage: WindowUsage::default(),
        })
    }

    /// Executes a command.
    pub fn command(&mut self, command: Command) {
        self.shard.execute(command, self.clock.now_ns());
        if matches!(command, Command::Close { .. }) {
            self.window_usage.end(self.usage());
        }
    }

    /// Waits for events or tasks, and handles them.
    ///
    /// # Errors
    /// The adapter can no longer wait for events.
    pub fn turn(&mut self) -> Result<(), EngineError> {
        if self.is_resting() {
            return Ok(());
        }
        let until_ns = self.until_ns();
        let failed = |source| EngineError::Poll { shard: self.shard.name.clone(), source };
        let woke_ns = self.clients.wait(until_ns).map_err(failed)?;
        self.clients.serve(woke_ns, &mut self.shard.at(woke_ns));
        self.turns.note(woke_ns, self.pacing.quantum_ns(self.shard.typical_ns()));
        self.wakeups += 1;
        self.do_tasks();
        self.shard.totals.tally.check(&self.clients);
        self.shard.serve_writable(&mut self.clients, self.clock.now_ns());
        self.shard.connect_waiting(&mut self.clients, self.clock.now_ns());
        self.flood();
        let now_ns = self.clock.now_ns();
        self.shard.show(now_ns);
        if let Some(realtime) = &mut self.realtime {
            self.lead_ns = lead_ns(realtime.check(now_ns, || self.clock.cpu_ns()));
        }
        if let Some(pause) = self.pause {
            self.clock.pause(pause);
        }
        Ok(())
    }

    /// Ends the sessions.
    pub fn finish(mut self) -> ShardOutcome {
        let ended_ns = self.clock.now_ns();
        if C::QUEUES_ARRIVALS {
            self.serve_arrived(ended_ns);
        }
        self.shard.finish(self.clients, self.window_usage.in_window(), ended_ns)
    }

    /// Handles what had arrived by the end of the drain, and was not handled because the shard was behind: it is not lost.
    fn serve_arrived(&mut self, ended_ns: u64) {
        let limit_ns = ARRIVED_LIMIT.as_nanos() as u64;
        loop {
            let took_ns = self.clock.now_ns().saturating_sub(ended_ns);
            let is_over = took_ns >= limit_ns;
            let had_unread = self.clients.has_unread();
            let mut arrived = ArrivedBy::new(self.shard.at(ended_ns), ended_ns, is_over);
            self.clients.serve(ended_ns, &mut arrived);
            let ArrivedBy { arrived, later, .. } = arrived;
            if is_over {
                self.shard.totals.figures.counters.missed += arrived;
            }
            // A queue is in the order of arrival: behind what came later there is nothing of interest.
            let continues = arrived > 0 || (!is_over && later == 0 && (had_unread || self.clients.has_unread()));
            if !continues || took_ns >= 2 * limit_ns {
                return;
            }
        }
    }

    /// Sleeps for the rest of a quantum. True if the quantum is not over yet, for example after a signal.
    fn is_resting(&self) -> bool {
        let Some(until_ns) = self.rest_until_ns() else { return false };
        let now_ns = self.clock.now_ns();
        if now_ns >= until_ns {
            return false;
        }
        self.clock.pause(Duration::from_nanos(until_ns - now_ns));
        self.clock.now_ns() < until_ns
    }

    /// Time until which the next turn waits, whatever happens meanwhile. `None` if there is work to do at once, or work
    /// left over from the last turn.
    pub fn rest_until_ns(&self) -> Option<u64> {
        let until_ns = self.turns.rest_until_ns()?;
        let next_ns = self.shard.next_ns();
        let is_behind = self.clients.has_unread() || next_ns.is_some_and(|next_ns| next_ns < self.turns.woke_ns());
        // If no messages could accumulate meanwhile, a rest would only add a sleep.
        let gathers = self.receives || next_ns.is_some_and(|next_ns| next_ns < until_ns);
        (gathers && !is_behind).then_some(until_ns)
    }

    /// Time until which the next turn waits if there is no event; a time in the past if there is work now.
    pub fn until_ns(&self) -> Option<u64> {
        self.until_task_ns().max(self.rest_until_ns())
    }

    fn until_task_ns(&self) -> Option<u64> {
        let until_ns = self.shard.next_ns().map(|until_ns| until_ns.saturating_sub(self.lead_ns));
        if !self.receives {
            return until_ns;
        }
        // Turns that only poll do not count as dense turns.
        let beat_ns = (READER_BEAT.as_nanos() as u64).max(2 * self.turns.quantum_ns());
        let beat_ns = self.clock.now_ns() + beat_ns;
        Some(until_ns.map_or(beat_ns, |until_ns| until_ns.min(beat_ns)))
    }

    /// Executes the tasks that are due, up to the limit per turn. Each task gets the time at which the loop reached it,
    /// which for a send is the *ready* timestamp.
    fn do_tasks(&mut self) {
        for _ in 0..TASKS_PER_TURN {
            let now_ns = self.clock.now_ns();
            let Some(task) = self.shard.next_task(&mut self.clients, now_ns) else { break };
            match task {
                Task::Send(_) => self.spend(now_ns),
                Task::WindowStart => self.window_usage.begin(self.usage()),
                Task::WindowEnd => self.window_usage.end(self.usage()),
                Task::Fault(fault) => self.shard.sessions.note_broken_until(fault, self.clock.now_ns()),
                _ => {}
            }
        }
    }

    /// Keeps the thread busy until the minimum duration of a send is over.
    fn spend(&self, since_ns: u64) {
        let Some(handicap) = self.handicap else { return };
        while self.clock.now_ns().saturating_sub(since_ns) < handicap.as_nanos() as u64 {
            std::hint::spin_loop();
        }
    }

    /// Lets flooding publishers pass one write each to the adapter, in rotation, until none can send or the bytes of a
    /// turn are used up.
    fn flood(&mut self) {
        let shard = &self.shard;
        if !shard.publishing.wants_to_flood(&shard.sessions, &shard.timetable) {
            return;
        }
        let mut turn_bytes = 0;
        while turn_bytes < FLOOD_TURN_BYTES {
            let mut bytes = 0;
            for position in 0..self.shard.publishing.flooding() {
                bytes += self.shard.flood_one(&mut self.clients, position, self.clock.now_ns());
            }
            if bytes == 0 {
                return;
            }
            turn_bytes += bytes;
        }
    }

    fn usage(&self) -> ThreadUsage {
        let ordinary_ns = self.realtime.as_ref().map(|realtime| realtime.ordinary_ns(self.clock.now_ns()));
        ThreadUsage {
            cpu_ns: self.clock.cpu_ns(),
            wakeups: self.wakeups,
            quantum_ns: self.turns.quantum_ns(),
            ordinary_ns,
        }
    }
}

/// How long before a due task a wait ends, ns.
fn lead_ns(is_realtime: bool) -> u64 {
    if is_realtime { REALTIME_LEAD.as_nanos() as u64 } else { 0 }
}

/// Runs a shard until the command `Finish`, or until the sender of commands is closed.
pub fn run<C: Clients>(
    setup: Setup,
    commands: &Commands<Command>,
    opened: &Sender<Waker>,
) -> Result<ShardOutcome, EngineError> {
    clock::make_sleeps_exact();
    let mut event_loop = EventLoop::<C, MachineClock>::open(setup, MachineClock)?;
    // The receiver no longer exists if the run has ended already.
    let _ = opened.send(event_loop.clients.waker());
    loop {
        match commands.try_recv() {
            Ok(Command::Finish) | Err(TryRecvError::Disconnected) => return Ok(event_loop.finish()),
            Ok(command) => event_loop.command(command),
            Err(TryRecvError::Empty) => event_loop.turn()?,
        }
    }
}
