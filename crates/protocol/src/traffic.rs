//! Traffic of sockets with its headers: exact for datagrams, estimated for TCP from the kernel's counters of a connection.
//!
//! TCP's own count knows bytes and segments; the header of a segment is taken as IP's, TCP's 20 B, and 12 B of options where
//! timestamps are on. Segments with other options (the first two of a connection, selective acknowledgements) are a few bytes
//! longer.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use serde::{Deserialize, Serialize};

/// Header of an IPv4 packet without options (RFC 791 §3.1), bytes.
pub const IPV4: u64 = 20;
/// Header of an IPv6 packet without extensions (RFC 8200 §3), bytes.
pub const IPV6: u64 = 40;
/// Header of a UDP datagram (RFC 768), bytes.
pub const UDP: u64 = 8;
/// Header of a TCP segment without options (RFC 9293 §3.1), bytes.
pub const TCP: u64 = 20;
/// The timestamps option with its padding (RFC 7323, appendix A), bytes.
pub const TCP_TIMESTAMPS: u64 = 12;

/// Packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Packets.
    pub packets: u64,
    /// Their bytes with IP headers.
    pub ip_bytes: u64,
}

impl Carried {
    /// Adds others.
    pub fn add(&mut self, other: Carried) {
        self.packets += other.packets;
        self.ip_bytes += other.ip_bytes;
    }

    /// What was added since an earlier count.
    pub fn since(&self, earlier: &Carried) -> Carried {
        Carried {
            packets: self.packets.saturating_sub(earlier.packets),
            ip_bytes: self.ip_bytes.saturating_sub(earlier.ip_bytes),
        }
    }
}

/// Packets of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// From us.
    pub sent: Carried,
    /// To us.
    pub received: Carried,
}

impl Traffic {
    /// Adds another's.
    pub fn add(&mut self, other: &Traffic) {
        self.sent.add(other.sent);
        self.received.add(other.received);
    }

    /// What was added since an earlier count.
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        Traffic { sent: self.sent.since(&earlier.sent), received: self.received.since(&earlier.received) }
    }
}

/// IP header of packets to or from this address, bytes. An IPv4-mapped IPv6 address uses IPv4.
pub fn ip_header(address: SocketAddr) -> u64 {
    match address {
        SocketAddr::V4(_) => IPV4,
        SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_some() => IPV4,
        SocketAddr::V6(_) => IPV6,
    }
}

/// The kernel's counters of a TCP connection since it was opened: `None` if it does not count the bytes sent (before Linux
/// 4.19). `address` is one of its ends.
pub fn of_tcp(socket: BorrowedFd<'_>, address: SocketAddr) -> Option<Traffic> {
    let mut raw = [0u8; TCP_INFO_BYTES];
    let mut length = raw.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `raw`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, raw.as_mut_ptr().cast(), &mut length)
    };
    let is_known = result == 0 && length as usize == raw.len();
    is_known.then(|| estimate(&raw, ip_header(address)))
}

/// As far as `tcpi_bytes_sent` (`linux/tcp.h`; the layout only grows at its end).
const TCP_INFO_BYTES: usize = 208;
const OPTIONS: usize = 5;
const BYTES_RECEIVED: usize = 128;
const SEGMENTS_SENT: usize = 136;
const SEGMENTS_RECEIVED: usize = 140;
const BYTES_SENT: usize = 200;
/// `TCPI_OPT_TIMESTAMPS`.
const HAS_TIMESTAMPS: u8 = 1;

fn estimate(raw: &[u8; TCP_INFO_BYTES], ip_header: u64) -> Traffic {
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|place| raw[at + place]));
    let short = |at: usize| u64::from(u32::from_ne_bytes(std::array::from_fn(|place| raw[at + place])));
    let options = if raw[OPTIONS] & HAS_TIMESTAMPS != 0 { TCP_TIMESTAMPS } else { 0 };
    let header = ip_header + TCP + options;
    let carried = |packets: u64, bytes: u64| Carried { packets, ip_bytes: bytes + packets * header };
    Traffic {
        sent: carried(short(SEGMENTS_SENT), long(BYTES_SENT)),
        received: carried(short(SEGMENTS_RECEIVED), long(BYTES_RECEIVED)),
    }
}

/// A datagram of N bytes as a packet. One that exceeds its path's MTU is sent in fragments, each with a header of its
/// own, which is not known here: protocols over datagrams split messages before that.
pub fn of_datagram(bytes: usize, ip_header: u64) -> Carried {
    Carried { packets: 1, ip_bytes: ip_header + UDP + bytes as u64 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_connection_counts_what_it_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(peer).unwrap();
        client.set_nodelay(true).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = of_tcp(client.as_fd(), peer).unwrap();
        for _ in 0..10 {
            // Read before the next is written: each is a segment of its own.
            client.write_all(&[7; 100]).unwrap();
            server.read_exact(&mut [0; 100]).unwrap();
        }
        let carried = of_tcp(client.as_fd(), peer).unwrap().since(&before);
        let header = (carried.sent.ip_bytes - 1_000) / carried.sent.packets;
        assert!([IPV4 + TCP, IPV4 + TCP + TCP_TIMESTAMPS].contains(&header), "{header} B a segment");
        assert_eq!(carried.sent, Carried { packets: 10, ip_bytes: 1_000 + 10 * header });
        assert!(carried.received.packets <= 10 && carried.received.ip_bytes == carried.received.packets * header);
    }

    #[test]
    fn mapped_addresses_are_of_ipv4() {
        let header = |text: &str| ip_header(text.parse().unwrap());
        assert_eq!([header("127.0.0.1:1"), header("[::1]:1"), header("[::ffff:127.0.0.1]:1")], [20, 40, 20]);
        assert_eq!(of_datagram(100, IPV4), Carried { packets: 1, ip_bytes: 128 });
    }
}
