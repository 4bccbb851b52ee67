//! A broker in memory that follows a script, and keeps a journal of its actions.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use pubmark_model::topic::TopicFilter;
use pubmark_protocol::clients::{Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Reason, Token};
use pubmark_protocol::header;
use pubmark_protocol::timing::Timing;

/// A client: a session of a shard.
pub type Client = (usize, SessionId);

/// An event that reaches a client.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// The connection is accepted; whether its session was still present.
    Accepted { session_present: bool },
    /// The connection is refused.
    Refused(Cause),
    /// A subscription is granted or refused.
    Subscribed(usize, Result<(), Reason>),
    /// A message is acknowledged, or refused.
    Acknowledged(Token, Result<(), Reason>),
    /// A message of another client.
    Message(Rc<[u8]>),
    /// A request of another client, with its reply topic.
    Request(Rc<[u8]>),
    /// A reply to this request of the client.
    Answer(Token, Rc<[u8]>),
    /// It learns only now that a message was written; when that was, and for how long it had held the message before.
    Written(Token, u64, u64),
    /// It may not do this; its connection stays.
    NotPermitted(&'static str),
    /// Its connection is cut.
    Cut(Cause),
}

/// The delays after which the copies of one message arrive, ns: none if it is lost, several if it is duplicated.
pub type CopyDelays = Vec<u64>;

/// Delays after which copies of a message arrive, by publisher, sequence number and receiving client.
pub type DelaysOfCopy = dyn FnMut(u32, u32, Client) -> CopyDelays;

/// The broker's response to a subscription or a message: accepted, or the reason for a refusal.
pub type Response = Result<(), Reason>;

/// The broker's action for one copy of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The receiving client.
    pub client: Client,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// The message's sequence number.
    pub sequence: u32,
    /// When it was due, ns.
    pub due_ns: u64,
    /// When it arrives, ns; `None` if it never does.
    pub at_ns: Option<u64>,
}

/// An event in transit to a client.
struct InTransit {
    at_ns: u64,
    /// Consecutive number, so that events at the same time keep their order.
    number: u64,
    session: SessionId,
    /// The client's connection at that time.
    connection: u64,
    event: ClientEvent,
}

impl PartialEq for InTransit {
    fn eq(&self, other: &InTransit) -> bool {
        self.number == other.number
    }
}

impl Eq for InTransit {}

