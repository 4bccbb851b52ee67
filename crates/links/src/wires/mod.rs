//! The other back end: the kernel's own emulation. Each group has a wire, a namespace of two interfaces that forwards between the
//! group and the core, with netem on both ways out (`docs/explanation/links.md`).

mod steps;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use pubmark_model::link::Link;

pub(crate) use wire::{End, Shape, Wire, network as route_to};

use crate::Direction;
use crate::error::LinkError;
use crate::namespace::spawn;
use crate::netlink::InterfaceCounters;
use crate::star::{Command, Lateness, LinkCounters, Snapshot, Strays};
use steps::Courses;

/// Name of the thread that executes steps; the kernel stores 15 bytes.
const NAME: &str = "pubmark-netem";

/// What the thread and its owner share.
#[derive(Debug)]
struct Shared {
    wires: Vec<Wire>,
    /// Counters as they were read last.
    counters: Mutex<Vec<LinkCounters>>,
    /// Why they could not be read.
    failure: Mutex<Option<LinkError>>,
}

/// Links that the kernel emulates; their series ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Wires {
    shared: Arc<Shared>,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<Result<(), LinkError>>>,
}

impl Wires {
    /// Emulates `links` on their wires, each by its first step.
    pub fn start(wires: Vec<Wire>, links: &[Link]) -> Result<Wires, LinkError> {
        let courses = Courses::new(links);
        for (group, direction, conditions) in courses.all() {
            wires[group].apply(direction, &conditions).map_err(unknown)?;
        }
        let counters = Mutex::new(vec![LinkCounters::default(); wires.len()]);
        let shared = Arc::new(Shared { wires, counters, failure: Mutex::default() });
        let (commands, receiver) = mpsc::channel();
        let own = Arc::clone(&shared);
        let thread = spawn(NAME, move || {
            steps::run(courses, &receiver, |(group, direction, conditions)| {
                own.wires[group].apply(direction, &conditions)
            })
        })?;
        Ok(Wires { shared, commands: Some(commands), thread: Some(thread) })
    }

    /// Sends a change to the thread, which makes it at once.
    pub fn command(&self, command: Command) -> Result<(), LinkError> {
        let ended = || LinkError::Stopped { reason: "the thread that sets netem has ended".to_owned() };
        self.commands.as_ref().ok_or_else(ended)?.send(command).map_err(|_| ended())
    }

    /// Can its counters be read, and are steps executed?
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && held(&self.shared.failure).is_none()
    }

    /// All counters now, or as they were when they could be read last. What only the emulator in user space knows is empty.
    pub fn snapshot(&self) -> Snapshot {
        let read = |wire: &Wire| {
            Ok::<_, LinkError>(LinkCounters {
                up: wire.counters(Direction::Up)?,
                down: wire.counters(Direction::Down)?,
            })
        };
        let mut counters = held(&self.shared.counters);
        match self.shared.wires.iter().map(read).collect() {
            Ok(found) => *counters = found,
            Err(error) => self.fail(error),
        }
        Snapshot {
            links: counters.clone(),
            strays: Strays::default(),
            lateness: Lateness::none(),
            read_wait: Lateness::none(),
            trunk: None,
            cpu_ns: 0,
            realtime: false,
        }
    }

    /// Packets on one direction of a group's link.
    pub fn waiting(&self, group: usize, direction: Direction) -> u64 {
        self.shared.wires[group].waiting(direction).unwrap_or_else(|error| {
            self.fail(error);
            0
        })
    }

    /// What the interfaces of all wires counted.
    pub fn interfaces(&self) -> Result<Vec<InterfaceCounters>, LinkError> {
        let pairs: Result<Vec<_>, _> = self.shared.wires.iter().map(Wire::interfaces).collect();
        Ok(pairs?.into_iter().flatten().collect())
    }

    /// Ends the series. The wires carry packets as before.
    pub fn end(&mut self) -> Result<(), LinkError> {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let panicked = || LinkError::Stopped { reason: "the thread that sets netem panicked".to_owned() };
            thread.join().unwrap_or_else(|_| Err(panicked()))?;
        }
        held(&self.shared.failure).take().map_or(Ok(()), Err)
    }

    fn fail(&self, error: LinkError) {
        held(&self.shared.failure).get_or_insert(error);
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        // `end` and `is_running` have reported this error already.
        let _ = self.end();
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is missing, if the kernel reports that it has no netem (ENOENT: "Specified qdisc kind is unknown") or no pairs of
/// interfaces (EOPNOTSUPP: "Unknown device type"); any other error as it is.
pub(crate) fn unknown(error: LinkError) -> LinkError {
    let LinkError::Refused { source, .. } = &error else { return error };
    let missing = match source.kind() {
        std::io::ErrorKind::NotFound => "sch_netem",
        std::io::ErrorKind::Unsupported => "veth",
        _ => return error,
    };
    LinkError::Impossible { missing: format!("this kernel has no `{missing}`") }
}
