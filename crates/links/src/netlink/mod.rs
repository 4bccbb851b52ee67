//! Requests to the kernel's network configuration (rtnetlink, RFC 3549): the few that links need, encoded by hand.

mod interface;
mod message;
mod pair;
mod queue;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub use interface::{InterfaceCounters, Route};
pub use message::Message;
#[cfg(test)]
pub(crate) use message::find;
pub(crate) use queue::fixed_part as queue_part;

use crate::error::LinkError;

/// Bytes of the largest response that is read at once; the kernel's own tools use as much.
const ANSWER_BYTES: usize = 32 * 1024;

/// A socket to the kernel. It talks about the namespace in which it was opened, from whichever thread it is used.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// A socket of the calling thread's namespace.
    pub fn open() -> Result<Netlink, LinkError> {
        // SAFETY: no pointers are passed; the result is checked.
        let descriptor =
            unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
        if descriptor < 0 {
            return Err(LinkError::last("open a socket to the kernel's network configuration"));
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // The kernel returns the reason as text (since Linux 4.12); it responds at once, so a second is a lot.
        let one: libc::c_int = 1;
        let wait = libc::timeval { tv_sec: 1, tv_usec: 0 };
        option(&socket, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, &one);
        option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait);
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sends a request and waits for the kernel's yes or no. `what` is tried, for the error.
    pub fn request(&mut self, what: impl FnOnce() -> String, message: Message) -> Result<(), LinkError> {
        self.exchange(message.acknowledged()).map(drop).map_err(|error| LinkError::refused(what(), error))
    }

    /// Sends a request and returns the body of the one response.
    pub fn query(&mut self, what: impl FnOnce() -> String, message: Message) -> Result<Vec<u8>, LinkError> {
        self.exchange(message).map_err(|error| LinkError::refused(what(), error))
    }

    fn exchange(&mut self, message: Message) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let bytes = message.finish(self.sequence);
        // SAFETY: the buffer is live and of the length given.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = vec![0; ANSWER_BYTES];
        loop {
            // SAFETY: the buffer is live and of the length given.
            let count = unsafe { libc::recv(self.socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
            if count < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            if let Some(result) = message::answer(&answer[..count as usize], self.sequence) {
                return result;
            }
        }
    }
}

/// Sets an option; one that the kernel doesn't know is only a worse message.
fn option<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) {
    // SAFETY: the value is live and of the length given.
    unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), size_of::<T>() as libc::socklen_t)
    };
}
