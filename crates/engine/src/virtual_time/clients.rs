//! The sessions of a shard at the scripted broker.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{
    Break, Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::events::{Cause, Connected, Delivery, Event, Sink, Token};
use pubmark_protocol::header;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};

use super::broker::{Broker, Client, ClientEvent};

thread_local! {
    /// The broker for [`Clients::open`], which receives only settings; and the number of shards that were opened with
    /// it.
    static OPENED_WITH: RefCell<Option<(Rc<RefCell<Broker>>, usize)>> = const { RefCell::new(None) };
}

/// Opens a shard's adapter with this broker, within `open`.
pub fn open_with<T>(broker: &Rc<RefCell<Broker>>, open: impl FnOnce() -> T) -> T {
    OPENED_WITH.with_borrow_mut(|opened| {
        let shards = opened.take().filter(|(known, _)| Rc::ptr_eq(known, broker)).map_or(0, |(_, shards)| shards);
        *opened = Some((Rc::clone(broker), shards));
    });
    open()
}

struct Session {
    config: SessionConfig,
    is_up: bool,
    /// Passed to the adapter and not written.
    submitted: Vec<Outgoing>,
    /// Written and not acknowledged.
    unacknowledged: BTreeSet<(u16, u32)>,
    /// A message was not accepted.
    is_blocked: bool,
    /// A reply was not accepted.
    waits_to_reply: bool,
    /// Messages that arrived while its subscriber was at work.
    held: VecDeque<Rc<[u8]>>,
}

impl Session {
    fn in_flight(&self) -> usize {
        self.submitted.len() + self.unacknowledged.len()
    }
}

/// The sessions of a shard at the scripted broker.
pub struct ScriptedClients {
    broker: Rc<RefCell<Broker>>,
    shard: usize,
    run: u32,
    wall_ahead_ns: i64,
    sessions: Vec<Session>,
    /// Those that are connecting.
    connecting: BTreeSet<SessionId>,
}

impl ScriptedClients {
    fn client(&self, session: SessionId) -> Client {
        (self.shard, session)
    }

    fn is_acknowledged(config: &SessionConfig, message: &Outgoing) -> bool {
        config.publications[usize::from(message.publication)].qos > Qos::BestEffort
    }

    /// The connection has ended. Unwritten messages never will be written, and the state of unacknowledged ones is
    /// unknown unless the session is persistent.
    fn end(&mut self, id: SessionId, cause: Cause, sink: &mut impl Sink) {
        self.connecting.remove(&id);
        let session = &mut self.sessions[id.0 as usize];
        session.is_up = false;
        session.held.clear();
        for message in session.submitted.drain(..) {
            sink.event(id, Event::Abandoned(message.token()));
        }
        if !session.config.persistent {
            Self::forget(id, session, sink);
        }
        sink.event(id, Event::Closed(cause));
    }

    fn forget(id: SessionId, session: &mut Session, sink: &mut impl Sink) {
        for (publication, sequence) in std::mem::take(&mut session.unacknowledged) {
            sink.event(id, Event::Unacknowledged(Token { publication, sequence }));
        }
    }

    fn accepted(&mut self, id: SessionId, session_present: bool, sink: &mut impl Sink) {
        self.connecting.remove(&id);
        let session = &mut self.sessions[id.0 as usize];
        session.is_up = true;
        sink.event(id, Event::Connected(Connected { session_present, ..Connected::default() }));
        if !session_present {
            Self::forget(id, session, sink);
        }
        self.unblock(id, sink);
    }

    fn unblock(&mut self, id: SessionId, sink: &mut impl Sink) {
        if std::mem::take(&mut self.sessions[id.0 as usize].is_blocked) {
            sink.event(id, Event::Writable);
        }
    }

    /// As an adapter does it: after what had arrived.
    fn report_free_to_reply(&mut self, sink: &mut impl Sink) {
        if self.broker.borrow().blocks_replies {
            return;
        }
        for (id, session) in (0..).map(SessionId).zip(&mut self.sessions) {
            if std::mem::take(&mut session.waits_to_reply) {
                sink.event(id, Event::Writable);
            }
        }
    }
}

