//! Tokens as passwords and as data of an authentication method (MQTT 5.0 §4.12).

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use proptest::prelude::*;
use pubmark_broker::{TOKEN_METHOD, TokenKey};
use pubmark_testing::assert_count_eq;
use pubmark_wire::mqtt::*;
use ring::hmac;

use crate::client::{Client, connect_packet};
use crate::server::Server;

const SECRET: &[u8] = b"a secret of 32 bytes and one or more";

fn server() -> Server {
    Server::with(|settings| settings.tokens = TokenKey::new(SECRET))
}

/// A token that expires after this number of seconds.
fn token(secret: &[u8], lifetime_s: f64) -> Vec<u8> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let encode = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
    let signed = format!("{}.{}", encode(r#"{"alg":"HS256"}"#), encode(&format!("{{\"exp\":{}}}", now_s + lifetime_s)));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref())).into_bytes()
}

fn good() -> Vec<u8> {
    token(SECRET, 60.0)
}

/// Properties of CONNECT and AUTH.
fn step<'a>(method: &'a str, data: Option<&'a [u8]>) -> Vec<Property<'a>> {
    let method = Property::AuthenticationMethod(method);
    [Some(method), data.map(Property::AuthenticationData)].into_iter().flatten().collect()
}

fn send_auth(client: &mut Client, reason: u8, properties: &[Property<'_>]) {
    client.send(&Packet::Auth(Auth { reason, properties: Properties::new(properties) }));
}

/// Expects AUTH with this code, and the method in it.
fn expect_auth(client: &mut Client, reason: u8) {
    client.expect(|packet| match packet {
        Packet::Auth(auth) => {
            assert_eq!((auth.reason, auth.properties.authentication_method()), (reason, Some(TOKEN_METHOD)));
        }
        other => panic!("{other:?} for AUTH"),
    });
}

/// Sends CONNECT and returns the code of its CONNACK, which names the method if the client did and was accepted.
fn connect(server: &Server, connect: &Connect<'_>) -> (Client, u8) {
    let mut client = Client::open(server.address, connect.version);
    client.send(&Packet::Connect(*connect));
    let code = expect_connack(&mut client, connect.properties.authentication_method());
    (client, code)
}

fn expect_connack(client: &mut Client, method: Option<&str>) -> u8 {
    client.expect(|packet| match packet {
        Packet::Connack(connack) => {
            let expected = method.filter(|_| connack.code == 0);
            assert_eq!(connack.properties.authentication_method(), expected);
            connack.code
        }
        other => panic!("{other:?} for CONNACK"),
    })
}

fn connect_by_method(server: &Server, method: &str, data: &[u8]) -> (Client, u8) {
    let properties = step(method, Some(data));
    connect(server, &Connect { properties: Properties::new(&properties), ..connect_packet(Version::V5, "c") })
}

#[test]
fn a_token_is_taken_by_its_method_or_as_a_password_and_nothing_else_is() {
    let server = server();
    let (mut client, code) = connect_by_method(&server, TOKEN_METHOD, &good());
    assert_eq!(code, 0);
    client.expect_silence();
    for wrong in [&token(b"another secret of 32 bytes and more", 60.0)[..], &token(SECRET, -1.0), b"", b"a.b.c"] {
        assert_eq!(connect_by_method(&server, TOKEN_METHOD, wrong).1, reason::NOT_AUTHORIZED);
    }
    assert_eq!(connect_by_method(&server, "SCRAM-SHA-1", &good()).1, reason::BAD_AUTHENTICATION_METHOD);
    let token = good();
    for (version, refused) in [(Version::V5, reason::BAD_USER_NAME_OR_PASSWORD), (Version::V311, 4)] {
        let with = |password| Connect { user: Some("u"), password, ..connect_packet(version, "d") };
        assert_eq!(connect(&server, &with(Some(&token))).1, 0);
        assert_eq!(connect(&server, &with(Some(&token[1..]))).1, refused);
        assert_eq!(connect(&server, &with(None)).1, refused);
    }
    assert_count_eq!(server.finish().refused, 9);
}

#[test]
fn a_broker_without_tokens_knows_no_method() {
    let server = Server::start();
    assert_eq!(connect_by_method(&server, TOKEN_METHOD, &good()).1, reason::BAD_AUTHENTICATION_METHOD);
    let mut client = Client::simple(server.address, Version::V5, "c");
    send_auth(&mut client, reason::RE_AUTHENTICATE, &step(TOKEN_METHOD, Some(&good())));
    assert_eq!(client.expect_end(), Some(reason::PROTOCOL_ERROR));
}

#[test]
fn a_client_that_names_only_the_method_is_challenged_for_its_token() {
    let server = server();
    let properties = step(TOKEN_METHOD, None);
    let open = || {
        let mut client = Client::open(server.address, Version::V5);
        let properties = Properties::new(&properties);
        client.send(&Packet::Connect(Connect { properties, ..connect_packet(Version::V5, "asked") }));
        expect_auth(&mut client, reason::CONTINUE_AUTHENTICATION);
        client
    };
    let mut client = open();
    send_auth(&mut client, reason::CONTINUE_AUTHENTICATION, &step(TOKEN_METHOD, Some(&good())));
    assert_eq!(expect_connack(&mut client, Some(TOKEN_METHOD)), 0);
    client.expect_silence();
    // A step that is not allowed: its code in a CONNACK, and the end.
    let expired = token(SECRET, -1.0);
    for (code, properties, refused) in [
        (reason::CONTINUE_AUTHENTICATION, step(TOKEN_METHOD, Some(&expired)), reason::NOT_AUTHORIZED),
        (reason::CONTINUE_AUTHENTICATION, step(TOKEN_METHOD, None), reason::NOT_AUTHORIZED),
        (reason::CONTINUE_AUTHENTICATION, step("other", Some(&expired)), reason::BAD_AUTHENTICATION_METHOD),
        (reason::RE_AUTHENTICATE, step(TOKEN_METHOD, Some(&expired)), reason::PROTOCOL_ERROR),
        (reason::SUCCESS, vec![], reason::PROTOCOL_ERROR),
    ] {
        let mut client = open();
        send_auth(&mut client, code, &properties);
        assert_eq!(expect_connack(&mut client, None), refused);
        client.expect_end();
    }
    // Nothing but AUTH and DISCONNECT may follow (MQTT 5.0 §4.12).
    let mut client = open();
    client.send(&Packet::Pingreq);
    assert_eq!(expect_connack(&mut client, None), reason::PROTOCOL_ERROR);
    // A CONNECT that is stored is short.
    let long = "x".repeat(65_535);
    let properties = [Property::AuthenticationMethod(TOKEN_METHOD), Property::UserProperty("k", &long)];
    let packet = Connect { properties: Properties::new(&properties), ..connect_packet(Version::V5, "long") };
    assert_eq!(connect(&server, &packet).1, reason::PACKET_TOO_LARGE);
}

#[test]
fn a_connection_ends_with_its_token_unless_a_new_one_came() {
    let server = server();
    let began = Instant::now();
    let (mut renewed, _) = connect_by_method(&server, TOKEN_METHOD, &token(SECRET, 1.0));
    let short = token(SECRET, 1.0);
    let packet = Connect { user: Some(""), password: Some(&short), ..connect_packet(Version::V5, "by-password") };
    let (mut ended, _) = connect(&server, &packet);
    send_auth(&mut renewed, reason::RE_AUTHENTICATE, &step(TOKEN_METHOD, Some(&good())));
    expect_auth(&mut renewed, reason::SUCCESS);
    assert_eq!(ended.expect_end(), Some(reason::NOT_AUTHORIZED));
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
    renewed.expect_silence();
    let statistics = server.finish();
    assert_count_eq!((statistics.tokens_renewed, statistics.tokens_expired), (1, 1));
}

#[test]
fn a_new_token_that_is_wrong_or_against_the_rules_ends_the_connection() {
    let server = server();
    let again = good();
    for (code, properties, expected) in [
        (reason::RE_AUTHENTICATE, step(TOKEN_METHOD, Some(b"no token")), reason::NOT_AUTHORIZED),
        (reason::RE_AUTHENTICATE, step("other", Some(&again)), reason::BAD_AUTHENTICATION_METHOD),
        (reason::RE_AUTHENTICATE, vec![], reason::PROTOCOL_ERROR),
        (reason::CONTINUE_AUTHENTICATION, step(TOKEN_METHOD, Some(&again)), reason::PROTOCOL_ERROR),
        (reason::SUCCESS, step(TOKEN_METHOD, Some(&again)), reason::PROTOCOL_ERROR),
    ] {
        let (mut client, _) = connect_by_method(&server, TOKEN_METHOD, &again);
        send_auth(&mut client, code, &properties);
        assert_eq!(client.expect_end(), Some(expected), "{code:#x} {properties:?}");
    }
    // Announced without a token, asked for it, sent.
    let (mut client, _) = connect_by_method(&server, TOKEN_METHOD, &again);
    for _ in 0..2 {
        send_auth(&mut client, reason::RE_AUTHENTICATE, &step(TOKEN_METHOD, None));
        expect_auth(&mut client, reason::CONTINUE_AUTHENTICATION);
        send_auth(&mut client, reason::CONTINUE_AUTHENTICATION, &step(TOKEN_METHOD, Some(&again)));
        expect_auth(&mut client, reason::SUCCESS);
    }
    client.expect_silence();
    // A client that logged in by its password has agreed on no method.
    let packet = Connect { user: Some(""), password: Some(&again), ..connect_packet(Version::V5, "by-password") };
    let (mut client, _) = connect(&server, &packet);
    send_auth(&mut client, reason::RE_AUTHENTICATE, &step(TOKEN_METHOD, Some(&again)));
    assert_eq!(client.expect_end(), Some(reason::PROTOCOL_ERROR));
}

/// Parts of what a hostile client sends.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![Just(None), Just(Some(TOKEN_METHOD)), Just(Some("")), Just(Some("SCRAM-SHA-256"))];
    let data =
        prop_oneof![Just(None), Just(Some(good())), proptest::collection::vec(any::<u8>(), 0..300).prop_map(Some)];
    let code = prop_oneof![Just(0u8), Just(0x18), Just(0x19), any::<u8>()];
    let packet = (any::<bool>(), method, data, code).prop_map(|(is_connect, method, data, code)| {
        let properties: Vec<Property<'_>> =
            [method.map(Property::AuthenticationMethod), data.as_deref().map(Property::AuthenticationData)]
                .into_iter()
                .flatten()
                .collect();
        let properties = Properties::new(&properties);
        let mut out = vec![];
        match is_connect {
            true => {
                encode_connect(&Connect { properties, ..connect_packet(Version::V5, "hostile") }, &mut out).unwrap()
            }
            false => encode_auth(Version::V5, &Auth { reason: code, properties }, &mut out).unwrap(),
        }
        out
    });
    let damaged =
        (packet, any::<prop::sample::Index>(), any::<u8>(), 0u8..4).prop_map(|(mut bytes, index, byte, kind)| {
            let place = index.index(bytes.len());
            match kind {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place.max(1)),
                _ => {}
            }
            bytes
        });
    proptest::collection::vec(damaged, 1..6).prop_map(|packets| packets.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a client sends, the broker serves the next one.
    #[test]
    fn hostile_authentication_leaves_the_broker_alive(streams in proptest::collection::vec(hostile(), 1..8)) {
        let server = server();
        let mut open = vec![];
        for bytes in streams {
            let mut client = Client::open(server.address, Version::V5);
            client.send_bytes(&bytes);
            open.push(client);
        }
        let (mut client, code) = connect_by_method(&server, TOKEN_METHOD, &good());
        prop_assert_eq!(code, 0);
        client.expect_silence();
    }
}
