//! Requests between peers: the suite's cases, and what the tests of them have in common.

use std::net::SocketAddr;

use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_conformance::cases::run_only;
use pubmark_conformance::peer::{publisher, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::Asked;
use pubmark_conformance::server::{Limits, Listener, Missing, Server};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SessionConfig, SessionOptions, Subscription};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_protocol::timing::Timing;

pub fn endpoint(address: SocketAddr) -> Endpoint {
    let shown = format!("coap://{address}");
    Endpoint { shown, address, tls: None, credentials: None, upgrade: None, settings: None }
}

/// A session that asks, and gives up after so long.
pub fn requester(topic: &str, qos: Qos, timeout_ms: u64) -> SessionConfig {
    let subscriptions = vec![Subscription { filter: "answers/me".into(), qos }];
    let options = SessionOptions {
        reply_topic: Some("answers/me".into()),
        gives_up_after: Some(std::time::Duration::from_millis(timeout_ms)),
        ..SessionOptions::default()
    };
    SessionConfig { subscriptions, options, ..publisher("asks", topic, qos) }
}

/// A session that answers, at the second endpoint.
pub fn responder(filter: &str, qos: Qos) -> SessionConfig {
    let options = SessionOptions { replies_at: Some(qos), ..SessionOptions::default() };
    SessionConfig { options, ..subscriber("answers", filter, qos) }
}

/// An answer to a request, of this size.
pub fn answer(asked: &Asked, number: u32, payload_bytes: u32) -> OutgoingReply<'_> {
    OutgoingReply {
        to: ReplyTo { address: &asked.address, correlation: &asked.correlation },
        qos: Qos::AtLeastOnce,
        number,
        publisher: asked.header.publisher,
        sequence: asked.header.sequence,
        due_ns: asked.header.due_ns,
        timing: Timing::on_time(asked.at_ns),
        payload_bytes,
    }
}

/// A place where a responder can listen: there is no server.
struct Place(SocketAddr);

impl Server for Place {
    fn start(_limits: Limits) -> Result<Place, Missing> {
        Ok(Place(ports::free()))
    }

    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        match listener {
            Listener::Plain => Ok(endpoint(self.0)),
            _ => Err(Missing("there is no DTLS and no log-in".to_owned())),
        }
    }

    fn kill(&mut self) {}

    fn restart(&mut self) {}

    fn pause(&self) -> bool {
        false
    }

    fn resume(&self) {}
}

#[test]
fn coap_between_peers() {
    let cases = [
        "answers name their requests",
        "who only listens hears a request as a message",
        "a request that nobody hears has no answer",
        "a port without listener is unreachable",
    ];
    let capabilities = CoapClients::<Standard>::capabilities_between_peers();
    run_only::<CoapClients, Place>(capabilities, Listener::Plain, &cases, "it carries requests only, without a server");
}
