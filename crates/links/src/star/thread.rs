//! The emulator's thread: start, commands, state, end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use pubmark_model::link::Link;
use pubmark_protocol::clock;
use pubmark_protocol::epoll::{Epoll, Events, Interest};

use super::emulator::{Emulator, Observer, links};
use super::{Command, Snapshot, Strays};
use crate::direction::SharedCounters;
use crate::error::LinkError;
use crate::lateness::SharedLateness;
use crate::namespace::spawn;
use crate::trunk::{SharedTrunk, TrunkEnd, TrunkPort};

/// Above the engine's shards (10): a sender that waits for its packets to be forwarded must not take the CPU from it.
const PRIORITY: libc::c_int = 20;

/// Name of the thread; the kernel stores 15 bytes.
const NAME: &str = "pubmark-links";

/// Descriptors that are ready at once, at most; the others follow with the next wait.
const EVENTS: usize = 64;

/// Of the waker among the descriptors: no port has this number.
const WAKER: u64 = u64::MAX;
/// Of the trunk, likewise.
const TRUNK: u64 = u64::MAX - 1;

/// What the thread shows while it runs.
#[derive(Debug)]
pub struct Shared {
    /// By direction.
    pub counters: Vec<SharedCounters>,
    /// Of deliveries.
    pub lateness: SharedLateness,
    /// [`Snapshot::read_wait`].
    pub read_wait: SharedLateness,
    strays: [AtomicU64; 4],
    realtime: AtomicBool,
    thread: AtomicI32,
    /// CPU time at the thread's end, ns.
    final_cpu_ns: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn new(directions: usize) -> Shared {
        Shared {
            counters: (0..directions).map(|_| SharedCounters::default()).collect(),
            lateness: SharedLateness::new(),
            read_wait: SharedLateness::new(),
            strays: Default::default(),
            realtime: AtomicBool::new(false),
            thread: AtomicI32::new(0),
            final_cpu_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Shows what no link carried.
    pub fn publish_strays(&self, strays: &Strays) {
        let Strays { noise, unroutable, malformed, undeliverable } = *strays;
        for (shared, count) in self.strays.iter().zip([noise, unroutable, malformed, undeliverable]) {
            shared.store(count, Ordering::Relaxed);
        }
    }

    fn strays(&self) -> Strays {
        let [noise, unroutable, malformed, undeliverable] =
            [0, 1, 2, 3].map(|index: usize| self.strays[index].load(Ordering::Relaxed));
        Strays { noise, unroutable, malformed, undeliverable }
    }

    /// CPU time of the thread, ns: its own word once it has ended, before that the scheduler's (proc_pid_schedstat: the
    /// first number), which is a scheduler tick behind at most.
    fn cpu_ns(&self) -> u64 {
        let path = format!("/proc/self/task/{}/schedstat", self.thread.load(Ordering::Relaxed));
        let running = std::fs::read_to_string(path).ok();
        let running = running.and_then(|text| text.split(' ').next()?.parse().ok());
        match self.final_cpu_ns.load(Ordering::Acquire) {
            0 => running.unwrap_or(0),
            ended => ended,
        }
    }
}

/// How the thread is to work.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSettings {
    /// By group.
    pub links: Vec<Link>,
    /// Chooses the draws.
    pub seed: u64,
    /// What may be held, of all links together.
    pub most_held_bytes: u64,
    /// Use SCHED_FIFO.
    pub realtime: bool,
    /// To the groups of other stars.
    pub trunk: Option<Arc<TrunkEnd>>,
}

/// The running thread; ended in order when dropped.
#[derive(Debug)]
pub(crate) struct Star {
    shared: Arc<Shared>,
    trunk: Option<Arc<SharedTrunk>>,
    commands: Sender<Command>,
    waker: Arc<OwnedFd>,
    thread: Option<JoinHandle<io::Result<Vec<File>>>>,
}

impl Star {
    /// Starts carrying packets between `ports`, the core's first.
    pub fn start<O: Observer>(ports: Vec<File>, setting: ThreadSettings, observer: O) -> Result<Star, LinkError> {
        // SAFETY: no pointers are passed; the result is checked.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(LinkError::last("make the emulator's waker"));
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let waker = Arc::new(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let shared = Arc::new(Shared::new(2 * setting.links.len()));
        let (commands, receiver) = mpsc::channel();
        let (own_shared, own_waker) = (Arc::clone(&shared), Arc::clone(&waker));
        let (ready, started) = mpsc::channel();
        let trunk = setting.trunk.clone().map(|end| (end, Arc::new(SharedTrunk::new())));
        let port = trunk.clone().map(|(end, shared)| TrunkPort::new(end, shared));
        let thread = spawn(NAME, move || {
            prepare(&own_shared, setting.realtime);
            let ThreadSettings { links, seed, most_held_bytes, .. } = setting;
            let emulator = Emulator::new(ports, &links, seed, most_held_bytes, Arc::clone(&own_shared), observer, port);
            // The receiver is gone if the start was given up.
            let _ = ready.send(());
            let result = run(emulator, &own_shared, &own_waker, &receiver);
            own_shared.final_cpu_ns.store(clock::thread_cpu_ns().max(1), Ordering::Release);
            result
        })?;
        let trunk = trunk.map(|(_, shared)| shared);
        let mut star = Star { shared, trunk, commands, waker, thread: Some(thread) };
        if started.recv().is_err() {
            return Err(star.end().err().unwrap_or(LinkError::Stopped { reason: "it never started".to_owned() }));
        }
        Ok(star)
    }

    /// Sends a command to the thread, which executes it at once.
    pub fn command(&self, command: Command) -> Result<(), LinkError> {
        self.commands.send(command).map_err(|_| LinkError::Stopped { reason: "its thread has ended".to_owned() })?;
        self.wake();
        Ok(())
    }

    /// Is the thread still running?
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// All counters now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            links: links(&self.shared),
            strays: self.shared.strays(),
            lateness: self.shared.lateness.read(),
            read_wait: self.shared.read_wait.read(),
            trunk: self.trunk.as_ref().map(|trunk| trunk.read()),
            cpu_ns: self.shared.cpu_ns(),
            realtime: self.shared.realtime.load(Ordering::Relaxed),
        }
    }

