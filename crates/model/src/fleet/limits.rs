//! How large a fleet can be: numbers in headers and packets have a fixed width, so a fleet that exceeds it is refused
//! before a run, and no number is truncated.

use std::collections::HashMap;

use super::Fleet;
use crate::placement::{Copies, GroupNodes, NodeLabels};
use crate::workload::Workload;

/// Maximum number of publishers of a fleet: a compact header has 24 bits for a publisher's number.
pub const MOST_PUBLISHERS: u64 = 1 << 24;
/// Maximum number of subscribers of a fleet, all copies together.
pub const MOST_SUBSCRIBERS: u64 = 1 << 24;
/// Maximum number of publications of a client: their numbers have 16 bits, and the last number marks a reply.
pub const MOST_PUBLICATIONS: usize = 65_535;
/// Maximum number of pairs of a publisher and one that reacts to it.
pub const MOST_REACTIONS: usize = 1 << 24;

/// A fleet that has more members than can be numbered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// More publishers than a header can number.
    #[error("{count} publishers are more than the {MOST_PUBLISHERS} that a message's header can tell apart")]
    Publishers {
        /// Number of publishers.
        count: u64,
    },
    /// Too many publishers because of reactions, of which not all were counted.
    #[error("reactions make more than {MOST_PUBLISHERS} publishers, which is what a message's header can tell apart")]
    Reactors,
    /// More reactions than are stored.
    #[error("more than {MOST_REACTIONS} pairs of a device and one that reacts to it")]
    Reactions,
    /// More subscribers than can be numbered.
    #[error("{count} subscribers are more than {MOST_SUBSCRIBERS}")]
    Subscribers {
        /// Number of subscribers.
        count: u64,
    },
    /// More publications on a connection than their numbers allow.
    #[error(
        "client {index} of `{client}` has {count} publications, one for each device and phase that it reacts to: more than {MOST_PUBLICATIONS} on a connection"
    )]
    Publications {
        /// Name of the clients.
        client: String,
        /// Number of the client among them.
        index: u32,
        /// Publications on its connection.
        count: usize,
    },
}

impl TooLarge {
    /// What to change.
    pub fn hint(&self) -> &'static str {
        match self {
            TooLarge::Publishers { .. } => {
                "use a smaller `--scale` or `count`, or `placement: {devices: split}` where each node has all devices"
            }
            TooLarge::Reactors | TooLarge::Reactions => {
                "use a smaller `--scale` or `count`, or a topic without `{trigger}` for what reacts"
            }
            TooLarge::Subscribers { .. } => "use a smaller `--scale` or `count`, or fewer nodes",
            TooLarge::Publications { .. } => {
                "deal the reactions out over more clients (`count`), or leave `{trigger}` out of their topic"
            }
        }
    }
}

/// Number of clients of a run as the groups state it; publishers that reactions add are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Devices.
    pub devices: u64,
    /// Subscribers.
    pub subscribers: u64,
}

impl Fleet {
    /// The fleet of `copies` copies of the workload as [`Fleet::new`] builds it, if it is not too large.
    pub fn checked(workload: &Workload, copies: u32) -> Result<Fleet, TooLarge> {
        check_counts(workload, &Copies::of_all(&workload.placements(), copies))?;
        Fleet::new(workload, copies).within_limits(workload)
    }

    /// The fleet of a run on these nodes as [`Fleet::on_nodes`] builds it, if it is not too large.
    pub fn checked_on_nodes(workload: &Workload, nodes: NodeLabels<'_>) -> Result<Fleet, TooLarge> {
        Fleet::check_counts_on_nodes(workload, nodes)?;
        Fleet::on_nodes(workload, nodes).within_limits(workload)
    }

    /// Checks that the devices and subscribers of a run on these nodes can be numbered, without building the fleet.
    /// Publishers that reactions add are not included.
    pub fn check_counts_on_nodes(workload: &Workload, nodes: NodeLabels<'_>) -> Result<ClientCounts, TooLarge> {
        check_counts(workload, &GroupNodes::of(&workload.placements(), nodes).copies())
    }

    fn within_limits(self, workload: &Workload) -> Result<Fleet, TooLarge> {
        match self.limits(workload) {
            Ok(()) => Ok(self),
            Err(too_large) => Err(too_large),
        }
    }

