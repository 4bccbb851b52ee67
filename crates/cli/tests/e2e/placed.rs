//! The Compose file that `pubmark deploy` writes, run unchanged by podman-compose. Its Kubernetes manifests are tested
//! by `.ci/kubernetes/test`.

use std::process::{Command, Output};
use std::time::Duration;

use pubmark_systems::process::run_to_end;
use pubmark_testing::assert_count;
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once};
use crate::support::place::{PUBMARK, Place};

const NODES: usize = 2;
/// That of its registry: the one of Debian 12 ignores `pid`, which the observer needs.
const PODMAN_COMPOSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients/compose/bin/podman-compose");
/// Longest wait for the coordinator to end.
const LIMIT: Duration = Duration::from_secs(120);

/// A place with podman's settings: what a container asks for is above what podman has itself, unless it is told not to ask.
fn place() -> Place {
    let place = Place::new();
    let pid_max = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let pid_max = pid_max.trim();
    place.write(
        "containers.conf",
        format!("[containers]\ndefault_ulimits = [\"nofile=20000:20000\", \"nproc={pid_max}:{pid_max}\"]\n"),
    );
    place
}

fn podman(place: &Place, words: &[&str]) -> Output {
    by("podman", place, words).output().unwrap()
}

fn by(program: &str, place: &Place, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).env("CONTAINERS_CONF", place.path().join("containers.conf"));
    command
}

/// The record that a container's coordinator printed: complete, of all nodes, without losses. `said` is what the start of all
/// containers printed, for the failure's message.
fn record_of(place: &Place, container: &str, said: &str) -> Value {
    let log = podman(place, &["logs", container]);
    let printed = String::from_utf8(log.stdout).unwrap();
    let record: Value = serde_json::from_str(&printed)
        .unwrap_or_else(|error| panic!("{error}: {printed} {}; {said}", String::from_utf8_lossy(&log.stderr)));
    assert_closed(&record);
    assert_delivered_once(&record);
    let nodes = record["tables"]["nodes"].as_array().unwrap();
    assert_count!(
        nodes.len() == NODES && nodes.iter().all(|node| node["lost"].is_null()),
        "{}",
        record["tables"]["nodes"]
    );
    record
}

/// Images of pubmark and of a system, both made from files of this machine; `None`, with a message, if one is missing.
fn images(place: &Place) -> Option<[String; 2]> {
    let version = Command::new(PUBMARK).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap().split(' ').nth(1).unwrap().trim().to_owned();
    let own = format!("localhost/pubmark:{version}");
    if Command::new("podman").arg("--version").output().is_err()
        || !podman(place, &["image", "inspect", &own]).status.success()
    {
        pubmark_testing::skip(format_args!("no podman, or no image {own} (`make image ENGINE=podman`)"));
        return None;
    }
    let made =
        Command::new("sh").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/container-image")).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    Some([own, String::from_utf8(made.stdout).unwrap().trim().to_owned()])
}

/// Removes a project's containers and its network.
struct Composed<'a> {
    place: &'a Place,
    project: String,
}

impl Drop for Composed<'_> {
    fn drop(&mut self) {
        let folder = self.place.path().join("deploy");
        let mut down = by(PODMAN_COMPOSE, self.place, &["-p", &self.project, "down"]);
        // A failure here would hide the test's failure; leftovers are visible in any case.
        let _ = down.current_dir(folder).output();
        podman(self.place, &["network", "rm", "--force", &format!("{}_default", self.project)]);
    }
}

#[test]
#[ignore = "needs `make image`"]
fn what_is_written_for_compose_runs() {
    let place = place();
    let Some([own, system]) = images(&place) else { return };
    if !std::path::Path::new(PODMAN_COMPOSE).exists() {
        pubmark_testing::skip("no podman-compose (`sh .ci/install-clients compose`)");
        return;
    }
    let nodes = NODES.to_string();
    let words = ["deploy", "compose", "smart-home", "--nodes", &nodes, "--image", &own, "--system-image", &system];
    let called = place.call(&[&words[..], &["--", "--qos", "1", "--duration", "5s", "--warmup", "1s"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let project = format!("pubmark-e2e-{}", std::process::id());
    let composed = Composed { place: &place, project: project.clone() };
    let mut up = by(PODMAN_COMPOSE, &place, &["-p", &project, "up", "--abort-on-container-exit"]);
    up.current_dir(place.path().join("deploy"));
    let (_, said) = run_to_end(up, LIMIT).unwrap();
    let coordinator = format!("{project}_coordinator_1");
    let record = record_of(&place, &coordinator, &said);
    let nodes: Vec<&Value> =
        record["tables"]["nodes"].as_array().unwrap().iter().map(|node| &node["address"]).collect();
    // Separate containers, each with an address.
    assert!(nodes[0] != nodes[1], "{nodes:?}: {said}");
    let cost = &record["cost"]["system"];
    assert!(cost["cpu_seconds"].as_f64().is_some_and(|cpu_s| cpu_s > 0.0), "{cost}: {said}");
    assert!(cost["peak_rss_bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{cost}");
    eprintln!("podman-compose: nodes at {nodes:?}, {}", record["delivery"]);
    drop(composed);
}
