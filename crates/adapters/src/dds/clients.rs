//! All sessions of a shard, and the loop that serves them.

use std::sync::Arc;

use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Connected, Event, Sink};
use pubmark_protocol::reactor::{Reactor, Ready};

use super::binding::{Binding, Wake};
use super::network::{Network, Presence};
use super::readers::Readers;
use super::session::{MATCH_LIMIT_NS, Phase, Session};
use super::settings::Settings;

/// Time after which a full writer is tried again: the library does not report when it has space.
const TRY_AGAIN_NS: u64 = 100_000;
/// Time between two looks for acknowledgements.
const RECHECK_NS: u64 = 5_000_000;
/// Time between two looks at writers that meet their readers.
const RECHECK_MATCH_NS: u64 = 1_000_000;

/// Sessions that wait until readers know their writers.
struct Requesting<B: Binding> {
    presence: Presence<B>,
    endpoint: usize,
    sessions: Vec<u32>,
    /// Time at which they are opened anyway.
    until_ns: u64,
}

/// All sessions of a shard over a client library.
pub struct DdsClients<B: Binding> {
    config: ShardConfig,
    reactor: Reactor,
    ready: Vec<Ready>,
    // Sessions and readers are dropped before the domains that they are in.
    sessions: Vec<Session<B>>,
    readers: Readers<B>,
    requesting: Vec<Requesting<B>>,
    /// By endpoint; why not, where its settings make no sense.
    networks: Vec<Result<Network<B>, String>>,
    /// Sessions that wait for readers, for space, for acknowledgements; may include one that does not wait any more.
    matching: Vec<u32>,
    full: Vec<u32>,
    awaiting: Vec<u32>,
    /// When acknowledgements are looked for next.
    next_check_ns: u64,
    /// The payload being made.
    scratch: Vec<u8>,
}

impl<B: Binding> DdsClients<B> {
    /// What these clients can do.
    pub const fn capabilities() -> Capabilities {
        B::CAPABILITIES
    }

    /// Why there are none on this machine, if so.
    pub fn missing() -> Option<String> {
        B::missing()
    }

    /// The client library's name and version.
    pub fn version() -> String {
        B::version()
    }

    fn start(&mut self, index: usize) -> Result<(), String> {
        let session = &mut self.sessions[index];
        let endpoint = session.config.endpoint;
        let network = self.networks[usize::from(endpoint)].as_mut().map_err(|why| why.clone())?;
        for subscription in &session.config.subscriptions {
            self.readers.add(session.id, network, endpoint, subscription)?;
        }
        session.open(network)
    }

    /// Ends a session that failed.
    fn fail(&mut self, session: SessionId, cause: Cause, sink: &mut impl Sink) {
        self.readers.remove(session);
        let session = &mut self.sessions[session.0 as usize];
        let writers = session.end(cause, sink);
        // Without a network it has no writers.
        if let Ok(network) = &mut self.networks[usize::from(session.config.endpoint)] {
            network.delete(writers);
        }
    }

    /// Goes on with sessions whose writers have found readers.
    fn serve_matching(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let mut ask = vec![];
        for index in std::mem::take(&mut self.matching) {
            let session = &mut self.sessions[index as usize];
            match session.phase {
                Phase::Matching(_) if !session.has_matched(now_ns) => self.matching.push(index),
                Phase::Matching(_) if session.is_reliable() => {
                    session.phase = Phase::Requesting;
                    ask.push(index);
                }
                Phase::Matching(_) => open(session, sink),
                // It left meanwhile.
                Phase::Closed | Phase::Requesting | Phase::Open => {}
            }
        }
        for endpoint in 0..self.networks.len() {
            self.ask(endpoint, &ask, now_ns, sink);
        }
    }

    /// Starts the check for all these sessions at once, if they belong to one endpoint.
    fn ask(&mut self, endpoint: usize, sessions: &[u32], now_ns: u64, sink: &mut impl Sink) {
        let is_of = |index: &&u32| usize::from(self.sessions[**index as usize].config.endpoint) == endpoint;
        let sessions: Vec<u32> = sessions.iter().filter(is_of).copied().collect();
        let (false, Ok(network)) = (sessions.is_empty(), &mut self.networks[endpoint]) else { return };
        match network.ask(now_ns) {
            Ok(presence) => {
                let until_ns = now_ns + MATCH_LIMIT_NS;
                self.requesting.push(Requesting { presence, endpoint, sessions, until_ns });
            }
            Err(why) => {
                for index in sessions {
                    self.fail(SessionId(index), Cause::Unreachable(why.clone()), sink);
                }
            }
        }
    }

    /// Opens sessions whose writers are known to their readers.
    fn serve_requesting(&mut self, now_ns: u64, sink: &mut impl Sink) {
        for mut requesting in std::mem::take(&mut self.requesting) {
            match requesting.presence.is_known(now_ns) {
                Ok(known) if !known && now_ns < requesting.until_ns => self.requesting.push(requesting),
                Ok(_) => {
                    if let Ok(network) = &mut self.networks[requesting.endpoint] {
                        network.delete(vec![requesting.presence.into_writer()]);
                    }
                    for index in requesting.sessions {
                        let session = &mut self.sessions[index as usize];
                        if session.phase == Phase::Requesting {
                            open(session, sink);
                        }
                    }
                }
                Err(why) => {
                    for index in requesting.sessions {
                        self.fail(SessionId(index), Cause::Unreachable(why.clone()), sink);
                    }
                }
            }
        }
    }

    fn serve_full(&mut self, sink: &mut impl Sink) {
        for index in std::mem::take(&mut self.full) {
            self.write(index, sink);
        }
    }

