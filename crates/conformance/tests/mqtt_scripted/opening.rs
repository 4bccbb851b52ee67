//! CONNECT, SUBSCRIBE, and the end of connections.

use std::sync::Arc;

use pubmark_adapters::mqtt::{Mqtt5, Mqtt311};
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_model::secret::Secret;
use pubmark_model::token::{ClientToken, Reauthentication, TokenAlgorithm, TokenRules};
use pubmark_protocol::clients::{Clients, Goodbye, SendOutcome, SessionConfig, SessionId, Subscription};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_protocol::log_in::SessionToken;
use pubmark_protocol::token::TokenSigner;
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::{Packet, PacketType, Properties, Property, Version};
use rcgen::KeyPair;

use crate::script::{Script, packet};

fn cause_of<C: Clients>(version: Version, answer: impl Fn(&Script) -> Vec<u8>) -> Cause {
    let (mut script, mut peer) = Script::with_peer::<C>(version);
    let id = peer.clients.add_session(session("refused"));
    let answer = answer(&script);
    script.connect_client(&mut peer, id, &answer);
    peer.wait("closed", |record| !record.causes(id).is_empty());
    peer.record.causes(id).remove(0)
}

#[test]
fn refusals_are_distinguished() {
    for (code, login) in [(1, false), (2, false), (3, false), (4, true), (5, true)] {
        let cause = cause_of::<Mqtt311>(Version::V311, |script| script.connack(false, code, &[]));
        assert_eq!(matches!(&cause, Cause::NotAuthorized(reason) if reason.code == Some(code)), login, "{cause:?}");
        assert_eq!(matches!(&cause, Cause::Refused(reason) if reason.code == Some(code)), !login, "{cause:?}");
    }
    for (code, login) in [(0x80, false), (0x86, true), (0x87, true), (0x8a, false), (0x97, false)] {
        let cause = cause_of::<Mqtt5>(Version::V5, |script| script.connack(false, code, &[]));
        assert_eq!(matches!(&cause, Cause::NotAuthorized(reason) if reason.code == Some(code)), login, "{cause:?}");
        assert_eq!(matches!(&cause, Cause::Refused(reason) if reason.code == Some(code)), !login, "{cause:?}");
    }
    // A server that speaks 3.1.1 only.
    let cause = cause_of::<Mqtt5>(Version::V5, |_| packet(0x20, &[0, 1]));
    assert_eq!(cause, Cause::Refused(Reason::code(1, "unacceptable protocol version")));
}

#[test]
fn responses_against_the_rules_end_the_connection() {
    let protocol = |cause: Cause| assert!(matches!(cause, Cause::Protocol(_)), "{cause:?}");
    protocol(cause_of::<Mqtt5>(Version::V5, |script| script.connack(true, 0, &[])));
    protocol(cause_of::<Mqtt5>(Version::V5, |_| packet(0xd0, &[])));
    protocol(cause_of::<Mqtt311>(Version::V311, |_| packet(0x20, &[0, 77])));
    protocol(cause_of::<Mqtt311>(Version::V311, |_| packet(b'H', b"TTP/1.1 400 Bad Request")));
}

/// Tokens of one client, signed with a separate key.
fn tokens(reauthentication: Option<Reauthentication>) -> SessionToken {
    let rules = TokenRules {
        // Signatures of ES256 are random, so equal tokens are the same one.
        algorithm: TokenAlgorithm::Es256,
        key: Secret::new(KeyPair::generate().unwrap().serialize_pem()),
        key_id: None,
        lifetime_s: 60,
        claims: "{}".to_owned(),
        reauthentication: None,
    };
    let claims = r#"{"sub":"pump-7"}"#.to_owned();
    SessionToken {
        client: ClientToken { user: "pump-7".to_owned(), claims, reauthentication },
        signer: Some(Arc::new(TokenSigner::new(&rules).unwrap())),
    }
}

/// A session that renews its token every second on its open connection, and its first token.
fn renewing(script: &mut Script, peer: &mut Peer<Mqtt5>) -> (SessionId, String) {
    let how = Reauthentication { method: "JWT".to_owned(), after_s: 1 };
    let id = peer.clients.add_session(SessionConfig { token: Some(tokens(Some(how))), ..session("pump-7") });
    // Authentication method JWT.
    let welcome = script.connack(false, 0, &[0x15, 0, 3, b'J', b'W', b'T']);
    let token = script.connect_with(peer, id, &welcome, |connect| {
        assert_eq!((connect.user, connect.password), (Some("pump-7"), None), "the token is no password");
        assert_eq!(connect.properties.authentication_method(), Some("JWT"));
        data_of(&connect.properties)
    });
    peer.wait("connected", |record| !record.connects(id).is_empty());
    (id, token)
}

fn data_of(properties: &Properties<'_>) -> String {
    let data = properties.find(|property| match property {
        Property::AuthenticationData(data) => Some(data.to_vec()),
        _ => None,
    });
    String::from_utf8(data.unwrap()).unwrap()
}

