//! Protocol efficiency in words.

use pubmark_record::efficiency::{EfficiencyFigures, GroupEfficiency, Ratios, Source};

use crate::numbers::{MISSING, share};

/// A ratio with three decimals, as in the papers.
pub fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| format!("{value:.3}"))
}

/// Source of a group's counts.
pub fn source(group: &GroupEfficiency) -> &'static str {
    match group.source {
        Source::Counted => "counted by its link",
        Source::Estimated => "estimated from its sockets",
        Source::Unknown => MISSING,
    }
}

/// The whole run in one line.
pub fn efficiency(figures: &EfficiencyFigures) -> String {
    let total = &figures.total;
    if total.published_bytes == 0 && total.delivered_bytes == 0 {
        return format!("{MISSING}: no payload was sent or delivered");
    }
    let Ratios { sent_ethernet, sent_ip, received_ethernet, received_ip } = total.ratios;
    let how = match total.source {
        Source::Counted => "counted by the links",
        Source::Estimated => "estimated from sockets",
        Source::Unknown => return format!("{MISSING}: the client library opens its own sockets"),
    };
    format!(
        "payload over bytes sent {} on Ethernet, {} in IP; over bytes received {}, {}; {how}",
        ratio(sent_ethernet),
        ratio(sent_ip),
        ratio(received_ethernet),
        ratio(received_ip)
    )
}

/// How the figures are computed, and how well the two methods of counting agree.
pub fn how_efficiency_is_counted(figures: &EfficiencyFigures) -> String {
    let headers = "Payload of messages over the bytes that a group's interfaces sent for them, and delivered over received. \
                   On Ethernet counts 14 B of header a packet, as an interface's counters do and as ComBench printed it; checksum, \
                   preamble and gap (24 B more on a wire) are left out. In IP counts packets with their IP headers. Acknowledgements \
                   and what was sent again are in; connects, subscriptions and the warm-up stand apart.";
    let agreement = figures.largest_difference().map(|difference| {
        let parts = (difference * 1e6).round() as u64;
        format!(" What sockets tell differs from what links counted by at most {}.", share(parts, 1_000_000))
    });
    format!("{headers}{}", agreement.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use pubmark_record::efficiency::PacketCounts;

    use super::*;

    #[test]
    fn where_nothing_was_sent_there_is_no_efficiency() {
        let counts = PacketCounts { sent_packets: 9, sent_bytes: 500, received_packets: 9, received_bytes: 500 };
        let idle = GroupEfficiency { source: Source::Counted, window: Some(counts), ..GroupEfficiency::default() };
        let figures = EfficiencyFigures::of(vec![idle]);
        assert_eq!(efficiency(&figures), format!("{MISSING}: no payload was sent or delivered"));
        assert_eq!(ratio(figures.groups[0].ratios.sent_ip), MISSING);
    }
}
