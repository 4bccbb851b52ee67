//! Clients that were not led on to the system.

use std::io;

/// Errors with which the system, the network or a firewall on the way to it refuses a connection (connect(2)).
const OF_THE_SYSTEM: [i32; 9] = [
    libc::ECONNREFUSED,
    libc::ECONNRESET,
    libc::ENETUNREACH,
    libc::EHOSTUNREACH,
    libc::ENETDOWN,
    libc::EHOSTDOWN,
    libc::ETIMEDOUT,
    libc::EPERM,
    libc::EACCES,
];

/// Clients without a way to the system, by who refused them. The two have different causes, and only one is a property of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unserved {
    /// The system, or the network on the way to it.
    pub refused: u64,
    /// The relay itself: this machine had no descriptor, port or memory left.
    pub exhausted: u64,
}

/// Whether this machine lacked something for a client; otherwise the system, or the network on the way to it, refused the client.
pub fn is_exhaustion(error: &io::Error) -> bool {
    error.raw_os_error().is_none_or(|code| !OF_THE_SYSTEM.contains(&code))
}

impl Unserved {
    /// Counts a client, by the error that came when it was to be led on.
    pub fn count(&mut self, error: &io::Error) {
        match is_exhaustion(error) {
            true => self.exhausted += 1,
            false => self.refused += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_no_refusal_of_the_system() {
        let of = |code| {
            let mut unserved = Unserved::default();
            unserved.count(&io::Error::from_raw_os_error(code));
            (unserved.refused, unserved.exhausted)
        };
        for code in OF_THE_SYSTEM {
            assert_eq!(of(code), (1, 0), "{code}");
        }
        for code in [libc::EMFILE, libc::ENFILE, libc::EADDRNOTAVAIL, libc::ENOBUFS, libc::ENOMEM] {
            assert_eq!(of(code), (0, 1), "{code}");
        }
    }
}
