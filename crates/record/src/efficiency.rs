//! Protocol efficiency in a record: payload over the bytes sent for it (ComBench, equations 5 and 6), and the same
//! ratio for receivers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Header of an Ethernet frame (two addresses and a type), bytes. The counters of an interface, which ComBench read,
/// include these 14 bytes of each packet, but not the checksum, the preamble and the gap between frames.
pub const ETHERNET_HEADER: u64 = 14;

/// Source of packet counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Counted by an emulated link, packet by packet.
    Counted,
    /// Estimated from the kernel's statistics of each socket, with headers added.
    Estimated,
    /// Not known, because a client library opened its own sockets.
    #[default]
    Unknown,
}

/// Packets in both directions; bytes include IP headers and everything after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketCounts {
    /// Packets sent, including packets lost on the way and retransmissions.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
}

impl PacketCounts {
    /// Adds other counts.
    pub fn add(&mut self, other: &PacketCounts) {
        // Saturating, because a node may have reported any value.
        self.sent_packets = self.sent_packets.saturating_add(other.sent_packets);
        self.sent_bytes = self.sent_bytes.saturating_add(other.sent_bytes);
        self.received_packets = self.received_packets.saturating_add(other.received_packets);
        self.received_bytes = self.received_bytes.saturating_add(other.received_bytes);
    }

    fn sent_on_ethernet(&self) -> u64 {
        self.sent_bytes + ETHERNET_HEADER * self.sent_packets
    }

    fn received_on_ethernet(&self) -> u64 {
        self.received_bytes + ETHERNET_HEADER * self.received_packets
    }
}

/// Payload bytes over bytes transferred, 0 to 1; `None` where either is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios {
    /// Payload published over bytes sent, with Ethernet headers: the figure of the papers.
    pub sent_ethernet: Option<f64>,
    /// The same with IP headers only.
    pub sent_ip: Option<f64>,
    /// Payload delivered over bytes received, with Ethernet headers.
    pub received_ethernet: Option<f64>,
    /// The same with IP headers only.
    pub received_ip: Option<f64>,
}

/// Traffic of a group in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupEfficiency {
    /// The group, or the client whose connections several share; `all` in the total.
    pub group: String,
    /// Messages written in the window.
    pub published: u64,
    /// Payload bytes of these messages.
    pub published_bytes: u64,
    /// Messages that arrived in the window, first copies.
    pub delivered: u64,
    /// Payload bytes of these messages.
    pub delivered_bytes: u64,
    /// Source of `window` and `set_up`.
    pub source: Source,
    /// Packets of the measured window.
    pub window: Option<PacketCounts>,
    /// Packets before the measured window: connects, subscriptions, warm-up; excluded from the ratios.
    pub set_up: Option<PacketCounts>,
    /// Estimated packets of the window, where `window` is counted: shows the accuracy of the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_window: Option<PacketCounts>,
    /// Efficiency.
    pub ratios: Ratios,
}

/// Protocol efficiency of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EfficiencyFigures {
    /// Figures by group of devices or subscribers, in the order of the workload; groups that share a client's
    /// connections are one row.
    pub groups: Vec<GroupEfficiency>,
    /// Total of all groups: sent for groups that publish, received for groups that subscribe, so that acknowledgements
    /// of subscribers are not charged to publishers.
    pub total: GroupEfficiency,
}

impl GroupEfficiency {
    fn judged(mut self) -> GroupEfficiency {
        self.ratios = Ratios::default();
        if let Some(window) = &self.window {
            let ratio =
                |payload: u64, carried: u64| (payload > 0 && carried > 0).then(|| payload as f64 / carried as f64);
            self.ratios = Ratios {
                sent_ethernet: ratio(self.published_bytes, window.sent_on_ethernet()),
                sent_ip: ratio(self.published_bytes, window.sent_bytes),
                received_ethernet: ratio(self.delivered_bytes, window.received_on_ethernet()),
                received_ip: ratio(self.delivered_bytes, window.received_bytes),
            };
        }
        self
    }
}

impl EfficiencyFigures {
    /// Computes the ratios and the total of groups.
    pub fn of(groups: Vec<GroupEfficiency>) -> EfficiencyFigures {
        let groups: Vec<_> = groups.into_iter().map(GroupEfficiency::judged).collect();
        let total = total(&groups);
        EfficiencyFigures { groups, total }
    }

    /// Replaces the estimate for a group's window and set-up by the counts of a link.
    pub fn count(&mut self, group: &str, window: PacketCounts, set_up: PacketCounts) {
        let groups = std::mem::take(&mut self.groups).into_iter().map(|known| {
            if known.group != group {
                return known;
            }
            let estimated_window = known.window.filter(|_| known.source == Source::Estimated);
            GroupEfficiency {
                source: Source::Counted,
                window: Some(window),
                set_up: Some(set_up),
                estimated_window,
                ..known
            }
        });
        *self = EfficiencyFigures::of(groups.collect());
    }

    /// Largest difference between the estimated and the counted bytes of a group and direction, as a share of the
    /// counted bytes.
    pub fn largest_difference(&self) -> Option<f64> {
        let pairs = self.groups.iter().filter_map(|group| group.window.zip(group.estimated_window));
        let sides = pairs.flat_map(|(counted, estimated)| {
            [(counted.sent_bytes, estimated.sent_bytes), (counted.received_bytes, estimated.received_bytes)]
        });
        let shares = sides.filter(|(counted, _)| *counted > 0);
        shares.map(|(counted, estimated)| estimated.abs_diff(counted) as f64 / counted as f64).reduce(f64::max)
    }
}

