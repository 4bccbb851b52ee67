//! The end of a trunk in the emulator's thread.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use pubmark_protocol::clock;

use super::codec::{HEADER_BYTES, Header, Numbers, decode, encode};
use super::{MTU, SharedTrunk, TrunkCounters, TrunkEnd};
use crate::addresses::AddressOwner;
use crate::star::packet::{Destination, destination, source};

/// Result of reading one datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The place of its packet in the buffer. The packet is for the star's group, or for a multicast group.
    Packet(Range<usize>),
    /// It is refused, and counted.
    Refused,
}

/// Sends and receives packets of the one group of a star.
#[derive(Debug)]
pub(crate) struct TrunkPort {
    end: Arc<TrunkEnd>,
    datagram: Vec<u8>,
    /// Number of the last datagram to each end.
    sent: Vec<u64>,
    /// Numbers of the datagrams from each end.
    received: Vec<Numbers>,
    counters: TrunkCounters,
    shared: Arc<SharedTrunk>,
}

impl TrunkPort {
    /// Shows its counters in `shared`.
    pub fn new(end: Arc<TrunkEnd>, shared: Arc<SharedTrunk>) -> TrunkPort {
        let ends = end.ends.len();
        TrunkPort {
            end,
            datagram: Vec::with_capacity(HEADER_BYTES + MTU as usize),
            sent: vec![0; ends],
            received: vec![Numbers::default(); ends],
            counters: TrunkCounters::default(),
            shared,
        }
    }

    /// The socket, to be polled.
    pub fn descriptor(&self) -> RawFd {
        self.end.socket.as_raw_fd()
    }

    /// Number of the star's group.
    pub fn own(&self) -> usize {
        self.end.own()
    }

    /// Numbers of the groups of all stars, from 0 on: how many there are.
    pub fn groups(&self) -> usize {
        self.sent.len()
    }

    /// Sends a packet of the star's group to another group.
    pub fn send(&mut self, to: usize, packet: &[u8]) {
        let TrunkEnd { socket, key, own, ends } = &*self.end;
        let number = self.sent[to] + 1;
        let header = Header { from: *own, number, left_ns: clock::monotonic_ns() };
        encode(&mut self.datagram, key, header, packet);
        let result = loop {
            match socket.send_to(&self.datagram, ends[to]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        // One that was not sent has no number: it would be missing at its receiver as well, and be counted twice.
        match result {
            Ok(_) => {
                self.sent[to] = number;
                self.counters.sent.add(packet.len() as u64);
            }
            Err(error) => {
                self.counters.unsent += 1;
                self.counters.unsent_errno = error.raw_os_error().unwrap_or(0);
            }
        }
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        let (length, sender) = self.end.socket.recv_from(buffer)?;
        let now_ns = clock::monotonic_ns();
        let found = decode(&buffer[..length], &self.end.key);
        let Some((header, packet)) = found.filter(|(header, packet)| {
            let from = usize::from(header.from);
            from != self.own() && self.end.ends.get(from) == Some(&sender) && packet.len() <= MTU as usize
        }) else {
            return Ok(self.refuse());
        };
        let (from, length_ip) = (usize::from(header.from), packet.len());
        let may_come = source(packet) == Some(AddressOwner::Group(from)) && self.is_for_here(packet);
        if !self.received[from].accept(header.number) || !may_come {
            return Ok(self.refuse());
        }
        self.counters.received.add(length_ip as u64);
        let transit_ns = now_ns.checked_sub(header.left_ns);
        self.counters.negative += u64::from(transit_ns.is_none());
        self.shared.transit.record(transit_ns.unwrap_or(0));
        Ok(Received::Packet(length - length_ip..length))
    }

    /// Is a packet for the star's group, or for a multicast group?
    fn is_for_here(&self, packet: &[u8]) -> bool {
        match destination(packet) {
            Destination::One(owner) => owner == AddressOwner::Group(self.own()),
            Destination::Everyone => true,
            Destination::Noise | Destination::Nowhere | Destination::Malformed => false,
        }
    }

    fn refuse(&mut self) -> Received {
        self.counters.refused += 1;
        Received::Refused
    }

    /// Shows the counters.
    pub fn publish(&mut self) {
        self.counters.missing = self.received.iter().map(Numbers::missing).fold(0, u64::saturating_add);
        self.shared.publish(&self.counters);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::super::Key;
    use super::*;
    use crate::addresses::group_v4;

    const KEY: Key = Key::new([7; 16]);

    /// A free port, below those that the kernel gives to outgoing connections.
    fn free() -> SocketAddr {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        loop {
            let step = (std::process::id() as u16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
            let place = SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000 + step));
            if UdpSocket::bind(place).is_ok() {
                return place;
            }
        }
    }

    fn packet(from: usize, to: usize) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&group_v4(from, 0).octets());
        packet[16..20].copy_from_slice(&group_v4(to, 0).octets());
        packet
    }

