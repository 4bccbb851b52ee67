//! One connection with its partly read packet and its output.

use super::poll::Poll;
use super::slab::Key;
use super::stream::Stream;
use pubmark_protocol::epoll::Interest;
use std::io;

/// An empty write buffer larger than this is freed, so that an idle connection needs little memory; so is the memory of a packet
/// that was longer. A shorter beginning of a packet is copied with each read.
const KEEP_BYTES: usize = 16 * 1024;
/// Most bytes of one read, and those after which a connection waits for its next turn, so that it does not block the others.
pub(crate) const TURN_BYTES: usize = 256 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    /// The beginning of a packet that has not arrived completely.
    incoming: Vec<u8>,
    /// Bytes to be written, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    waits_to_write: bool,
    /// Nothing is read until the peer has read what waits for it.
    is_paused: bool,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// This many bytes are at the front of the buffer now. If `more`, further ones may be available that the poll does not report.
    Some { filled_bytes: usize, more: bool },
    /// Nothing now.
    Nothing,
    /// The peer has closed.
    End,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Connection {
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        Connection { stream, incoming, outgoing, written: 0, waits_to_write: false, is_paused: false }
    }

    pub(crate) fn descriptor(&self) -> std::os::fd::RawFd {
        self.stream.descriptor()
    }

    /// Fills the front of `buffer` with the beginning of a packet that was stored before, then with one read. A long beginning
    /// stays where it is, so that it is not copied again for each small piece: what was read is appended to it, and
    /// [`Connection::take_incoming`] returns both. [`Connection::keep`] stores what was not used.
    pub(crate) fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<Received> {
        buffer.resize(KEEP_BYTES + TURN_BYTES, 0);
        let is_long = self.incoming.len() > KEEP_BYTES;
        let begun = if is_long { 0 } else { self.incoming.len() };
        buffer[..begun].copy_from_slice(&self.incoming[..begun]);
        match self.stream.read(&mut buffer[begun..begun + TURN_BYTES]) {
            Ok(0) => Ok(Received::End),
            Ok(read_bytes) => {
                if is_long {
                    self.incoming.extend_from_slice(&buffer[..read_bytes]);
                } else {
                    self.incoming.clear();
                }
                Ok(Received::Some { filled_bytes: begun + read_bytes, more: self.stream.holds_back() })
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Received::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// The long packet that had begun before the last read, with the bytes of that read; empty if all bytes are in the buffer.
    pub(crate) fn take_incoming(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.incoming)
    }

    /// Stores what follows the `used` bytes for the next read: of `incoming`, which was taken, or of the `filled` front of the
    /// buffer if that is empty. A long packet is not moved until it is complete.
    pub(crate) fn keep(&mut self, mut incoming: Vec<u8>, filled: &[u8], used: usize) {
        if incoming.is_empty() {
            incoming.extend_from_slice(&filled[used..]);
        } else {
            incoming.drain(..used);
        }
        if used > 0 {
            incoming.shrink_to(KEEP_BYTES);
        }
        self.incoming = incoming;
    }

    /// The output buffer, to which packets are appended.
    #[inline]
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Bytes that wait to be written.
    #[inline]
    pub(crate) fn pending_bytes(&self) -> usize {
        self.outgoing.len() - self.written
    }

    /// Does the stream (TLS) have output of its own, and does a write not block?
    pub(crate) fn wants_flush(&self) -> bool {
        self.stream.wants_write() && !self.waits_to_write
    }

    /// Would a write block? The poll reports when the socket is writable again; an attempt before is useless.
    pub(crate) fn is_blocked(&self) -> bool {
        self.waits_to_write
    }

    /// Writes what the socket accepts, in one call if it accepts all; otherwise the poll waits until the socket is writable.
    pub(crate) fn flush(&mut self, poll: &Poll, key: Key) -> io::Result<()> {
        while self.written < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.written..]) {
                Ok(taken) => self.written += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stream.push()?;
        self.tidy();
        let waits = self.pending_bytes() > 0 || self.stream.wants_write();
        self.watch(poll, key, waits, self.is_paused)
    }

    /// Is nothing read from it now?
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Pauses or resumes reading. While it is paused, the poll reports that the socket is writable, even if nothing waits to be
    /// written: this is when reading can resume. What TLS has decrypted already is not reported by the poll.
    pub(crate) fn pause(&mut self, poll: &Poll, key: Key, is_paused: bool) -> io::Result<()> {
        self.watch(poll, key, self.waits_to_write, is_paused)
    }

    /// Tells the poll what to report, if that has changed.
    fn watch(&mut self, poll: &Poll, key: Key, waits: bool, is_paused: bool) -> io::Result<()> {
        let interest = |waits, is_paused| match (waits, is_paused) {
            (_, true) => Interest::Write,
            (true, false) => Interest::ReadWrite,
            (false, false) => Interest::Read,
        };
        let now = interest(waits, is_paused);
        if now != interest(self.waits_to_write, self.is_paused) {
            poll.change(self.descriptor(), key, now)?;
        }
        (self.waits_to_write, self.is_paused) = (waits, is_paused);
        Ok(())
    }

    fn tidy(&mut self) {
        if self.written == self.outgoing.len() {
            self.written = 0;
            self.outgoing.clear();
            if self.outgoing.capacity() > KEEP_BYTES {
                self.outgoing = Vec::new();
            }
        } else if self.written > self.outgoing.len() / 2 {
            self.outgoing.drain(..self.written);
            self.written = 0;
        }
    }

    /// Discards the output; closing then resets the connection.
    pub(crate) fn cut(&mut self) -> io::Result<()> {
        self.outgoing.clear();
        self.written = 0;
        self.stream.reset_on_close()
    }

    /// Closes the connection. With TLS it sends close_notify first (RFC 8446 §6.1), unless output is still waiting.
    pub(crate) fn close(mut self) {
        if self.pending_bytes() == 0 {
            self.stream.notify_of_close();
        }
    }

    /// Discards the output and closes the sending direction; reading continues.
    pub(crate) fn end_writing(&mut self) -> io::Result<()> {
        self.outgoing.clear();
        self.written = 0;
        self.stream.end_writing()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Both ends; the connection's socket blocks.
    fn ends() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        (client, Connection::new(Stream::Plain(socket)))
    }

    /// Sends bytes and reads them; `used` is the number of those that are used once all have arrived, after `stored` earlier ones.
    fn exchange(
        client: &mut TcpStream,
        connection: &mut Connection,
        buffer: &mut Vec<u8>,
        (stored, piece, used): (&[u8], &[u8], usize),
    ) {
        client.write_all(piece).unwrap();
        let expected = [stored, piece].concat();
        let mut arrived = stored.len();
        while arrived < expected.len() {
            let Received::Some { filled_bytes, .. } = connection.receive(buffer).unwrap() else {
                panic!("nothing was read")
            };
            assert_eq!(buffer.len(), KEEP_BYTES + TURN_BYTES, "the shared buffer does not grow with a packet");
            let incoming = connection.take_incoming();
            let bytes = if incoming.is_empty() { &buffer[..filled_bytes] } else { &incoming[..] };
            arrived = bytes.len();
            assert!(*bytes == expected[..arrived]);
            let used = if arrived == expected.len() { used } else { 0 };
            connection.keep(incoming, &buffer[..filled_bytes], used);
        }
    }

    #[test]
    fn a_long_packet_in_pieces_is_completed_where_it_is_stored() {
        const LENGTH: usize = 4 * TURN_BYTES;
        const PIECE: usize = 10_000;
        let (mut client, mut connection) = ends();
        let sent: Vec<u8> = (0..LENGTH + 3).map(|index| (index % 251) as u8).collect();
        let mut buffer = vec![];
        let mut moves = 0;
        let mut address = std::ptr::null();
        for (number, piece) in sent.chunks(PIECE).enumerate() {
            let stored = &sent[..number * PIECE];
            let used = if stored.len() + piece.len() < LENGTH { 0 } else { LENGTH };
            exchange(&mut client, &mut connection, &mut buffer, (stored, piece, used));
            moves += u32::from(address != connection.incoming.as_ptr());
            address = connection.incoming.as_ptr();
        }
        assert_eq!(connection.incoming, sent[LENGTH..]);
        assert!(connection.incoming.capacity() <= KEEP_BYTES, "{}", connection.incoming.capacity());
        // It moves when its memory grows, which doubles each time, and not with each piece.
        assert!(moves < 20, "{moves} moves");
    }

    #[test]
    fn a_short_beginning_of_a_packet_does_not_make_a_connection_store_all_that_follows() {
        let (mut client, mut connection) = ends();
        let sent: Vec<u8> = (0..60_000u32).map(|index| (index % 251) as u8).collect();
        let mut buffer = vec![];
        exchange(&mut client, &mut connection, &mut buffer, (&sent[..0], &sent[..10], 7));
        assert_eq!(connection.incoming, sent[7..10]);
        exchange(&mut client, &mut connection, &mut buffer, (&sent[7..10], &sent[10..], 59_990));
        assert_eq!(connection.incoming, sent[59_997..]);
        assert!(connection.incoming.capacity() <= KEEP_BYTES, "{}", connection.incoming.capacity());
    }
}
