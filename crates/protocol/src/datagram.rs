//! Non-blocking datagrams: a connected UDP socket, and reading many messages in one system call, each with its own receive
//! timestamp of the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::receive::{self, Control};
use crate::socket::{SocketFactory, family, set_option, with_address};

/// Most datagrams read in one system call.
pub const AT_A_TIME: usize = 16;
/// Buffer space for each: no datagram is longer (a UDP length has 16 bits).
const DATAGRAM_BYTES: usize = 64 * 1024;
/// Index in `sk_meminfo` of the memory of received data (`linux/sock_diag.h`, SK_MEMINFO_RMEM_ALLOC).
const MEMINFO_RECEIVED: usize = 0;
/// Index of the datagrams dropped for lack of buffer space (SK_MEMINFO_DROPS).
const MEMINFO_DROPS: usize = 8;
const MEMINFO_VALUES: usize = 9;
/// `SO_MEMINFO` of `asm-generic/socket.h`.
const SO_MEMINFO: libc::c_int = 55;

impl SocketFactory {
    /// A UDP socket connected to this peer: it receives only from that peer, and gets an error when no socket is bound there.
    pub fn connect_datagrams(&mut self, network: Option<u16>, address: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::from(self.make(network, family(address), libc::SOCK_DGRAM)?);
        if self.receive_stamps {
            receive::enable_stamps(socket.as_fd())?;
        }
        if let Some(source) = self.take_source() {
            with_address(SocketAddr::new(source, 0), |pointer, length| {
                // SAFETY: `pointer` is a socket address of `length` bytes.
                unsafe { libc::bind(socket.as_raw_fd(), pointer, length) }
            })?;
        }
        socket.connect(address)?;
        Ok(DatagramSocket { socket })
    }

    /// A UDP socket bound to this address that receives from any peer, with the kernel's timestamps if the factory's sockets have them.
    pub fn listen_datagrams(&self, address: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = DatagramSocket::bind(address)?;
        if self.receive_stamps {
            receive::enable_stamps(socket.as_fd())?;
        }
        Ok(socket)
    }
}

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
}

impl DatagramSocket {
    /// A socket bound to this address that receives from any peer.
    pub fn bind(address: SocketAddr) -> io::Result<DatagramSocket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(DatagramSocket { socket })
    }

    /// Its address.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Requests a receive buffer of N bytes, as [`enlarge_receive_buffer`] does.
    pub fn enlarge_receive_buffer(&self, bytes: libc::c_int) -> io::Result<()> {
        enlarge_receive_buffer(self.as_fd(), bytes)
    }

    /// Sends one datagram to the peer. `WouldBlock` if the socket's buffer is full; `ConnectionRefused` if an earlier datagram
    /// found no bound socket: then this one was not sent.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            match self.socket.send(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(drop),
            }
        }
    }

    /// Sends one datagram to `address`; only on a socket made by [`DatagramSocket::bind`].
    pub fn send_to(&self, bytes: &[u8], address: SocketAddr) -> io::Result<()> {
        loop {
            match self.socket.send_to(bytes, address) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(drop),
            }
        }
    }

    /// Bytes that the kernel still has to send (SIOCOUTQ); 0 if it does not report them.
    pub fn unsent_bytes(&self) -> u64 {
        let mut bytes: libc::c_int = 0;
        // SAFETY: TIOCOUTQ (SIOCOUTQ for sockets) writes one c_int.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
        if result < 0 { 0 } else { u64::try_from(bytes).unwrap_or(0) }
    }

    /// Datagrams that the kernel dropped, see [`overflowed`].
    pub fn overflowed(&self) -> Option<u64> {
        overflowed(self.as_fd())
    }
}

/// Requests a receive buffer of N bytes: above the system's limit (`net.core.rmem_max`) if permitted, up to it otherwise.
pub fn enlarge_receive_buffer(socket: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Requests a send buffer of N bytes, likewise (`net.core.wmem_max`).
pub fn enlarge_send_buffer(socket: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes))
}

/// Datagrams that the kernel dropped because the socket's buffer was full; `None` if it does not report them.
pub fn overflowed(socket: BorrowedFd<'_>) -> Option<u64> {
    memory_info(socket.as_raw_fd()).map(|values| u64::from(values[MEMINFO_DROPS]))
}

