//! TUN interfaces: what a namespace sends is read from a descriptor, what is written there the namespace receives.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::error::LinkError;

/// The device that makes them.
pub const DEVICE: &str = "/dev/net/tun";

/// Makes the interface `name` in the calling thread's namespace; it goes with the descriptor. Each read and each write
/// is one IP packet without anything before it. Reads and writes don't block.
pub fn open(name: &str) -> Result<File, LinkError> {
    let file = device().map_err(|error| LinkError::refused(format!("open `{DEVICE}`"), error))?;
    attach(&file, name).map_err(|error| LinkError::refused(format!("make the interface `{name}`"), error))?;
    Ok(file)
}

/// Can an interface be made? Allocates nothing, so that a child process may call it before it runs its program.
pub fn try_open() -> io::Result<()> {
    attach(&device()?, "probe0")
}

fn device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(DEVICE)
}

fn attach(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (target, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is live and initialised.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
