//! Several brokers as one system: a message that is published at one is received at another.

use std::process::{Child, Command, Stdio};

use pubmark_model::topology::{Topology, TopologyMode};
use pubmark_systems::{Definition, Endpoint, RunningSystem, StartOptions};

use crate::system::{LOGIN, PATIENCE, has_clients, installed, options, secured, start, stop, wait_for};

/// Publisher's and subscriber's broker: between further ones, from and to the first.
const WAYS: [(usize, usize); 3] = [(1, 2), (0, 1), (2, 0)];

fn three(definition: &Definition, mode: TopologyMode, options: StartOptions) -> RunningSystem {
    let system = start(definition, &StartOptions { topology: Topology { brokers: 3, mode }, ..options });
    assert_eq!(system.endpoints().len(), 3);
    assert_eq!(system.info().topology.map(|found| found.brokers), Some(3));
    system
}

/// A client of mosquitto's; these programs come with the package `mosquitto-clients`.
fn client(program: &str, endpoint: &Endpoint, words: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(["-V", "311", "-h", "127.0.0.1", "-p", &endpoint.address.port().to_string()]).args(words);
    if let Some(authority) = &endpoint.authority {
        command.arg("--cafile").arg(authority);
    }
    if endpoint.credentials.is_some() {
        command.args(["-u", LOGIN.0, "-P", LOGIN.1]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// Publishes at one until the message is received at the other: brokers need time to create routes.
fn crosses(system: &RunningSystem, qos: &str) {
    for (from, to) in WAYS {
        let (from, to) = (&system.endpoints()[from], &system.endpoints()[to]);
        let limit = PATIENCE.as_secs().to_string();
        let mut heard = client("mosquitto_sub", to, &["-t", "cross", "-q", qos, "-C", "1", "-W", &limit]);
        wait_for(PATIENCE, "a message across brokers", || {
            let sent = client("mosquitto_pub", from, &["-t", "cross", "-q", qos, "-m", "x"]).wait().unwrap();
            assert!(sent.success(), "nothing can be published at {from}");
            heard.try_wait().unwrap().is_some()
        });
        assert!(heard.wait().unwrap().success(), "{to} heard nothing of {from} at level {qos}");
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn mosquittos_over_bridges_act_as_one() {
    let Some(definition) = installed("mosquitto").filter(|_| has_clients()) else { return };
    let folder = tempfile::tempdir().unwrap();
    for options in [options("mqtt311"), secured("mqtt311", folder.path())] {
        let system = three(&definition, TopologyMode::Bridge, options);
        for qos in ["0", "1", "2"] {
            crosses(&system, qos);
        }
        stop(system);
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn a_cluster_of_rabbitmqs_acts_as_one() {
    let Some(definition) = installed("rabbitmq").filter(|_| has_clients()) else { return };
    let system = three(&definition, TopologyMode::Cluster, options("mqtt311"));
    for qos in ["0", "1"] {
        crosses(&system, qos);
    }
    stop(system);
}

#[test]
#[ignore = "slow: make test-all"]
fn a_star_of_zenoh_routers_acts_as_one() {
    let Some(definition) = installed("zenoh") else { return };
    let folder = tempfile::tempdir().unwrap();
    for options in [options("zenoh"), secured("zenoh", folder.path())] {
        let system = three(&definition, TopologyMode::Bridge, options);
        let values = |broker: usize| &system.endpoints()[broker].values;
        let client = |broker: usize| format!("{}/client.json5", values(broker).get("directory").unwrap());
        for (from, to) in WAYS {
            let probe = Command::new(values(0).get("self").unwrap())
                .args(["--probe", &client(from), "across", &client(to)])
                .output()
                .unwrap();
            assert!(probe.status.success(), "{} to {}: {probe:?}", from + 1, to + 1);
        }
        stop(system);
    }
}
