//! Paced sending against a client library, in the same call.

use crate::child;
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};
use crate::rumqttc_client;
use crate::test_system::TestSystem;

pub const ROW: Row = Row {
    name: "paced",
    measure: "paced 20,000 msg/s, 100 → 1 by mosquitto, 1 KB, CPU-s per million delivered: ours over rumqttc's",
    known: "10.2 against 7.4 (0.73)",
    run,
};

const SECONDS: u64 = 5;

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let (mut ours, mut theirs, mut bursts) = (vec![], vec![], vec![]);
    let (mut ratios, mut burst_ratios) = (vec![], vec![]);
    for _ in 0..repetitions {
        let own = own_cost()?;
        let other = rumqttc_cost(true)?;
        ours.push(own);
        theirs.push(other);
        let in_bursts = rumqttc_cost(false)?;
        bursts.push(in_bursts);
        ratios.push(own / other);
        burst_ratios.push(own / in_bursts);
    }
    Ok(vec![
        Reading::new("pubmark", ours, "s", None),
        Reading::new("rumqttc, the same schedule", theirs, "s", None),
        Reading::new("rumqttc, 20 messages at once each ms (tokio's timers)", bursts, "s", None),
        Reading::new("ratio at the same schedule", ratios, "×", Some(0.85)),
        Reading::new("ratio to rumqttc in bursts", burst_ratios, "×", Some(0.85)),
    ])
}

fn own_cost() -> Result<f64, String> {
    let broker = TestSystem::mosquitto(false)?;
    let order = Order {
        workload: "fan-in".to_owned(),
        set: vec!["publishers=100".to_owned(), "rate=200/s".to_owned(), "payload=1KB".to_owned()],
        address: broker.address.to_string(),
        subscribers: None,
        qos: 0,
        protocol: "mqtt311".to_owned(),
        client: None,
        warmup_s: 2.0,
        duration_s: SECONDS as f64,
        realtime: false,
        publish_only: false,
        in_flight_window: None,
    };
    let found: Finding = child::run_child("generator", &order)?;
    Ok(found.cpu_s / (found.delivered as f64 / 1e6))
}

fn rumqttc_cost(exact: bool) -> Result<f64, String> {
    let broker = TestSystem::mosquitto(false)?;
    let order = rumqttc_client::Order {
        port: broker.address.port(),
        publishers: 100,
        rate_per_s: 20_000,
        payload_bytes: 1_000,
        duration_s: SECONDS,
        exact,
    };
    let found: rumqttc_client::Finding = child::run_child("rumqttc", &order)?;
    Ok(found.cpu_s / (found.delivered as f64 / 1e6))
}
