//! A broker that requires client certificates: with a certificate, without one, and with files that cannot be used.

use std::process::Command;
use std::time::Duration;

use pubmark_conformance::certificates::Certificates;
use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, assert_delivered_once, connections, count, names_cause};
use crate::support::cluster::{Cluster, can_hide_files, stop, worker_of};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::processes::wait_for;
use crate::support::schema;

/// Longest wait for nodes to begin.
const LIMIT: Duration = Duration::from_secs(20);

const SMALL: &[&str] =
    &["run", "fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

/// A mosquitto that refuses clients without a certificate, and the certificates.
fn strict() -> Option<(Mosquitto, Certificates, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let files = Certificates::make(folder.path(), "own");
    let settings = format!(
        "cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true",
        files.authority.display(),
        files.server.display(),
        files.key.display()
    );
    Some((Mosquitto::start(&settings)?, files, folder))
}

#[test]
fn a_run_with_a_certificate_delivers_all_and_one_without_says_what_to_give() {
    let Some((broker, files, _folder)) = strict() else { return };
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let (authority, certificate, key) = (
        files.authority.display().to_string(),
        files.client.display().to_string(),
        files.client_key.display().to_string(),
    );
    let trusting = ["--endpoint", &endpoint, "--tls-ca", &authority];
    let place = Place::new();
    let record = place.record(&[&SMALL[1..], &trusting, &["--tls-cert", &certificate, "--tls-key", &key]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(count(&record, "delivered"), 100);
    assert_eq!(record["settings"]["client_certificate"], true);
    assert_count_eq!(connections(&record, "tls_failed"), 0);
    schema::assert_agrees(&record);

    let place = Place::new();
    let called = place.call(&[SMALL, &trusting, &["--json"]].concat());
    assert_eq!(called.code(), 6, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the server asks for a client certificate and was given none"), "{words}");
    assert!(words.contains("--tls-cert FILE --tls-key FILE"), "{words}");
    let record = place.record_of_nobody(&called);
    assert!(names_cause(&record, "TLS: the server asks for a client certificate"), "{}", record["connections"]);
    assert_count_eq!(connections(&record, "tls_failed"), connections(&record, "attempted"));
    assert_eq!(record["settings"]["client_certificate"], false);
}

#[test]
fn files_that_cannot_be_used_are_refused_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    let own = Certificates::make(folder.path(), "own");
    let other = Certificates::make(folder.path(), "other");
    let place = Place::new();
    // Nothing listens there: the error is reported before any connection is attempted.
    for (endpoint, certificate, key, expected) in [
        ("mqtts://127.0.0.1:9", &own.client, &other.client_key, "it belongs to another certificate"),
        ("mqtts://127.0.0.1:9", &own.client, &own.client, "it holds a certificate and no private key"),
        ("mqtts://127.0.0.1:9", &own.client_key, &own.client_key, "it holds a private key and no certificate"),
        ("mqtts://127.0.0.1:9", &folder.path().join("none.pem"), &own.client_key, "No such file"),
        ("mqtt://127.0.0.1:9", &own.client, &own.client_key, "is not encrypted, so no certificate is asked for"),
    ] {
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        let options = ["--endpoint", endpoint, "--tls-insecure", "--tls-cert", &certificate, "--tls-key", &key];
        let called = place.call(&[SMALL, &options].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{words}");
        assert!(place.runs().is_empty());
    }
    let called = place.call(&[SMALL, &["--endpoint", "mqtts://127.0.0.1:9", "--tls-cert", "a.pem"]].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("--tls-key"), "{}", called.errors);
}

#[test]
fn nodes_get_the_files_of_the_coordinator_and_leave_them_nowhere() {
    if !can_hide_files() {
        return;
    }
    let Some((broker, files, folder)) = strict() else { return };
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"]
        .map(|name| cluster.node_without(Command::new("unshare"), folder.path(), &cluster.listen.to_string(), name));
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let [authority, certificate, key] =
        [&files.authority, &files.client, &files.client_key].map(|path| path.display().to_string());
    let trusting = ["--endpoint", &endpoint, "--tls-ca", &authority, "--tls-cert", &certificate, "--tls-key", &key];
    let run = cluster.run(2, &[&trusting[..], &["--duration", "3s", "--warmup", "0s", "--json", "--quiet"]].concat());
    // Before that, the child of a node's process may be the one that hides the files.
    wait_for("both workers", LIMIT, || nodes.iter().all(|node| node.has_said("a run begins")));
    let workers = nodes.each_ref().map(worker_of);
    let secret = std::fs::read_to_string(&files.client_key).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    for pid in workers {
        for file in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
            assert!(!String::from_utf8_lossy(&shown).contains(secret), "{file} of a worker shows the key");
        }
    }
    let called = run.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_eq!(record["settings"]["client_certificate"], true);
    assert_count_eq!(connections(&record, "tls_failed"), 0);
    assert_count_eq!(record["tables"]["nodes"].as_array().unwrap().len(), 2);
    for node in nodes {
        let called = stop(node);
        assert!(called.code() == 0 && !called.errors.contains(secret), "{called:?}");
    }
    // Neither the temporary files of the nodes nor the results have the key.
    let found = Command::new("grep").args(["-rlF", "--", secret]).arg(cluster.place.path()).output().unwrap();
    assert!(found.stdout.is_empty(), "{found:?}");
}
