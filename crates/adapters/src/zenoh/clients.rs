//! All sessions of a shard: what the engine requests is passed on to threads that may block, and their results are reported.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use ::zenoh::query::Query;
use pubmark_model::secret::Secret;
use pubmark_model::workload::Credentials;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::{Cause, Connected, Delivery, Event, Sink, Token};
use pubmark_protocol::reactor::{Reactor, Ready};
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};

use super::connection::Connection;
use super::helpers::Helpers;
use super::mailbox::{Arrived, Done, Key, Kind, Mailbox, Notice, Opened, Outcome, Post};
use super::opening::Opening;
use super::sender::{Job, JobContent, Sender, To};
use super::session::{Phase, Session};
use super::settings::{Role, Settings};
use super::variant::{self, Variant};
use crate::payload;

/// Most payload bytes that wait for the library, or one message of any size: what a publisher without pauses hands over in a
/// millisecond, the pause between its turns.
const MOST_BYTES: usize = 1 << 20;
/// Messages that wait for the library at most.
const MOST_MESSAGES: usize = 1_000;
/// Most requests of a session that are stored for a reply. The engine replies in time or never, and does not report which;
/// beyond this the oldest is one without a reply.
const MOST_REQUESTS: usize = 1 << 17;
/// Most messages that arrived and are reported in a turn: others of the shard are to have theirs, and a shard that shows nothing of
/// itself for long seems to have nothing to do.
const ARRIVALS_A_TURN: usize = 1_024;
/// Longest time that results of messages wait until the shard reads them, while some are with the sender.
const POLL_INTERVAL_NS: u64 = 2_000_000;

/// All sessions of a shard that use Zenoh in one way.
pub struct ZenohClients<V> {
    config: ShardConfig,
    reactor: Reactor,
    ready: Vec<Ready>,
    mailbox: Arc<Mailbox>,
    /// Taken from the mailbox. Messages that arrived stay in it until their turn.
    post: Post,
    /// Connections that ended, or over which the library took no message, and why. They are reported as ended after all that had
    /// arrived over them.
    broken: Vec<(Key, Cause)>,
    sessions: Vec<Session>,
    /// Handed over since the last flush.
    staged: Vec<Job>,
    /// Messages and bytes that the sender has not given back.
    messages: usize,
    bytes: usize,
    /// Sessions that had a message for which there was no space.
    without_room: Vec<u32>,
    /// Replies to requests whose connection ended.
    too_late: Vec<(SessionId, Token)>,
    // Dropped in this order: the sender may wait for what the helpers close.
    helpers: Helpers,
    sender: Sender,
    variant: PhantomData<fn() -> V>,
}

/// The addresses of endpoints: the library waits in vain for a second connection to one address.
fn each_once<'a>(endpoints: impl IntoIterator<Item = &'a Endpoint>) -> Vec<SocketAddr> {
    let mut addresses = vec![];
    for endpoint in endpoints {
        if !addresses.contains(&endpoint.address) {
            addresses.push(endpoint.address);
        }
    }
    addresses
}

impl<V: Variant> ZenohClients<V> {
    /// What these clients can do.
    pub const fn capabilities() -> Capabilities {
        variant::capabilities::<V>()
    }

    fn opening(&self, session: &Session) -> Opening {
        let config = &session.config;
        let endpoint = &self.config.endpoints[usize::from(config.endpoint)];
        // Replies arrive at the requester without a subscription.
        let sends_requests = config.options.reply_topic.is_some();
        let place = match (V::BETWEEN_PEERS, sends_requests || config.subscriptions.is_empty()) {
            (false, _) => Role::Router(endpoint.address),
            (true, false) => {
                // Those that publish, too, have to reach the subscribers of other nodes: each connects to the places before its own.
                let before = if config.publications.is_empty() { 0 } else { usize::from(config.endpoint) };
                Role::Listening(each_once(std::iter::once(endpoint).chain(&self.config.endpoints[..before])))
            }
            (true, true) => Role::Connecting(each_once(self.config.endpoints.iter())),
        };
        let sources = &self.config.sources;
        let source = (!sources.is_empty()).then(|| sources[session.id.0 as usize % sources.len()]);
        Opening {
            key: session.key(),
            wanted: Arc::clone(&session.wanted),
            place,
            settings: Settings {
                source,
                keep_alive_s: self.config.connections.keep_alive_s,
                maximum_message_bytes: self.config.connections.maximum_packet_bytes,
                credentials: config
                    .log_in(&self.config)
                    .map(|log_in| Credentials { user: log_in.user.to_owned(), password: Secret::new(log_in.password) }),
            },
            congestion: V::CONGESTION,
            publications: config.publications.clone(),
            filters: config.subscriptions.iter().map(|subscription| subscription.filter.clone()).collect(),
            answers: config.options.replies_at.is_some(),
            request_timeout: sends_requests.then(|| config.options.gives_up_after.unwrap_or_default()),
        }
    }