    fn write(&mut self, index: u32, sink: &mut impl Sink) {
        let session = &mut self.sessions[index as usize];
        let awaited = session.awaits();
        let written = session.write(&self.config, &mut self.scratch, sink);
        if session.full {
            self.full.push(index);
        }
        if !awaited && session.awaits() {
            self.awaiting.push(index);
        }
        if let Err(cause) = written {
            self.fail(SessionId(index), cause, sink);
        }
    }

    fn serve_awaiting(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if self.awaiting.is_empty() || now_ns < self.next_check_ns {
            return;
        }
        self.next_check_ns = now_ns + RECHECK_NS;
        // One that left and came back meanwhile is there twice.
        self.awaiting.sort_unstable();
        self.awaiting.dedup();
        for index in std::mem::take(&mut self.awaiting) {
            let session = &mut self.sessions[index as usize];
            match session.acknowledge(sink) {
                Ok(()) if session.awaits() => self.awaiting.push(index),
                Ok(()) => {}
                Err(cause) => self.fail(SessionId(index), cause, sink),
            }
        }
    }

    /// Makes readers of topics that were found.
    fn serve_discovered(&mut self, sink: &mut impl Sink) {
        for index in 0..self.networks.len() {
            let Ok(network) = &mut self.networks[index] else { continue };
            let failed = match network.discover() {
                Ok(true) => self.readers.grow(network, index as u16),
                // Without news of writers, sessions receive from those that they know.
                Ok(false) | Err(_) => vec![],
            };
            for (session, why) in failed {
                // Several subscriptions of a session may have failed.
                if self.sessions[session.0 as usize].phase != Phase::Closed {
                    self.fail(session, Cause::Dropped(why), sink);
                }
            }
        }
    }

    fn serve_readers(&mut self, sink: &mut impl Sink) {
        if let Err((session, why)) = self.readers.take(sink) {
            self.fail(session, Cause::Dropped(why), sink);
        }
    }

    /// Next time of a check that the library does not trigger.
    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let full = (!self.full.is_empty()).then_some(now_ns + TRY_AGAIN_NS);
        let awaiting = (!self.awaiting.is_empty()).then_some(self.next_check_ns);
        let matching = !(self.matching.is_empty() && self.requesting.is_empty());
        let matching = matching.then_some(now_ns + RECHECK_MATCH_NS);
        let discover = self.networks.iter().flatten().filter_map(Network::discover_at_ns);
        [full, awaiting, matching].into_iter().flatten().chain(discover).min()
    }
}

/// Reports a session as open.
fn open<B: Binding>(session: &mut Session<B>, sink: &mut impl Sink) {
    session.phase = Phase::Open;
    sink.event(session.id, Event::Connected(Connected::default()));
    for (index, subscription) in session.config.subscriptions.iter().enumerate() {
        sink.event(session.id, Event::Subscribed { index, granted: Ok(subscription.qos) });
    }
}

impl<B: Binding> Clients for DdsClients<B> {
    const QUEUES_ARRIVALS: bool = true;

    fn open(config: ShardConfig) -> Result<DdsClients<B>, OpenError> {
        if let Some(why) = B::missing() {
            return Err(OpenError::Library(why));
        }
        let reactor =
            Reactor::new().map_err(|source| OpenError::System { what: "open epoll and its timer", source })?;
        let waker = reactor.waker();
        let wake: Wake = Arc::new(move || waker.wake());
        let network = |endpoint| Settings::of(endpoint).map(|settings| Network::new(settings, Arc::clone(&wake)));
        Ok(DdsClients {
            networks: config.endpoints.iter().map(network).collect(),
            reactor,
            ready: vec![],
            sessions: vec![],
            readers: Readers::default(),
            requesting: vec![],
            matching: vec![],
            full: vec![],
            awaiting: vec![],
            next_check_ns: 0,
            scratch: vec![],
            config,
        })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        self.sessions.push(Session::new(id, config));
        id
    }

    fn connect(&mut self, session: SessionId, sink: &mut impl Sink) {
        let index = session.0 as usize;
        if self.sessions[index].phase != Phase::Closed {
            return;
        }
        match self.start(index) {
            Ok(()) => self.matching.push(session.0),
            Err(why) => self.fail(session, Cause::Unreachable(why), sink),
        }
        self.serve_matching(clock::monotonic_ns(), sink);
    }

    fn disconnect(&mut self, session: SessionId, _: Goodbye, sink: &mut impl Sink) {
        if self.sessions[session.0 as usize].phase != Phase::Closed {
            self.fail(session, Cause::Ours, sink);
        }
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        self.sessions[session.0 as usize].take(message)
    }

    fn flush(&mut self, session: SessionId, sink: &mut impl Sink) {
        if !self.sessions[session.0 as usize].full {
            self.write(session.0, sink);
        }
    }

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        let until_ns = match (until_ns, self.next_ns(clock::monotonic_ns())) {
            _ if self.readers.unread => Some(0),
            (Some(until_ns), Some(next_ns)) => Some(until_ns.min(next_ns)),
            (until_ns, next_ns) => until_ns.or(next_ns),
        };
        Ok(self.reactor.wait(until_ns, &mut self.ready)?.at_ns)
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        self.serve_discovered(sink);
        self.serve_readers(sink);
        self.serve_matching(now_ns, sink);
        self.serve_requesting(now_ns, sink);
        self.serve_full(sink);
        self.serve_awaiting(now_ns, sink);
    }

    fn has_unread(&self) -> bool {
        self.readers.unread
    }

    fn waker(&self) -> Waker {
        self.reactor.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.sessions.iter().map(Session::unsent_bytes).sum()
    }
}
