//! A running system.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use pubmark_record::record::{Deviation, SystemEnd, SystemInfo};

use crate::cgroup::{Cgroup, CostSource};
use crate::end_watch::EndWatch;
use crate::launch::{Broker, Endpoint};
use crate::private_directory::PrivateDirectory;
use crate::process::Stopped;
use crate::supervisor::supervised::End;

/// Most of the end of a log that is shown, bytes and lines.
const TAIL_BYTES: u64 = 4_096;
const TAIL_LINES: usize = 12;

/// A started system with one or several brokers. Dropping it stops it: SIGTERM, a wait, SIGKILL for the remaining
/// processes. If this process is killed, the supervisors stop the system.
#[derive(Debug)]
pub struct RunningSystem {
    pub(crate) info: SystemInfo,
    pub(crate) deviations: Vec<Deviation>,
    /// At least one, in the order of the brokers.
    pub(crate) endpoints: Vec<Endpoint>,
    /// As many as `endpoints`, or none.
    pub(crate) second_endpoints: Vec<Endpoint>,
    /// The processes of each broker; for a container that is not visible here, the command that runs it.
    pub(crate) places: Vec<CostSource>,
    /// Whether `places` has the processes of every broker.
    pub(crate) cost_is_visible: bool,
    pub(crate) stop_within: Duration,
    pub(crate) stopped: bool,
    // Dropped in this order: the brokers before the folder that they share.
    pub(crate) brokers: Vec<Broker>,
    pub(crate) _shared: PrivateDirectory,
}

impl RunningSystem {
    /// Endpoints of its brokers, at least one.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Endpoints of its brokers for the second protocol; none if only one was requested.
    pub fn second_endpoints(&self) -> &[Endpoint] {
        &self.second_endpoints
    }

    /// Endpoint of the first broker.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoints[0]
    }

    /// Where each broker's cost can be read; empty if the container of one is not visible here, because the cost of the others is
    /// not that of the system.
    pub fn cost_sources(&self) -> Vec<CostSource> {
        if self.cost_is_visible { self.places.clone() } else { vec![] }
    }

    /// Watches whether one of its brokers ends.
    pub fn end_watch(&self) -> EndWatch {
        EndWatch::new(&self.places)
    }

    /// Id of the first broker's first process, the root of its tree.
    pub fn pid(&self) -> u32 {
        self.places[0].pid
    }

    /// Description of the system for the record.
    pub fn info(&self) -> SystemInfo {
        self.info.clone()
    }

    /// Settings that are not the system's defaults.
    pub fn deviations(&self) -> &[Deviation] {
        &self.deviations
    }

    /// How a broker ended, if one has ended by itself, in words; with several brokers, also which one.
    pub fn ended(&mut self) -> Option<String> {
        self.own_end().map(|end| end.how)
    }

    /// How a broker ended, if one has ended by itself. The time is not set here.
    pub fn own_end(&mut self) -> Option<SystemEnd> {
        end_of(&mut self.brokers).map(|(_, end)| end)
    }

    /// The last lines of the log of the broker that has ended, otherwise of the first broker.
    pub fn log_tail(&self) -> String {
        let ended = self.brokers.iter().find(|broker| broker.end.is_some());
        ended.or(self.brokers.first()).map(|broker| log_tail(&broker.log)).unwrap_or_default()
    }

    /// Stops the system and returns how it ended; with several brokers, the worst result.
    pub fn stop(mut self) -> Stopped {
        self.stop_all()
    }

    /// All brokers get the request before the first is waited for.
    fn stop_all(&mut self) -> Stopped {
        self.stopped = true;
        self.unpause();
        let before: Vec<bool> = self.brokers.iter_mut().map(|broker| broker.held.ended().is_some()).collect();
        for broker in &mut self.brokers {
            broker.held.request_end(self.stop_within);
        }
        let mut outcomes = Vec::new();
        for (broker, before) in self.brokers.iter_mut().zip(before) {
            outcomes.push(match (before, broker.held.ended()) {
                (true, Some(End::Status(status))) => Stopped::Before(status),
                _ => broker.held.wait_for_end(self.stop_within),
            });
        }
        let rank = |stopped: &Stopped| match stopped {
            Stopped::Asked(_) => 0,
            Stopped::Before(_) => 1,
            Stopped::Killed => 2,
        };
        outcomes.into_iter().max_by_key(rank).unwrap_or(Stopped::Killed)
    }
}

impl Drop for RunningSystem {
    fn drop(&mut self) {
        if !self.stopped {
            self.stop_all();
        }
    }
}

/// The first broker that has ended, and how it ended; with several brokers, also its name.
pub(crate) fn end_of(brokers: &mut [Broker]) -> Option<(usize, SystemEnd)> {
    let several = brokers.len() > 1;
    brokers.iter_mut().enumerate().find_map(|(number, broker)| {
        let end = broker.held.ended()?;
        let system_end = broker.end.get_or_insert_with(|| {
            let out_of_memory = ran_out_of_memory(broker.cgroup.as_ref(), broker.container.as_ref());
            let memory = if out_of_memory { ", after the kernel OOM-killed a process" } else { "" };
            let which = if several { format!("broker {}: ", number + 1) } else { String::new() };
            let status = match end {
                End::Status(status) => Some(status),
                End::WithSupervisor => None,
            };
            SystemEnd {
                how: format!("{which}{end}{memory}"),
                at_s: None,
                exit_status: status.and_then(|status| status.code()),
                signal: status.and_then(|status| status.signal()),
                out_of_memory,
            }
        });
        Some((number, system_end.clone()))
    })
}

fn ran_out_of_memory(cgroup: Option<&Cgroup>, container: Option<&crate::launch::Contained>) -> bool {
    let counted = cgroup.and_then(Cgroup::out_of_memory_kills).is_some_and(|kills| kills > 0);
    // A container engine that does not respond any more adds nothing.
    let container_end = container.and_then(|found| found.engine.ended(&found.name).ok().flatten());
    counted || container_end.is_some_and(|end| end.out_of_memory)
}

/// The last lines of a log; empty if there is none.
pub(crate) fn log_tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut end = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut end)?;
        Ok(end)
    };
    // A log that cannot be read is shown as an empty one.
    let end = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
