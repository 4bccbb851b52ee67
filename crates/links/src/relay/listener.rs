//! Sockets that clients connect to, and pauses of those whose clients this machine has no descriptor for.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// A socket that clients connect to.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// The server that it leads to.
    pub to: SocketAddr,
    /// Whether that is the system under test.
    pub is_system: bool,
    /// The client that is next in the queue could not be accepted, and is counted as such.
    pub is_stuck: bool,
}

/// How long a listener is not watched whose next client can neither be accepted nor refused, ns: epoll would name it again at once, and
/// the loop would use a whole CPU for nothing.
const PAUSE_NS: u64 = 10_000_000;

/// Numbers of listeners that are not watched, each with the time until then, ns.
#[derive(Debug, Default)]
pub struct Pauses(Vec<(usize, u64)>);

impl Pauses {
    /// A listener pauses from `now_ns` on.
    pub fn begin(&mut self, listener: usize, now_ns: u64) {
        self.0.push((listener, now_ns + PAUSE_NS));
    }

    /// Listeners whose pause is over.
    pub fn take_over(&mut self, now_ns: u64) -> Vec<usize> {
        self.0.extract_if(.., |(_, until_ns)| *until_ns <= now_ns).map(|(listener, _)| listener).collect()
    }

    /// How long until the next pause is over; `None` if no listener pauses.
    pub fn left(&self, now_ns: u64) -> Option<Duration> {
        let until_ns = self.0.iter().map(|(_, until_ns)| *until_ns).min()?;
        Some(Duration::from_nanos(until_ns.saturating_sub(now_ns)))
    }

    /// Nothing is listened to any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_over_after_10_ms_and_once() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.left(0), None);
        pauses.begin(3, 1_000);
        pauses.begin(5, 2_000);
        assert_eq!(pauses.left(1_000), Some(Duration::from_millis(10)));
        assert!(pauses.take_over(10_000_999).is_empty());
        assert_eq!(pauses.take_over(10_001_000), vec![3]);
        assert_eq!(pauses.left(20_000_000), Some(Duration::ZERO));
        assert_eq!(pauses.take_over(20_000_000), vec![5]);
        assert_eq!(pauses.left(20_000_000), None);
    }
}
