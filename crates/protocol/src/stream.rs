//! A non-blocking connection, plain or encrypted, with or without a WebSocket: bytes in with their times, an [`Outbox`] out.
//!
//! TLS and WebSocket are driven by hand over the same socket. One record or frame (16 KiB at most) is handed to them at a time.
//! A message is *written* when the server may be able to read all of it: when the kernel has the whole TLS record with its last
//! byte, as one that was cut short carries nothing for the server; without TLS when the kernel has its last byte, as a frame
//! may be read as it arrives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustls::{ClientConnection, HandshakeKind};

use crate::clock;
use crate::outbox::{BufferPool, Message, Outbox};
use crate::socket::TcpSocket;
use crate::tls::Agreed;
use crate::tls_records::TlsRecords;
use crate::traffic::Traffic;
use crate::websocket::{FRAME_BYTES, Fault, WebSocket};

/// Bytes read at a time.
pub const READ_BYTES: usize = 64 * 1024;
/// Plain bytes of one TLS record (RFC 8446 §5.1).
const RECORD_BYTES: usize = 16 * 1024;

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// TLS failed.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

/// Buffers for a shard's reads; shared by all its connections. Allocated with the first read.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    raw: Vec<u8>,
    plain: Vec<u8>,
    unframed: Vec<u8>,
}

/// Result of one read of a connection.
#[derive(Debug)]
pub struct Received<'a> {
    /// Bytes for the protocol; may be empty although TLS or WebSocket had some.
    pub bytes: &'a [u8],
    /// Number of bytes that were taken from the socket.
    pub taken: usize,
    /// Time just before the read, ns of `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// Time just after the read.
    pub at_ns: u64,
    /// The read left the socket empty.
    pub emptied: bool,
    /// The kernel's timestamp of the last byte read, ns of `CLOCK_REALTIME`; only if the read left the socket empty and that
    /// byte completed the last of `bytes`: it is neither of TLS's or WebSocket's own, nor the begin of a record that is not whole.
    pub stamp_realtime_ns: Option<u64>,
    /// The peer has ended the stream after these bytes.
    pub ended: bool,
}

/// Result of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteResult {
    /// When the socket last accepted bytes, ns of `CLOCK_MONOTONIC`, if it accepted any.
    pub at_ns: Option<u64>,
    /// The socket would block: the reactor reports when it is writable.
    pub full: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Stream {
    socket: TcpSocket,
    tls: Option<Box<ClientConnection>>,
    /// The server's records, if there is TLS.
    records: TlsRecords,
    websocket: Option<Box<WebSocket>>,
    /// TLS failed behind bytes that were handed on: the result of the next read.
    failed: Option<Box<rustls::Error>>,
}

impl Stream {
    /// A connection over `socket`, in the clear.
    pub fn new(socket: TcpSocket) -> Stream {
        Stream { socket, tls: None, records: TlsRecords::default(), websocket: None, failed: None }
    }

    /// Everything from here on goes through `tls`; its handshake is done by the next writes and reads.
    pub fn encrypt(&mut self, tls: ClientConnection) {
        self.tls = Some(Box::new(tls));
    }

    /// Everything from here on goes through `websocket`, inside TLS if there is one.
    pub fn upgrade(&mut self, websocket: WebSocket) {
        self.websocket = Some(Box::new(websocket));
    }

    /// Its socket, for a fault that breaks it.
    pub fn socket(&self) -> &TcpSocket {
        &self.socket
    }

    /// Has the TCP connection been made? Its failure is the error.
    pub fn connected(&self) -> io::Result<()> {
        self.socket.connected()
    }

    /// Is the TLS handshake in progress?
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// The result of the TLS handshake; `None` without TLS, and while it is in progress.
    pub fn agreed_tls(&self) -> Option<Agreed> {
        let tls = self.tls.as_ref().filter(|tls| !tls.is_handshaking())?;
        Some(Agreed {
            resumed: tls.handshake_kind() == Some(HandshakeKind::Resumed),
            version: tls.protocol_version()?.as_str()?,
            suite: tls.negotiated_cipher_suite()?.suite().as_str()?,
            group: tls.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
        })
    }

    /// Is the server's response to the WebSocket handshake awaited?
    pub fn is_upgrading(&self) -> bool {
        self.websocket.as_ref().is_some_and(|websocket| websocket.is_opening())
    }

    /// Why the WebSocket is over, if it is.
    pub fn fault(&self) -> Option<&Fault> {
        self.websocket.as_ref().and_then(|websocket| websocket.fault())
    }

