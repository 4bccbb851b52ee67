//! A network that loses one datagram of ten in each direction, in front of our broker and between peers: delivery at
//! least once and exactly once hold.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pubmark_adapters::coap::{CoapClients, Timing};
use pubmark_broker::coap::{CoapBroker, CoapSettings, CoapStatistics};
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SendOutcome};
use pubmark_protocol::{any, clock};
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::coap::Times;

use crate::relay::{NetworkConditions, Relay};
use crate::requests::{answer, endpoint, requester, responder};

/// Short times, and enough retransmissions that a message is lost once in a billion.
const QUICK: Times = Times { acknowledge_ns: 20_000_000, repetitions: 11, latency_ns: 1_000_000_000 };

/// The times of these tests.
pub enum FastTiming {}

impl Timing for FastTiming {
    const TIMES: Times = QUICK;
    const TICK_NS: u64 = 4_000_000;
}

/// A broker in a thread.
pub struct Running {
    pub address: std::net::SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<CoapStatistics>>,
}

impl Running {
    pub fn start(times: Times) -> Running {
        let listen = "127.0.0.1:0".parse().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (tell, grants) = std::sync::mpsc::channel();
        let thread = Some(std::thread::spawn(move || {
            let mut broker = CoapBroker::bind(CoapSettings { times, ..CoapSettings::new(listen) }).unwrap();
            tell.send(broker.local_address().unwrap()).unwrap();
            broker.run(&seen).unwrap();
            broker.statistics()
        }));
        Running { address: grants.recv().unwrap(), stop, thread }
    }

