//! What a system used: the sum over its brokers.

use super::tree_meter::TreeMeter;
use super::{Reading, RunQueueMeter, RunQueueWait, SwitchMeter, Switches, proc_files};
use crate::cgroup::CostSource;
use crate::cgroup::usage::{self, CgroupUsage, LimitCounters};
use crate::clock;

/// Measures a system of one or more brokers.
///
/// The CPU time of a broker is that of its control group, if it has one that counts CPU time. This includes processes
/// that started and ended between two readings. Otherwise it is the CPU time of the process tree. Which of the two is
/// used is decided once, when the meter is created.
#[derive(Debug)]
pub struct SystemMeter {
    brokers: Vec<Broker>,
    switches: SwitchMeter,
    run_queue: RunQueueMeter,
}

#[derive(Debug)]
struct Broker {
    place: CostSource,
    tree: TreeMeter,
    cpu_by_cgroup: bool,
    /// CPU time at the last reading, ns.
    last_cpu_ns: u64,
    /// The count of the control group started from 0 again, as it does for a container that was restarted. The CPU time
    /// before that is not known.
    was_reset: bool,
    limits: LimitTotals,
}

/// Counters of the limits of a control group over its restarts.
#[derive(Debug, Default)]
struct LimitTotals {
    /// Sum of the last counters before each restart; `None` without a restart.
    before: Option<LimitCounters>,
    last: Option<LimitCounters>,
}

impl SystemMeter {
    /// Creates a meter for these brokers.
    pub fn new(places: &[CostSource]) -> SystemMeter {
        SystemMeter {
            brokers: places.iter().map(Broker::new).collect(),
            switches: SwitchMeter::default(),
            run_queue: RunQueueMeter::default(),
        }
    }

    /// Number of brokers.
    pub fn brokers(&self) -> usize {
        self.brokers.len()
    }

    /// Reads CPU time, memory, threads and control groups now. The reading is `None` if all processes of a broker have
    /// ended: the usage of the remaining brokers is not the cost of the system. The counters of the limits are still
    /// returned then, as long as the control group exists; they are `None` without limits.
    pub fn read(&mut self) -> (Option<Reading>, Option<LimitCounters>) {
        let readings: Vec<(Option<Reading>, Option<LimitCounters>)> =
            self.brokers.iter_mut().map(Broker::read).collect();
        let reading = add_up(readings.iter().map(|(reading, _)| *reading), add_readings);
        let limits = add_up(readings.iter().map(|(_, limits)| *limits), add_limits);
        (reading, limits)
    }

    /// Ids of the system's processes, as of the last reading.
    pub fn pids(&self) -> Vec<u32> {
        self.brokers.iter().flat_map(|broker| broker.tree.pids()).collect()
    }

    /// Proportional set of the system's processes, bytes; `None` if we have no permission to read one of them.
    pub fn proportional_bytes(&self) -> Option<u64> {
        proc_files::sum(&self.pids(), proc_files::proportional_bytes)
    }

    /// Open descriptors of the system's processes; `None` if we have no permission to read one of them.
    pub fn descriptors(&self) -> Option<u64> {
        proc_files::sum(&self.pids(), proc_files::descriptors)
    }

    /// Time that the system's threads waited for a CPU since the first reading.
    pub fn run_queue_wait(&mut self) -> Option<RunQueueWait> {
        let pids = self.pids();
        self.run_queue.read(&pids, clock::monotonic_ns())
    }

    /// Context switches of the system's processes until now.
    pub fn switches(&mut self) -> Option<Switches> {
        let pids = self.pids();
        self.switches.read(&pids)
    }
}

impl Broker {
    fn new(place: &CostSource) -> Broker {
        let counted = place.cgroup.as_ref().and_then(|cgroup| CgroupUsage::read(cgroup).cpu_ns);
        Broker {
            place: place.clone(),
            tree: TreeMeter::new(place.pid),
            cpu_by_cgroup: counted.is_some(),
            last_cpu_ns: counted.unwrap_or(0),
            was_reset: false,
            limits: LimitTotals::default(),
        }
    }

    fn read(&mut self) -> (Option<Reading>, Option<LimitCounters>) {
        let cgroup = self.place.cgroup.as_ref();
        let used = cgroup.map(CgroupUsage::read).unwrap_or_default();
        let tree = match cgroup.and_then(usage::members) {
            // The control group has all processes that were started in it, including daemons that left the tree.
            Some(pids) => self.tree.read_these(pids),
            None => self.tree.read(),
        };
        let is_restarted = used.cpu_ns.is_some_and(|cpu_ns| cpu_ns < self.last_cpu_ns);
        let cpu_ns = if self.cpu_by_cgroup { self.counted(used.cpu_ns) } else { tree.map(|tree| tree.cpu_ns) };
        let reading = tree.zip(cpu_ns).map(|(tree, cpu_ns)| Reading {
            cpu_ns,
            rss_bytes: tree.rss_bytes,
            threads: tree.threads,
            cgroup_bytes: used.memory_bytes,
            cgroup_peak_bytes: used.memory_peak_bytes,
            ..Reading::default()
        });
        (reading, used.limits.map(|limits| self.limits.add(limits, is_restarted)))
    }
}

