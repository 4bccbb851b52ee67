//! The socket that accepts connections.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Length of the queue of connections that are not accepted yet; the kernel may allow fewer.
const BACKLOG: libc::c_int = 4_096;

/// A non-blocking listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
}

/// Result of an attempt to accept a connection.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A connection.
    Stream(TcpStream),
    /// No connection is waiting.
    Nobody,
    /// No descriptor or memory is left: try again later, the waiting connections stay in the queue.
    Exhausted,
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Listener> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        // A whole fleet may connect at once; the standard library sets a backlog of 128.
        // SAFETY: a plain system call on a descriptor that is open.
        if unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Listener { socket })
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn descriptor(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }

    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        match self.socket.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Stream(stream))
            }
            Err(error) => match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::WouldBlock, _) => Ok(Accepted::Nobody),
                // The connection ended before it was accepted, or a signal arrived: try again at the next wake-up.
                (io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted, _) => Ok(Accepted::Nobody),
                (_, Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)) => Ok(Accepted::Exhausted),
                _ => Err(error),
            },
        }
    }
}
