//! CPU time and memory of a process tree, as far as `/proc` shows them.

use std::collections::HashMap;

use procfs::process::{Process, Stat};

use crate::clock;
use crate::tree;

/// Readings between two searches for new members of the tree. Searching all of `/proc` costs more than reading a few
/// processes. A process that starts and ends between two searches is counted in its parent, once the parent has waited
/// for it.
const ROUNDS_BETWEEN_SEARCHES: u32 = 4;

/// What a tree used until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeReading {
    /// CPU time since the start, ns.
    pub cpu_ns: u64,
    /// Resident set now, bytes. A page that several processes share counts once for each process.
    pub rss_bytes: u64,
    /// Threads now.
    pub threads: u64,
}

/// Measures a process tree. Its CPU time never falls: the time of members that ended stays included.
#[derive(Debug)]
pub struct TreeMeter {
    root: u32,
    /// Start of the root, in clock ticks since the machine's start: after its end, another process may get its id. `None` if it had
    /// ended before.
    root_started: Option<u64>,
    members: HashMap<u32, Member>,
    /// CPU time of members that ended and that no parent included in its own count, ns.
    carried_ns: u64,
    /// Differences at the last reading that are not resolved yet, by the parent's id.
    unmatched: HashMap<u32, Unmatched>,
    /// Highest CPU time returned so far, ns.
    reported_ns: u64,
    round: u32,
}

/// Difference, at one reading, between the time that a parent added for ended children and the time of its children
/// that were seen to have ended. The two can differ because processes are read one after the other: a child may end, or
/// be waited for, between the reading of the child and the reading of its parent.
#[derive(Clone, Copy, Debug, Default)]
struct Unmatched {
    /// The parent had added this time, but the child was still read as running.
    taken_over_ns: u64,
    /// The meter carries this time, because the parent was read before it had waited for the child.
    carried_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    started_ticks: u64,
    parent: u32,
    own_ns: u64,
    /// CPU time of the children that the process has waited for, ns.
    children_ns: u64,
    rss_bytes: u64,
    threads: u64,
    /// False for a zombie: it has ended, and its parent has not waited for it yet.
    alive: bool,
}

impl TreeMeter {
    /// Creates a meter for `root` and the tree below it.
    pub fn new(root: u32) -> TreeMeter {
        TreeMeter {
            root,
            root_started: started_ticks(root),
            members: HashMap::new(),
            carried_ns: 0,
            unmatched: HashMap::new(),
            reported_ns: 0,
            round: 0,
        }
    }

    /// Reads the tree now; `None` if all its processes have ended.
    pub fn read(&mut self) -> Option<TreeReading> {
        let searches = self.round.is_multiple_of(ROUNDS_BETWEEN_SEARCHES);
        self.round = self.round.wrapping_add(1);
        // A process that has the id of a root that ended is not the root of this tree.
        let is_root = started_ticks(self.root).is_none_or(|started| Some(started) == self.root_started);
        if searches && is_root { self.read_these(tree::members(self.root)) } else { self.read_known() }
    }

    /// Reads the processes of the last reading; another process with the id of one that ended is not among them.
    pub fn read_known(&mut self) -> Option<TreeReading> {
        let now = self.members.iter().filter_map(|(pid, before)| {
            let now = Member::read(*pid).filter(|now| now.started_ticks == before.started_ticks)?;
            Some((*pid, now))
        });
        let now = now.collect();
        self.take(now)
    }

    /// Reads these processes as the tree, for callers that know its members from elsewhere.
    pub fn read_these(&mut self, pids: Vec<u32>) -> Option<TreeReading> {
        self.take(pids.into_iter().filter_map(|pid| Some((pid, Member::read(pid)?))).collect())
    }

    fn take(&mut self, now: HashMap<u32, Member>) -> Option<TreeReading> {
        self.account_for_ended(&now);
        self.members = now;
        self.reported_ns = self.reported_ns.max(self.cpu_ns());
        self.members.values().any(|member| member.alive).then(|| TreeReading {
            cpu_ns: self.reported_ns,
            rss_bytes: self.members.values().map(|member| member.rss_bytes).sum(),
            threads: self.members.values().map(|member| member.threads).sum(),
        })
    }

    /// Ids of the processes of the last reading.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.members.keys().copied()
    }

    /// CPU time until the last reading, including that of ended processes, ns.
    fn cpu_ns(&self) -> u64 {
        self.carried_ns + self.members.values().map(|member| member.own_ns + member.children_ns).sum::<u64>()
    }

    /// Accounts for the CPU time of members that have ended. The kernel adds it to the parent once the parent has
    /// waited for the member. Time that no parent adds is carried in `carried_ns`.
    fn account_for_ended(&mut self, now: &HashMap<u32, Member>) {
        let is_member = |pid: &u32, before: &Member| {
            now.get(pid).filter(|member| member.started_ticks == before.started_ticks).copied()
        };
        let mut ended_ns: HashMap<u32, u64> = HashMap::new();
        for (pid, before) in self.members.iter().filter(|(pid, before)| is_member(pid, before).is_none()) {
            let has_parent =
                self.members.get(&before.parent).is_some_and(|parent| is_member(&before.parent, parent).is_some());
            match has_parent && *pid != before.parent {
                true => *ended_ns.entry(before.parent).or_default() += before.own_ns + before.children_ns,
                // No process of the tree can add this time to its own.
                false => self.carried_ns += before.own_ns + before.children_ns,
            }
        }
        let mut unmatched = HashMap::new();
        for (pid, before) in &self.members {
            let Some(member) = is_member(pid, before) else { continue };
            let taken_over_ns = member.children_ns.saturating_sub(before.children_ns);
            let ended_ns = ended_ns.get(pid).copied().unwrap_or(0);
            let last = self.unmatched.get(pid).copied().unwrap_or_default();
            let late_ns = taken_over_ns.saturating_sub(ended_ns).min(last.carried_ns);
            let carried_ns = ended_ns.saturating_sub(taken_over_ns + last.taken_over_ns);
            self.carried_ns = (self.carried_ns + carried_ns).saturating_sub(late_ns);
            let taken_over_ns = taken_over_ns.saturating_sub(ended_ns + late_ns);
            if taken_over_ns > 0 || carried_ns > 0 {
                unmatched.insert(*pid, Unmatched { taken_over_ns, carried_ns });
            }
        }
        self.unmatched = unmatched;
    }
}