    fn has_room(&self, payload_bytes: usize) -> bool {
        self.messages < MOST_MESSAGES && (self.bytes == 0 || self.bytes + payload_bytes <= MOST_BYTES)
    }

    /// The connection over which a session can send N bytes now, or why it cannot.
    fn room_for(&mut self, session: SessionId, payload_bytes: usize) -> Result<Arc<Connection>, SendOutcome> {
        let most_bytes = Self::capabilities().maximum_payload_bytes;
        if payload_bytes > most_bytes as usize {
            return Err(SendOutcome::TooLarge(most_bytes));
        }
        let has_room = self.has_room(payload_bytes);
        let session = &mut self.sessions[session.0 as usize];
        let Phase::Open(connection) = &session.phase else {
            session.blocked = true;
            return Err(SendOutcome::WouldBlock);
        };
        if !has_room {
            if !std::mem::replace(&mut session.blocked, true) {
                self.without_room.push(session.id.0);
            }
            self.sender.mark_full();
            return Err(SendOutcome::WouldBlock);
        }
        Ok(Arc::clone(connection))
    }

    fn stage(
        &mut self,
        session: SessionId,
        connection: Arc<Connection>,
        token: Token,
        payload_bytes: usize,
        content: JobContent,
    ) {
        let session = &mut self.sessions[session.0 as usize];
        session.pending.push_back(token);
        let key = session.key();
        let to =
            if self.staged.last().is_some_and(|before| before.key == key) { To::Same } else { To::Over(connection) };
        self.staged.push(Job { to, key, content });
        self.messages += 1;
        self.bytes += payload_bytes;
    }

    /// Reports what waits in the mailbox; of the messages that arrived, those of a turn.
    fn collect(&mut self, sink: &mut impl Sink) {
        let mut post = std::mem::take(&mut self.post);
        self.report_too_late(sink);
        if !post.has_arrivals() {
            self.mailbox.take(&mut post);
            self.report_others(&mut post, sink);
        }
        self.deliver(&mut post, sink);
        if !post.has_arrivals() {
            post.clear();
            for (key, cause) in std::mem::take(&mut self.broken) {
                self.lose(key, cause, sink);
            }
        }
        self.post = post;
        self.report_writable(sink);
    }

    /// Reports all but the messages that arrived.
    fn report_others(&mut self, post: &mut Post, sink: &mut impl Sink) {
        for notice in post.notices.drain(..) {
            match notice {
                Notice::Opened(key, outcome) => self.opened(key, outcome, sink),
                Notice::Lost(key) => {
                    let words = "the connection ended, or the other side was silent for as long as its lease";
                    self.broken.push((key, Cause::Dropped(words.to_owned())));
                }
            }
        }
        self.settle(post.done.drain(..), sink);
        while let Some((session, messages)) = post.missed.pop_first() {
            sink.event(SessionId(session), Event::Missed(messages));
        }
    }

    fn opened(&mut self, key: Key, outcome: Result<Opened, Cause>, sink: &mut impl Sink) {
        let session = &mut self.sessions[key.session as usize];
        if session.key() != key || !matches!(session.phase, Phase::Opening) {
            if let Ok(opened) = outcome {
                self.helpers.close(opened.connection);
            }
            return;
        }
        let id = session.id;
        match outcome {
            Ok(Opened { connection, subscriptions }) => {
                session.phase = Phase::Open(connection);
                sink.event(id, Event::Connected(Connected::default()));
                for (index, made) in subscriptions.into_iter().enumerate() {
                    sink.event(
                        id,
                        Event::Subscribed { index, granted: made.map(|()| session.config.subscriptions[index].qos) },
                    );
                }
                if std::mem::take(&mut session.blocked) {
                    sink.event(id, Event::Writable);
                }
            }
            Err(cause) => self.end(key.session, cause, sink),
        }
    }

