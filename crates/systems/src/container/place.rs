//! Where the cost of a container can be read, and how a container ended.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::Process;

use super::ContainerError;
use super::engine::{ANSWER, Engine, EngineKind, QUERY_LIMIT, answer_in, output_of, shown};
use crate::cgroup::layout::{Hierarchy, Layout};
use crate::cgroup::{CgroupFolders, CostSource};
use crate::error::SystemError;

/// Time between two queries for a container that is starting.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How a container ended, for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerEnd {
    /// Exit status of the container's first process; 128 plus the signal's number if a signal ended it.
    pub status: i32,
    /// The engine reports that the kernel OOM-killed it. `false` is no proof: not every kernel and engine reports it.
    pub out_of_memory: bool,
}

impl Engine {
    /// The first process of a running container and its control group, for cost measurement. Waits at most `within` for
    /// the container to run. `None` if it does not run by then, or if its processes are not visible here (an engine in
    /// a virtual machine).
    pub fn cost_source(&self, name: &str, within: Duration) -> Result<Option<CostSource>, SystemError> {
        let deadline = Instant::now() + within;
        loop {
            let format = format!("{ANSWER}{{{{.State.Pid}}}}");
            // Fails until the container exists.
            if let Ok(output) = output_of(self.command(&["inspect", "--format", &format, name]), QUERY_LIMIT)
                && let Some(pid) = answer_in(&output).and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 0)
            {
                let id = self.id(name)?;
                // An engine in a virtual machine returns process ids of that machine.
                let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
                // Without the right to create control groups, engines leave the container in their own.
                let is_here = groups.contains(&id) || is_monitored(pid, &id);
                return Ok(is_here.then(|| CostSource { pid, cgroup: place_of(pid, &id) }));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Root of the processes of a container that the process `command` started: with podman that process, as the container is
    /// below it; with Docker, whose daemon runs it, the container's first process. `None` if that is not visible here.
    pub fn root_process(&self, name: &str, command: u32) -> Option<u32> {
        match self.kind {
            EngineKind::Podman => Some(command),
            EngineKind::Docker => self.cost_source(name, Duration::ZERO).ok().flatten().map(|source| source.pid),
        }
    }

    /// How a container ended that still exists but does not run; `None` if it runs or does not exist.
    pub fn ended(&self, name: &str) -> Result<Option<ContainerEnd>, SystemError> {
        let format = format!("{ANSWER}{{{{.State.Running}}}}|{{{{.State.ExitCode}}}}|{{{{.State.OOMKilled}}}}");
        let command = self.command(&["inspect", "--format", &format, name]);
        let shown = shown(&command);
        let Ok(output) = output_of(command, QUERY_LIMIT) else { return Ok(None) };
        let fields: Vec<&str> = answer_in(&output).unwrap_or_default().split('|').collect();
        match fields[..] {
            ["true", ..] => Ok(None),
            ["false", status, memory] if status.parse::<i32>().is_ok() => {
                Ok(Some(ContainerEnd { status: status.parse().unwrap_or_default(), out_of_memory: memory == "true" }))
            }
            _ => Err(ContainerError::Answer { command: shown, output }.into()),
        }
    }

    /// The id of a container, which is part of the names of its control groups.
    fn id(&self, name: &str) -> Result<String, SystemError> {
        let command = self.command(&["inspect", "--format", &format!("{ANSWER}{{{{.Id}}}}"), name]);
        let shown = shown(&command);
        let output = output_of(command, QUERY_LIMIT)?;
        match answer_in(&output) {
            Some(id) if !id.is_empty() => Ok(id.to_owned()),
            _ => Err(ContainerError::Answer { command: shown, output }.into()),
        }
    }
}

/// Is the parent of a process the monitor of this container? The command lines of podman's (`conmon -c ID`) and of Docker's
/// (`containerd-shim-runc-v2 -id ID`) have its id.
fn is_monitored(pid: u32, id: &str) -> bool {
    let parent = || Some(Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?.ppid);
    let line = parent().and_then(|parent| fs::read(format!("/proc/{parent}/cmdline")).ok()).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == id.as_bytes())
}

/// The control group of a container's process. Only folders of the container itself are used: with some engines and
/// versions, others belong to the daemon or to the whole machine.
fn place_of(pid: u32, id: &str) -> Option<CgroupFolders> {
    let layout = Layout::read_for(pid).ok()?;
    let own = |hierarchy: Option<&Hierarchy>| {
        hierarchy
            .map(|hierarchy| hierarchy.own.clone())
            .filter(|folder| folder.to_string_lossy().contains(id) && folder.is_dir())
    };
    let place = CgroupFolders {
        unified: own(layout.unified.as_ref()),
        cpu: own(layout.controllers.get("cpu")),
        cpuacct: own(layout.controllers.get("cpuacct")),
        memory: own(layout.controllers.get("memory")),
        cpuset: own(layout.controllers.get("cpuset")),
    };
    Some(place).filter(|place| *place != CgroupFolders::default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_below_the_monitor_of_a_container_belongs_to_it() {
        let id = format!("5d2b9a4c7e1f{}", std::process::id());
        let mut command = Command::new("sh");
        command.args(["-c", "cat; :", "-id", &id]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut monitor = command.spawn().unwrap();
        let began = Instant::now();
        let below = loop {
            match crate::tree::below(monitor.id())[..] {
                [below] => break below,
                _ => assert!(began.elapsed() < Duration::from_secs(10), "the shell started nothing"),
            }
        };
        let found = [is_monitored(below, &id), is_monitored(below, &id[1..]), is_monitored(monitor.id(), &id)];
        drop(monitor.stdin.take());
        monitor.wait().unwrap();
        assert_eq!(found, [true, false, false]);
    }
}