impl Member {
    fn read(pid: u32) -> Option<Member> {
        let stat = Process::new(pid as i32).ok()?.stat().ok()?;
        Some(Member {
            started_ticks: stat.starttime,
            parent: stat.ppid as u32,
            own_ns: process_cpu_ns(pid).unwrap_or_else(|| ticks_ns(stat.utime + stat.stime)),
            children_ns: ticks_ns(stat.cutime.max(0) as u64 + stat.cstime.max(0) as u64),
            rss_bytes: resident_bytes(&stat),
            threads: stat.num_threads.max(0) as u64,
            alive: !matches!(stat.state, 'Z' | 'X' | 'x'),
        })
    }
}

/// Start of a process, in clock ticks since the machine's start; `None` if there is no such process.
fn started_ticks(pid: u32) -> Option<u64> {
    Some(Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?.starttime)
}

/// CPU time of all threads of a process, including ended ones, ns. `/proc/PID/stat` has it only in steps of 10 ms.
fn process_cpu_ns(pid: u32) -> Option<u64> {
    let mut its_clock: libc::clockid_t = 0;
    // SAFETY: `its_clock` is a valid variable for the clock's id.
    let found = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut its_clock) };
    if found == 0 { clock::read_ns(its_clock) } else { None }
}

fn ticks_ns(ticks: u64) -> u64 {
    (ticks as f64 * 1e9 / procfs::ticks_per_second() as f64) as u64
}

pub(super) fn resident_bytes(stat: &Stat) -> u64 {
    stat.rss * procfs::page_size()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// CPU time of a child and of all descendants that were waited for, as the kernel counts it, ns.
    fn wait_for_usage(pid: u32) -> u64 {
        let mut status = 0;
        // SAFETY: an all-zero rusage is valid; both pointers are valid and the child is ours.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::wait4(pid as libc::pid_t, &mut status, 0, &mut usage), pid as libc::pid_t);
            usage
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        ns(usage.ru_utime) + ns(usage.ru_stime)
    }

    #[test]
    fn cpu_time_of_short_lived_children_is_counted() {
        // Two rounds of a child that counts. Then the shell writes a line and waits until its input is closed.
        let script =
            "for round in 1 2; do sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; done; echo; read end";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        #[allow(clippy::zombie_processes, reason = "wait4 below takes its status and its usage")]
        let mut child = command.spawn().unwrap();
        let (mut meter, mut last) = (TreeMeter::new(child.id()), 0);
        let mut output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || std::io::Read::read(&mut output, &mut [0; 1]).unwrap());
        while !reader.is_finished() {
            let reading = meter.read().unwrap();
            assert!(reading.cpu_ns >= last, "{} after {last}", reading.cpu_ns);
            last = reading.cpu_ns;
            std::thread::yield_now();
        }
        let alive = meter.read().unwrap();
        drop(child.stdin.take());
        let truth_ns = wait_for_usage(child.id());
        assert_eq!(meter.read(), None);
        // The time that a parent adds for its children has steps of 10 ms.
        for (name, found) in [("alive", alive.cpu_ns), ("gone", meter.cpu_ns())] {
            assert!(
                found.abs_diff(truth_ns) <= 40_000_000 + truth_ns / 20,
                "{name}: {found} ns, the kernel says {truth_ns}"
            );
        }
        assert!(alive.rss_bytes > 0 && alive.threads == 1, "{alive:?}");
    }

    #[test]
    fn a_missing_process_has_no_known_cost() {
        assert_eq!(TreeMeter::new(u32::MAX >> 1).read(), None);
    }

    #[test]
    fn a_process_that_got_the_id_of_one_that_ended_is_not_measured() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut meter = TreeMeter::new(child.id());
        assert!(meter.read().is_some());
        // The kernel reuses an id only after all others, so the test changes the start time that the meter has stored instead.
        let earlier = |meter: &mut TreeMeter| {
            meter.root_started = meter.root_started.map(|ticks| ticks - 1);
            meter.members.values_mut().for_each(|member| member.started_ticks -= 1);
        };
        earlier(&mut meter);
        let cpu_ns = meter.cpu_ns();
        for _ in 0..2 * ROUNDS_BETWEEN_SEARCHES {
            assert_eq!(meter.read(), None);
        }
        assert_eq!(meter.cpu_ns(), cpu_ns, "the time of the one that ended stays");
        let mut meter = TreeMeter::new(child.id());
        meter.read().unwrap();
        earlier(&mut meter);
        assert_eq!(meter.read_known(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_ended_and_waits_for_its_parent_is_gone() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut meter = TreeMeter::new(child.id());
        assert!(meter.read().is_some());
        child.kill().unwrap();
        let is_zombie = || Process::new(child.id() as i32).unwrap().stat().unwrap().state == 'Z';
        while !is_zombie() {
            std::thread::yield_now();
        }
        assert_eq!(meter.read(), None);
        child.wait().unwrap();
    }
}
