//! When the bytes of a write are in the socket at the other end of a loopback connection.
//!
//! A write on the loopback puts its packets into the receive queue of the processor that it runs on. The kernel usually
//! empties this queue before the call returns, but on a busy processor it may leave packets there until the next interrupt. The
//! queue is first in, first out: a datagram that the same processor sends afterwards, and that has arrived, shows that the
//! packets have arrived, too.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// Longest wait for one datagram; then another one is sent.
const WAIT: Duration = Duration::from_millis(20);
/// Most datagrams of one check.
const DATAGRAMS: u32 = 100;

/// A datagram socket that is connected to itself.
#[derive(Debug)]
pub(super) struct ArrivalCheck {
    socket: UdpSocket,
    sent: u64,
    failure: Option<io::Error>,
}

/// The processor that the calling thread runs on.
pub(super) fn processor() -> i32 {
    // SAFETY: no arguments; it fails on kernels without the call only, and then all numbers are the same -1.
    unsafe { libc::sched_getcpu() }
}

impl ArrivalCheck {
    pub(super) fn open() -> io::Result<ArrivalCheck> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_read_timeout(Some(WAIT))?;
        Ok(ArrivalCheck { socket, sent: 0, failure: None })
    }

    /// Returns when all packets that this thread sent on a processor have arrived, or after a failure.
    pub(super) fn wait(&mut self, processor_before: i32) {
        if let Err(error) = self.try_to_wait(processor_before) {
            self.failure.get_or_insert(error);
        }
    }

    /// The first failure, if there was one; `TimedOut` if no datagram arrived.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    fn try_to_wait(&mut self, processor_before: i32) -> io::Result<()> {
        self.pass_a_datagram()?;
        if processor() == processor_before {
            return Ok(());
        }
        // The thread has moved: the datagram may have gone through another queue.
        let before = affinity()?;
        set_affinity(&only(processor_before))?;
        let passed = self.pass_a_datagram();
        set_affinity(&before)?;
        passed
    }

    fn pass_a_datagram(&mut self) -> io::Result<()> {
        for _ in 0..DATAGRAMS {
            self.sent += 1;
            self.socket.send(&self.sent.to_ne_bytes())?;
            let mut number = [0; 8];
            loop {
                match self.socket.recv(&mut number) {
                    Ok(_) if u64::from_ne_bytes(number) == self.sent => return Ok(()),
                    // One that was sent again because it was late.
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

fn only(processor: i32) -> libc::cpu_set_t {
    // SAFETY: a set of bits, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    if let Ok(processor) = usize::try_from(processor) {
        // SAFETY: the call ignores numbers beyond the set.
        unsafe { libc::CPU_SET(processor, &mut set) };
    }
    set
}

fn affinity() -> io::Result<libc::cpu_set_t> {
    let mut set = only(-1);
    // SAFETY: the set is as long as stated.
    match unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) } {
        0 => Ok(set),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set is as long as stated.
    match unsafe { libc::sched_setaffinity(0, mem::size_of_val(set), set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_was_written_before_is_there_after_the_check() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_nodelay(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let mut check = ArrivalCheck::open().unwrap();
        let allowed = affinity().unwrap();
        for number in 1..=20 {
            let processor_before = processor();
            near.write_all(b"x").unwrap();
            check.wait(processor_before);
            check.check().unwrap();
            let mut seen = [0; 200];
            assert_eq!(far.peek(&mut seen).unwrap(), number);
        }
        // Where the thread may run has not changed.
        // SAFETY: two initialized sets.
        assert!(unsafe { libc::CPU_EQUAL(&allowed, &affinity().unwrap()) });
    }
}