#[test]
fn a_token_is_renewed_on_the_open_connection_again_and_again() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let (id, first) = renewing(&mut script, &mut peer);
    let mut seen = vec![first];
    for number in 1..=2 {
        let token = script.expect(&mut peer, PacketType::Auth, |found| {
            let Packet::Auth(auth) = found else { unreachable!() };
            assert_eq!((auth.reason, auth.properties.authentication_method()), (0x19, Some("JWT")));
            data_of(&auth.properties)
        });
        assert!(token.starts_with("eyJ") && !seen.contains(&token), "{token}");
        seen.push(token);
        script.send_bytes(&packet(0xf0, &[]));
        peer.wait("renewed", |record| record.reauthenticated == number);
    }
    assert!(peer.record.causes(id).is_empty(), "{:?}", peer.record.causes(id));
}

#[test]
fn a_new_token_that_is_refused_ends_the_connection_as_its_log_in() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let (id, _) = renewing(&mut script, &mut peer);
    script.expect(&mut peer, PacketType::Auth, |_| ());
    script.send_bytes(&packet(0xe0, &[0x87, 0]));
    peer.wait("closed", |record| !record.causes(id).is_empty());
    assert!(matches!(&peer.record.causes(id)[..], [Cause::NotAuthorized(reason)] if reason.code == Some(0x87)));
    // A server that requests more than a token, and one that sends AUTH without a request.
    for requests in [true, false] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
        let (id, _) = renewing(&mut script, &mut peer);
        if requests {
            script.expect(&mut peer, PacketType::Auth, |_| ());
        }
        script.send_bytes(&packet(0xf0, if requests { &[0x18, 0] } else { &[] }));
        peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(&peer.record.causes(id)[..], [Cause::Protocol(_)]), "{:?}", peer.record.causes(id));
    }
}

#[test]
fn a_token_is_signed_for_each_connection_and_sent_as_the_password() {
    let token = tokens(None);
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = peer.clients.add_session(SessionConfig { token: Some(token), ..session("pump-7") });
    let mut seen: Vec<String> = vec![];
    for _ in 0..2 {
        let refusal = script.connack(false, 0x87, &[]);
        let before = peer.record.causes(id).len();
        let password = script.connect_with(&mut peer, id, &refusal, |connect| {
            assert_eq!(connect.user, Some("pump-7"));
            String::from_utf8(connect.password.unwrap().to_vec()).unwrap()
        });
        peer.wait("closed", |record| record.causes(id).len() > before);
        seen.push(password);
    }
    assert_ne!(seen[0], seen[1]);
    for token in &seen {
        let claims = token.split('.').nth(1).unwrap();
        assert!(token.starts_with("eyJ") && token.split('.').count() == 3, "{token}");
        // `{"sub":"pump-7",` in base64.
        assert!(claims.starts_with("eyJzdWIiOiJwdW1wLTciLC"), "{claims}");
    }
}

#[test]
fn a_connection_that_ends_before_the_response_is_reported() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = peer.clients.add_session(session("hung-up"));
    script.connect_client(&mut peer, id, &[]);
    script.close();
    peer.wait("closed", |record| !record.causes(id).is_empty());
    assert_eq!(peer.record.causes(id), [Cause::Dropped("closed by the server before CONNACK".into())]);
}

#[test]
fn the_servers_limits_hold() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    // Receive maximum 2, maximum packet size 1,000, maximum QoS 1, server keep-alive 1 s.
    let limits = [0x21, 0, 2, 0x27, 0, 0, 3, 0xe8, 0x24, 1, 0x13, 0, 1];
    let id = script.accept(&mut peer, publisher("limits", "topic", Qos::ExactlyOnce), &limits);
    let connected = peer.record.connects(id)[0];
    assert_eq!(connected.receive_maximum, Some(2));
    assert_eq!(connected.maximum_packet_bytes, Some(1_000));
    assert_eq!(connected.maximum_qos, Some(Qos::AtLeastOnce));
    // 1,000 B: fixed header 3, topic 7, packet id 2, property length 1, payload 987.
    assert_eq!(peer.offer(id, 988), SendOutcome::TooLarge(1_000));
    assert_eq!(peer.offer(id, 987), SendOutcome::Accepted);
    assert_eq!(peer.offer(id, 100), SendOutcome::Accepted);
    assert_eq!(peer.offer(id, 100), SendOutcome::WouldBlock);
    peer.flush(id);
    for _ in 0..2 {
        script.expect(&mut peer, PacketType::Publish, |found| {
            let Packet::Publish(publish) = found else { unreachable!() };
            assert_eq!((publish.head.qos, publish.head.dup), (Qos::AtLeastOnce, false));
        });
    }
    script.expect(&mut peer, PacketType::Pingreq, |_| ());
}

