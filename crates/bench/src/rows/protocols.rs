//! Cost of each protocol for the generator, over its own server.

use crate::generator::{Finding, Order};
use crate::row::{Reading, Row, fewer};
use crate::test_system::TestSystem;
use crate::{child, idle, out};

pub const FLOOD: Row = Row {
    name: "protocols-flood",
    measure: "flood over each protocol's server, publishers + subscriber, CPU-s per million delivered",
    known: "nats bench 0.78 (16 B), 2.15 (1 KB)",
    run: flood,
};

pub const PACED: Row = Row {
    name: "protocols-paced",
    measure: "paced 10,000 msg/s, 100 → 1, 16 B, CPU-s per million delivered",
    known: "—",
    run: paced,
};

pub const IDLE: Row = Row {
    name: "protocols-idle",
    measure: "RSS per idle connection with a subscription, 2,000 of them",
    known: "nats bench 36 KB, redis-benchmark 1.3 KB",
    run: idle_sessions,
};

/// Wire-level protocols whose idle sessions are measured here; the tests measure those of the other protocols.
const IDLE_BARS: [&str; 7] = ["mqtt5", "nats", "jetstream", "redis", "redis-streams", "coap", "zeromq"];

/// A protocol, its system, and the QoS level.
pub struct Case {
    pub protocol: &'static str,
    pub system: &'static str,
    pub qos: u8,
}

const CASES: [Case; 13] = [
    Case { protocol: "mqtt5", system: "mosquitto", qos: 0 },
    Case { protocol: "nats", system: "nats", qos: 0 },
    Case { protocol: "jetstream", system: "nats", qos: 1 },
    Case { protocol: "redis", system: "redis", qos: 0 },
    Case { protocol: "redis-streams", system: "redis", qos: 1 },
    // Over our own broker, because no package has one. Not at QoS 1, where only one notification at a time is in flight
    // to an observer.
    Case { protocol: "coap", system: "coap", qos: 0 },
    Case { protocol: "zeromq", system: "zeromq", qos: 0 },
    Case { protocol: "amqp091", system: "rabbitmq", qos: 0 },
    // Without confirms RabbitMQ is behind what a flood fills the sockets with.
    Case { protocol: "amqp091", system: "rabbitmq", qos: 1 },
    Case { protocol: "amqp10", system: "artemis", qos: 0 },
    Case { protocol: "zenoh", system: "zenoh", qos: 0 },
    Case { protocol: "zenoh-peer", system: "zenoh-peers", qos: 0 },
    Case { protocol: "dds", system: "dds", qos: 1 },
];

pub fn order(case: &Case, test_system: &TestSystem, set: &[&str]) -> Order {
    Order {
        subscribers: test_system.subscribers.map(|address| address.to_string()),
        qos: case.qos,
        protocol: case.protocol.to_owned(),
        ..Order::new(&test_system.address, set)
    }
}

/// One value per repetition.
#[derive(Default)]
struct Measured {
    /// CPU seconds per million that arrived in the window.
    costs: Vec<f64>,
    /// Thousands of arrivals per second of the window.
    rates: Vec<f64>,
    /// A note for the reader.
    note: String,
}

fn measure(case: &Case, set: &[&str], repetitions: usize) -> Result<Measured, String> {
    let mut measured = Measured::default();
    let (mut written, mut arrived) = (0, 0);
    for _ in 0..repetitions {
        let test_system = TestSystem::start(case.system, case.protocol, false)?;
        let found: Finding = child::run_child("generator", &order(case, &test_system, set))?;
        if found.delivered == 0 {
            return Err(nothing(&found));
        }
        measured.costs.push(found.cpu_s_per_million()?);
        measured.rates.push(found.arrived as f64 / found.window_s / 1e3);
        written += found.written;
        arrived += found.arrived;
    }
    measured.note = note(written, arrived);
    Ok(measured)
}

/// A note if the CPU time of a window is not that of as many messages written as received: more were written, which makes
/// a delivery look dearer, or more arrived, sent in the warm-up, which makes it look cheaper.
fn note(written: u64, arrived: u64) -> String {
    if written.abs_diff(arrived) <= written / 100 {
        return String::new();
    }
    let percent = 100.0 * arrived as f64 / written as f64;
    format!("in the window, {percent:.1} % as many arrived as were sent")
}

/// The reason why nothing was delivered.
fn nothing(found: &Finding) -> String {
    let words = format!("none of {} messages sent in the window arrived", found.sent);
    match found.unsent_bytes {
        0 => words,
        bytes => format!(
            "{words}: the system is behind those before them, {:.0} MB still in our sockets",
            bytes as f64 / 1e6
        ),
    }
}

/// The same for all cases. A case that cannot be measured is reported and left out.
fn measured(case: &Case, set: &[&str], repetitions: usize) -> Measured {
    measure(case, set, repetitions).unwrap_or_else(|why| {
        out::note(&format!("left out: {} QoS {} with {}: {why}", case.protocol, case.qos, set.join(" ")));
        Measured { note: format!("left out: {why}"), ..Measured::default() }
    })
}

fn flood(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    for case in CASES {
        for (publishers, payload) in [(1, "16B"), (1, "1KB"), (100, "16B")] {
            let set = ["arrival=flood", &format!("publishers={publishers}"), &format!("payload={payload}")];
            // What the native tool takes (peers without a package are measured elsewhere).
            let bar = (case.protocol == "nats" && payload == "16B").then_some(0.78);
            let repetitions = if bar.is_some() { repetitions } else { fewer(repetitions) };
            let Measured { costs, rates, note } = measured(&case, &set, repetitions);
            let name = format!("{} QoS {}, {publishers} → 1, {payload}", case.protocol, case.qos);
            readings.push(Reading { note, ..Reading::new(&name, costs, "s", bar) });
            readings.push(Reading::new(&format!("{name}, thousand messages a second"), rates, "k/s", None));
        }
    }
    Ok(readings)
}

fn paced(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    for case in CASES {
        let set = ["publishers=100", "rate=100/s", "payload=16B"];
        let Measured { costs, note, .. } = measured(&case, &set, fewer(repetitions));
        readings
            .push(Reading { note, ..Reading::new(&format!("{} QoS {}", case.protocol, case.qos), costs, "s", None) });
    }
    Ok(readings)
}

fn idle_sessions(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    for case in CASES.into_iter().filter(|case| IDLE_BARS.contains(&case.protocol)) {
        let mut values = vec![];
        for _ in 0..repetitions {
            let test_system = TestSystem::start(case.system, case.protocol, false)?;
            let order = idle::Order {
                protocol: case.protocol.to_owned(),
                address: test_system.subscribers.unwrap_or(test_system.address).to_string(),
                sessions: 2_000,
                authority: None,
                idle_s: 0,
            };
            let found: idle::Finding = child::run_child("idle", &order)?;
            values.push(found.bytes_per_session / 1e3);
        }
        readings.push(Reading::new(case.protocol, values, "KB", Some(8.0)));
    }
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_with_fewer_or_more_arrivals_than_messages_written_is_noted() {
        assert_eq!(note(10_000, 9_900), "");
        assert_eq!(note(10_000, 5_000), "in the window, 50.0 % as many arrived as were sent");
        assert_eq!(note(10_000, 12_500), "in the window, 125.0 % as many arrived as were sent");
    }
}
