//! Messages as lines of JSON between the coordinator of a run and a process on a node that has no clients.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest line, bytes: several times the size of a system's series of samples, which has its own limit.
const LONGEST: usize = 4 << 20;
/// Longest wait until the other end accepts a message.
const SAY_LIMIT: Duration = Duration::from_secs(10);
/// Time between two checks of whether the wait was cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// One end of the channel.
#[derive(Debug)]
pub struct Channel {
    stream: BufReader<UnixStream>,
}

impl Channel {
    /// A channel over a stream.
    pub fn new(stream: UnixStream) -> Channel {
        Channel { stream: BufReader::new(stream) }
    }

    /// The same end for another thread, which may only send, while this one does not.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn for_sending(&self) -> io::Result<Channel> {
        self.stream.get_ref().try_clone().map(Channel::new)
    }

    /// Has the other end sent something that was not received yet, or closed the channel? Does not wait.
    pub fn is_readable(&self) -> bool {
        let mut look = libc::pollfd { fd: self.stream.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `look` lives through the call, which has one entry to look at and does not wait.
        !self.stream.buffer().is_empty() || unsafe { libc::poll(&mut look, 1, 0) } == 1
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The other end closed the channel.
    pub fn send(&self, said: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(said)?;
        line.push(b'\n');
        self.stream.get_ref().set_write_timeout(Some(SAY_LIMIT))?;
        self.stream.get_ref().write_all(&line)
    }

    /// Waits for a message from the other end; `None` if it closes the channel.
    ///
    /// # Errors
    /// The message has another form, or is too long.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.stream.get_ref().set_read_timeout(None)?;
        self.read(|| Ok(()))
    }

    /// The same with a time limit, and until `stop` is set.
    ///
    /// # Errors
    /// As [`Channel::receive`]; the other end closed the channel, or sends nothing in time.
    pub fn receive_within<T: DeserializeOwned>(&mut self, limit: Duration, stop: &AtomicBool) -> io::Result<T> {
        self.stream.get_ref().set_read_timeout(Some(LOOK))?;
        let until = Instant::now() + limit;
        let over = || match (stop.load(Relaxed), Instant::now() >= until) {
            (true, _) => Err(io::ErrorKind::Interrupted.into()),
            (false, true) => Err(io::Error::other("it did not respond in time")),
            (false, false) => Ok(()),
        };
        self.read(over)?.ok_or_else(|| io::Error::other("it has ended"))
    }

    /// Reads a line. `over` is called after each read, however small, and its error ends the reading.
    fn read<T: DeserializeOwned>(&mut self, over: impl Fn() -> io::Result<()>) -> io::Result<Option<T>> {
        let mut line = vec![];
        loop {
            let taken = match self.stream.fill_buf() {
                Ok([]) if line.is_empty() => return Ok(None),
                Ok([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(piece) => {
                    let end = piece.iter().position(|byte| *byte == b'\n');
                    let taken = end.map_or(piece.len(), |end| end + 1);
                    line.extend_from_slice(&piece[..taken]);
                    taken
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
            };
            self.stream.consume(taken);
            if line.ends_with(b"\n") {
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if line.len() > LONGEST {
                return Err(io::Error::other(format!("it sent {} bytes without an end of line", line.len())));
            }
            over()?;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_and_silence_and_rubbish_are_errors() {
        let (one, other) = UnixStream::pair().unwrap();
        let (near, mut far) = (Channel::new(one), Channel::new(other));
        let stop = AtomicBool::new(false);
        assert!(!far.is_readable());
        near.send(&(7, "seven")).unwrap();
        assert!(far.is_readable());
        assert_eq!(far.receive::<(u8, String)>().unwrap(), Some((7, "seven".to_owned())));
        let silent = far.receive_within::<u8>(Duration::from_millis(10), &stop).unwrap_err();
        assert_eq!(silent.to_string(), "it did not respond in time");
        let mut stream = near.stream.get_ref();
        stream.write_all(b"{\n").unwrap();
        assert!(far.receive::<u8>().is_err());
        // A peer that sends a few bytes now and then, and never a whole line.
        let (one, other) = UnixStream::pair().unwrap();
        let (mut slow, mut waits) = (one, Channel::new(other));
        let talks = std::thread::spawn(move || {
            (0..50).for_each(|_| {
                let _ = slow.write_all(b" ");
                std::thread::sleep(Duration::from_millis(5));
            })
        });
        let late = waits.receive_within::<u8>(Duration::from_millis(50), &stop).unwrap_err();
        assert_eq!(late.to_string(), "it did not respond in time");
        talks.join().unwrap();
        assert_eq!(waits.receive::<u8>().unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "it broke off");
        stop.store(true, Relaxed);
        assert_eq!(far.receive_within::<u8>(LOOK * 9, &stop).unwrap_err().kind(), io::ErrorKind::Interrupted);
        near.for_sending().unwrap().send(&8).unwrap();
        assert_eq!(far.receive::<u8>().unwrap(), Some(8));
        assert!(!far.is_readable());
        drop(near);
        assert!(far.is_readable(), "it was closed");
        assert_eq!(far.receive::<u8>().unwrap(), None);
        assert_eq!(far.receive_within::<u8>(Duration::ZERO, &stop).unwrap_err().to_string(), "it has ended");
    }
}
