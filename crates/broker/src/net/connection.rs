//! One connection with its partly read packet and its output.

use super::poll::Poll;
use super::slab::Key;
use super::stream::Stream;
use pubmark_protocol::epoll::Interest;
use std::io;

/// An empty write buffer larger than this is freed, so that an idle connection needs little memory.
const KEEP_BYTES: usize = 16 * 1024;
/// Most bytes of one read, so that one connection does not block the others.
const READ_BYTES: usize = 256 * 1024;

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

    /// Fills the front of `buffer` with the bytes stored before, then with one read into the rest of `buffer`, which grows if a
    /// long packet needs it. [`Connection::keep`] stores what was not used.
    pub(crate) fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<Received> {
        let known = self.incoming.len();
        if buffer.len() < known + READ_BYTES {
            buffer.resize(known + READ_BYTES, 0);
        }
        buffer[..known].copy_from_slice(&self.incoming);
        match self.stream.read(&mut buffer[known..]) {
            Ok(0) => Ok(Received::End),
            Ok(read) => Ok(Received::Some { filled_bytes: known + read, more: self.stream.holds_back() }),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Received::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores the beginning of a packet for the next read.
    pub(crate) fn keep(&mut self, rest: &[u8]) {
        self.incoming.clear();
        if rest.is_empty() {
            self.incoming.shrink_to(KEEP_BYTES);
        } else {
            self.incoming.extend_from_slice(rest);
        }
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
        let before = interest(self.waits_to_write, self.is_paused);
        (self.waits_to_write, self.is_paused) = (waits, is_paused);
        let now = interest(waits, is_paused);
        if now == before { Ok(()) } else { poll.change(self.descriptor(), key, now) }
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

    /// Discards the output and closes the sending direction; reading continues.
    pub(crate) fn end_writing(&mut self) -> io::Result<()> {
        self.outgoing.clear();
        self.written = 0;
        self.stream.end_writing()
    }
}
