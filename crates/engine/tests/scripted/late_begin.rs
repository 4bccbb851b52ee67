//! A shard that is paused before it knows the window delays the start. It receives no message that it could not assign
//! to the window.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::pacing::Pacing;
use pubmark_engine::plan::{Networks, RunPlan};
use pubmark_engine::progress::Totals;
use pubmark_engine::run::{Observer, Phase, Sides, run};
use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadOptions};
use pubmark_model::schedule::Timeline;
use pubmark_model::workload::Workload;
use pubmark_protocol::clients::ConnectionSettings;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_testing::assert_count_eq;

use crate::clients::{InMemory, PAUSE, RESUMED_NS};

/// It shows nothing.
pub struct Silent;

impl Observer for Silent {
    fn phase(&mut self, _phase: Phase) {}
    fn progress(&mut self, _: Phase, _: Duration, _: Option<Duration>, _: &Totals, _: bool) {}
    fn window_began(&mut self) {}
    fn window_ended(&mut self) {}
}

const WORKLOAD: &str = "
name: late
devices:
  - {name: device, count: 4, arrival: periodic, every: 20ms, payload: 100B, topic: 'late/{device}'}
subscribers:
  - {name: subscriber, filters: ['late/#']}
";

/// A run of one second in memory.
pub fn plan_of(workload: Workload) -> RunPlan {
    let fleet = Fleet::new(&workload, 1);
    let at = Endpoints::one(Endpoint {
        shown: "in memory".to_owned(),
        address: ([127, 0, 0, 1], 1883).into(),
        tls: None,
        credentials: None,
        upgrade: None,
        settings: None,
    });
    RunPlan {
        workload: Arc::new(workload),
        fleet: Arc::new(fleet),
        seed: 1,
        run_id: 7,
        timeline: Timeline { warmup_ns: 0, duration_ns: 1_000_000_000 },
        drain_limit: Duration::from_secs(10),
        redelivers_after: None,
        publish_at: at.clone(),
        subscribe_at: at,
        networks: Networks::none(),
        nodes: 1,
        node_labels: vec![],
        on_nodes: false,
        probes: false,
        by_network: false,
        library_sockets: false,
        follows: None,
        message_log: None,
        sources: [].into(),
        publisher_shards: 1,
        subscriber_shards: 1,
        connects_per_s: 10_000.0,
        connect_limit: Duration::from_secs(10),
        hopeless_after: Duration::from_secs(1),
        realtime: false,
        shares_cores: false,
        pacing: Pacing::default(),
        handicap: None,
        faults: [].into(),
        connections: ConnectionSettings::default(),
    }
}

#[test]
fn devices_send_when_every_shard_knows_the_window() {
    let workload = load::parse("late.yaml", WORKLOAD, &LoadOptions::default()).unwrap();
    let outcome =
        run(&plan_of(workload), Sides::both::<InMemory>(), None, &AtomicBool::new(false), &mut Silent).unwrap();
    let went_on_ns = RESUMED_NS.load(Relaxed);
    assert!(went_on_ns > 0, "the subscribers' shard never stood still for {PAUSE:?}");
    assert!(outcome.window_ns.0 > went_on_ns, "the window began while a shard stood still");
    let delivery = &outcome.books.delivery;
    assert_count_eq!((delivery.offered, delivery.delivered, delivery.foreign), (200, 200, 0));
    assert_count_eq!(outcome.times.latency.upper.count(), 200);
    assert_count_eq!(outcome.most_online, Some(5), "four devices and the subscriber");
    assert_eq!(outcome.series.width_ns(), 1_000_000_000, "no time of nowhere widened the bins");
}
