//! What MQTT clients cost without a broker: memory of idle connections, CPU of a flood into a sink that discards.
//!
//! `cargo run --release -p pubmark-conformance --example measure`

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod sink;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use pubmark_adapters::mqtt::Mqtt5;
use pubmark_conformance::certificates::Certificates;
use pubmark_model::payload::HeaderPlace;
use pubmark_model::qos::Qos;
use pubmark_model::template::BodyDraw;
use pubmark_protocol::clients::{
    Clients, ConnectionSettings, Outgoing, Publication, SendOutcome, SessionConfig, SessionId, SessionOptions,
    ShardConfig,
};
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_protocol::events::{Event, Sink};
use pubmark_protocol::timing::Timing;

const IDLE_CONNECTIONS: u32 = 5_000;
const FLOOD_CONNECTIONS: u32 = 100;
const FLOOD_NS: u64 = 3_000_000_000;
/// Connection attempts under way at a time.
const CONNECTING: u32 = 100;

fn main() {
    raise_descriptor_limit();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, key, certificate] = &arguments[..]
        && verb == "sink"
    {
        return sink::run((!key.is_empty()).then_some((key.as_str(), certificate.as_str())));
    }
    let directory = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(directory.path(), "sink");
    for encrypted in [false, true] {
        let name = if encrypted { "TLS" } else { "TCP" };
        let files = encrypted.then_some(&certificates);
        let (base, idle) = idle(files);
        let each = (idle - base) as f64 / f64::from(IDLE_CONNECTIONS) / 1_000.0;
        println!("{name} idle, {IDLE_CONNECTIONS} connections: {each:.2} KB each ({base} B before, {idle} B after)");
        for payload_bytes in [16, 1_024] {
            let (sent, cpu_ns) = flood(files, payload_bytes);
            let per_million = cpu_ns as f64 / 1e9 / (sent as f64 / 1e6);
            let rate = sent as f64 / (FLOOD_NS as f64 / 1e9);
            println!("{name} flood, {payload_bytes} B: {per_million:.3} CPU-s per million, {rate:.0} msg/s");
        }
    }
}

fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a live rlimit.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// A sink in a process of its own, so that its memory and CPU are not ours.
struct RunningSink(Child, Endpoint);

impl RunningSink {
    fn start(files: Option<&Certificates>) -> RunningSink {
        let path = |choose: fn(&Certificates) -> &std::path::Path| files.map(|files| choose(files).to_owned());
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("sink")
            .arg(path(|files| &files.key).unwrap_or_default())
            .arg(path(|files| &files.server).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let tls = files.map(|files| Tls {
            server_name: "localhost".to_owned(),
            authorities: Some(files.authority.clone()),
            identity: None,
        });
        let address = line.trim().parse().unwrap();
        RunningSink(process, Endpoint { shown: line, address, tls, credentials: None, upgrade: None, settings: None })
    }
}

impl Drop for RunningSink {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Default)]
struct Counts {
    connected: u32,
    written: u64,
    writable: Vec<SessionId>,
}

impl Sink for Counts {
    fn event(&mut self, session: SessionId, event: Event<'_>) {
        match event {
            Event::Connected(_) => {
                self.connected += 1;
                self.writable.push(session);
            }
            Event::Closed(cause) => panic!("{session:?} ended: {cause:?}"),
            Event::Written { .. } => self.written += 1,
            Event::Writable => self.writable.push(session),
            _ => {}
        }
    }
}

fn connect_all(endpoint: &Endpoint, count: u32) -> (Mqtt5, Counts) {
    let config = ShardConfig {
        endpoints: [endpoint.clone()].into(),
        sources: [].into(),
        networks: [].into(),
        run: 1,
        wall_ahead_ns: 0,
        body_pool: vec![b'x'; 64 * 1024].into(),
        connections: ConnectionSettings::default(),
    };
    let mut clients = Mqtt5::open(config).unwrap();
    let mut counts = Counts::default();
    for number in 0..count {
        let publication = Publication {
            body: None,
            header: HeaderPlace::Payload,
            properties: [].into(),
            publisher: number,
            topic: format!("bench/{number}").into(),
            qos: Qos::BestEffort,
            retain: false,
        };
        let session = clients.add_session(SessionConfig {
            endpoint: 0,
            network: None,
            client_id: format!("bench-{number}").into(),
            credentials: None,
            token: None,
            nkey: None,
            certificate: None,
            persistent: false,
            in_flight_window: 20,
            publications: vec![publication],
            subscriptions: Vec::new(),
            options: SessionOptions::default(),
        });
        clients.connect(session, &mut counts);
        while number + 1 - counts.connected >= CONNECTING {
            clients.poll(None, &mut counts).unwrap();
        }
    }
    while counts.connected < count {
        clients.poll(None, &mut counts).unwrap();
    }
    (clients, counts)
}

/// Memory before and after connecting.
fn idle(files: Option<&Certificates>) -> (u64, u64) {
    let sink = RunningSink::start(files);
    let before = resident_bytes();
    let connections = connect_all(&sink.1, IDLE_CONNECTIONS);
    let after = resident_bytes();
    drop(connections);
    (before, after)
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// Messages written, and the CPU time of this thread for them.
fn flood(files: Option<&Certificates>, payload_bytes: u32) -> (u64, u64) {
    let sink = RunningSink::start(files);
    let (mut clients, mut counts) = connect_all(&sink.1, FLOOD_CONNECTIONS);
    let mut sequences = vec![0; FLOOD_CONNECTIONS as usize];
    let (began_ns, cpu_ns, written) = (clock::monotonic_ns(), clock::thread_cpu_ns(), counts.written);
    let end_ns = began_ns + FLOOD_NS;
    let mut now_ns = began_ns;
    while now_ns < end_ns {
        for session in std::mem::take(&mut counts.writable) {
            let sequence = &mut sequences[session.0 as usize];
            let mut message = Outgoing {
                publication: 0,
                sequence: *sequence + 1,
                timing: Timing::on_time(now_ns),
                root: None,
                draw: BodyDraw::default(),
                plain_body_bytes: 0,
                payload_bytes,
            };
            while clients.send(session, message) == SendOutcome::Accepted {
                *sequence += 1;
                message.sequence = *sequence + 1;
            }
            clients.flush(session, &mut counts);
        }
        let until_ns = if counts.writable.is_empty() { end_ns } else { 0 };
        clients.poll(Some(until_ns), &mut counts).unwrap();
        now_ns = clock::monotonic_ns();
    }
    (counts.written - written, clock::thread_cpu_ns() - cpu_ns)
}
