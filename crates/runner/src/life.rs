//! Whether the system under test runs until the end of a run, and when it ended if it does not.

use std::thread;
use std::time::{Duration, Instant};

use pubmark_engine::progress::Totals;
use pubmark_engine::run::Phase;
use pubmark_model::fault::{FaultKind, Occurrence};
use pubmark_model::workload::Workload;
use pubmark_protocol::clock;
use pubmark_record::record::{BackEndKind, SystemEnd};
use pubmark_systems::end_watch::EndWatch;
use pubmark_systems::running::RunningSystem;

use crate::target::Target;

/// A process that ends closes its connections first: its clients may stop this long before the end of the process is visible.
const EXIT_WITHIN: Duration = Duration::from_secs(1);
/// Longest time from the end of a process to the report of its supervisor.
const REPORT_WITHIN: Duration = Duration::from_secs(5);
/// Time between two checks.
const LOOK: Duration = Duration::from_millis(2);

/// Watches the system during a run.
pub struct Life {
    /// Processes of a system that was started here.
    processes: Option<EndWatch>,
    /// A fault ends the system and starts it again: its processes change after the schedule has begun.
    is_broken: bool,
    /// When the end was seen, ns of `CLOCK_MONOTONIC`.
    ended_ns: Option<u64>,
    /// The system is external: only its connections can be observed.
    is_external: bool,
    /// Time since which no connection exists.
    alone_since_ns: Option<u64>,
    /// The latest connection attempts failed.
    is_refused: bool,
}

impl Life {
    /// Watches this system in a run with these faults.
    pub fn new(target: &Target, workload: &Workload, faults: &[Occurrence]) -> Life {
        let ends =
            |fault: &Occurrence| matches!(workload.faults[fault.fault].kind, FaultKind::Kill | FaultKind::Restart);
        Life {
            processes: target.running.as_ref().map(RunningSystem::end_watch),
            is_broken: faults.iter().any(ends),
            ended_ns: None,
            // Where faults break connections, a lost connection is no sign of the system's end.
            is_external: target.info.back_end == BackEndKind::External && faults.is_empty(),
            alone_since_ns: None,
            is_refused: false,
        }
    }

    /// Whether one of its processes has ended without being stopped.
    pub fn has_ended(&mut self) -> bool {
        if self.ended_ns.is_none() && self.processes.as_mut().is_some_and(EndWatch::has_ended) {
            self.ended_ns = Some(clock::monotonic_ns());
        }
        self.ended_ns.is_some()
    }

    /// The schedule begins.
    pub fn schedule_begins(&mut self) {
        if self.is_broken {
            self.processes = None;
        }
    }

    /// Processes a progress update.
    pub fn check(&mut self, phase: Phase, totals: &Totals) {
        self.has_ended();
        if matches!(phase, Phase::WarmUp | Phase::Measure | Phase::Drain) {
            match totals.online {
                0 => drop(self.alone_since_ns.get_or_insert_with(clock::monotonic_ns)),
                _ => self.alone_since_ns = None,
            }
            self.is_refused = totals.failing > 0;
        }
    }

    /// The end of a started system as its supervisor reports it. Waits for the report if the end was seen, and for the end itself if
    /// clients no longer reach the system (`is_reached` is false).
    pub fn reported_end(&mut self, running: &mut RunningSystem, is_reached: bool) -> Option<SystemEnd> {
        let began = Instant::now();
        loop {
            let limit = match self.has_ended() {
                true => REPORT_WITHIN,
                false if !is_reached && self.processes.is_some() => EXIT_WITHIN,
                false => Duration::ZERO,
            };
            let end = running.own_end();
            if end.is_some() || began.elapsed() >= limit {
                return end;
            }
            thread::sleep(LOOK);
        }
    }

    /// How and when the system ended; `known` is the supervisor's report. `start_ns` is the start of the measured window, if it began.
    pub fn end(&self, known: Option<SystemEnd>, start_ns: Option<u64>) -> Option<SystemEnd> {
        let since = |ns: Option<u64>| Some((ns? as f64 - start_ns? as f64) / 1e9);
        if let Some(end) = known {
            return Some(SystemEnd { at_s: since(self.ended_ns), ..end });
        }
        let alone_ns = self.alone_since_ns.filter(|_| self.is_external && self.is_refused)?;
        let how = "every connection was lost, and none could be made again".to_owned();
        Some(SystemEnd { how, at_s: since(Some(alone_ns)), ..SystemEnd::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn external() -> Life {
        Life {
            processes: None,
            is_broken: false,
            ended_ns: None,
            is_external: true,
            alone_since_ns: None,
            is_refused: false,
        }
    }

    #[test]
    fn an_external_system_has_ended_when_all_connections_are_lost_and_none_comes_back() {
        let totals = |online, failing| Totals { online, failing, ..Totals::default() };
        let mut life = external();
        life.check(Phase::Connect, &totals(0, 3));
        life.check(Phase::Measure, &totals(3, 0));
        assert_eq!(life.end(None, Some(0)), None);
        life.check(Phase::Measure, &totals(0, 0));
        assert_eq!(life.end(None, Some(0)), None, "all may be offline by plan");
        life.check(Phase::Drain, &totals(0, 2));
        let end = life.end(None, Some(0)).expect("an end");
        assert!(end.at_s.is_some() && end.how.contains("every connection was lost"), "{end:?}");
        life.check(Phase::Drain, &totals(1, 2));
        assert_eq!(life.end(None, Some(0)), None, "one came back");
        let ours = Life { is_external: false, ..external() };
        assert_eq!(ours.end(None, Some(0)), None);
    }
}
