//! Memory of an idle ZeroMQ session. The test has its own process, whose memory it reads; the proxy is another one.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use pubmark_adapters::zeromq::ZeroMqClients;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_conformance::zeromq::ZeroMq;
use pubmark_model::qos::Qos;
use pubmark_protocol::any;
use pubmark_protocol::clients::SessionConfig;

/// Bytes of resident memory that a session may cost.
const MOST_BYTES: f64 = 2.0 * 1_024.0;
/// Numbers of sessions at the two readings; memory that is allocated once is not in the difference.
const SESSIONS: [usize; 2] = [100, 900];

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1_024.0
}

/// Connects sessions of a kind and returns the memory that each of the later ones added.
fn cost(proxy: &ZeroMq, config: impl Fn(usize) -> SessionConfig) -> f64 {
    let endpoints = [proxy.endpoint(Listener::Plain).unwrap(), proxy.subscribers_endpoint(Listener::Plain).unwrap()];
    let mut peer = Peer::of_two(any::open::<ZeroMqClients>, endpoints, 60);
    let mut readings = [0.0; 2];
    let mut first = 0;
    for (reading, sessions) in readings.iter_mut().zip(SESSIONS) {
        for index in first..sessions {
            let session = peer.clients.add_session(config(index));
            peer.clients.connect(session, &mut peer.record);
        }
        peer.wait("all connected", |record| record.count(|event| matches!(event, Event::Connected(..))) == sessions);
        first = sessions;
        *reading = resident_bytes();
    }
    (readings[1] - readings[0]) / (SESSIONS[1] - SESSIONS[0]) as f64
}

#[test]
fn an_idle_session_costs_at_most_2_kb() {
    let proxy = match ZeroMq::start(Limits::Large) {
        Ok(proxy) => proxy,
        Err(Missing(why)) => return pubmark_testing::skip(why),
    };
    let publishers = cost(&proxy, |index| publisher(&format!("out{index}"), &format!("idle/{index}"), Qos::BestEffort));
    let subscribers =
        cost(&proxy, |index| subscriber(&format!("in{index}"), &format!("idle/{index}"), Qos::BestEffort));
    eprintln!("an idle publisher costs {publishers:.0} B, an idle subscriber {subscribers:.0} B");
    assert!(publishers <= MOST_BYTES && subscribers <= MOST_BYTES, "{publishers:.0} B, {subscribers:.0} B");
}
