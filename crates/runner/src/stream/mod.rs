//! What runs tell while they go on, as lines of JSON for programs: [`StreamEvent`] is a line, [`EventStream`] writes them, and
//! [`EventStream::observer`] is a [`RunObserver`](crate::RunObserver) that does, once a second.

mod event;
mod observer;
mod telling;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pubmark_protocol::clock;

pub use event::{
    Begins, Counted, Ends, Failed, FaultWord, Interval, Latencies, LatencyBuckets, PhaseWord, Progress, RunBegins,
    STREAM_VERSION, StreamEvent, TrialBegins, Usage, WindowLatencies, latency_edges_ns,
};
pub use observer::StreamObserver;

/// Where lines go. Clones write to the same place.
#[derive(Clone)]
pub struct EventStream {
    shared: Arc<Shared>,
}

/// Is told each event as well, on the thread that writes it.
pub type Listener = Box<dyn Fn(&StreamEvent) + Send + Sync>;

struct Shared {
    began_ns: u64,
    out: Mutex<Out>,
    listener: Option<Listener>,
}

struct Out {
    to: Option<Box<dyn Write + Send>>,
    /// Why nothing is written any more.
    failed: Option<io::Error>,
}

impl EventStream {
    /// Lines go there, each flushed; times count from now.
    pub fn to(to: Box<dyn Write + Send>) -> EventStream {
        EventStream::new(Some(to), None)
    }

    /// The same with a listener; without `to`, the listener is all.
    pub fn new(to: Option<Box<dyn Write + Send>>, listener: Option<Listener>) -> EventStream {
        let out = Mutex::new(Out { to, failed: None });
        EventStream { shared: Arc::new(Shared { began_ns: clock::monotonic_ns(), out, listener }) }
    }

    /// Writes a line. A run goes on where nobody reads or the disk is full: the first failure ends the stream, and
    /// [`EventStream::failure`] tells it.
    pub fn write(&self, event: &StreamEvent) {
        if let Some(listener) = &self.shared.listener {
            listener(event);
        }
        let mut out = self.shared.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Out { to: Some(to), failed } = &mut *out else { return };
        if failed.is_some() {
            return;
        }
        let mut line = serde_json::to_vec(event).expect("an event is plain JSON");
        line.push(b'\n');
        if let Err(error) = to.write_all(&line).and_then(|()| to.flush()) {
            *failed = Some(error);
        }
    }

    /// Why lines are missing from some moment on, if they are.
    pub fn failure(&self) -> Option<String> {
        let out = self.shared.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.failed.as_ref().map(ToString::to_string)
    }

    /// Seconds since the stream began.
    pub fn now_s(&self) -> f64 {
        rounded(clock::monotonic_ns().saturating_sub(self.shared.began_ns) as f64 / 1e9)
    }

    /// Writes what one run tells.
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

    #[test]
    fn the_first_failure_ends_the_stream_and_is_told() {
        let stream = EventStream::to(Box::new(Full));
        assert_eq!(stream.failure(), None);
        (0..2).for_each(|_| stream.write(&StreamEvent::Note { t_s: 0.0, text: "x".to_owned() }));
        assert!(stream.failure().unwrap().contains("space"), "{:?}", stream.failure());
    }
}
