//! Requests between peers: the cases of the suite, and shared code of the tests.

use std::net::SocketAddr;

use pubmark_adapters::coap::{CoapClients, Standard};
use pubmark_conformance::cases::run_only;
use pubmark_conformance::peer::{publisher, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::ReceivedRequest;
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

/// A requester with this time-out.
pub fn requester(topic: &str, qos: Qos, timeout_ms: u64) -> SessionConfig {
    let subscriptions = vec![Subscription { filter: "answers/me".into(), qos }];
    let options = SessionOptions {
        reply_topic: Some("answers/me".into()),
        gives_up_after: Some(std::time::Duration::from_millis(timeout_ms)),
        ..SessionOptions::default()
    };
    SessionConfig { subscriptions, options, ..publisher("asks", topic, qos) }
}

/// A responder at the second endpoint.
pub fn responder(filter: &str, qos: Qos) -> SessionConfig {
    let options = SessionOptions { replies_at: Some(qos), ..SessionOptions::default() };
    SessionConfig { options, ..subscriber("answers", filter, qos) }
}

/// A reply of this size to a request.
pub fn answer(asked: &ReceivedRequest, number: u32, payload_bytes: u32) -> OutgoingReply<'_> {
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

/// An address for a responder; there is no server.
struct ListenerSpec(SocketAddr);

impl Server for ListenerSpec {
    fn start(_limits: Limits) -> Result<ListenerSpec, Missing> {
        Ok(ListenerSpec(ports::free()))
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
    run_only::<CoapClients, ListenerSpec>(
        capabilities,
        Listener::Plain,
        &cases,
        "it carries requests only, without a server",
    );
}
