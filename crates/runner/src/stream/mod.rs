//! Progress and events of runs, as lines of JSON for programs: [`StreamEvent`] is a line, [`EventStream`] writes lines,
//! and [`EventStream::observer`] is a [`RunObserver`](crate::RunObserver) that writes a line once a second.

mod event;
mod observer;
mod telling;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pubmark_protocol::clock;
use pubmark_record::plain::masked;

pub use event::{
    Begins, Counted, Ends, Failed, FaultWord, Interval, Latencies, LatencyBuckets, PhaseWord, Progress, RunBegins,
    STREAM_VERSION, StreamEvent, TrialBegins, Usage, WindowLatencies, latency_edges_ns,
};
pub use observer::StreamObserver;

/// Writer of lines. Clones write to the same destination.
#[derive(Clone)]
pub struct EventStream {
    shared: Arc<Shared>,
}

/// Receives each event as well, on the thread that writes it.
pub type Listener = Box<dyn Fn(&StreamEvent) + Send + Sync>;

struct Shared {
    began_ns: u64,
    out: Mutex<Out>,
    listener: Option<Listener>,
}

struct Out {
    to: Option<Box<dyn Write + Send>>,
    /// The error that ended the stream.
    failed: Option<io::Error>,
}

impl EventStream {
    /// Writes lines to `to`, each flushed; times are counted from now.
    pub fn to(to: Box<dyn Write + Send>) -> EventStream {
        EventStream::new(Some(to), None)
    }

    /// As [`EventStream::to`], with a listener; without `to`, only the listener receives events.
    pub fn new(to: Option<Box<dyn Write + Send>>, listener: Option<Listener>) -> EventStream {
        let out = Mutex::new(Out { to, failed: None });
        EventStream { shared: Arc::new(Shared { began_ns: clock::monotonic_ns(), out, listener }) }
    }

    /// Writes a line. A run continues if the reader has closed the pipe or the disk is full: the first error ends the
    /// stream, and [`EventStream::failure`] returns it.
    pub fn write(&self, event: &StreamEvent) {
        if let Some(listener) = &self.shared.listener {
            listener(event);
        }
        let mut out = self.shared.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Out { to: Some(to), failed } = &mut *out else { return };
        if failed.is_some() {
            return;
        }
        // The line may be for a terminal, and texts of systems and nodes are in it: as all output, it has no control characters, of which
        // JSON leaves some. It means the same for a program.
        let mut line = masked(&serde_json::to_string(event).expect("an event is plain JSON")).into_owned();
        line.push('\n');
        if let Err(error) = to.write_all(line.as_bytes()).and_then(|()| to.flush()) {
            *failed = Some(error);
        }
    }

    /// The error since which lines are missing, if there was one.
    pub fn failure(&self) -> Option<String> {
        let out = self.shared.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.failed.as_ref().map(ToString::to_string)
    }

    /// Seconds since the stream began.
    pub fn now_s(&self) -> f64 {
        rounded(clock::monotonic_ns().saturating_sub(self.shared.began_ns) as f64 / 1e9)
    }

    /// An observer that writes the progress and events of one run.
    pub fn observer(&self) -> StreamObserver {
        StreamObserver::new(self.clone())
    }
}

/// Milliseconds are precise enough for progress.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// The JSON Schema of a line, indented, ending with a line feed.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(StreamEvent)).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What was written, for the test.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_text_of_a_peer_reaches_a_terminal_as_a_command() {
        let text = "\u{1b}[2J\u{7f}\u{9b}31m\u{202e}abc\u{2066}\u{2028}\n";
        let written = Written::default();
        EventStream::to(Box::new(written.clone())).write(&StreamEvent::Note { t_s: 0.0, text: text.to_owned() });
        let line = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(line.contains("\\u001b[2J\\u007f\\u009b31m\\u202eabc\\u2066\\u2028"), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.lines().count(), 1, "an event is a line");
        assert_eq!(read["text"], text, "it means the same");
    }

    #[test]
    fn the_first_failure_ends_the_stream_and_is_reported() {
        let stream = EventStream::to(Box::new(Full));
        assert_eq!(stream.failure(), None);
        (0..2).for_each(|_| stream.write(&StreamEvent::Note { t_s: 0.0, text: "x".to_owned() }));
        assert!(stream.failure().unwrap().contains("space"), "{:?}", stream.failure());
    }
}
