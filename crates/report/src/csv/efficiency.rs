//! Protocol efficiency by group.

use pubmark_record::efficiency::PacketCounts;
use pubmark_record::record::Record;

use super::{Table, optional, text};

/// A count of packets with its name.
type PacketColumn = (&'static str, fn(&PacketCounts) -> u64);

const PACKETS: [PacketColumn; 4] = [
    ("sent_packets", |counts| counts.sent_packets),
    ("sent_ip_bytes", |counts| counts.sent_bytes),
    ("received_packets", |counts| counts.received_packets),
    ("received_ip_bytes", |counts| counts.received_bytes),
];

/// One line per group, and one for the total.
pub(super) fn efficiency(record: &Record) -> String {
    let own = ["group", "source", "published", "published_bytes", "delivered", "delivered_bytes"].map(String::from);
    let ratios =
        ["sent_ethernet", "sent_ip", "received_ethernet", "received_ip"].map(|name| format!("efficiency_{name}"));
    let packets = |when: &str| PACKETS.map(|(name, _)| format!("{when}_{name}"));
    let names = [&own[..], &ratios, &packets("window"), &packets("set_up"), &packets("estimated_window")].concat();
    let mut table = Table::new(&names);
    let groups = record.cost.efficiency.iter().flat_map(|figures| figures.groups.iter().chain([&figures.total]));
    for group in groups {
        let source = format!("{:?}", group.source).to_lowercase();
        let counts = [group.published, group.published_bytes, group.delivered, group.delivered_bytes];
        let mut fields = vec![text(&group.group), source];
        fields.extend(counts.map(|count| count.to_string()));
        let found = &group.ratios;
        fields.extend([found.sent_ethernet, found.sent_ip, found.received_ethernet, found.received_ip].map(optional));
        for counts in [&group.window, &group.set_up, &group.estimated_window] {
            fields.extend(PACKETS.map(|(_, get)| optional(counts.as_ref().map(get))));
        }
        table.row(&fields);
    }
    table.text
}