impl PartialOrd for InTransit {
    fn partial_cmp(&self, other: &InTransit) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InTransit {
    /// The event that comes first compares as the greatest.
    fn cmp(&self, other: &InTransit) -> Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

/// The broker's state of a client.
pub struct ClientState {
    /// Its settings.
    pub config: SessionConfig,
    filters: Vec<TopicFilter>,
    /// By filter: is it subscribed now?
    subscribed: Vec<bool>,
    /// The number of its connection, if it is connected.
    connection: Option<u64>,
}

type Action = Box<dyn FnOnce(&mut Broker)>;

/// The response to a connect, by client name.
type ConnectResponse = dyn FnMut(&str) -> Result<(), Cause>;

/// The broker, its clock, and its script.
pub struct Broker {
    /// The time of the whole simulation.
    pub now_ns: u64,
    /// Number of the run.
    run: u32,
    /// Time from a connect to its acceptance.
    pub accepts_after_ns: u64,
    /// Most clients of a shard that connect at a time.
    pub connects_at_once: usize,
    /// Time from a message to its acknowledgement.
    pub acknowledges_after_ns: u64,
    /// Delays after which copies of a message arrive, by publisher, sequence number and receiving client.
    pub copy_delays: Box<DelaysOfCopy>,
    /// The response to a connect, by client name.
    pub accepts: Box<ConnectResponse>,
    /// The response to a subscription, by filter.
    pub grants: Box<dyn FnMut(&str) -> Response>,
    /// The acknowledgement of a message, by sequence number; `None`: never.
    pub acknowledges: Box<dyn FnMut(u32) -> Option<Response>>,
    /// By how much later the due time is that its copies of a message carry, ns; only of messages with a full header.
    pub moves_due_ns: u64,
    /// A message is also delivered if it is refused.
    pub delivers_refused: bool,
    /// Time from the write of a message to the report of it, by sequence number, ns; a report with a delay is overtaken by
    /// those of later messages.
    pub reports_written_after: Box<dyn FnMut(u32) -> u64>,
    /// For how long a client holds each message before its write, which is a delay of pubmark's, ns.
    pub holds_ns: u64,
    /// Does the client withhold a message, by sequence number? It is reported and not sent.
    pub withholds: Box<dyn FnMut(u32) -> bool>,
    /// Subscribers with a processing time learn whether a message had arrived when they were done with the one before.
    pub tells_waits: bool,
    /// Requests reach their responders with a reply topic. A responder's reply is refused as too large.
    pub passes_requests: bool,
    /// How long requests may have been in the socket of their responder when they are read, ns.
    pub read_late_ns: u64,
    /// The system accepts no replies of responders.
    pub blocks_replies: bool,
    /// Until when it surely accepted none, ns; reported once.
    pub replies_free_since_ns: Option<u64>,
    /// Delay of the reply to a request, by sequence number, ns after its arrival; `None`: never.
    pub replies: Box<dyn FnMut(u32) -> Option<u64>>,
    /// Events that a client reports in one call at most.
    pub serves_at_most: usize,
    /// Number of connections that were cut.
    pub cuts: u64,
    /// Clients that disconnected without a graceful disconnect.
    pub ended_without_disconnect: u64,
    /// Clients that disconnected gracefully with unacknowledged messages.
    pub ended_before_acknowledged: u64,
    /// Number of messages that clients published.
    pub published: u64,
    /// Messages in transit on a connection when it ended.
    pub overtaken: u64,
    /// The action for each copy, in the order of sending.
    pub journal: Vec<Copy>,
    clients: BTreeMap<Client, ClientState>,
    connections: u64,
    /// By shard: events in transit.
    in_transit: BTreeMap<usize, BinaryHeap<InTransit>>,
    sent: u64,
    script: Vec<(u64, Action)>,
}

impl Broker {
    /// A broker that accepts and delivers everything within a tenth of a millisecond.
    pub fn new(now_ns: u64, run: u32) -> Broker {
        Broker {
            now_ns,
            run,
            accepts_after_ns: 100_000,
            connects_at_once: usize::MAX,
            acknowledges_after_ns: 100_000,
            copy_delays: Box::new(|_, _, _| vec![100_000]),
            accepts: Box::new(|_| Ok(())),
            grants: Box::new(|_| Ok(())),
            acknowledges: Box::new(|_| Some(Ok(()))),
            moves_due_ns: 0,
            delivers_refused: false,
            reports_written_after: Box::new(|_| 0),
            holds_ns: 0,
            withholds: Box::new(|_| false),
            tells_waits: false,
            passes_requests: false,
            read_late_ns: 0,
            blocks_replies: false,
            replies_free_since_ns: None,
            replies: Box::new(|_| None),
            serves_at_most: usize::MAX,
            cuts: 0,
            ended_without_disconnect: 0,
            ended_before_acknowledged: 0,
            published: 0,
            overtaken: 0,
            journal: vec![],
            clients: BTreeMap::new(),
            connections: 0,
            in_transit: BTreeMap::new(),
            sent: 0,
            script: vec![],
        }
    }

    /// Schedules an action.
    pub fn at(&mut self, at_ns: u64, act: impl FnOnce(&mut Broker) + 'static) {
        self.script.push((at_ns, Box::new(act)));
    }

    /// Executes the actions that are due by now.
    pub fn act(&mut self) {
        let now_ns = self.now_ns;
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.script).into_iter().partition(|(at_ns, _)| *at_ns <= now_ns);
        self.script = later;
        due.sort_by_key(|(at_ns, _)| *at_ns);
        due.into_iter().for_each(|(_, act)| act(self));
    }

    /// Time of the next event, without events for shards that do not poll before a time of their own.
    pub fn next_ns(&self, is_polling: impl Fn(usize) -> bool) -> Option<u64> {
        let script = self.script.iter().map(|(at_ns, _)| *at_ns).min();
        let polling = self.in_transit.iter().filter(|(shard, _)| is_polling(**shard));
        let in_transit = polling.filter_map(|(_, in_transit)| in_transit.peek()).map(|first| first.at_ns);
        script.into_iter().chain(in_transit).min()
    }

    /// The first event that reaches a shard by now.
    pub fn take(&mut self, shard: usize) -> Option<(SessionId, ClientEvent)> {
        let in_transit = self.in_transit.get_mut(&shard)?;
        while in_transit.peek().is_some_and(|first| first.at_ns <= self.now_ns) {
            let InTransit { session, connection, event, .. } = in_transit.pop()?;
            // Events in transit on an earlier connection were lost with it.
            let known = self.clients.get(&(shard, session))?;
            if matches!(event, ClientEvent::Refused(_) | ClientEvent::Cut(_)) || known.connection == Some(connection) {
                return Some((session, event));
            }
            self.overtaken += u64::from(matches!(event, ClientEvent::Message(_)));
        }
        None
    }

    fn send(&mut self, at_ns: u64, (shard, session): Client, event: ClientEvent) {
        let known = self.clients.get(&(shard, session));
        let connection = known.and_then(|known| known.connection).unwrap_or_default();
        self.sent += 1;
        let in_transit = InTransit { at_ns, number: self.sent, session, connection, event };
        self.in_transit.entry(shard).or_default().push(in_transit);
    }

    /// Registers a client.
    pub fn add(&mut self, client: Client, config: SessionConfig) {
        let filters: Vec<_> = config.subscriptions.iter().map(|entry| TopicFilter(entry.filter.to_string())).collect();
        let subscribed = vec![false; filters.len()];
        self.clients.insert(client, ClientState { config, filters, subscribed, connection: None });
    }

    /// A client connects.
    pub fn connect(&mut self, client: Client) {
        let at_ns = self.now_ns + self.accepts_after_ns;
        let Some(known) = self.clients.get(&client) else { return };
        let name = known.config.client_id.clone();
        if let Err(cause) = (self.accepts)(&name) {
            return self.send(at_ns, client, ClientEvent::Refused(cause));
        }
        self.connections += 1;
        let connection = self.connections;
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.connection = Some(connection);
        let session_present = known.config.persistent && known.subscribed.iter().any(|subscribed| *subscribed);
        if !session_present {
            known.subscribed.fill(false);
        }
        self.send(at_ns, client, ClientEvent::Accepted { session_present });
        if !session_present {
            self.subscribe_all(client, at_ns);
        }
    }

    fn subscribe_all(&mut self, client: Client, at_ns: u64) {
        for index in 0..self.clients[&client].filters.len() {
            let granted = (self.grants)(&self.clients[&client].filters[index].0);
            self.clients.get_mut(&client).expect("it is known").subscribed[index] = granted.is_ok();
            self.send(at_ns, client, ClientEvent::Subscribed(index, granted));
        }
    }

    /// A client disconnects, gracefully or not.
    pub fn disconnect(&mut self, client: Client) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.connection = None;
        if !known.config.persistent {
            known.subscribed.fill(false);
        }
    }

