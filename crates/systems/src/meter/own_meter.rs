//! What this process and its worker processes used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procfs::process::Process;

use super::{ProgramMeter, Reading, RunQueueMeter, RunQueueWait, SwitchMeter, Switches, proc_files, tree_meter};
use crate::clock;

/// Worker processes of a run. The code that starts a worker enters it here, before the measured window. Workers end
/// after the window.
#[derive(Clone, Debug, Default)]
pub struct Workers {
    entered: Arc<Mutex<Entered>>,
    /// Environment variable of the client programs that the workers start; `None` if they start none.
    programs: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Entered {
    pids: Vec<u32>,
    /// Workers that work for one group only: index of the group in `groups`, and process id.
    alone: Vec<(usize, u32)>,
    /// Names of the groups that have worker processes of their own, in the order in which they were entered.
    groups: Vec<String>,
}

impl Workers {
    /// Workers that start client programs, each with this variable in its environment.
    pub fn with_programs(variable: &'static str) -> Workers {
        Workers { programs: Some(variable), ..Workers::default() }
    }

    /// Enters a worker by its process id. `group` is the name of the group, if the worker works for one group only.
    pub fn enter(&self, pid: u32, group: Option<&str>) {
        let mut entered = self.lock();
        entered.pids.push(pid);
        let Some(group) = group else { return };
        let known = entered.groups.iter().position(|known| known == group);
        let place = known.unwrap_or_else(|| {
            entered.groups.push(group.to_owned());
            entered.groups.len() - 1
        });
        entered.alone.push((place, pid));
    }

    /// Names of the groups that have worker processes of their own, in the order of [`OwnMeter::groups`].
    pub fn groups(&self) -> Vec<String> {
        self.lock().groups.clone()
    }

    fn pids(&self) -> Vec<u32> {
        self.lock().pids.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Entered> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// CPU time, memory and threads of processes; `None` if one of them has ended.
fn sum(pids: impl IntoIterator<Item = u32>) -> Option<Reading> {
    let mut sum = Reading::default();
    for pid in pids {
        let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
        sum.cpu_ns += clock::read_ns(clock::of_process(pid)?)?;
        sum.rss_bytes += tree_meter::resident_bytes(&stat);
        sum.threads += stat.num_threads.max(0) as u64;
    }
    Some(sum)
}

/// Meters this process and its workers.
#[derive(Debug, Default)]
pub struct OwnMeter {
    workers: Workers,
    their_switches: SwitchMeter,
    run_queue: RunQueueMeter,
    programs: Option<ProgramMeter>,
}

impl OwnMeter {
    /// Creates a meter for this process and these workers.
    pub fn new(workers: Workers) -> OwnMeter {
        let programs = workers.programs.map(ProgramMeter::new);
        OwnMeter { workers, programs, ..OwnMeter::default() }
    }

    /// The workers.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Ids of this process and its workers.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = self.workers.pids();
        pids.push(std::process::id());
        pids
    }

    /// CPU time, memory and threads now; `None` if the kernel does not report them, or a worker has ended.
    pub fn read(&self) -> Option<Reading> {
        sum(self.pids())
    }

    /// CPU time, memory and threads of each group that has worker processes of its own, in the order of
    /// [`Workers::groups`].
    pub fn groups(&self) -> Vec<Option<Reading>> {
        let entered = self.workers.lock();
        let of = |place: usize| sum(entered.alone.iter().filter(|(own, _)| *own == place).map(|(_, pid)| *pid));
        (0..entered.groups.len()).map(of).collect()
    }

    /// What the client programs use; no other figure of this meter includes them. `None` if no program runs. With
    /// `search`, new programs are looked for.
    pub fn programs(&mut self, search: bool) -> Option<Reading> {
        self.programs.as_mut()?.read(search)
    }

    /// Proportional set of the client programs at the last reading, bytes.
    pub fn proportional_bytes_of_programs(&self) -> Option<u64> {
        self.programs.as_ref()?.proportional_bytes()
    }

    /// Proportional set of this process and its workers now, bytes.
    pub fn proportional_bytes(&self) -> Option<u64> {
        proc_files::sum(&self.pids(), proc_files::proportional_bytes)
    }

    /// Open descriptors of this process and its workers now.
    pub fn descriptors(&self) -> Option<u64> {
        proc_files::sum(&self.pids(), proc_files::descriptors)
    }

    /// Time that all threads waited for a CPU since the first reading.
    pub fn run_queue_wait(&mut self) -> Option<RunQueueWait> {
        let pids = self.pids();
        self.run_queue.read(&pids, clock::monotonic_ns())
    }

    /// Context switches of all threads, including threads of this process that have ended.
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
