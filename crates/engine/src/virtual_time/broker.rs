//! A broker in memory that does as a script says, and writes down what it did.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use pubmark_model::topic::TopicFilter;
use pubmark_protocol::clients::{Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Reason, Token};
use pubmark_protocol::header;

/// A client: a session of a shard.
pub type Client = (usize, SessionId);

/// What reaches a client.
#[derive(Clone, Debug)]
pub enum News {
    /// It is accepted, and its session was still there or not.
    Accepted { session_present: bool },
    /// It is not.
    Refused(Cause),
    /// A subscription is granted, or not.
    Subscribed(usize, Result<(), Reason>),
    /// A message is acknowledged, or refused.
    Acknowledged(Token, Result<(), Reason>),
    /// A message of another client.
    Message(Rc<[u8]>),
    /// An answer to this request of its own.
    Answer(Token, Rc<[u8]>),
    /// Its connection is cut.
    Cut(Cause),
}

/// What becomes of one copy of a message: it arrives after these times, none if it is lost, several if it is multiplied.
pub type Fate = Vec<u64>;

/// What becomes of a copy of this publisher's message, by its number, for this client.
pub type Fates = dyn FnMut(u32, u32, Client) -> Fate;

/// What the broker says to a subscription or a message: it takes it, or why it does not.
pub type Reply = Result<(), Reason>;

/// What the broker did with one copy of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// For this client.
    pub client: Client,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// The message's number.
    pub sequence: u32,
    /// When it was due, ns.
    pub due_ns: u64,
    /// When it arrives, ns; `None` for one that never does.
    pub at_ns: Option<u64>,
}

/// Something on its way to a client.
struct Coming {
    at_ns: u64,
    /// Counts what was ever sent, so that what comes at one time keeps its order.
    number: u64,
    session: SessionId,
    /// The client's connection at that time.
    connection: u64,
    news: News,
}

impl PartialEq for Coming {
    fn eq(&self, other: &Coming) -> bool {
        self.number == other.number
    }
}

impl Eq for Coming {}

