//! Where a packet wants to go: the little of IP that the emulator reads (RFC 791 §3.1, RFC 8200 §3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addresses::{AddressOwner, place};

/// What a packet is to the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To one address (unicast).
    One(AddressOwner),
    /// To a multicast group.
    Everyone,
    /// Packets between kernels that TUN interfaces do not need.
    Noise,
    /// To an address outside of the plan.
    Nowhere,
    /// Not an IP packet.
    Malformed,
}

const IGMP: u8 = 2;
const HOP_BY_HOP: u8 = 0;
const ICMP_V6: u8 = 58;

/// Reads the destination of a packet.
pub fn destination(packet: &[u8]) -> Destination {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= 20 => v4(packet),
        Some(6) if packet.len() >= 40 => v6(packet),
        _ => Destination::Malformed,
    }
}

fn v4(packet: &[u8]) -> Destination {
    let address = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
    if !address.is_multicast() {
        return unicast(address.into());
    }
    if packet[9] == IGMP { Destination::Noise } else { Destination::Everyone }
}

fn v6(packet: &[u8]) -> Destination {
    let mut octets = [0; 16];
    octets.copy_from_slice(&packet[24..40]);
    let address = Ipv6Addr::from(octets);
    if !address.is_multicast() {
        return unicast(address.into());
    }
    // Multicast listener reports stand behind a hop-by-hop header (RFC 3810 §5).
    let next = if packet[6] == HOP_BY_HOP { packet.get(40).copied() } else { Some(packet[6]) };
    if next == Some(ICMP_V6) { Destination::Noise } else { Destination::Everyone }
}

/// Who is at the address that a packet comes from; `None` outside of the plan, and if it is no IP packet.
pub fn source(packet: &[u8]) -> Option<AddressOwner> {
    match packet.first()? >> 4 {
        4 => place(Ipv4Addr::from(*packet.get(12..16)?.first_chunk::<4>()?).into()),
        6 => place(Ipv6Addr::from(*packet.get(8..24)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

fn unicast(address: IpAddr) -> Destination {
    place(address).map_or(Destination::Nowhere, Destination::One)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::addresses::{CORE_V4, CORE_V6, group_v4, group_v6};

    fn v4_packet(destination: Ipv4Addr, protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet[16..20].copy_from_slice(&destination.octets());
        packet
    }

    fn v6_packet(destination: Ipv6Addr, next: u8, behind: u8) -> Vec<u8> {
        let mut packet = vec![0; 48];
        packet[0] = 0x60;
        packet[6] = next;
        packet[24..40].copy_from_slice(&destination.octets());
        packet[40] = behind;
        packet
    }

    #[test]
    fn packets_go_where_their_address_says() {
        let udp = 17;
        for (packet, expected) in [
            (v4_packet(CORE_V4, udp), Destination::One(AddressOwner::Core)),
            (v4_packet(group_v4(3, 7), udp), Destination::One(AddressOwner::Group(3))),
            (v4_packet([239, 255, 0, 1].into(), udp), Destination::Everyone),
            (v4_packet([224, 0, 0, 22].into(), IGMP), Destination::Noise),
            (v4_packet([255; 4].into(), udp), Destination::Nowhere),
            (v4_packet([8, 8, 8, 8].into(), udp), Destination::Nowhere),
            (v6_packet(CORE_V6, udp, 0), Destination::One(AddressOwner::Core)),
            (v6_packet(group_v6(300, 0), ICMP_V6, 128), Destination::One(AddressOwner::Group(300))),
            (v6_packet("ff15::1".parse().unwrap(), udp, 0), Destination::Everyone),
            (v6_packet("ff02::2".parse().unwrap(), ICMP_V6, 133), Destination::Noise),
            (v6_packet("ff02::16".parse().unwrap(), HOP_BY_HOP, ICMP_V6), Destination::Noise),
            (v6_packet("fe80::1".parse().unwrap(), udp, 0), Destination::Nowhere),
            (v4_packet(CORE_V4, udp)[..19].to_vec(), Destination::Malformed),
            (v6_packet(CORE_V6, udp, 0)[..39].to_vec(), Destination::Malformed),
            (vec![0x50; 60], Destination::Malformed),
            (Vec::new(), Destination::Malformed),
        ] {
            assert_eq!(destination(&packet), expected, "{packet:?}");
        }
    }

    #[test]
    fn the_source_of_a_packet_is_found() {
        let (mut four, mut six) = (v4_packet(CORE_V4, 17), v6_packet(CORE_V6, 17, 0));
        assert_eq!([source(&four), source(&six)], [None, None]);
        four[12..16].copy_from_slice(&group_v4(3, 7).octets());
        six[8..24].copy_from_slice(&group_v6(300, 0).octets());
        assert_eq!(source(&four), Some(AddressOwner::Group(3)));
        assert_eq!(source(&six), Some(AddressOwner::Group(300)));
        assert_eq!([source(&four[..15]), source(&six[..23]), source(&[])], [None; 3]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            first in prop_oneof![Just(0x45u8), Just(0x60)],
        ) {
            destination(&bytes);
            let mut bytes = bytes;
            bytes.insert(0, first);
            destination(&bytes);
            source(&bytes);
        }
    }
}
