//! Systems that take seconds to start: their faults, and their clients behind links.

use pubmark_links::privilege;
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::system::{installed, pubmark};

/// Long enough for RabbitMQ to be back, on a machine that others use too.
const TIMES: [&str; 6] = ["--duration", "60s", "--warmup", "1s", "--drain", "20s"];

#[test]
#[ignore = "slow: make test-all"]
fn rabbitmq_is_killed_and_restarted_and_all_clients_come_back() {
    if installed("rabbitmq").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let load = ["run", "fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--qos", "1", "--system", "rabbitmq"];
    for fault in ["kill:at=5s,for=1s", "restart:at=5s"] {
        let arguments = [&load[..], &TIMES, &["--protocol", "mqtt311", "--fault", fault, "--json", "--quiet"]].concat();
        let output = pubmark(folder.path(), &arguments).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{fault}: {output:?}");
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = &record["conditions"]["faults"]["faults"][0];
        assert_eq!(found["failure"], Value::Null, "{found}");
        let clients = &found["connections"];
        assert_count_eq!(
            [&clients["connected"], &clients["lost"], &clients["reconnected"]],
            [11, 11, 11],
            "{fault}: {found}"
        );
        assert!(clients["all_reconnected_s"].as_f64().unwrap() > 1.0, "{found}");
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn clients_behind_links_are_let_in() {
    if let Some(missing) = privilege::probe().missing() {
        pubmark_testing::skip(missing);
        return;
    }
    let spoken = [
        ("rabbitmq", &["mqtt311", "amqp091", "amqp10"][..]),
        ("artemis", &["mqtt5", "amqp10"]),
        ("hivemq", &["mqtt5"]),
    ];
    for (system, protocols) in spoken.into_iter().filter(|(system, _)| installed(system).is_some()) {
        for protocol in protocols {
            let folder = tempfile::tempdir().unwrap();
            let link = ["--link", "{delay: 20ms}", "--qos", "1", "--duration", "3s", "--warmup", "0s"];
            let system = ["--system", system, "--protocol", protocol, "--json", "--quiet"];
            let output = pubmark(folder.path(), &[&["run", "hello"], &system[..], &link].concat()).output().unwrap();
            assert!(matches!(output.status.code(), Some(0 | 5)), "{system:?}: {output:?}");
            let record: Value = serde_json::from_slice(&output.stdout).unwrap();
            let books = &record["delivery"];
            assert_count!(
                books["sent"].as_u64() > Some(0) && books["delivered"] == books["sent"],
                "{system:?}: {books}"
            );
            assert!(
                record["latency"]["total"]["upper"]["min_us"].as_f64() > Some(40_000.0),
                "{}",
                record["latency"]["total"]["upper"]
            );
        }
    }
}
