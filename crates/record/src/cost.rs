//! Resources that a run used: CPU time, memory, and whether a resource limit restricted the system.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connections::Side;
use crate::efficiency::EfficiencyFigures;
use crate::transform::TransformRow;

/// Resources of both sides over the measured window, and figures for sizing a deployment: cost per message and per
/// connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Process tree of the system, all brokers included; `null` where pubmark cannot observe it, and no node observes
    /// it.
    pub system: Option<Usage>,
    /// pubmark, all processes included.
    pub generator: Option<Usage>,
    /// The client programs (`--client 'COMMAND'`) and all processes that they started, which belong neither to the
    /// system nor to pubmark; absent where pubmark's own clients ran, or nodes started the programs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_programs: Option<Usage>,
    /// Groups whose clients ran in processes of their own (`isolate: process`); part of pubmark.
    #[serde(default)]
    pub groups: Vec<GroupUsage>,
    /// The whole machine that the system runs on, where it can be observed (node_exporter, or a node that observes);
    /// never mixed with `system`.
    #[serde(default)]
    pub host: Option<HostUsage>,
    /// Other activity on the machine of this process, which the system may not share.
    #[serde(default)]
    pub contention: Option<Contention>,
    /// Effects of the system's resource limits; `null` without limits.
    #[serde(default)]
    pub limits: Option<LimitEffect>,
    /// CPU seconds of the system in the window per million messages that arrived in the window: first copies of messages and
    /// first replies to requests, late replies included.
    pub system_cpu_s_per_million: Option<f64>,
    /// CPU seconds of pubmark, without emulated links, in the window per million messages that arrived in the window, replies
    /// included.
    pub generator_cpu_s_per_million: Option<f64>,
    /// CPU seconds of the client programs in the window per million messages that arrived in it, replies included; absent where
    /// their CPU time is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_programs_cpu_s_per_million: Option<f64>,
    /// Growth of the system's resident set from idle to its peak, divided by the connections that were open at once
    /// (`connections_at_once`), bytes; `null` below 100 connections, for which the quotient of a few memory pages is not
    /// meaningful. Records of versions before that field divide by all clients that were ever connected, which are more where
    /// devices disconnect as planned.
    pub system_bytes_per_connection: Option<f64>,
    /// Most connections that were open at once; `null` in a run on several nodes with planned disconnects, and where some
    /// sessions have two connections and not all were connected at once, because it is not known then, and in older records.
    #[serde(default)]
    pub connections_at_once: Option<u64>,
    /// Threads of pubmark that drive connections, one row per thread.
    #[serde(default)]
    pub threads: Vec<ShardHealth>,
    /// Payload over bytes transferred; `null` if the measured window was not completed.
    #[serde(default)]
    pub efficiency: Option<EfficiencyFigures>,
    /// Steps of `transform`, one row for each step of each device group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transform: Vec<TransformRow>,
}

impl Cost {
    /// Cores used by the threads that drive the connections of a side; `None` if the CPU time of one of them is not
    /// known.
    pub fn cores_of(&self, side: Side) -> Option<f64> {
        let own: Vec<Option<f64>> =
            self.threads.iter().filter(|thread| thread.side == side).map(|thread| thread.cores).collect();
        if own.is_empty() { None } else { own.into_iter().sum() }
    }
}

