//! Messages arrive: every size, level, filter; the in-flight window is respected.

use pubmark_model::payload::HeaderPlace;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Publication, SendOutcome, SessionConfig, SessionId};
use pubmark_testing::{assert_count, assert_count_eq};

use super::Target;
use crate::peer::{Peer, publisher, session, subscriber};
use crate::recorder::{Event, Recorder};

/// Smallest header, both sides of its change, both sides of the read buffer's size, a lidar scan, the largest.
const SIZES: [u32; 10] = [16, 23, 24, 25, 1_000, 65_000, 65_536, 70_000, 1_200_000, 2_000_000];

/// The first N of [`SIZES`] fit into any receive buffer at once.
const SURE_SIZES: usize = 8;

pub fn every_size_at_every_level(target: &mut Target) {
    for qos in target.capabilities.qos() {
        let mut peer = target.peer();
        let receiver = peer.join(subscriber("sizes-in", "sizes", qos));
        let sender = peer.join(publisher("sizes-out", "sizes", qos));
        // Datagrams are not retransmitted: the first may be sent too early, and a thousand at once are too many.
        let unsure = qos == Qos::BestEffort && target.server.discovers_late();
        if unsure {
            peer.discover(sender);
        }
        let most = target.capabilities.maximum_payload_bytes;
        let sizes = if unsure { &SIZES[..SURE_SIZES] } else { &SIZES };
        let sizes: Vec<u32> = sizes.iter().copied().filter(|size| *size <= most).collect();
        sizes.iter().for_each(|size| peer.send(sender, *size));
        peer.wait("all sizes", |record| record.arrived.len() == sizes.len());
        if qos != Qos::BestEffort {
            peer.wait("all acknowledged", |record| record.acknowledged() == sizes.len());
        }
        let arrived: Vec<u32> = peer.record.arrived.iter().map(|one| one.payload_bytes as u32).collect();
        assert_count_eq!(arrived, sizes, "{qos:?}");
        assert_count!(peer.record.arrived.iter().all(|one| one.intact && !one.retained && one.header.publisher == 7));
        assert_count_eq!(peer.record.sequences(receiver), (1..=sizes.len() as u32).collect::<Vec<_>>());
        // A client library that sends by itself may report the write after the message has arrived.
        peer.wait("all written", |record| record.written() == sizes.len());
        assert_granted(&peer.record, receiver, qos);
        peer.linger(50);
        assert_count_eq!((peer.record.arrived.len(), peer.record.foreign), (sizes.len(), 0), "no copies at {qos:?}");
        peer.wait_sent();
    }
}

pub fn a_header_beside_the_payload(target: &mut Target) {
    if target.capabilities.features.properties.is_none() {
        return pubmark_testing::skip(format_args!("messages of {} have no properties", target.capabilities.name));
    }
    // Payloads too small for a header, and a payload in one packet or frame and in several.
    const SIZES: [u32; 5] = [1, 15, 24, 1_000, 300_000];
    for qos in target.capabilities.qos() {
        let mut peer = target.peer();
        let receiver = peer.join(subscriber("beside-in", "beside", qos));
        let mut config = publisher("beside-out", "beside", qos);
        config.publications[0].header = HeaderPlace::UserProperty;
        config.publications[0].properties =
            [("site".to_owned(), "hall 3".to_owned()), ("empty".to_owned(), String::new())].into();
        let sender = peer.join(config);
        SIZES.iter().for_each(|size| peer.send(sender, *size));
        peer.wait("all sizes", |record| record.arrived.len() == SIZES.len());
        target.settle_at(&mut peer, qos, SIZES.len());
        let arrived: Vec<u32> = peer.record.arrived.iter().map(|one| one.payload_bytes as u32).collect();
        assert_count_eq!(arrived, SIZES, "{qos:?}");
        assert_count_eq!(peer.record.sequences(receiver), (1..=SIZES.len() as u32).collect::<Vec<_>>());
        for one in &peer.record.arrived {
            assert!(one.intact && one.header.publisher == 7, "{one:?}");
            let written_us = one.header.write_start_us.expect("a full header");
            let arrived_us = one.at_ns.saturating_sub(one.header.due_ns) / 1_000;
            assert!(u64::from(written_us) <= arrived_us, "{one:?}");
        }
        assert_count_eq!(peer.record.foreign, 0, "{qos:?}");
    }
}

