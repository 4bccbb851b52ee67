//! A server whose every frame the test decides; it lives in the test's thread and turns with the client's loop.

use pubmark_wire::front::Front;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use pubmark_adapters::amqp10::Amqp10Clients;
use pubmark_conformance::peer::{Peer, RUN};
use pubmark_protocol::clients::{Clients, SessionConfig, SessionId};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_wire::amqp10::{
    Attach, Begin, Flow, FrameKind, Open, Packet, Performative, ProtocolHeader, Role, SenderSettles, Terminus,
    Transfer, composite, encode_data_front, encode_frame, next,
};

const PATIENCE: Duration = Duration::from_secs(20);
/// Channel of the scripted server: another than the client's, which is allowed.
pub const CHANNEL: u16 = 5;
/// Window of the scripted server, transfers.
pub const WINDOW: u32 = 100;

/// How far the server goes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    /// It has accepted.
    Accepted,
    /// It has said its mechanisms and has heard the log-in.
    LogIn,
    /// It has taken the log-in and has heard the open.
    Open,
    /// It has said open and has heard the begin.
    Begin,
    /// It has said begin and has heard of all senders.
    Senders,
    /// It has given credit to all senders and has heard of all receivers.
    Receivers,
    /// It has answered all receivers and has heard of their credit.
    All,
}

/// Clients and the server's side of their connection.
pub struct Script {
    pub peer: Peer<Amqp10Clients>,
    listener: TcpListener,
    stream: TcpStream,
    received: Vec<u8>,
    /// Senders and receivers that the session asks for.
    links: (usize, usize),
    /// Names and handles of the receivers that it asked for.
    pub asked: Vec<(String, u32)>,
    /// The other ends of all links that it asked for: their addresses, and whether the server is to make a node for them.
    pub ends: Vec<(Option<String>, bool)>,
    /// Host that its last open named.
    pub hostname: Option<String>,
    pub open: Open<'static>,
    pub begin: Begin,
    /// Credit of each sender.
    pub credit: u32,
    /// Largest message of each sender.
    pub max_message_bytes: Option<u64>,
}

impl Script {
    /// A server with its usual answers, nobody connected.
    pub fn new() -> Script {
        Script::with_keep_alive(60)
    }

    /// The same, with clients that ask for a sign of life every so often.
    pub fn with_keep_alive(keep_alive_s: u16) -> Script {
        Script::at(keep_alive_s, None)
    }

    /// A server whose endpoint has something behind its port.
    pub fn with_settings(settings: &str) -> Script {
        Script::at(60, Some(settings))
    }

    fn at(keep_alive_s: u16, settings: Option<&str>) -> Script {
        let listener = pubmark_conformance::ports::listen();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint {
            shown: address.to_string(),
            address,
            tls: None,
            credentials: None,
            upgrade: None,
            settings: settings.map(Into::into),
        };
        // Nobody talks over it; the first session brings its own.
        let stream = TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
        Script {
            peer: Peer::with_keep_alive(endpoint, keep_alive_s),
            listener,
            stream,
            received: Vec::new(),
            links: (0, 0),
            asked: Vec::new(),
            ends: Vec::new(),
            hostname: None,
            open: Open {
                container_id: "script",
                hostname: None,
                max_frame_bytes: 1_000,
                channel_max: 10,
                idle_time_out_ms: None,
                anonymous_relay: false,
                product: Some("RabbitMQ"),
                version: Some("0"),
            },
            begin: Begin {
                remote_channel: Some(0),
                next_outgoing_id: 7,
                incoming_window: WINDOW,
                outgoing_window: WINDOW,
                handle_max: 100,
            },
            credit: 50,
            max_message_bytes: None,
        }
    }

    /// Lets a session connect and goes on with it.
    pub fn meet(&mut self, config: SessionConfig, until: Until) -> SessionId {
        let answers_on_one = config.options.replies_at.is_some() && self.open.anonymous_relay;
        self.links = (config.publications.len() + usize::from(answers_on_one), config.subscriptions.len());
        let id = self.peer.clients.add_session(config);
        self.meet_again(id, until);
        id
    }

