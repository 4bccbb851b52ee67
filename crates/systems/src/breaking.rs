//! Faults on purpose in a running system, and their end: with the same ports, the same files and the same data folder.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;
use crate::container;
use crate::error::SystemError;
use crate::launch::Contained;
use crate::process::Stopped;
use crate::running::{RunningSystem, log_tail};
use crate::supervisor::messages::Work;
use crate::supervisor::supervised::{End, Supervised};

const NO_SERVER: &str = "there is no such server";

impl RunningSystem {
    /// Kills a server (numbered from 0), or all, at once (SIGKILL), and waits until they have ended. Returns by when the last
    /// of them had its signal, ns of `CLOCK_MONOTONIC`: an engine does not say when within its command it sent it.
    ///
    /// # Errors
    /// A server had ended by itself.
    pub fn kill(&mut self, server: Option<usize>) -> Result<u64, String> {
        let signalled = self.each(server, |number, broker| {
            let (by_ns, stopped) = match (&broker.container, broker.held.ended()) {
                (Some(contained), None) => {
                    contained.engine.kill(&contained.name).map_err(|error| error.to_string())?;
                    // This waits for the end of the command that ran the container.
                    (clock::monotonic_ns(), broker.held.wait_for_end(Duration::ZERO))
                }
                _ => (clock::monotonic_ns(), broker.held.kill()),
            };
            match stopped {
                Stopped::Before(status) => Err(format!("server {} had ended before: {status}", number + 1)),
                Stopped::Asked(_) | Stopped::Killed => Ok(by_ns),
            }
        })?;
        signalled.into_iter().max().ok_or_else(|| NO_SERVER.to_owned())
    }

    /// Requests a server, or all, to end, and waits for the time in the definition. All servers get the request before
    /// the first is waited for.
    ///
    /// # Errors
    /// A server had ended by itself, or had to be killed.
    pub fn end(&mut self, server: Option<usize>) -> Result<(), String> {
        let within: Duration = self.stop_within;
        self.each(server, |number, broker| match broker.held.ended() {
            Some(end) => Err(format!("server {} had ended before: {end}", number + 1)),
            None => {
                broker.held.request_end(within);
                Ok(())
            }
        })?;
        self.each(server, |number, broker| match broker.held.wait_for_end(within) {
            Stopped::Killed => {
                Err(format!("server {} did not end within {} s and was killed", number + 1, within.as_secs()))
            }
            Stopped::Asked(_) | Stopped::Before(_) => Ok(()),
        })
        .map(drop)
    }

    /// Starts a server that was killed or ended, or all, in the same way as at first. They may not listen yet when this
    /// returns.
    ///
    /// # Errors
    /// A program could not be started, or a container's engine failed to start it several times.
    pub fn start_again(&mut self, server: Option<usize>) -> Result<(), String> {
        let started = self.each(server, |number, broker| {
            let Some(work) = &mut broker.work else { return Err(format!("server {} was never started", number + 1)) };
            work.appends = true;
            broker.end = None;
            let started = match &broker.container {
                Some(contained) => {
                    (work.program, work.arguments) = contained.engine.starting_again(&contained.name);
                    start_container(&mut broker.held, work, contained, &broker.log)
                }
                None => broker.held.start(work).map(drop),
            };
            started.map_err(|error| error.to_string())
        });
        let programs = self.places.iter_mut().zip(&self.brokers).filter(|(_, broker)| broker.container.is_none());
        programs.for_each(|(place, broker)| place.pid = broker.held.pid());
        started.map(drop)
    }

    /// Pauses a server, or all (SIGSTOP; a container by its engine), or resumes them. Returns when the last of them paused or
    /// the first of them was about to resume, ns of `CLOCK_MONOTONIC`: between the two none of them ran, however late this
    /// call learned of it.
    ///
    /// # Errors
    /// A server has ended, or the engine cannot pause it.
    pub fn pause(&mut self, server: Option<usize>, pause: bool) -> Result<u64, String> {
        let stamps = self.each(server, |number, broker| match &mut broker.container {
            Some(contained) => contained.pause(pause),
            None => match broker.held.pause(pause) {
                Ok(at_ns) => at_ns.ok_or_else(|| format!("server {} has ended", number + 1)),
                Err(error) => Err(error.to_string()),
            },
        })?;
        let chosen = if pause { stamps.into_iter().max() } else { stamps.into_iter().min() };
        chosen.ok_or_else(|| NO_SERVER.to_owned())
    }

    /// Resumes paused containers, because they are about to be ended.
    pub(crate) fn unpause(&mut self) {
        let paused =
            self.brokers.iter_mut().filter_map(|broker| broker.container.as_mut()).filter(|found| found.is_paused);
        // A container that cannot be resumed is killed and removed like one that does not end.
        paused.for_each(|contained| drop(contained.pause(false)));
    }

    /// Applies an action to one server, or to all; returns what each gave, or the first failure after all were tried.
    fn each<T>(
        &mut self,
        server: Option<usize>,
        mut act: impl FnMut(usize, &mut crate::launch::Broker) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let chosen = self.brokers.iter_mut().enumerate().filter(|(number, _)| server.is_none_or(|one| one == *number));
        let outcomes: Vec<Result<T, String>> = chosen.map(|(number, broker)| act(number, broker)).collect();
        if outcomes.is_empty() {
            return Err(NO_SERVER.to_owned());
        }
        outcomes.into_iter().collect()
    }
}

impl Contained {
    /// As [`RunningSystem::pause`], for this container.
    fn pause(&mut self, pause: bool) -> Result<u64, String> {
        let asked_ns = clock::monotonic_ns();
        self.engine.pause(&self.name, pause).map_err(|error| error.to_string())?;
        self.is_paused = pause;
        Ok(if pause { clock::monotonic_ns() } else { asked_ns })
    }
}

/// Attempts to restart a container before the engine's failure is final.
const ATTEMPTS: u32 = 3;

/// Starts a container again and waits until it runs, or has ended by itself. If the engine itself fails, the start is
/// repeated: podman 4.3.1 failed once, on a busy machine, with "failed to connect to container's attach socket:
/// connection refused".
fn start_container(held: &mut Supervised, work: &Work, contained: &Contained, log: &Path) -> Result<(), SystemError> {
    for _ in 0..ATTEMPTS {
        held.start(work)?;
        if has_begun(held, contained)? {
            return Ok(());
        }
    }
    Err(not_started(contained, format!("failed {ATTEMPTS} times"), log_tail(log)))
}

/// Waits until a container runs or has ended; `false` if its engine failed.
fn has_begun(held: &mut Supervised, contained: &Contained) -> Result<bool, SystemError> {
    let deadline = Instant::now() + container::QUERY_LIMIT;
    loop {
        match held.ended() {
            Some(End::Status(status)) => return Ok(status.code() != Some(container::FAILED)),
            Some(End::WithSupervisor) => return Ok(true),
            None if contained.engine.ended(&contained.name)?.is_none() => return Ok(true),
            None if Instant::now() >= deadline => {
                let outcome = format!("did not start it within {} s", container::QUERY_LIMIT.as_secs());
                return Err(not_started(contained, outcome, String::new()));
            }
            None => thread::sleep(container::POLL_INTERVAL),
        }
    }
}

fn not_started(contained: &Contained, outcome: String, output: String) -> SystemError {
    let (program, arguments) = contained.engine.starting_again(&contained.name);
    SystemError::Command { command: format!("{} {}", program.display(), arguments.join(" ")), outcome, output }
}
