//! A client's connection and the one that was opened for it: bytes of either are forwarded to the other.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};

use pubmark_protocol::epoll::Event;
use pubmark_protocol::socket::TcpSocket;

use super::turn::{RelayCounters, Turn};

/// Most reads of one direction in a turn; a flood must not block the other connections.
const READS: usize = 8;

/// One of the two sockets.
#[derive(Debug)]
struct Side {
    socket: TcpSocket,
    /// A read may find something.
    readable: bool,
    /// A write may succeed.
    has_room: bool,
    /// Its peer has ended the stream, or will have: reads go on to the end.
    ending: bool,
}

/// What came from one side for the other.
#[derive(Debug, Default)]
struct Flow {
    /// Read, and not accepted by the other side yet: nothing more is read until it is.
    held: Vec<u8>,
    at: usize,
    /// A write to the other side would have blocked: what the kernel has received since waited for that, until a read has emptied the
    /// socket.
    was_held: bool,
    /// The stream's end was read.
    ended: bool,
    /// And handed on.
    shut: bool,
}

/// What a connection is after it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Everything that could be carried is.
    Idle,
    /// There is more to read.
    HasMore,
    /// Both ways have ended, or one side is gone.
    Over,
    /// The system did not accept it.
    Refused,
}

/// A connection of a client (side 0) to the system (side 1).
#[derive(Debug)]
pub struct Connection {
    sides: [Side; 2],
    flows: [Flow; 2],
    connecting: bool,
    /// It leads to the system under test.
    is_system: bool,
}

/// Writes once; 0 if it would block.
fn write(socket: &TcpSocket, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl Connection {
    /// For an accepted client, and the socket that is being connected for it.
    pub fn new(client: TcpSocket, system: TcpSocket, is_system: bool) -> Connection {
        // The socket to the system becomes writable when the connection is made.
        let side = |socket, has_room| Side { socket, readable: false, has_room, ending: false };
        let sides = [side(client, true), side(system, false)];
        Connection { sides, flows: Default::default(), connecting: true, is_system }
    }

    /// Does it lead to the system under test?
    pub fn is_system(&self) -> bool {
        self.is_system
    }

    /// epoll reported an event of one side.
    pub fn ready(&mut self, side: usize, event: Event) {
        let side = &mut self.sides[side];
        side.readable |= event.is_readable();
        side.has_room |= event.has_room();
        side.ending |= event.has_ended();
    }

    /// Forwards the bytes that have arrived.
    pub fn serve(&mut self, buffer: &mut [u8], counters: &mut [RelayCounters; 2], turn: &mut Turn) -> State {
        if self.connecting {
            let system = &self.sides[1];
            if !system.has_room && !system.ending {
                return State::Idle;
            }
            if system.socket.connected().is_err() {
                self.reset();
                return State::Refused;
            }
            self.connecting = false;
        }
        let mut has_more = false;
        for from in [0, 1] {
            match self.carry(from, buffer, &mut counters[from], turn) {
                Ok(more) => has_more |= more,
                Err(_) => {
                    // One side is broken: the other one's peer is to see that, and not an end in order.
                    self.reset();
                    return State::Over;
                }
            }
        }
        match (self.flows.iter().all(|flow| flow.shut), has_more) {
            (true, _) => State::Over,
            (false, true) => State::HasMore,
            (false, false) => State::Idle,
        }
    }

    /// Bytes of both directions that the peers do not have yet: unread, held, and unacknowledged by the peer they are for.
    pub fn waiting_bytes(&self) -> u64 {
        let held = self.flows.iter().map(|flow| (flow.held.len() - flow.at) as u64);
        let queued = self.sides.iter().map(|side| side.socket.unread_bytes() + side.socket.unsent_bytes());
        held.chain(queued).sum()
    }

    /// Closing it then resets the connections of both sides; where that cannot be had they end in order.
    fn reset(&self) {
        self.sides.iter().for_each(|side| drop(side.socket.close_by_reset()));
    }

    /// Forwards one direction; returns whether there is more that this turn does not forward.
    fn carry(
        &mut self,
        from: usize,
        buffer: &mut [u8],
        counters: &mut RelayCounters,
        turn: &mut Turn,
    ) -> io::Result<bool> {
        let [client, system] = &mut self.sides;
        let (source, sink) = if from == 0 { (client, system) } else { (system, client) };
        let flow = &mut self.flows[from];
        for _ in 0..READS {
            if !flow.flush(sink, counters, turn)? {
                return Ok(false);
            }
            if flow.ended {
                flow.shut(sink);
                return Ok(false);
            }
            if !source.readable {
                return Ok(false);
            }
            let read = match source.socket.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    source.readable = false;
                    return Ok(false);
                }
                found => found?,
            };
            if read.bytes == 0 {
                flow.ended = true;
                continue;
            }
            counters.bytes += read.bytes as u64;
            counters.reads += 1;
            // A read that does not fill the buffer emptied the socket, unless the stream's end comes behind it.
            source.readable = read.bytes == buffer.len() || source.ending;
            let written = if sink.has_room { write(&sink.socket, &buffer[..read.bytes])? } else { 0 };
            turn.carried(counters, read.stamp_realtime_ns.filter(|_| written == read.bytes && !flow.was_held));
            if written < read.bytes {
                (sink.has_room, flow.was_held) = (false, true);
                flow.held.extend_from_slice(&buffer[written..read.bytes]);
                return Ok(false);
            }
            flow.was_held &= source.readable;
        }
        Ok(source.readable)
    }
}

impl Flow {
    /// Hands on what is held; is all of it gone?
    fn flush(&mut self, sink: &mut Side, counters: &RelayCounters, turn: &mut Turn) -> io::Result<bool> {
        while self.at < self.held.len() {
            if !sink.has_room {
                return Ok(false);
            }
            match write(&sink.socket, &self.held[self.at..])? {
                0 => sink.has_room = false,
                written => {
                    self.at += written;
                    turn.wrote(counters);
                }
            }
        }
        // Its memory goes with it: what one connection once held is not held for ever.
        (self.held, self.at) = (Vec::new(), 0);
        Ok(true)
    }

    /// Ends the stream to the other side.
    fn shut(&mut self, sink: &Side) {
        if !self.shut {
            // SAFETY: numbers only. It fails where the connection is gone, and then it has ended too.
            unsafe { libc::shutdown(sink.socket.as_fd().as_raw_fd(), libc::SHUT_WR) };
            self.shut = true;
        }
    }
}