fn total(groups: &[GroupEfficiency]) -> GroupEfficiency {
    let mut total = GroupEfficiency { group: "all".to_owned(), ..GroupEfficiency::default() };
    let mut window = Some(PacketCounts::default());
    let mut set_up = Some(PacketCounts::default());
    let mut source = Source::Counted;
    if groups.iter().all(|group| group.published_bytes == 0 && group.delivered_bytes == 0) {
        // No payload was transferred, so the counts belong to no payload.
        (window, source) = (None, Source::Unknown);
    }
    for group in groups {
        let (publishes, hears) = (group.published_bytes > 0, group.delivered_bytes > 0);
        total.published += group.published;
        total.published_bytes += group.published_bytes;
        total.delivered += group.delivered;
        total.delivered_bytes += group.delivered_bytes;
        set_up = added(set_up, group.set_up);
        if !publishes && !hears {
            continue;
        }
        let (sent, received) = (u64::from(publishes), u64::from(hears));
        let counted = group.window.map(|counts| PacketCounts {
            sent_packets: sent * counts.sent_packets,
            sent_bytes: sent * counts.sent_bytes,
            received_packets: received * counts.received_packets,
            received_bytes: received * counts.received_bytes,
        });
        window = added(window, counted);
        source = match (source, group.source) {
            (Source::Counted, other) | (other, Source::Counted) => other,
            (Source::Unknown, _) | (_, Source::Unknown) => Source::Unknown,
            (Source::Estimated, Source::Estimated) => Source::Estimated,
        };
    }
    GroupEfficiency { source, window, set_up, ..total }.judged()
}

/// Adds a part to a sum; `None` once a part is not known.
fn added(sum: Option<PacketCounts>, part: Option<PacketCounts>) -> Option<PacketCounts> {
    let mut sum = sum?;
    sum.add(&part?);
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ComBench's case with 100 B over MQTT 3.1.1, topic `data`: fixed header 2 B, topic length 2 B and topic 4 B,
    /// headers of IP and TCP 40 B, and timestamps 12 B: 160 B in IP, 174 B on Ethernet. ComBench's publisher counted
    /// 174.9 B per message (0.572).
    fn publisher() -> GroupEfficiency {
        let counts =
            PacketCounts { sent_packets: 600, sent_bytes: 600 * 160, received_packets: 600, received_bytes: 600 * 52 };
        GroupEfficiency {
            group: "pub".into(),
            published: 600,
            published_bytes: 60_000,
            source: Source::Estimated,
            window: Some(counts),
            set_up: Some(counts),
            ..GroupEfficiency::default()
        }
    }

    fn subscriber() -> GroupEfficiency {
        let counts =
            PacketCounts { sent_packets: 600, sent_bytes: 600 * 52, received_packets: 600, received_bytes: 600 * 160 };
        GroupEfficiency {
            group: "sub".into(),
            published: 0,
            published_bytes: 0,
            delivered: 600,
            delivered_bytes: 60_000,
            window: Some(counts),
            ..publisher()
        }
    }

    #[test]
    fn combench_figures_come_out() {
        let figures = EfficiencyFigures::of(vec![publisher(), subscriber()]);
        let sent = figures.groups[0].ratios;
        assert_eq!((sent.sent_ethernet, sent.sent_ip), (Some(100.0 / 174.0), Some(0.625)));
        assert_eq!((sent.received_ethernet, sent.received_ip), (None, None));
        assert!((sent.sent_ethernet.unwrap_or_default() - 0.5718).abs() < 0.02 * 0.5718);
        // Acknowledgements are not charged to any payload: one side sends them, the other receives them.
        assert_eq!(figures.total.ratios.sent_ethernet, sent.sent_ethernet);
        assert_eq!(figures.total.ratios.received_ethernet, sent.sent_ethernet);
        assert_eq!(figures.total.source, Source::Estimated);
    }

    #[test]
    fn a_link_counts_instead_and_the_estimate_stands_beside_it() {
        let mut figures = EfficiencyFigures::of(vec![publisher(), subscriber()]);
        let mut counted = publisher().window.unwrap_or_default();
        counted.sent_bytes = 100_000;
        figures.count("pub", counted, PacketCounts::default());
        assert_eq!(figures.groups[0].source, Source::Counted);
        assert_eq!(figures.groups[0].ratios.sent_ip, Some(0.6));
        assert_eq!(figures.total.source, Source::Estimated);
        assert_eq!(figures.largest_difference(), Some(0.04));
    }

    #[test]
    fn where_no_payload_was_carried_nothing_was_counted_for_any() {
        let idle = GroupEfficiency { published: 0, published_bytes: 0, ..publisher() };
        let total = EfficiencyFigures::of(vec![idle.clone(), idle]).total;
        assert_eq!((total.window, total.ratios, total.source), (None, Ratios::default(), Source::Unknown));
    }

    #[test]
    fn unknown_values_are_no_figures() {
        let unknown = GroupEfficiency { source: Source::Unknown, window: None, set_up: None, ..publisher() };
        let figures = EfficiencyFigures::of(vec![unknown, subscriber()]);
        assert_eq!(figures.groups[0].ratios, Ratios::default());
        assert_eq!(
            (figures.total.window, figures.total.ratios, figures.total.source),
            (None, Ratios::default(), Source::Unknown)
        );
    }
}
