//! Datagrams that the kernel dropped in UDP sockets of client libraries, which no adapter can count.

use std::collections::BTreeMap;

use pubmark_protocol::datagram;

/// The drops of each UDP socket of a client library in this process when the measured window began.
#[derive(Debug)]
pub(crate) struct SocketDrops(BTreeMap<u64, u64>);

impl SocketDrops {
    /// The window begins.
    pub fn begin() -> SocketDrops {
        SocketDrops(datagram::overflowed_in_libraries())
    }

    /// Datagrams dropped since then, in sockets that are still open.
    pub fn since(&self) -> u64 {
        between(&self.0, &datagram::overflowed_in_libraries())
    }
}

/// Drops between two readings. A socket that was opened meanwhile counts from its start; one that was closed does not
/// count, and a new one with its number counts at most what it has.
fn between(before: &BTreeMap<u64, u64>, after: &BTreeMap<u64, u64>) -> u64 {
    let new = |(socket, drops): (&u64, &u64)| drops.saturating_sub(before.get(socket).copied().unwrap_or(0));
    after.iter().map(new).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_come_and_go_take_nothing_from_the_drops_of_others() {
        let before = [(1, 5), (2, 700), (3, 40)].into();
        // The first one is closed, the number of the third was given to another socket, the fourth is new.
        let after = [(2, 703), (3, 9), (4, 8)].into();
        assert_eq!((between(&before, &after), between(&before, &before)), (3 + 8, 0));
        assert_eq!(between(&before, &BTreeMap::new()), 0);
    }
}
