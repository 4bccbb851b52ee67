//! Memory of an idle Zenoh session, and leftovers after all sessions. The test has its own process, whose figures it
//! reads.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_adapters::zenoh::{Routed, ZenohClients};
use pubmark_conformance::deadline::Deadline;
use pubmark_conformance::peer::{Peer, session, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Clients as _;
use pubmark_protocol::endpoint::Endpoint;

type Clients = ZenohClients<Routed>;

/// Limit of the resident memory per session, bytes: twice the measured value.
const MOST_BYTES: f64 = 160.0 * 1_024.0;
const SESSIONS: usize = 300;

struct Router(Child);

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn router() -> (Router, Endpoint, tempfile::TempDir) {
    let (address, folder) = (ports::free(), tempfile::tempdir().unwrap());
    let file = folder.path().join("router.json5");
    let listen = format!("listen: {{endpoints: ['tcp/{address}']}}");
    std::fs::write(&file, format!("{{mode: 'router', {listen}, scouting: {{multicast: {{enabled: false}}}}}}"))
        .unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_zenoh-router")).arg(file).stdin(Stdio::null()).spawn().unwrap();
    let router = Router(child);
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::net::TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "the router does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let shown = format!("zenoh://{address}");
    (router, Endpoint { shown, address, tls: None, credentials: None, upgrade: None, settings: None }, folder)
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1_024.0
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Names of this process' threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
}

#[test]
fn idle_sessions_are_affordable_and_leave_nothing_of_ours() {
    let _deadline = Deadline::start("Zenoh");
    let (_router, endpoint, _folder) = router();
    // The library creates its own threads and descriptors with the first session of a process, and retains them.
    let mut peer = Peer::<Clients>::open(endpoint.clone());
    peer.join(session("first"));
    drop(peer);
    let at_rest = descriptors();
    let of_library = threads().iter().filter(|name| !name.starts_with("zenoh-")).count();

    let mut peer = Peer::<Clients>::open(endpoint);
    let mut before = 0.0;
    for sessions in [50, SESSIONS] {
        before = resident_bytes();
        let first = peer.record.count(|event| matches!(event, Event::Subscribed(..)));
        for index in first..sessions {
            let config = subscriber(&format!("idle{index}"), &format!("idle/{index}"), Qos::BestEffort);
            let session = peer.clients.add_session(config);
            peer.begin_connect(session);
        }
        peer.wait("all subscribed", |record| {
            record.count(|event| matches!(event, Event::Subscribed(_, _, Ok(_)))) == sessions
        });
    }
    let each = (resident_bytes() - before) / (SESSIONS - 50) as f64;
    eprintln!("an idle session with a subscription costs {each:.0} B; {of_library} threads are there for all of them");
    assert!(each <= MOST_BYTES, "{each:.0} B");
    let begun = Instant::now();
    drop(peer);
    eprintln!("{SESSIONS} sessions were closed in {:?}", begun.elapsed());
    assert!(threads().iter().all(|name| !name.starts_with("zenoh-")), "{:?}", threads());
    // Sockets are closed by the library's own threads, a moment later.
    let deadline = Instant::now() + Duration::from_secs(10);
    while descriptors() > at_rest && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(descriptors() <= at_rest, "{} descriptors, {at_rest} before", descriptors());
}
