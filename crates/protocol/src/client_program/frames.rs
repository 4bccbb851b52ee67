//! The frames, decoded.

/// How a connection is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With the protocol's goodbye.
    Graceful,
    /// With the protocol's goodbye, and the server discards the session.
    Final,
    /// Without a goodbye.
    Cut,
}

impl How {
    /// Its number in frames.
    pub const fn number(self) -> u8 {
        match self {
            How::Graceful => 0,
            How::Final => 1,
            How::Cut => 2,
        }
    }

    /// The one with this number.
    pub const fn of(number: u8) -> Option<How> {
        match number {
            0 => Some(How::Graceful),
            1 => Some(How::Final),
            2 => Some(How::Cut),
            _ => None,
        }
    }
}

/// Why a connection failed or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// pubmark requested it.
    Asked,
    /// No connection: refused, unreachable, timed out.
    Unreachable,
    /// The system refused the session.
    Refused,
    /// Wrong or missing log-in.
    NotAuthorized,
    /// The TLS handshake failed.
    Tls,
    /// The system closed it with a goodbye.
    Server,
    /// Reset or closed without a goodbye.
    Dropped,
    /// The system stopped responding.
    Silent,
    /// The system violated its protocol.
    Protocol,
}

impl End {
    /// All of them, by their number in frames.
    pub const ALL: [End; 9] = [
        End::Asked,
        End::Unreachable,
        End::Refused,
        End::NotAuthorized,
        End::Tls,
        End::Server,
        End::Dropped,
        End::Silent,
        End::Protocol,
    ];

    /// Its number in frames.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The one with this number.
    pub fn of(number: u8) -> Option<End> {
        End::ALL.get(usize::from(number)).copied()
    }
}

/// A frame from pubmark to the program. `client` counts the clients of the program from 0, `connection` the connections of
/// a client from 1, so that frames of an earlier connection are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToProgram<'a> {
    /// Configuration of the run, as JSON ([`super::Begin`]). Sent after the program's hello.
    Begin(&'a [u8]),
    /// A topic that a client publishes to; sent once, before its first connect.
    Topic {
        /// The client.
        client: u32,
        /// Number of the topic at this client.
        publication: u16,
        /// Delivery level: 0, 1, 2.
        qos: u8,
        /// Messages are retained.
        retain: bool,
        /// The topic.
        topic: &'a str,
        /// Type of the device, for protocols in which a topic has one; empty otherwise.
        device_type: &'a str,
    },
    /// Connect a client.
    Connect {
        /// The client.
        client: u32,
        /// This connection.
        connection: u32,
        /// The system's endpoint: an index into [`super::Begin::endpoints`].
        endpoint: u16,
        /// Most messages in flight (QoS 1 and 2).
        window: u16,
        /// Unique over all clients of the run.
        client_id: &'a str,
        /// User and password.
        login: Option<(&'a str, &'a str)>,
    },
    /// A filter to subscribe to when the connection is made; sent before its connect.
    Subscribe {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the subscription at this client.
        subscription: u16,
        /// Delivery level: 0, 1, 2.
        qos: u8,
        /// Filter in MQTT's syntax.
        filter: &'a str,
        /// Shared group; empty for none.
        shared: &'a str,
    },
    /// Publish a message now.
    Publish {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the topic.
        publication: u16,
        /// Number of the message, which `written` and `acknowledged` repeat.
        sequence: u32,
        /// When it was due, ns of the machine's `CLOCK_MONOTONIC`.
        due_ns: u64,
        /// When pubmark processed it, same clock.
        ready_ns: u64,
        /// The payload, pubmark's header first.
        payload: &'a [u8],
    },
    /// End a connection; pubmark does not wait for `closed`.
    Disconnect {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// How.
        how: How,
    },
    /// Requests an immediate pong from the thread that publishes.
    Ping {
        /// Repeated in the pong.
        number: u64,
    },
    /// The run is over: close everything and exit.
    Goodbye,
}

/// A frame from the program to pubmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromProgram<'a> {
    /// Name and capabilities of the program, as JSON ([`super::Hello`]); its first frame.
    Hello(&'a [u8]),
    /// A connection was made.
    Connected {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// In-flight messages the system allows; 0 if it does not announce a limit.
        receive_maximum: u16,
        /// Largest packet the system accepts, bytes; 0 if it does not announce a limit.
        maximum_packet_bytes: u32,
    },
    /// A connection failed or ended.
    Closed {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// The cause.
        end: End,
        /// The protocol's code; 0 for none.
        code: u8,
        /// The reason as text.
        reason: &'a str,
    },
    /// The system acknowledged a subscription.
    Granted {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the subscription.
        subscription: u16,
        /// The level granted; 128 and above: refused, the protocol's code.
        qos: u8,
        /// Why it was refused.
        reason: &'a str,
    },
    /// The system revoked a subscription that it had granted; the connection remains.
    Revoked {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the subscription.
        subscription: u16,
        /// The protocol's code, 128 and above; 0 for none.
        code: u8,
        /// Why it was revoked.
        reason: &'a str,
    },
    /// The library accepted a message.
    Written {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the topic.
        publication: u16,
        /// Number of the message.
        sequence: u32,
        /// When, ns of the machine's `CLOCK_MONOTONIC`; 0 if the clock was not read.
        stamp_ns: u64,
    },
    /// The library did not accept a message; it is not sent.
    Abandoned {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the topic.
        publication: u16,
        /// Number of the message.
        sequence: u32,
    },
    /// The system acknowledged a message (QoS 1 and 2), or refused it.
    Acknowledged {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// Number of the topic.
        publication: u16,
        /// Number of the message.
        sequence: u32,
        /// 0 to 127: accepted; 128 and above: refused, the protocol's code.
        code: u8,
        /// Why it was refused.
        reason: &'a str,
    },
    /// A message arrived.
    Delivered {
        /// The client.
        client: u32,
        /// Its connection.
        connection: u32,
        /// It is a retained one, sent because of the subscription.
        retained: bool,
        /// When, ns of the machine's `CLOCK_MONOTONIC`; 0 if the clock was not read.
        stamp_ns: u64,
        /// Bytes of the whole payload.
        payload_bytes: u32,
        /// The payload, or its beginning: [`super::SHORTEST_PART`] bytes at least.
        payload: &'a [u8],
    },
    /// The response to a ping.
    Pong {
        /// Of the ping.
        number: u64,
        /// When it was read, ns of the machine's `CLOCK_MONOTONIC`; 0 if the program reads no clock.
        stamp_ns: u64,
    },
    /// The program exits by its own decision.
    Goodbye,
}
