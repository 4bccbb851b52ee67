//! The same load with `rumqttc`, a client library with a task and a channel per connection, with which our own wire
//! path is compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pubmark_protocol::clock;
use rumqttc::{AsyncClient, Event, Incoming, MqttOptions, QoS};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::time::{Instant, interval_at, sleep};

use crate::usage;

/// The task of the child process: `publishers` publishers to one subscriber at a total rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Port of a broker on loopback.
    pub port: u16,
    /// Publishers.
    pub publishers: u32,
    /// Total messages per second.
    pub rate_per_s: u32,
    /// Size of a payload, bytes.
    pub payload_bytes: usize,
    /// Measured seconds.
    pub duration_s: u64,
    /// Send at exact times, evenly spaced, as our schedule does; otherwise on tokio's timers, which wake once a millisecond, so
    /// that the messages of a millisecond are sent together.
    pub exact: bool,
}

/// CPU seconds and messages received in the measured window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// CPU seconds of this process.
    pub cpu_s: f64,
    /// Messages received.
    pub delivered: u64,
}

const WARM_UP: Duration = Duration::from_secs(2);

/// Executes a task in this process, with two worker threads as our two shards.
pub fn run(order: &Order) -> Result<Finding, String> {
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(load(order.clone()))
}

fn options(id: String, port: u16) -> MqttOptions {
    let mut options = MqttOptions::new(id, "127.0.0.1", port);
    options.set_keep_alive(Duration::from_secs(60));
    options.set_max_packet_size(1 << 24, 1 << 24);
    options
}

async fn load(order: Order) -> Result<Finding, String> {
    let received = Arc::new(AtomicU64::new(0));
    let (subscriber, mut events) = AsyncClient::new(options("subscriber".to_owned(), order.port), 100);
    subscriber.subscribe("bench/#", QoS::AtMostOnce).await.map_err(|error| error.to_string())?;
    let counted = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok(event) = events.poll().await {
            if let Event::Incoming(Incoming::Publish(publish)) = event {
                // The same work per message as ours: read the clock, look at the payload.
                let at_ns = clock::monotonic_ns();
                counted.fetch_add(u64::from(at_ns > 0 && !publish.payload.is_empty()), Relaxed);
            }
        }
    });
    let gap = Duration::from_secs_f64(f64::from(order.publishers) / f64::from(order.rate_per_s));
    let start = Instant::now() + Duration::from_secs(1);
    let mut clients = vec![];
    for index in 0..order.publishers {
        let (client, mut events) = AsyncClient::new(options(format!("publisher{index}"), order.port), 100);
        tokio::spawn(async move { while events.poll().await.is_ok() {} });
        if order.exact {
            clients.push(client);
            continue;
        }
        let payload = vec![0x5a; order.payload_bytes];
        let topic = format!("bench/{index}");
        tokio::spawn(async move {
            let mut ticks = interval_at(start + gap * index / order.publishers, gap);
            loop {
                ticks.tick().await;
                if client.publish(topic.as_str(), QoS::AtMostOnce, false, payload.clone()).await.is_err() {
                    return;
                }
            }
        });
    }
    if order.exact {
        let order = order.clone();
        std::thread::spawn(move || send_at_exact_times(&order, &clients));
    }
    tokio::time::sleep_until(start + WARM_UP).await;
    let (cpu_s, before) = (usage::cpu_s(), received.load(Relaxed));
    sleep(Duration::from_secs(order.duration_s)).await;
    Ok(Finding { cpu_s: usage::cpu_s() - cpu_s, delivered: received.load(Relaxed) - before })
}

/// Passes every message to the library at its due time, in order, on a separate thread, until the process ends.
fn send_at_exact_times(order: &Order, clients: &[AsyncClient]) {
    let topics: Vec<String> = (0..clients.len()).map(|index| format!("bench/{index}")).collect();
    let payload = vec![0x5a; order.payload_bytes];
    let gap_ns = 1_000_000_000 / u64::from(order.rate_per_s);
    let mut due_ns = clock::monotonic_ns() + 1_000_000_000;
    // SAFETY: a plain system call; without slack a sleep ends at its time and not up to 50 µs later.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    for index in (0..clients.len()).cycle() {
        sleep_until(due_ns);
        if clients[index].try_publish(topics[index].as_str(), QoS::AtMostOnce, false, payload.clone()).is_err() {
            return;
        }
        due_ns += gap_ns;
    }
}

fn sleep_until(at_ns: u64) {
    let at = libc::timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    // SAFETY: `at` lives through the call; the remaining time is not requested.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut()) };
}
