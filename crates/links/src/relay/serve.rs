//! The relay's loop, in a process of its own on the machine's own network.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use pubmark_protocol::clock;
use pubmark_protocol::epoll::{Epoll, Event, Events, Interest};
use pubmark_protocol::socket::{SocketFactory, TcpSocket};

use super::account::Accounts;
use super::channel;
use super::connection::{Connection, State};
use super::datagrams::Exchange;
use super::listener::{Listener, Pauses};
use super::turn::Turn;
use super::{Counts, Request, Response};

/// Below the emulator of links (20), which brings what the relay carries, and above the engine's shards (10).
const PRIORITY: libc::c_int = 15;
/// Bytes of a read: no datagram is longer, and a stream of large messages needs few reads.
const BUFFER: usize = 256 * 1024;
/// Descriptors that are ready at once, at most; the others follow with the next turn.
const EVENTS: usize = 256;
/// Connections that a turn accepts from one listener, at most: a fleet that connects all the time must not keep the loop from the others.
const ACCEPTS: usize = 256;

/// Longest wait for a system to take a connection, before any run.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Resolves an address on the machine's own network; the error is text for people.
pub type Resolve = fn(&str, u16) -> Result<SocketAddr, String>;

/// Meaning of a key of epoll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Channel,
    Listener(usize),
    Datagrams(usize),
    Peer(usize, usize),
    Side(usize, usize),
}

impl Key {
    fn number(self) -> u64 {
        let (kind, one, other) = match self {
            Key::Channel => (0u64, 0, 0),
            Key::Listener(listener) => (1, listener, 0),
            Key::Datagrams(place) => (2, place, 0),
            Key::Peer(place, peer) => (3, peer, place),
            Key::Side(connection, side) => (4, connection, side),
        };
        kind << 56 | (other as u64) << 40 | one as u64
    }

    fn of(number: u64) -> Key {
        let (one, other) = ((number & 0xff_ffff_ffff) as usize, (number >> 40 & 0xffff) as usize);
        match number >> 56 {
            0 => Key::Channel,
            1 => Key::Listener(one),
            2 => Key::Datagrams(one),
            3 => Key::Peer(other, one),
            _ => Key::Side(one, other),
        }
    }
}

struct Serving {
    epoll: Epoll,
    channel: OwnedFd,
    factory: SocketFactory,
    resolve: Resolve,
    listeners: Vec<Listener>,
    pauses: Pauses,
    exchanges: Vec<Exchange>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Free when the turn is over: until then events may name the connections that were there.
    freed: Vec<usize>,
    /// Sides that have more than their last turn carried.
    more: Vec<Key>,
    /// Sockets may have more than the last turn looked at.
    behind: bool,
    /// Given up to take a connection that there is no descriptor for, so that it can be refused.
    spare: Option<OwnedFd>,
    buffer: Box<[u8]>,
    accounts: Accounts,
    turn: Turn,
    realtime: bool,
}

/// Serves at this end of a [`super::pair`] until the other end is closed.
///
/// # Errors
/// The kernel refuses what the loop itself needs; what one connection meets ends that connection.
pub fn serve(channel: OwnedFd, resolve: Resolve) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(channel.as_raw_fd(), Key::Channel.number(), Interest::Read)?;
    let mut factory = SocketFactory::default();
    factory.receive_stamps = true;
    let mut serving = Serving {
        epoll,
        channel,
        factory,
        resolve,
        listeners: vec![],
        pauses: Pauses::default(),
        exchanges: vec![],
        connections: vec![],
        free: vec![],
        freed: vec![],
        more: vec![],
        behind: false,
        spare: spare(),
        buffer: vec![0; BUFFER].into_boxed_slice(),
        accounts: Accounts::new(),
        turn: Turn::new(),
        realtime: claim_realtime(),
    };
    let mut events = Events::with_room(EVENTS);
    while serving.take_turn(&mut events)? {}
    Ok(())
}

fn claim_realtime() -> bool {
    // SAFETY: numbers alone, of which zero is one; musl has more of them than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY;
    // SAFETY: a live sched_param; 0 names the calling thread, the only one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}

fn spare() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}

