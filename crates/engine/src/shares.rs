//! Who does what: the shards of a run, and what part of the fleet each has. Where each runs follows from it, and is the same in
//! every process that works it out.

use std::collections::BTreeSet;

use crate::plan::RunPlan;

/// A side of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Devices.
    Publish,
    /// Subscribers, and devices on their connections.
    Subscribe,
}

/// A shard's part of its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The side.
    pub side: Side,
    /// Clients of this network alone, if shards are dealt out by network: `Some(None)` is the machine's own.
    pub network: Option<Option<u16>>,
    /// Which part of these.
    pub part: usize,
    /// How many parts there are.
    pub of: usize,
}

impl Share {
    /// Does it have clients of this network?
    pub fn is_in(&self, network: Option<u16>) -> bool {
        self.network.is_none_or(|own| own == network)
    }

    /// The network whose process runs it; `None`: the process that leads the run.
    pub fn away(&self) -> Option<u16> {
        self.network.flatten()
    }
}

/// The shards of a run: first those of devices, then those of subscribers.
pub fn shares(plan: &RunPlan) -> Vec<Share> {
    let sides = [
        (Side::Publish, plan.publisher_shards, &plan.networks.devices, plan.workload.devices.len()),
        (Side::Subscribe, plan.subscriber_shards, &plan.networks.subscribers, plan.workload.subscribers.len()),
    ];
    let mut shares = vec![];
    for (side, of, networks, groups) in sides {
        let used: BTreeSet<Option<u16>> = (0..groups).map(|group| networks.get(group).copied().flatten()).collect();
        let networks: Vec<Option<Option<u16>>> = match plan.by_network && !used.is_empty() {
            true => used.into_iter().map(Some).collect(),
            false => vec![None],
        };
        for network in networks {
            // A network of its own has a process of its own, whose client library has threads of its own.
            let of = if network.flatten().is_some() { 1 } else { of };
            shares.extend((0..of).map(|part| Share { side, network, part, of }));
        }
    }
    shares
}

/// Shards of one side.
pub fn count(shares: &[Share], side: Side) -> usize {
    shares.iter().filter(|share| share.side == side).count()
}
