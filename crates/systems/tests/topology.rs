//! Several brokers as one system.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::{becomes_true, is_alive, mosquitto_is_installed, mqtt_connect, options};
use pubmark_model::topology::{Topology, TopologyMode};
use pubmark_systems::{Definition, Endpoint, StartOptions, start};

/// Brokers that listen on two ports and know each other's addresses; the second ends with status 3 if it finds `fail`.
const YAML: &str = r#"
name: trio
title: trio
description: several scripts
ranked: false
listeners: {mqtt: {scheme: mqtt}, peers: {scheme: tcp}}
protocols: {mqtt5: {listener: mqtt, highest_qos: 0}}
limits: {maximum_packet_bytes: 1000, raised_to_at_most_bytes: 5000000}
back_ends:
  process:
    program: sh
    install: apt-get install dash
    arguments: [{add: ["{directory}/script", "{port:mqtt}", "{index}"]}]
    environment: {OF: "{brokers}"}
    ready_within_s: 30
    stop_within_s: 2
files:
  - name: script
    parts:
      - text: |
          exec python3 -c 'import os,socket,sys
          if sys.argv[2]=="2" and os.path.exists("FAIL"): sys.exit(3)
          s=socket.create_server(("127.0.0.1",int(sys.argv[1])))
          while True: s.accept()' $1 $2
  - name: conf/peers
    parts:
      - text: "name={name} of {brokers}; first={first:name}:{first:port:peers}; others="
      - text: "{other:name}@{other:host}:{other:port:peers}"
        for_each_other: true
        between: ","
      - {when: first, text: "; first"}
      - {when: further, text: "; further"}
      - {when: cluster, text: "; cluster"}
      - {when: raised, text: "; packets={packet_bytes}"}
  - name: twin
    parts: [{text: "{shared_directory}"}]
topology: {cluster: they share nothing}
deviations:
  - {name: trio-packets, when: raised, setting: "packets={packet_bytes}", reason: the workload needs it}
profiles: {default: {description: as it is}}
"#;

fn trio() -> Definition {
    Definition::parse(YAML, "trio.yaml").unwrap()
}

fn brokers(brokers: u32, mode: TopologyMode) -> StartOptions {
    StartOptions { topology: Topology { brokers, mode }, ..options("mqtt5") }
}

fn folder_of(pid: u32) -> std::path::PathBuf {
    fs::read_link(format!("/proc/{pid}/cwd")).unwrap()
}

#[test]
fn each_broker_has_its_own_ports_and_folder_and_knows_the_others() {
    let mut asked: Vec<Endpoint> = Vec::new();
    let running = start(&trio(), &brokers(3, TopologyMode::Cluster), &mut |endpoint| {
        asked.push(endpoint.clone());
        Ok(())
    })
    .unwrap();
    assert_eq!(asked, running.endpoints());
    let addresses: BTreeSet<_> = running.endpoints().iter().map(|endpoint| endpoint.address).collect();
    let pids: Vec<u32> = running.cost_sources().iter().map(|place| place.pid).collect();
    let folders: BTreeSet<_> = pids.iter().map(|pid| folder_of(*pid)).collect();
    assert_eq!((addresses.len(), folders.len(), pids[0]), (3, 3, running.pid()));

    let peers = |broker: usize| running.endpoints()[broker].values.get("port:peers").unwrap().to_owned();
    let (first, second, third) = (peers(0), peers(1), peers(2));
    let text = |broker: usize| fs::read_to_string(folder_of(pids[broker]).join("conf/peers")).unwrap();
    assert_eq!(
        text(0),
        format!(
            "name=trio-1 of 3; first=trio-1:{first}; others=trio-2@127.0.0.1:{second},trio-3@127.0.0.1:{third}; first; cluster"
        )
    );
    assert_eq!(
        text(1),
        format!(
            "name=trio-2 of 3; first=trio-1:{first}; others=trio-1@127.0.0.1:{first},trio-3@127.0.0.1:{third}; further; cluster"
        )
    );
    let shared: BTreeSet<_> =
        pids.iter().map(|pid| fs::read_to_string(folder_of(*pid).join("twin")).unwrap()).collect();
    let shared = shared.first().filter(|_| shared.len() == 1).expect("one shared folder").clone();
    assert!(fs::exists(&shared).unwrap());

    let topology = running.info().topology.unwrap();
    let shown: Vec<String> = running.endpoints().iter().map(Endpoint::to_string).collect();
    assert_eq!((topology.brokers, topology.mode.as_str(), topology.endpoints), (3, "cluster", shown));
    drop(running);
    assert!(pids.iter().all(|pid| !is_alive(*pid)) && folders.iter().all(|folder| !folder.exists()));
    assert!(!fs::exists(&shared).unwrap());
}