/// [`overflowed`] of each UDP socket that client libraries have open in this process, by the socket's inode. Adapters count the
/// drops of their own sockets: these have the kernel's timestamps, those of libraries do not. Sockets of which the kernel does
/// not report it are left out. Takes a few microseconds for each descriptor of the process.
pub fn overflowed_in_libraries() -> BTreeMap<u64, u64> {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else { return BTreeMap::new() };
    let drops = descriptors.flatten().filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()?;
        // Another thread may close the descriptor, or open another file with its number: then nothing is read, or the drops of
        // that socket.
        let socket: RawFd = entry.file_name().to_str()?.parse().ok()?;
        let values = (is_udp(socket) && !receive::has_stamps(socket)).then(|| memory_info(socket)).flatten()?;
        Some((inode, u64::from(values[MEMINFO_DROPS])))
    });
    drops.collect()
}

fn is_udp(socket: RawFd) -> bool {
    let mut protocol: libc::c_int = 0;
    let mut length = size_of_val(&protocol) as libc::socklen_t;
    let place = (&raw mut protocol).cast();
    // SAFETY: the kernel writes at most `length` bytes to `place`; a number that is no socket is an error.
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL, place, &mut length) };
    result == 0 && protocol == libc::IPPROTO_UDP
}

/// Kernel memory of datagrams that wait in the socket, bytes: more than their lengths; `None` if the kernel does not report it.
pub fn received_memory_bytes(socket: BorrowedFd<'_>) -> Option<u64> {
    memory_info(socket.as_raw_fd()).map(|values| u64::from(values[MEMINFO_RECEIVED]))
}

fn memory_info(socket: RawFd) -> Option<[u32; MEMINFO_VALUES]> {
    let mut values = [0u32; MEMINFO_VALUES];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `values`.
    let result =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, SO_MEMINFO, values.as_mut_ptr().cast(), &mut length) };
    (result == 0 && length as usize == size_of_val(&values)).then_some(values)
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// One datagram that was read.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// Its sender.
    pub from: Option<SocketAddr>,
    /// The kernel's receive stamp, ns of `CLOCK_REALTIME`, if stamps are on.
    pub stamp_realtime_ns: Option<u64>,
}

/// Buffers for the datagrams of one read; one for all sockets of a shard. Its memory is used only as far as datagrams are long.
#[derive(Debug, Default)]
pub struct Datagrams {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    length: usize,
    from: Option<SocketAddr>,
    stamp_realtime_ns: Option<u64>,
}

impl Datagrams {
    /// Reads the datagrams that have arrived, at most [`AT_A_TIME`], and returns their number: fewer than that if the socket is
    /// empty now. An error (`WouldBlock` for an empty socket) is returned only if none could be read.
    pub fn read(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.entries.clear();
        self.bytes.resize(AT_A_TIME * DATAGRAM_BYTES, 0);
        let mut controls = [const { Control::new() }; AT_A_TIME];
        // SAFETY: all-zero addresses, parts and headers are valid ones with nothing in them.
        let mut names: [libc::sockaddr_storage; AT_A_TIME] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut parts: [libc::iovec; AT_A_TIME] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut headers: [libc::mmsghdr; AT_A_TIME] = unsafe { std::mem::zeroed() };
        for (index, room) in self.bytes.chunks_exact_mut(DATAGRAM_BYTES).enumerate() {
            parts[index] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut headers[index].msg_hdr;
            header.msg_iov = &mut parts[index];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut names[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_control = controls[index].pointer();
            header.msg_controllen = Control::BYTES as _;
        }
        let count = receive_many(socket, &mut headers)?;
        for (header, name) in headers.iter().zip(&names).take(count) {
            let length = (header.msg_len as usize).min(DATAGRAM_BYTES);
            let from = address_of(name, header.msg_hdr.msg_namelen);
            self.entries.push(Entry { length, from, stamp_realtime_ns: receive::stamp_of(&header.msg_hdr) });
        }
        Ok(count)
    }

    /// A datagram of the last read.
    pub fn get(&self, index: usize) -> Option<Datagram<'_>> {
        let Entry { length, from, stamp_realtime_ns } = *self.entries.get(index)?;
        let bytes = self.bytes.get(index * DATAGRAM_BYTES..)?.get(..length)?;
        Some(Datagram { bytes, from, stamp_realtime_ns })
    }
}

