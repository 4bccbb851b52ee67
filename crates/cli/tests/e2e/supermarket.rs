//! The supermarket over real brokers: chains of reactions on shared connections, at every level, over several shards.

use pubmark_testing::assert_count_eq;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::Place;
use crate::support::schema;

#[test]
fn chains_are_whole_at_every_level() {
    let Some(broker) = Mosquitto::start("max_queued_messages 1000000") else { return };
    let endpoint = broker.endpoint();
    for (qos, think, shards) in [("0", "0ms", "1"), ("1", "exponential 20ms", "2"), ("2", "5ms", "2")] {
        let place = Place::new();
        let timing = ["supermarket", "--scale", "5", "--duration", "2s", "--warmup", "1s", "--endpoint", &endpoint];
        let think = format!("think={think}");
        let record = place.record(&[&timing[..], &["--qos", qos, "--set", &think, "--shards", shards]].concat());
        assert_closed(&record);
        assert_delivered_once(&record);
        schema::assert_agrees(&record);
        let reactions = |name: &str| record["delivery"]["reactions"][name].as_u64().unwrap();
        assert_count_eq!(reactions("starved"), 0, "{}", record["delivery"]["reactions"]);
        assert!(reactions("triggered") > 100, "{}", record["delivery"]["reactions"]);
        assert_count_eq!(reactions("scheduled") + reactions("triggered"), count(&record, "offered"));
        // Five shops, one centre, two suppliers, four headquarters: a connection each.
        let sessions: u64 =
            record["cost"]["threads"].as_array().unwrap().iter().map(|shard| shard["sessions"].as_u64().unwrap()).sum();
        assert_eq!(sessions, 12);
    }
}
