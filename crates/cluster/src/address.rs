//! Addresses at which clients on other nodes reach the clients of a node.

use std::net::IpAddr;

/// Returns the address in its canonical form (an IPv4 address that is mapped into IPv6 becomes the IPv4 address).
///
/// # Errors
/// The address does not belong to one machine that others can connect to. The reason is a phrase that follows the
/// address.
pub fn for_clients(address: IpAddr) -> Result<IpAddr, &'static str> {
    let address = address.to_canonical();
    match address {
        _ if address.is_unspecified() => Err("stands for every address of a machine"),
        _ if address.is_multicast() => Err("is the address of a multicast group"),
        IpAddr::V4(v4) if v4.is_broadcast() => Err("is the broadcast address"),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Err("is link-local, and says nothing without an interface"),
        _ => Ok(address),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_one_machines_is_refused() {
        let found = |text: &str| for_clients(text.parse().unwrap()).map(|address| address.to_string());
        for address in ["0.0.0.0", "::", "::ffff:0.0.0.0", "224.0.0.1", "ff02::1", "255.255.255.255", "fe80::1"] {
            assert!(found(address).is_err(), "{address}");
        }
        for address in ["127.0.0.1", "::1", "10.0.0.11", "169.254.1.2", "fd00::2"] {
            assert_eq!(found(address).unwrap(), address);
        }
        assert_eq!(found("::ffff:10.0.0.11").unwrap(), "10.0.0.11");
    }
}