    /// Reports the results of messages for the library. Connections over which it took none are broken.
    fn settle(&mut self, done: impl Iterator<Item = Done>, sink: &mut impl Sink) {
        for Done { key, payload_bytes, outcome } in done {
            self.messages -= 1;
            self.bytes -= payload_bytes;
            let session = &mut self.sessions[key.session as usize];
            if session.key() != key || matches!(outcome, Outcome::Skipped) {
                // Reported when its connection ended.
                continue;
            }
            let Some(token) = session.pending.pop_front() else { continue };
            session.settled += 1;
            match outcome {
                Outcome::Handed { write_start_ns, written_ns, own_ns } => {
                    sink.event(session.id, Event::Written { token, write_start_ns, written_ns, own_ns });
                }
                Outcome::Failed(words) => {
                    sink.event(session.id, Event::Abandoned(token));
                    self.broken.push((key, Cause::Dropped(format!("the library took no message: {words}"))));
                }
                Outcome::Skipped => {}
            }
        }
    }

    /// Delivers the messages of a turn.
    fn deliver(&mut self, post: &mut Post, sink: &mut impl Sink) {
        let mut forgotten = Vec::new();
        for _ in 0..ARRIVALS_A_TURN {
            let Some(Arrived { key, at_ns, kind, payload }) = post.next_arrival() else { break };
            let session = &mut self.sessions[key.session as usize];
            // The library reads its sockets itself: when they were empty is not known.
            let delivery = Delivery { payload, at_ns, ..Delivery::default() };
            match kind {
                Kind::Request(request) if session.key() != key => forgotten.push((key, *request)),
                _ if session.key() != key => {}
                Kind::Plain => sink.event(session.id, Event::Delivered(delivery)),
                Kind::Reply(request) => sink.event(session.id, Event::Replied { request: Some(request), delivery }),
                Kind::Request(request) => {
                    let number = session.next_request;
                    session.next_request += 1;
                    let reply_to = ReplyTo { address: request.key_expr().as_str(), correlation: &number.to_le_bytes() };
                    sink.event(session.id, Event::Requested { reply_to, delivery });
                    session.requests.insert(number, *request);
                    if session.requests.len() > MOST_REQUESTS {
                        forgotten.extend(session.requests.pop_first().map(|(_, oldest)| (key, oldest)));
                    }
                }
            }
        }
        for (key, request) in forgotten {
            self.forget(key, vec![request]);
        }
    }

    /// Makes the sender drop requests without a reply: the library notifies the requester, which may block.
    fn forget(&mut self, key: Key, requests: Vec<Query>) {
        self.sender.give(&mut vec![Job { to: To::Nowhere, key, content: JobContent::Forget(requests) }]);
    }

    /// Replies that were too late are never delivered.
    fn report_too_late(&mut self, sink: &mut impl Sink) {
        for (session, token) in self.too_late.drain(..) {
            sink.event(session, Event::Abandoned(token));
        }
    }

    fn lose(&mut self, key: Key, cause: Cause, sink: &mut impl Sink) {
        if self.sessions[key.session as usize].key() == key {
            self.end(key.session, cause, sink);
        }
    }

    /// Ends a session's connection, or the attempt to make one. What the library has, or is being given, counts as handed
    /// over: it may still arrive.
    fn end(&mut self, index: u32, cause: Cause, sink: &mut impl Sink) {
        let phase = std::mem::replace(&mut self.sessions[index as usize].phase, Phase::Closed);
        if let Phase::Open(connection) = phase {
            let begun = connection.gate.close();
            let done = self.mailbox.take_done();
            self.settle(done.into_iter(), sink);
            let session = &mut self.sessions[index as usize];
            let now_ns = clock::monotonic_ns();
            let with_library = begun.saturating_sub(session.settled);
            for (place, token) in std::mem::take(&mut session.pending).into_iter().enumerate() {
                if (place as u64) < with_library {
                    // When the library was given it is not known here.
                    let (write_start_ns, written_ns, own_ns) = (now_ns, now_ns, u64::MAX);
                    sink.event(session.id, Event::Written { token, write_start_ns, written_ns, own_ns });
                } else {
                    sink.event(session.id, Event::Abandoned(token));
                }
            }
            self.helpers.close(connection);
        }
        let session = &mut self.sessions[index as usize];
        let (key, requests) = (session.key(), std::mem::take(&mut session.requests));
        session.next_generation();
        sink.event(session.id, Event::Closed(cause));
        if !requests.is_empty() {
            self.forget(key, requests.into_values().collect());
        }
    }