fn receive_many(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr; AT_A_TIME]) -> io::Result<usize> {
    loop {
        // SAFETY: every header points to live memory of the lengths that it gives; no time limit is passed.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                AT_A_TIME as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        match usize::try_from(count) {
            Ok(count) => return Ok(count.min(AT_A_TIME)),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// The address that the kernel wrote; `None` if it wrote none.
fn address_of(name: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    let length = length as usize;
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: the family shows the type, and a sockaddr_storage has its size and alignment at least.
            let found = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            Some(SocketAddr::from((found.sin_addr.s_addr.to_ne_bytes(), u16::from_be(found.sin_port))))
        }
        libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above.
            let found = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(found.sin6_addr.s6_addr);
            let port = u16::from_be(found.sin6_port);
            Some(SocketAddrV6::new(address, port, found.sin6_flowinfo, found.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(datagrams: &mut Datagrams, socket: &DatagramSocket) -> usize {
        datagrams.read(socket.as_fd()).unwrap()
    }

    #[test]
    fn datagrams_are_read_many_at_a_time_whole_and_with_their_senders() {
        let mut factory =
            SocketFactory { sources: [[127, 0, 0, 9].into()].into(), receive_stamps: true, ..SocketFactory::default() };
        let server = factory.listen_datagrams("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = factory.connect_datagrams(None, server.local_address().unwrap()).unwrap();
        let large = vec![7; 65_507];
        for number in 0..AT_A_TIME as u8 {
            client.send(&[number]).unwrap();
        }
        client.send(&large).unwrap();
        let mut datagrams = Datagrams::default();
        assert_eq!(read(&mut datagrams, &server), AT_A_TIME);
        for number in 0..AT_A_TIME {
            let found = datagrams.get(number).unwrap();
            assert_eq!((found.bytes, found.from.unwrap().ip()), (&[number as u8][..], [127, 0, 0, 9].into()));
        }
        assert_eq!(read(&mut datagrams, &server), 1);
        let found = datagrams.get(0).unwrap();
        assert!(found.bytes == large && datagrams.get(1).is_none());
        server.send_to(b"back", found.from.unwrap()).unwrap();
        assert_eq!(read(&mut datagrams, &client), 1);
        assert_eq!(datagrams.get(0).unwrap().bytes, b"back");
        let empty = datagrams.read(client.as_fd()).unwrap_err();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn received_datagrams_have_their_receive_times() {
        let mut factory = SocketFactory { receive_stamps: true, ..SocketFactory::default() };
        let server = factory.listen_datagrams("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = factory.connect_datagrams(None, server.local_address().unwrap()).unwrap();
        let mut datagrams = Datagrams::default();
        // The kernel starts to add timestamps with a delay (`net_enable_timestamp` defers it).
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            client.send(b"when?").unwrap();
            assert_eq!(read(&mut datagrams, &server), 1);
            if datagrams.get(0).unwrap().stamp_realtime_ns.is_some() {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "no stamp");
        }
    }

    #[test]
    fn arrivals_beyond_the_buffer_are_counted() {
        let server = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        set_option(server.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 4_096).unwrap();
        let client = SocketFactory::default().connect_datagrams(None, server.local_address().unwrap()).unwrap();
        for _ in 0..100 {
            client.send(&[0; 1_000]).unwrap();
        }
        let (mut datagrams, mut got) = (Datagrams::default(), 0);
        while let Ok(count) = datagrams.read(server.as_fd()) {
            got += count as u64;
        }
        assert_eq!(server.overflowed(), Some(100 - got));
    }

    fn inode(socket: &DatagramSocket) -> u64 {
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_fd().as_raw_fd())).unwrap();
        link.to_str().unwrap().trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap()
    }

    #[test]
    fn drops_of_sockets_are_found_without_their_owners() {
        let server = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        set_option(server.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 4_096).unwrap();
        let client = SocketFactory::default().connect_datagrams(None, server.local_address().unwrap()).unwrap();
        let stream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(overflowed_in_libraries().get(&inode(&server)), Some(&0));
        (0..100).for_each(|_| client.send(&[0; 1_000]).unwrap());
        let found = overflowed_in_libraries();
        assert_eq!(found.get(&inode(&server)).copied(), server.overflowed().filter(|drops| *drops > 0));
        assert_eq!(found.get(&inode(&client)), Some(&0));
        assert!(!is_udp(stream.as_raw_fd()));
    }

    #[test]
    fn drops_of_sockets_of_adapters_are_not_those_of_libraries() {
        let mut factory = SocketFactory { receive_stamps: true, ..SocketFactory::default() };
        let server = factory.listen_datagrams("127.0.0.1:0".parse().unwrap()).unwrap();
        set_option(server.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 4_096).unwrap();
        let client = factory.connect_datagrams(None, server.local_address().unwrap()).unwrap();
        (0..100).for_each(|_| client.send(&[0; 1_000]).unwrap());
        assert!(server.overflowed() > Some(0));
        let found = overflowed_in_libraries();
        assert_eq!([&server, &client].map(|socket| found.get(&inode(socket))), [None; 2]);
    }

    #[test]
    fn a_port_without_listener_is_reported_with_the_next_call() {
        let server = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = SocketFactory::default().connect_datagrams(None, server.local_address().unwrap()).unwrap();
        drop(server);
        client.send(b"anybody?").unwrap();
        let error = Datagrams::default().read(client.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