/// Resources that one side used. Figures that the machine does not provide are `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time, seconds.
    pub cpu_seconds: f64,
    /// CPU time over the window's length: 1.0 is one core.
    pub cores: f64,
    /// Largest resident set seen, bytes; pages that several processes of a tree share count once for each process.
    pub peak_rss_bytes: u64,
    /// Resident set before the first client connected, bytes.
    #[serde(default)]
    pub idle_rss_bytes: Option<u64>,
    /// Largest proportional set size seen, bytes: shared pages are divided among the processes that share them. Sampled
    /// less often.
    #[serde(default)]
    pub peak_pss_bytes: Option<u64>,
    /// Largest memory charged to the control group or container since its start, bytes: includes socket buffers and
    /// page cache, but not pages that another group touched first.
    #[serde(default)]
    pub cgroup_peak_bytes: Option<u64>,
    /// Largest number of threads seen.
    #[serde(default)]
    pub threads: Option<u64>,
    /// Largest number of open descriptors seen.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// Voluntary context switches in the window: a thread waited.
    #[serde(default)]
    pub voluntary_switches: Option<u64>,
    /// Involuntary context switches in the window: the time slice of a thread ended, or a thread with higher priority
    /// preempted it.
    #[serde(default)]
    pub involuntary_switches: Option<u64>,
    /// Run-queue wait in the window, ns: time in which threads were ready and had no CPU, because other threads ran,
    /// because more of its own threads were ready than there are CPUs, or because of a resource limit.
    #[serde(default)]
    pub run_queue_wait_ns: Option<u64>,
    /// Run-queue wait as a share of itself plus the CPU time, 0 to 1; `null` if both are 0.
    #[serde(default)]
    pub run_queue_wait_share: Option<f64>,
    /// Number of times that one of its threads was given a CPU in the window, from the kernel's `schedstat`.
    #[serde(default)]
    pub run_queue_slices: Option<u64>,
    /// Mean run-queue wait per such time, µs: about 10 to 20 on an idle virtual machine.
    #[serde(default)]
    pub run_queue_wait_mean_us: Option<f64>,
    /// The part of the run-queue wait that exceeds the ordinary wait, which an idle machine has too, ns: in intervals
    /// of about 4 ms, what exceeds one and a half times the thread's usual wait (50 µs at most) for each time that it
    /// was given a CPU. `null` for pubmark itself.
    #[serde(default)]
    pub run_queue_long_wait_ns: Option<u64>,
    /// Bytes that its TCP sockets received in the window, without headers and retransmissions.
    #[serde(default)]
    pub received_bytes: Option<u64>,
    /// Bytes that its TCP sockets sent in the window and the peer acknowledged.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
}

/// Resources of a group whose clients ran in processes of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupUsage {
    /// Name of the group, or of the client whose connections several groups share.
    pub group: String,
    /// CPU time, memory and threads; `null` if one of its processes ended within the window.
    pub usage: Option<Usage>,
}

/// Sum of two figures; `None` if one is not known.
fn sum<T: std::ops::Add<Output = T>>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one? + other?)
}