/// Smaller than the smallest header, down to an empty payload.
const BARE_SIZES: [u32; 4] = [15, 1, 0, 2];

pub fn bare_payloads(target: &mut Target) {
    for qos in target.capabilities.qos() {
        let mut peer = target.peer();
        peer.join(subscriber("bare-in", "bare", qos));
        let sender = peer.join(publisher("bare-out", "bare", qos));
        if qos == Qos::BestEffort && target.server.discovers_late() {
            peer.discover(sender);
        }
        for size in BARE_SIZES {
            peer.send(sender, size);
        }
        peer.wait("all sizes", |record| record.bare.len() == BARE_SIZES.len());
        target.settle_at(&mut peer, qos, BARE_SIZES.len());
        assert_eq!(peer.record.bare, BARE_SIZES.map(|size| size as usize), "{qos:?}");
        assert_count_eq!((peer.record.arrived.len(), peer.record.foreign), (0, BARE_SIZES.len()));
    }
}

fn assert_granted(record: &Recorder, session: SessionId, qos: Qos) {
    assert_count_eq!(record.count(|event| *event == Event::Subscribed(session, 0, Ok(qos))), 1);
}

pub fn a_flood_in_order(target: &mut Target) {
    const COUNT: u32 = 20_000;
    for qos in target.capabilities.qos() {
        if qos == Qos::BestEffort && target.server.may_lose() {
            pubmark_testing::skip(format_args!(
                "{} at best effort loses what finds no room in a socket",
                target.capabilities.name
            ));
            continue;
        }
        let count = if qos == Qos::BestEffort { COUNT } else { COUNT / 10 };
        let mut peer = target.peer();
        let receiver = peer.join(subscriber("flood-in", "flood", qos));
        let sender = peer.join(publisher("flood-out", "flood", qos));
        peer.send(sender, 1_000);
        let mut sent = 1;
        while sent < count {
            let before = peer.record.count(|event| *event == Event::Writable(sender));
            while sent < count && peer.offer(sender, 1_000) == SendOutcome::Accepted {
                sent += 1;
            }
            peer.flush(sender);
            if sent < count {
                peer.wait("room", |record| record.count(|event| *event == Event::Writable(sender)) > before);
            }
        }
        peer.wait("the flood", |record| record.arrived.len() == count as usize);
        assert_count_eq!(peer.record.sequences(receiver), (1..=count).collect::<Vec<_>>(), "{qos:?}");
        assert_count!(peer.record.arrived.iter().all(|one| one.intact));
        assert_count_eq!(peer.record.written(), count as usize);
    }
}

pub fn filters_choose(target: &mut Target) {
    if !target.capabilities.wildcards {
        return pubmark_testing::skip(format_args!("{} has no wildcards", target.capabilities.name));
    }
    let topics = ["f/a", "f/a/x", "f/b/x", "f/b/x/y", "g/a"];
    let can_be_said = |filter: &&str| target.capabilities.check_topic.is_none_or(|check| check(filter).is_ok());
    let filters: Vec<&str> = ["f/a", "f/+", "f/#", "f/+/x", "+/a", "f/b/x/+"].into_iter().filter(can_be_said).collect();
    let mut peer = target.peer();
    let level = target.first_sure_level();
    let join = |peer: &mut Peer, filter: &str| peer.join(subscriber(&format!("filter {filter}"), filter, level));
    let hearers: Vec<SessionId> = filters.iter().map(|filter| join(&mut peer, filter)).collect();
    let publication = |topic: &&str| Publication {
        publisher: 7,
        topic: (*topic).into(),
        qos: level,
        retain: false,
        body: None,
        header: HeaderPlace::Payload,
        properties: [].into(),
    };
    let sender = peer.join(pubmark_protocol::clients::SessionConfig {
        publications: topics.iter().map(publication).collect(),
        ..session("filter-out")
    });
    for index in 0..topics.len() {
        peer.send_to(sender, index as u16, 16);
    }
    let expected = filters.iter().map(|filter| {
        let matches = |(index, topic): (usize, &&str)| {
            target.capabilities.filter_matches(filter, topic).then_some(index as u32 + 1)
        };
        topics.iter().enumerate().filter_map(matches).collect::<Vec<_>>()
    });
    let expected: Vec<Vec<u32>> = expected.collect();
    let total: usize = expected.iter().map(Vec::len).sum();
    peer.wait("all matches", |record| record.arrived.len() >= total);
    peer.linger(50);
    for (hearer, expected) in hearers.iter().zip(expected) {
        assert_count_eq!(peer.record.sequences(*hearer), expected);
    }
}

