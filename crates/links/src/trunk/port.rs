//! The end of a trunk in the emulator's thread.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use pubmark_protocol::clock;

use super::codec::{Header, Numbers, decode, encode};
use super::{SharedTrunk, TrunkCounters, TrunkEnd};
use crate::addresses::AddressOwner;
use crate::star::packet::source;

/// Result of reading one datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The place of its packet in the buffer.
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
            datagram: vec![],
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
        // One that was not sent has no number: its receiver would miss it as well.
        match result {
            Ok(_) => {
                self.sent[to] = number;
                self.counters.sent.add(packet.len() as u64);
            }
            Err(_) => self.counters.unsent += 1,
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
            from != self.own() && self.end.ends.get(from) == Some(&sender) && packet.len() <= super::MTU as usize
        }) else {
            return Ok(self.refuse());
        };
        let (from, length_ip) = (usize::from(header.from), packet.len());
        let is_of_sender = source(packet) == Some(AddressOwner::Group(from));
        if !self.received[from].accept(header.number) || !is_of_sender {
            return Ok(self.refuse());
        }
        self.counters.received.add(length_ip as u64);
        self.shared.transit.record(now_ns.saturating_sub(header.left_ns));
        Ok(Received::Packet(length - length_ip..length))
    }

    /// A packet is refused.
    pub fn refuse(&mut self) -> Received {
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

    use super::*;
    use crate::addresses::group_v4;

    const KEY: super::super::Key = [7; 16];

    fn free() -> SocketAddr {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
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
    }

    #[test]
    fn what_no_end_of_the_run_may_have_sent_is_refused() {
        let [mut one, mut other] = ends();
        let mut buffer = [0; 4_096];
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut datagram = vec![];
        encode(&mut datagram, &KEY, Header { from: 0, number: 1, left_ns: 0 }, &packet(0, 1));
        stranger.send_to(&datagram, other.end.ends[1]).unwrap();
        assert_eq!(next(&mut other, &mut buffer), Received::Refused, "the key, from another address");
        let mut tell = |key: &super::super::Key, from, packet: &[u8]| {
            encode(&mut datagram, key, Header { from, number: 1, left_ns: 0 }, packet);
            one.end.socket.send_to(&datagram, other.end.ends[1]).unwrap();
            next(&mut other, &mut buffer)
        };
        assert_eq!(tell(&[8; 16], 0, &packet(0, 1)), Received::Refused, "another key");
        assert_eq!(tell(&KEY, 1, &packet(0, 1)), Received::Refused, "the number of the receiver");
        assert_eq!(tell(&KEY, 511, &packet(0, 1)), Received::Refused, "a number that the run does not have");
        assert_eq!(tell(&KEY, 0, &[0x45; super::super::MTU as usize + 1]), Received::Refused, "too long");
        assert!(matches!(tell(&KEY, 0, &packet(0, 1)), Received::Packet(_)));
        assert_eq!(tell(&KEY, 0, &packet(0, 1)), Received::Refused, "for the second time");
        one.sent[1] = 1;
        one.send(1, &packet(1, 1));
        assert_eq!(next(&mut other, &mut buffer), Received::Refused, "the address of another group");
        other.publish();
        let counters = other.shared.read().counters;
        assert_eq!((counters.received.packets, counters.refused, counters.missing), (1, 7, 0));
    }
}
