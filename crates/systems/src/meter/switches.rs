//! Context switches of processes, from `/proc/PID/task/TID/status`.

use std::collections::HashMap;
use std::fs;

/// Context switches; they never fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Switches because a thread waited.
    pub voluntary: u64,
    /// Switches because a thread's time slice ended, or a thread of higher priority became ready.
    pub involuntary: u64,
}

/// Adds up the context switches of all threads of some processes.
///
/// The kernel counts switches for each thread, so those between the last reading of a thread and its end are missed.
/// For threads that do not end, the count is complete.
#[derive(Debug, Default)]
pub struct SwitchMeter {
    threads: HashMap<(u32, u32), Seen>,
    round: u32,
    total: Switches,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    switches: Switches,
    round: u32,
}

impl SwitchMeter {
    /// Reads all threads of these processes; `None` if none can be read.
    pub fn read(&mut self, pids: &[u32]) -> Option<Switches> {
        self.round = self.round.wrapping_add(1);
        let mut any = false;
        for (pid, thread) in pids.iter().flat_map(|pid| threads(*pid).into_iter().map(move |thread| (*pid, thread))) {
            let Some(now) = of_thread(pid, thread) else { continue };
            any = true;
            let seen = self.threads.insert((pid, thread), Seen { switches: now, round: self.round });
            // A smaller count belongs to another thread that got the same id.
            let since =
                seen.map(|seen| seen.switches).filter(|seen| seen.voluntary <= now.voluntary).unwrap_or_default();
            self.total.voluntary += now.voluntary - since.voluntary;
            self.total.involuntary += now.involuntary.saturating_sub(since.involuntary);
        }
        self.threads.retain(|_, seen| seen.round == self.round);
        any.then_some(self.total)
    }
}

/// Ids of the threads of a process; empty if the process has ended.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn of_thread(pid: u32, thread: u32) -> Option<Switches> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    // The two lines are at the end of the file.
    let of = |name: &str| text.lines().rev().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Switches { voluntary: of("voluntary_ctxt_switches:")?, involuntary: of("nonvoluntary_ctxt_switches:")? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn switches_of_a_thread_that_ended_stay_counted() {
        let pid = [std::process::id()];
        let mut meter = SwitchMeter::default();
        let before = meter.read(&pid).unwrap();
        let (to_thread, from_us) = mpsc::sync_channel(0);
        let (to_us, from_thread) = mpsc::sync_channel(0);
        let thread = std::thread::spawn(move || from_us.iter().for_each(|()| to_us.send(()).unwrap()));
        for _ in 0..200 {
            to_thread.send(()).unwrap();
            from_thread.recv().unwrap();
        }
        let busy = meter.read(&pid).unwrap();
        drop(to_thread);
        thread.join().unwrap();
        let after = meter.read(&pid).unwrap();
        // In each round trip at least one of the two threads waits.
        assert!(busy.voluntary >= before.voluntary + 200, "{before:?} {busy:?}");
        assert!(after.voluntary >= busy.voluntary && after.involuntary >= busy.involuntary, "{busy:?} {after:?}");
        assert_eq!(SwitchMeter::default().read(&[u32::MAX >> 1]), None);
    }
}
