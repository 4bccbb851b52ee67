//! Messages between the relay and its user, each with a socket if needed.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LARGEST_MESSAGE;

/// Buffer for one descriptor among the control messages, aligned as the kernel's headers are.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Two ends of a channel: one is the relay's standard input, the other is for [`super::Relay::new`].
///
/// # Errors
/// The process has no descriptors left.
pub fn pair() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    // SAFETY: space for two descriptors; the result is checked before they become owned.
    let made =
        unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just made and have no other owner.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// Sends a message, with a copy of a descriptor.
pub fn send<M: Serialize>(channel: BorrowedFd<'_>, message: &M, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let text = serde_json::to_vec(message).map_err(io::Error::other)?;
    let mut part = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    let mut control = Control([0; 64]);
    // SAFETY: an all-zero msghdr is a valid one with nothing in it.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        header.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the control buffer is large enough for one descriptor and outlives the call; CMSG_FIRSTHDR points into it.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<libc::c_int>() as libc::c_uint) as _;
            let entry = libc::CMSG_FIRSTHDR(&header);
            (*entry).cmsg_level = libc::SOL_SOCKET;
            (*entry).cmsg_type = libc::SCM_RIGHTS;
            (*entry).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as libc::c_uint) as _;
            libc::CMSG_DATA(entry).cast::<libc::c_int>().write_unaligned(descriptor.as_raw_fd());
        }
    }
    // SAFETY: `header` points to live memory of the lengths given.
    let sent = unsafe { libc::sendmsg(channel.as_raw_fd(), &header, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a message, with its descriptor if it has one; `None` when the other end is closed.
pub fn receive<M: DeserializeOwned>(channel: BorrowedFd<'_>) -> io::Result<Option<(M, Option<OwnedFd>)>> {
    let mut text = vec![0u8; LARGEST_MESSAGE];
    let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    let mut control = Control([0; 64]);
    // SAFETY: an all-zero msghdr is a valid one with nothing in it.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len() as _;
    let bytes = loop {
        // SAFETY: `header` points to live memory of the lengths given.
        let received = unsafe { libc::recvmsg(channel.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(received) {
            Ok(bytes) => break bytes,
            // A signal ends the wait of a socket with a time limit.
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    };
    let descriptor = descriptor_of(&header);
    if bytes == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(&text[..bytes]).map_err(io::Error::other)?;
    Ok(Some((message, descriptor)))
}

/// The descriptor among the control messages of a receipt.
fn descriptor_of(header: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel filled `msg_control` and `msg_controllen`; the CMSG functions stay inside them. A descriptor that came
    // has no other owner.
    unsafe {
        let entry = libc::CMSG_FIRSTHDR(header);
        let is_there = !entry.is_null()
            && (*entry).cmsg_level == libc::SOL_SOCKET
            && (*entry).cmsg_type == libc::SCM_RIGHTS
            && (*entry).cmsg_len as usize >= libc::CMSG_LEN(size_of::<libc::c_int>() as libc::c_uint) as usize;
        is_there.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(entry).cast::<libc::c_int>().read_unaligned()))
    }
}
