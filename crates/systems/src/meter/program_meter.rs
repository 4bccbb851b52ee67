//! What client programs used: processes below this one that carry a variable in their environment, and all that they started.

use super::{Reading, TreeMeter, proc_files};
use crate::tree;

/// Rounds between two looks for programs that have started since.
const ROUNDS_BETWEEN_SEARCHES: u32 = 4;

/// Meters all client programs of a run together. Their CPU time never falls: what ended ones used stays counted.
#[derive(Debug)]
pub struct ProgramMeter {
    variable: &'static str,
    processes: TreeMeter,
    round: u32,
    /// One was found before.
    found: bool,
}

impl ProgramMeter {
    /// Of the programs that carry this variable.
    pub fn new(variable: &'static str) -> ProgramMeter {
        ProgramMeter { variable, processes: TreeMeter::new(std::process::id()), round: 0, found: false }
    }

    /// CPU time, memory and threads now: nothing before the first one runs, `None` after the last one has ended. New ones are looked for
    /// now and then, and with `search`.
    pub fn read(&mut self, search: bool) -> Option<Reading> {
        let pids = if search || self.round.is_multiple_of(ROUNDS_BETWEEN_SEARCHES) {
            tree::marked_below(std::process::id(), self.variable)
        } else {
            self.processes.pids().collect()
        };
        self.round = self.round.wrapping_add(1);
        let Some(found) = self.processes.read_these(pids) else {
            return (!self.found).then(Reading::default);
        };
        self.found = true;
        Some(Reading { cpu_ns: found.cpu_ns, rss_bytes: found.rss_bytes, threads: found.threads, ..Reading::default() })
    }

    /// Proportional set at the last reading, bytes.
    pub fn proportional_bytes(&self) -> Option<u64> {
        proc_files::sum(&self.processes.pids().collect::<Vec<_>>(), proc_files::proportional_bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// A shell that has started one further process and uses the CPU for as long as it lives.
    fn start(variable: Option<&str>) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & while :; do :; done"]).stdin(Stdio::null());
        variable.into_iter().for_each(|variable| {
            command.env(variable, "1");
        });
        command.spawn().unwrap()
    }

    fn end(mut child: Child) {
        for pid in tree::below(child.id()).into_iter().chain([child.id()]) {
            // SAFETY: plain numbers of processes that this test started.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
        child.wait().unwrap();
    }

    #[test]
    fn programs_are_those_that_carry_the_variable_with_all_that_they_started() {
        const VARIABLE: &str = "PUBMARK_TEST_PROGRAM_METER";
        let mut meter = ProgramMeter::new(VARIABLE);
        assert_eq!(meter.read(true), Some(Reading::default()), "there is none yet");
        let (other, first, second) = (start(None), start(Some(VARIABLE)), start(Some(VARIABLE)));
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut found = None;
        // Each of both has a shell and its `sleep`.
        while found.is_none_or(|found: Reading| found.threads < 4 || found.cpu_ns < 50_000_000) {
            assert!(Instant::now() < deadline, "{found:?}");
            std::thread::sleep(Duration::from_millis(10));
            found = meter.read(true);
        }
        let before = found.unwrap();
        assert_eq!(before.threads, 4, "the other one is no client program");
        assert!(before.rss_bytes > 100_000 && meter.proportional_bytes() > Some(50_000), "{before:?}");
        end(first);
        let after = meter.read(false).unwrap();
        assert!(after.cpu_ns >= before.cpu_ns && after.threads == 2, "{after:?}");
        end(second);
        assert_eq!(meter.read(true), None, "none is left");
        end(other);
    }
}
