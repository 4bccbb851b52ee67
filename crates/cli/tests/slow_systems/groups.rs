//! Shared groups over both AMQPs: each message is expected once for a group and comes once; and where there are none.

use pubmark_testing::assert_count_eq;

use crate::system::{installed, pubmark};

/// 10 devices at 20/s; a group of three, one of two, and a subscriber of its own.
const WORKLOAD: &str = "name: jobs
devices:
  - {name: test/source, count: 10, every: 50ms, payload: 100B, topic: \"jobs/{index}\"}
subscribers:
  - {name: workers, count: 3, filters: [\"jobs/#\"], shared: workers}
  - {name: auditors, count: 2, filters: [\"jobs/+\"], shared: auditors}
  - {name: everything, filters: [\"jobs/#\"]}
";
/// Messages of a window of 2 s.
const MESSAGES: u64 = 400;

#[test]
#[ignore = "slow: make test-all"]
fn each_message_is_expected_once_for_a_group_and_arrives_once() {
    for (system, protocol) in [("rabbitmq", "amqp091"), ("artemis", "amqp10")] {
        if installed(system).is_none() {
            continue;
        }
        for (qos, shards) in [("0", "1"), ("1", "2")] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("jobs.yaml"), WORKLOAD).unwrap();
            let times = ["run", "jobs.yaml", "--duration", "2s", "--warmup", "1s", "--json", "--quiet"];
            let place = ["--system", system, "--protocol", protocol, "--qos", qos, "--shards", shards];
            let output = pubmark(folder.path(), &[&times[..], &place].concat()).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 5)), "{:?}\n{errors}", output.status);
            let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let audiences = 3;
            for (name, expected) in [
                ("sent", MESSAGES),
                ("expected", audiences * MESSAGES),
                ("delivered", audiences * MESSAGES),
                ("duplicated", 0),
                ("overlap", 0),
                ("foreign", 0),
            ] {
                let count = record["delivery"][name].as_u64();
                assert_count_eq!(count, Some(expected), "{name} over {protocol} at {qos}: {}", record["delivery"]);
            }
        }
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn a_group_over_amqp_1_0_is_refused_where_rabbitmq_has_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.yaml"), WORKLOAD).unwrap();
    let call = ["run", "jobs.yaml", "--system", "rabbitmq", "--protocol", "amqp10"];
    let output = pubmark(folder.path(), &call).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    let words = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`rabbitmq` has no shared subscriptions over amqp10"), "{words}");
}