    pub fn end(mut self) -> CoapStatistics {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn open(relay: &Relay) -> Peer<CoapClients<FastTiming>> {
    Peer::open(endpoint(relay.address))
}

/// Sends messages of these sizes as fast as the window allows.
fn exchange(conditions: NetworkConditions, sizes: &[u32]) -> (Peer<CoapClients<FastTiming>>, CoapStatistics) {
    let broker = Running::start(QUICK);
    let relay = Relay::start(broker.address, conditions, 7);
    let mut peer = open(&relay);
    let receiver = peer.join(subscriber("lossy-in", "lossy/+", Qos::AtLeastOnce));
    let sender = peer.join(publisher("lossy-out", "lossy/a", Qos::AtLeastOnce));
    let mut sent = 0;
    while sent < sizes.len() {
        let before = peer.record.count(|event| *event == Event::Writable(sender));
        while sent < sizes.len() && peer.offer(sender, sizes[sent]) == SendOutcome::Accepted {
            sent += 1;
        }
        peer.flush(sender);
        if sent < sizes.len() {
            peer.wait("room", |record| record.count(|event| *event == Event::Writable(sender)) > before);
        }
    }
    peer.wait("all acknowledged", |record| record.acknowledged() == sizes.len());
    peer.wait("all arrived", |record| record.arrived.len() >= sizes.len());
    peer.linger(200);
    assert_eq!((peer.record.causes(receiver), peer.record.causes(sender)), (vec![], vec![]));
    drop(relay);
    (peer, broker.end())
}

fn assert_each_once(peer: &Peer<CoapClients<FastTiming>>, sizes: &[u32]) {
    let mut arrived: Vec<_> =
        peer.record.arrived.iter().map(|one| (one.header.sequence, one.payload_bytes as u32)).collect();
    arrived.sort_unstable();
    let expected: Vec<_> = (1..).zip(sizes.iter().copied()).collect();
    assert_count_eq!(arrived, expected);
    assert_count!(peer.record.arrived.iter().all(|one| one.intact));
    assert_count_eq!((peer.record.written(), peer.record.unanswered(), peer.record.foreign), (sizes.len(), 0, 0));
}

#[test]
fn messages_are_delivered_once_though_one_datagram_of_ten_is_lost() {
    let sizes = [100; 400];
    let (peer, statistics) = exchange(NetworkConditions { lost: 0.1, ..NetworkConditions::default() }, &sizes);
    assert_each_once(&peer, &sizes);
    assert_count_eq!((statistics.published, statistics.notified), (400, 400), "{statistics:?}");
    assert_count_eq!((statistics.dropped_queued, statistics.observers_silent), (0, 0));
    assert!(statistics.repeated_requests > 0 && statistics.repeated > 0, "nothing was lost: {statistics:?}");
}

#[test]
fn large_messages_arrive_whole_though_one_datagram_of_ten_is_lost() {
    let sizes = [10_000, 100, 1_025, 2_048, 20_000];
    let (peer, statistics) = exchange(NetworkConditions { lost: 0.1, ..NetworkConditions::default() }, &sizes);
    assert_each_once(&peer, &sizes);
    assert_count_eq!((statistics.published, statistics.dropped_unfetched), (5, 0), "{statistics:?}");
}

#[test]
fn datagrams_that_come_twice_or_late_are_not_delivered_twice() {
    let sizes = [100; 400];
    let conditions = NetworkConditions { lost: 0.02, doubled: 0.2, overtaken: 0.2 };
    let (peer, statistics) = exchange(conditions, &sizes);
    assert_each_once(&peer, &sizes);
    assert_count_eq!(statistics.published, 400, "{statistics:?}");
    assert!(statistics.repeated_requests > 0);
}

#[test]
fn at_best_effort_nothing_is_repeated() {
    let broker = Running::start(QUICK);
    let relay = Relay::start(broker.address, NetworkConditions { lost: 0.1, ..NetworkConditions::default() }, 11);
    let mut peer = open(&relay);
    let receiver = peer.join(subscriber("once-in", "once", Qos::BestEffort));
    let sender = peer.join(publisher("once-out", "once", Qos::BestEffort));
    for _ in 0..300 {
        peer.send(sender, 100);
        peer.linger(1);
    }
    peer.linger(300);
    drop(relay);
    let statistics = broker.end();
    let arrived = peer.record.sequences(receiver);
    assert_count!(
        arrived.is_sorted() && arrived.windows(2).all(|pair| pair[0] < pair[1]),
        "in order and once: {arrived:?}"
    );
    assert!((150..300).contains(&arrived.len()), "{} of 300 arrived", arrived.len());
    assert_eq!(statistics.repeated, 0, "{statistics:?}");
    assert!(statistics.published < 300 && statistics.published >= arrived.len() as u64);
}

/// Sends requests as fast as the window allows, through a relay, and replies to the last request of each read first;
/// sizes of requests and replies.
fn ask(conditions: NetworkConditions, qos: Qos, sizes: &[(u32, u32)]) -> Peer {
    let address = ports::free();
    let relay = Relay::start(address, conditions, 5);
    let mut peer = Peer::of_two(any::open::<CoapClients<FastTiming>>, [endpoint(relay.address), endpoint(address)], 60);
    let responder = peer.join(responder("lossy/+", qos));
    let requester = peer.join(requester("lossy/a", qos, 20_000));
    let (mut sent, mut answered) = (0, 0);
    let deadline = clock::monotonic_ns() + 60_000_000_000;
    while peer.record.replies.len() < sizes.len() && clock::monotonic_ns() < deadline {
        while sent < sizes.len() && peer.offer(requester, sizes[sent].0) == SendOutcome::Accepted {
            sent += 1;
        }
        peer.flush(requester);
        peer.linger(1);
        let asked = peer.record.received_requests[answered..].to_vec();
        answered += asked.len();
        for one in asked.iter().rev() {
            let size = sizes[one.header.sequence as usize - 1].1;
            let taken = peer.clients.reply(responder, &answer(one, one.header.sequence, size));
            assert_eq!(taken, SendOutcome::Accepted);
        }
        peer.flush(responder);
        if qos == Qos::BestEffort && sent == sizes.len() {
            break;
        }
    }
    if qos == Qos::BestEffort {
        // Requests in flight arrive, and get a reply.
        peer.linger(100);
        for one in &peer.record.received_requests[answered..].to_vec() {
            assert_eq!(peer.clients.reply(responder, &answer(one, one.header.sequence, 100)), SendOutcome::Accepted);
        }
        peer.flush(responder);
    }
    peer.linger(300);
    let received: HashSet<u32> = peer.record.received_requests.iter().map(|one| one.header.sequence).collect();
    assert_count_eq!(received.len(), peer.record.received_requests.len(), "each is heard once");
    assert_eq!((peer.record.causes(requester), peer.record.causes(responder)), (vec![], vec![]));
    peer.leave(responder, Goodbye::Graceful);
    let answers_written = |event: &Event| matches!(event, Event::Written(id, ..) if *id == responder);
    assert_count_eq!(peer.record.count(answers_written), received.len());
    peer.record.events.retain(|event| !answers_written(event));
    peer
}

fn assert_each_answered_once(peer: &Peer, sizes: &[(u32, u32)]) {
    let mut replies: Vec<_> =
        peer.record.replies.iter().map(|one| (one.request.unwrap().sequence, one.payload_bytes as u32)).collect();
    replies.sort_unstable();
    let expected: Vec<_> = (1..).zip(sizes.iter().map(|(_, answer)| *answer)).collect();
    assert_eq!(replies, expected);
    assert!(peer.record.replies.iter().all(|one| one.intact));
    let record = &peer.record;
    assert_count_eq!((record.written(), record.acknowledged(), record.unanswered()), (sizes.len(), sizes.len(), 0));
}

#[test]
fn every_request_has_one_reply_though_one_datagram_of_ten_is_lost() {
    let sizes = [(100, 100); 400];
    assert_each_answered_once(
        &ask(NetworkConditions { lost: 0.1, ..NetworkConditions::default() }, Qos::AtLeastOnce, &sizes),
        &sizes,
    );
    let large = [(10_000, 24), (100, 20_000), (24, 24), (1_025, 1_025), (3_000, 3_000), (24, 1_024), (1_024, 50_000)];
    assert_each_answered_once(
        &ask(NetworkConditions { lost: 0.1, ..NetworkConditions::default() }, Qos::AtLeastOnce, &large),
        &large,
    );
}

#[test]
fn repeated_or_late_requests_and_replies_are_reported_once() {
    let sizes = [(100, 100); 400];
    let conditions = NetworkConditions { lost: 0.02, doubled: 0.2, overtaken: 0.2 };
    assert_each_answered_once(&ask(conditions, Qos::AtLeastOnce, &sizes), &sizes);
}

#[test]
fn at_best_effort_a_lost_request_or_reply_stays_lost() {
    let sizes = [(100, 100); 300];
    let peer = ask(NetworkConditions { lost: 0.1, ..NetworkConditions::default() }, Qos::BestEffort, &sizes);
    let named: HashSet<_> = peer.record.replies.iter().map(|one| one.request).collect();
    assert_count_eq!(named.len(), peer.record.replies.len(), "once each");
    // Two directions, one of ten lost in each: 81 of 100.
    assert!((190..290).contains(&named.len()), "{} of 300 were answered", named.len());
    assert_count_eq!((peer.record.written(), peer.record.acknowledged()), (300, 0));
}
