//! UNSUBSCRIBE, and servers that answer it wrongly.

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::{Peer, session};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SessionConfig, SessionId, Subscription};
use pubmark_protocol::events::{Cause, Said};
use pubmark_wire::mqtt::{Packet, PacketType, Suback, Unsuback, Version, encode_suback, encode_unsuback};

use crate::script::{NONE, Script};

/// Answers a SUBSCRIBE; what it asked for.
fn grant<C: Clients>(script: &mut Script, peer: &mut Peer<C>) -> (u16, Vec<String>) {
    let (packet_id, filters) = script.expect(peer, PacketType::Subscribe, |found| {
        let Packet::Subscribe(subscribe) = found else { unreachable!() };
        (subscribe.packet_id, subscribe.filters.iter().map(|asked| asked.filter.to_owned()).collect::<Vec<_>>())
    });
    let mut suback = Vec::new();
    let codes = vec![0; filters.len()];
    encode_suback(script.version, &Suback { packet_id, properties: NONE, codes: &codes }, &mut suback).unwrap();
    script.say(&suback);
    (packet_id, filters)
}

fn config(filters: &[&str]) -> SessionConfig {
    let subscription = |filter: &&str| Subscription { filter: (*filter).into(), qos: Qos::BestEffort };
    SessionConfig { subscriptions: filters.iter().map(subscription).collect(), ..session("ends") }
}

/// A session with granted subscriptions to these filters.
fn subscribed<C: Clients>(version: Version, filters: &[&str]) -> (Script, Peer<C>, SessionId, u16) {
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let id = script.accept(&mut peer, config(filters), &[]);
    let (packet_id, asked) = grant(&mut script, &mut peer);
    assert_eq!(asked, filters);
    peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == filters.len());
    (script, peer, id, packet_id)
}

/// The identifier and the filters of the next UNSUBSCRIBE.
fn asked<C: Clients>(script: &mut Script, peer: &mut Peer<C>) -> (u16, Vec<String>) {
    script.expect(peer, PacketType::Unsubscribe, |found| {
        let Packet::Unsubscribe(unsubscribe) = found else { unreachable!() };
        (unsubscribe.packet_id, unsubscribe.filters.iter().map(str::to_owned).collect())
    })
}

fn unsuback(version: Version, packet_id: u16, codes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_unsuback(version, &Unsuback { packet_id, properties: NONE, codes }, &mut out).unwrap();
    out
}

fn outcomes<C: Clients>(peer: &Peer<C>) -> Vec<(usize, Result<(), Said>)> {
    peer.record.all(|event| match event {
        Event::Unsubscribed(_, index, outcome) => Some((*index, outcome.clone())),
        _ => None,
    })
}

fn ended<C: Clients>(peer: &mut Peer<C>, count: usize) {
    peer.wait("ended", |record| record.count(|event| matches!(event, Event::Unsubscribed(..))) == count);
}

fn ends_one_at_a_time<C: Clients>(version: Version, success: &[u8]) {
    let (mut script, mut peer, id, subscribe_id) = subscribed::<C>(version, &["a", "b/#", "c", "a"]);
    for index in [0, 2, 1] {
        peer.clients.unsubscribe(id, index, &mut peer.record);
    }
    // The server has one subscription for both that ask for `a`.
    assert_eq!(outcomes(&peer), [(0, Ok(()))]);
    let (first, filters) = asked(&mut script, &mut peer);
    assert!(first != subscribe_id && filters == ["c"], "{first} {filters:?}");
    peer.linger(20);
    script.read();
    assert_eq!(script.received(), b"", "the second one waits for the answer to the first");
    script.say(&unsuback(version, first, success));
    let (second, filters) = asked(&mut script, &mut peer);
    assert_eq!(filters, ["b/#"]);
    script.say(&unsuback(version, second, success));
    ended(&mut peer, 3);
    assert_eq!(outcomes(&peer)[1..], [(2, Ok(())), (1, Ok(()))]);
    // On the next connection the one that is left is asked for, and answered by its place in the list.
    script.close();
    peer.wait("closed", |record| !record.causes(id).is_empty());
    let answer = script.connack(false, 0, &[]);
    script.meet(&mut peer, id, &answer);
    assert_eq!(grant(&mut script, &mut peer).1, ["a"]);
    peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 5);
    assert!(matches!(peer.record.events.last(), Some(Event::Subscribed(_, 3, Ok(_)))));
}

#[test]
fn subscriptions_end_one_at_a_time_and_do_not_come_back() {
    ends_one_at_a_time::<Mqtt311>(Version::V311, &[]);
    ends_one_at_a_time::<Mqtt5>(Version::V5, &[0]);
    // No subscription existed.
    ends_one_at_a_time::<Mqtt5>(Version::V5, &[0x11]);
}

#[test]
fn a_refusal_is_told_and_the_subscription_stays() {
    let (mut script, mut peer, id, _) = subscribed::<Mqtt5>(Version::V5, &["a"]);
    for round in 1..=2 {
        peer.clients.unsubscribe(id, 0, &mut peer.record);
        let (packet_id, _) = asked(&mut script, &mut peer);
        script.say(&unsuback(Version::V5, packet_id, &[0x87]));
        ended(&mut peer, round);
    }
    assert_eq!(outcomes(&peer)[1], (0, Err(Said::code(0x87, "not authorized"))));
    assert_eq!(peer.record.causes(id), []);
}

