//! The trunk: carries packets between stars in several processes, on one machine or on several, so that groups behind links
//! reach each other without a broker.
//!
//! All groups of a run have numbers of their own, hence addresses, and each is alone in its star. A packet to the group of
//! another star passes the up-link of its sender, goes over the machine's network as one UDP datagram, and enters the
//! down-link of its receiver. What is sent to a multicast group goes to all other stars. The socket is made in the machine's
//! network, before the process leaves it ([`crate::privilege::claim`]).
//!
//! Start with [`TrunkEnd`], which is open; `port` sends and receives in the emulator's thread.

mod codec;
mod counters;
mod port;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use pubmark_protocol::{datagram, receive};
use serde::{Deserialize, Serialize};

use crate::error::LinkError;

pub(crate) use counters::SharedTrunk;
pub use counters::{TrunkCounters, TrunkSnapshot};
pub(crate) use port::{Received, TrunkPort};

/// A number that only the processes of a run know. It keeps out datagrams of anybody who cannot read the network between
/// them; somebody who can could also send to the clients of a run without links. Its `Debug` output does not contain it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key([u8; 16]);

impl Key {
    /// The key with these bytes, which have to be random.
    pub const fn new(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Largest IP packet of groups with a trunk, bytes: the least that IPv6 allows. With the headers of IPv6, UDP and the trunk it has
/// 1,362 bytes, which Ethernet and the usual tunnels carry in one piece.
pub const MTU: u32 = 1_280;

/// Requested size of the receive buffer and of the send buffer: thousands of packets. With the kernel's default size, a group that
/// sends a hundred packets at once, faster than the machine's interface, would lose some.
const BUFFER_BYTES: libc::c_int = 16 << 20;

/// One end of a trunk.
#[derive(Debug)]
pub struct TrunkEnd {
    socket: UdpSocket,
    key: Key,
    own: u16,
    /// Addresses of all ends, by the number of their group.
    ends: Vec<SocketAddr>,
}

impl TrunkEnd {
    /// The end of group `own`, in the network of the calling thread. `ends` has the addresses of all ends, by the number of
    /// their group.
    ///
    /// # Errors
    /// There is no such group, or the address is not one of this machine or in use.
    pub fn open(key: Key, own: u16, ends: Vec<SocketAddr>) -> Result<Arc<TrunkEnd>, LinkError> {
        let place = usize::from(own);
        LinkError::within("number of a group at the trunk", place + 1, 1, ends.len())?;
        let refused = |error| LinkError::refused(format!("open the trunk between links at {}", ends[place]), error);
        let socket = UdpSocket::bind(ends[place]).map_err(refused)?;
        socket.set_nonblocking(true).map_err(refused)?;
        allow_fragments(&socket).map_err(refused)?;
        // Receive stamps mark the socket as none of a client library: the datagrams that it drops are `missing`, and not to be
        // counted as drops of a client as well ([`datagram::overflowed_in_libraries`]).
        receive::enable_stamps(socket.as_fd()).map_err(refused)?;
        // What finds no room all the same is `missing` at the receiver, or `unsent` at the sender.
        let _ = datagram::enlarge_receive_buffer(socket.as_fd(), BUFFER_BYTES);
        let _ = datagram::enlarge_send_buffer(socket.as_fd(), BUFFER_BYTES);
        Ok(Arc::new(TrunkEnd { socket, key, own, ends }))
    }

    /// Number of the group behind this end.
    pub fn own(&self) -> usize {
        usize::from(self.own)
    }
}

/// On a network whose MTU is smaller than a datagram, the kernel sends fragments. By default it would lose the first datagrams
/// until it knows the MTU of the way.
fn allow_fragments(socket: &UdpSocket) -> io::Result<()> {
    let (level, option, value) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DONT),
    };
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is a live c_int of the length given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_opened_at_its_own_address_only() {
        let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
        // A documentation address (RFC 5737), which no machine has.
        let ends = vec![here, "192.0.2.1:7000".parse().unwrap(), "[::1]:0".parse().unwrap()];
        let key = Key([7; 16]);
        assert_eq!(TrunkEnd::open(key, 0, ends.clone()).unwrap().own(), 0);
        let elsewhere = TrunkEnd::open(key, 1, ends.clone()).unwrap_err().to_string();
        assert_eq!(elsewhere, "failed to open the trunk between links at 192.0.2.1:7000");
        // A machine without IPv6 refuses its address; nothing else may go wrong.
        let six = TrunkEnd::open(key, 2, ends.clone());
        assert!(six.is_ok() || matches!(six, Err(LinkError::Refused { .. })), "{six:?}");
        assert!(matches!(TrunkEnd::open(key, 3, ends), Err(LinkError::OutOfRange { .. })));
    }

    fn end() -> Arc<TrunkEnd> {
        TrunkEnd::open(Key([7; 16]), 0, vec!["127.0.0.1:0".parse().unwrap()]).unwrap()
    }

    #[test]
    fn the_key_is_not_printed() {
        let printed = format!("{:?}", end());
        assert!(printed.contains("Key(…)") && !printed.contains("7, 7"), "{printed}");
    }

    #[test]
    fn what_the_socket_drops_is_not_counted_as_a_drop_of_a_client_library() {
        let end = end();
        let name = std::fs::read_link(format!("/proc/self/fd/{}", end.socket.as_raw_fd())).unwrap();
        let inode: u64 = name.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap();
        assert!(!datagram::overflowed_in_libraries().contains_key(&inode));
    }

    #[test]
    fn both_buffers_are_larger_than_by_default() {
        let bytes = |socket: &UdpSocket, option| {
            let mut bytes: libc::c_int = 0;
            let mut length = size_of::<libc::c_int>() as libc::socklen_t;
            let place = (&raw mut bytes).cast();
            // SAFETY: the kernel writes at most `length` bytes to `place`.
            let result =
                unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, place, &raw mut length) };
            assert_eq!(result, 0);
            bytes
        };
        let (end, usual) = (end(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            assert!(bytes(&end.socket, option) > bytes(&usual, option), "option {option}");
        }
    }
}
