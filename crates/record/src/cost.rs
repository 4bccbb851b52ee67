//! What a run cost: processor time, memory, and whether a limit held the system back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connections::Side;
use crate::efficiency::EfficiencyFigures;
use crate::transform::TransformRow;

/// Cost of both sides over the measured window, and what sizes a deployment: cost per message and per connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The system's process tree, of all its brokers; `null` where it is not ours to see, and no node observes it.
    pub system: Option<Usage>,
    /// pubmark itself, all its processes.
    pub generator: Option<Usage>,
    /// The client programs (`--client 'COMMAND'`) and all that they started, which are neither the system nor pubmark; absent where
    /// pubmark's own clients ran, or nodes started the programs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_programs: Option<Usage>,
    /// Of pubmark, groups whose clients ran in processes of their own (`isolate: process`).
    #[serde(default)]
    pub groups: Vec<GroupUsage>,
    /// The whole machine that the system runs on, where that can be seen (node_exporter, or a node that observes); never mixed with `system`.
    #[serde(default)]
    pub host: Option<HostUsage>,
    /// What else ran on this machine, where the system and pubmark both ran on it.
    #[serde(default)]
    pub contention: Option<Contention>,
    /// What the system's limits did; `null` where it had none.
    #[serde(default)]
    pub limits: Option<LimitEffect>,
    /// CPU seconds of the system per million messages delivered.
    pub system_cpu_s_per_million: Option<f64>,
    /// CPU seconds of pubmark per million messages delivered.
    pub generator_cpu_s_per_million: Option<f64>,
    /// CPU seconds of the client programs per million messages delivered; absent where their CPU time is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_programs_cpu_s_per_million: Option<f64>,
    /// Growth of the system's resident set from idle to its peak, over the connections established, bytes; `null` below
    /// 100 connections, among which some pages of memory cannot be divided.
    pub system_bytes_per_connection: Option<f64>,
    /// Threads of pubmark that drive connections, one row each.
    #[serde(default)]
    pub threads: Vec<ShardHealth>,
    /// Payload over bytes carried; `null` where no window was lived through.
    #[serde(default)]
    pub efficiency: Option<EfficiencyFigures>,
    /// What the steps of `transform` did, a row a step of each device group with some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transform: Vec<TransformRow>,
}

impl Cost {
    /// Cores used by the threads that drive the connections of a side; `None` if that is not known of one of them.
    pub fn cores_of(&self, side: Side) -> Option<f64> {
        let own: Vec<Option<f64>> =
            self.threads.iter().filter(|thread| thread.side == side).map(|thread| thread.cores).collect();
        if own.is_empty() { None } else { own.into_iter().sum() }
    }
}

/// Cost of one side. What the machine cannot tell is `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time, seconds.
    pub cpu_seconds: f64,
    /// CPU time over the window's length: 1.0 is one core.
    pub cores: f64,
    /// Largest resident set seen, bytes; pages that processes of a tree share count once for each.
    pub peak_rss_bytes: u64,
    /// Resident set before the first client connected, bytes.
    #[serde(default)]
    pub idle_rss_bytes: Option<u64>,
    /// Largest proportional set seen, bytes: shared pages divided among those who share them. Sampled less often.
    #[serde(default)]
    pub peak_pss_bytes: Option<u64>,
    /// Largest memory charged to the control group or container since its start, bytes: socket buffers and page cache
    /// included, pages that another group touched first not.
    #[serde(default)]
    pub cgroup_peak_bytes: Option<u64>,
    /// Most threads seen.
    #[serde(default)]
    pub threads: Option<u64>,
    /// Most open descriptors seen.
    #[serde(default)]
    pub descriptors: Option<u64>,
    /// Context switches in the window because a thread waited.
    #[serde(default)]
    pub voluntary_switches: Option<u64>,
    /// Context switches in the window because a thread's time was over or a more urgent one came.
    #[serde(default)]
    pub involuntary_switches: Option<u64>,
    /// Time that its threads were ready to run and did not, in the window, ns: others ran on the processors, or more of its own threads
    /// were ready than there are processors, or a limit held them back.
    #[serde(default)]
    pub run_queue_wait_ns: Option<u64>,
    /// That time as a share of itself and the CPU time, 0 to 1; `null` where nothing ran and nothing waited.
    #[serde(default)]
    pub run_queue_wait_share: Option<f64>,
    /// Times that a thread of it got a processor in the window, as the kernel's `schedstat` counts them.
    #[serde(default)]
    pub run_queue_slices: Option<u64>,
    /// Run-queue wait for each of those times, on average, µs: some 10 to 20 on an idle virtual machine.
    #[serde(default)]
    pub run_queue_wait_mean_us: Option<f64>,
    /// The part of the run-queue wait that is not of the ordinary kind that an idle machine has too, ns: what is above the
    /// thread's usual wait for each time that it got a processor, and half that much again (50 µs at most), in intervals of some 4 ms. `null` for pubmark itself.
    #[serde(default)]
    pub run_queue_long_wait_ns: Option<u64>,
    /// Bytes that its TCP sockets received in the window, without headers and repetitions.
    #[serde(default)]
    pub received_bytes: Option<u64>,
    /// Bytes that its TCP sockets sent and the other side acknowledged in the window.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
}