    /// Checks that every publisher's number fits a header, and every publication's number fits its connection.
    pub fn limits(&self, workload: &Workload) -> Result<(), TooLarge> {
        if let Some(too_large) = &self.chains.too_large {
            return Err(too_large.clone());
        }
        let count = self.devices.len() as u64;
        if count > MOST_PUBLISHERS {
            return Err(TooLarge::Publishers { count });
        }
        let mut publications: HashMap<(&str, u32, u32), usize> = HashMap::new();
        for device in &self.devices {
            if let Some(client) = workload.devices[usize::from(device.group)].client.as_deref() {
                *publications.entry((client, device.copy, device.index)).or_default() += 1;
            }
        }
        // The smallest of those that exceed the limit, so that the message is the same each time.
        let worst = publications.into_iter().filter(|(_, count)| *count > MOST_PUBLICATIONS).min();
        worst.map_or(Ok(()), |((client, _, index), count)| {
            Err(TooLarge::Publications { client: client.to_owned(), index, count })
        })
    }
}

/// Checks the number of devices and subscribers of N copies before they are built.
fn check_counts(workload: &Workload, copies: &Copies) -> Result<ClientCounts, TooLarge> {
    let total = |counts: &mut dyn Iterator<Item = u32>, copies: &[u32]| {
        counts.zip(copies).map(|(count, copies)| u64::from(count) * u64::from(*copies)).fold(0, u64::saturating_add)
    };
    let devices = total(&mut workload.devices.iter().map(|group| group.count), &copies.devices);
    if devices > MOST_PUBLISHERS {
        return Err(TooLarge::Publishers { count: devices });
    }
    let subscribers = total(&mut workload.subscribers.iter().map(|group| group.count), &copies.subscribers);
    if subscribers > MOST_SUBSCRIBERS {
        return Err(TooLarge::Subscribers { count: subscribers });
    }
    Ok(ClientCounts { devices, subscribers })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{self, LoadOptions};

    /// A hub that reacts to each of `devices` devices on a separate topic, twice if it has a second reaction.
    fn hub(devices: usize, second: usize) -> String {
        let others = match second {
            0 => String::new(),
            count => "  - {name: own, count: 1, every: 1h, payload: 16B, topic: own, client: hub}\n".repeat(count),
        };
        format!(
            "name: hub\ndevices:\n  - {{name: sensor, count: {devices}, every: 1h, payload: 16B, topic: \"in/{{index}}\"}}\n  - {{name: reply, count: 1, payload: 32B, topic: \"out/{{trigger}}\", client: hub, scales: false, arrival: {{reaction_to: \"in/+\"}}}}\n{others}subscribers:\n  - {{name: hub, filters: [\"in/+\"], client: hub}}\n"
        )
    }

    fn loaded(text: &str) -> Result<Workload, String> {
        load::parse("hub.yaml", text, &LoadOptions::default()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_client_has_as_many_publications_as_their_numbers_allow_and_no_more() {
        // A reaction adds two publishers for each trigger.
        let most = loaded(&hub(32_767, 1)).unwrap();
        assert_eq!(Fleet::checked(&most, 1).unwrap().devices().len(), 2 * 32_767 + 32_767 + 1);
        let why = loaded(&hub(32_768, 0)).unwrap_err();
        assert!(why.contains("client 0 of `hub` has 65536 publications") && why.contains("65535"), "{why}");
    }

    #[test]
    fn publishers_are_counted_with_all_their_copies() {
        let text = "name: many\nplacement: {devices: replicate}\ndevices:\n  - {name: a, count: 4194304, every: 1h, payload: 16B}\nsubscribers:\n  - {filters: [\"x\"]}\n";
        let workload = loaded(text).unwrap();
        assert!(check_counts(&workload, &Copies::of_all(&workload.placements(), 4)).is_ok());
        assert_eq!(
            Fleet::checked_on_nodes(&workload, NodeLabels::unknown(5)),
            Err(TooLarge::Publishers { count: 20_971_520 })
        );
        assert_eq!(
            Fleet::checked(&workload, u32::MAX),
            Err(TooLarge::Publishers { count: (1 << 22) * u64::from(u32::MAX) })
        );
    }
}