    /// The same with a session that is there.
    pub fn meet_again(&mut self, id: SessionId, until: Until) {
        self.peer.clients.connect(id, &mut self.peer.record);
        self.stream = self.listener.accept().unwrap().0;
        self.stream.set_nonblocking(true).unwrap();
        self.stream.set_nodelay(true).unwrap();
        self.received.clear();
        let before = self.peer.record.connects(id).len();
        self.log_in(until);
        if until >= Until::Open {
            self.begin_session(until);
        }
        if until >= Until::Senders {
            self.make_links(until);
        }
        if until >= Until::Receivers {
            self.peer.wait("connected", |record| record.connects(id).len() > before);
        }
    }

    fn log_in(&mut self, until: Until) {
        self.expect_header(ProtocolHeader::SASL);
        if until >= Until::LogIn {
            self.say_with(|out| ProtocolHeader::SASL.encode(out));
            self.say(&mechanisms(&["PLAIN", "ANONYMOUS"]));
            assert_eq!(self.frame().0, FrameKind::Sasl);
        }
        if until >= Until::Open {
            self.say(&outcome(0));
            self.expect_header(ProtocolHeader::AMQP);
            self.hostname = self.expect("open", |performative| match performative {
                Performative::Open(open) => Some(open.hostname.map(str::to_owned)),
                _ => None,
            });
        }
    }

    fn begin_session(&mut self, until: Until) {
        if until >= Until::Begin {
            let open = self.open;
            self.say_with(|out| {
                ProtocolHeader::AMQP.encode(out);
                open.encode(out);
            });
            self.expect("begin", |performative| matches!(performative, Performative::Begin(_)).then_some(()));
        }
        if until >= Until::Senders {
            let begin = self.begin;
            self.say_with(|out| begin.encode(CHANNEL, out));
        }
    }

    fn make_links(&mut self, until: Until) {
        for _ in 0..self.links.0 {
            let (name, handle) = self.expect_attach(Role::Sender);
            if until >= Until::Receivers {
                self.answer_sender(&name, handle);
            }
        }
        if until < Until::Receivers {
            return;
        }
        self.asked = (0..self.links.1).map(|_| self.expect_attach(Role::Receiver)).collect();
        if until < Until::All {
            return;
        }
        for (name, handle) in self.asked.clone() {
            self.answer_receiver(&name, handle, SenderSettles::Mixed);
            assert!(self.expect_flow().link_credit > Some(0));
        }
    }
}

