//! Memory and CPU time of idle connections.

use crate::row::{Reading, Row};
use crate::test_system::TestSystem;
use crate::{child, idle};

pub const ROW: Row = Row {
    name: "idle",
    measure: "RSS of the generator per idle MQTT connection with a subscription; CPU time for all of them",
    known: "MQTTX 16 KB, mq-bench 36 KB of 5,000",
    run,
};

/// Shorter than the keep-alive interval, so that nothing is due.
const IDLE_S: u32 = 10;

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    // 18,000 leave room below a limit of 20,000 descriptors, which some machines have.
    let cases = [
        ("5,000, TCP", 5_000, false, 0, 2.5),
        ("18,000, TCP", 18_000, false, IDLE_S, 1.0),
        ("5,000, TLS", 5_000, true, 0, 30.0),
    ];
    for (case, sessions, tls, idle_s, bar) in cases {
        let (mut values, mut cores) = (vec![], vec![]);
        for _ in 0..repetitions {
            let broker = TestSystem::mosquitto(tls)?;
            let order = idle::Order {
                protocol: "mqtt5".to_owned(),
                address: broker.address.to_string(),
                sessions,
                authority: broker.authority.clone(),
                idle_s,
            };
            let found: idle::Finding = child::run_child("idle", &order)?;
            values.push(found.bytes_per_session / 1e3);
            cores.extend(found.cores.map(|cores| cores * 100.0));
        }
        readings.push(Reading::new(case, values, "KB", Some(bar)));
        if idle_s > 0 {
            let case = format!("{case}: CPU of the adapter while nothing is due");
            readings.push(Reading::new(&case, cores, "% of a core", None));
        }
    }
    Ok(readings)
}
