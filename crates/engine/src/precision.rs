//! How exactly latency can be measured on this machine in its present state: a self-test of one second.
//!
//! The interval of a message is as wide as its lateness in sending and in reading. Here one thread sends a message each
//! millisecond to another one, with no system between them: the whole time from the due time to the read is caused by
//! pubmark.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use pubmark_protocol::clock;

/// Messages sent, one each [`STEP`].
const MESSAGES: u64 = 1_000;
/// Interval between two messages.
const STEP: Duration = Duration::from_millis(1);
/// Longest wait for a message that was sent.
const LIMIT: Duration = Duration::from_secs(10);

/// Widths of the intervals of messages, µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Their median.
    pub p50_us: f64,
    /// Their 99th percentile.
    pub p99_us: f64,
}

/// Measures for one second.
///
/// # Errors
/// A thread or the socket between the two threads cannot be created.
pub fn measure() -> io::Result<Precision> {
    let (mut sender, mut receiver) = UnixStream::pair()?;
    receiver.set_read_timeout(Some(LIMIT))?;
    let reader = thread::Builder::new().name("precision".to_owned()).spawn(move || -> io::Result<Vec<u64>> {
        let mut widths_ns = Vec::with_capacity(MESSAGES as usize);
        let mut due_ns = [0; 8];
        while widths_ns.len() < MESSAGES as usize {
            receiver.read_exact(&mut due_ns)?;
            widths_ns.push(clock::monotonic_ns().saturating_sub(u64::from_le_bytes(due_ns)));
        }
        Ok(widths_ns)
    })?;
    let sent = send(&mut sender);
    drop(sender);
    let read = reader.join().map_err(|_| io::Error::other("the reading thread ended"))?;
    sent?;
    let mut widths_ns = read?;
    widths_ns.sort_unstable();
    let at = |share: f64| widths_ns[((widths_ns.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    Ok(Precision { p50_us: at(0.5), p99_us: at(0.99) })
}

fn send(sender: &mut UnixStream) -> io::Result<()> {
    // The default slack of 50 µs would be added to every wait; timers of a run have no slack. SAFETY: all arguments are
    // integers; the call sets the slack of the calling thread, and 0 restores its default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    let began_ns = clock::monotonic_ns();
    for number in 1..=MESSAGES {
        let due_ns = began_ns + number * STEP.as_nanos() as u64;
        thread::sleep(Duration::from_nanos(due_ns.saturating_sub(clock::monotonic_ns())));
        sender.write_all(&due_ns.to_le_bytes())?;
    }
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0, 0, 0, 0) };
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_measurement_lasts_a_second_and_finds_lateness() {
        let began_ns = clock::monotonic_ns();
        let found = measure().unwrap();
        assert!(clock::monotonic_ns() - began_ns >= 1_000_000_000);
        assert!(0.0 < found.p50_us && found.p50_us <= found.p99_us, "{found:?}");
    }
}