    /// Reports sessions as writable that had a message for which there was no space.
    fn report_writable(&mut self, sink: &mut impl Sink) {
        if self.without_room.is_empty() || 2 * self.messages > MOST_MESSAGES || 2 * self.bytes > MOST_BYTES {
            return;
        }
        for index in std::mem::take(&mut self.without_room) {
            let session = &mut self.sessions[index as usize];
            if matches!(session.phase, Phase::Open(_)) && std::mem::take(&mut session.blocked) {
                sink.event(session.id, Event::Writable);
            }
        }
    }
}

impl<V: Variant> Clients for ZenohClients<V> {
    const QUEUES_ARRIVALS: bool = true;

    fn open(config: ShardConfig) -> Result<ZenohClients<V>, OpenError> {
        let system = |what| move |source| OpenError::System { what, source };
        let reactor = Reactor::new().map_err(system("open epoll and its timer"))?;
        let mailbox = Arc::new(Mailbox::new(reactor.waker()));
        let helpers = Helpers::start(&mailbox).map_err(system("start a thread"))?;
        let sender = Sender::start(config.clone(), Arc::clone(&mailbox)).map_err(system("start a thread"))?;
        Ok(ZenohClients {
            config,
            reactor,
            ready: Vec::new(),
            mailbox,
            post: Post::default(),
            broken: Vec::new(),
            sessions: Vec::new(),
            staged: Vec::new(),
            messages: 0,
            bytes: 0,
            without_room: Vec::new(),
            too_late: Vec::new(),
            helpers,
            sender,
            variant: PhantomData,
        })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        self.sessions.push(Session::new(id, config));
        id
    }

    fn can_connect(&self) -> bool {
        self.helpers.can_open()
    }

    fn connect(&mut self, session: SessionId, _: &mut impl Sink) {
        let session = &mut self.sessions[session.0 as usize];
        if matches!(session.phase, Phase::Closed) {
            session.phase = Phase::Opening;
            session.next_generation();
            let index = session.id.0 as usize;
            self.helpers.open(Box::new(self.opening(&self.sessions[index])));
        }
    }

    fn disconnect(&mut self, session: SessionId, _: Goodbye, sink: &mut impl Sink) {
        if !matches!(self.sessions[session.0 as usize].phase, Phase::Closed) {
            self.end(session.0, Cause::Ours, sink);
            // What was staged for it is not sent any more, and comes back.
            self.sender.give(&mut self.staged);
        }
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        let payload_bytes = message.payload_bytes as usize;
        match self.room_for(session, payload_bytes) {
            Ok(connection) => {
                self.stage(session, connection, message.token(), payload_bytes, JobContent::Message(message));
                SendOutcome::Accepted
            }
            Err(taken) => taken,
        }
    }

    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        let payload_bytes = payload::reply_bytes(reply);
        let connection = match self.room_for(session, payload_bytes) {
            Ok(connection) => connection,
            Err(taken) => return taken,
        };
        let number = reply.to.correlation.try_into().ok().map(u64::from_le_bytes);
        let Some(request) = number.and_then(|number| self.sessions[session.0 as usize].requests.remove(&number)) else {
            self.too_late.push((session, reply.token()));
            return SendOutcome::Accepted;
        };
        let &OutgoingReply { qos, number, publisher, sequence, due_ns, timing, payload_bytes: asked_bytes, .. } = reply;
        let to = ReplyTo { address: "", correlation: &[] };
        let stored = OutgoingReply { to, qos, number, publisher, sequence, due_ns, timing, payload_bytes: asked_bytes };
        self.stage(session, connection, reply.token(), payload_bytes, JobContent::Reply(Box::new((request, stored))));
        SendOutcome::Accepted
    }

    fn flush(&mut self, _: SessionId, sink: &mut impl Sink) {
        self.sender.give(&mut self.staged);
        self.report_too_late(sink);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        let poll_ns = clock::monotonic_ns() + POLL_INTERVAL_NS;
        let until_ns = match until_ns {
            _ if self.has_unread() => Some(0),
            // Arrivals need not wake a shard that polls soon: their times are recorded already.
            Some(until_ns) if until_ns <= poll_ns => Some(until_ns),
            _ if !self.mailbox.wait_for_arrivals() => Some(0),
            _ if self.messages > 0 => Some(poll_ns),
            until_ns => until_ns,
        };
        Ok(self.reactor.wait(until_ns, &mut self.ready)?.at_ns)
    }

    fn serve(&mut self, _: u64, sink: &mut impl Sink) {
        self.collect(sink);
    }

    fn has_unread(&self) -> bool {
        !self.too_late.is_empty() || self.post.has_arrivals() || !self.broken.is_empty()
    }

    fn waker(&self) -> Waker {
        self.reactor.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.bytes as u64
    }
}