fn breaks_off<C: Clients>(version: Version, asks: bool, answer: impl Fn(u16) -> Vec<u8>, words: &str) {
    let (mut script, mut peer, id, subscribe_id) = subscribed::<C>(version, &["a", "b"]);
    let mut packet_id = subscribe_id;
    if asks {
        peer.clients.unsubscribe(id, 0, &mut peer.record);
        packet_id = asked(&mut script, &mut peer).0;
    }
    script.say(&answer(packet_id));
    peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Protocol(why)] if why.contains(words)), "{causes:?}");
    assert_eq!(outcomes(&peer), []);
}

#[test]
fn answers_that_answer_nothing_end_the_connection() {
    let to = |version, offset: u16, codes: &'static [u8]| move |id: u16| unsuback(version, id - offset, codes);
    breaks_off::<Mqtt311>(Version::V311, true, to(Version::V311, 1, &[]), "which answers nothing");
    breaks_off::<Mqtt5>(Version::V5, true, to(Version::V5, 1, &[0]), "which answers nothing");
    breaks_off::<Mqtt5>(Version::V5, false, to(Version::V5, 0, &[0]), "which answers nothing");
    breaks_off::<Mqtt5>(Version::V5, false, to(Version::V5, 1, &[0]), "which answers nothing");
    breaks_off::<Mqtt5>(Version::V5, true, to(Version::V5, 0, &[0, 0]), "has 2 codes, not 1");
    // The same once more.
    let twice = |id| [unsuback(Version::V5, id, &[0]), unsuback(Version::V5, id, &[0])].concat();
    let (mut script, mut peer, id, _) = subscribed::<Mqtt5>(Version::V5, &["a", "b"]);
    peer.clients.unsubscribe(id, 1, &mut peer.record);
    let (packet_id, _) = asked(&mut script, &mut peer);
    script.say(&twice(packet_id));
    peer.wait("closed", |record| !record.causes(id).is_empty());
    assert_eq!(outcomes(&peer), [(1, Ok(()))]);
}

#[test]
fn a_connection_that_ends_before_the_answer_has_no_event_and_a_kept_session_is_asked_again() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = script.accept(&mut peer, SessionConfig { persistent: true, ..config(&["a", "b"]) }, &[]);
    peer.clients.unsubscribe(id, 0, &mut peer.record);
    assert!(matches!(outcomes(&peer)[..], [(0, Err(_))]), "it was not granted yet");
    grant(&mut script, &mut peer);
    peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 2);
    peer.clients.unsubscribe(id, 0, &mut peer.record);
    asked(&mut script, &mut peer);
    script.close();
    peer.wait("closed", |record| !record.causes(id).is_empty());
    assert_eq!(outcomes(&peer).len(), 1);
    peer.clients.unsubscribe(id, 0, &mut peer.record);
    assert!(matches!(outcomes(&peer)[..], [_, (0, Err(_))]), "the server may have it, and cannot be asked");
    let answer = script.connack(true, 0, &[]);
    script.meet(&mut peer, id, &answer);
    peer.wait("connected", |record| record.connects(id).len() == 2);
    peer.clients.unsubscribe(id, 0, &mut peer.record);
    let (packet_id, filters) = asked(&mut script, &mut peer);
    assert_eq!(filters, ["a"]);
    script.say(&unsuback(Version::V5, packet_id, &[0]));
    ended(&mut peer, 3);
    assert_eq!(outcomes(&peer)[2], (0, Ok(())));
}

#[test]
fn many_filters_in_several_packets_keep_their_places() {
    let names: Vec<String> = (0..130).map(|number| format!("t/{number}")).collect();
    let filters: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = script.accept(&mut peer, config(&filters), &[]);
    let ids: Vec<u16> = (0..3).map(|_| grant(&mut script, &mut peer).0).collect();
    peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 130);
    // The second packet's, all of them, and one of the first's.
    let gone: Vec<usize> = (64..128).chain([3]).collect();
    for index in &gone {
        peer.clients.unsubscribe(id, *index, &mut peer.record);
        let (packet_id, filter) = asked(&mut script, &mut peer);
        assert!(!ids.contains(&packet_id) && filter == [names[*index].as_str()]);
        script.say(&unsuback(Version::V5, packet_id, &[0]));
    }
    ended(&mut peer, gone.len());
    script.close();
    peer.wait("closed", |record| !record.causes(id).is_empty());
    let answer = script.connack(false, 0, &[]);
    script.meet(&mut peer, id, &answer);
    let again: Vec<String> = (0..2).flat_map(|_| grant(&mut script, &mut peer).1).collect();
    assert_eq!((again.len(), again[3].as_str(), again[63].as_str()), (65, "t/4", "t/128"));
    peer.wait("granted", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 195);
    let last = peer.record.all(|event| if let Event::Subscribed(_, index, _) = event { Some(*index) } else { None });
    assert_eq!(last[130..], (0..130).filter(|index| !gone.contains(index)).collect::<Vec<_>>());
    // All are answered: one more can be ended.
    peer.clients.unsubscribe(id, 129, &mut peer.record);
    assert_eq!(asked(&mut script, &mut peer).1, ["t/129"]);
}
