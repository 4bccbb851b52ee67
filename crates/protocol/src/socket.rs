//! Non-blocking TCP sockets, and the factory of all sockets; those of UDP are in [`crate::datagram`].

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::c_int;

use crate::clients::ShardConfig;
use crate::congestion;
use crate::network::Network;
use crate::receive::{self, RawRead};
use crate::traffic::{self, Traffic};

/// Makes the sockets of a shard.
#[derive(Clone, Debug, Default)]
pub struct SocketFactory {
    /// Addresses to connect from, one after the other; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// The next of them.
    pub(crate) next: usize,
    /// Use the kernel's receive timestamps.
    pub receive_stamps: bool,
    /// The kernel's congestion control to send with; the machine's own if `None`.
    pub congestion_control: Option<Arc<str>>,
    /// Networks that sockets can be made in, besides that of the shard's thread.
    pub(crate) networks: Arc<[Arc<dyn Network>]>,
}

impl SocketFactory {
    /// Sockets of a shard.
    pub fn new(config: &ShardConfig) -> SocketFactory {
        SocketFactory {
            sources: Arc::clone(&config.sources),
            next: 0,
            receive_stamps: config.connections.receive_stamps,
            congestion_control: config.connections.congestion_control.clone(),
            networks: Arc::clone(&config.networks),
        }
    }

    /// Makes a socket in one of the networks, or in that of this thread.
    pub(crate) fn make(&self, network: Option<u16>, family: c_int, kind: c_int) -> io::Result<OwnedFd> {
        let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let make = || {
            // SAFETY: no pointers are passed; the result is checked.
            match unsafe { libc::socket(family, kind, 0) } {
                descriptor if descriptor < 0 => Err(io::Error::last_os_error()),
                // SAFETY: the descriptor was just made and has no other owner.
                descriptor => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
            }
        };
        let Some(network) = network else { return make() };
        let mut made = None;
        self.networks[usize::from(network)].within(&mut || make().map(|socket| made = Some(socket)))?;
        made.ok_or_else(|| io::Error::other("the network made no socket"))
    }

    /// The next source address, in turn.
    pub(crate) fn take_source(&mut self) -> Option<IpAddr> {
        let source = self.sources.get(self.next).copied()?;
        self.next = (self.next + 1) % self.sources.len();
        Some(source)
    }

