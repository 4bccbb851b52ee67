//! What this process used, and the worker processes that generate for it.

use std::sync::{Arc, Mutex, PoisonError};

use procfs::process::Process;

use super::{Reading, SwitchMeter, Switches, proc_files, tree_meter};
use crate::clock;

/// Worker processes of a run: whoever starts one enters it, before the measured window. They end after it.
#[derive(Clone, Debug, Default)]
pub struct Workers(Arc<Mutex<Vec<u32>>>);

impl Workers {
    /// Enters one by its process number.
    pub fn enter(&self, pid: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    }

    fn pids(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Meters this process and its workers.
#[derive(Debug, Default)]
pub struct OwnMeter {
    workers: Workers,
    their_switches: SwitchMeter,
}

impl OwnMeter {
    /// Of this process and these workers.
    pub fn new(workers: Workers) -> OwnMeter {
        OwnMeter { workers, their_switches: SwitchMeter::default() }
    }

    fn pids(&self) -> Vec<u32> {
        let mut pids = self.workers.pids();
        pids.push(std::process::id());
        pids
    }

    /// CPU time, memory and threads now; `None` if the kernel does not tell, or a worker is gone.
    pub fn read(&self) -> Option<Reading> {
        let mut sum = Reading::default();
        for pid in self.pids() {
            let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
            sum.cpu_ns += clock::read_ns(clock::of_process(pid)?)?;
            sum.rss_bytes += tree_meter::resident_bytes(&stat);
            sum.threads += stat.num_threads.max(0) as u64;
        }
        Some(sum)
    }

    /// Proportional set now, bytes.
    pub fn proportional_bytes(&self) -> Option<u64> {
        proc_files::sum(&self.pids(), proc_files::proportional_bytes)
    }

    /// Open descriptors now.
    pub fn descriptors(&self) -> Option<u64> {
        proc_files::sum(&self.pids(), proc_files::descriptors)
    }

    /// Context switches of all threads, this process's ended ones too.
    pub fn switches(&mut self) -> Option<Switches> {
        let workers = self.workers.pids();
        let own = Self::own_switches()?;
        if workers.is_empty() {
            return Some(own);
        }
        let theirs = self.their_switches.read(&workers)?;
        Some(Switches {
            voluntary: own.voluntary + theirs.voluntary,
            involuntary: own.involuntary + theirs.involuntary,
        })
    }

    fn own_switches() -> Option<Switches> {
        // SAFETY: an all-zero rusage is valid, and the call fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            if libc::getrusage(libc::RUSAGE_SELF, &mut usage) != 0 {
                return None;
            }
            usage
        };
        Some(Switches { voluntary: usage.ru_nvcsw.max(0) as u64, involuntary: usage.ru_nivcsw.max(0) as u64 })
    }
}
