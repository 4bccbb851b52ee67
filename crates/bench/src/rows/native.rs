//! Cost of a message compared with the load tool of the system or of its vendor, measured in the same call.

use std::net::SocketAddr;

use super::protocols::{Case, order};
use crate::generator::{Finding, Order};
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;
use crate::{child, native, out};

pub const ROW: Row = Row {
    name: "native-tools",
    measure: "flood, 16 B, one connection a side, CPU-s per million: ours beside the system's own tool in the same call",
    known: "redis-benchmark 2.02, mosquitto_pub/sub 4.84, perf-test 25.2",
    run,
};

/// Role of a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Publishes without subscribers: cost per million sent.
    Publish,
    /// Publishes and subscribes: cost per million delivered.
    Carry,
}

/// A protocol and the load tool of its system.
struct Native {
    case: Case,
    role: Role,
    tool: &'static str,
    measure: fn(SocketAddr) -> Result<f64, String>,
}

const NATIVE: [Native; 4] = [
    Native {
        case: Case { protocol: "redis", system: "redis", qos: 0 },
        role: Role::Publish,
        tool: "redis-benchmark -P 16",
        measure: native::redis_benchmark,
    },
    Native {
        case: Case { protocol: "mqtt5", system: "mosquitto", qos: 0 },
        role: Role::Publish,
        tool: "mosquitto_pub -l",
        measure: native::mosquitto_pub,
    },
    Native {
        case: Case { protocol: "mqtt5", system: "mosquitto", qos: 0 },
        role: Role::Carry,
        tool: "mosquitto_pub -l and mosquitto_sub",
        measure: native::mosquitto_pub_sub,
    },
    Native {
        // With confirms: without them a flood fills the sockets with messages that RabbitMQ forwards long after the
        // window.
        case: Case { protocol: "amqp091", system: "rabbitmq", qos: 1 },
        role: Role::Carry,
        tool: "perf-test with confirms (its JVM's start included)",
        measure: native::perf_test,
    },
];

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    for Native { case, role, tool, measure } in NATIVE {
        let (mut ours, mut theirs, mut ratios, mut note) = (vec![], vec![], vec![], String::new());
        for _ in 0..repetitions {
            let test_system = TestSystem::start(case.system, case.protocol, false)?;
            let other = match measure(test_system.address) {
                Ok(other) => other,
                Err(why) => {
                    // The other cases are still measured.
                    out::note(&format!("left out: {tool}: {why}"));
                    note = format!("left out: {why}");
                    break;
                }
            };
            let own = cost(&case, role, &test_system)?;
            ours.push(own);
            theirs.push(other);
            ratios.push(own / other);
        }
        let doing = match role {
            Role::Publish => "publish alone",
            Role::Carry => "1 → 1",
        };
        readings.push(Reading::new(&format!("{doing}: pubmark, {} QoS {}", case.protocol, case.qos), ours, "s", None));
        readings.push(Reading { note, ..Reading::new(&format!("{doing}: {tool}"), theirs, "s", None) });
        readings.push(Reading::new(&format!("{doing}: ratio to {tool}"), ratios, "×", Some(1.0)));
    }
    Ok(readings)
}

fn cost(case: &Case, role: Role, test_system: &TestSystem) -> Result<f64, String> {
    let set = ["arrival=flood", "publishers=1", "payload=16B"];
    let order = Order { publish_only: role == Role::Publish, ..order(case, test_system, &set) };
    let found: Finding = child::run_child("generator", &order)?;
    let cost = match role {
        Role::Publish => found.cpu_s_per_million_written(),
        Role::Carry => found.cpu_s_per_million(),
    };
    cost.map_err(|why| format!("{} QoS {}: {why}", case.protocol, case.qos))
}
