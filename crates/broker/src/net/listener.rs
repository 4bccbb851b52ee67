//! The socket that accepts connections.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use super::poll::Poll;

/// Length of the queue of connections that are not accepted yet; the kernel may allow fewer.
const BACKLOG: libc::c_int = 4_096;

/// A non-blocking listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    /// It is not polled: no descriptor was left.
    is_paused: bool,
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
        Ok(Listener { socket, is_paused: false })
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
                // A connection whose options cannot be set has ended already.
                let is_ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_ok();
                Ok(if is_ready { Accepted::Stream(stream) } else { Accepted::Nobody })
            }
            Err(error) => without_stream(error),
        }
    }

    /// Stops polling, because otherwise the kernel would wake us without end for a connection that cannot be accepted now.
    pub(crate) fn pause(&mut self, poll: &Poll) -> io::Result<()> {
        if !self.is_paused {
            poll.remove(self.descriptor())?;
            self.is_paused = true;
        }
        Ok(())
    }

    /// Polls again, if it was paused. Without memory for that it stays paused until the next attempt.
    pub(crate) fn resume(&mut self, poll: &Poll) {
        if self.is_paused && poll.add_listener(self.descriptor()).is_ok() {
            self.is_paused = false;
        }
    }
}

/// The result of an attempt that failed; an error only if the listener itself does not work any more.
fn without_stream(error: io::Error) -> io::Result<Accepted> {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => Ok(Accepted::Exhausted),
        Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK) | None => Err(error),
        // Nobody is waiting, a signal arrived, or the error is one of the connection, which has left the queue: it was aborted,
        // a firewall refused it, or its network is down (accept(2)). Try again at the next wake-up.
        Some(_) => Ok(Accepted::Nobody),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_of_the_listener_itself_is_one() {
        let of = |number| without_stream(io::Error::from_raw_os_error(number));
        for number in [libc::EAGAIN, libc::EINTR, libc::ECONNABORTED, libc::EPROTO, libc::ENETDOWN, libc::EPERM] {
            assert!(matches!(of(number), Ok(Accepted::Nobody)), "{number}");
        }
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert!(matches!(of(number), Ok(Accepted::Exhausted)), "{number}");
        }
        assert!(of(libc::EBADF).is_err());
    }
}
