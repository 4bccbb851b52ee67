//! TCP sockets of this network namespace with the kernel's counters, read through `NETLINK_SOCK_DIAG` (sock_diag(7)).
//!
//! Layouts and constants are those of `linux/inet_diag.h`, `linux/sock_diag.h` and `linux/tcp.h`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Attribute with `struct tcp_info`; in a request, bit `INET_DIAG_INFO - 1` of the extensions requests it.
const INET_DIAG_INFO: u16 = 2;
const TCP_LISTEN: u32 = 10;
/// States with a peer: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING. A socket in TIME_WAIT has no
/// counters any more.
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

const NETLINK_HEADER: usize = 16;
/// Size of `struct inet_diag_req_v2`, bytes.
const REQUEST: usize = 56;
/// Size of `struct inet_diag_msg`, bytes.
const MESSAGE: usize = 72;
/// Offsets in `struct tcp_info`. New kernels only append fields.
const TCPI_BYTES_ACKED: usize = 120;
const TCPI_BYTES_RECEIVED: usize = 128;
/// The kernel fills at most 32 KiB per read.
const BUFFER: usize = 64 << 10;
/// Longest wait for the kernel's response, s. The kernel responds within the call; the limit only prevents that a fault
/// blocks a run.
const ANSWER_WITHIN_S: i64 = 2;

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Number that is never used for another socket of this machine.
    pub cookie: u64,
    /// Local port.
    pub local_port: u16,
    /// Remote port; 0 for a listening socket.
    pub remote_port: u16,
    /// Inode of the socket's file; 0 if it has none (not accepted yet, or closed and not yet removed).
    pub inode: u32,
    /// Bytes that the socket carried; `None` if the kernel does not report them.
    pub carried: Option<Carried>,
}

/// Payload bytes that a TCP connection carried since it was opened, without headers and retransmissions. The kernel
/// counts sequence numbers, so each SYN and FIN adds one to the side that sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes received in order.
    pub received_bytes: u64,
    /// Bytes sent that the other side acknowledged; an acknowledgement may take 40 ms.
    pub acknowledged_bytes: u64,
}