impl<V> Drop for ZenohClients<V> {
    /// Sessions that are still open are ended as well; the helper threads wait for that.
    fn drop(&mut self) {
        for session in &mut self.sessions {
            if let Phase::Open(connection) = std::mem::replace(&mut session.phase, Phase::Closed) {
                connection.gate.close();
                self.helpers.close(connection);
            }
            session.next_generation();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ::zenoh::bytes::ZBytes;
    use pubmark_protocol::clients::SessionOptions;

    use super::*;
    use crate::zenoh::connection::unconnected;
    use crate::zenoh::variant::Peers;

    /// The events in words.
    struct Words(Vec<String>);

    impl Sink for Words {
        fn event(&mut self, _: SessionId, event: Event<'_>) {
            self.0.push(match event {
                Event::Written { token, .. } => format!("written {}", token.sequence),
                Event::Abandoned(token) => format!("abandoned {}", token.sequence),
                Event::Closed(cause) => format!("closed: {cause:?}"),
                Event::Delivered(delivery) => format!("delivered {:?}", delivery.payload),
                other => format!("{other:?}"),
            });
        }
    }

    /// Clients with one session.
    fn of_one_session() -> (ZenohClients<Peers>, SessionId) {
        let mut clients = ZenohClients::<Peers>::open(ShardConfig::default()).unwrap();
        let id = clients.add_session(SessionConfig {
            endpoint: 0,
            network: None,
            client_id: "leaving".into(),
            credentials: None,
            token: None,
            nkey: None,
            certificate: None,
            persistent: false,
            in_flight_window: 20,
            publications: vec![],
            subscriptions: vec![],
            options: SessionOptions::default(),
        });
        (clients, id)
    }

    /// Gives the only session these messages over an open connection. The library was given the first one, and took none.
    fn fail_first(clients: &mut ZenohClients<Peers>, sequences: std::ops::RangeInclusive<u32>) {
        let connection = unconnected();
        assert!(connection.gate.enter());
        connection.gate.leave();
        let messages = sequences.clone().count();
        let session = &mut clients.sessions[0];
        session.phase = Phase::Open(connection);
        session.pending.extend(sequences.map(|sequence| Token { publication: 0, sequence }));
        let key = session.key();
        (clients.messages, clients.bytes) = (messages, messages);
        let failed = Done { key, payload_bytes: 1, outcome: Outcome::Failed("it is closed".to_owned()) };
        clients.mailbox.settle(&mut vec![failed], false);
    }

    #[test]
    fn a_message_that_failed_as_its_session_left_ends_the_connection_once() {
        let (mut clients, id) = of_one_session();
        fail_first(&mut clients, 1..=3);
        let mut words = Words(vec![]);
        clients.disconnect(id, Goodbye::Graceful, &mut words);
        clients.serve(0, &mut words);
        assert_eq!(words.0, ["abandoned 1", "abandoned 2", "abandoned 3", "closed: Ours"]);
    }

    #[test]
    fn what_arrived_before_a_message_failed_is_delivered_before_the_connection_ends() {
        let (mut clients, _) = of_one_session();
        fail_first(&mut clients, 1..=1);
        clients.mailbox.deliver(clients.sessions[0].key(), 5, &ZBytes::from(vec![7]), Kind::Plain);
        let mut words = Words(vec![]);
        clients.serve(0, &mut words);
        assert_eq!(words.0.len(), 3, "{:?}", words.0);
        assert_eq!(words.0[..2], ["abandoned 1", "delivered [7]"]);
        assert!(words.0[2].starts_with("closed: Dropped"), "{:?}", words.0);
    }

    #[test]
    fn what_arrived_is_reported_a_turn_at_a_time_and_the_end_of_its_connection_last() {
        let (mut clients, _) = of_one_session();
        let key = clients.sessions[0].key();
        (0..=ARRIVALS_A_TURN)
            .for_each(|at| clients.mailbox.deliver(key, at as u64, &ZBytes::from(vec![7]), Kind::Plain));
        clients.mailbox.tell(Notice::Lost(key));
        let turn = |clients: &mut ZenohClients<Peers>| {
            let mut words = Words(vec![]);
            clients.serve(0, &mut words);
            (words.0.len(), words.0.iter().any(|word| word.starts_with("closed")), clients.has_unread())
        };
        assert_eq!(turn(&mut clients), (ARRIVALS_A_TURN, false, true));
        assert_eq!(turn(&mut clients), (2, true, false));
    }
}