impl PartialOrd for Coming {
    fn partial_cmp(&self, other: &Coming) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Coming {
    /// The one that comes first is the greatest.
    fn cmp(&self, other: &Coming) -> Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

/// A client as the broker knows it.
pub struct Known {
    /// Its settings.
    pub config: SessionConfig,
    filters: Vec<TopicFilter>,
    /// The subscriptions that it has now.
    subscribed: Vec<bool>,
    /// It is connected, by the number of its connection.
    connection: Option<u64>,
}

type Act = Box<dyn FnOnce(&mut Broker)>;

/// How a connect of a client of this name is answered.
type Accepts = dyn FnMut(&str) -> Result<(), Cause>;

/// The broker, its clock, and its script.
pub struct Broker {
    /// The one time of all.
    pub now_ns: u64,
    /// Number of the run.
    run: u32,
    /// From a connect to its acceptance.
    pub accepts_after_ns: u64,
    /// From a message to its acknowledgement.
    pub acknowledges_after_ns: u64,
    /// What becomes of a copy: of this publisher and number, for this client.
    pub fate: Box<Fates>,
    /// How a connect of a client of this name is answered.
    pub accepts: Box<Accepts>,
    /// How a subscription is answered, by filter.
    pub grants: Box<dyn FnMut(&str) -> Reply>,
    /// How a message is acknowledged, by number; `None`: never.
    pub acknowledges: Box<dyn FnMut(u32) -> Option<Reply>>,
    /// When a request is answered, by number, ns after it came; `None`: never.
    pub replies: Box<dyn FnMut(u32) -> Option<u64>>,
    /// Connections that were cut.
    pub cuts: u64,
    /// Clients that went without a goodbye.
    pub gone_without_goodbye: u64,
    /// Clients that left as they should with messages that were not acknowledged.
    pub gone_before_acknowledged: u64,
    /// Messages that clients published.
    pub published: u64,
    /// Messages that were on their way on a connection that ended.
    pub overtaken: u64,
    /// What it did with each copy, in the order of sending.
    pub journal: Vec<Copy>,
    clients: BTreeMap<Client, Known>,
    connections: u64,
    /// By shard: what is on its way.
    coming: BTreeMap<usize, BinaryHeap<Coming>>,
    sent: u64,
    script: Vec<(u64, Act)>,
}

impl Broker {
    /// One that takes and delivers everything in a tenth of a millisecond.
    pub fn new(now_ns: u64, run: u32) -> Broker {
        Broker {
            now_ns,
            run,
            accepts_after_ns: 100_000,
            acknowledges_after_ns: 100_000,
            fate: Box::new(|_, _, _| vec![100_000]),
            accepts: Box::new(|_| Ok(())),
            grants: Box::new(|_| Ok(())),
            acknowledges: Box::new(|_| Some(Ok(()))),
            replies: Box::new(|_| None),
            cuts: 0,
            gone_without_goodbye: 0,
            gone_before_acknowledged: 0,
            published: 0,
            overtaken: 0,
            journal: vec![],
            clients: BTreeMap::new(),
            connections: 0,
            coming: BTreeMap::new(),
            sent: 0,
            script: vec![],
        }
    }

    /// Something to do at a time.
    pub fn at(&mut self, at_ns: u64, act: impl FnOnce(&mut Broker) + 'static) {
        self.script.push((at_ns, Box::new(act)));
    }

    /// Does what the script wants by now.
    pub fn act(&mut self) {
        let now_ns = self.now_ns;
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.script).into_iter().partition(|(at_ns, _)| *at_ns <= now_ns);
        self.script = later;
        due.sort_by_key(|(at_ns, _)| *at_ns);
        due.into_iter().for_each(|(_, act)| act(self));
    }

    /// When something happens next, but for what reaches shards that do not look before a time of their own.
    pub fn next_ns(&self, looks: impl Fn(usize) -> bool) -> Option<u64> {
        let script = self.script.iter().map(|(at_ns, _)| *at_ns).min();
        let looking = self.coming.iter().filter(|(shard, _)| looks(**shard));
        let coming = looking.filter_map(|(_, coming)| coming.peek()).map(|first| first.at_ns);
        script.into_iter().chain(coming).min()
    }

    /// What reaches a shard by now, the first of it.
    pub fn take(&mut self, shard: usize) -> Option<(SessionId, News)> {
        let coming = self.coming.get_mut(&shard)?;
        while coming.peek().is_some_and(|first| first.at_ns <= self.now_ns) {
            let Coming { session, connection, news, .. } = coming.pop()?;
            // What was on its way on an earlier connection is gone with that.
            let known = self.clients.get(&(shard, session))?;
            if matches!(news, News::Refused(_) | News::Cut(_)) || known.connection == Some(connection) {
                return Some((session, news));
            }
            self.overtaken += u64::from(matches!(news, News::Message(_)));
        }
        None
    }

    fn send(&mut self, at_ns: u64, (shard, session): Client, news: News) {
        let known = self.clients.get(&(shard, session));
        let connection = known.and_then(|known| known.connection).unwrap_or_default();
        self.sent += 1;
        let coming = Coming { at_ns, number: self.sent, session, connection, news };
        self.coming.entry(shard).or_default().push(coming);
    }

    /// A client is made known.
    pub fn add(&mut self, client: Client, config: SessionConfig) {
        let filters: Vec<_> = config.subscriptions.iter().map(|entry| TopicFilter(entry.filter.to_string())).collect();
        let subscribed = vec![false; filters.len()];
        self.clients.insert(client, Known { config, filters, subscribed, connection: None });
    }

    /// A client wants to connect.
    pub fn connect(&mut self, client: Client) {
        let at_ns = self.now_ns + self.accepts_after_ns;
        let Some(known) = self.clients.get(&client) else { return };
        let name = known.config.client_id.clone();
        if let Err(cause) = (self.accepts)(&name) {
            return self.send(at_ns, client, News::Refused(cause));
        }
        self.connections += 1;
        let connection = self.connections;
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.connection = Some(connection);
        let session_present = known.config.persistent && known.subscribed.iter().any(|subscribed| *subscribed);
        if !session_present {
            known.subscribed.fill(false);
        }
        self.send(at_ns, client, News::Accepted { session_present });
        if !session_present {
            self.subscribe_all(client, at_ns);
        }
    }

    fn subscribe_all(&mut self, client: Client, at_ns: u64) {
        for index in 0..self.clients[&client].filters.len() {
            let granted = (self.grants)(&self.clients[&client].filters[index].0);
            self.clients.get_mut(&client).expect("it is known").subscribed[index] = granted.is_ok();
            self.send(at_ns, client, News::Subscribed(index, granted));
        }
    }

    /// A client is gone, with or without a word.
    pub fn disconnect(&mut self, client: Client) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.connection = None;
        if !known.config.persistent {
            known.subscribed.fill(false);
        }
    }

