//! A sink that records every event.

use pubmark_model::qos::Qos;
use pubmark_protocol::client_program::Misreport;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{self, Cause, Connected, Delivery, Reason, Sink, Token, Unread};
use pubmark_protocol::header::{self, Header};
use pubmark_protocol::requests::ReplyTo;

use crate::peer::RUN;

/// Bytes of the pool that [`crate::peer::Peer`] fills bodies from: byte `n` is `n` modulo this.
pub const POOL_BYTES: usize = 251;

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// At this session.
    pub session: SessionId,
    /// Its header.
    pub header: Header,
    /// Whole payload.
    pub payload_bytes: usize,
    /// The body is a contiguous piece of the pool.
    pub intact: bool,
    /// Replayed because of a subscription.
    pub retained: bool,
    /// Time after the read, ns.
    pub at_ns: u64,
    /// Time when the socket was empty, if known, ns.
    pub empty_at_ns: Option<u64>,
    /// The kernel's timestamp, ns.
    pub kernel_ns: Option<u64>,
    /// Before it arrived, bytes of its connection were not read during these times.
    pub unread: Vec<Unread>,
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// At this session.
    pub session: SessionId,
    /// Its header.
    pub header: Header,
    /// Whole payload.
    pub payload_bytes: usize,
    /// Address to which its reply goes.
    pub address: String,
    /// The correlation that its reply repeats.
    pub correlation: Vec<u8>,
    /// Time after the read, ns.
    pub at_ns: u64,
}

/// A reply that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedReply {
    /// At this session.
    pub session: SessionId,
    /// The request that its correlation names.
    pub request: Option<Token>,
    /// Its header.
    pub header: Header,
    /// Whole payload.
    pub payload_bytes: usize,
    /// The body is a contiguous piece of the pool.
    pub intact: bool,
}

/// Anything but an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// See [`events::Event::Connected`].
    Connected(SessionId, Connected),
    /// See [`events::Event::Subscribed`].
    Subscribed(SessionId, usize, Result<Qos, Reason>),
    /// See [`events::Event::Closed`].
    Closed(SessionId, Cause),
    /// See [`events::Event::Written`].
    Written(SessionId, Token, u64, u64),
    /// See [`events::Event::Acknowledged`].
    Acknowledged(SessionId, Token, Result<(), Reason>),
    /// See [`events::Event::Abandoned`].
    Abandoned(SessionId, Token),
    /// See [`events::Event::Declined`].
    Declined(SessionId, Token),
    /// See [`events::Event::Unacknowledged`].
    Unacknowledged(SessionId, Token),
    /// See [`events::Event::Resent`].
    Resent(SessionId, Token),
    /// See [`events::Event::Writable`].
    Writable(SessionId),
}

/// All that happened.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Everything but arrivals, in order.
    pub events: Vec<Event>,
    /// Arrivals, in order.
    pub arrived: Vec<ReceivedMessage>,
    /// Requests that arrived, in order; they are among the arrivals, too.
    pub received_requests: Vec<ReceivedRequest>,
    /// Replies that arrived, in order.
    pub replies: Vec<ReceivedReply>,
    /// Wills of the suite that arrived.
    pub wills: usize,
    /// Connections that left a will, or may have left one.
    pub wills_left: usize,
    /// Messages that their senders withheld because there was no subscriber.
    pub withheld: usize,
    /// Of each message written, in order, how long it waited for pubmark since its submission, at most, ns.
    pub own_ns: Vec<u64>,
    /// What servers do not permit sessions that go on without it.
    pub not_permitted: Vec<&'static str>,
    /// New tokens that were taken on open connections.
    pub reauthenticated: usize,
    /// Arrivals that no filter of their session chose.
    pub discarded: usize,
    /// Arrivals that are no messages of the suite.
    pub foreign: usize,
    /// Sizes of those that contain only zeros: payloads too small for a header.
    pub bare: Vec<usize>,
    /// Arrivals that the adapter had no buffer space for.
    pub missed: u64,
    /// Datagrams that found the full buffer of a socket.
    pub overflowed: u64,
    /// Messages sent with an identifier that was used shortly before.
    pub ids_reused: u64,
    /// Reports of a client program that cannot be true.
    pub misreports: Vec<Misreport>,
    /// Round trips of its ping responses, ns.
    pub round_trips_ns: Vec<u64>,
    /// The session whose subscriber processes each message until the test ends the processing.
    pub works: Option<SessionId>,
    /// Whether that subscriber processes a message now.
    pub at_work: bool,
}

