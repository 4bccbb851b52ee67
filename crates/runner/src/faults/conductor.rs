//! A thread that injects faults of the system and its links at the planned times, and ends each of them, whatever else happens. The
//! engine's own threads inject faults of connections.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Scope, ScopedJoinHandle};

use pubmark_model::fault::{Fault, FaultKind, Occurrence};
use pubmark_model::workload::Workload;
use pubmark_protocol::clock;
use pubmark_systems::RunningSystem;
use serde::{Deserialize, Serialize};

use crate::linked::Linked;

/// Times of a fault, ns of the run's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultTimes {
    /// When it began.
    pub done_ns: Option<u64>,
    /// When it had begun at the latest, where the time is not known exactly.
    pub by_ns: Option<u64>,
    /// When it ended.
    pub ended_ns: Option<u64>,
    /// Error of the injection.
    pub failure: Option<String>,
}

impl FaultTimes {
    /// Combines the times of several threads that each injected the fault on their own links: the latest of each time, and the first error.
    /// The fault was not injected if one of them did not inject it.
    pub fn and(self, other: &FaultTimes) -> FaultTimes {
        let latest = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
        FaultTimes {
            done_ns: latest(self.done_ns, other.done_ns),
            by_ns: self.by_ns.max(other.by_ns),
            ended_ns: latest(self.ended_ns, other.ended_ns),
            failure: self.failure.or_else(|| other.failure.clone()),
        }
    }
}

/// The running thread.
pub struct FaultInjector<'scope> {
    begin: Sender<u64>,
    thread: Option<ScopedJoinHandle<'scope, Vec<FaultTimes>>>,
    faults: usize,
}

impl<'scope> FaultInjector<'scope> {
    /// Starts the thread for the faults that `meant` selects; it waits for the start of the measured window.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        workload: &'env Workload,
        occurrences: &'env [Occurrence],
        meant: impl Fn(&Occurrence) -> bool,
        system: Option<&'env mut RunningSystem>,
        linked: Option<&'env Linked>,
    ) -> FaultInjector<'scope> {
        let (begin, window_start) = mpsc::channel();
        let faults = occurrences.len();
        let meant: Vec<bool> = occurrences.iter().map(meant).collect();
        let has_work = meant.contains(&true);
        let work = move || Breaker { workload, system, linked, window_start }.inject(occurrences, &meant);
        let thread = has_work.then(|| scope.spawn(work));
        FaultInjector { begin, thread, faults }
    }

    /// Channel for the start of the measured window, ns of the run's clock.
    pub fn begin(&self) -> Sender<u64> {
        self.begin.clone()
    }

    /// Ends the thread and returns the times of each fault. A fault that has not ended is ended first.
    pub fn finish(self) -> Vec<FaultTimes> {
        drop(self.begin);
        let failed =
            || vec![FaultTimes { failure: Some("its thread failed".to_owned()), ..FaultTimes::default() }; self.faults];
        match self.thread {
            Some(thread) => thread.join().unwrap_or_else(|_| failed()),
            None => vec![FaultTimes::default(); self.faults],
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// The time was reached.
    Till,
    /// The run is over.
    Over,
}

struct Breaker<'env> {
    workload: &'env Workload,
    system: Option<&'env mut RunningSystem>,
    linked: Option<&'env Linked>,
    /// Receives the start of the window; disconnects at the end of the run.
    window_start: Receiver<u64>,
}