impl Serving {
    /// One turn; `false` when the other end of the channel is closed.
    fn take_turn(&mut self, events: &mut Events) -> io::Result<bool> {
        let more = std::mem::take(&mut self.more);
        let has_more = std::mem::take(&mut self.behind) || !more.is_empty();
        // Read before the look: what comes in between is found now, and counts from before.
        let polled_ns = clock::monotonic_ns();
        self.resume(polled_ns);
        self.wait(events, Some(Duration::ZERO))?;
        let waits = events.count() == 0 && more.is_empty();
        if waits {
            self.wait(events, self.pauses.left(polled_ns))?;
        }
        // If a pause ended the wait, nothing has a time at which it came: what the next turn finds counts from this one's poll.
        self.turn.begin(polled_ns, waits && events.count() > 0, has_more);
        self.behind = events.is_full();
        for key in more {
            self.carry(key);
        }
        for event in events.iter() {
            match Key::of(event.key) {
                Key::Channel => {
                    if !self.answer()? {
                        return Ok(false);
                    }
                }
                Key::Listener(number) => self.take(number)?,
                Key::Side(number, side) => self.side_is_ready(number, side, event),
                key => self.carry(key),
            }
        }
        self.turn.end();
        self.free.append(&mut self.freed);
        Ok(true)
    }

    fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        match self.epoll.wait(events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            done => done,
        }
    }

    fn side_is_ready(&mut self, number: usize, side: usize, event: Event) {
        if let Some(Some(connection)) = self.connections.get_mut(number) {
            connection.ready(side, event);
            self.carry(Key::Side(number, side));
        }
    }

    /// Forwards what has arrived on a connection or a socket of datagrams.
    fn carry(&mut self, key: Key) {
        let Serving { buffer, accounts, turn, .. } = self;
        let more = match key {
            Key::Side(number, _) => {
                let Some(Some(connection)) = self.connections.get_mut(number) else { return };
                let account = accounts.of(connection.is_system());
                match connection.serve(buffer, &mut account.counters, turn) {
                    State::Idle => false,
                    State::HasMore => true,
                    ended => {
                        account.unserved.refused += u64::from(ended == State::Refused);
                        self.connections[number] = None;
                        self.freed.push(number);
                        return;
                    }
                }
            }
            Key::Datagrams(place) => {
                let (epoll, account) = (&self.epoll, &mut accounts.system);
                let (counters, accepted) = (&mut account.counters[0], &mut account.accepted);
                let mut watch = |peer: usize, socket: BorrowedFd<'_>| -> io::Result<()> {
                    epoll.add(socket.as_raw_fd(), Key::Peer(place, peer).number(), Interest::Read)?;
                    *accepted += 1;
                    Ok(())
                };
                if let Some(exchange) = self.exchanges.get_mut(place) {
                    self.behind |=
                        exchange.up(clock::monotonic_ns(), counters, turn, &mut account.unserved, &mut watch);
                }
                false
            }
            // Sockets of datagrams are level-triggered: epoll names them again if there is more.
            Key::Peer(place, peer) => {
                if let Some(exchange) = self.exchanges.get_mut(place) {
                    let counters = &mut accounts.system.counters[1];
                    self.behind |= exchange.down(clock::monotonic_ns(), peer, counters, turn);
                }
                false
            }
            Key::Channel | Key::Listener(_) => false,
        };
        if more && !self.more.contains(&key) {
            self.more.push(key);
        }
    }

    /// Accepts waiting connections, and opens one to the server for each.
    fn take(&mut self, number: usize) -> io::Result<()> {
        // epoll named the listener for a client; whether there are more shows when they are accepted.
        let mut client_waits = true;
        for _ in 0..ACCEPTS {
            // It may have been forgotten since epoll named it.
            let Some(listener) = self.listeners.get_mut(number) else { return Ok(()) };
            let (to, is_system) = (listener.to, listener.is_system);
            let error = match listener.socket.accept() {
                Ok((client, _)) => {
                    client_waits = false;
                    let is_counted = std::mem::take(&mut listener.is_stuck);
                    match self.factory.connect(None, to) {
                        Ok(system) => self.add(client, system, is_system),
                        Err(error) => self.refuse(client, is_system, (!is_counted).then_some(&error)),
                    }
                    continue;
                }
                Err(error) => error,
            };
            let goes_on = match error.raw_os_error() {
                // One that has gone again meanwhile.
                Some(libc::ECONNABORTED | libc::EINTR) => true,
                Some(libc::EMFILE | libc::ENFILE) => match self.refuse_next(number, &error) {
                    Ok(()) => {
                        client_waits = false;
                        true
                    }
                    Err(ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => false,
                    Err(_) => {
                        self.pause(number, client_waits, &error);
                        false
                    }
                },
                Some(libc::ENOBUFS | libc::ENOMEM) => {
                    self.pause(number, client_waits, &error);
                    false
                }
                // It is no listener.
                Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK) => return Err(error),
                // The queue is empty, or the network has ended the connection that was next: accept(2) wants that to be treated
                // alike. If there are more, epoll names the listener again.
                _ => false,
            };
            if !goes_on {
                return Ok(());
            }
        }
        // epoll names the listener again. What clients sent meanwhile waits since this turn's poll.
        self.behind = true;
        Ok(())
    }

    /// Accepts a connection that there is no descriptor for, with the spare one, and refuses it: otherwise epoll would name the
    /// listener again and again.
    ///
    /// # Errors
    /// There is none (`WouldBlock`: without a free descriptor the kernel returns the error `why` for an empty queue as well), it has
    /// gone again, or the spare descriptor is not to be had.
    fn refuse_next(&mut self, number: usize, why: &io::Error) -> Result<(), ErrorKind> {
        let Some(listener) = self.listeners.get_mut(number) else { return Err(ErrorKind::WouldBlock) };
        let is_system = listener.is_system;
        self.spare = None;
        let next = listener.socket.accept().map_err(|error| error.kind());
        let is_counted = next.is_ok() && std::mem::take(&mut listener.is_stuck);
        let refused = next.map(|(client, _)| self.refuse(client, is_system, (!is_counted).then_some(why)));
        // Not before: the client had the only descriptor.
        self.spare = spare();
        refused
    }

    /// Does not watch a listener for a while. Its next client, if there is one (`client_waits`), stays in the queue and is counted once.
    fn pause(&mut self, number: usize, client_waits: bool, why: &io::Error) {
        let Some(listener) = self.listeners.get_mut(number) else { return };
        if client_waits && !std::mem::replace(&mut listener.is_stuck, true) {
            self.accounts.of(listener.is_system).unserved.count(why);
        }
        // It fails for a socket that is not watched, which is what is wanted.
        let _ = self.epoll.remove(listener.socket.as_raw_fd());
        self.pauses.begin(number, clock::monotonic_ns());
    }

    /// Watches listeners again whose pause is over.
    fn resume(&mut self, now_ns: u64) {
        for number in self.pauses.take_over(now_ns) {
            self.spare = self.spare.take().or_else(spare);
            let Some(listener) = self.listeners.get(number) else { continue };
            let key = Key::Listener(number).number();
            if self.epoll.add(listener.socket.as_raw_fd(), key, Interest::Read).is_err() {
                self.pauses.begin(number, now_ns);
            }
        }
    }

    /// A client that cannot be led on finds its connection reset. It is counted by the reason `why`, unless it is counted already.
    fn refuse(&mut self, client: TcpStream, is_system: bool, why: Option<&io::Error>) {
        if let Some(why) = why {
            self.accounts.of(is_system).unserved.count(why);
        }
        if let Ok(client) = self.factory.adopt(client) {
            let _ = client.close_by_reset();
        }
    }

    fn add(&mut self, client: TcpStream, system: TcpSocket, is_system: bool) {
        let number = self.free.pop().unwrap_or(self.connections.len());
        if number == self.connections.len() {
            self.connections.push(None);
        }
        let connection = self.factory.adopt(client).and_then(|client| {
            for (side, socket) in [&client, &system].into_iter().enumerate() {
                self.epoll.add(socket.as_fd().as_raw_fd(), Key::Side(number, side).number(), Interest::AllEdges)?;
            }
            Ok(Connection::new(client, system, is_system))
        });
        match connection {
            Ok(connection) => {
                self.accounts.of(is_system).accepted += 1;
                self.connections[number] = Some(connection);
            }
            Err(error) => {
                self.accounts.of(is_system).unserved.count(&error);
                self.freed.push(number);
            }
        }
    }

    /// Responds to one request; `false` when the user of the relay is gone.
    fn answer(&mut self) -> io::Result<bool> {
        let Some((request, socket)) = channel::receive(self.channel.as_fd())? else { return Ok(false) };
        let answer = match (request, socket) {
            (Request::Resolve { host, port }, _) => {
                (self.resolve)(&host, port).map_or_else(Response::Failed, Response::Address)
            }
            // Nothing is carried yet that would have to wait.
            (Request::Try { to }, _) => response(TcpStream::connect_timeout(&to, CONNECT_LIMIT).map(drop)),
            (Request::Forget, _) => {
                self.forget();
                Response::Done
            }
            (Request::Check, _) => Response::Done,
            (Request::Count, _) => Response::Counts(Box::new(self.counts())),
            (Request::Waiting, _) => Response::Waiting(self.waiting_bytes()),
            (Request::Stream { to, is_system }, Some(socket)) => response(self.listen(socket, to, is_system)),
            (Request::Datagrams { to }, Some(socket)) => response(self.listen_for_datagrams(socket, to)),
            (Request::Stream { .. } | Request::Datagrams { .. }, None) => Response::Failed("no socket came".to_owned()),
        };
        channel::send(self.channel.as_fd(), &answer, None)?;
        Ok(true)
    }

    fn waiting_bytes(&self) -> u64 {
        let of_system = self.connections.iter().flatten().filter(|connection| connection.is_system());
        of_system.map(Connection::waiting_bytes).chain(self.exchanges.iter().map(Exchange::waiting_bytes)).sum()
    }

    fn forget(&mut self) {
        self.accounts.system.unserved.exhausted = 0;
        self.listeners.clear();
        self.pauses.clear();
        self.exchanges.clear();
        self.connections.clear();
        self.free.clear();
        self.freed.clear();
        self.more.clear();
    }

    fn listen(&mut self, socket: OwnedFd, to: SocketAddr, is_system: bool) -> io::Result<()> {
        let socket = TcpListener::from(socket);
        socket.set_nonblocking(true)?;
        self.epoll.add(socket.as_raw_fd(), Key::Listener(self.listeners.len()).number(), Interest::Read)?;
        self.listeners.push(Listener { socket, to, is_system, is_stuck: false });
        Ok(())
    }

    fn listen_for_datagrams(&mut self, socket: OwnedFd, to: SocketAddr) -> io::Result<()> {
        let exchange = Exchange::new(socket, to)?;
        self.epoll.add(exchange.socket().as_raw_fd(), Key::Datagrams(self.exchanges.len()).number(), Interest::Read)?;
        self.exchanges.push(exchange);
        Ok(())
    }

    fn counts(&mut self) -> Counts {
        let account = &self.accounts.system;
        Counts {
            connections: account.accepted,
            refused: account.unserved.refused,
            exhausted: account.unserved.exhausted,
            closed: self.exchanges.iter().map(Exchange::closed).sum(),
            up: account.counters[0].counts(),
            down: account.counters[1].counts(),
            longest_held_ns: self.turn.take_longest_ns(),
            cpu_ns: clock::thread_cpu_ns(),
            realtime: self.realtime,
        }
    }
}

fn response(done: io::Result<()>) -> Response {
    done.map_or_else(|error| Response::Failed(error.to_string()), |()| Response::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_again_by_its_number() {
        for key in [
            Key::Channel,
            Key::Listener(3),
            Key::Datagrams(1),
            Key::Peer(1, 65_535),
            Key::Side(1_000_000, 1),
            Key::Side(0, 0),
        ] {
            assert_eq!(Key::of(key.number()), key);
        }
    }
}
