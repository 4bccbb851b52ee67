//! Bytes of a system's TCP connections that the kernel still buffers: not acknowledged by the other end, or not read
//! there.

use std::collections::BTreeSet;

use procfs::FromReadSI as _;
use procfs::net::TcpNetEntries;

/// Tables of the calling thread's network namespace: IPv4, IPv6. A kernel may lack the second.
const TABLES: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];

/// Bytes that are in transit from a system that listens at these ports: unacknowledged at the system's ends of
/// connections, and unread at the other ends if these are in the network namespace of the calling thread. `None` if the
/// kernel does not report them.
pub fn bytes_on_their_way(ports: &BTreeSet<u16>) -> Option<u64> {
    let read = |table| TcpNetEntries::from_file(table, procfs::current_system_info()).ok();
    let [first, second] = TABLES.map(read);
    let entries = first?.0.into_iter().chain(second.map_or_else(Vec::new, |entries| entries.0));
    let held = entries.map(|entry| {
        let sent = if ports.contains(&entry.local_address.port()) { entry.tx_queue } else { 0 };
        let unread = if ports.contains(&entry.remote_address.port()) { entry.rx_queue } else { 0 };
        u64::from(sent) + u64::from(unread)
    });
    Some(held.sum())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn unread_bytes_wait_until_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = BTreeSet::from([listener.local_addr().unwrap().port()]);
        let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut writer, _) = listener.accept().unwrap();
        assert_eq!(bytes_on_their_way(&ports), Some(0));
        writer.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = writer.write(&[0; 65_536]) {
            written += bytes;
        }
        let held = bytes_on_their_way(&ports).unwrap();
        // Bytes that have arrived and are not acknowledged yet are counted on both sides.
        assert!((written as u64..=2 * written as u64).contains(&held), "{held} of {written}");
        let mut rest = vec![0; written];
        reader.read_exact(&mut rest).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while bytes_on_their_way(&ports) != Some(0) {
            assert!(std::time::Instant::now() < deadline, "{:?} are held", bytes_on_their_way(&ports));
            std::thread::yield_now();
        }
    }
}