    /// Another process may take a port between the two steps; then the test starts anew.
    fn ends() -> [TrunkPort; 2] {
        loop {
            let ends = vec![free(), free()];
            let open = |own| TrunkEnd::open(KEY, own, ends.clone());
            if let (Ok(one), Ok(other)) = (open(0), open(1)) {
                return [one, other].map(|end| TrunkPort::new(end, Arc::new(SharedTrunk::new())));
            }
        }
    }

    fn next(port: &mut TrunkPort, buffer: &mut [u8]) -> Received {
        loop {
            match port.receive(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                result => return result.unwrap(),
            }
        }
    }

    #[test]
    fn packets_come_out_of_the_other_end_and_are_counted() {
        let [mut one, mut other] = ends();
        let (sent, mut buffer) = (packet(0, 1), [0; 4_096]);
        one.send(1, &sent);
        let Received::Packet(place) = next(&mut other, &mut buffer) else { panic!("it was refused") };
        assert_eq!(buffer[place], sent);
        // One that the network lost.
        one.sent[1] += 1;
        one.send(1, &sent);
        assert!(matches!(next(&mut other, &mut buffer), Received::Packet(_)));
        one.publish();
        other.publish();
        let [one, other] = [one, other].map(|port| port.shared.read());
        assert_eq!((one.counters.sent.packets, one.counters.sent.bytes), (2, 56));
        assert_eq!((other.counters.received.packets, other.counters.received.bytes), (2, 56));
        assert_eq!((other.counters.missing, other.counters.refused, other.transit.count()), (1, 0, 2));
        assert_eq!(other.counters.negative, 0);
    }

    #[test]
    fn a_packet_that_came_before_it_was_sent_is_counted() {
        let [one, mut other] = ends();
        let (mut datagram, mut buffer) = (vec![], [0; 4_096]);
        encode(&mut datagram, &KEY, Header { from: 0, number: 1, left_ns: u64::MAX }, &packet(0, 1));
        one.end.socket.send_to(&datagram, other.end.ends[1]).unwrap();
        assert!(matches!(next(&mut other, &mut buffer), Received::Packet(_)));
        other.publish();
        let found = other.shared.read();
        assert_eq!((found.counters.received.packets, found.counters.negative, found.transit.largest_ns()), (1, 1, 0));
    }

    #[test]
    fn what_the_kernel_does_not_send_is_counted_and_not_missed() {
        // A socket of IPv4 sends nothing to an address of IPv6.
        let ends = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "[::1]:9".parse().unwrap()];
        let mut port = TrunkPort::new(TrunkEnd::open(KEY, 0, ends).unwrap(), Arc::new(SharedTrunk::new()));
        port.send(1, &packet(0, 1));
        port.publish();
        let counters = port.shared.read().counters;
        assert_eq!((counters.unsent, counters.sent.packets, port.sent[1]), (1, 0, 0));
        assert_eq!(counters.unsent_errno, libc::EAFNOSUPPORT);
    }

    #[test]
    fn what_no_end_of_the_run_may_have_sent_is_refused() {
        let [one, mut other] = ends();
        let mut buffer = [0; 4_096];
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut datagram = vec![];
        encode(&mut datagram, &KEY, Header { from: 0, number: 1, left_ns: 0 }, &packet(0, 1));
        stranger.send_to(&datagram, other.end.ends[1]).unwrap();
        assert_eq!(next(&mut other, &mut buffer), Received::Refused, "the key, from another address");
        let mut send = |key: &Key, from, number, packet: &[u8]| {
            encode(&mut datagram, key, Header { from, number, left_ns: 0 }, packet);
            one.end.socket.send_to(&datagram, other.end.ends[1]).unwrap();
            next(&mut other, &mut buffer)
        };
        assert_eq!(send(&Key::new([8; 16]), 0, 1, &packet(0, 1)), Received::Refused, "another key");
        assert_eq!(send(&KEY, 1, 1, &packet(0, 1)), Received::Refused, "the number of the receiver");
        assert_eq!(send(&KEY, 511, 1, &packet(0, 1)), Received::Refused, "a number that the run does not have");
        assert_eq!(send(&KEY, 0, 1, &[0x45; MTU as usize + 1]), Received::Refused, "too long");
        assert!(matches!(send(&KEY, 0, 1, &packet(0, 1)), Received::Packet(_)));
        assert_eq!(send(&KEY, 0, 1, &packet(0, 1)), Received::Refused, "for the second time");
        assert_eq!(send(&KEY, 0, 2, &packet(1, 1)), Received::Refused, "from the address of another group");
        assert_eq!(send(&KEY, 0, 3, &packet(0, 2)), Received::Refused, "to another group");
        assert_eq!(send(&KEY, 0, 4, &[0; 28]), Received::Refused, "no IP packet");
        other.publish();
        let found = other.shared.read();
        let counters = found.counters;
        // Nothing that was refused is received or missing as well.
        assert_eq!((counters.received.packets, counters.refused, counters.missing), (1, 9, 0));
        assert_eq!(found.transit.count(), 1);
    }
}
