//! The server's side of a WebSocket (RFC 6455) with MQTT in binary frames, as far as the lying broker needs it.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};

use pubmark_protocol::websocket::accept_key;

/// Bytes of one read from the socket.
const READ_BYTES: usize = 64 * 1024;
/// Most reads from the socket for one read of decoded bytes: frames without content must not occupy the broker.
const READS_AT_A_TIME: usize = 16;
/// Bytes waiting for a client above which its pings get no pong: it reads nothing, and pongs must not fill the memory.
const PONG_BELOW_BYTES: usize = 1 << 20;
/// Most payload bytes of a frame that the server sends.
const FRAME_BYTES: usize = 64 * 1024;
/// Most bytes of a request for the upgrade.
const LONGEST_REQUEST: usize = 16 * 1024;
/// Most bytes of a client's frame, which is decoded when it is complete.
const LONGEST_FRAME: u64 = 1 << 20;
/// First byte of a frame with a whole binary message (§5.2).
const FINAL_BINARY: u8 = 0x82;
/// First byte of a close frame.
const FINAL_CLOSE: u8 = 0x88;
/// First byte of a pong.
const FINAL_PONG: u8 = 0x8a;

/// A connection whose bytes are in frames.
#[derive(Debug)]
pub(crate) struct WebSocket {
    socket: TcpStream,
    /// No request for the upgrade has arrived completely.
    is_opening: bool,
    /// The client closed the WebSocket.
    is_closed: bool,
    /// The front of a request or of a frame.
    incoming: Vec<u8>,
    /// Decoded bytes that were not read yet.
    plain: Vec<u8>,
    /// Bytes for the socket, of which the first `sent` are written.
    outgoing: Vec<u8>,
    sent: usize,
}

impl WebSocket {
    pub(crate) fn new(socket: TcpStream) -> WebSocket {
        let (incoming, plain, outgoing) = (vec![], vec![], vec![]);
        WebSocket { socket, is_opening: true, is_closed: false, incoming, plain, outgoing, sent: 0 }
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Reads decoded bytes; 0 at the end, `WouldBlock` if there are none.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut piece = [0; READ_BYTES];
        let mut reads = 0;
        while self.plain.is_empty() && !self.is_closed {
            if reads == READS_AT_A_TIME {
                // Only the front of a frame is stored, so the poll reports what is still in the socket.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            reads += 1;
            let read = self.socket.read(&mut piece)?;
            if read == 0 {
                return Ok(0);
            }
            self.incoming.extend_from_slice(&piece[..read]);
            if self.is_opening {
                self.open()?;
            }
            while !self.is_opening && self.decode()? {}
            self.push()?;
        }
        let length = self.plain.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.plain[..length]);
        self.plain.drain(..length);
        Ok(length)
    }

