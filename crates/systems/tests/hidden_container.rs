//! A container whose processes are not on this machine: that of an engine in a virtual machine.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::options;
use pubmark_systems::container::ENGINE_VARIABLE;
use pubmark_systems::{BackEndChoice, Definition, StartOptions, start};

/// An engine like Docker. It names process 1 of this machine as the container's, whose control groups do not have the container's id.
const ENGINE: &str = r#"#!/bin/sh
case "$1 $*" in
--version*) echo Docker version 28 ;;
info*) echo 'pubmark-answer:28|[]|true|true|true' ;;
run*)
    for port; do :; done
    exec python3 -c 'import socket,sys
s=socket.create_server(("127.0.0.1",int(sys.argv[1])))
while True: s.accept()' "$port"
    ;;
inspect*State.Running*) echo 'pubmark-answer:true|0|false' ;;
inspect*State.Pid*) echo pubmark-answer:1 ;;
inspect*) echo pubmark-answer:5d2b9a4c7e1f5d2b9a4c7e1f5d2b9a4c ;;
esac
"#;

const DEFINITION: &str = "name: hidden\ntitle: hidden\ndescription: a container elsewhere\nranked: false\n\
    listeners: {mqtt: {scheme: mqtt}}\nprotocols: {mqtt5: {listener: mqtt, highest_qos: 0}}\n\
    back_ends: {container: {image: 'localhost/hidden:1', arguments: [{add: ['{port:mqtt}']}]}}\n\
    profiles: {default: {description: as it is}}\n";

#[test]
fn the_cost_of_a_container_elsewhere_is_not_that_of_the_command_that_runs_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = folder.path().join("docker");
    fs::write(&engine, ENGINE).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    // SAFETY: this is the only test of this program, so no other thread reads the environment.
    unsafe { std::env::set_var(ENGINE_VARIABLE, &engine) };
    let definition = Definition::parse(DEFINITION, "hidden.yaml").unwrap();
    let options = StartOptions { back_end: Some(BackEndChoice::Container), ..options("mqtt5") };
    let mut running = start(&definition, &options, &mut |_| Ok(())).unwrap();
    assert!(running.cost_sources().is_empty(), "{:?}", running.cost_sources());
    let named = |deviation: &pubmark_record::record::Deviation| deviation.name == "cost-not-visible";
    assert!(running.deviations().iter().any(named), "{:?}", running.deviations());
    // Its end is still noticed.
    let mut watch = running.end_watch();
    assert!(!watch.has_ended() && running.ended().is_none());
    running.end(None).unwrap();
    assert!(watch.has_ended());
}