impl Usage {
    /// Sum of two usages; figures that one of them does not have are `None`.
    #[must_use]
    pub fn and(self, other: Usage) -> Usage {
        Usage {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            cores: self.cores + other.cores,
            peak_rss_bytes: self.peak_rss_bytes + other.peak_rss_bytes,
            idle_rss_bytes: sum(self.idle_rss_bytes, other.idle_rss_bytes),
            peak_pss_bytes: sum(self.peak_pss_bytes, other.peak_pss_bytes),
            cgroup_peak_bytes: sum(self.cgroup_peak_bytes, other.cgroup_peak_bytes),
            threads: sum(self.threads, other.threads),
            descriptors: sum(self.descriptors, other.descriptors),
            voluntary_switches: sum(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: sum(self.involuntary_switches, other.involuntary_switches),
            run_queue_long_wait_ns: sum(self.run_queue_long_wait_ns, other.run_queue_long_wait_ns),
            received_bytes: sum(self.received_bytes, other.received_bytes),
            sent_bytes: sum(self.sent_bytes, other.sent_bytes),
            ..Usage::default()
        }
        .with_run_queue_wait(
            sum(self.run_queue_wait_ns, other.run_queue_wait_ns),
            sum(self.run_queue_slices, other.run_queue_slices),
        )
    }

    /// Sets the run-queue wait of its threads, ns, and the number of times that they were given a CPU.
    #[must_use]
    pub fn with_run_queue_wait(self, wait_ns: Option<u64>, slices: Option<u64>) -> Usage {
        let wait_s = wait_ns.map(|wait_ns| wait_ns as f64 / 1e9);
        let share =
            wait_s.filter(|wait_s| self.cpu_seconds + wait_s > 0.0).map(|wait_s| wait_s / (self.cpu_seconds + wait_s));
        // A thread that waited through the whole window was never given a CPU; the mean is then at least the wait.
        let mean_us = wait_ns.zip(slices).map(|(wait_ns, slices)| wait_ns as f64 / 1e3 / slices.max(1) as f64);
        Usage {
            run_queue_wait_ns: wait_ns,
            run_queue_wait_share: share,
            run_queue_slices: slices,
            run_queue_wait_mean_us: mean_us,
            ..self
        }
    }
}

/// Resources of a whole machine over the measured window, as reported by its node_exporter or by a node that observes;
/// the sum if there are several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostUsage {
    /// URL that was read, without password; the name of a node that observes.
    pub url: String,
    /// Cores of the machine.
    pub cores_total: Option<u32>,
    /// CPU time of everything on the machine over the window's length: 1.0 is one core.
    pub cores: Option<f64>,
    /// Share of the CPU time that the hypervisor took for other guests, 0 to 1; the largest known one of several
    /// machines. `null` where none of them reports it, and in records of older versions.
    #[serde(default)]
    pub steal: Option<f64>,
    /// The same of each of several machines, by its `url`; absent for one machine, and in records of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steal_by_machine: BTreeMap<String, Option<f64>>,
    /// Whether it is the machine of this process (`environment`), by the boot id of the kernel. `null` where that is not
    /// known (node_exporter), where it holds for some of several machines, and in records of older versions.
    #[serde(default)]
    pub is_this_machine: Option<bool>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Largest memory use seen (total minus available), bytes.
    pub peak_used_bytes: Option<u64>,
    /// Bytes received by all network interfaces except the loopback and those whose packets pass another one as well (bridges, ports
    /// of containers, tunnels).
    pub received_bytes: Option<u64>,
    /// Bytes sent by all network interfaces except the loopback and those whose packets pass another one as well (bridges, ports
    /// of containers, tunnels).
    pub sent_bytes: Option<u64>,
    /// Readings that failed.
    pub failed_readings: u64,
}

impl HostUsage {
    /// Sum of two machines, with the larger known steal; other figures that one of them does not have are `None`.
    #[must_use]
    pub fn and(self, other: HostUsage) -> HostUsage {
        HostUsage {
            url: format!("{} and {}", self.url, other.url),
            cores_total: sum(self.cores_total, other.cores_total),
            cores: sum(self.cores, other.cores),
            steal: self.steal.into_iter().chain(other.steal).reduce(f64::max),
            steal_by_machine: self.steal_by_machine.into_iter().chain(other.steal_by_machine).collect(),
            is_this_machine: self.is_this_machine.filter(|_| self.is_this_machine == other.is_this_machine),
            memory_bytes: sum(self.memory_bytes, other.memory_bytes),
            peak_used_bytes: sum(self.peak_used_bytes, other.peak_used_bytes),
            received_bytes: sum(self.received_bytes, other.received_bytes),
            sent_bytes: sum(self.sent_bytes, other.sent_bytes),
            failed_readings: self.failed_readings + other.failed_readings,
        }
    }
}

/// Competition for the cores of this machine over the measured window, whether or not the system ran on it. CPU time
/// stolen by the hypervisor is `environment.steal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Share of the window in which some thread of the machine was ready to run and had no CPU, 0 to 1: the growth of
    /// `total` in the line `some` of `/proc/pressure/cpu`. `null` with a kernel without pressure stall information.
    pub cpu_pressure: Option<f64>,
    /// Cores used by programs that are neither the system nor pubmark nor a client program; measured in clock ticks, so
    /// short activity may be missed. A system that a node measured on another machine has no share in it. `null` where
    /// pubmark cannot observe the system, where a node measured it and its machine is not known, and where nodes generated
    /// the load.
    pub other_cores: Option<f64>,
}