#[test]
fn independent_brokers_are_neither_first_nor_further() {
    let running = start(&trio(), &brokers(2, TopologyMode::Shard), &mut |_| Ok(())).unwrap();
    let text = fs::read_to_string(folder_of(running.cost_sources()[1].pid).join("conf/peers")).unwrap();
    assert!(!text.contains("further") && text.starts_with("name=trio-2 of 2"), "{text}");
    assert_eq!(running.info().topology.unwrap().mode, TopologyMode::Shard);
    drop(running);
    let alone = start(&trio(), &options("mqtt5"), &mut |_| Ok(())).unwrap();
    assert_eq!(alone.info().topology, None);
}

#[test]
fn an_unsupported_topology_is_refused_with_the_supported_ones() {
    let refuse = |wanted, mode| start(&trio(), &brokers(wanted, mode), &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(
        refuse(2, TopologyMode::Bridge),
        "`trio` cannot run 2 brokers as a bridge: it offers 1 broker, or 2 to 64 as cluster or shard"
    );
    assert!(refuse(0, TopologyMode::Shard).starts_with("`trio` cannot run 0 brokers as a shard"));
    assert!(refuse(65, TopologyMode::Shard).starts_with("`trio` cannot run 65 brokers"));
}

#[test]
fn one_broker_that_fails_stops_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("fail");
    fs::write(&note, "").unwrap();
    let definition = Definition::parse(&YAML.replace("FAIL", note.to_str().unwrap()), "trio.yaml").unwrap();
    let mut seen = Vec::new();
    let error = start(&definition, &brokers(3, TopologyMode::Shard), &mut |endpoint| {
        seen.push(endpoint.address);
        Err("not before the others".to_owned())
    })
    .unwrap_err()
    .to_string();
    assert_eq!(error, "`trio` ended while it was starting (broker 2: exit status: 3); it printed nothing");
    assert!(seen.iter().all(|address| becomes_true(|| std::net::TcpStream::connect(address).is_err())));
}

#[test]
fn of_several_brokers_the_one_that_ends_is_named() {
    let mut running = start(&trio(), &brokers(2, TopologyMode::Shard), &mut |_| Ok(())).unwrap();
    assert_eq!(running.ended(), None);
    // SAFETY: plain system call on a process that is ours.
    unsafe { libc::kill(running.cost_sources()[1].pid as libc::pid_t, libc::SIGKILL) };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while running.ended().is_none() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(running.ended().as_deref(), Some("broker 2: signal: 9 (SIGKILL)"));
}

#[test]
fn packets_are_raised_as_far_as_allowed_and_that_is_named() {
    let with = |bytes| StartOptions { packet_bytes: Some(bytes), ..options("mqtt5") };
    let running = start(&trio(), &with(1_200_000), &mut |_| Ok(())).unwrap();
    let text = fs::read_to_string(folder_of(running.pid()).join("conf/peers")).unwrap();
    assert!(text.ends_with("; packets=2000000"), "{text}");
    assert_eq!(running.deviations()[0].detail, "packets=2000000: the workload needs it");
    drop(running);
    assert!(start(&trio(), &with(1_000), &mut |_| Ok(())).unwrap().deviations().is_empty());
    let error = start(&trio(), &with(6_000_000), &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "the workload needs packets of 6000000 bytes, `trio` takes 5000000 at most");
}

#[test]
fn three_real_brokers_respond_in_parallel() {
    if !mosquitto_is_installed() {
        return;
    }
    let definition = Definition::load("mosquitto").unwrap();
    let mut ready = |endpoint: &Endpoint| match mqtt_connect(endpoint, None)? {
        0 => Ok(()),
        code => Err(format!("connect refused with code {code}")),
    };
    let running = start(&definition, &brokers(3, TopologyMode::Shard), &mut ready).unwrap();
    for endpoint in running.endpoints() {
        assert_eq!(mqtt_connect(endpoint, None), Ok(0));
    }
    assert_eq!(running.info().topology.unwrap().endpoints.len(), 3);
    assert!(matches!(running.stop(), pubmark_systems::process::Stopped::Asked(_)));
}
