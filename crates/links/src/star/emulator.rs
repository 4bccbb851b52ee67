//! What the emulator's thread does with packets.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::rc::Rc;

use pubmark_protocol::clock;

use super::agenda::Agenda;
use super::packet::{Destination, destination};
use super::read_wait::ReadWait;
use super::thread::Shared;
use super::{Command, LinkCounters, Strays};
use crate::Direction;
use crate::addresses::AddressOwner;
use crate::direction::{InputResult, OneWayLink};
use crate::trunk::{Received, TrunkPort};

/// Reads of one interface before the others have their turn, and what is due.
const READS_AT_ONCE: usize = 64;

/// The largest IP packet.
const PACKET_BYTES: usize = 65_535;

/// A packet that passed one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// The IP packet.
    pub packet: &'a [u8],
    /// The group whose link it is, counted from 0.
    pub group: usize,
    /// Which direction.
    pub direction: Direction,
    /// When it came to the link, on the clock that this process follows, ns.
    pub in_ns: u64,
    /// When it left it: just before the write to the receiver, or at the hand-over to the next link. What the write does, the
    /// receiver's kernel does.
    pub out_ns: u64,
}

/// Sees every packet that passes a link, in the emulator's thread: what it does delays packets.
pub trait Observer: Send + 'static {
    /// Is there an observer? A constant, so that it costs nothing without one.
    const WATCHES: bool = true;

    /// A packet passed a direction.
    fn passed(&mut self, passage: Passage<'_>);

    /// A packet that came to a direction of a group's link at `at_ns` was lost or dropped there: at once, or from the queue of a
    /// link that broke.
    fn lost(&mut self, packet: &[u8], group: usize, direction: Direction, at_ns: u64) {
        let _ = (packet, group, direction, at_ns);
    }
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    const WATCHES: bool = false;

    fn passed(&mut self, _passage: Passage<'_>) {}
}

/// Where a packet goes in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The core or a group of this star; a group by its place in it.
    One(AddressOwner),
    /// A group of another star, by its number.
    Far(usize),
    Everyone,
}

/// A packet on a link.
#[derive(Clone, Debug)]
struct Flight {
    bytes: Rc<[u8]>,
    target: Target,
}

/// A packet's bytes, in the read buffer or held.
#[derive(Clone, Copy)]
enum Bytes<'a> {
    Read(&'a [u8]),
    Held(&'a Rc<[u8]>),
}

impl<'a> Bytes<'a> {
    fn get(self) -> &'a [u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Held(bytes) => bytes,
        }
    }

    fn hold(self) -> Rc<[u8]> {
        match self {
            Bytes::Read(bytes) => Rc::from(bytes),
            Bytes::Held(bytes) => Rc::clone(bytes),
        }
    }
}

/// When a packet came to a direction, and when it was to leave.
#[derive(Clone, Copy)]
struct Times {
    in_ns: u64,
    /// When it was to leave; `None` if it had to wait neither here nor on the link before.
    due_ns: Option<u64>,
}

/// State of the thread. Port 0 is the core's interface, port g + 1 that of group g; direction 2·g is its up-link,
/// 2·g + 1 its down-link.
pub struct Emulator<O> {
    ports: Vec<File>,
    directions: Vec<OneWayLink<Flight>>,
    agenda: Agenda,
    changed: Vec<bool>,
    read_wait: ReadWait,
    strays: Strays,
    held_bytes: u64,
    most_held_bytes: u64,
    shared: std::sync::Arc<Shared>,
    observer: O,
    trunk: Option<TrunkPort>,
}

fn index(group: usize, direction: Direction) -> usize {
    2 * group + usize::from(direction == Direction::Down)
}

/// Group and direction at an index.
fn place(index: usize) -> (usize, Direction) {
    (index / 2, if index.is_multiple_of(2) { Direction::Up } else { Direction::Down })
}

