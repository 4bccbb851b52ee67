//! Progress of the transfer of a pod's results: the process that sends them writes the number of sent bytes to a file, and the
//! one that keeps the pod alive reads it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// File with the number of bytes that were sent.
const SENT: &str = "sent";
/// Bytes between two updates of the file.
const UPDATE_BYTES: u64 = 1 << 20;

/// A writer that reports how many bytes it has written.
pub struct Reported<W> {
    out: W,
    file: PathBuf,
    sent: u64,
    reported: u64,
}

impl<W: Write> Reported<W> {
    /// A writer to `out`, which reports in this folder.
    pub fn new(out: W, folder: &Path) -> Reported<W> {
        Reported { out, file: folder.join(SENT), sent: 0, reported: 0 }
    }

    fn report(&mut self) {
        self.reported = self.sent;
        // Without the file, the other process only waits shorter: the results are sent all the same.
        let _ = fs::write(&self.file, self.sent.to_string());
    }
}

impl<W: Write> Write for Reported<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.sent += count as u64;
        if self.sent - self.reported >= UPDATE_BYTES {
            self.report();
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.report();
        Ok(())
    }
}

/// A wait for the end of a transfer, as long as it makes progress.
pub struct Wait {
    file: PathBuf,
    limit: Duration,
    sent: String,
    progress_at: Instant,
}

impl Wait {
    /// A wait that begins now. It may last `limit` after each progress that is reported in this folder.
    pub fn new(folder: &Path, limit: Duration, now: Instant) -> Wait {
        Wait { file: folder.join(SENT), limit, sent: String::new(), progress_at: now }
    }

    /// Whether nothing was sent for the whole limit.
    pub fn is_over(&mut self, now: Instant) -> bool {
        // Before the transfer begins there is no file.
        let sent = fs::read_to_string(&self.file).unwrap_or_default();
        if sent != self.sent {
            (self.sent, self.progress_at) = (sent, now);
        }
        now.saturating_duration_since(self.progress_at) >= self.limit
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::archive::tests::Folder;

    #[test]
    fn a_wait_counts_from_the_last_bytes_that_were_sent() {
        let folder = Folder::new();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut wait = Wait::new(&folder.0, Duration::from_secs(600), began);
        assert!(!wait.is_over(at(599)));
        let mut out = Reported::new(io::sink(), &folder.0);
        out.write_all(&vec![0_u8; UPDATE_BYTES as usize]).unwrap();
        assert!(!wait.is_over(at(601)));
        assert!(!wait.is_over(at(1200)));
        // The last bytes do not fill a step.
        out.write_all(b"end").unwrap();
        out.flush().unwrap();
        assert!(!wait.is_over(at(1201)));
        assert!(wait.is_over(at(1801)));
    }

    #[test]
    fn a_wait_without_a_transfer_ends_at_its_limit() {
        let folder = Folder::new();
        let began = Instant::now();
        let mut wait = Wait::new(&folder.0, Duration::from_secs(600), began);
        assert!(wait.is_over(began + Duration::from_secs(600)));
    }
}