    /// Starts to connect, from a network of [`ShardConfig::networks`] or from this thread's. The socket is writable once it is
    /// connected or has failed; [`TcpSocket::connected`] returns which. Small writes are sent at once (`TCP_NODELAY`).
    pub fn connect(&mut self, network: Option<u16>, address: SocketAddr) -> io::Result<TcpSocket> {
        let stream = TcpStream::from(self.make(network, family(address), libc::SOCK_STREAM)?);
        self.set_up(&stream)?;
        if let Some(source) = self.take_source() {
            // The port is chosen by `connect`, so that a source address can be used by more connections than ports.
            set_option(stream.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            with_address(SocketAddr::new(source, 0), |pointer, length| {
                // SAFETY: `pointer` is a socket address of `length` bytes.
                unsafe { libc::bind(stream.as_raw_fd(), pointer, length) }
            })?;
        }
        let result = with_address(address, |pointer, length| {
            // SAFETY: as above.
            unsafe { libc::connect(stream.as_raw_fd(), pointer, length) }
        });
        match result {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(TcpSocket::new(stream, self.receive_stamps)),
        }
    }

    /// A socket that was accepted.
    pub fn adopt(&self, stream: TcpStream) -> io::Result<TcpSocket> {
        stream.set_nonblocking(true)?;
        self.set_up(&stream)?;
        Ok(TcpSocket::new(stream, self.receive_stamps))
    }

    /// Options of all TCP sockets.
    fn set_up(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        if let Some(name) = &self.congestion_control {
            congestion::set(stream.as_fd(), name)?;
        }
        if self.receive_stamps {
            receive::enable_stamps(stream.as_fd())?;
        }
        Ok(())
    }
}

pub(crate) fn family(address: SocketAddr) -> c_int {
    if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
}

/// Sets an option whose value is a number.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the value is a live c_int of the length given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option whose value is a number.
fn option(socket: BorrowedFd<'_>, level: c_int, option: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, those of a live c_int.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Calls `call` with `address` in the kernel's form; a negative result is the call's error.
pub(crate) fn with_address(
    address: SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> c_int,
) -> io::Result<()> {
    let result = match address {
        SocketAddr::V4(address) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            call((&raw const raw).cast(), size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(address) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            call((&raw const raw).cast(), size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A non-blocking TCP socket.
#[derive(Debug)]
pub struct TcpSocket {
    stream: TcpStream,
    receive_stamps: bool,
    /// Bytes that a silenced socket still accepts and discards; [`NOT_SILENCED`] for one that works.
    room: AtomicUsize,
}

/// Value for a socket that is not silenced.
const NOT_SILENCED: usize = usize::MAX;

impl TcpSocket {
    fn new(stream: TcpStream, receive_stamps: bool) -> TcpSocket {
        TcpSocket { stream, receive_stamps, room: AtomicUsize::new(NOT_SILENCED) }
    }

    /// Nothing is sent or received any more, and neither end is notified. A filter drops what the peer sends before TCP sees
    /// it, so it is not even acknowledged; writes are accepted until they would fill the send buffer, as for a peer that is
    /// gone.
    pub fn silence(&self) -> io::Result<()> {
        // One instruction: accept 0 bytes of every packet (BPF_RET | BPF_K, socket(7): SO_ATTACH_FILTER).
        let mut drop_all = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut drop_all };
        let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
        let descriptor = self.stream.as_raw_fd();
        // SAFETY: the program and its one instruction live for the call; the kernel copies them.
        let result = unsafe {
            libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, (&raw const program).cast(), length)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let buffer = option(self.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF)?;
        let taken = usize::try_from(self.unsent_bytes()).unwrap_or(usize::MAX);
        let room = usize::try_from(buffer).unwrap_or(0).saturating_sub(taken);
        self.room.store(room.min(NOT_SILENCED - 1), Ordering::Relaxed);
        Ok(())
    }

    /// Is it silenced?
    pub fn is_silent(&self) -> bool {
        self.room.load(Ordering::Relaxed) != NOT_SILENCED
    }

    /// The address of this end.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// When it is closed the peer gets a reset (socket(7): SO_LINGER with a time of 0).
    pub fn close_by_reset(&self) -> io::Result<()> {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let length = size_of::<libc::linger>() as libc::socklen_t;
        let descriptor = self.stream.as_raw_fd();
        // SAFETY: the value is a live `linger` of the length given.
        let result = unsafe {
            libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Is the connection made? Called when the socket first becomes writable; its failure is the error.
    pub fn connected(&self) -> io::Result<()> {
        match self.stream.take_error()? {
            Some(error) => Err(error),
            None => self.stream.peer_addr().map(drop),
        }
    }

    /// Reads once, with the kernel's timestamp if those are on.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<RawRead> {
        if self.is_silent() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        loop {
            let result = if self.receive_stamps {
                receive::read_stamped(self.stream.as_fd(), buffer)
            } else {
                receive::read(self.stream.as_fd(), buffer)
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Acknowledges what was read, if the kernel has not done so: it may wait for 40 ms for data to send with it (tcp(7):
    /// TCP_QUICKACK).
    pub fn acknowledge(&self) -> io::Result<()> {
        set_option(self.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1)
    }

    /// Writes once; only a part may be accepted.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.room.load(Ordering::Relaxed) {
            NOT_SILENCED => io::Write::write(&mut &self.stream, bytes),
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            room => {
                let taken = room.min(bytes.len());
                self.room.store(room - taken, Ordering::Relaxed);
                Ok(taken)
            }
        }
    }

    /// The traffic of the connection, estimated; `None` if the kernel does not count.
    pub fn traffic(&self) -> Option<Traffic> {
        // The peer's address is gone once the connection is.
        traffic::of_tcp(self.stream.as_fd(), self.stream.local_addr().ok()?)
    }

    /// Bytes that the kernel has and the peer has not acknowledged (SIOCOUTQ); 0 if the kernel does not report them.
    pub fn unsent_bytes(&self) -> u64 {
        self.queued_bytes(libc::TIOCOUTQ)
    }

    /// Bytes that the kernel has received and nobody has read (SIOCINQ); 0 if the kernel does not report them.
    pub fn unread_bytes(&self) -> u64 {
        self.queued_bytes(libc::FIONREAD)
    }

    fn queued_bytes(&self, queue: libc::Ioctl) -> u64 {
        let mut bytes: c_int = 0;
        // SAFETY: TIOCOUTQ and FIONREAD (SIOCOUTQ and SIOCINQ for sockets) write one c_int.
        let result = unsafe { libc::ioctl(self.stream.as_raw_fd(), queue, &mut bytes) };
        if result < 0 { 0 } else { u64::try_from(bytes).unwrap_or(0) }
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl io::Write for &TcpSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        TcpSocket::write(self, bytes)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        if self.is_silent() {
            let first = parts.iter().find(|part| !part.is_empty());
            return first.map_or(Ok(0), |part| TcpSocket::write(self, part));
        }
        (&self.stream).write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::reactor::Reactor;

    fn connect(factory: &mut SocketFactory, address: SocketAddr) -> io::Result<TcpSocket> {
        let mut reactor = Reactor::new()?;
        let socket = factory.connect(None, address)?;
        reactor.add(socket.as_fd(), 1)?;
        reactor.wait(None, &mut Vec::new())?;
        socket.connected().map(|()| socket)
    }

    fn from<const COUNT: usize>(sources: [IpAddr; COUNT], receive_stamps: bool) -> SocketFactory {
        SocketFactory { sources: sources.into(), receive_stamps, ..SocketFactory::default() }
    }

    #[test]
    fn connects_from_the_configured_source_addresses_in_turn() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sources = [[127, 0, 0, 9].into(), [127, 0, 0, 7].into()];
        let mut factory = from(sources, true);
        for last in [9, 7, 9] {
            connect(&mut factory, listener.local_addr().unwrap()).unwrap();
            let (_, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), IpAddr::from([127, 0, 0, last]));
        }
        let socket = connect(&mut factory, listener.local_addr().unwrap()).unwrap();
        socket.write(b"0123456789").unwrap();
        assert!(socket.unsent_bytes() <= 10);
    }

    #[test]
    fn sockets_use_the_requested_congestion_control_or_the_machine_s() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let of = |socket: &TcpSocket| congestion::of(socket.as_fd()).unwrap();
        let own = of(&SocketFactory::default().connect(None, address).unwrap());
        for name in congestion::allowed() {
            let requested = Some(name.as_str().into());
            let mut factory = SocketFactory { congestion_control: requested, ..SocketFactory::default() };
            assert_eq!(of(&factory.connect(None, address).unwrap()), name);
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(of(&factory.adopt(accepted).unwrap()), name);
        }
        assert_eq!(of(&SocketFactory::default().connect(None, address).unwrap()), own);
        let mut factory = SocketFactory { congestion_control: Some("none-such".into()), ..SocketFactory::default() };
        assert_eq!(factory.connect(None, address).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    /// Records that it was entered, and fails the second time.
    #[derive(Debug, Default)]
    struct Door(std::sync::atomic::AtomicU32);

    impl Network for Door {
        fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
            match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0 => make(),
                _ => Err(io::ErrorKind::PermissionDenied.into()),
            }
        }
    }

    #[test]
    fn sockets_belong_to_the_requested_network() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let door = Arc::new(Door::default());
        let networks: [Arc<dyn Network>; 1] = [door.clone()];
        let mut factory = SocketFactory { networks: networks.into(), ..SocketFactory::default() };
        factory.connect(None, address).unwrap();
        assert_eq!(door.0.load(std::sync::atomic::Ordering::Relaxed), 0);
        factory.connect(Some(0), address).unwrap();
        assert_eq!(door.0.load(std::sync::atomic::Ordering::Relaxed), 1);
        let error = factory.connect_datagrams(Some(0), address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_silenced_socket_sends_and_receives_nothing_and_its_peer_gets_a_reset() {
        use std::io::{Read as _, Write as _};

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut factory = SocketFactory::default();
        let silenced = connect(&mut factory, listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        silenced.write(b"heard").unwrap();
        let mut received = [0; 16];
        assert_eq!(peer.read(&mut received).unwrap(), 5);
        silenced.silence().unwrap();
        assert!(silenced.is_silent());
        assert_eq!(silenced.write(b"not heard").unwrap(), 9);
        peer.write_all(b"not heard either").unwrap();
        peer.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
        assert_eq!(peer.read(&mut received).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(silenced.read(&mut received).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // The data from the peer was not acknowledged: the peer still has all of it.
        let mut held: c_int = 0;
        // SAFETY: TIOCOUTQ writes one c_int.
        unsafe { libc::ioctl(peer.as_raw_fd(), libc::TIOCOUTQ, &mut held) };
        assert_eq!(held, 16);
        // A socket accepts a limited number of bytes.
        let mut taken = 9;
        while let Ok(count) = silenced.write(&[0; 65_536]) {
            taken += count;
            assert!(taken < 1 << 30, "no end to what it takes");
        }

        let reset = connect(&mut factory, listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        reset.close_by_reset().unwrap();
        drop(reset);
        peer.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        assert_eq!(peer.read(&mut received).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn connects_over_ipv6() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else {
            return pubmark_testing::skip("this machine has no IPv6 loopback");
        };
        let own = listener.local_addr().unwrap();
        connect(&mut SocketFactory::default(), own).unwrap();
        connect(&mut from([own.ip()], false), own).unwrap();
    }

    #[test]
    fn a_port_without_listener_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = connect(&mut SocketFactory::default(), address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
