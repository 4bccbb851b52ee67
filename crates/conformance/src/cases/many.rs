//! Many clients at once, and what is left when they are gone.

use pubmark_protocol::clients::{Clients, Goodbye, SessionId};

use super::Target;
use crate::peer::{Peer, publisher, subscriber};
use crate::server::Server;

/// Sessions that publish, and those that hear them.
const PUBLISHERS: u32 = 450;
const SUBSCRIBERS: u32 = 50;

/// All publish one message to one topic, all subscribers hear each; then all leave, and no socket is left.
pub fn many_to_many<C: Clients, S: Server>(target: &mut Target<S>) {
    raise_descriptors();
    let level = target.acknowledged_level();
    let address = target.endpoint().address;
    let mut peer = Peer::<C>::open(target.endpoint());
    let before = sockets_to(address.port());
    let hearers: Vec<SessionId> =
        (0..SUBSCRIBERS).map(|index| peer.join(subscriber(&format!("many-in-{index}"), "many", level))).collect();
    let sayers: Vec<SessionId> =
        (0..PUBLISHERS).map(|index| peer.join(publisher(&format!("many-out-{index}"), "many", level))).collect();
    for sayer in &sayers {
        peer.send(*sayer, 100);
    }
    target.settle(&mut peer, sayers.len());
    let all = (PUBLISHERS * SUBSCRIBERS) as usize;
    peer.wait("every message everywhere", |record| record.arrived.len() >= all);
    peer.linger(50);
    for hearer in &hearers {
        let mut sequences = peer.record.sequences(*hearer);
        // Publishers are apart from each other: their order is not promised.
        sequences.sort_unstable();
        assert_eq!(sequences, (1..=PUBLISHERS).collect::<Vec<_>>());
    }
    for session in hearers.into_iter().chain(sayers) {
        peer.leave(session, Goodbye::Graceful);
    }
    assert_eq!(sockets_to(address.port()), before, "sockets are left");
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

/// As many open files as the machine lets us have.
fn raise_descriptors() {
    // SAFETY: both calls get a valid rlimit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
    }
}