    /// Cuts the connections of all connected clients whose identifiers end with `part`: `p0` is the first device, `s0` the first
    /// subscriber.
    pub fn cut(&mut self, part: &str) {
        let named =
            |(_, known): &(&Client, &ClientState)| known.connection.is_some() && known.config.client_id.ends_with(part);
        let clients: Vec<Client> = self.clients.iter().filter(named).map(|(client, _)| *client).collect();
        self.cuts += clients.len() as u64;
        for client in clients {
            self.send(self.now_ns, client, ClientEvent::Cut(Cause::Dropped("cut by the script".to_owned())));
            self.disconnect(client);
        }
    }

    /// Revokes a filter of the connected clients whose identifiers end with `part`; their connections stay.
    pub fn revoke(&mut self, part: &str, filter: &str) {
        let mut revoked = vec![];
        for (client, known) in &mut self.clients {
            if known.connection.is_none() || !known.config.client_id.ends_with(part) {
                continue;
            }
            for (index, _) in known.filters.iter().enumerate().filter(|(_, entry)| entry.0 == filter) {
                known.subscribed[index] = false;
                revoked.push((*client, index));
            }
        }
        for (client, index) in revoked {
            let reason = Reason::words("revoked by the script");
            self.send(self.now_ns, client, ClientEvent::Subscribed(index, Err(reason)));
        }
    }

