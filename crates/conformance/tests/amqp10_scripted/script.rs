//! A scripted server. It runs on the thread of the test, in turn with the client's loop.

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
/// Channel of the scripted server; it may differ from the client's.
pub const CHANNEL: u16 = 5;
/// Window of the scripted server, transfers.
pub const WINDOW: u32 = 100;

/// Stage up to which the server responds by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    /// It has accepted the connection.
    Accepted,
    /// It has sent its mechanisms and received the log-in.
    LogIn,
    /// It has accepted the log-in and received the open.
    Open,
    /// It has sent its open and received the begin.
    Begin,
    /// It has sent its begin and received the attaches of all senders.
    Senders,
    /// It has granted credit to all senders and received the attaches of all receivers.
    Receivers,
    /// It has attached all receivers and received their credit.
    All,
}

/// Clients and the server's side of their connection.
pub struct Script {
    pub peer: Peer<Amqp10Clients>,
    listener: TcpListener,
    stream: TcpStream,
    received: Vec<u8>,
    /// Number of senders and receivers that the session attaches.
    links: (usize, usize),
    /// Names and handles of the receivers that it attached.
    pub attached_receivers: Vec<(String, u32)>,
    /// The other ends of all links that it attached: their addresses, and whether the server is to create a node for
    /// them.
    pub ends: Vec<(Option<String>, bool)>,
    /// Host name of its last open.
    pub hostname: Option<String>,
    pub open: Open<'static>,
    pub begin: Begin,
    /// Credit of each sender.
    pub credit: u32,
    /// Largest message of each sender.
    pub max_message_bytes: Option<u64>,
}

impl Script {
    /// A server with its usual responses and without connections.
    pub fn new() -> Script {
        Script::with_keep_alive(60)
    }

    /// The same, with clients that request heartbeats at this interval.
    pub fn with_keep_alive(keep_alive_s: u16) -> Script {
        Script::at(keep_alive_s, None)
    }

    /// A server whose endpoint has settings after its port.
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
        // Not used; the first session has its own connection.
        let stream = TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
        Script {
            peer: Peer::with_keep_alive(endpoint, keep_alive_s),
            listener,
            stream,
            received: Vec::new(),
            links: (0, 0),
            attached_receivers: Vec::new(),
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

    /// Lets a session connect, up to this stage.
    pub fn connect_client(&mut self, config: SessionConfig, until: Until) -> SessionId {
        let answers_on_one = config.options.replies_at.is_some() && self.open.anonymous_relay;
        self.links = (config.publications.len() + usize::from(answers_on_one), config.subscriptions.len());
        let id = self.peer.clients.add_session(config);
        self.reconnect_client(id, until);
        id
    }

    /// The same for an existing session.
    pub fn reconnect_client(&mut self, id: SessionId, until: Until) {
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
            self.send_with(|out| ProtocolHeader::SASL.encode(out));
            self.send_bytes(&mechanisms(&["PLAIN", "ANONYMOUS"]));
            assert_eq!(self.frame().0, FrameKind::Sasl);
        }
        if until >= Until::Open {
            self.send_bytes(&outcome(0));
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
            self.send_with(|out| {
                ProtocolHeader::AMQP.encode(out);
                open.encode(out);
            });
            self.expect("begin", |performative| matches!(performative, Performative::Begin(_)).then_some(()));
        }
        if until >= Until::Senders {
            let begin = self.begin;
            self.send_with(|out| begin.encode(CHANNEL, out));
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
        self.attached_receivers = (0..self.links.1).map(|_| self.expect_attach(Role::Receiver)).collect();
        if until < Until::All {
            return;
        }
        for (name, handle) in self.attached_receivers.clone() {
            self.answer_receiver(&name, handle, SenderSettles::Mixed);
            assert!(self.expect_flow().link_credit > Some(0));
        }
    }
}

impl Script {
    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends the bytes that `write` appends.
    pub fn send_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        self.send_bytes(&out);
    }

    /// The server's end of the connection.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Ends the connection.
    pub fn close(&mut self) {
        // The client may have closed it first.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Responds to a sender with an attach and credit.
    pub fn answer_sender(&mut self, name: &str, handle: u32) {
        let (credit, max_message_bytes, begin) = (self.credit, self.max_message_bytes, self.begin);
        let attach = Attach { max_message_bytes, ..attach(name, handle, Role::Receiver) };
        let flow = Flow { handle: Some(handle), link_credit: Some(credit), ..flow(&begin) };
        self.send_with(|out| {
            attach.encode(CHANNEL, out);
            flow.encode(CHANNEL, out);
        });
    }

    /// Responds to a receiver.
    pub fn answer_receiver(&mut self, name: &str, handle: u32, sender_settles: SenderSettles) {
        let attach = Attach { sender_settles, initial_delivery_count: Some(0), ..attach(name, handle, Role::Sender) };
        self.send_with(|out| attach.encode(CHANNEL, out));
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

    /// Waits for the next performative and returns the result of `choose`; fails if it is `None`.
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

/// A server's outcome of a log-in.
pub fn outcome(code: u8) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(FrameKind::Sasl, 0, &mut out, |out| composite(0x44, out, |fields| fields.ubyte(code)));
    out
}

/// A server's response to an attach.
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