impl Recorder {
    /// How many events `choose` picks.
    pub fn count(&self, choose: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| choose(event)).count()
    }

    /// What `choose` makes of the events it picks.
    pub fn all<T>(&self, choose: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.events.iter().filter_map(choose).collect()
    }

    /// Sequence numbers of what arrived at a session, in order.
    pub fn sequences(&self, session: SessionId) -> Vec<u32> {
        self.arrived.iter().filter(|one| one.session == session).map(|one| one.header.sequence).collect()
    }

    /// Acknowledgements without refusal.
    pub fn acknowledged(&self) -> usize {
        self.count(|event| matches!(event, Event::Acknowledged(_, _, Ok(()))))
    }

    /// Messages refused, each with the reason.
    pub fn refused(&self) -> Vec<(SessionId, Reason)> {
        self.all(|event| match event {
            Event::Acknowledged(session, _, Err(reason)) => Some((*session, reason.clone())),
            _ => None,
        })
    }

    /// Messages written.
    pub fn written(&self) -> usize {
        self.count(|event| matches!(event, Event::Written(..)))
    }

    /// Removes a message from those that were written.
    pub fn forget_written(&mut self, session: SessionId, sequence: u32) {
        let is_it = |event: &Event| matches!(event, Event::Written(id, token, ..) if (*id, token.sequence) == (session, sequence));
        if let Some(place) = self.events.iter().rposition(is_it) {
            self.events.remove(place);
        }
    }

    /// Messages known to be without acknowledgement.
    pub fn unanswered(&self) -> usize {
        self.count(|event| matches!(event, Event::Unacknowledged(..)))
    }

    /// The causes for which a session's connections ended.
    pub fn causes(&self, session: SessionId) -> Vec<Cause> {
        self.all(|event| match event {
            Event::Closed(id, cause) if *id == session => Some(cause.clone()),
            _ => None,
        })
    }

    /// The server's responses to a session's connects.
    pub fn connects(&self, session: SessionId) -> Vec<Connected> {
        self.all(|event| match event {
            Event::Connected(id, connected) if *id == session => Some(*connected),
            _ => None,
        })
    }
}

impl Sink for Recorder {
    fn event(&mut self, session: SessionId, event: events::Event<'_>) {
        self.events.push(match event {
            events::Event::Connected(connected) => Event::Connected(session, connected),
            events::Event::Subscribed { index, granted } => Event::Subscribed(session, index, granted),
            events::Event::Closed(cause) => Event::Closed(session, cause),
            events::Event::Written { token, write_start_ns, written_ns, own_ns } => {
                self.own_ns.push(own_ns);
                Event::Written(session, token, write_start_ns, written_ns)
            }
            events::Event::Acknowledged { token, outcome } => Event::Acknowledged(session, token, outcome),
            events::Event::Abandoned(token) => Event::Abandoned(session, token),
            events::Event::Declined(token) => Event::Declined(session, token),
            events::Event::Unacknowledged(token) => Event::Unacknowledged(session, token),
            events::Event::Resent(token) => Event::Resent(session, token),
            events::Event::Writable => Event::Writable(session),
            events::Event::Secured(_) => return,
            events::Event::NotPermitted(what) => return self.not_permitted.push(what),
            events::Event::Reauthenticated => return self.reauthenticated += 1,
            events::Event::WillLeft => return self.wills_left += 1,
            events::Event::Withheld(_) => return self.withheld += 1,
            events::Event::Discarded => return self.discarded += 1,
            events::Event::Missed(messages) => return self.missed += messages,
            events::Event::Overflowed(datagrams) => return self.overflowed += datagrams,
            events::Event::IdsReused(messages) => return self.ids_reused += messages,
            events::Event::Misreported(misreport) => return self.misreports.push(misreport),
            // Each of its sessions reports this as the cause of its end.
            events::Event::ProgramEnded(_) => return,
            events::Event::ProgramRoundTrip(took_ns) => return self.round_trips_ns.push(took_ns),
            events::Event::Delivered(delivery) => return self.delivered(session, delivery),
            events::Event::Requested { reply_to, delivery } => return self.requested(session, reply_to, delivery),
            events::Event::Replied { request, delivery } => return self.answered(session, request, delivery),
        });
    }

    fn is_at_work(&self, session: SessionId) -> bool {
        self.at_work && self.works == Some(session)
    }
}

impl Recorder {
    fn requested(&mut self, session: SessionId, reply_to: ReplyTo<'_>, delivery: Delivery<'_>) {
        if let Some(header) = delivery.read_header() {
            self.received_requests.push(ReceivedRequest {
                session,
                header,
                payload_bytes: delivery.payload.len(),
                address: reply_to.address.to_owned(),
                correlation: reply_to.correlation.to_owned(),
                at_ns: delivery.at_ns,
            });
        }
        self.delivered(session, delivery);
    }

    fn answered(&mut self, session: SessionId, request: Option<Token>, delivery: Delivery<'_>) {
        let payload = delivery.payload;
        let Some(header) = header::read_reply(payload, RUN, delivery.at_ns) else {
            self.foreign += 1;
            return;
        };
        let intact = is_intact(&payload[header::FULL..]);
        self.replies.push(ReceivedReply { session, request, header, payload_bytes: payload.len(), intact });
    }

    fn delivered(&mut self, session: SessionId, delivery: Delivery<'_>) {
        self.at_work |= self.works == Some(session);
        let payload = delivery.payload;
        let Some(header) = delivery.read_header().filter(|header| header::is_of_run(header, RUN)) else {
            let is_will = header::is_will_of_run(payload, RUN);
            *if is_will { &mut self.wills } else { &mut self.foreign } += 1;
            if payload.iter().all(|byte| *byte == 0) {
                self.bare.push(payload.len());
            }
            return;
        };
        let header_bytes = delivery.header.map_or_else(|| header::length_for(payload.len()).unwrap_or(0), |_| 0);
        let body = &payload[header_bytes..];
        self.arrived.push(ReceivedMessage {
            session,
            header,
            payload_bytes: payload.len(),
            intact: is_intact(body),
            retained: delivery.retained,
            at_ns: delivery.at_ns,
            empty_at_ns: delivery.empty_at_ns,
            kernel_ns: delivery.kernel_ns,
            unread: delivery.unread.to_vec(),
        });
    }
}

/// Is it a contiguous piece of the pool?
fn is_intact(body: &[u8]) -> bool {
    body.windows(2).all(|pair| usize::from(pair[1]) == (usize::from(pair[0]) + 1) % POOL_BYTES)
}