/// A netlink socket for requests.
#[derive(Debug)]
pub struct Diagnostics {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Diagnostics {
    /// Opens the socket; needs no privilege.
    pub fn open() -> io::Result<Diagnostics> {
        // SAFETY: a plain call; its result is checked before it becomes an owned descriptor.
        let socket = unsafe {
            let number = libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG);
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(number)
        };
        let limit = libc::timeval { tv_sec: ANSWER_WITHIN_S, tv_usec: 0 };
        // SAFETY: the option is a timeval, whose address and size are given.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const limit).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            )
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Diagnostics { socket, buffer: vec![0; BUFFER] })
    }

    /// Sockets in the state LISTEN.
    pub fn listening(&mut self) -> io::Result<Vec<Socket>> {
        self.sockets(1 << TCP_LISTEN)
    }

    /// Sockets that are or were connected, with the bytes that they carried.
    pub fn connected(&mut self) -> io::Result<Vec<Socket>> {
        self.sockets(CONNECTED)
    }

    fn sockets(&mut self, states: u32) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.send_request(family as u8, states)?;
            while self.take_answer(&mut found)? == ParseStatus::MoreToCome {}
        }
        Ok(found)
    }

    fn send_request(&self, family: u8, states: u32) -> io::Result<()> {
        let length = NETLINK_HEADER + REQUEST;
        let mut request = [0u8; NETLINK_HEADER + REQUEST];
        request[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        request[16] = family;
        request[17] = libc::IPPROTO_TCP as u8;
        request[18] = 1 << (INET_DIAG_INFO - 1);
        request[20..24].copy_from_slice(&states.to_ne_bytes());
        // SAFETY: the bytes given are valid for their length.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), length, 0) };
        if sent == length as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn take_answer(&mut self, found: &mut Vec<Socket>) -> io::Result<ParseStatus> {
        // SAFETY: the buffer is valid for its length.
        let length =
            unsafe { libc::recv(self.socket.as_raw_fd(), self.buffer.as_mut_ptr().cast(), self.buffer.len(), 0) };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        parse(&self.buffer[..length as usize], found)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParseStatus {
    MoreToCome,
    Done,
}

/// Parses the sockets in one datagram of netlink messages.
fn parse(mut datagram: &[u8], found: &mut Vec<Socket>) -> io::Result<ParseStatus> {
    while let (Some(length), Some(kind)) = (u32_at(datagram, 0), u16_at(datagram, 4)) {
        let length = length as usize;
        let message = datagram.get(NETLINK_HEADER..length).ok_or_else(cut_short)?;
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(ParseStatus::Done),
            libc::NLMSG_ERROR => {
                let code = u32_at(message, 0).ok_or_else(cut_short)? as i32;
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ if kind == SOCK_DIAG_BY_FAMILY => found.push(socket(message).ok_or_else(cut_short)?),
            _ => {}
        }
        datagram = datagram.get(aligned(length)..).unwrap_or_default();
    }
    Ok(ParseStatus::MoreToCome)
}

fn socket(message: &[u8]) -> Option<Socket> {
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let mut attributes = message.get(MESSAGE..)?;
    let mut carried = None;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let value = attributes.get(4..usize::from(length))?;
        if kind == INET_DIAG_INFO {
            // Kernels before 4.1 do not count bytes.
            carried = u64_at(value, TCPI_BYTES_ACKED)
                .zip(u64_at(value, TCPI_BYTES_RECEIVED))
                .map(|(acknowledged_bytes, received_bytes)| Carried { received_bytes, acknowledged_bytes });
        }
        attributes = attributes.get(aligned(usize::from(length))..).unwrap_or_default();
    }
    Some(Socket {
        cookie: u64::from(u32_at(message, 44)?) | u64::from(u32_at(message, 48)?) << 32,
        local_port: port(4)?,
        remote_port: port(6)?,
        inode: u32_at(message, 68)?,
        carried,
    })
}

/// Netlink messages and attributes start at multiples of 4.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn cut_short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel's list of sockets is cut short")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn inode(of: &impl AsRawFd) -> u32 {
        std::fs::metadata(format!("/proc/self/fd/{}", of.as_raw_fd())).unwrap().ino() as u32
    }

    #[test]
    fn a_known_transfer_is_counted_on_both_sides_over_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(&[1; 10_000]).unwrap();
            server.read_exact(&mut [0; 10_000]).unwrap();
            server.write_all(&[2; 500]).unwrap();
            client.read_exact(&mut [0; 500]).unwrap();

            let mut diagnostics = Diagnostics::open().unwrap();
            let listening = diagnostics.listening().unwrap();
            assert!(listening.iter().any(|socket| socket.local_port == port && socket.inode == inode(&listener)));
            let sockets = diagnostics.connected().unwrap();
            let of = |wanted: u32| *sockets.iter().find(|socket| socket.inode == wanted).unwrap();
            let (near, far) = (of(inode(&client)), of(inode(&server)));
            assert_eq!((near.remote_port, far.local_port), (port, port));
            assert_ne!(near.cookie, far.cookie);
            let (near, far) = (near.carried.unwrap(), far.carried.unwrap());
            assert_eq!((near.received_bytes, far.received_bytes), (500, 10_000), "{address}");
            // The SYN counts as one byte; the last bytes may not be acknowledged yet.
            assert!(near.acknowledged_bytes <= 10_001 && far.acknowledged_bytes <= 501, "{near:?} {far:?}");
        }
    }

    #[test]
    fn a_truncated_response_is_an_error_and_no_panic() {
        let mut whole = vec![0u8; NETLINK_HEADER + MESSAGE];
        let length = whole.len() as u32;
        whole[0..4].copy_from_slice(&length.to_ne_bytes());
        whole[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        let mut found = Vec::new();
        assert_eq!(parse(&whole, &mut found).unwrap(), ParseStatus::MoreToCome);
        assert_eq!((found.len(), found[0].carried), (1, None));
        for length in NETLINK_HEADER..whole.len() {
            assert!(parse(&whole[..length], &mut Vec::new()).is_err(), "{length} of {} bytes", whole.len());
        }
        let mut refused = vec![0u8; NETLINK_HEADER + 4];
        refused[0..4].copy_from_slice(&20u32.to_ne_bytes());
        refused[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        refused[16..20].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        assert_eq!(parse(&refused, &mut found).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
