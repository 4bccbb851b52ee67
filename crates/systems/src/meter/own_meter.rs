//! What this process used.

use procfs::process::Process;

use super::{Reading, Switches, proc_files, tree_meter};
use crate::clock;

/// Meters this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnMeter;

impl OwnMeter {
    /// CPU time, memory and threads now; `None` if the kernel does not tell.
    pub fn read(&self) -> Option<Reading> {
        let stat = Process::myself().ok()?.stat().ok()?;
        Some(Reading {
            cpu_ns: clock::read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)?,
            rss_bytes: tree_meter::resident_bytes(&stat),
            threads: stat.num_threads.max(0) as u64,
            ..Reading::default()
        })
    }

    /// Proportional set now, bytes.
    pub fn proportional_bytes(&self) -> Option<u64> {
        proc_files::sum(&[std::process::id()], proc_files::proportional_bytes)
    }

    /// Open descriptors now.
    pub fn descriptors(&self) -> Option<u64> {
        proc_files::sum(&[std::process::id()], proc_files::descriptors)
    }

    /// Context switches of all its threads, ended ones too.
    pub fn switches(&self) -> Option<Switches> {
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
