//! Memory of an idle connection.

use crate::row::{Reading, Row};
use crate::test_system::TestSystem;
use crate::{child, idle};

pub const ROW: Row = Row {
    name: "idle",
    measure: "RSS per idle MQTT connection, 5,000 of them",
    known: "MQTTX 16 KB, mq-bench 36 KB",
    run,
};

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    for (case, tls, bar) in [("TCP", false, 2.5), ("TLS", true, 30.0)] {
        let mut values = vec![];
        for _ in 0..repetitions {
            let broker = TestSystem::mosquitto(tls)?;
            let order = idle::Order {
                protocol: "mqtt5".to_owned(),
                address: broker.address.to_string(),
                sessions: 5_000,
                authority: broker.authority.clone(),
            };
            let found: idle::Finding = child::run_child("idle", &order)?;
            values.push(found.bytes_per_session / 1e3);
        }
        readings.push(Reading::new(case, values, "KB", Some(bar)));
    }
    Ok(readings)
}
