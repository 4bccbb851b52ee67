//! Is a system ready? Answered by a message of our own that goes through it: publish → receive.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{
    Clients, Goodbye, Outgoing, Publication, SessionConfig, SessionId, ShardConfig, Subscription, Taken,
};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::{Cause, Connected, Delivery, Sink, Token};
use pubmark_protocol::{clock, header};

/// Longest time for the round trip, ns; the caller tries again.
const LIMIT_NS: u64 = 2_000_000_000;
/// Topic of the message: used by no workload.
const TOPIC: &str = "pubmark/readiness";

/// What came of the round trip so far.
#[derive(Default)]
struct Seen {
    subscribed: bool,
    delivered: bool,
    failure: Option<String>,
}

impl Sink for Seen {
    fn connected(&mut self, _: SessionId, _: Connected) {}

    fn subscribed(&mut self, _: SessionId, _: usize, granted: Result<Qos, u8>) {
        match granted {
            Ok(_) => self.subscribed = true,
            Err(code) => self.failure = Some(format!("it refused a subscription with code 0x{code:02x}")),
        }
    }

    fn closed(&mut self, _: SessionId, cause: Cause) {
        if cause != Cause::Ours {
            self.failure = Some(words(&cause));
        }
    }

    fn written(&mut self, _: SessionId, _: Token, _: u64, _: u64) {}

    fn acknowledged(&mut self, _: SessionId, _: Token, outcome: Result<(), u8>) {
        if let Err(code) = outcome {
            self.failure = Some(format!("it refused a message with code 0x{code:02x}"));
        }
    }

    fn abandoned(&mut self, _: SessionId, _: Token) {}

    fn unanswered(&mut self, _: SessionId, _: Token) {}

    fn resent(&mut self, _: SessionId, _: Token) {}

    fn writable(&mut self, _: SessionId) {}

    fn delivered(&mut self, _: SessionId, _: Delivery<'_>) {
        self.delivered = true;
    }
}

/// A cause in words.
fn words(cause: &Cause) -> String {
    match cause {
        Cause::Ours => "we closed the connection".to_owned(),
        Cause::Unreachable(why) => format!("no connection: {why}"),
        Cause::Refused { code, reason } => format!("it refused the session: {reason} (0x{code:02x})"),
        Cause::NotAuthorized { code, reason } => format!("it refused the log-in: {reason} (0x{code:02x})"),
        Cause::Tls(why) => format!("TLS was not agreed: {why}"),
        Cause::Server { code, reason, .. } => format!("it ended the connection: {reason} (0x{code:02x})"),
        Cause::Dropped(why) => format!("the connection was dropped: {why}"),
        Cause::Silent => "it stopped answering".to_owned(),
        Cause::Protocol(what) => format!("it broke the protocol: {what}"),
    }
}

/// Sends one message through the system and waits for it.
pub fn round_trip<C: Clients>(endpoint: &Endpoint) -> Result<(), String> {
    let config = ShardConfig {
        endpoints: [endpoint.clone()].into(),
        run: 0,
        body_pool: vec![0; header::FULL].into(),
        maximum_packet_bytes: 1 << 16,
        receive_stamps: false,
        keep_alive_s: 10,
    };
    let mut clients = C::open(config).map_err(|error| error.to_string())?;
    let session = clients.add_session(SessionConfig {
        endpoint: 0,
        client_id: format!("pubmark-ready-{}", std::process::id()).into(),
        credentials: None,
        persistent: false,
        in_flight_window: 1,
        publications: vec![Publication {
            publisher: 0,
            topic: TOPIC.into(),
            qos: Qos::BestEffort,
            retain: false,
            body: None,
        }],
        subscriptions: vec![Subscription { filter: TOPIC.into(), qos: Qos::BestEffort }],
    });
    let mut seen = Seen::default();
    let deadline_ns = clock::monotonic_ns() + LIMIT_NS;
    clients.connect(session, &mut seen);
    wait(&mut clients, &mut seen, deadline_ns, "subscription was not answered", |seen| seen.subscribed)?;
    let due_ns = clock::monotonic_ns();
    let message = Outgoing { publication: 0, sequence: 1, due_ns, payload_bytes: header::FULL as u32 };
    if clients.send(session, message) != Taken::Yes {
        return Err("the client took no message".to_owned());
    }
    clients.flush(session, &mut seen);
    wait(&mut clients, &mut seen, deadline_ns, "message did not come back", |seen| seen.delivered)?;
    clients.disconnect(session, Goodbye::Graceful, &mut seen);
    Ok(())
}

fn wait<C: Clients>(
    clients: &mut C,
    seen: &mut Seen,
    deadline_ns: u64,
    otherwise: &str,
    done: impl Fn(&Seen) -> bool,
) -> Result<(), String> {
    while !done(seen) {
        if let Some(failure) = seen.failure.take() {
            return Err(failure);
        }
        if clock::monotonic_ns() >= deadline_ns {
            return Err(format!("a {otherwise} within {} s", LIMIT_NS / 1_000_000_000));
        }
        clients.poll(Some(deadline_ns), seen).map_err(|error| error.to_string())?;
    }
    Ok(())
}