impl<O: Observer> Emulator<O> {
    /// Between `ports`, over `links` (up and down of each group), and with a trunk to the groups of other stars.
    pub fn new(
        ports: Vec<File>,
        links: &[pubmark_model::link::Link],
        seed: u64,
        most_held_bytes: u64,
        shared: std::sync::Arc<Shared>,
        observer: O,
        trunk: Option<TrunkPort>,
    ) -> Emulator<O> {
        let directions: Vec<_> = links
            .iter()
            .enumerate()
            .flat_map(|(group, link)| {
                // Two groups may have links of one name: the number makes their draws independent.
                let name = format!("{group}/{}", link.name);
                [(Direction::Up, &link.up), (Direction::Down, &link.down)]
                    .map(|(direction, steps)| OneWayLink::new(steps.clone(), seed, &name, direction))
            })
            .collect();
        Emulator {
            // The last one is the trunk's.
            read_wait: ReadWait::new(ports.len() + 1, clock::machine_ns()),
            ports,
            agenda: Agenda::new(directions.len()),
            changed: vec![false; directions.len()],
            directions,
            strays: Strays::default(),
            held_bytes: 0,
            most_held_bytes,
            shared,
            observer,
            trunk,
        }
    }

    /// The trunk's socket, to be polled.
    pub fn trunk(&self) -> Option<RawFd> {
        self.trunk.as_ref().map(TrunkPort::descriptor)
    }

    /// The interfaces, the core's first.
    pub fn ports(&self) -> &[File] {
        &self.ports
    }

    /// Ends it; the interfaces remain as long as their handles exist.
    pub fn into_ports(self) -> Vec<File> {
        self.ports
    }

    /// When something is to be done next, ns.
    pub fn next_ns(&self) -> Option<u64> {
        self.agenda.next_ns()
    }

    /// Executes a command of a caller.
    pub fn command(&mut self, command: Command) {
        let now_ns = clock::monotonic_ns();
        match command {
            Command::Start(origin_ns) => {
                for index in 0..self.directions.len() {
                    self.with(index, |link| link.start(origin_ns));
                }
            }
            Command::Set(group, direction, conditions) => {
                self.with(index(group, direction), |link| link.set(now_ns, conditions));
            }
            Command::Cut(group, cut) => {
                for direction in [Direction::Up, Direction::Down] {
                    self.with(index(group, direction), |link| link.cut(now_ns, cut));
                }
            }
        }
    }

    /// The thread has polled the interfaces: see [`ReadWait::polled`].
    pub fn polled(&mut self, polled_ns: u64, woke_ns: Option<u64>, is_full: bool) {
        self.read_wait.polled(polled_ns, woke_ns, is_full);
    }

    /// Reads what port `port` has sent, up to a bound.
    pub fn read(&mut self, port: usize, buffer: &mut [u8; PACKET_BYTES]) -> std::io::Result<()> {
        self.read_in_turn(port, |emulator| {
            let length = (&emulator.ports[port]).read(buffer)?;
            emulator.carry(port, &buffer[..length]);
            Ok(true)
        })
    }

    /// Reads what groups of other stars have sent, up to a bound.
    pub fn receive(&mut self, buffer: &mut [u8; PACKET_BYTES]) -> std::io::Result<()> {
        self.read_in_turn(self.ports.len(), |emulator| {
            let Some(trunk) = &mut emulator.trunk else { return Err(ErrorKind::WouldBlock.into()) };
            let Received::Packet(place) = trunk.receive(buffer)? else { return Ok(false) };
            emulator.carry_from_far(&buffer[place]);
            Ok(true)
        })
    }

