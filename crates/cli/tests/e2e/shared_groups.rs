//! Shared groups against real mosquitto: each message is expected once for the group, whichever member receives it.

use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::schema;

/// 10 devices at 20/s; a group of three, one of two, and a separate subscriber.
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

fn load<'a>(endpoint: &'a str, protocol: &'a str, qos: &'a str, shards: &'a str) -> Vec<&'a str> {
    let timing = ["jobs.yaml", "--duration", "2s", "--warmup", "1s", "--endpoint", endpoint];
    [&timing[..], &["--protocol", protocol, "--qos", qos, "--shards", shards]].concat()
}

#[test]
fn each_message_is_expected_once_for_a_group_and_arrives_once() {
    let Some(broker) = Mosquitto::start("max_queued_messages 1000000") else { return };
    let endpoint = broker.endpoint();
    for (protocol, qos, shards) in
        [("mqtt5", "0", "1"), ("mqtt311", "1", "2"), ("mqtt5", "2", "2"), ("mqtt311", "0", "1")]
    {
        let place = Place::new();
        place.write("jobs.yaml", WORKLOAD);
        let record = place.record(&load(&endpoint, protocol, qos, shards));
        assert_closed(&record);
        assert_delivered_once(&record);
        schema::assert_agrees(&record);
        assert_count_eq!(count(&record, "sent"), MESSAGES, "{protocol} at QoS {qos}");
        let audiences = 3;
        assert_count_eq!(
            count(&record, "expected"),
            audiences * MESSAGES,
            "{protocol} at QoS {qos}: {}",
            record["delivery"]
        );
        assert_count_eq!(count(&record, "delivered"), audiences * MESSAGES);
        assert_count_eq!((count(&record, "duplicated"), count(&record, "foreign")), (0, 0));
        assert_eq!(record["workload"]["subscribers"], 6);
    }
}

#[test]
fn members_of_a_queue_group_of_nats_share_too() {
    let place = Place::new();
    place.write("jobs.yaml", WORKLOAD);
    let times = ["jobs.yaml", "--duration", "2s", "--warmup", "1s"];
    let record = place.record(&[&times[..], &["--system", "nats", "--protocol", "nats", "--qos", "0"]].concat());
    assert_closed(&record);
    assert_delivered_once(&record);
    assert_count_eq!(count(&record, "sent"), MESSAGES);
    assert_count_eq!(count(&record, "expected"), 3 * MESSAGES, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "delivered"), 3 * MESSAGES);
}

#[test]
fn who_cannot_share_says_so_before_anything_starts() {
    let place = Place::new();
    place.write("jobs.yaml", WORKLOAD);
    for (options, expected) in [
        (["--system", "builtin", "--protocol", "mqtt5"], "`builtin` has no shared subscriptions over mqtt5"),
        (["--endpoint", "redis://127.0.0.1:9", "--protocol", "redis"], "shares its subscription, redis shares none"),
    ] {
        let called = place.call(&[&["run", "jobs.yaml"], &options[..]].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected) && words.contains("workers"), "{words}");
        assert!(place.runs().is_empty());
    }
}
