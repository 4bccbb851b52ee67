//! Which connections a fault breaks: drawn from the run's seed and who a client is, never from where it runs.

use pubmark_model::random::{Stream, fold};
use pubmark_model::workload::Workload;

use crate::faults::planned::{BreakConnections, PlannedFault};
use crate::shard::setup::Setup;

/// Draws of who is chosen.
const PURPOSE: u64 = 0xfa12;

/// Gives every shard its part of the connections that each fault breaks.
pub(crate) fn choose(setups: &mut [Setup], workload: &Workload, planned: &[PlannedFault], seed: u64) {
    for (number, fault) in planned.iter().enumerate() {
        let chosen = match &fault.connections {
            Some(breaks) => chosen(setups, workload, breaks, Stream::new(seed ^ number as u64, PURPOSE)),
            None => vec![vec![]; setups.len()],
        };
        for (setup, chosen) in setups.iter_mut().zip(chosen) {
            if let Some(log) = &mut setup.faults {
                log.chosen.push(chosen);
            }
        }
    }
}

/// By shard: its sessions among those chosen. At least one where any is eligible.
fn chosen(setups: &[Setup], workload: &Workload, breaks: &BreakConnections, draws: Stream) -> Vec<Vec<u32>> {
    let mut eligible: Vec<(u64, usize, u32)> = Vec::new();
    for (shard, setup) in setups.iter().enumerate() {
        for (session, entry) in (0..).zip(&setup.sessions) {
            let devices = entry.publishers.clone().map(|publisher| {
                let group = &workload.devices[usize::from(setup.publishers[publisher as usize].book.group)];
                (&group.name, &group.client)
            });
            let subscriber = entry.subscriber_group.map(|group| {
                let group = &workload.subscribers[usize::from(group)];
                (&group.name, &group.client)
            });
            let is_meant = breaks.group.as_ref().is_none_or(|wanted| {
                devices.chain(subscriber).any(|(group, client)| group == wanted || client.as_ref() == Some(wanted))
            });
            if is_meant {
                eligible.push((draws.bits(entry.identity), shard, session));
            }
        }
    }
    eligible.sort_unstable();
    let count = (eligible.len() as f64 * breaks.share).round().max(1.0) as usize;
    let mut chosen = vec![vec![]; setups.len()];
    for (_, shard, session) in eligible.into_iter().take(count) {
        chosen[shard].push(session);
    }
    chosen
}

/// What tells a client from all others, the same in every run.
pub(crate) fn identity(client_id: &str) -> u64 {
    fold(0, client_id.as_bytes())
}