/// Cost of a group whose clients ran in processes of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupUsage {
    /// Name of the group, or of the client whose connections several share.
    pub group: String,
    /// CPU time, memory and threads; `null` if a process of it ended within the window.
    pub usage: Option<Usage>,
}

/// The sum of two figures that are known.
fn sum<T: std::ops::Add<Output = T>>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one? + other?)
}

impl Usage {
    /// This and another together; what one of them cannot tell is `None`.
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

    /// With the time that its threads waited for a processor, ns, and the times that they got one.
    #[must_use]
    pub fn with_run_queue_wait(self, wait_ns: Option<u64>, slices: Option<u64>) -> Usage {
        let wait_s = wait_ns.map(|wait_ns| wait_ns as f64 / 1e9);
        let share =
            wait_s.filter(|wait_s| self.cpu_seconds + wait_s > 0.0).map(|wait_s| wait_s / (self.cpu_seconds + wait_s));
        // One who waited through the whole window got a processor never: the wait is at least so long.
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

/// Cost of a whole machine over the measured window, as its node_exporter or a node that observes tells it; of several, the sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostUsage {
    /// Where it was read, without password; of a node that observes, its name.
    pub url: String,
    /// Cores of the machine.
    pub cores_total: Option<u32>,
    /// CPU time of everything on the machine over the window's length: 1.0 is one core.
    pub cores: Option<f64>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Largest use of it seen, bytes: all but what is available.
    pub peak_used_bytes: Option<u64>,
    /// Bytes received by all its network interfaces but the loopback.
    pub received_bytes: Option<u64>,
    /// Bytes sent by all its network interfaces but the loopback.
    pub sent_bytes: Option<u64>,
    /// Readings that failed.
    pub failed_readings: u64,
}

impl HostUsage {
    /// This machine and another together; what one of them cannot tell is `None`.
    #[must_use]
    pub fn and(self, other: HostUsage) -> HostUsage {
        HostUsage {
            url: format!("{} and {}", self.url, other.url),
            cores_total: sum(self.cores_total, other.cores_total),
            cores: sum(self.cores, other.cores),
            memory_bytes: sum(self.memory_bytes, other.memory_bytes),
            peak_used_bytes: sum(self.peak_used_bytes, other.peak_used_bytes),
            received_bytes: sum(self.received_bytes, other.received_bytes),
            sent_bytes: sum(self.sent_bytes, other.sent_bytes),
            failed_readings: self.failed_readings + other.failed_readings,
        }
    }
}

/// Competition for the cores of this machine over the measured window. What the hypervisor took is `environment.steal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// Share of the window in which some thread of the machine was ready to run and had no processor, 0 to 1: the growth of `total`
    /// in the line `some` of `/proc/pressure/cpu`. `null` in a kernel without pressure stall information.
    pub cpu_pressure: Option<f64>,
    /// Cores that programs used that are neither the system nor pubmark nor a client program; short bursts of theirs are counted by clock ticks and may
    /// be missed. `null` where the system is not ours to see, or nodes drove the load.
    pub other_cores: Option<f64>,
}

/// One shard thread over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShardHealth {
    /// `publisher` or `subscriber` and a number.
    pub name: String,
    /// Whose connections it drives.
    pub side: Side,
    /// CPU time over the window's length; `null` if the window was not lived through.
    pub cores: Option<f64>,
    /// Sessions it drives.
    pub sessions: u64,
    /// Wake-ups; `null` if the window was not lived through.
    pub wakeups: Option<u64>,
    /// Messages that became due, or arrived, within this time were handled together (`--pace`), µs; absent where each was by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_us: Option<f64>,
    /// Share of the window in which a real-time thread (`--realtime`) had ordinary priority because its budget was used up; absent
    /// for a thread that is not real-time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary_share: Option<f64>,
}

/// What limits did to a system over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitEffect {
    /// Periods in which CPU time was rationed.
    pub periods: Option<u64>,
    /// Of these, how many ended with the system held back.
    pub throttled_periods: Option<u64>,
    /// Time that it was held back, seconds.
    pub throttled_seconds: Option<f64>,
    /// Times that memory was at its limit.
    pub memory_limit_hits: Option<u64>,
    /// Processes that were OOM-killed since the start.
    pub out_of_memory_kills: Option<u64>,
}

impl LimitEffect {
    /// Did a limit hold the system back? A single throttled period in a hundred is not yet binding.
    pub fn was_binding(&self) -> bool {
        let throttled = matches!((self.periods, self.throttled_periods), (Some(all), Some(held)) if held * 100 > all);
        throttled || self.memory_limit_hits.unwrap_or(0) > 0 || self.out_of_memory_kills.unwrap_or(0) > 0
    }
}

/// CPU and memory of one sampling interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRow {
    /// End of the interval, seconds since the start of the measured window.
    pub t_s: f64,
    /// Cores used by the system.
    pub system_cores: Option<f64>,
    /// Resident set of the system, bytes.
    pub system_rss_bytes: Option<u64>,
    /// Proportional set of the system, bytes.
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
    /// Share of the interval in which limits held the system back.
    #[serde(default)]
    pub system_throttled: Option<f64>,
    /// Cores used by pubmark.
    pub generator_cores: Option<f64>,
    /// Resident set of pubmark, bytes.
    pub generator_rss_bytes: Option<u64>,
}
