//! Non-blocking TCP sockets, and where all sockets come from; those of UDP are in [`crate::datagram`].

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::receive::{self, RawRead};

/// Makes the sockets of a shard. The seam for emulated links: whoever knows a link's namespace or address sets it here.
#[derive(Clone, Debug, Default)]
pub struct SocketFactory {
    /// Addresses to connect from, one after the other; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// The next of them.
    next: usize,
    /// Take the kernel's receive stamps.
    pub receive_stamps: bool,
}

impl SocketFactory {
    /// Sockets of a shard.
    pub fn new(sources: Arc<[IpAddr]>, receive_stamps: bool) -> SocketFactory {
        SocketFactory { sources, next: 0, receive_stamps }
    }

    /// The address whose turn it is.
    pub(crate) fn take_source(&mut self) -> Option<IpAddr> {
        let source = self.sources.get(self.next).copied()?;
        self.next = (self.next + 1) % self.sources.len();
        Some(source)
    }

    /// Starts connecting. The socket is writable once it is connected or has failed; [`TcpSocket::connected`] says which.
    /// Small writes leave at once (`TCP_NODELAY`).
    pub fn connect(&mut self, address: SocketAddr) -> io::Result<TcpSocket> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed; the result is checked.
        let descriptor = unsafe { libc::socket(family, kind, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let stream = TcpStream::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        stream.set_nodelay(true)?;
        if self.receive_stamps {
            receive::enable_stamps(stream.as_fd())?;
        }
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
            _ => Ok(TcpSocket { stream, receive_stamps: self.receive_stamps }),
        }
    }
}

/// Sets an option whose value is a number.
pub(crate) fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is a live c_int of the length given.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Calls `call` with `address` as the kernel writes it; a negative result is the call's error.
pub(crate) fn with_address(
    address: SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> libc::c_int,
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
}

impl TcpSocket {
    /// Is the connection made? Asked when the socket first becomes writable; its failure is the error.
    pub fn connected(&self) -> io::Result<()> {
        match self.stream.take_error()? {
            Some(error) => Err(error),
            None => self.stream.peer_addr().map(drop),
        }
    }

    /// Reads once, with the kernel's stamp if stamps are on.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<RawRead> {
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

    /// Writes once; a part may be taken.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut &self.stream, bytes)
    }

    /// Bytes that the kernel holds and the peer has not acknowledged (SIOCOUTQ); 0 where the kernel cannot say.
    pub fn unsent_bytes(&self) -> u64 {
        let mut bytes: libc::c_int = 0;
        // SAFETY: TIOCOUTQ (SIOCOUTQ for sockets) writes one c_int.
        let result = unsafe { libc::ioctl(self.stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
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
        let socket = factory.connect(address)?;
        reactor.add(socket.as_fd(), 1)?;
        reactor.wait(None, &mut Vec::new())?;
        socket.connected().map(|()| socket)
    }

    #[test]
    fn connects_from_the_source_addresses_asked_for_in_turn() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sources = [[127, 0, 0, 9].into(), [127, 0, 0, 7].into()];
        let mut factory = SocketFactory::new(sources.into(), true);
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
    fn connects_over_ipv6() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else {
            return eprintln!("skipped: this machine has no IPv6 loopback");
        };
        let own = listener.local_addr().unwrap();
        connect(&mut SocketFactory::default(), own).unwrap();
        connect(&mut SocketFactory::new([own.ip()].into(), false), own).unwrap();
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
