//! The readiness check of a system: a message is published through the system and must be received.

use pubmark_model::payload::HeaderPlace;
use pubmark_model::qos::Qos;
use pubmark_model::template::BodyDraw;
use pubmark_protocol::any::{AnyClients, Open};
use pubmark_protocol::clients::{
    ConnectionSettings, Goodbye, Outgoing, Publication, SendOutcome, SessionConfig, SessionId, SessionOptions,
    ShardConfig, Subscription,
};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::timing::Timing;
use pubmark_protocol::{clock, header};

/// Longest time for the round trip, ns; the caller retries after that.
const LIMIT_NS: u64 = 2_000_000_000;
/// Interval at which the message is repeated, ns.
const AGAIN_NS: u64 = 200_000_000;
/// Prefix of the message's topic; no workload uses it.
const TOPIC: &str = "pubmark/readiness";

/// State of a round trip.
#[derive(Default)]
struct Seen {
    connected: u32,
    subscribed: bool,
    delivered: bool,
    failure: Option<String>,
}

impl Sink for Seen {
    fn event(&mut self, _: SessionId, event: Event<'_>) {
        match event {
            Event::Connected(_) => self.connected += 1,
            Event::Subscribed { granted: Ok(_), .. } => self.subscribed = true,
            Event::Subscribed { granted: Err(reason), .. } => {
                self.failure = Some(format!("it refused a subscription: {reason}"));
            }
            Event::Closed(cause) if cause != Cause::Ours => self.failure = Some(words(&cause)),
            Event::Acknowledged { outcome: Err(reason), .. } => {
                self.failure = Some(format!("it refused a message: {reason}"));
            }
            Event::Delivered(_) => self.delivered = true,
            _ => {}
        }
    }
}

/// Describes a cause in words.
fn words(cause: &Cause) -> String {
    match cause {
        Cause::Ours => "we closed the connection".to_owned(),
        Cause::Unreachable(why) => format!("no connection: {why}"),
        Cause::Refused(reason) => format!("it refused the session: {reason}"),
        Cause::NotAuthorized(reason) => format!("it refused the log-in: {reason}"),
        Cause::Tls(why) => format!("TLS was not agreed: {why}"),
        Cause::Server { reason, .. } => format!("it ended the connection: {reason}"),
        Cause::Dropped(why) => format!("the connection was dropped: {why}"),
        Cause::Silent => "it stopped responding".to_owned(),
        Cause::Protocol(what) => format!("it broke the protocol: {what}"),
    }
}

/// Sends a message through the system, in at `from` and out at `to` (the same endpoint for a single broker), and waits for it.
/// It is sent again from time to time: connected brokers exchange subscriptions with a delay.
pub fn round_trip(open: Open, from: &Endpoint, to: &Endpoint) -> Result<(), String> {
    let config = ShardConfig {
        endpoints: [from.clone(), to.clone()].into(),
        sources: [].into(),
        networks: [].into(),
        run: 0,
        wall_ahead_ns: 0,
        body_pool: vec![0; header::FULL].into(),
        connections: ConnectionSettings {
            maximum_packet_bytes: 1 << 16,
            receive_stamps: false,
            keep_alive_s: 10,
            resumes_tls: false,
            congestion_control: None,
            program: None,
        },
    };
    let mut clients = open(config).map_err(|error| error.to_string())?;
    // The topic is unique to this attempt: a message of an earlier start's attempt must not count for this one.
    let topic = format!("{TOPIC}/{}/{}", std::process::id(), clock::monotonic_ns());
    let reader = clients.add_session(SessionConfig {
        subscriptions: vec![Subscription { filter: topic.as_str().into(), qos: Qos::BestEffort }],
        ..session("reader", 1)
    });
    let publication = Publication {
        publisher: 0,
        topic: topic.into(),
        qos: Qos::BestEffort,
        retain: false,
        body: None,
        header: HeaderPlace::Payload,
        properties: [].into(),
    };
    let writer = clients.add_session(SessionConfig { publications: vec![publication], ..session("writer", 0) });
    let mut seen = Seen::default();
    let deadline_ns = clock::monotonic_ns() + LIMIT_NS;
    clients.connect(reader, &mut seen);
    wait(&mut *clients, &mut seen, deadline_ns, |seen| seen.subscribed)?
        .ok_or_else(|| late("subscription was not answered"))?;
    clients.connect(writer, &mut seen);
    wait(&mut *clients, &mut seen, deadline_ns, |seen| seen.connected == 2)?
        .ok_or_else(|| late("session was not accepted"))?;
    let mut sequence = 0;
    while clock::monotonic_ns() < deadline_ns {
        sequence += 1;
        let due_ns = clock::monotonic_ns();
        let message = Outgoing {
            publication: 0,
            sequence,
            timing: Timing::on_time(due_ns),
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes: header::FULL as u32,
        };
        if clients.send(writer, message) != SendOutcome::Accepted {
            return Err("the client took no message".to_owned());
        }
        clients.flush(writer, &mut seen);
        if wait(&mut *clients, &mut seen, deadline_ns.min(due_ns + AGAIN_NS), |seen| seen.delivered)?.is_some() {
            clients.disconnect(writer, Goodbye::Graceful, &mut seen);
            clients.disconnect(reader, Goodbye::Graceful, &mut seen);
            return Ok(());
        }
    }
    Err(late("message did not come back"))
}

fn session(role: &str, endpoint: u16) -> SessionConfig {
    SessionConfig {
        endpoint,
        network: None,
        client_id: format!("pubmark-{role}-{}", std::process::id()).into(),
        credentials: None,
        token: None,
        nkey: None,
        certificate: None,
        persistent: false,
        in_flight_window: 1,
        publications: vec![],
        subscriptions: vec![],
        options: SessionOptions::default(),
    }
}

fn late(what: &str) -> String {
    format!("a {what} within {} s", LIMIT_NS / 1_000_000_000)
}

/// Waits until something was received; returns `None` at the end of the wait, and an error if the connection failed.
fn wait(
    clients: &mut dyn AnyClients,
    seen: &mut Seen,
    until_ns: u64,
    done: impl Fn(&Seen) -> bool,
) -> Result<Option<()>, String> {
    while !done(seen) {
        if let Some(failure) = seen.failure.take() {
            return Err(failure);
        }
        if clock::monotonic_ns() >= until_ns {
            return Ok(None);
        }
        clients.poll(Some(until_ns), seen).map_err(|error| error.to_string())?;
    }
    Ok(Some(()))
}
