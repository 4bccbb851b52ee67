//! Redis publish/subscribe and streams against redis-server, plain and encrypted.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use pubmark_adapters::redis::RedisClients;
use pubmark_adapters::redis_streams::RedisStreamsClients;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::peer::{Peer, subscriber};
use pubmark_conformance::redis::Redis;
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SessionConfig, SessionOptions};
use pubmark_protocol::events::Cause;

#[test]
fn redis_plain() {
    run_all::<RedisClients, Redis>(RedisClients::capabilities(), Listener::Plain);
}

#[test]
fn redis_encrypted() {
    run_all::<RedisClients, Redis>(RedisClients::capabilities(), Listener::Encrypted);
}

#[test]
fn streams_plain() {
    run_all::<RedisStreamsClients, Redis>(RedisStreamsClients::capabilities(), Listener::Plain);
}

#[test]
fn streams_encrypted() {
    run_all::<RedisStreamsClients, Redis>(RedisStreamsClients::capabilities(), Listener::Encrypted);
}

#[test]
fn a_blocked_responder_stays_alive_and_notices_a_stalled_server() {
    let server = match Redis::start(Limits::Large) {
        Ok(server) => server,
        Err(Missing(reason)) => return pubmark_testing::skip(reason),
    };
    let mut peer = Peer::<RedisClients>::with_keep_alive(server.endpoint(Listener::Plain).unwrap(), 1);
    let options = SessionOptions { replies_at: Some(Qos::BestEffort), ..SessionOptions::default() };
    let session = peer.join(SessionConfig { options, ..subscriber("waits", "asked/+", Qos::BestEffort) });
    peer.linger(3_500);
    assert!(peer.record.causes(session).is_empty(), "{:?}", peer.record.causes(session));
    assert!(server.pause());
    peer.wait("closed", |record| !record.causes(session).is_empty());
    server.resume();
    assert_eq!(peer.record.causes(session), [Cause::Silent]);
}
