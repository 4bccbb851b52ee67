//! TCP congestion control: the kernel's algorithm that a socket sends with.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libc::socklen_t;

use crate::socket::SocketFactory;

/// Longest name, with its terminating zero (TCP_CA_NAME_MAX of linux/tcp.h).
const NAME_BYTES: usize = 16;

/// Why an algorithm cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// The kernel has none of that name.
    #[error("this kernel has no congestion control `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// It exists, but not for unprivileged users.
    #[error("congestion control `{name}` is for administrators on this machine")]
    NotAllowed {
        /// The name.
        name: String,
    },
    /// The test failed.
    #[error("failed to try congestion control `{name}`")]
    Untried {
        /// The name.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Available algorithms, as the kernel lists them; a module that is not loaded is not among them. Empty if the list cannot be
/// read.
pub fn available() -> Vec<String> {
    listed("/proc/sys/net/ipv4/tcp_available_congestion_control")
}

/// Those that unprivileged users may use.
pub fn allowed() -> Vec<String> {
    listed("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
}

fn listed(path: &str) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Checks whether it can be used, on a temporary socket.
///
/// # Errors
/// There is none of that name, or it is not allowed.
pub fn check(name: &str) -> Result<(), CongestionError> {
    let of = || name.to_owned();
    let socket = SocketFactory::default().make(None, libc::AF_INET, libc::SOCK_STREAM);
    let tried = socket.and_then(|socket| set(socket.as_fd(), name));
    tried.map_err(|source| match source.raw_os_error() {
        Some(libc::ENOENT | libc::EINVAL) => CongestionError::Unknown { name: of() },
        Some(libc::EPERM) => CongestionError::NotAllowed { name: of() },
        _ => CongestionError::Untried { name: of(), source },
    })
}

/// Makes a socket send with it.
///
/// # Errors
/// The kernel's error: ENOENT if there is none of that name, EPERM if it is not allowed.
pub fn set(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let length = name.len() as socklen_t;
    // SAFETY: the value is `length` bytes of a live string.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The algorithm of a socket.
///
/// # Errors
/// The kernel's error.
pub fn of(socket: BorrowedFd<'_>) -> io::Result<String> {
    let mut name = [0_u8; NAME_BYTES];
    let mut length = NAME_BYTES as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, those of a live array.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn each_algorithm_that_is_for_everybody_can_be_set_and_is_read_back() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!allowed().is_empty());
        for name in allowed() {
            check(&name).unwrap();
            set(socket.as_fd(), &name).unwrap();
            assert_eq!(of(socket.as_fd()).unwrap(), name);
            assert!(available().contains(&name), "{name}");
        }
    }

    #[test]
    fn an_algorithm_that_the_kernel_lacks_is_reported() {
        for name in ["none-such", "a-name-longer-than-the-kernel-takes"] {
            let error = check(name).unwrap_err();
            assert!(error.to_string().contains(name) && matches!(error, CongestionError::Unknown { .. }), "{error:?}");
        }
    }
}
