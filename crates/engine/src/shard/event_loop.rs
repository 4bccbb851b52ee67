//! The loop of a shard: waits for the system or for the next task, whichever is first, and gives the shard the time of each. It is
//! the one place that reads the clock; the adapters' own stamps, of writes and reads, are taken where these happen.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver as Commands, Sender, TryRecvError};
use std::time::Duration;

use pubmark_protocol::clients::{Clients, Waker};
use pubmark_protocol::clock;

use super::Shard;
use super::setup::Setup;
use super::spending::Spending;
use super::timers::Task;
use crate::command::Command;
use crate::error::EngineError;
use crate::pacing::{Pacing, Turns};
use crate::plan::{IDLE_READER_BEAT, READER_BEAT, REALTIME_LEAD};
use crate::realtime::Realtime;
use crate::shard_outcome::ShardOutcome;
use crate::spent::Spent;

/// Tasks done before the shard looks at its sockets again.
const TASKS_PER_TURN: usize = 128;

/// Bytes that all flooding publishers of a shard hand over before the shard looks at its sockets again.
const FLOOD_TURN_BYTES: usize = 4 << 20;

/// Where the loop reads the time.
pub trait Clock {
    /// ns of `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;
    /// CPU time of the calling thread, ns.
    fn cpu_ns(&self) -> u64;
    /// Lets this time pass.
    fn pause(&self, time: Duration);
}

/// The machine's, or the run's where this process follows it.
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
    /// Its real-time priority, where it was asked for and obtained.
    realtime: Option<Realtime>,
    /// Waits end this much before a task is due.
    lead_ns: u64,
    /// Somebody receives here: the loop turns now and then even if nothing comes.
    receives: bool,
    /// How exactly it sends at due times.
    pacing: Pacing,
    turns: Turns,
    /// Least time of a send.
    handicap: Option<Duration>,
    /// Pause between two turns, in a flood.
    pause: Option<Duration>,
    wakeups: u64,
    spending: Spending,
}

impl<C: Clients, T: Clock> EventLoop<C, T> {
    /// Opens the adapter.
    ///
    /// # Errors
    /// The adapter cannot be opened, or not do what the workload asks for.
    pub fn open(setup: Setup, clock: T) -> Result<EventLoop<C, T>, EngineError> {
        let (handicap, pause, realtime, pacing) = (setup.handicap, setup.pause, setup.realtime, setup.pacing);
        let (shard, config, sessions) = Shard::new(setup);
        if !C::PAUSES && shard.sessions.all().iter().any(|session| session.work.takes_time()) {
            let text = "a subscriber that takes its time over each message, over clients that read by themselves";
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
            spending: Spending::default(),
        })
    }

    /// Carries out a command.
    pub fn command(&mut self, command: Command) {
        self.shard.execute(command, self.clock.now_ns());
        if matches!(command, Command::Close { .. }) {
            self.spending.end(self.spent());
        }
    }

    /// Waits for something to do, and does it.
    ///
    /// # Errors
    /// The adapter cannot wait any more.
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
    pub fn finish(self) -> ShardOutcome {
        self.shard.finish(self.clients, self.spending.in_window(), self.clock.now_ns())
    }

    /// Lets the rest of a quantum pass. True where it is not over yet, as after a signal.
    fn is_resting(&self) -> bool {
        let Some(until_ns) = self.rest_until_ns() else { return false };
        let now_ns = self.clock.now_ns();
        if now_ns >= until_ns {
            return false;
        }
        self.clock.pause(Duration::from_nanos(until_ns - now_ns));
        self.clock.now_ns() < until_ns
    }

    /// Until when the next turn waits, whatever happens meanwhile; not while something is to be done at once, or was left
    /// over.
    pub fn rest_until_ns(&self) -> Option<u64> {
        let until_ns = self.turns.rest_until_ns()?;
        let next_ns = self.shard.next_ns();
        let is_behind = self.clients.has_unread() || next_ns.is_some_and(|next_ns| next_ns < self.turns.woke_ns());
        // Where nothing could gather, a rest is a sleep more.
        let gathers = self.receives || next_ns.is_some_and(|next_ns| next_ns < until_ns);
        (gathers && !is_behind).then_some(until_ns)
    }

    /// Until when the next turn waits, if nothing comes; a time in the past if there is work now.
    pub fn until_ns(&self) -> Option<u64> {
        self.until_task_ns().max(self.rest_until_ns())
    }

    fn until_task_ns(&self) -> Option<u64> {
        let until_ns = self.shard.next_ns().map(|until_ns| until_ns.saturating_sub(self.lead_ns));
        if !self.receives {
            return until_ns;
        }
        let now_ns = self.clock.now_ns();
        let after = |beat: Duration| {
            // Beats by themselves are not dense turns.
            let beat_ns = now_ns + (beat.as_nanos() as u64).max(2 * self.turns.quantum_ns());
            until_ns.map_or(beat_ns, |until_ns| until_ns.min(beat_ns))
        };
        let short_ns = after(READER_BEAT);
        // The counters of other shards are read only where it matters.
        let is_idle = until_ns != Some(short_ns) && self.shard.awaits_nothing();
        Some(if is_idle { after(IDLE_READER_BEAT) } else { short_ns })
    }

    /// Does the tasks whose time has come, at most a turn's worth. Each task gets the time at which the loop reached it: a send's is its *ready* stamp.
    fn do_tasks(&mut self) {
        for _ in 0..TASKS_PER_TURN {
            let now_ns = self.clock.now_ns();
            let Some(task) = self.shard.next_task(&mut self.clients, now_ns) else { break };
            match task {
                Task::Send(_) => self.spend(now_ns),
                Task::WindowStart => self.spending.begin(self.spent()),
                Task::WindowEnd => self.spending.end(self.spent()),
                Task::Fault(fault) => self.shard.sessions.note_broken_until(fault, self.clock.now_ns()),
                _ => {}
            }
        }
    }

    /// Keeps the thread busy until the least time of a send is over.
    fn spend(&self, since_ns: u64) {
        let Some(handicap) = self.handicap else { return };
        while self.clock.now_ns().saturating_sub(since_ns) < handicap.as_nanos() as u64 {
            std::hint::spin_loop();
        }
    }

    /// Lets flooding publishers hand over a write's worth each, in turns, until none can or a turn's worth is out.
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

    fn spent(&self) -> Spent {
        let ordinary_ns = self.realtime.as_ref().map(|realtime| realtime.ordinary_ns(self.clock.now_ns()));
        Spent { cpu_ns: self.clock.cpu_ns(), wakeups: self.wakeups, quantum_ns: self.turns.quantum_ns(), ordinary_ns }
    }
}

/// How long before a task is due waits end, ns.
fn lead_ns(is_realtime: bool) -> u64 {
    if is_realtime { REALTIME_LEAD.as_nanos() as u64 } else { 0 }
}

/// Runs a shard until the command to finish, or until nobody can send commands any more.
pub fn run<C: Clients>(
    setup: Setup,
    commands: &Commands<Command>,
    opened: &Sender<Waker>,
) -> Result<ShardOutcome, EngineError> {
    clock::make_sleeps_exact();
    let mut event_loop = EventLoop::<C, MachineClock>::open(setup, MachineClock)?;
    // Nobody waits for it where the run has ended already.
    let _ = opened.send(event_loop.clients.waker());
    loop {
        match commands.try_recv() {
            Ok(Command::Finish) | Err(TryRecvError::Disconnected) => return Ok(event_loop.finish()),
            Ok(command) => event_loop.command(command),
            Err(TryRecvError::Empty) => event_loop.turn()?,
        }
    }
}
