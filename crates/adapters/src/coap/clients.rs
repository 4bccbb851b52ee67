//! All sessions of a shard, and the loop that serves them.

use std::marker::PhantomData;
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::clock;
use pubmark_protocol::datagram::Datagrams;
use pubmark_protocol::events::Sink;
use pubmark_protocol::reactor::{Reactor, Ready};
use pubmark_protocol::receive::WallOffset;
use pubmark_protocol::requests::OutgoingReply;
use pubmark_protocol::socket::SocketFactory;
use pubmark_protocol::traffic::Traffic;
use pubmark_protocol::wheel::Wheel;
use pubmark_wire::coap::{LARGEST_BODY_BYTES, check_topic};

use super::link::Shared;
use super::session::Session;
use super::timing::{Standard, Timing};

/// All CoAP sessions of a shard.
pub struct CoapClients<T = Standard> {
    shared: Shared,
    sessions: Vec<Session>,
    ready: Vec<Ready>,
    /// Sessions with an expired deadline.
    due: Vec<u32>,
    timing: PhantomData<T>,
}

impl<T: Timing> CoapClients<T> {
    /// What these clients can do. There is no DTLS, so no encrypted scheme, and no log-in.
    pub const fn capabilities() -> Capabilities {
        Capabilities {
            name: "coap",
            title: "CoAP over UDP (RFC 7252, observe, block-wise), without DTLS",
            schemes: &["coap"],
            tls_schemes: &[],
            default_port: 5683,
            default_tls_port: 5684,
            levels: &[
                Level {
                    qos: Qos::BestEffort,
                    means: "PUT and notifications in non-confirmable messages; blocks of large ones confirmable",
                },
                Level {
                    qos: Qos::AtLeastOnce,
                    means: "PUT in a confirmable message, 2.01 or 2.04; notifications confirmable",
                },
            ],
            wildcards: true,
            retain: false,
            persistent_sessions: false,
            ends_sessions: false,
            features: Features {
                redelivers_after: Some(Duration::from_nanos(T::TIMES.transmit_span_ns())),
                datagrams: true,
                ..Features::NONE
            },
            sent_means: SentMeans::Wire,
            maximum_payload_bytes: LARGEST_BODY_BYTES,
            check_topic: Some(|topic| check_topic(topic).map_err(|error| error.to_string())),
            filter_matches: None,
        }
    }

    /// Capabilities without a broker: a responder listens at an endpoint of its own, and requesters send to it.
    pub const fn capabilities_between_peers() -> Capabilities {
        Capabilities {
            name: "coap-peers",
            title: "CoAP requests between peers over UDP (RFC 7252, FETCH, block-wise), without DTLS",
            levels: &[
                Level {
                    qos: Qos::BestEffort,
                    means: "FETCH and its response in non-confirmable messages; blocks of large ones confirmable",
                },
                Level {
                    qos: Qos::AtLeastOnce,
                    means: "FETCH in a confirmable message; the response in its acknowledgement, or confirmable",
                },
            ],
            features: Features {
                brokerless: true,
                subscribers_listen: true,
                requests: Some("FETCH to its responder; the response's token"),
                only_responders_receive_requests: true,
                only_requests: true,
                redelivers_after: Some(Duration::from_nanos(T::TIMES.transmit_span_ns())),
                datagrams: true,
                ..Features::NONE
            },
            ..CoapClients::<T>::capabilities()
        }
    }

    fn serve_ready(&mut self, sink: &mut impl Sink) {
        for position in 0..self.ready.len() {
            let ready = self.ready[position];
            // The lower half of a key is the session, see `Link::key`.
            let session = &mut self.sessions[ready.key as u32 as usize];
            if session.link.key() == ready.key {
                session.on_ready(&mut self.shared, ready, sink);
            }
        }
    }

    /// Goes on with sessions that had their turn before their sockets were empty.
    fn serve_unread(&mut self, unread: Vec<u32>, sink: &mut impl Sink) {
        for index in unread {
            let session = &mut self.sessions[index as usize];
            if !session.link.drained {
                session.read_on(&mut self.shared, sink);
            }
        }
    }

    fn check_times(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if self.shared.wheel.next_ns().is_none_or(|next_ns| now_ns < next_ns) {
            return;
        }
        self.shared.wheel.advance(now_ns, &mut self.due);
        for index in std::mem::take(&mut self.due) {
            self.sessions[index as usize].check(&mut self.shared, now_ns, sink);
        }
    }
}

impl<T: Timing> Clients for CoapClients<T> {
    fn open(config: ShardConfig) -> Result<CoapClients<T>, OpenError> {
        let reactor =
            Reactor::new().map_err(|source| OpenError::System { what: "open epoll and its timer", source })?;
        let now_ns = clock::monotonic_ns();
        let shared = Shared {
            times: T::TIMES,
            reactor,
            sockets: SocketFactory::new(&config),
            datagrams: Datagrams::default(),
            wheel: Wheel::with_tick(now_ns, T::TICK_NS),
            offset: WallOffset::default(),
            scratch: Vec::new(),
            spare: Vec::new(),
            unread: Vec::new(),
            drawn: now_ns,
            config,
        };
        Ok(CoapClients { shared, sessions: Vec::new(), ready: Vec::new(), due: Vec::new(), timing: PhantomData })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        self.sessions.push(Session::new(id, config));
        id
    }

    fn connect(&mut self, session: SessionId, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].connect(&mut self.shared, sink);
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].disconnect(&mut self.shared, goodbye, sink);
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        self.sessions[session.0 as usize].send(message)
    }

    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        self.sessions[session.0 as usize].reply(reply)
    }

    fn flush(&mut self, session: SessionId, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].flush(&mut self.shared, sink);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        let until_ns = match (until_ns, self.shared.wheel.next_ns()) {
            _ if !self.shared.unread.is_empty() => Some(0),
            (Some(until_ns), Some(check_ns)) => Some(until_ns.min(check_ns)),
            (until_ns, check_ns) => until_ns.or(check_ns),
        };
        let awake = self.shared.reactor.wait(until_ns, &mut self.ready)?;
        if self.shared.unread.is_empty() {
            self.shared.reactor.note_all_read();
        }
        Ok(awake.at_ns)
    }

    fn has_unread(&self) -> bool {
        !self.shared.unread.is_empty() || self.shared.reactor.has_more()
    }

    fn take_free_since_ns(&mut self, session: SessionId) -> Option<u64> {
        let free_since_ns = self.sessions[session.0 as usize].link.free_since_ns.take();
        Some(free_since_ns.unwrap_or(self.shared.reactor.served_until_ns()))
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let unread = std::mem::take(&mut self.shared.unread);
        self.serve_ready(sink);
        self.serve_unread(unread, sink);
        self.check_times(now_ns, sink);
    }

    fn waker(&self) -> Waker {
        self.shared.reactor.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.sessions.iter().map(Session::unsent_bytes).sum()
    }

    fn traffic(&self, session: SessionId) -> Option<Traffic> {
        Some(self.sessions[session.0 as usize].link.traffic)
    }
}
