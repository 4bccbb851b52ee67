//! Lines of JSON between the coordinator of a run and a process on a node that has no clients.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest line, bytes: four samples a second of two days.
const LONGEST: u64 = 256 << 20;
/// Time between two looks at whether somebody wants to stop waiting.
const LOOK: Duration = Duration::from_millis(100);

/// One end.
#[derive(Debug)]
pub struct Channel {
    stream: BufReader<UnixStream>,
}

impl Channel {
    /// Over a stream.
    pub fn new(stream: UnixStream) -> Channel {
        Channel { stream: BufReader::new(stream) }
    }

    /// Says something.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn say(&self, said: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(said)?;
        line.push(b'\n');
        self.stream.get_ref().write_all(&line)
    }

    /// Waits for what the other end says; `None` if it closes instead.
    ///
    /// # Errors
    /// It says something else, or more than there may be.
    pub fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.stream.get_ref().set_read_timeout(None)?;
        self.read(|| false)
    }

    /// The same, for at most so long, or until `stop` is set.
    ///
    /// # Errors
    /// As [`Channel::hear`]; it is gone, or says nothing in time.
    pub fn hear_within<T: DeserializeOwned>(&mut self, limit: Duration, stop: &AtomicBool) -> io::Result<T> {
        self.stream.get_ref().set_read_timeout(Some(LOOK))?;
        let until = Instant::now() + limit;
        let heard = self.read(|| stop.load(Relaxed) || Instant::now() >= until)?;
        heard.ok_or_else(|| io::Error::other("it is gone"))
    }

    /// Reads a line, until it is `over`.
    fn read<T: DeserializeOwned>(&mut self, over: impl Fn() -> bool) -> io::Result<Option<T>> {
        let mut line = vec![];
        loop {
            match (&mut self.stream).take(LONGEST - line.len() as u64).read_until(b'\n', &mut line) {
                Ok(_) if line.is_empty() => return Ok(None),
                Ok(_) if line.ends_with(b"\n") => return Ok(Some(serde_json::from_slice(&line)?)),
                Ok(_) => return Err(io::Error::other(format!("it said {} bytes and no end", line.len()))),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if over() {
                        return Err(io::Error::other("it did not answer in time"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_and_silence_and_rubbish_are_errors() {
        let (one, other) = UnixStream::pair().unwrap();
        let (near, mut far) = (Channel::new(one), Channel::new(other));
        let stop = AtomicBool::new(false);
        near.say(&(7, "seven")).unwrap();
        assert_eq!(far.hear::<(u8, String)>().unwrap(), Some((7, "seven".to_owned())));
        let silent = far.hear_within::<u8>(Duration::from_millis(10), &stop).unwrap_err();
        assert_eq!(silent.to_string(), "it did not answer in time");
        let mut stream = near.stream.get_ref();
        stream.write_all(b"{\n").unwrap();
        assert!(far.hear::<u8>().is_err());
        drop(near);
        assert_eq!(far.hear::<u8>().unwrap(), None);
        assert_eq!(far.hear_within::<u8>(Duration::ZERO, &stop).unwrap_err().to_string(), "it is gone");
    }
}