#[test]
fn a_level_of_the_server_that_is_high_enough_is_no_news() {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = script.accept(&mut peer, publisher("level", "topic", Qos::AtLeastOnce), &[0x24, 1]);
    assert_eq!(peer.record.connects(id)[0].maximum_qos, None);
}

#[test]
fn many_subscriptions_are_requested_in_parts_and_matched_by_number() {
    const COUNT: usize = 200;
    let (mut script, mut peer) = Script::with_peer::<Mqtt311>(Version::V311);
    let subscriptions = (0..COUNT)
        .map(|index| Subscription { filter: format!("filter/{index}").into(), qos: Qos::ExactlyOnce })
        .collect();
    let id = script.accept(&mut peer, SessionConfig { subscriptions, ..session("many") }, &[]);
    let mut requests = 0;
    while requests < COUNT {
        let (packet_id, count) = script.expect(&mut peer, PacketType::Subscribe, |found| {
            let Packet::Subscribe(subscribe) = found else { unreachable!() };
            for (offset, request) in subscribe.filters.iter().enumerate() {
                assert_eq!(request.filter, format!("filter/{}", requests + offset));
            }
            (subscribe.packet_id, subscribe.filters.iter().count())
        });
        // Every third is refused, the others are granted at QoS 1.
        let codes = (requests..requests + count).map(|index| if index % 3 == 0 { 0x80 } else { 1 });
        let body: Vec<u8> = packet_id.to_be_bytes().into_iter().chain(codes).collect();
        script.send_bytes(&packet(0x90, &body));
        requests += count;
    }
    peer.wait("all answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == COUNT);
    let replies = peer.record.all(|event| match event {
        Event::Subscribed(_, index, granted) => Some((*index, granted.clone())),
        _ => None,
    });
    for (position, (index, granted)) in replies.into_iter().enumerate() {
        let expected = if index % 3 == 0 { Err(Reason::code(0x80, "failure")) } else { Ok(Qos::AtLeastOnce) };
        assert_eq!((index, granted), (position, expected));
    }
    assert!(peer.record.causes(id).is_empty());
}

#[test]
fn a_suback_for_other_filters_ends_the_connection() {
    for body in [&[0xff, 0xff, 0, 0][..], &[0xff, 0xfe, 0], &[0, 1, 0]] {
        let (mut script, mut peer) = Script::with_peer::<Mqtt311>(Version::V311);
        let id = script.accept(&mut peer, subscriber("suback", "topic", Qos::BestEffort), &[]);
        script.expect(&mut peer, PacketType::Subscribe, |_| ());
        script.send_bytes(&packet(0x90, body));
        peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(peer.record.causes(id)[..], [Cause::Protocol(_)]));
    }
}

fn goodbye_of(goodbye: Goodbye) -> (Vec<u8>, Peer<Mqtt5>) {
    let (mut script, mut peer) = Script::with_peer::<Mqtt5>(Version::V5);
    let id = script.accept(&mut peer, publisher("goodbye", "topic", Qos::BestEffort), &[]);
    assert_eq!(peer.offer(id, 16), SendOutcome::Accepted);
    peer.leave(id, goodbye);
    peer.leave(id, goodbye);
    assert_eq!(peer.record.causes(id), [Cause::Ours]);
    (script.rest(), peer)
}

#[test]
fn a_graceful_end_sends_a_close_and_a_cut_does_not() {
    let (bytes, peer) = goodbye_of(Goodbye::Graceful);
    assert!(bytes.len() > 16 && bytes.ends_with(&[0xe0, 0]), "{bytes:?}");
    assert_count_eq!(peer.record.written(), 1);
    let (bytes, peer) = goodbye_of(Goodbye::Cut);
    assert!(bytes.is_empty(), "{bytes:?}");
    assert_count_eq!(peer.record.count(|event| matches!(event, Event::Abandoned(..))), 1);
    assert_count_eq!(peer.record.written(), 0);
}

#[test]
fn sessions_connect_from_their_addresses_in_turn() {
    let sources = [[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
    let (script, mut peer) = Script::with_peer_from::<Mqtt5>(Version::V5, &sources);
    let mut seen = Vec::new();
    for number in 0..4 {
        let mut script = script.another();
        script.accept(&mut peer, session(&format!("source-{number}")), &[]);
        seen.push(script.client());
    }
    assert_eq!(seen, [sources, sources].concat());
}

#[test]
fn an_address_that_is_not_ours_is_unreachable() {
    // 192.0.2.0/24 is for documentation (RFC 5737) and unused.
    let (_script, mut peer) = Script::with_peer_from::<Mqtt5>(Version::V5, &[[192, 0, 2, 1].into()]);
    let cause = peer.fail_to_connect(session("stranger"));
    assert!(matches!(&cause, Cause::Unreachable(words) if words.contains("assign requested address")), "{cause:?}");
}