    /// Have TLS (a response in the handshake, a key update, an alert) or WebSocket bytes of their own to write?
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
            || self.websocket.as_ref().is_some_and(|websocket| websocket.wants_write())
    }

    /// Bytes that the kernel has unsent or unacknowledged, and those that WebSocket adds and has not written. The payload of
    /// its frame is the outbox's until then.
    pub fn unsent_bytes(&self) -> u64 {
        let added = |websocket: &WebSocket| websocket.waiting_bytes() - websocket.waiting_payload_bytes();
        self.socket.unsent_bytes() + self.websocket.as_deref().map_or(0, added) as u64
    }

    /// Bytes that the kernel has received and this side has not read.
    pub fn unread_bytes(&self) -> u64 {
        self.socket.unread_bytes()
    }

    /// The traffic of the connection, below TLS and WebSocket; `None` if the kernel does not count.
    pub fn traffic(&self) -> Option<Traffic> {
        self.socket.traffic()
    }

    /// Are the handshakes of TLS and WebSocket, where there are any, complete?
    fn is_agreed(&self) -> bool {
        !self.is_handshaking() && self.websocket.as_ref().is_none_or(|websocket| websocket.is_open())
    }

    /// Reads once. An empty socket is `emptied` without bytes, the end of the stream is `ended`. After bytes behind which TLS
    /// failed the socket is never `emptied`: the next read returns that error.
    pub fn read<'a>(&mut self, buffers: &'a mut ReadBuffers) -> Result<Received<'a>, StreamError> {
        if let Some(error) = self.failed.take() {
            return Err(StreamError::Tls(*error));
        }
        buffers.raw.resize(READ_BYTES, 0);
        let began_ns = clock::monotonic_ns();
        let result = self.socket.read(&mut buffers.raw);
        let at_ns = clock::monotonic_ns();
        let read = match result {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let nothing = &buffers.raw[..0];
                return Ok(Received {
                    bytes: nothing,
                    taken: 0,
                    began_ns,
                    at_ns,
                    emptied: true,
                    stamp_realtime_ns: None,
                    ended: false,
                });
            }
            Err(error) => return Err(error.into()),
        };
        let mut emptied = read.bytes < buffers.raw.len();
        let mut ended = read.bytes == 0;
        let mut own_stamp = true;
        let mut bytes = match &mut self.tls {
            None => &buffers.raw[..read.bytes],
            Some(tls) => {
                buffers.plain.clear();
                match decrypt_read(tls, &mut self.records, &buffers.raw[..read.bytes], &mut buffers.plain) {
                    Ok(decrypted) => {
                        ended |= decrypted.closed;
                        own_stamp = decrypted.ends_with_data;
                    }
                    Err(StreamError::Tls(error)) if !buffers.plain.is_empty() => {
                        self.failed = Some(Box::new(error));
                        emptied = false;
                    }
                    Err(error) => return Err(error),
                }
                &buffers.plain
            }
        };
        if let Some(websocket) = &mut self.websocket {
            buffers.unframed.clear();
            let over = websocket.read(bytes, &mut buffers.unframed);
            own_stamp &= websocket.ends_with_data();
            bytes = &buffers.unframed;
            if over {
                ended = true;
                // A response to a goodbye, as far as the socket accepts it: the connection is closed right after this.
                let _ = self.flush();
            }
        }
        let stamp_realtime_ns = read.stamp_realtime_ns.filter(|_| own_stamp && emptied);
        Ok(Received { bytes, taken: read.bytes, began_ns, at_ns, emptied, stamp_realtime_ns, ended })
    }

    /// Writes until the outbox is empty or the socket would block. Every message whose last byte was accepted goes to `report`,
    /// with its write start and the time after the write. During the handshake of TLS or WebSocket the outbox waits.
    pub fn write(
        &mut self,
        outbox: &mut Outbox,
        pool: &mut BufferPool,
        mut report: impl FnMut(Message, u64, u64),
    ) -> Result<WriteResult, StreamError> {
        if self.tls.is_some() || self.websocket.is_some() {
            return self.write_sealed(outbox, pool, report);
        }
        let mut wrote = WriteResult { at_ns: None, full: false };
        while !outbox.is_empty() {
            let now_ns = clock::monotonic_ns();
            outbox.note_attempt(now_ns);
            match self.socket.write(outbox.prepare(now_ns, usize::MAX)) {
                Ok(taken) => {
                    outbox.advance(taken);
                    let written_ns = clock::monotonic_ns();
                    // A message of no bytes is settled without a write.
                    if taken > 0 {
                        wrote.at_ns = Some(written_ns);
                    }
                    outbox.settle(pool, |message, write_start_ns| report(message, write_start_ns, written_ns));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wrote.full = true;
                    outbox.note_full(now_ns);
                    return Ok(wrote);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(wrote)
    }

    /// The same through WebSocket, TLS, or both.
    fn write_sealed(
        &mut self,
        outbox: &mut Outbox,
        pool: &mut BufferPool,
        mut report: impl FnMut(Message, u64, u64),
    ) -> Result<WriteResult, StreamError> {
        let mut wrote = WriteResult { at_ns: None, full: false };
        loop {
            let began_ns = clock::monotonic_ns();
            outbox.note_attempt(began_ns);
            let flushed = self.flush();
            let now_ns = clock::monotonic_ns();
            let accepted = self.websocket.as_mut().map_or(0, |websocket| websocket.take_accepted());
            outbox.advance(accepted);
            // What TLS accepted is in the socket when all of TLS's bytes are; what was accepted of a frame without TLS is there.
            if matches!(flushed, Ok(Flushed { all: true, .. })) || (accepted > 0 && self.tls.is_none()) {
                outbox.settle(pool, |message, write_start_ns| report(message, write_start_ns, now_ns));
            }
            let flushed = flushed?;
            if flushed.some {
                wrote.at_ns = Some(now_ns);
            }
            wrote.full = !flushed.all;
            if wrote.full {
                outbox.note_full(began_ns);
                return Ok(wrote);
            }
            if !self.is_agreed() || outbox.is_empty() {
                return Ok(wrote);
            }
            self.seal(outbox, now_ns)?;
        }
    }

    /// Hands the next bytes of the outbox to WebSocket, or to TLS; everything before has been written. The outbox advances with
    /// the payload of a frame as it is accepted.
    fn seal(&mut self, outbox: &mut Outbox, now_ns: u64) -> Result<(), StreamError> {
        if let Some(websocket) = &mut self.websocket {
            websocket.put(outbox.prepare(now_ns, FRAME_BYTES));
        } else if let Some(tls) = &mut self.tls {
            let taken = io::Write::write(&mut tls.writer(), outbox.prepare(now_ns, RECORD_BYTES))?;
            outbox.advance(taken);
        }
        Ok(())
    }

    /// Writes what WebSocket and TLS have ready.
    fn flush(&mut self) -> Result<Flushed, StreamError> {
        let mut some = false;
        loop {
            if let Some(tls) = &mut self.tls {
                let flushed = flush_records(tls, &self.socket)?;
                some |= flushed.some;
                if !flushed.all {
                    return Ok(Flushed { all: false, some });
                }
            }
            let Some(websocket) = &mut self.websocket else { return Ok(Flushed { all: true, some }) };
            let framed = websocket.outgoing();
            if framed.is_empty() {
                return Ok(Flushed { all: true, some });
            }
            let taken = match &mut self.tls {
                Some(tls) if tls.is_handshaking() => return Ok(Flushed { all: true, some }),
                Some(tls) => io::Write::write(&mut tls.writer(), framed)?,
                None => match self.socket.write(framed) {
                    Ok(taken) => {
                        some |= taken > 0;
                        taken
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flushed { all: false, some }),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            websocket.took(taken);
        }
    }

    /// Sends the goodbyes of WebSocket and TLS, as far as the socket accepts them at once.
    pub fn close_notify(&mut self) {
        if let Some(websocket) = &mut self.websocket {
            websocket.close();
        }
        // The connection is closed right after this: what the socket does not accept now is not sent.
        let _ = self.flush();
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = flush_records(tls, &self.socket);
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Result of writing what is ready.
#[derive(Clone, Copy, Debug)]
struct Flushed {
    /// Nothing is left; otherwise the socket would block.
    all: bool,
    /// The socket accepted bytes.
    some: bool,
}

/// What TLS made of a read.
struct Decrypted {
    /// The peer has closed TLS.
    closed: bool,
    /// The last byte of the read completed the last plain byte.
    ends_with_data: bool,
}

/// Appends the plain bytes of a read to `plain`, those before an error included. The last record goes to TLS on its own, which shows
/// whether it carries data or is one of TLS's own, such as a ticket.
fn decrypt_read(
    tls: &mut ClientConnection,
    records: &mut TlsRecords,
    raw: &[u8],
    plain: &mut Vec<u8>,
) -> Result<Decrypted, StreamError> {
    let (before, last) = raw.split_at(records.follow(raw).unwrap_or(raw.len()));
    if decrypt(tls, before, plain)? {
        return Ok(Decrypted { closed: true, ends_with_data: false });
    }
    let bytes = plain.len();
    let closed = decrypt(tls, last, plain)?;
    Ok(Decrypted { closed, ends_with_data: plain.len() > bytes })
}

/// Appends the plain bytes of `raw` to `plain`, those before an error included; true if the peer has closed TLS.
fn decrypt(tls: &mut ClientConnection, mut raw: &[u8], plain: &mut Vec<u8>) -> Result<bool, StreamError> {
    while !raw.is_empty() {
        tls.read_tls(&mut raw)?;
        let state = match tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // This reads what there is and then fails in any case: TLS has no more.
                let _ = io::Read::read_to_end(&mut tls.reader(), plain);
                return Err(error.into());
            }
        };
        let (from, fresh) = (plain.len(), state.plaintext_bytes_to_read());
        if fresh > 0 {
            plain.resize(from + fresh, 0);
            io::Read::read_exact(&mut tls.reader(), &mut plain[from..])?;
        }
        if state.peer_has_closed() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes what TLS has ready.
fn flush_records(tls: &mut ClientConnection, mut socket: &TcpSocket) -> Result<Flushed, StreamError> {
    let mut some = false;
    while tls.wants_write() {
        match tls.write_tls(&mut socket) {
            Ok(taken) => some |= taken > 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flushed { all: false, some }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Flushed { all: true, some })
}
