//! Many clients at once, and the sockets that are left after they disconnect.

use pubmark_protocol::clients::{Goodbye, SessionConfig, SessionId};
use pubmark_protocol::clock;
use pubmark_testing::assert_count_eq;

use super::Target;
use crate::peer::{Peer, publisher, subscriber};

/// Sessions, where a client library supports N; one in ten subscribes to what the others publish.
const SESSIONS: u32 = 500;
/// Sessions that connect at once.
const AT_ONCE: usize = 20;
/// Longest time that a client library may take to close all their connections.
const CLOSED_WITHIN_NS: u64 = 20_000_000_000;

/// All publish one message to one topic and all subscribers receive each; then all disconnect, and no socket is left.
pub fn many_to_many(target: &mut Target) {
    raise_descriptors();
    let level = target.acknowledged_level();
    let address = target.endpoint().address;
    let sessions = target.capabilities.features.maximum_sessions.unwrap_or(SESSIONS).min(SESSIONS);
    let subscribers = sessions / 10;
    let publishers = sessions - subscribers;
    let mut peer = target.peer();
    let before = sockets_to(address.port());
    let hearers: Vec<SessionId> =
        (0..subscribers).map(|index| peer.join(subscriber(&format!("many-in-{index}"), "many", level))).collect();
    let sender = |index| publisher(&format!("many-out-{index}"), "many", level);
    let sayers = connect_all(&mut peer, (0..publishers).map(sender));
    for sayer in &sayers {
        peer.send(*sayer, 100);
    }
    target.settle(&mut peer, sayers.len());
    let all = (publishers * subscribers) as usize;
    peer.wait("every message everywhere", |record| record.arrived.len() >= all);
    peer.linger(50);
    for hearer in &hearers {
        let mut sequences = peer.record.sequences(*hearer);
        // Publishers are independent: there is no order between messages of different publishers.
        sequences.sort_unstable();
        assert_count_eq!(sequences, (1..=publishers).collect::<Vec<_>>());
    }
    for session in hearers.into_iter().chain(sayers) {
        peer.leave(session, Goodbye::Graceful);
    }
    // A client library closes its sockets asynchronously.
    let deadline_ns = clock::monotonic_ns() + CLOSED_WITHIN_NS;
    while target.reads_itself() && sockets_to(address.port()) > before && clock::monotonic_ns() < deadline_ns {
        peer.linger(10);
    }
    assert_eq!(sockets_to(address.port()), before, "sockets are left");
}

/// Connects publishers, several at once: a library that discovers its peers may take a quarter of a second for each.
fn connect_all(peer: &mut Peer, configs: impl Iterator<Item = SessionConfig>) -> Vec<SessionId> {
    let mut sessions = vec![];
    for config in configs {
        let session = peer.clients.add_session(config);
        peer.begin_connect(session);
        sessions.push(session);
        if sessions.len().is_multiple_of(AT_ONCE) {
            wait_for_last(peer, &sessions);
        }
    }
    wait_for_last(peer, &sessions);
    sessions
}

/// Waits until the last sessions that started to connect are connected.
fn wait_for_last(peer: &mut Peer, sessions: &[SessionId]) {
    let last = &sessions[sessions.len().saturating_sub(AT_ONCE)..];
    peer.wait("connected", |record| last.iter().all(|session| !record.connects(*session).is_empty()));
}

/// Open sockets of this process connected to a port.
fn sockets_to(port: u16) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        count += usize::from(peer_port(number) == Some(port));
    }
    count
}

fn peer_port(descriptor: i32) -> Option<u16> {
    // SAFETY: an all-zero sockaddr_in is valid, and the call writes no more than the size it is given.
    let (found, address) = unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        let mut bytes = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        (libc::getpeername(descriptor, (&raw mut address).cast(), &mut bytes), address)
    };
    (found == 0 && i32::from(address.sin_family) == libc::AF_INET).then(|| u16::from_be(address.sin_port))
}

/// Raises the limit of open files to the hard limit of the process.
fn raise_descriptors() {
    // SAFETY: both calls get a valid rlimit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
}