impl Clients for ScriptedClients {
    const BREAKS: bool = true;
    const PAUSES: bool = true;
    const QUEUES_ARRIVALS: bool = true;

    fn open(config: ShardConfig) -> Result<ScriptedClients, OpenError> {
        let (broker, shard) = OPENED_WITH.with_borrow_mut(|opened| {
            let (broker, shards) = opened.as_mut().expect("opened within `open_with`");
            *shards += 1;
            (Rc::clone(broker), *shards - 1)
        });
        Ok(ScriptedClients {
            broker,
            shard,
            run: config.run,
            wall_ahead_ns: config.wall_ahead_ns,
            sessions: vec![],
            connecting: BTreeSet::new(),
        })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        self.broker.borrow_mut().add((self.shard, id), config.clone());
        self.sessions.push(Session {
            config,
            is_up: false,
            submitted: vec![],
            unacknowledged: BTreeSet::new(),
            is_blocked: false,
            waits_to_reply: false,
            held: VecDeque::new(),
        });
        id
    }

    fn can_connect(&self) -> bool {
        self.connecting.len() < self.broker.borrow().connects_at_once
    }

    fn connect(&mut self, session: SessionId, _sink: &mut impl Sink) {
        self.connecting.insert(session);
        self.broker.borrow_mut().connect(self.client(session));
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink) {
        let is_early = goodbye == Goodbye::Graceful && self.sessions[session.0 as usize].in_flight() > 0;
        self.broker.borrow_mut().ended_before_acknowledged += u64::from(is_early);
        self.broker.borrow_mut().ended_without_disconnect += u64::from(goodbye == Goodbye::Cut);
        self.broker.borrow_mut().disconnect(self.client(session));
        self.end(session, Cause::Ours, sink);
    }

    fn break_connection(&mut self, session: SessionId, how: Break, sink: &mut impl Sink) {
        if how == Break::Reset && self.sessions[session.0 as usize].is_up {
            self.broker.borrow_mut().disconnect(self.client(session));
            self.end(session, Cause::Dropped("reset by a fault of the run".to_owned()), sink);
        }
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        let session = &mut self.sessions[session.0 as usize];
        let is_full = Self::is_acknowledged(&session.config, &message)
            && session.in_flight() >= usize::from(session.config.in_flight_window);
        if !session.is_up || is_full {
            session.is_blocked = true;
            return SendOutcome::WouldBlock;
        }
        session.submitted.push(message);
        SendOutcome::Accepted
    }

    fn reply(&mut self, session: SessionId, _: &OutgoingReply<'_>) -> SendOutcome {
        let blocks = self.broker.borrow().blocks_replies;
        self.sessions[session.0 as usize].waits_to_reply = blocks;
        if blocks { SendOutcome::WouldBlock } else { SendOutcome::TooLarge(0) }
    }

    fn take_free_since_ns(&mut self, _: SessionId) -> Option<u64> {
        self.broker.borrow_mut().replies_free_since_ns.take()
    }

    fn flush(&mut self, id: SessionId, sink: &mut impl Sink) {
        let session = &mut self.sessions[id.0 as usize];
        let client = (self.shard, id);
        for message in session.submitted.drain(..) {
            let mut broker = self.broker.borrow_mut();
            let now_ns = broker.now_ns;
            let Outgoing { publication, sequence, timing, root, payload_bytes, .. } = message;
            if (broker.withholds)(sequence) {
                drop(broker);
                sink.event(id, Event::Withheld(message.token()));
                sink.event(id, written_at(message.token(), now_ns, 0));
                continue;
            }
            let publisher = session.config.publications[usize::from(publication)].publisher;
            let mut payload = Vec::with_capacity(payload_bytes as usize);
            header::write(&mut payload, payload_bytes as usize, self.run, publisher, sequence, timing.due_ns);
            if let Some(root) = root {
                header::extend_to_reaction(&mut payload, 0, root);
            }
            header::patch_write_start(&mut payload, &timing, now_ns);
            let body_bytes = (payload_bytes as usize).saturating_sub(payload.len());
            match &session.config.publications[usize::from(publication)].body {
                Some(body) => body.append(&message.filled(publisher, self.wall_ahead_ns), 0, body_bytes, &mut payload),
                None => payload.resize(payload_bytes as usize, 0),
            }
            let is_acknowledged = Self::is_acknowledged(&session.config, &message);
            broker.publish(client, &message, is_acknowledged, payload.into());
            let is_reported = broker.reports_written(client, message.token());
            drop(broker);
            if is_acknowledged {
                session.unacknowledged.insert((publication, sequence));
            }
            if is_reported {
                sink.event(id, written_at(message.token(), now_ns, 0));
            }
        }
    }