    /// Reads until nothing is left, up to a bound. `read_one` reads once and carries a packet; it returns whether it read one.
    fn read_in_turn(
        &mut self,
        port: usize,
        mut read_one: impl FnMut(&mut Emulator<O>) -> std::io::Result<bool>,
    ) -> std::io::Result<()> {
        let since_ns = self.read_wait.since_ns(port);
        for _ in 0..READS_AT_ONCE {
            let now_ns = clock::machine_ns();
            match read_one(self) {
                Ok(true) => self.shared.read_wait.record(now_ns.saturating_sub(since_ns)),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.read_wait.emptied(port, now_ns);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.read_wait.left(port, since_ns, clock::machine_ns());
        Ok(())
    }

    /// Delivers what is due.
    pub fn deliver(&mut self) {
        while let Some(index) = self.agenda.take_due(clock::monotonic_ns()) {
            while let Some(departure) = self.with(index, |link| link.pop(clock::monotonic_ns())) {
                let Flight { bytes, target } = &departure.packet;
                let times = Times { in_ns: departure.in_ns, due_ns: Some(departure.due_ns) };
                self.arrive(index, Bytes::Held(bytes), *target, times);
            }
        }
    }

    /// Publishes the counters that changed.
    pub fn publish(&mut self) {
        for (index, changed) in self.changed.iter_mut().enumerate() {
            if std::mem::take(changed) {
                self.shared.counters[index].publish(&self.directions[index].counters());
            }
        }
        self.shared.publish_strays(&self.strays);
        if let Some(trunk) = &mut self.trunk {
            trunk.publish();
        }
    }

    /// A packet that was read from `port`.
    fn carry(&mut self, port: usize, packet: &[u8]) {
        let target = match destination(packet) {
            Destination::One(AddressOwner::Core) => Target::One(AddressOwner::Core),
            Destination::One(AddressOwner::Group(number)) => match self.find(number) {
                Some(target) => target,
                None => return self.strays.unroutable += 1,
            },
            Destination::Everyone => Target::Everyone,
            Destination::Noise => return self.strays.noise += 1,
            Destination::Nowhere => return self.strays.unroutable += 1,
            Destination::Malformed => return self.strays.malformed += 1,
        };
        let from = if port == 0 { AddressOwner::Core } else { AddressOwner::Group(port - 1) };
        // Each star has a core, all with one address: no response would arrive.
        let is_from_core_to_far = from == AddressOwner::Core && matches!(target, Target::Far(_));
        if target == Target::One(from) || is_from_core_to_far {
            return self.strays.unroutable += 1;
        }
        let times = Times { in_ns: clock::monotonic_ns(), due_ns: None };
        match from {
            AddressOwner::Core => self.spread(None, Bytes::Read(packet), target, times),
            AddressOwner::Group(group) => self.enter(index(group, Direction::Up), Bytes::Read(packet), target, times),
        }
    }

    /// The group with this number.
    fn find(&self, number: usize) -> Option<Target> {
        let (first, groups) = self.trunk.as_ref().map_or((0, 0), |trunk| (trunk.own(), trunk.groups()));
        let here = number.checked_sub(first).filter(|group| 2 * group < self.directions.len());
        let far = (number < groups).then_some(Target::Far(number));
        here.map(|group| Target::One(AddressOwner::Group(group))).or(far)
    }

    /// A packet from the trunk: it has passed its sender's link.
    fn carry_from_far(&mut self, packet: &[u8]) {
        let times = Times { in_ns: clock::monotonic_ns(), due_ns: None };
        // The trunk has refused what is for others than the one group of this star.
        let target = match destination(packet) {
            Destination::Everyone => Target::Everyone,
            _ => Target::One(AddressOwner::Group(0)),
        };
        self.spread(None, Bytes::Read(packet), target, times);
    }

    /// A packet comes to a direction. `times` are those that it has if the direction lets it through at once.
    fn enter(&mut self, index: usize, bytes: Bytes<'_>, target: Target, times: Times) {
        let now_ns = times.in_ns;
        let length = bytes.get().len() as u64;
        let room = self.most_held_bytes.saturating_sub(self.held_bytes);
        let fate = self.with(index, |link| link.input(now_ns, length, room, || Flight { bytes: bytes.hold(), target }));
        match fate {
            InputResult::Through(copies) => {
                for _ in 0..copies {
                    self.arrive(index, bytes, target, times);
                }
            }
            InputResult::Dropped if O::WATCHES => {
                let (group, direction) = place(index);
                self.observer.lost(bytes.get(), group, direction, now_ns);
            }
            InputResult::Dropped | InputResult::Queued => {}
        }
    }

    /// A packet leaves a direction.
    fn arrive(&mut self, index: usize, bytes: Bytes<'_>, target: Target, times: Times) {
        let (group, direction) = place(index);
        let due_ns = times.due_ns.unwrap_or(times.in_ns);
        let out_ns = match (O::WATCHES, direction, target) {
            (false, ..) => 0,
            // A packet that is forwarded to another link leaves this one now: there is no delay between the two. Multicast
            // packets to the core leave a little later there than recorded here.
            (true, Direction::Up, Target::One(AddressOwner::Group(_)) | Target::Far(_) | Target::Everyone) => due_ns,
            (true, ..) => clock::monotonic_ns(),
        };
        let to_core = matches!(target, Target::One(AddressOwner::Core) | Target::Everyone);
        if direction == Direction::Down {
            self.write(group + 1, bytes.get(), times);
        } else if to_core {
            self.write(0, bytes.get(), times);
        }
        if O::WATCHES {
            self.observer.passed(Passage { packet: bytes.get(), group, direction, in_ns: times.in_ns, out_ns });
        }
        if direction == Direction::Up {
            // The next link counts from the time at which this one was to be left: lateness doesn't add up.
            self.spread(Some(group), bytes, target, Times { in_ns: due_ns, ..times });
        }
    }

    /// Gives a packet to the down-links of those whom it is for, other than `from`, and to the trunk what a group of this star
    /// sends to others.
    fn spread(&mut self, from: Option<usize>, bytes: Bytes<'_>, target: Target, times: Times) {
        match target {
            Target::One(AddressOwner::Group(group)) => self.enter(index(group, Direction::Down), bytes, target, times),
            Target::One(AddressOwner::Core) => {}
            Target::Far(number) => self.hand_over(number, bytes.get(), times),
            Target::Everyone => {
                for group in (0..self.directions.len() / 2).filter(|group| Some(*group) != from) {
                    self.enter(index(group, Direction::Down), bytes, target, times);
                }
                // What came from the trunk, or from the core, has no `from`.
                let (own, groups) = match (&self.trunk, from) {
                    (Some(trunk), Some(_)) => (trunk.own(), trunk.groups()),
                    _ => (0, 0),
                };
                for number in (0..groups).filter(|number| *number != own) {
                    self.hand_over(number, bytes.get(), times);
                }
            }
        }
    }

    /// Sends a packet to a group of another star.
    fn hand_over(&mut self, number: usize, packet: &[u8], times: Times) {
        let Some(trunk) = &mut self.trunk else { return };
        trunk.send(number, packet);
        if let Some(due_ns) = times.due_ns {
            self.shared.lateness.record(clock::monotonic_ns().saturating_sub(due_ns));
        }
    }

    fn write(&mut self, port: usize, packet: &[u8], times: Times) {
        let result = loop {
            match (&self.ports[port]).write(packet) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        if result.is_err() {
            self.strays.undeliverable += 1;
        }
        if let Some(due_ns) = times.due_ns {
            self.shared.lateness.record(clock::monotonic_ns().saturating_sub(due_ns));
        }
    }

    /// Calls a direction, updates the sums and the agenda, and shows the observer what broke with the link.
    fn with<T>(&mut self, index: usize, call: impl FnOnce(&mut OneWayLink<Flight>) -> T) -> T {
        let direction = &mut self.directions[index];
        let before = direction.held_bytes();
        let result = call(direction);
        self.held_bytes = self.held_bytes + direction.held_bytes() - before;
        let broken = direction.take_broken();
        self.changed[index] = true;
        self.agenda.plan(index, direction.next_ns());
        if O::WATCHES {
            let (group, direction) = place(index);
            broken.iter().for_each(|(lost, in_ns)| self.observer.lost(&lost.bytes, group, direction, *in_ns));
        }
        result
    }
}

/// Counters of all links.
pub fn links(shared: &Shared) -> Vec<LinkCounters> {
    let read = |index: usize| shared.counters[index].read();
    (0..shared.counters.len() / 2)
        .map(|group| LinkCounters { up: read(2 * group), down: read(2 * group + 1) })
        .collect()
}
