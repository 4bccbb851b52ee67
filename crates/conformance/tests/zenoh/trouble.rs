//! Servers that are missing, speak another protocol, do not read, or end.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use pubmark_adapters::zenoh::{RoutedBlocking, ZenohClients};
use pubmark_conformance::peer::{Peer, credentials, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_conformance::server::{LOGIN, Limits, Listener, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, SendOutcome, SessionConfig};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_testing::assert_count_eq;

use crate::router::{Blocking, Guarded, Router};
use crate::turn_with_deadline;

type Clients = ZenohClients<RoutedBlocking>;

/// A listener that calls `talk` for each connection; its thread ends with the test.
fn listener(talk: fn(std::net::TcpStream)) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| drop(std::thread::spawn(move || talk(stream))))
    });
    Endpoint {
        shown: format!("zenoh://{address}"),
        address,
        tls: None,
        credentials: None,
        upgrade: None,
        settings: None,
    }
}

#[test]
fn a_program_without_a_known_protocol_is_refused() {
    let _turn = turn_with_deadline();
    let noise = |mut stream: std::net::TcpStream| {
        let _ = stream.write_all(&[0xff; 70_000]);
        let _ = stream.read(&mut [0; 100]);
    };
    let silence = |mut stream: std::net::TcpStream| while stream.read(&mut [0; 100]).is_ok_and(|bytes| bytes > 0) {};
    for (name, endpoint) in [("noise", listener(noise)), ("silence", listener(silence))] {
        let begun = Instant::now();
        let mut peer = Peer::<Clients>::open(endpoint);
        let cause = peer.fail_to_connect(session(name));
        assert!(
            matches!(&cause, Cause::Refused(reason) if reason.text.contains("no Zenoh transport")),
            "{name}: {cause:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(8), "{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_topic_that_cannot_be_expressed_is_refused() {
    let _turn = turn_with_deadline();
    let server = Router::<Blocking>::start(Limits::Large).unwrap();
    let mut peer = Peer::<Clients>::open(server.endpoint(Listener::Plain).unwrap());
    let cause = peer.fail_to_connect(publisher("out", "a//b", Qos::BestEffort));
    assert!(matches!(&cause, Cause::Refused(reason) if reason.text.contains("empty level")), "{cause:?}");
    peer.join(subscriber("in", "a*", Qos::BestEffort));
    let refused = |event: &Event| matches!(event, Event::Subscribed(_, 0, Err(reason)) if reason.text.contains("`*`"));
    assert_count_eq!(peer.record.count(refused), 1);
}

#[test]
fn a_log_in_is_sent_on_request() {
    let _turn = turn_with_deadline();
    let server = Router::<Guarded>::start(Limits::Large).unwrap();
    let endpoint = server.endpoint(Listener::Guarded).unwrap();
    let mut peer = Peer::<Clients>::open(endpoint.clone());
    for login in [None, credentials(LOGIN.0, "wrong"), credentials("nobody", LOGIN.1)] {
        let cause = peer.fail_to_connect(SessionConfig { credentials: login, ..session("refused") });
        assert!(matches!(&cause, Cause::Refused(reason) if reason.text.contains("log-in")), "{cause:?}");
    }
    peer.join(SessionConfig { credentials: credentials(LOGIN.0, LOGIN.1), ..session("taken") });
    let mut peer = Peer::<Clients>::open(Endpoint { credentials: credentials(LOGIN.0, LOGIN.1), ..endpoint });
    peer.join(session("of the endpoint"));
}

/// A router that stops reading: senders wait, their queue is bounded, and the shard continues.
#[test]
fn a_router_that_stops_reading_holds_up_senders_only() {
    let _turn = turn_with_deadline();
    let server = Router::<Blocking>::start(Limits::Large).unwrap();
    let mut peer = Peer::<Clients>::open(server.endpoint(Listener::Plain).unwrap());
    let sender = peer.join(publisher("out", "held", Qos::BestEffort));
    assert!(server.pause());
    let (mut taken, begun) = (0u64, Instant::now());
    let mut longest = Duration::ZERO;
    while peer.record.causes(sender).is_empty() && begun.elapsed() < Duration::from_secs(15) {
        let turn = Instant::now();
        while peer.offer(sender, 60_000) == SendOutcome::Accepted {
            taken += 1;
        }
        peer.flush(sender);
        assert!(peer.clients.unsent_bytes() <= 1 << 20);
        longest = longest.max(turn.elapsed());
        peer.linger(20);
    }
    server.resume();
    let settled = peer.record.count(|event| matches!(event, Event::Written(..) | Event::Abandoned(..)));
    assert!(matches!(peer.record.causes(sender)[..], [Cause::Dropped(_)]), "{:?}", peer.record.causes(sender));
    assert_count_eq!(settled as u64, taken, "every message has an end");
    assert!(longest < Duration::from_millis(500), "the shard stood still for {longest:?}");
    eprintln!("a paused router took {taken} messages of 60 kB; its connection ended after {:?}", begun.elapsed());
}
