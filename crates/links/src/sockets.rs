//! Namespace and counters of sockets.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use pubmark_protocol::congestion;

use crate::error::LinkError;
use crate::namespace::Namespace;

/// linux/sockios.h: opens the namespace of a socket (Linux 4.9). Needs CAP_NET_ADMIN there.
const SIOCGSKNS: libc::c_ulong = 0x894c;

/// The namespace that a socket belongs to, as [`Namespace::inode`] numbers it.
pub fn namespace_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: no pointers are passed; the result is checked.
    let descriptor = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS as _) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and has no other owner.
    let namespace = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(namespace.metadata()?.ino())
}

/// TCP's congestion control of a socket. It decides how a lossy link is used: on the same link of 1 % loss, BBR carried
/// 70 times what CUBIC did.
pub fn congestion_control(socket: BorrowedFd<'_>) -> io::Result<String> {
    congestion::of(socket)
}

/// Chooses a socket's congestion control. One outside of the system's `tcp_allowed_congestion_control` needs
/// CAP_NET_ADMIN.
pub fn set_congestion_control(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    congestion::set(socket, name)
}

/// The congestion control that sockets of a namespace have unless they choose: for the record.
pub fn default_congestion_control(namespace: &Namespace) -> Result<String, LinkError> {
    let what = || format!("read the congestion control of the namespace of `{}`", namespace.name());
    let read = || congestion_control(TcpListener::bind(("127.0.0.1", 0))?.as_fd());
    namespace.enter(read)?.map_err(|error| LinkError::refused(what(), error))
}
