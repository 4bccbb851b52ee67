//! The adapter: what the toy protocol adds to a connection.
//!
//! A client sends `HELLO`, `SUB filter`, `PUB topic bytes` and `PING`; the server sends `WELCOME`, `OK`, `MSG bytes`,
//! `PONG` and `ERR words`. Each is a line; a payload and a line end follow `PUB` and `MSG`.

use pubmark_adapters::connection::{Dialect, Link, Phase, Refusal, Sending, Shared, Times, up_to_line_end};
use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink};
use pubmark_wire::front::Front;

/// Longest line, bytes.
const LONGEST_LINE_BYTES: usize = 1_024;

/// A session's memory.
pub struct Line {
    /// Of each publication: the part before the number of bytes.
    fronts: Vec<String>,
    /// Subscriptions that the server accepted.
    subscribed: usize,
}

/// A packet of the server.
pub enum Packet<'a> {
    /// The session is open.
    Welcome,
    /// A subscription was accepted.
    Subscribed,
    /// A message, by its payload.
    Message(&'a [u8]),
    /// It is alive.
    Pong,
    /// Why it ends the connection.
    Error(&'a str),
}

impl Dialect for Line {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "line",
        title: "the toy protocol of the documentation",
        schemes: &["line"],
        tls_schemes: &[],
        default_port: 7070,
        default_tls_port: 7070,
        levels: &[Level { qos: Qos::BestEffort, means: "PUB" }],
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features::NONE,
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: 64 << 20,
        check_topic: None,
        filter_matches: None,
    };
    const WELCOME: &'static str = "WELCOME";

    type Packet<'a> = Packet<'a>;

    fn new(config: &SessionConfig) -> Line {
        let front = |topic: &str| format!("PUB {topic} ");
        Line { fronts: config.publications.iter().map(|entry| front(&entry.topic)).collect(), subscribed: 0 }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.subscribed = 0;
        link.outbox.append(&mut shared.pool, |out| out.extend_from_slice(b"HELLO\n"));
        Ok(())
    }

    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Packet<'_>>, Cause> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            let is_short = bytes.len() <= LONGEST_LINE_BYTES;
            return if is_short { Ok(Front::Partial(None)) } else { Err(broken("a line without an end")) };
        };
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| broken("a line that is not text"))?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let after = end + 1;
        let packet = match word {
            "WELCOME" => Packet::Welcome,
            "OK" => Packet::Subscribed,
            "PONG" => Packet::Pong,
            "ERR" => Packet::Error(rest),
            "MSG" => {
                let length: usize = rest.parse().map_err(|_| broken("a message without a length"))?;
                let total = after.saturating_add(length).saturating_add(1);
                if total > most_bytes {
                    return Err(broken("a message above the limit"));
                }
                let Some(body) = bytes.get(after..total) else { return Ok(Front::Partial(Some(total))) };
                return Ok(Front::Whole { packet: Packet::Message(&body[..length]), bytes: total });
            }
            _ => return Err(broken("an unknown word")),
        };
        Ok(Front::Whole { packet, bytes: after })
    }

    fn partial_bytes(bytes: &[u8]) -> usize {
        up_to_line_end(bytes)
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        packet: &Packet<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match (link.phase, packet) {
            (Phase::Open, Packet::Message(payload)) => {
                sink.event(link.id, Event::Delivered(times.delivery(payload, false)));
            }
            (Phase::Open, Packet::Subscribed) => {
                sink.event(link.id, Event::Subscribed { index: self.subscribed, granted: Ok(Qos::BestEffort) });
                self.subscribed += 1;
            }
            (Phase::Open, Packet::Pong) => {}
            (Phase::Opening, Packet::Welcome) => {
                let keep_alive_s = shared.config.connections.keep_alive_s;
                link.opened(shared, keep_alive_s);
                sink.event(link.id, Event::Connected(Connected::default()));
                let filters = link.config.subscriptions.iter().map(|entry| format!("SUB {}\n", entry.filter));
                let lines: String = filters.collect();
                link.outbox.append(&mut shared.pool, |out| out.extend_from_slice(lines.as_bytes()));
            }
            (_, Packet::Error(words)) => {
                let reason = Reason::words((*words).to_owned());
                return Err(Cause::Server { reason, too_large: words.contains("too large") });
            }
            _ => return Err(broken("a word at the wrong time")),
        }
        Ok(())
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = message.payload_bytes as usize;
        let fixed = &self.fronts[usize::from(message.publication)];
        let front = |out: &mut Vec<u8>| out.extend_from_slice(format!("{fixed}{payload_bytes}\n").as_bytes());
        link.append_message(shared, message, Sending::once(payload_bytes), front, b"\n");
        Ok(())
    }

    fn ping(out: &mut Vec<u8>) {
        out.extend_from_slice(b"PING\n");
    }
}

fn broken(what: &str) -> Cause {
    Cause::Protocol(what.to_owned())
}
