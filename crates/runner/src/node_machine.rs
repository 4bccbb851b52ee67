//! What a node reports about its machine, and the reasons why a machine cannot be a node.

use std::net::{IpAddr, UdpSocket};

use pubmark_cluster::address::for_clients;
use pubmark_cluster::node::{CoordinatorAddress, InterfaceReading, MachineReading};
use pubmark_cluster::{ClusterError, Objection};
use pubmark_systems::node_exporter::{Snapshot, interface_with};

use crate::error::{ErrorKind, RunError};

/// Checks an address of this machine at which other machines reach it.
///
/// # Errors
/// Other machines cannot reach the address, or no interface has it.
pub fn own_address(address: IpAddr) -> Result<IpAddr, RunError> {
    let hint = "`ip -brief address` lists those of this machine";
    let address =
        for_clients(address).map_err(|why| RunError::input(format!("{address} {why} (--address)")).hint(hint))?;
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(address),
        Err(error) => {
            Err(RunError::input(format!("{address} is not an address of this machine (--address): {error}")).hint(hint))
        }
    }
}

/// Resource usage of this machine so far, and the traffic of the interface with this address.
pub fn read_machine(address: Option<IpAddr>) -> Option<MachineReading> {
    let snapshot = Snapshot::own().ok()?;
    let interface = address.and_then(interface_with).and_then(|name| {
        // The loopback interface is not among them.
        let (received_bytes, sent_bytes) = (*snapshot.received_bytes.get(&name)?, *snapshot.sent_bytes.get(&name)?);
        Some(InterfaceReading { name, received_bytes, sent_bytes })
    });
    Some(MachineReading {
        cpu_ns: (snapshot.busy_seconds() * 1e9) as u64,
        total_ns: (snapshot.total_seconds() * 1e9) as u64,
        stolen_ns: snapshot.stolen_seconds().map(|seconds| (seconds * 1e9) as u64),
        used_bytes: snapshot.used_bytes(),
        interface,
    })
}

/// The error of a node that could not join a coordinator.
pub fn unable(error: &ClusterError, join: &CoordinatorAddress) -> RunError {
    let found = RunError::from_error(ErrorKind::Input, error);
    match error {
        ClusterError::Refused { objection: Objection::Token, .. } => {
            found.hint("use the node folder that `pubmark cluster init` made for this coordinator, or its `--token`")
        }
        ClusterError::Refused { objection: Objection::Version, .. } => {
            found.hint("install the same pubmark on all machines: `pubmark --version`")
        }
        ClusterError::Refused { objection: Objection::Name, .. } => found.hint("`--name edge-2`"),
        ClusterError::Refused { .. } | ClusterError::Unreachable { .. } => {
            let host = match join {
                CoordinatorAddress::At(address) => address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host),
                CoordinatorAddress::Announced => "the coordinator",
            };
            found.hint(format!(
                "copy the `node` folder that `pubmark cluster init` made on {host} here, and name it with `--credentials`"
            ))
        }
        _ => found,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_cannot_connect_to_is_refused() {
        for address in ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "192.0.2.1"] {
            assert!(own_address(address.parse().unwrap()).is_err(), "{address}");
        }
        assert_eq!(own_address("::ffff:127.0.0.1".parse().unwrap()).unwrap(), IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn the_loopback_has_no_figure_of_what_it_carried() {
        let reading = read_machine(Some(IpAddr::from([127, 0, 0, 1]))).unwrap();
        assert!(reading.cpu_ns > 0 && reading.interface.is_none(), "{reading:?}");
        assert!(reading.stolen_ns.is_some() && reading.total_ns > reading.cpu_ns, "{reading:?}");
    }
}