    /// It is not known when the message arrived, unless the broker says that it had arrived.
    fn resume(&mut self, id: SessionId, due_ns: u64, sink: &mut impl Sink) {
        let Some(payload) = self.sessions[id.0 as usize].held.pop_front() else { return };
        let (at_ns, has_waited) = {
            let broker = self.broker.borrow();
            (broker.now_ns, broker.tells_waits)
        };
        let delivery = Delivery { empty_at_ns: Some(due_ns), has_waited, ..delivery(&payload, at_ns) };
        sink.event(id, Event::Delivered(delivery));
    }

    fn wait(&mut self, _until_ns: Option<u64>) -> io::Result<u64> {
        Ok(self.broker.borrow().now_ns)
    }

    fn has_unread(&self) -> bool {
        false
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let most = self.broker.borrow().serves_at_most;
        for _ in 0..most {
            let Some((id, event)) = self.broker.borrow_mut().take(self.shard) else { break };
            match event {
                ClientEvent::Accepted { session_present } => self.accepted(id, session_present, sink),
                ClientEvent::Refused(cause) => {
                    self.connecting.remove(&id);
                    sink.event(id, Event::Closed(cause));
                }
                ClientEvent::Cut(cause) => self.end(id, cause, sink),
                ClientEvent::NotPermitted(what) => sink.event(id, Event::NotPermitted(what)),
                ClientEvent::Subscribed(index, granted) => {
                    let qos = self.sessions[id.0 as usize].config.subscriptions[index].qos;
                    sink.event(id, Event::Subscribed { index, granted: granted.map(|()| qos) });
                }
                ClientEvent::Acknowledged(token, outcome) => {
                    let session = &mut self.sessions[id.0 as usize];
                    session.unacknowledged.remove(&(token.publication, token.sequence));
                    sink.event(id, Event::Acknowledged { token, outcome });
                    self.unblock(id, sink);
                }
                ClientEvent::Message(payload) if sink.is_at_work(id) => {
                    self.sessions[id.0 as usize].held.push_back(payload);
                }
                ClientEvent::Message(payload) => sink.event(id, Event::Delivered(delivery(&payload, now_ns))),
                ClientEvent::Request(payload) => {
                    let reply_to = ReplyTo { address: "replies", correlation: &[] };
                    let empty_at_ns = Some(now_ns - self.broker.borrow().read_late_ns);
                    let delivery = Delivery { empty_at_ns, ..delivery(&payload, now_ns) };
                    sink.event(id, Event::Requested { reply_to, delivery });
                }
                ClientEvent::Written(token, written_ns, own_ns) => {
                    sink.event(id, written_at(token, written_ns, own_ns));
                }
                ClientEvent::Answer(request, payload) => {
                    let delivery = delivery(&payload, now_ns);
                    sink.event(id, Event::Replied { request: Some(request), delivery });
                }
            }
        }
        self.report_free_to_reply(sink);
    }

    fn waker(&self) -> Waker {
        Waker::new(|| {})
    }

    fn unsent_bytes(&self) -> u64 {
        0
    }

    fn finish(&mut self, sink: &mut impl Sink) {
        for (id, session) in (0..).map(SessionId).zip(&mut self.sessions) {
            Self::forget(id, session, sink);
        }
    }
}

fn written_at(token: Token, at_ns: u64, own_ns: u64) -> Event<'static> {
    Event::Written { token, write_start_ns: at_ns, written_ns: at_ns, own_ns }
}

fn delivery(payload: &[u8], at_ns: u64) -> Delivery<'_> {
    Delivery { payload, at_ns, empty_at_ns: Some(at_ns), ..Delivery::default() }
}
