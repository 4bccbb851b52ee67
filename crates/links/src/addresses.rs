//! Addresses of groups and core: a pure function of the group's number.
//!
//! Groups and core live in 198.18.0.0/15, which RFC 2544 (appendix C.2.2) reserves for benchmarks of networks, and in
//! fd00:18::/32, part of the unique local addresses of RFC 4193. The core is number 0: 198.18.0.1, fd00:18::1. Group k,
//! counted from 0, has the 256 addresses from (k + 1) · 256 on and fd00:18:(k + 1)::/48; its members start at .2 and
//! ::2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most groups: each takes 256 of the 131,072 addresses of 198.18.0.0/15, the core the first 256.
pub const MOST_GROUPS: usize = 511;

/// Most source addresses of a group: .2 to .254.
pub const MOST_ADDRESSES: usize = 253;

/// Length of the prefix that core and groups share, IPv4.
pub const PREFIX_V4: u8 = 15;

/// The same of IPv6.
pub const PREFIX_V6: u8 = 32;

const BASE_V4: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const BASE_V6: [u16; 2] = [0xfd00, 0x18];

/// The core's addresses: where a system listens that is reached over links.
pub const CORE_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The same of IPv6.
pub const CORE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x18, 0, 0, 0, 0, 0, 1);

/// Address `member` (below [`MOST_ADDRESSES`]) of group `group` (below [`MOST_GROUPS`]).
pub fn group_v4(group: usize, member: usize) -> Ipv4Addr {
    Ipv4Addr::from(BASE_V4 + ((group as u32 + 1) << 8) + member as u32 + 2)
}

/// The same of IPv6.
pub fn group_v6(group: usize, member: usize) -> Ipv6Addr {
    Ipv6Addr::new(BASE_V6[0], BASE_V6[1], group as u16 + 1, 0, 0, 0, 0, member as u16 + 2)
}

/// Who is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressOwner {
    /// The system's side.
    Core,
    /// A group, counted from 0.
    Group(usize),
}

/// Who is at `address`; `None` outside of the plan, whatever the number of groups in use.
pub fn place(address: IpAddr) -> Option<AddressOwner> {
    let number = match address {
        IpAddr::V4(address) => u32::from(address).checked_sub(BASE_V4).filter(|offset| *offset < 1 << 17)? >> 8,
        IpAddr::V6(address) => {
            let [first, second, number, ..] = address.segments();
            if [first, second] != BASE_V6 {
                return None;
            }
            u32::from(number)
        }
    };
    match number {
        0 => Some(AddressOwner::Core),
        number => Some(AddressOwner::Group(number as usize - 1)).filter(|_| number as usize <= MOST_GROUPS),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_group_has_addresses_of_its_own_and_they_lead_to_it() {
        let mut seen = HashSet::from([IpAddr::V4(CORE_V4), IpAddr::V6(CORE_V6)]);
        for group in 0..MOST_GROUPS {
            for member in [0, 1, MOST_ADDRESSES - 1] {
                for address in [group_v4(group, member).into(), group_v6(group, member).into()] {
                    assert!(seen.insert(address), "{address} is given twice");
                    assert_eq!(place(address), Some(AddressOwner::Group(group)), "{address}");
                }
            }
        }
        assert_eq!(group_v4(0, 0), Ipv4Addr::new(198, 18, 1, 2));
        assert_eq!(group_v4(MOST_GROUPS - 1, MOST_ADDRESSES - 1), Ipv4Addr::new(198, 19, 255, 254));
        assert_eq!(group_v6(9, 0), "fd00:18:a::2".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn the_core_is_found_and_nothing_outside_of_the_plan() {
        assert_eq!(place(CORE_V4.into()), Some(AddressOwner::Core));
        assert_eq!(place(CORE_V6.into()), Some(AddressOwner::Core));
        for outside in [
            "198.17.255.255",
            "198.20.0.0",
            "127.0.0.1",
            "255.255.255.255",
            "::1",
            "fd00:19::1",
            "fd00:18:200::2",
            "fe80::1",
        ] {
            assert_eq!(place(outside.parse().unwrap()), None, "{outside}");
        }
    }
}