impl Script {
    /// Says bytes.
    pub fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Says what `write` appends.
    pub fn say_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        self.say(&out);
    }

    /// The server's end of the connection.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Ends the connection.
    pub fn close(&mut self) {
        // The client may have been faster.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Answers a sender with its attach and credit.
    pub fn answer_sender(&mut self, name: &str, handle: u32) {
        let (credit, max_message_bytes, begin) = (self.credit, self.max_message_bytes, self.begin);
        let attach = Attach { max_message_bytes, ..attach(name, handle, Role::Receiver) };
        let flow = Flow { handle: Some(handle), link_credit: Some(credit), ..flow(&begin) };
        self.say_with(|out| {
            attach.encode(CHANNEL, out);
            flow.encode(CHANNEL, out);
        });
    }

    /// Answers a receiver.
    pub fn answer_receiver(&mut self, name: &str, handle: u32, sender_settles: SenderSettles) {
        let attach = Attach { sender_settles, initial_delivery_count: Some(0), ..attach(name, handle, Role::Sender) };
        self.say_with(|out| attach.encode(CHANNEL, out));
    }

    /// Waits for the client's next packet: its kind and its bytes.
    fn packet(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match next(&self.received, 1 << 20).unwrap() {
                Front::Whole { bytes, .. } => return self.received.drain(..bytes).collect(),
                Front::Partial(_) => {}
            }
            assert!(Instant::now() < deadline, "gave up; so far: {}", self.received.escape_ascii());
            self.peer.linger(1);
            let mut bytes = [0; 4_096];
            match self.stream.read(&mut bytes) {
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
    }

    /// Waits for a protocol header.
    pub fn expect_header(&mut self, expected: ProtocolHeader) {
        let bytes = self.packet();
        let packet = Packet::Header(expected);
        assert_eq!(next(&bytes, 1 << 20), Ok(Front::Whole { packet, bytes: 8 }));
    }

    /// Waits for the client's next frame: its kind and its body.
    pub fn frame(&mut self) -> (FrameKind, Vec<u8>) {
        let bytes = self.packet();
        match next(&bytes, 1 << 20) {
            Ok(Front::Whole { packet: Packet::Frame(frame), .. }) => (frame.kind, frame.body.to_vec()),
            other => panic!("no frame: {other:?}"),
        }
    }

    /// Waits for the next performative and takes from it what `choose` finds; fails if it finds nothing.
    pub fn expect<T>(&mut self, what: &str, choose: impl FnOnce(Performative<'_>) -> Option<T>) -> T {
        let (_, body) = self.frame();
        let performative = Performative::decode(&body).unwrap();
        let shown = format!("{performative:?}");
        choose(performative).unwrap_or_else(|| panic!("expected {what}, got {shown}"))
    }

    /// Waits for an attach: its name and its handle.
    pub fn expect_attach(&mut self, role: Role) -> (String, u32) {
        let (name, handle, end) = self.expect("attach", |performative| match performative {
            Performative::Attach(attach) if attach.role == role => {
                let end = if role == Role::Sender { attach.target } else { attach.source }?;
                Some((attach.name.to_owned(), attach.handle, (end.address.map(str::to_owned), end.dynamic)))
            }
            _ => None,
        });
        self.ends.push(end);
        (name, handle)
    }

    /// Waits for a flow.
    pub fn expect_flow(&mut self) -> Flow {
        self.expect("flow", |performative| match performative {
            Performative::Flow(flow) => Some(flow),
            _ => None,
        })
    }

    /// The cause with which the session's connection ends.
    pub fn end_of(&mut self, id: SessionId) -> Cause {
        self.peer.wait("closed", |record| !record.causes(id).is_empty());
        self.peer.record.causes(id).remove(0)
    }
}

/// A server's mechanisms.
pub fn mechanisms(names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(FrameKind::Sasl, 0, &mut out, |out| composite(0x40, out, |fields| fields.symbols(names)));
    out
}

/// A server's word on a log-in.
pub fn outcome(code: u8) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(FrameKind::Sasl, 0, &mut out, |out| composite(0x44, out, |fields| fields.ubyte(code)));
    out
}

/// A server's answer to a link.
pub fn attach(name: &str, handle: u32, role: Role) -> Attach<'_> {
    let terminus = Some(Terminus::at(Some("there")));
    Attach {
        name,
        handle,
        role,
        sender_settles: SenderSettles::Mixed,
        source: terminus,
        target: terminus,
        initial_delivery_count: None,
        max_message_bytes: None,
    }
}

/// A server's flow about its session, before any transfer.
pub fn flow(begin: &Begin) -> Flow {
    Flow {
        next_incoming_id: Some(0),
        incoming_window: begin.incoming_window,
        next_outgoing_id: begin.next_outgoing_id,
        outgoing_window: begin.outgoing_window,
        handle: None,
        delivery_count: None,
        link_credit: None,
        drain: false,
        echo: false,
    }
}

/// A message of the suite with this sequence number.
pub fn message(sequence: u32, payload_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    encode_data_front(payload_bytes, &mut out);
    let header_bytes = header::write(&mut out, payload_bytes, RUN, 7, sequence, 1);
    out.extend((0..payload_bytes - header_bytes).map(|byte| (byte % pubmark_conformance::recorder::POOL_BYTES) as u8));
    out
}

/// A delivery in one transfer, of the only receiver of a session without senders.
pub fn delivery(id: u32, settled: bool, payload: &[u8]) -> Transfer<'_> {
    Transfer {
        handle: 0,
        delivery_id: Some(id),
        delivery_tag: Some(b"tag"),
        settled: Some(settled),
        more: false,
        aborted: false,
        payload,
    }
}
