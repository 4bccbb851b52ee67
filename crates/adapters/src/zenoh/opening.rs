//! How a connection is made: the library's session, then its subscribers and publishers. On a helper thread.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use ::zenoh::pubsub::Subscriber;
use ::zenoh::qos::CongestionControl;
use ::zenoh::sample::SampleKind;
use ::zenoh::{Session, Wait as _};
use pubmark_protocol::clients::Publication;
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Reason};

use super::connection::{Connection, Gate};
use super::keys::key_expression;
use super::mailbox::{Key, Kind, Mailbox, Notice, Opened};
use super::requesting::{self, Requesting};
use super::settings::{OPEN_WITHIN, Role, Settings};

/// A key expression without a queryable.
const NOBODY: &str = "pubmark/nobody/answers/this";
/// Longest wait for a check whether a server listens at all.
const DIAGNOSE_WITHIN: Duration = Duration::from_secs(1);

/// What a connection is to be.
pub struct Opening {
    /// Which it is.
    pub key: Key,
    /// The connection that its session wants by now.
    pub wanted: Arc<AtomicU32>,
    /// Who connects to whom.
    pub place: Role,
    /// With what.
    pub settings: Settings,
    /// What happens where a queue is full.
    pub congestion: CongestionControl,
    /// What it publishes.
    pub publications: Vec<Publication>,
    /// Filters of its subscriptions.
    pub filters: Vec<Box<str>>,
    /// They receive requests, which are replied to.
    pub answers: bool,
    /// Its publications are requests, whose replies are awaited for so long.
    pub request_timeout: Option<Duration>,
}

impl Opening {
    /// Does its session still want it?
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) == self.key.generation
    }
}

/// Opens a connection.
pub fn open(opening: Opening, mailbox: &Arc<Mailbox>) -> Result<Opened, Cause> {
    let (session, place) = open_session(&opening)?;
    let made = watch(&session, &place, opening.key, mailbox).and_then(|()| {
        let mut subscribers = Vec::new();
        let subscriptions = opening.filters.iter().map(|filter| {
            match (opening.request_timeout, opening.answers) {
                // Replies arrive at the requester without a subscription.
                (Some(_), _) => Ok(()),
                (None, true) => requesting::listen(&session, filter, opening.key, mailbox),
                (None, false) => subscribe(&session, filter, opening.key, mailbox).map(|subscriber| {
                    subscribers.push(subscriber);
                }),
            }
        });
        let subscriptions = subscriptions.collect();
        if opening.request_timeout.is_none() && !opening.filters.is_empty() && matches!(place, Role::Router(_)) {
            await_router(&session).map_err(Cause::Refused)?;
        }
        let publications = opening.publications.into_iter().map(|publication| {
            let refused = |words: String| Cause::Refused(Reason::words(words));
            let key = key_expression(&publication.topic).map_err(refused)?;
            let key = session.declare_keyexpr(key).wait().map_err(|error| refused(first_line(&error.to_string())))?;
            Ok((key, publication))
        });
        Ok((publications.collect::<Result<Vec<_>, Cause>>()?, subscribers, subscriptions))
    });
    match made {
        Ok((publications, subscribers, subscriptions)) => {
            let (congestion, gate) = (opening.congestion, Gate::default());
            let requesting =
                opening.request_timeout.map(|patience| Arc::new(Requesting::new(patience, opening.key, mailbox)));
            let connection =
                Arc::new(Connection { session, publications, _subscribers: subscribers, congestion, requesting, gate });
            Ok(Opened { connection, subscriptions })
        }
        Err(cause) => {
            let _ = session.close().wait();
            Err(cause)
        }
    }
}

fn open_session(opening: &Opening) -> Result<(Session, Role), Cause> {
    let attempt = |place: &Role| {
        let config = opening.settings.config(place).map_err(|words| Cause::Refused(Reason::words(words)))?;
        ::zenoh::open(config).wait().map_err(|error| diagnosed(place, &error.to_string()))
    };
    match (attempt(&opening.place), &opening.place) {
        (Ok(session), place) => Ok((session, place.clone())),
        // Another process listens there already, so this peer has a port of its own.
        (Err(_), Role::Listening(all)) if all.iter().any(is_taken) => {
            let place = Role::Announced(all.clone());
            attempt(&place).map(|session| (session, place))
        }
        (Err(cause), _) => Err(cause),
    }
}

