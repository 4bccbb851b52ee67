//! Redis publish/subscribe and streams against redis-server, plain and encrypted.

use pubmark_adapters::redis::RedisClients;
use pubmark_adapters::redis_streams::RedisStreamsClients;
use pubmark_conformance::cases::run_all;
use pubmark_conformance::redis::Redis;
use pubmark_conformance::server::Listener;

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
