//! Bytes in a system's sockets that the kernel still buffers: not acknowledged by the other end, or not read there or here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

use procfs::FromReadSI as _;
use procfs::net::{TcpNetEntries, TcpState, UdpNetEntries};

/// Tables of the calling thread's network namespace: IPv4, IPv6. A kernel may lack the second.
const TCP: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
const UDP: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// Inodes of the TCP sockets that listen at a port, in the network namespace of the calling thread: a thread that reaches clients
/// behind links has another one than its process.
pub(crate) fn listening(port: u16) -> HashSet<u64> {
    let info = procfs::current_system_info();
    let entries = TCP.iter().filter_map(|table| TcpNetEntries::from_file(table, info).ok()).flat_map(|table| table.0);
    entries
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port)
        .map(|entry| entry.inode)
        .collect()
}

/// Bytes between a system and its clients that their reader has not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InTransit {
    /// Unacknowledged at the system's ends of TCP connections, and unread at the other ends if these are in the network
    /// namespace of the calling thread; by the client's address, without connections that hold nothing.
    to_clients: HashMap<SocketAddr, u64>,
    /// Received by the kernel and not read by the system, with what the kernel adds to each datagram.
    pub to_system: u64,
}

impl InTransit {
    /// Bytes to clients, without those to the `silenced` addresses: clients that do not read or acknowledge any more.
    pub fn to_clients_except(&self, silenced: &[SocketAddr]) -> u64 {
        let silenced: HashSet<SocketAddr> = silenced.iter().copied().map(canonical).collect();
        let others = self.to_clients.iter().filter(|(client, _)| !silenced.contains(*client));
        others.fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes))
    }

    fn add_to_client(&mut self, client: SocketAddr, bytes: u32) {
        if bytes > 0 {
            let sum = self.to_clients.entry(canonical(client)).or_default();
            *sum = sum.saturating_add(u64::from(bytes));
        }
    }
}

/// One form for both ends: a system that listens for IPv6 shows a client of IPv4 as a mapped address, and only the client's own end
/// names the interface of a link-local one.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Bytes in transit of a system that listens at these ports. `None` if the kernel does not report them.
pub fn in_transit(ports: &BTreeSet<u16>) -> Option<InTransit> {
    let info = procfs::current_system_info();
    let [first, second] = TCP.map(|table| TcpNetEntries::from_file(table, info).ok());
    let mut sum = InTransit::default();
    for entry in first?.0.into_iter().chain(second.map_or_else(Vec::new, |entries| entries.0)) {
        let [is_own, is_peers] = [&entry.local_address, &entry.remote_address].map(|end| ports.contains(&end.port()));
        sum.add_to_client(entry.remote_address, if is_own { entry.tx_queue } else { 0 });
        sum.add_to_client(entry.local_address, if is_peers { entry.rx_queue } else { 0 });
        // At a listening socket the number is that of connections that are not accepted.
        sum.to_system += if is_own && entry.state != TcpState::Listen { u64::from(entry.rx_queue) } else { 0 };
    }
    let [first, second] = UDP.map(|table| UdpNetEntries::from_file(table, info).ok());
    for entry in first?.0.into_iter().chain(second.map_or_else(Vec::new, |entries| entries.0)) {
        sum.to_system += if ports.contains(&entry.local_address.port()) { u64::from(entry.rx_queue) } else { 0 };
    }
    Some(sum)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn unread_bytes_wait_until_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = BTreeSet::from([listener.local_addr().unwrap().port()]);
        let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut writer, _) = listener.accept().unwrap();
        assert_eq!(in_transit(&ports), Some(InTransit::default()));
        writer.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = writer.write(&[0; 65_536]) {
            written += bytes;
        }
        let found = in_transit(&ports).unwrap();
        let to_clients = found.to_clients_except(&[]);
        // Bytes that have arrived and are not acknowledged yet are counted on both sides.
        assert!((written as u64..=2 * written as u64).contains(&to_clients), "{to_clients} of {written}");
        assert_eq!(found.to_system, 0);
        let mut rest = vec![0; written];
        reader.read_exact(&mut rest).unwrap();
        wait_for(&ports, InTransit::default());
    }

    #[test]
    fn what_is_on_its_way_to_a_silenced_client_is_left_out() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                return pubmark_testing::skip("this machine has no IPv6 loopback");
            };
            let port = listener.local_addr().unwrap().port();
            let ports = BTreeSet::from([port]);
            let connect = || (TcpStream::connect(("127.0.0.1", port)).unwrap(), listener.accept().unwrap().0);
            let ((silenced, mut to_silenced), (client, mut to_client)) = (connect(), connect());
            // Until its queues at both ends are full.
            to_silenced.set_nonblocking(true).unwrap();
            let mut written = 0;
            while let Ok(bytes) = to_silenced.write(&[0; 65_536]) {
                written += bytes as u64;
            }
            to_client.write_all(&[0; 100]).unwrap();
            client.peek(&mut [0; 100]).unwrap();
            let found = in_transit(&ports).unwrap();
            assert!(found.to_clients_except(&[]) >= written + 100, "{found:?}");
            // Bytes that have arrived and are not acknowledged yet are counted on both sides.
            let left = found.to_clients_except(&[silenced.local_addr().unwrap()]);
            assert!((100..=200).contains(&left), "{left} of {found:?}");
        }
    }

    #[test]
    fn what_a_system_has_not_read_is_in_transit_to_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ports = BTreeSet::from([listener.local_addr().unwrap().port(), server.local_addr().unwrap().port()]);
        // One connection is not accepted.
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let _waiting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(&[0; 1_000]).unwrap();
        wait_for(&ports, InTransit { to_system: 1_000, ..InTransit::default() });
        accepted.read_exact(&mut [0; 1_000]).unwrap();
        wait_for(&ports, InTransit::default());

        server.send_to(&[0; 100], server.local_addr().unwrap()).unwrap();
        assert!(in_transit(&ports).unwrap().to_system >= 100);
        server.recv(&mut [0; 100]).unwrap();
        wait_for(&ports, InTransit::default());
    }

    fn wait_for(ports: &BTreeSet<u16>, expected: InTransit) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while in_transit(ports).as_ref() != Some(&expected) {
            assert!(std::time::Instant::now() < deadline, "{:?}", in_transit(ports));
            std::thread::yield_now();
        }
    }
}
