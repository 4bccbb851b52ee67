//! What client programs used: processes below this one that have a certain variable in their environment, and all their
//! descendants.

use super::{Reading, TreeMeter, proc_files};
use crate::tree;

/// Readings between two searches for programs that have started since.
const ROUNDS_BETWEEN_SEARCHES: u32 = 4;

/// Measures all client programs of a run together. Their CPU time never falls: the time of programs that ended stays
/// included.
#[derive(Debug)]
pub struct ProgramMeter {
    variable: &'static str,
    processes: TreeMeter,
    round: u32,
    /// A program was found by an earlier reading.
    found: bool,
}

impl ProgramMeter {
    /// Creates a meter for the programs that have this variable in their environment.
    pub fn new(variable: &'static str) -> ProgramMeter {
        ProgramMeter { variable, processes: TreeMeter::new(std::process::id()), round: 0, found: false }
    }

    /// CPU time, memory and threads now: all 0 before the first program runs, `None` after the last one has ended. New
    /// programs are looked for every few readings, and with `search`.
    pub fn read(&mut self, search: bool) -> Option<Reading> {
        let found = if search || self.round.is_multiple_of(ROUNDS_BETWEEN_SEARCHES) {
            self.processes.read_these(tree::marked_below(std::process::id(), self.variable))
        } else {
            self.processes.read_known()
        };
        self.round = self.round.wrapping_add(1);
        let Some(found) = found else {
            return (!self.found).then(Reading::default);
        };
        self.found = true;
        Some(Reading { cpu_ns: found.cpu_ns, rss_bytes: found.rss_bytes, threads: found.threads, ..Reading::default() })
    }

    /// Proportional set of the processes of the last reading, bytes.
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

    /// A shell with one child process. Both are killed when it is dropped.
    struct Shell(Child);

    impl Drop for Shell {
        fn drop(&mut self) {
            for pid in tree::below(self.0.id()).into_iter().chain([self.0.id()]) {
                // SAFETY: the ids are of processes that this test started.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
            self.0.wait().unwrap();
        }
    }

    /// The shell uses the CPU for as long as it runs.
    fn start(variable: Option<&str>) -> Shell {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
        variable.into_iter().for_each(|variable| {
            command.env(variable, "1");
        });
        Shell(command.spawn().unwrap())
    }

    /// Reads until the condition holds: a process that ended exists until its parent has waited for it.
    fn read_until(meter: &mut ProgramMeter, is_so: impl Fn(Option<Reading>) -> bool) -> Option<Reading> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let found = meter.read(true);
            if is_so(found) {
                return found;
            }
            assert!(Instant::now() < deadline, "{found:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn programs_are_those_that_carry_the_variable_with_all_that_they_started() {
        const VARIABLE: &str = "PUBMARK_TEST_PROGRAM_METER";
        let mut meter = ProgramMeter::new(VARIABLE);
        assert_eq!(meter.read(true), Some(Reading::default()), "there is none yet");
        let (_other, first, second) = (start(None), start(Some(VARIABLE)), start(Some(VARIABLE)));
        // Each of the two programs consists of a shell and its `sleep`.
        let has_both = |found: Option<Reading>| found.is_some_and(|it| it.threads >= 4 && it.cpu_ns >= 50_000_000);
        let before = read_until(&mut meter, has_both).unwrap();
        assert_eq!(before.threads, 4, "the other one is no client program");
        assert!(before.rss_bytes > 100_000 && meter.proportional_bytes() > Some(50_000), "{before:?}");
        drop(first);
        let after = read_until(&mut meter, |found| found.is_some_and(|it| it.threads == 2)).unwrap();
        assert!(after.cpu_ns >= before.cpu_ns, "{after:?}");
        drop(second);
        read_until(&mut meter, |found| found.is_none());
    }
}
