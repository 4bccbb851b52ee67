//! Selects the connections that a fault breaks, from the run's seed and the identity of a client, independent of where
//! the client runs.

use pubmark_model::random::{Stream, fold};
use pubmark_model::workload::Workload;

use crate::faults::planned::{BreakConnections, PlannedFault};
use crate::shard::setup::Setup;

/// Number of the random stream for the selection.
const PURPOSE: u64 = 0xfa12;

/// Tells every shard which of its connections each fault breaks.
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

/// By shard: the selected sessions. At least one is selected if any is eligible.
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

/// Identifies a client among all others; the same in every run.
pub(crate) fn identity(client_id: &str) -> u64 {
    fold(0, client_id.as_bytes())
}