impl Breaker<'_> {
    fn inject(mut self, occurrences: &[Occurrence], meant: &[bool]) -> Vec<FaultTimes> {
        let mut all = vec![FaultTimes::default(); occurrences.len()];
        let Ok(start_ns) = self.window_start.recv() else { return all };
        for ((occurrence, done), _) in occurrences.iter().zip(&mut all).zip(meant).filter(|(_, meant)| **meant) {
            let fault = &self.workload.faults[occurrence.fault];
            if self.wait(start_ns.saturating_add(occurrence.at_ns)) == Waited::Over {
                break;
            }
            // It is not started again: its end is the result of the run.
            if let Some(how) = self.own_end(fault) {
                done.failure = Some(format!("the system had ended before: {how}"));
                continue;
            }
            done.done_ns = Some(clock::monotonic_ns());
            if let Err(failure) = self.break_it(fault, done) {
                done.failure = Some(failure);
            }
            let waited = self.wait(start_ns.saturating_add(occurrence.end_ns()));
            match self.mend(fault) {
                Ok(until_ns) if waited == Waited::Till => done.ended_ns = until_ns.or(Some(clock::monotonic_ns())),
                Ok(_) => {}
                Err(failure) => drop(done.failure.get_or_insert(failure)),
            }
            if waited == Waited::Over {
                break;
            }
        }
        all
    }

    fn wait(&self, until_ns: u64) -> Waited {
        loop {
            let left = clock::wait_until(until_ns);
            if left.is_zero() {
                return Waited::Till;
            }
            match self.window_start.recv_timeout(left) {
                Err(RecvTimeoutError::Disconnected) => return Waited::Over,
                // No further message has a meaning.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Injects a fault, and notes since when it is in effect where that is known better than by the time of this call.
    fn break_it(&mut self, fault: &Fault, done: &mut FaultTimes) -> Result<(), String> {
        let server = fault.server.map(|number| number as usize - 1);
        match fault.kind {
            FaultKind::Kill => {
                let by_ns = self.system()?.kill(server)?;
                done.by_ns = Some(of_run(by_ns, clock::machine_ahead_ns()));
            }
            FaultKind::Restart => self.system()?.end(server)?,
            FaultKind::Pause => done.done_ns = Some(self.pause(server, true)?),
            FaultKind::Partition | FaultKind::LinkDown => self.cut(fault, true)?,
            FaultKind::Reset | FaultKind::Cut => {}
        }
        Ok(())
    }

    /// How the system ended by itself before a fault that would end it and start it again; `None` if it runs, and for other faults.
    fn own_end(&mut self, fault: &Fault) -> Option<String> {
        match fault.kind {
            FaultKind::Kill | FaultKind::Restart => self.system.as_deref_mut()?.ended(),
            FaultKind::Pause | FaultKind::Partition | FaultKind::LinkDown | FaultKind::Reset | FaultKind::Cut => None,
        }
    }

    /// Ends a fault; returns until when it was in effect, ns of the run's clock, where that is known better than by the time of this call.
    fn mend(&mut self, fault: &Fault) -> Result<Option<u64>, String> {
        let server = fault.server.map(|number| number as usize - 1);
        match fault.kind {
            FaultKind::Kill | FaultKind::Restart => self.system()?.start_again(server)?,
            FaultKind::Pause => return self.pause(server, false).map(Some),
            FaultKind::Partition | FaultKind::LinkDown => self.cut(fault, false)?,
            FaultKind::Reset | FaultKind::Cut => {}
        }
        Ok(None)
    }

    /// Pauses a server, or all, or resumes them; returns since or until when they were paused, ns of the run's clock.
    fn pause(&mut self, server: Option<usize>, pause: bool) -> Result<u64, String> {
        let machine_ns = self.system()?.pause(server, pause)?;
        Ok(of_run(machine_ns, clock::machine_ahead_ns()))
    }

    fn system(&mut self) -> Result<&mut RunningSystem, String> {
        self.system.as_deref_mut().ok_or_else(|| "there is no system of ours".to_owned())
    }

    fn cut(&self, fault: &Fault, cut: bool) -> Result<(), String> {
        let linked = self.linked.ok_or_else(|| "there are no links".to_owned())?;
        linked.cut(self.workload, fault, cut)
    }
}

/// A time of the machine's clock, which a supervisor reads, as a time of the run's clock; the machine's is `ahead_ns` ahead of it.
fn of_run(machine_ns: u64, ahead_ns: i64) -> u64 {
    machine_ns.wrapping_sub(ahead_ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_has_times_of_the_runs_clock_where_the_machine_has_another() {
        assert_eq!(of_run(5_000, 0), 5_000, "without nodes");
        assert_eq!(of_run(5_000, 3_600), 1_400, "the system's machine was started before the coordinator's");
        assert_eq!(of_run(1_400, -3_600), 5_000, "after it");
    }
}