impl LimitTotals {
    /// The counters since the first of these, at least: what was counted between the last reading and a restart is not known.
    fn add(&mut self, limits: LimitCounters, is_restarted: bool) -> LimitCounters {
        if let Some(last) = self.last.filter(|last| is_restarted || has_fallen(*last, limits)) {
            self.before = Some(self.before.map_or(last, |before| add_limits(before, last)));
        }
        self.last = Some(limits);
        let Some(before) = self.before else { return limits };
        let total = add_limits(before, limits);
        // The kill that ended the group may be the one that was not read.
        LimitCounters { out_of_memory_kills: total.out_of_memory_kills.filter(|kills| *kills > 0), ..total }
    }
}

/// Has a counter fallen? Counters of a control group that exists never do.
fn has_fallen(before: LimitCounters, now: LimitCounters) -> bool {
    let counters = |of: LimitCounters| {
        [of.periods, of.throttled_periods, of.throttled_ns, of.memory_limit_hits, of.out_of_memory_kills]
    };
    counters(before)
        .into_iter()
        .zip(counters(now))
        .any(|(before, now)| now.zip(before).is_some_and(|(now, before)| now < before))
}

impl Broker {
    /// The CPU time of the control group; `None` once its count has started from 0 again.
    fn counted(&mut self, cpu_ns: Option<u64>) -> Option<u64> {
        let cpu_ns = cpu_ns?;
        self.was_reset |= cpu_ns < self.last_cpu_ns;
        self.last_cpu_ns = cpu_ns;
        (!self.was_reset).then_some(cpu_ns)
    }
}

/// The sum, or `None` if a part is missing or there is none.
fn add_up<T>(parts: impl Iterator<Item = Option<T>>, add: impl Fn(T, T) -> T) -> Option<T> {
    let mut sum = None;
    for part in parts {
        let part = part?;
        sum = Some(match sum {
            Some(sum) => add(sum, part),
            None => part,
        });
    }
    sum
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

fn add_readings(a: Reading, b: Reading) -> Reading {
    Reading {
        cpu_ns: a.cpu_ns + b.cpu_ns,
        rss_bytes: a.rss_bytes + b.rss_bytes,
        threads: a.threads + b.threads,
        cgroup_bytes: both(a.cgroup_bytes, b.cgroup_bytes),
        cgroup_peak_bytes: both(a.cgroup_peak_bytes, b.cgroup_peak_bytes),
        ..Reading::default()
    }
}

fn add_limits(a: LimitCounters, b: LimitCounters) -> LimitCounters {
    LimitCounters {
        periods: both(a.periods, b.periods),
        throttled_periods: both(a.throttled_periods, b.throttled_periods),
        throttled_ns: both(a.throttled_ns, b.throttled_ns),
        memory_limit_hits: both(a.memory_limit_hits, b.memory_limit_hits),
        out_of_memory_kills: both(a.out_of_memory_kills, b.out_of_memory_kills),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn place(pid: u32) -> CostSource {
        CostSource { pid, cgroup: None }
    }

    #[test]
    fn counters_of_a_group_that_restarts_go_on_from_where_they_were() {
        let limits = |throttled_ns: u64, out_of_memory_kills: u64| LimitCounters {
            throttled_ns: Some(throttled_ns),
            out_of_memory_kills: Some(out_of_memory_kills),
            ..LimitCounters::default()
        };
        let mut totals = LimitTotals::default();
        let mut add = |throttled_s: u64, kills: u64| {
            let total = totals.add(limits(throttled_s * 1_000_000_000, kills), false);
            (total.throttled_ns.map(|ns| ns / 1_000_000_000), total.out_of_memory_kills, total.periods)
        };
        assert_eq!(add(40, 0), (Some(40), Some(0), None));
        assert_eq!(add(42, 0), (Some(42), Some(0), None));
        assert_eq!(add(0, 0), (Some(42), None, None), "whether it was killed is not known");
        assert_eq!(add(2, 1), (Some(44), Some(1), None));
        assert_eq!(add(1, 0), (Some(45), Some(1), None), "and again");
        let mut totals = LimitTotals::default();
        totals.add(limits(0, 0), false);
        let total = totals.add(limits(0, 0), true);
        assert_eq!((total.throttled_ns, total.out_of_memory_kills), (Some(0), None), "its CPU time began anew");
    }

    #[test]
    fn brokers_are_added_up_and_one_that_ended_makes_the_sum_unknown() {
        let start = || {
            // `exec`, so that there is one process and one thread.
            Command::new("sh").args(["-c", "exec cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
        };
        let (mut one, mut two) = (start(), start());
        let mut meter = SystemMeter::new(&[place(one.id()), place(two.id())]);
        let (reading, limits) = meter.read();
        let reading = reading.unwrap();
        assert_eq!((reading.threads, meter.brokers(), limits), (2, 2, None));
        assert!(reading.rss_bytes > 100_000 && reading.cgroup_bytes.is_none(), "{reading:?}");
        assert!(meter.proportional_bytes().unwrap() <= reading.rss_bytes + (1 << 20));
        assert!(meter.descriptors().unwrap() >= 6 && meter.switches().is_some());
        one.kill().unwrap();
        one.wait().unwrap();
        assert_eq!(meter.read().0, None);
        two.kill().unwrap();
        two.wait().unwrap();
        assert_eq!(meter.read().0, None);
        assert_eq!(SystemMeter::new(&[]).read(), (None, None));
    }
}
