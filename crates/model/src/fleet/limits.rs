//! How large a fleet can be: numbers that travel in headers and packets have a width, and what does not fit is refused before a
//! run, never cut.

use std::collections::HashMap;

use super::Fleet;
use crate::placement::{Copies, GroupNodes, NodeLabels};
use crate::workload::Workload;

/// Most publishers of a fleet: a compact header has 24 bits for a publisher's number.
pub const MOST_PUBLISHERS: u64 = 1 << 24;
/// Most subscribers of a fleet, all copies together.
pub const MOST_SUBSCRIBERS: u64 = 1 << 24;
/// Most publications of a client: their numbers have 16 bits, and the last one marks an answer.
pub const MOST_PUBLICATIONS: usize = 65_535;
/// Most pairs of a publisher and one that reacts to it.
pub const MOST_REACTIONS: usize = 1 << 24;

/// A fleet that is too large to be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// More publishers than a header can number.
    #[error("{count} publishers are more than the {MOST_PUBLISHERS} that a message's header can tell apart")]
    Publishers {
        /// How many there would be.
        count: u64,
    },
    /// The same where reactions make the publishers, of which not all were counted.
    #[error("reactions make more than {MOST_PUBLISHERS} publishers, which is what a message's header can tell apart")]
    Reactors,
    /// More reactions than are held.
    #[error("more than {MOST_REACTIONS} pairs of a device and one that reacts to it")]
    Reactions,
    /// More subscribers than are numbered.
    #[error("{count} subscribers are more than {MOST_SUBSCRIBERS}")]
    Subscribers {
        /// How many there would be.
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

/// How many clients a run has, as far as groups say it: what reactions add is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCounts {
    /// Devices.
    pub devices: u64,
    /// Subscribers.
    pub subscribers: u64,
}

impl Fleet {
    /// Its devices and subscribers, counted.
    pub fn counts(&self) -> ClientCounts {
        ClientCounts { devices: self.devices().len() as u64, subscribers: self.subscribers().len() as u64 }
    }

    /// So many copies of the workload as [`Fleet::new`] counts out, if they can be told apart.
    pub fn checked(workload: &Workload, copies: u32) -> Result<Fleet, TooLarge> {
        check_counts(workload, &Copies::of_all(&workload.placements(), copies))?;
        Fleet::new(workload, copies).within_limits(workload)
    }

    /// The fleet of a run on these nodes as [`Fleet::on_nodes`] counts it out, if it can be told apart.
    pub fn checked_on_nodes(workload: &Workload, nodes: NodeLabels<'_>) -> Result<Fleet, TooLarge> {
        Fleet::check_counts_on_nodes(workload, nodes)?;
        Fleet::on_nodes(workload, nodes).within_limits(workload)
    }

    /// Can the devices and subscribers of a run on these nodes be told apart? Nothing is counted out for that; what reactions add
    /// is not looked at.
    pub fn check_counts_on_nodes(workload: &Workload, nodes: NodeLabels<'_>) -> Result<ClientCounts, TooLarge> {
        check_counts(workload, &GroupNodes::of(&workload.placements(), nodes).copies())
    }

    fn within_limits(self, workload: &Workload) -> Result<Fleet, TooLarge> {
        match self.limits(workload) {
            Ok(()) => Ok(self),
            Err(too_large) => Err(too_large),
        }
    }

    /// Has every publisher a number that a header carries, and every publication one that its connection has?
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
        // The first of those that exceed it, so that the message is the same each time.
        let worst = publications.into_iter().filter(|(_, count)| *count > MOST_PUBLICATIONS).min();
        worst.map_or(Ok(()), |((client, _, index), count)| {
            Err(TooLarge::Publications { client: client.to_owned(), index, count })
        })
    }
}

/// Is there room for the devices and subscribers of N copies? Asked before they are counted out.
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

    /// A hub that answers each of `devices` devices on a topic of its own, twice if it has a second reaction.
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
        // A reaction is two publishers for each trigger.
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