/// One shard thread over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShardHealth {
    /// `publisher` or `subscriber` and a number.
    pub name: String,
    /// Side whose connections it drives.
    pub side: Side,
    /// CPU time over the window's length; `null` if the window was not completed.
    pub cores: Option<f64>,
    /// Number of sessions that it drives.
    pub sessions: u64,
    /// Wake-ups; `null` if the window was not completed.
    pub wakeups: Option<u64>,
    /// Messages that became due, or arrived, within this time were handled together (`--pace`), µs; absent where each
    /// was handled separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_us: Option<f64>,
    /// Share of the window in which a real-time thread (`--realtime`) had ordinary priority because its budget was used up; absent
    /// for a thread that is not real-time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary_share: Option<f64>,
}

/// Effects of resource limits on a system over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitEffect {
    /// Periods of the CPU limit.
    pub periods: Option<u64>,
    /// Of these, periods in which the system was throttled.
    pub throttled_periods: Option<u64>,
    /// Time for which the system was throttled, seconds.
    pub throttled_seconds: Option<f64>,
    /// Number of times that memory use reached its limit.
    pub memory_limit_hits: Option<u64>,
    /// Processes that were OOM-killed since the start.
    pub out_of_memory_kills: Option<u64>,
}

impl LimitEffect {
    /// Whether a limit restricted the system. One throttled period in a hundred does not count.
    pub fn was_binding(&self) -> bool {
        let throttled = matches!((self.periods, self.throttled_periods), (Some(all), Some(held)) if held * 100 > all);
        throttled || self.memory_limit_hits.unwrap_or(0) > 0 || self.out_of_memory_kills.unwrap_or(0) > 0
    }
}

/// CPU and memory in one sampling interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRow {
    /// End of the interval, seconds since the start of the measured window.
    pub t_s: f64,
    /// Cores used by the system.
    pub system_cores: Option<f64>,
    /// Resident set of the system, bytes.
    pub system_rss_bytes: Option<u64>,
    /// Proportional set size of the system, bytes.
    #[serde(default)]
    pub system_pss_bytes: Option<u64>,
    /// Memory charged to the system's control group, bytes.
    #[serde(default)]
    pub system_cgroup_bytes: Option<u64>,
    /// Threads of the system.
    #[serde(default)]
    pub system_threads: Option<u64>,
    /// Open descriptors of the system.
    #[serde(default)]
    pub system_descriptors: Option<u64>,
    /// Context switches of the system per second.
    #[serde(default)]
    pub system_switches_per_s: Option<f64>,
    /// Bytes received by the system's sockets per second.
    #[serde(default)]
    pub system_received_per_s: Option<f64>,
    /// Bytes sent by the system's sockets per second.
    #[serde(default)]
    pub system_sent_per_s: Option<f64>,
    /// Share of the interval in which the system was throttled.
    #[serde(default)]
    pub system_throttled: Option<f64>,
    /// Cores used by pubmark; `null` in a run on nodes, whose usage is in `nodes`.
    pub generator_cores: Option<f64>,
    /// Resident set of pubmark, bytes; `null` in a run on nodes.
    pub generator_rss_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_machines_the_largest_known_steal_remains() {
        let host = |steal, is_this_machine| HostUsage {
            steal,
            is_this_machine: Some(is_this_machine),
            ..HostUsage::default()
        };
        let of = |one: HostUsage, other: HostUsage| one.and(other).steal;
        assert_eq!(of(host(Some(0.1), true), host(Some(0.3), true)), Some(0.3));
        assert_eq!(of(host(Some(0.3), true), host(None, true)), Some(0.3), "the other one was lost");
        assert_eq!(of(host(None, true), host(Some(0.3), true)), Some(0.3));
        assert_eq!(of(host(None, true), host(None, true)), None);
        let together = |one, other| host(None, one).and(host(None, other)).is_this_machine;
        assert_eq!(
            [together(true, true), together(false, false), together(true, false)],
            [Some(true), Some(false), None]
        );
    }
}
