//! Limits how many bytes a worker process may send. It may be on another machine, and the process that controls it
//! stores all of them in memory.

use pubmark_model::workload::Workload;

use super::frames::LONGEST;
use crate::message_log::row::ROW_BYTES;
use crate::plan::RunPlan;

/// Histograms of a shard, and the bounded part of its message accounting (a million ranges of missing messages), bytes.
const SHARD: u64 = 32 << 20;
/// Events of connections that a shard records in a run with faults, bytes.
const FAULTS: u64 = 64 << 20;
/// Message accounting of a client, bytes.
const CLIENT: u64 = 512;
/// State of a stream: its window and its position, bytes.
const STREAM: u64 = 256;
/// Largest record of one message, bytes: as refused, and as the first of its epoch and of its segment.
const MESSAGE: u64 = 32;

/// Largest number of bytes that a worker process with `shards` shards of a run may send: several times what it needs,
/// at most 1 GiB for each shard.
pub(super) fn allowance(plan: &RunPlan, shards: usize) -> u64 {
    let most = (LONGEST as u64).saturating_mul(shards as u64);
    let seconds = (plan.timeline.warmup_ns + plan.timeline.duration_ns) as f64 / 1e9;
    let Some(messages) = messages_per_s(&plan.workload, plan.fleet.devices().len()) else { return most };
    let messages = (messages * seconds).min(most as f64) as u64;
    let (devices, sessions) = (plan.fleet.devices().len() as u64, plan.listening_sessions() as u64);
    let of_shard = if plan.faults.is_empty() { SHARD } else { SHARD + FAULTS };
    let parts = [
        of_shard.saturating_mul(shards as u64),
        CLIENT.saturating_mul(devices.saturating_add(sessions)),
        STREAM.saturating_mul(devices.saturating_mul(sessions)),
        MESSAGE.saturating_mul(messages),
    ];
    parts.into_iter().fold(0_u64, u64::saturating_add).min(most)
}

/// Rows of a copy that a system may deliver for each one that a subscription expects: duplicates, and copies for a
/// second matching filter.
const COPIES: u64 = 4;
/// Rows that are allowed in any case.
const FEW_ROWS: u64 = 1 << 20;
/// Largest part of the message log of a process for which no number of messages is known, bytes.
const LARGEST_PART: u64 = 16 << 30;

/// Largest part of the message log that a worker process of a run may send, bytes: several times what a system that
/// works needs. It is stored on the disk.
pub(super) fn log_allowance(plan: &RunPlan) -> u64 {
    let seconds = plan.timeline.duration_ns as f64 / 1e9;
    let Some(messages) = messages_per_s(&plan.workload, plan.fleet.devices().len()) else { return LARGEST_PART };
    let for_each = 1 + COPIES * plan.listening_sessions() as u64;
    let rows = (messages * seconds) as u64;
    rows.saturating_mul(for_each).saturating_add(FEW_ROWS).saturating_mul(ROW_BYTES as u64).min(LARGEST_PART)
}

/// Messages a second that the whole fleet does not exceed for long; `None` if devices follow no rate, or react to other
/// messages.
fn messages_per_s(workload: &Workload, devices: usize) -> Option<f64> {
    if workload.has_reactions() {
        return None;
    }
    // In a short window, every device may be in its fastest state, or at the peak of a day.
    let rates = workload.devices.iter().map(|group| group.arrival.highest_rate_per_s());
    let fastest = rates.collect::<Option<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    Some(fastest * devices as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::virtual_time::{ONE_TO_ONE, plan};

    #[test]
    fn each_shard_may_send_the_longest_message_if_the_plan_is_that_large() {
        let of = |seconds, shards| allowance(&plan(ONE_TO_ONE, Duration::from_secs(seconds)), shards);
        let longest = LONGEST as u64;
        // 100 messages a second, of 32 bytes each: 3.2 GB.
        assert_eq!([of(1_000_000, 1), of(1_000_000, 2)], [longest, 2 * longest]);
        assert!(of(1_000_000, 4) < 4 * longest);
        assert!(of(1, 4) < longest);
    }
}