    /// Cuts the connections of all clients with this in their names that have one.
    pub fn cut(&mut self, part: &str) {
        let named =
            |(_, known): &(&Client, &Known)| known.connection.is_some() && known.config.client_id.contains(part);
        let clients: Vec<Client> = self.clients.iter().filter(named).map(|(client, _)| *client).collect();
        self.cuts += clients.len() as u64;
        for client in clients {
            self.send(self.now_ns, client, News::Cut(Cause::Dropped("cut by the script".to_owned())));
            self.disconnect(client);
        }
    }

    /// A client publishes; an acknowledgement is to come if `awaited`.
    pub fn publish(&mut self, client: Client, message: &Outgoing, awaited: bool, payload: Rc<[u8]>) {
        self.published += 1;
        let (sequence, due_ns) = (message.sequence, message.timing.due_ns);
        let outcome = if awaited { (self.acknowledges)(sequence) } else { None };
        if let Some(outcome) = outcome.clone() {
            let at_ns = self.now_ns + self.acknowledges_after_ns;
            self.send(at_ns, client, News::Acknowledged(message.token(), outcome));
        }
        let known = &self.clients[&client];
        let publication = &known.config.publications[usize::from(message.publication)];
        let (publisher, topic, run) = (publication.publisher, publication.topic.clone(), self.run);
        if known.config.options.reply_topic.is_some()
            && let Some(after_ns) = (self.replies)(sequence)
        {
            let mut reply = Vec::new();
            header::write_reply(&mut reply, run, publisher, sequence, due_ns);
            self.send(self.now_ns + after_ns, client, News::Answer(message.token(), reply.into()));
        }
        if matches!(outcome, Some(Err(_))) {
            return;
        }
        for (listener, is_connected) in self.listeners(&topic) {
            let copy = Copy { client: listener, publisher, sequence, due_ns, at_ns: None };
            let times = if is_connected { (self.fate)(publisher, sequence, listener) } else { vec![] };
            if times.is_empty() {
                self.journal.push(copy);
            }
            for after_ns in times {
                let at_ns = self.now_ns + after_ns;
                self.journal.push(Copy { at_ns: Some(at_ns), ..copy });
                self.send(at_ns, listener, News::Message(Rc::clone(&payload)));
            }
        }
    }

    /// Clients with a subscription that chooses a topic, and whether they are connected.
    fn listeners(&self, topic: &str) -> Vec<(Client, bool)> {
        let hears = |(_, known): &(&Client, &Known)| {
            let mut filters = known.filters.iter().zip(&known.subscribed);
            filters.any(|(filter, subscribed)| *subscribed && filter.matches(topic))
        };
        let listeners = self.clients.iter().filter(hears);
        listeners.map(|(client, known)| (*client, known.connection.is_some())).collect()
    }
}