    /// Does not permit this to the connected clients whose identifiers end with `part`; their connections stay.
    pub fn forbid(&mut self, part: &str, what: &'static str) {
        let named =
            |(_, known): &(&Client, &ClientState)| known.connection.is_some() && known.config.client_id.ends_with(part);
        let clients: Vec<Client> = self.clients.iter().filter(named).map(|(client, _)| *client).collect();
        for client in clients {
            self.send(self.now_ns, client, ClientEvent::NotPermitted(what));
        }
    }

    /// A client publishes; `awaited` says whether it expects an acknowledgement.
    pub fn publish(&mut self, client: Client, message: &Outgoing, awaited: bool, payload: Rc<[u8]>) {
        self.published += 1;
        let (sequence, due_ns) = (message.sequence, message.timing.due_ns);
        let outcome = if awaited { (self.acknowledges)(sequence) } else { None };
        if let Some(outcome) = outcome.clone() {
            let at_ns = self.now_ns + self.acknowledges_after_ns;
            self.send(at_ns, client, ClientEvent::Acknowledged(message.token(), outcome));
        }
        let known = &self.clients[&client];
        let publication = &known.config.publications[usize::from(message.publication)];
        let (publisher, topic, run) = (publication.publisher, publication.topic.clone(), self.run);
        let is_request = known.config.options.reply_topic.is_some();
        if is_request && let Some(after_ns) = (self.replies)(sequence) {
            let mut reply = Vec::new();
            header::write_reply(&mut reply, run, publisher, sequence, due_ns);
            // A responder in time: the reply has the lag of its request.
            let (now_ns, lag_ns) = (self.now_ns, message.timing.lag_at(self.now_ns));
            header::patch_write_start(&mut reply, &Timing { due_ns: now_ns, submitted_ns: now_ns, lag_ns }, now_ns);
            self.send(self.now_ns + after_ns, client, ClientEvent::Answer(message.token(), reply.into()));
        }
        if matches!(outcome, Some(Err(_))) && !self.delivers_refused {
            return;
        }
        let payload = if self.moves_due_ns > 0 { with_due(&payload, due_ns + self.moves_due_ns) } else { payload };
        for (listener, is_connected) in self.listeners(&topic) {
            let copy = Copy { client: listener, publisher, sequence, due_ns, at_ns: None };
            let times = if is_connected { (self.copy_delays)(publisher, sequence, listener) } else { vec![] };
            if times.is_empty() {
                self.journal.push(copy);
            }
            for after_ns in times {
                let at_ns = self.now_ns + after_ns;
                self.journal.push(Copy { at_ns: Some(at_ns), ..copy });
                let payload = Rc::clone(&payload);
                let is_passed = is_request && self.passes_requests;
                let event = if is_passed { ClientEvent::Request(payload) } else { ClientEvent::Message(payload) };
                self.send(at_ns, listener, event);
            }
        }
    }

    /// Reports to a client that a message was written now, or after it was held. Returns false if the report comes later.
    pub fn reports_written(&mut self, client: Client, token: Token) -> bool {
        let written_ns = self.now_ns + self.holds_ns;
        let after_ns = self.holds_ns + (self.reports_written_after)(token.sequence);
        if after_ns > 0 {
            self.send(self.now_ns + after_ns, client, ClientEvent::Written(token, written_ns, self.holds_ns));
        }
        after_ns == 0
    }

    /// Clients with a subscription that matches a topic, and whether they are connected.
    fn listeners(&self, topic: &str) -> Vec<(Client, bool)> {
        let receives = |(_, known): &(&Client, &ClientState)| {
            let mut filters = known.filters.iter().zip(&known.subscribed);
            filters.any(|(filter, subscribed)| *subscribed && filter.matches(topic))
        };
        let listeners = self.clients.iter().filter(receives);
        listeners.map(|(client, known)| (*client, known.connection.is_some())).collect()
    }
}

/// The same payload with another due time, which is in bytes 12 to 18 of a full header.
fn with_due(payload: &[u8], due_ns: u64) -> Rc<[u8]> {
    let mut changed = payload.to_vec();
    changed[12..19].copy_from_slice(&due_ns.to_le_bytes()[..7]);
    changed.into()
}
