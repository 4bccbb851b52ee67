//! Protocols that pubmark does not support yet: the definition's probe publishes and receives.

use crate::system::{installed, options, start, stop};

fn probes_succeed(name: &str) {
    let Some(definition) = installed(name) else { return };
    let with_probe: Vec<&String> =
        definition.protocols.iter().filter(|(_, offer)| offer.probe.is_some()).map(|(protocol, _)| protocol).collect();
    assert!(!with_probe.is_empty());
    for protocol in with_probe {
        let system = start(&definition, &options(protocol));
        assert!(system.info().version.is_some());
        stop(system);
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_passes_messages_of_stomp() {
    probes_succeed("rabbitmq");
}

#[test]
#[ignore = "slow: make test-all"]
fn artemis_passes_messages_of_stomp() {
    probes_succeed("artemis");
}

#[test]
#[ignore = "slow: make test-all"]
fn a_zenoh_router_passes_messages() {
    probes_succeed("zenoh");
}
