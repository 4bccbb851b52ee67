//! Two minimal Zenoh peers, with which our adapter is compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubmark_protocol::clock;
use serde::{Deserialize, Serialize};
use zenoh::qos::CongestionControl;
use zenoh::{Config, Wait};

use crate::usage;

/// The task of the child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// `127.0.0.1:PORT`, free: the subscriber listens there.
    pub address: String,
    /// Size of a payload, bytes.
    pub payload_bytes: usize,
}

/// CPU seconds of the process and messages received in the measured window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// CPU seconds of this process.
    pub cpu_s: f64,
    /// Messages received.
    pub delivered: u64,
}

const KEY: &str = "bench/loop";
/// Subscribed to by a wildcard, as in the workload: the library then resolves the route of every message again, which
/// costs three times as much as a subscription to the key itself.
const FILTER: &str = "bench/*";
const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_secs(3);
/// Longest wait for the first message.
const FIRST: Duration = Duration::from_secs(20);

/// Publishes as fast as the library accepts it, from one peer to another in this process, over TCP.
pub fn run(order: &Order) -> Result<Finding, String> {
    let received = Arc::new(AtomicU64::new(0));
    let place = format!("[\"tcp/{}\"]", order.address);
    let (listening, connecting) = (session("listen/endpoints", &place)?, session("connect/endpoints", &place)?);
    let counted = Arc::clone(&received);
    let _subscriber = listening
        .declare_subscriber(FILTER)
        .callback(move |sample| {
            // The same work per message as ours: read the clock, look at the payload.
            let at_ns = clock::monotonic_ns();
            counted.fetch_add(u64::from(at_ns > 0 && !sample.payload().is_empty()), Relaxed);
        })
        .wait()
        .map_err(|error| error.to_string())?;
    let publisher = connecting
        .declare_publisher(KEY)
        .congestion_control(CongestionControl::Block)
        .wait()
        .map_err(|error| error.to_string())?;
    let payload = vec![b'x'; order.payload_bytes];
    let put = || publisher.put(payload.as_slice()).wait().map_err(|error| error.to_string());
    let begin = Instant::now();
    while received.load(Relaxed) == 0 {
        if begin.elapsed() > FIRST {
            return Err("the peers did not find each other".to_owned());
        }
        put()?;
    }
    let until = |end: Instant| -> Result<(), String> {
        while Instant::now() < end {
            for _ in 0..100 {
                put()?;
            }
        }
        Ok(())
    };
    until(Instant::now() + WARM_UP)?;
    let (cpu_s, delivered) = (usage::cpu_s(), received.load(Relaxed));
    until(Instant::now() + WINDOW)?;
    Ok(Finding { cpu_s: usage::cpu_s() - cpu_s, delivered: received.load(Relaxed) - delivered })
}

/// A peer that connects to one endpoint only, without discovery.
fn session(key: &str, place: &str) -> Result<zenoh::Session, String> {
    let mut config = Config::default();
    for (key, value) in
        [("mode", "\"peer\""), ("scouting/multicast/enabled", "false"), ("listen/endpoints", "[]"), (key, place)]
    {
        config.insert_json5(key, value).map_err(|error| format!("{key}: {error}"))?;
    }
    zenoh::open(config).wait().map_err(|error| error.to_string())
}
