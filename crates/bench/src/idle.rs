//! Idle sessions of an adapter in a process of their own: what one costs in memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::any::AnyClients;
use pubmark_protocol::clients::{
    ConnectionSettings, SessionConfig, SessionId, SessionOptions, ShardConfig, Subscription,
};
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_protocol::events::{Event, Sink};
use serde::{Deserialize, Serialize};

use crate::usage;

/// The task of the child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Name of the protocol, as in `pubmark run --protocol`.
    pub protocol: String,
    /// Address of the server.
    pub address: String,
    /// Sessions.
    pub sessions: u32,
    /// PEM file of the server's authority, if connections are encrypted.
    pub authority: Option<PathBuf>,
    /// Seconds for which CPU time is measured once all are connected.
    pub idle_s: u32,
}

/// What idle sessions cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Bytes of resident memory that each session added.
    pub bytes_per_session: f64,
    /// CPU time by time, while all sessions are connected; `None` if it is not measured.
    pub cores: Option<f64>,
}

/// Sessions that are connected before the first reading, so that memory that is allocated only once is not counted.
const FIRST: u32 = 10;
/// Longest wait for all sessions.
const LIMIT: Duration = Duration::from_secs(120);
/// Connects in progress at a time, because the listen queue of a broker is short.
const AT_ONCE: u32 = 50;

#[derive(Default)]
struct Count {
    up: u32,
    failure: Option<String>,
}

impl Sink for Count {
    fn event(&mut self, _: SessionId, event: Event<'_>) {
        match event {
            Event::Subscribed { .. } => self.up += 1,
            Event::Closed(cause) => self.failure = Some(format!("{cause:?}")),
            _ => {}
        }
    }
}

/// Executes a task in this process.
pub fn run(order: &Order) -> Result<Finding, String> {
    let protocol =
        pubmark_protocols::find(&order.protocol).ok_or_else(|| format!("no protocol `{}`", order.protocol))?;
    let address = order.address.parse().map_err(|error| format!("{}: {error}", order.address))?;
    let tls = order.authority.clone().map(|path| Tls {
        server_name: "localhost".to_owned(),
        authorities: Some(path),
        identity: None,
    });
    let mut clients = (protocol.open)(ShardConfig {
        endpoints: [Endpoint {
            shown: order.address.clone(),
            address,
            tls,
            credentials: None,
            upgrade: None,
            settings: None,
        }]
        .into(),
        sources: [].into(),
        networks: [].into(),
        run: 1,
        wall_ahead_ns: 0,
        body_pool: Arc::from(&[0u8; 64][..]),
        connections: ConnectionSettings::default(),
    })
    .map_err(|error| error.to_string())?;
    let mut count = Count::default();
    connect_all(&mut *clients, &mut count, 0..FIRST)?;
    let before = usage::resident_bytes("VmRSS").ok_or("no /proc/self/status")?;
    connect_all(&mut *clients, &mut count, FIRST..order.sessions)?;
    let after = usage::resident_bytes("VmRSS").ok_or("no /proc/self/status")?;
    let bytes_per_session = (after - before) as f64 / f64::from(order.sessions - FIRST);
    let idle = Duration::from_secs(order.idle_s.into());
    let cores = if idle.is_zero() { None } else { Some(idle_cores(&mut *clients, &mut count, idle)?) };
    Ok(Finding { bytes_per_session, cores })
}

/// CPU time by time of connected sessions.
fn idle_cores(clients: &mut dyn AnyClients, count: &mut Count, length: Duration) -> Result<f64, String> {
    let (cpu_s, began_ns) = (usage::cpu_s(), clock::monotonic_ns());
    let until_ns = began_ns + length.as_nanos() as u64;
    while clock::monotonic_ns() < until_ns {
        clients.poll(Some(until_ns), count).map_err(|error| error.to_string())?;
        if let Some(failure) = count.failure.take() {
            return Err(format!("a session ended: {failure}"));
        }
    }
    Ok((usage::cpu_s() - cpu_s) / ((clock::monotonic_ns() - began_ns) as f64 / 1e9))
}

fn connect_all(clients: &mut dyn AnyClients, count: &mut Count, sessions: std::ops::Range<u32>) -> Result<(), String> {
    let deadline_ns = clock::monotonic_ns() + LIMIT.as_nanos() as u64;
    let mut next = sessions.start;
    while count.up < sessions.end {
        while next < sessions.end && next - count.up < AT_ONCE {
            let session = clients.add_session(SessionConfig {
                endpoint: 0,
                network: None,
                client_id: format!("idle{next}").into(),
                credentials: None,
                token: None,
                nkey: None,
                certificate: None,
                persistent: false,
                in_flight_window: 20,
                publications: vec![],
                subscriptions: vec![Subscription { filter: format!("idle/{next}").into(), qos: Qos::BestEffort }],
                options: SessionOptions::default(),
            });
            clients.connect(session, count);
            next += 1;
        }
        clients.poll(Some(clock::monotonic_ns() + 100_000_000), count).map_err(|error| error.to_string())?;
        if let Some(failure) = count.failure.take() {
            return Err(format!("a session ended: {failure}"));
        }
        if clock::monotonic_ns() > deadline_ns {
            return Err(format!("only {} of {} sessions came up", count.up, sessions.end));
        }
    }
    Ok(())
}