/// Does a process of this machine listen at an address?
fn is_taken(address: &SocketAddr) -> bool {
    TcpListener::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

/// The library reports only that it could not connect. A connect of our own checks whether a server listens.
fn diagnosed(place: &Role, words: &str) -> Cause {
    let addresses = match place {
        Role::Router(address) => std::slice::from_ref(address),
        Role::Announced(all) | Role::Connecting(all) => all.as_slice(),
        Role::Listening(_) => return Cause::Unreachable(first_line(words)),
    };
    for address in addresses {
        if let Err(error) = TcpStream::connect_timeout(address, DIAGNOSE_WITHIN) {
            return Cause::Unreachable(if addresses.len() == 1 {
                error.to_string()
            } else {
                format!("{address}: {error}")
            });
        }
    }
    match addresses {
        [address] => Cause::Refused(Reason::words(no_transport(*address))),
        _ => Cause::Unreachable(first_line(words)),
    }
}

fn no_transport(address: SocketAddr) -> String {
    format!(
        "{address} listens, but opened no Zenoh transport: it speaks another protocol, rejects the log-in, \
         or has reached its limit of sessions"
    )
}

pub fn first_line(words: &str) -> String {
    const MOST_SHOWN: usize = 200;
    words.lines().next().unwrap_or_default().chars().take(MOST_SHOWN).collect()
}

/// Notifies the mailbox when a session that connects to others has no connection.
fn watch(session: &Session, place: &Role, key: Key, mailbox: &Arc<Mailbox>) -> Result<(), Cause> {
    if matches!(place, Role::Listening(_) | Role::Announced(_)) {
        // Others come and go.
        return Ok(());
    }
    let links = Arc::new(AtomicI64::new(0));
    let (counted, mailbox) = (Arc::clone(&links), Arc::clone(mailbox));
    let info = session.info();
    let listener = info.transport_events_listener().history(true).callback(move |event| {
        let change = if event.kind() == SampleKind::Put { 1 } else { -1 };
        if counted.fetch_add(change, Ordering::AcqRel) + change == 0 {
            mailbox.tell(Notice::Lost(key));
        }
    });
    listener.background().wait().map_err(|error| Cause::Refused(Reason::words(first_line(&error.to_string()))))?;
    if links.load(Ordering::Acquire) > 0 {
        Ok(())
    } else {
        Err(Cause::Dropped("the connection ended at once".to_owned()))
    }
}

/// A router does not acknowledge a subscription. It handles one session's messages in order, so its response to a query after
/// the subscriptions shows that it has them.
fn await_router(session: &Session) -> Result<(), Reason> {
    let refused = |words: &str| Reason::words(words.to_owned());
    let asked =
        session.get(NOBODY).timeout(OPEN_WITHIN).wait().map_err(|error| refused(&first_line(&error.to_string())))?;
    // There is no queryable, so the only result is the end of the query, or the time limit.
    match asked.recv() {
        Err(_) => Ok(()),
        Ok(_) => Err(refused("the router did not respond after the subscriptions")),
    }
}

fn subscribe(session: &Session, filter: &str, key: Key, mailbox: &Arc<Mailbox>) -> Result<Subscriber<()>, Reason> {
    let expression = key_expression(filter).map_err(Reason::words)?;
    let mailbox = Arc::clone(mailbox);
    let subscriber = session.declare_subscriber(expression).callback(move |sample| {
        // First of all: everything behind it is ours.
        let at_ns = clock::monotonic_ns();
        mailbox.deliver(key, at_ns, sample.payload(), Kind::Plain);
    });
    subscriber.wait().map_err(|error| Reason::words(first_line(&error.to_string())))
}