pub fn retained_is_marked(target: &mut Target) {
    if !target.capabilities.retain {
        return pubmark_testing::skip(format_args!("{} keeps no messages", target.capabilities.name));
    }
    let mut peer = target.peer();
    let topic = format!("retained/{}", target.endpoint().address.port());
    let present = peer.join(subscriber("retained-present", &topic, Qos::AtLeastOnce));
    let mut config = publisher("retained-out", &topic, Qos::AtLeastOnce);
    config.publications[0].retain = true;
    let sender = peer.join(config);
    peer.send(sender, 100);
    peer.wait("the live copy", |record| record.arrived.len() == 1 && record.acknowledged() == 1);
    let later = peer.join(subscriber("retained-later", &topic, Qos::AtLeastOnce));
    peer.wait("the replay", |record| record.arrived.len() == 2);
    let marks: Vec<_> = peer.record.arrived.iter().map(|one| (one.session, one.retained)).collect();
    assert_eq!(marks, [(present, false), (later, true)]);
}

pub fn a_silent_subscription(target: &mut Target) {
    // Less than a server waits for something to arrive, and more than a busy machine needs.
    const WITHIN_NS: u64 = 2_000_000_000;
    let features = &target.capabilities.features;
    if features.two_ports || features.subscribers_listen || features.only_requests {
        let name = target.capabilities.name;
        return pubmark_testing::skip(format_args!("sessions of {name} do not publish and subscribe"));
    }
    let qos = target.first_sure_level();
    let mut peer = target.peer();
    peer.join(subscriber("silent-in", "heard", qos));
    let subscriptions = subscriber("silent-out", "silent", qos).subscriptions;
    let sender = peer.join(SessionConfig { subscriptions, ..publisher("silent-out", "heard", qos) });
    // Its subscription waits at the server then.
    peer.linger(200);
    peer.send(sender, 100);
    peer.wait("its arrival", |record| !record.arrived.is_empty());
    let arrived = &peer.record.arrived[0];
    let took_ns = arrived.at_ns.saturating_sub(arrived.header.due_ns);
    assert!(took_ns < WITHIN_NS, "it took {} ms", took_ns / 1_000_000);
}

pub fn the_window_is_respected(target: &mut Target) {
    const WINDOW: u16 = 3;
    if target.has_no_acknowledgements() {
        return;
    }
    for qos in target.capabilities.qos().filter(|qos| *qos != Qos::BestEffort) {
        let mut peer = target.peer();
        let mut config = publisher("window-out", "window", qos);
        config.in_flight_window = WINDOW;
        let sender = peer.join(config);
        for round in 1..=5 {
            let mut taken = 0;
            while peer.offer(sender, 16) == SendOutcome::Accepted {
                taken += 1;
            }
            assert_count_eq!(taken, WINDOW, "{qos:?}");
            peer.flush(sender);
            let all = usize::from(WINDOW) * round;
            // Writable is reported with the first free slot of the window; the window is empty when a poll finds nothing more to do.
            peer.wait("acknowledged", |record| record.acknowledged() == all);
            peer.wait("writable", |record| record.count(|event| *event == Event::Writable(sender)) >= round);
            peer.linger(20);
        }
        assert_count_eq!(peer.record.written(), 5 * usize::from(WINDOW));
    }
    let mut peer = target.peer();
    let mut config = publisher("window-wide", "window", Qos::AtLeastOnce);
    // So many that all of them together have fewer bytes than the limit of bytes that wait for a socket.
    config.in_flight_window = 500;
    let sender = peer.join(config);
    let allowed = peer.record.connects(sender)[0].receive_maximum.unwrap_or(u16::MAX).min(500);
    let taken = (0..2_000).take_while(|_| peer.offer(sender, 16) == SendOutcome::Accepted).count();
    assert_count_eq!(taken, usize::from(allowed), "what the server allows counts too");
}