    /// Accepts some of the bytes in one frame; `WouldBlock` before the upgrade, and while earlier ones wait for the socket.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        if self.is_opening || self.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bytes = &bytes[..bytes.len().min(FRAME_BYTES)];
        self.append(FINAL_BINARY, bytes);
        self.push()?;
        Ok(bytes.len())
    }

    pub(super) fn wants_write(&self) -> bool {
        self.sent < self.outgoing.len()
    }

    pub(super) fn push(&mut self) -> io::Result<()> {
        while self.wants_write() {
            match self.socket.write(&self.outgoing[self.sent..]) {
                Ok(taken) => self.sent += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(())
    }

    pub(super) fn end_writing(&mut self) -> io::Result<()> {
        self.append(FINAL_CLOSE, &[]);
        self.push()?;
        self.socket.shutdown(Shutdown::Write)
    }

    /// Accepts the request for the upgrade, once it is complete (§4.2).
    fn open(&mut self) -> io::Result<()> {
        let Some(end) = self.incoming.windows(4).position(|four| four == b"\r\n\r\n") else {
            let is_too_long = self.incoming.len() > LONGEST_REQUEST;
            return if is_too_long { Err(wrong("a request without an end")) } else { Ok(()) };
        };
        let request = String::from_utf8_lossy(&self.incoming[..end]).into_owned();
        let fields = request.lines().filter_map(|line| line.split_once(':'));
        let mut keys = fields.filter(|(name, _)| name.trim().eq_ignore_ascii_case("sec-websocket-key"));
        let (_, key) = keys.next().ok_or_else(|| wrong("a request without a key"))?;
        let accept = accept_key(key.trim());
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
        );
        self.outgoing.extend_from_slice(response.as_bytes());
        self.incoming.drain(..end + 4);
        self.is_opening = false;
        Ok(())
    }

    /// Decodes the client's next frame (§5.2), if it is complete; whether it was.
    fn decode(&mut self) -> io::Result<bool> {
        let [first, second, ..] = self.incoming[..] else { return Ok(false) };
        if second & 0x80 == 0 {
            return Err(wrong("a client's frame without a mask"));
        }
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let Some(head) = self.incoming.get(2..2 + extended + 4) else { return Ok(false) };
        let length = match extended {
            0 => u64::from(second & 0x7f),
            _ => head[..extended].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        if length > LONGEST_FRAME {
            return Err(wrong("a frame of more than a MiB"));
        }
        let mask = [head[extended], head[extended + 1], head[extended + 2], head[extended + 3]];
        let (start, end) = (2 + extended + 4, 2 + extended + 4 + length as usize);
        let Some(payload) = self.incoming.get(start..end) else { return Ok(false) };
        let payload: Vec<u8> = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        self.incoming.drain(..end);
        match first & 0x0f {
            0x0 | 0x2 => self.plain.extend_from_slice(&payload),
            0x8 => self.is_closed = true,
            0x9 if self.outgoing.len() - self.sent < PONG_BELOW_BYTES => self.append(FINAL_PONG, &payload),
            0x9 | 0xa => {}
            _ => return Err(wrong("a frame of another kind than binary")),
        }
        Ok(!self.is_closed)
    }

    /// Appends a frame, which a server does not mask (§5.1).
    fn append(&mut self, first: u8, payload: &[u8]) {
        self.outgoing.push(first);
        match payload.len() {
            length @ 0..126 => self.outgoing.push(length as u8),
            length @ 126..0x1_0000 => {
                self.outgoing.push(126);
                self.outgoing.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                self.outgoing.push(127);
                self.outgoing.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        self.outgoing.extend_from_slice(payload);
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use pubmark_protocol::endpoint::Upgrade;
    use pubmark_protocol::websocket;

    use super::*;

    /// Both ends of a connection; the server's does not block.
    fn ends() -> (TcpStream, WebSocket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        (client, WebSocket::new(socket))
    }

    /// Reads once there is something: what the other end wrote may not be here yet. With the upgrade alone it is `WouldBlock`.
    fn read(server: &mut WebSocket, buffer: &mut [u8]) -> io::Result<usize> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let was_opening = server.is_opening;
        loop {
            match server.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && was_opening == server.is_opening => {
                    assert!(Instant::now() < deadline, "nothing arrived");
                }
                other => return other,
            }
        }
    }

    #[test]
    fn pubmarks_client_and_this_server_understand_each_other() {
        let (mut socket, mut server) = ends();
        assert_eq!(server.write(b"early").unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut client = websocket::WebSocket::new(&Upgrade {
            host: "127.0.0.1".to_owned(),
            path: "/mqtt".to_owned(),
            subprotocol: "mqtt".to_owned(),
        });
        let lengths = [1, 125, 126, 16_000];
        let sent: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|index| index as u8).collect();
        socket.write_all(client.outgoing()).unwrap();
        client.took(client.waiting_bytes());
        // The response is sent when the server reads the request.
        assert_eq!(read(&mut server, &mut [0; 64]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut piece = [0; 32 * 1024];
        let length = socket.read(&mut piece).unwrap();
        assert!(!client.read(&piece[..length], &mut vec![]) && client.is_open());
        let mut from = 0;
        for length in lengths {
            client.put(&sent[from..from + length]);
            from += length;
        }
        socket.write_all(client.outgoing()).unwrap();
        let mut arrived = vec![];
        while arrived.len() < sent.len() {
            let length = read(&mut server, &mut piece).unwrap();
            arrived.extend_from_slice(&piece[..length]);
        }
        assert_eq!(arrived, sent);
        let reply: Vec<u8> = sent.iter().rev().copied().collect();
        assert_eq!(server.write(&reply).unwrap(), reply.len());
        let mut found = vec![];
        while found.len() < reply.len() {
            let length = socket.read(&mut piece).unwrap();
            assert!(!client.read(&piece[..length], &mut found));
        }
        assert_eq!(found, reply);
    }

    #[test]
    fn what_is_no_websocket_of_a_client_is_an_error() {
        let long = vec![b'a'; LONGEST_REQUEST + 1];
        let upgrade = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: a2V5\r\n\r\n";
        let framed = |frame: &[u8]| [&upgrade[..], frame].concat();
        for bytes in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            long,
            framed(&[0x82, 0x01, 0x00]),
            framed(&[0x81, 0x80, 0, 0, 0, 0]),
            framed(&[0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        ] {
            let (mut client, mut server) = ends();
            client.write_all(&bytes).unwrap();
            let mut found = read(&mut server, &mut [0; 64]);
            if found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                // The upgrade came before the rest.
                found = read(&mut server, &mut [0; 64]);
            }
            assert_eq!(found.unwrap_err().kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
