//! Memory of an idle CoAP session. The test has its own process, whose memory it reads.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pubmark_adapters::coap::CoapClients;
use pubmark_broker::coap::{CoapBroker, CoapSettings};
use pubmark_conformance::peer::{Peer, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Clients as _;
use pubmark_protocol::endpoint::Endpoint;

/// Limit of the resident memory per session, bytes, including that of the broker in this process.
const MOST_BYTES: f64 = 8.0 * 1_024.0;
const SESSIONS: usize = 900;

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1_024.0
}

#[test]
fn an_idle_session_costs_at_most_8_kb() {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let (tell, grants) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut broker = CoapBroker::bind(CoapSettings::new("127.0.0.1:0".parse().unwrap())).unwrap();
        tell.send(broker.local_address().unwrap()).unwrap();
        broker.run(&seen).unwrap();
    });
    let address = grants.recv().unwrap();
    let shown = format!("coap://{address}");
    let mut peer = Peer::<CoapClients>::open(Endpoint {
        shown,
        address,
        tls: None,
        credentials: None,
        upgrade: None,
        settings: None,
    });
    let mut before = 0.0;
    // Memory that is allocated once is not counted.
    for sessions in [100, SESSIONS] {
        before = resident_bytes();
        let first = peer.record.count(|event| matches!(event, Event::Subscribed(..)));
        for index in first..sessions {
            let config = subscriber(&format!("idle{index}"), &format!("idle/{index}"), Qos::AtLeastOnce);
            let session = peer.clients.add_session(config);
            peer.clients.connect(session, &mut peer.record);
        }
        peer.wait("all subscribed", |record| {
            record.count(|event| matches!(event, Event::Subscribed(_, _, Ok(_)))) == sessions
        });
    }
    let each = (resident_bytes() - before) / (SESSIONS - 100) as f64;
    eprintln!("an idle session with a subscription costs {each:.0} B, our broker's side of it included");
    assert!(each <= MOST_BYTES, "{each:.0} B");
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