    /// Ends the thread and returns the interfaces, still up. What is on a link then is not delivered.
    pub fn end(&mut self) -> Result<Vec<File>, LinkError> {
        let Some(thread) = self.thread.take() else { return Ok(Vec::new()) };
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        match thread.join() {
            Ok(result) => result.map_err(|error| LinkError::Stopped { reason: error.to_string() }),
            Err(_) => Err(LinkError::Stopped { reason: "its thread panicked".to_owned() }),
        }
    }

    fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight live bytes. It fails only if the counter is full, and then the thread is woken already.
        unsafe { libc::write(self.waker.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        // `end` and `is_running` have reported this error already.
        let _ = self.end();
    }
}

/// Makes the calling thread as punctual as it may be.
fn prepare(shared: &Shared, realtime: bool) {
    // SAFETY: numbers alone, of which zero is one; musl has more of them than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY;
    // SAFETY: numbers only, and a live sched_param; 0 names the calling thread. Without the right to SCHED_FIFO the thread
    // keeps its priority, and reports that.
    unsafe {
        // The default slack of 50 µs would be added to every wait.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
        let claimed = realtime && libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0;
        shared.realtime.store(claimed, Ordering::Relaxed);
        shared.thread.store(libc::gettid(), Ordering::Relaxed);
    }
}

fn run<O: Observer>(
    mut emulator: Emulator<O>,
    shared: &Shared,
    waker: &OwnedFd,
    commands: &Receiver<Command>,
) -> io::Result<Vec<File>> {
    let epoll = Epoll::new()?;
    epoll.add(waker.as_raw_fd(), WAKER, Interest::Read)?;
    for (port, file) in emulator.ports().iter().enumerate() {
        epoll.add(file.as_raw_fd(), port as u64, Interest::Read)?;
    }
    if let Some(trunk) = emulator.trunk() {
        epoll.add(trunk, TRUNK, Interest::Read)?;
    }
    let mut buffer = Box::new([0; 65_535]);
    let mut events = Events::with_room(EVENTS);
    while !shared.stop.load(Ordering::Acquire) {
        let polled_ns = clock::machine_ns();
        poll(&epoll, &mut events, Some(Duration::ZERO))?;
        let left = emulator.next_ns().map(clock::wait_until);
        let blocks = events.count() == 0 && left != Some(Duration::ZERO);
        if blocks {
            poll(&epoll, &mut events, left)?;
        }
        emulator.polled(polled_ns, blocks.then(clock::machine_ns), events.is_full());
        emulator.deliver();
        for event in events.iter() {
            match usize::try_from(event.key) {
                _ if event.key == TRUNK => {
                    emulator.receive(&mut buffer)?;
                    emulator.deliver();
                }
                Ok(port) if event.key != WAKER => {
                    emulator.read(port, &mut buffer)?;
                    emulator.deliver();
                }
                _ => {
                    let mut count = [0u8; 8];
                    // SAFETY: eight live bytes; the counter is set back.
                    unsafe { libc::read(waker.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
                    commands.try_iter().for_each(|command| emulator.command(command));
                }
            }
        }
        emulator.publish();
    }
    Ok(emulator.into_ports())
}

/// Waits at most this long for a descriptor that is ready. A signal ends the wait with nothing found.
fn poll(epoll: &Epoll, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
    match epoll.wait(events, timeout) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}
