//! Measures the capacity of this machine's loopback interface: half a second of large writes, half a second of small
//! ones.
//!
//! The result is an upper bound for any system on this machine, because every broker has to copy bytes. Where it is
//! printed, it is described as an upper bound.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use pubmark_protocol::clock;

/// Length of each half.
const HALF: Duration = Duration::from_millis(500);
const LARGE_BYTES: usize = 64 * 1024;
const SMALL_BYTES: usize = 100;
/// Ports tried, below the range from which the kernel assigns ports.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Throughput of the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Bytes per second in writes of 64 KiB, on one connection.
    pub bytes_per_s: f64,
    /// Writes of 100 B per second, on one connection, with one system call per write.
    pub messages_per_s: f64,
}

/// Measures for one second.
pub fn calibrate() -> io::Result<Calibration> {
    let (bytes, seconds) = pump(LARGE_BYTES)?;
    let (small_bytes, small_seconds) = pump(SMALL_BYTES)?;
    Ok(Calibration {
        bytes_per_s: bytes as f64 / seconds,
        messages_per_s: small_bytes as f64 / SMALL_BYTES as f64 / small_seconds,
    })
}

/// Writes pieces of a size for half a second to a thread that reads them. Returns the bytes that arrived and the time
/// that it took.
fn pump(piece_bytes: usize) -> io::Result<(u64, f64)> {
    let listener = listen()?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    sender.set_nodelay(true)?;
    sender.set_write_timeout(Some(HALF))?;
    let reader = thread::spawn(move || -> io::Result<u64> {
        let mut buffer = vec![0; LARGE_BYTES];
        let mut bytes = 0;
        loop {
            match receiver.read(&mut buffer)? {
                0 => return Ok(bytes),
                count => bytes += count as u64,
            }
        }
    });
    let piece = vec![0x5a; piece_bytes];
    let began_ns = clock::monotonic_ns();
    let end_ns = began_ns + HALF.as_nanos() as u64;
    while clock::monotonic_ns() < end_ns {
        sender.write_all(&piece)?;
    }
    drop(sender);
    let bytes = reader.join().map_err(|_| io::Error::other("the reading thread ended without a result"))??;
    Ok((bytes, (clock::monotonic_ns() - began_ns) as f64 / 1e9))
}

fn listen() -> io::Result<TcpListener> {
    let first = PORTS.start + (std::process::id() % u32::from(PORTS.end - PORTS.start)) as u16;
    let mut failure = io::Error::other("no port to listen on");
    for port in (first..PORTS.end).chain(PORTS.start..first) {
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loopback_carries_something() {
        let found = super::calibrate().expect("loopback works");
        assert!(found.bytes_per_s > 1e6 && found.messages_per_s > 1e3, "{found:?}");
    }
}
