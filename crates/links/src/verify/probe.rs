//! Numbered datagrams from one namespace to another, and when they arrived.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use pubmark_protocol::receive::{WallOffset, enable_stamps, read_stamped};
use pubmark_protocol::{clock, datagram};

use crate::Direction;
use crate::addresses::CORE_V4;
use crate::error::LinkError;
use crate::network::Network;

/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// Of a probe: its round and number, when it was sent.
const CONTENT: usize = 20;

/// IP bytes of the smallest probe.
pub const SMALLEST: usize = HEADERS + CONTENT;

/// Marks probes; anything else that comes to the socket is passed over.
const MARK: u32 = 0x706d_6c70;

/// Requested buffer at the receiver: thousands of probes.
const RECEIVE_BYTES: libc::c_int = 16 << 20;

/// The receiver looks this often whether the last probe has come.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// After the link is empty, for what the kernel still has to hand over.
const GRACE_NS: u64 = 20_000_000;

/// Sockets at both ends of one direction.
pub struct Path<'a> {
    network: &'a Network,
    /// The group.
    pub group: usize,
    /// The direction.
    pub direction: Direction,
    sender: UdpSocket,
    receiver: UdpSocket,
    target: SocketAddr,
    round: u32,
    sent: u64,
    received: u64,
}

/// Which probes to send.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// At most N.
    pub count: u64,
    /// IP bytes of each.
    pub bytes: usize,
    /// From one to the next, ns.
    pub spacing_ns: u64,
    /// Sent late, shall the next one follow sooner? Otherwise none is closer to the one before than the spacing.
    pub catches_up: bool,
    /// No more are sent after this time, ns.
    pub send_for_ns: u64,
    /// The last one must have come this long after it was sent, ns.
    pub wait_ns: u64,
}

/// A probe that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its number in the round.
    pub number: u64,
    /// Just before it was sent, ns.
    pub sent_ns: u64,
    /// When the receiver's kernel got it, ns.
    pub received_ns: u64,
}

/// Results of the probes of a plan.
#[derive(Debug)]
pub struct Round {
    /// Sent.
    pub sent: u64,
    /// In the order of their arrival.
    pub arrivals: Vec<Arrival>,
}

impl<'a> Path<'a> {
    /// Opens the sockets.
    pub fn open(network: &'a Network, group: usize, direction: Direction) -> Result<Path<'a>, LinkError> {
        let group_place = network.group(group).ok_or(LinkError::OutOfRange {
            what: "number of a group",
            asked: group + 1,
            least: 1,
            most: network.groups(),
        })?;
        let own = (group_place, network.address(group));
        let core = (network.core(), IpAddr::from(CORE_V4));
        let (from, to) = if direction == Direction::Up { (own, core) } else { (core, own) };
        let sender = from.0.enter(|| UdpSocket::bind((from.1, 0)))?.map_err(refused)?;
        let receiver = to.0.enter(|| UdpSocket::bind((to.1, 0)))?.map_err(refused)?;
        datagram::enlarge_receive_buffer(receiver.as_fd(), RECEIVE_BYTES).map_err(refused)?;
        enable_stamps(receiver.as_fd()).map_err(refused)?;
        receiver.set_read_timeout(Some(POLL_INTERVAL)).map_err(refused)?;
        let target = receiver.local_addr().map_err(refused)?;
        Ok(Path { network, group, direction, sender, receiver, target, round: 0, sent: 0, received: 0 })
    }

    /// Sends probes and collects those that arrive.
    pub fn probe(&mut self, plan: Plan) -> Result<Round, LinkError> {
        self.round += 1;
        let this = &*self;
        let (sent, arrivals) = std::thread::scope(|scope| {
            let sending = std::thread::Builder::new().name("probe sender".to_owned());
            let sending = sending.spawn_scoped(scope, || this.send(plan)).map_err(refused)?;
            let arrivals = this.receive(plan, || sending.is_finished())?;
            let sent =
                sending.join().map_err(|_| LinkError::Stopped { reason: "a probe's sender panicked".to_owned() })?;
            Ok::<_, LinkError>((sent.map_err(refused)?, arrivals))
        })?;
        self.sent += sent;
        self.received += arrivals.len() as u64;
        Ok(Round { sent, arrivals })
    }

    /// Largest probe that the network carries in one packet, IP bytes.
    pub fn mtu(&self) -> u64 {
        self.network.mtu().into()
    }

    /// Probes sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Probes received so far, copies included.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Datagrams that the receiver's socket dropped.
    pub fn receiver_drops(&self) -> u64 {
        datagram::overflowed(self.receiver.as_fd()).unwrap_or(0)
    }

    fn send(&self, plan: Plan) -> io::Result<u64> {
        clock::make_sleeps_exact();
        let mut packet = vec![0; plan.bytes.saturating_sub(HEADERS).max(CONTENT)];
        packet[..4].copy_from_slice(&MARK.to_le_bytes());
        packet[4..8].copy_from_slice(&self.round.to_le_bytes());
        let start = clock::monotonic_ns();
        let mut due = start;
        for number in 0..plan.count {
            sleep_until(due);
            let now = clock::monotonic_ns();
            // A better estimate of the run's clock may set it back.
            if now.saturating_sub(start) > plan.send_for_ns {
                return Ok(number);
            }
            packet[8..12].copy_from_slice(&(number as u32).to_le_bytes());
            packet[12..20].copy_from_slice(&now.to_le_bytes());
            self.sender.send_to(&packet, self.target)?;
            due = if plan.catches_up { due } else { now } + plan.spacing_ns;
        }
        Ok(plan.count)
    }

    fn receive(&self, plan: Plan, sender_is_done: impl Fn() -> bool) -> Result<Vec<Arrival>, LinkError> {
        let mut arrivals = Vec::new();
        let (mut buffer, mut offset) = (vec![0; 65_536], WallOffset::default());
        let give_up = clock::monotonic_ns() + plan.send_for_ns + plan.wait_ns;
        let mut empty_since = None;
        loop {
            let read = read_stamped(self.receiver.as_fd(), &mut buffer);
            let now = clock::monotonic_ns();
            match read {
                Ok(read) => {
                    let received_ns = read.stamp_realtime_ns.map_or(now, |stamp| offset.to_monotonic_ns(stamp, now));
                    arrivals.extend(self.parse(&buffer[..read.bytes], received_ns));
                    continue;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(refused(error)),
            }
            if now > give_up || !self.network.is_running() {
                return Ok(arrivals);
            }
            if sender_is_done() && self.network.waiting(self.group, self.direction) == 0 {
                if now.saturating_sub(*empty_since.get_or_insert(now)) > GRACE_NS {
                    return Ok(arrivals);
                }
            } else {
                empty_since = None;
            }
        }
    }

    fn parse(&self, packet: &[u8], received_ns: u64) -> Option<Arrival> {
        let word = |at: usize| Some(u32::from_le_bytes(packet.get(at..at + 4)?.try_into().ok()?));
        if word(0)? != MARK || word(4)? != self.round {
            return None;
        }
        let sent_ns = u64::from_le_bytes(packet.get(12..20)?.try_into().ok()?);
        Some(Arrival { number: u64::from(word(8)?), sent_ns, received_ns })
    }
}

fn refused(error: io::Error) -> LinkError {
    LinkError::refused("send probes over a link", error)
}

/// Sleeps until a time of [`clock::monotonic_ns`]. On a node that is the run's time, by which the kernel cannot wait.
fn sleep_until(due_ns: u64) {
    loop {
        let left = clock::wait_until(due_ns);
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left);
    }
}
