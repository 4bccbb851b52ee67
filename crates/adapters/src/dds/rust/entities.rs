//! Writers, readers and the discovery of writers, over RustDDS.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::task::{Wake as TaskWake, Waker};

use pubmark_cyclone::entities::Written;
use pubmark_cyclone::qos::History;
use pubmark_cyclone::sample::Sample;
use pubmark_cyclone::signal::Signal;
use pubmark_protocol::clock;
use rustdds::dds::result::{ReadError, WriteError};
use rustdds::no_key::{DataWriter, SimpleDataReader};
use rustdds::{DataWriterStatus, DomainParticipant, StatusEvented, Timestamp};

use super::super::binding::{Discovering, Reading, Wake, Writing};
use super::sample::{Cdr, Encoded};

/// Samples taken in one call.
const SAMPLES: usize = 64;
/// Samples that are looked through in one call for the last of them.
const MOST_OVERWRITTEN: usize = 10_000;
/// Time between two checks for discovered writers: the library reports new ones to an asynchronous task only.
const POLL_INTERVAL_NS: u64 = 20_000_000;

/// A writer.
pub struct RustWriter {
    writer: DataWriter<Encoded, Cdr>,
    /// Readers that match, as far as reported.
    matched: Cell<i32>,
}

impl RustWriter {
    pub(super) fn new(writer: DataWriter<Encoded, Cdr>) -> RustWriter {
        RustWriter { writer, matched: Cell::new(0) }
    }
}

impl Writing for RustWriter {
    fn has_matched(&self) -> bool {
        // The library has no other way to read events, and stores four of them.
        while let Some(status) = self.writer.try_recv_status() {
            if let DataWriterStatus::PublicationMatched { current, .. } = status {
                self.matched.set(current.count());
            }
        }
        self.matched.get() > 0
    }

    fn write(&self, topic: &CStr, payload: &[u8]) -> Result<Written, String> {
        let sample = Encoded::of(topic.to_bytes(), payload)
            .ok_or_else(|| "failed to write a DDS sample: longer than 4 GiB".to_owned())?;
        match self.writer.write(sample, Some(Timestamp::now())) {
            Ok(()) => Ok(Written::Yes),
            Err(WriteError::WouldBlock { .. }) => Ok(Written::Full),
            Err(error) => Err(format!("failed to write a DDS sample: {error}")),
        }
    }

    fn all_acknowledged(&self) -> Result<bool, String> {
        let asked = self.writer.wait_for_acknowledgments(std::time::Duration::ZERO);
        asked.map_err(|error| format!("failed to ask a DDS writer for acknowledgements: {error}"))
    }
}

/// Rings a reader's signal.
struct Bell(Arc<Signal>);

impl TaskWake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.ring();
    }
}

/// A reader.
pub struct RustReader {
    reader: SimpleDataReader<Encoded, Cdr>,
    signal: Arc<Signal>,
    waker: Waker,
    /// What its participant received before, for other readers of the topic, the library would hand to it, too.
    since: Timestamp,
    /// Most samples that are stored until taken; the library stores them by topic, whatever a reader requests.
    depth: Option<usize>,
    /// Samples that the depth had no room for, since the last call of [`Reading::take_missed`].
    missed: Cell<u64>,
}

impl RustReader {
    /// A reader made at a time, with KEEP_LAST of a depth, or KEEP_ALL.
    pub(super) fn new(
        reader: SimpleDataReader<Encoded, Cdr>,
        since: Timestamp,
        history: History,
        wake: Wake,
    ) -> RustReader {
        let depth = match history {
            History::KeepAll => None,
            History::KeepLast(depth) => Some(usize::from(depth)),
        };
        let signal = Signal::new(wake);
        let waker = Waker::from(Arc::new(Bell(Arc::clone(&signal))));
        reader.set_waker(Some(waker.clone()));
        // What was there before the waker, it has already.
        signal.raise();
        RustReader { reader, signal, waker, since, depth, missed: Cell::new(0) }
    }

    /// The next sample for this reader, if there is one.
    fn next(&self) -> Result<Option<Received>, String> {
        loop {
            match self.reader.try_take_one() {
                Ok(Some(change)) if change.receive_instant < self.since => {}
                Ok(Some(change)) => {
                    let source_ns = change.source_timestamp().map_or(i64::MAX, nanoseconds);
                    return Ok(Some(Received { encoded: Some(change.into_value()), source_ns }));
                }
                Ok(None) => return Ok(None),
                Err(ReadError::Deserialization { .. }) => {
                    return Ok(Some(Received { encoded: None, source_ns: i64::MAX }));
                }
                Err(error) => return Err(format!("failed to take DDS samples: {error}")),
            }
        }
    }
}

impl Reading for RustReader {
    fn take_signal(&self) -> bool {
        self.signal.take()
    }

    fn keep_signal(&self) {
        self.signal.raise();
    }

    fn take(&self, mut each: impl FnMut(Sample<'_>)) -> Result<bool, String> {
        // The library wakes once. Set before it is looked: what comes while it is read wakes again.
        self.reader.set_waker(Some(self.waker.clone()));
        self.reader.drain_read_notifications();
        let Some(depth) = self.depth else {
            for _ in 0..SAMPLES {
                let Some(received) = self.next()? else { return Ok(false) };
                each(received.sample());
            }
            return Ok(true);
        };
        let (mut last, mut is_more) = (VecDeque::new(), true);
        for _ in 0..MOST_OVERWRITTEN {
            let Some(received) = self.next()? else {
                is_more = false;
                break;
            };
            if last.len() >= depth {
                last.pop_front();
                self.missed.set(self.missed.get() + 1);
            }
            last.push_back(received);
        }
        last.iter().for_each(|received| each(received.sample()));
        // New samples wake the shard; what was too much for this call is taken by the next.
        Ok(is_more)
    }

    /// A reader that takes each sample as it arrives drops none: these were dropped because the shard polled late.
    fn take_missed(&self) -> u64 {
        self.missed.take()
    }
}

/// A sample that was taken.
struct Received {
    /// `None`: it was not in plain CDR.
    encoded: Option<Encoded>,
    source_ns: i64,
}

impl Received {
    fn sample(&self) -> Sample<'_> {
        /// Not of our making: shown as bytes that mean nothing, and counted as that.
        const UNREADABLE: Sample<'static> =
            Sample { topic: b"\xff", payload: &[], source_ns: i64::MAX, taken_ns: None };
        self.encoded.as_ref().and_then(|encoded| encoded.fields(self.source_ns)).unwrap_or(UNREADABLE)
    }
}

/// Nanoseconds of `CLOCK_REALTIME`; the library counts 2³² in a second.
fn nanoseconds(time: Timestamp) -> i64 {
    let nanoseconds = (u128::from(time.to_ticks()) * 1_000_000_000) >> 32;
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

/// Writers that were found.
pub struct Discovery {
    participant: DomainParticipant,
    next_check_ns: Cell<u64>,
}

impl Discovery {
    pub(super) fn new(participant: DomainParticipant) -> Discovery {
        Discovery { participant, next_check_ns: Cell::new(0) }
    }
}

impl Discovering for Discovery {
    fn take_signal(&self) -> bool {
        let now_ns = clock::monotonic_ns();
        let is_first = self.next_check_ns.get() == 0;
        if now_ns < self.next_check_ns.get() {
            return false;
        }
        self.next_check_ns.set(now_ns + POLL_INTERVAL_NS);
        let listener = self.participant.status_listener();
        let mut is_new = is_first;
        while listener.try_recv_status().is_some() {
            is_new = true;
        }
        is_new
    }

    fn next_check_ns(&self) -> Option<u64> {
        Some(self.next_check_ns.get())
    }

    fn take(&self, mut each: impl FnMut(&CStr, &CStr)) -> Result<(), String> {
        for found in self.participant.discovered_writers() {
            let data = found.publication_topic_data;
            // A name with a zero byte is none of ours.
            if let (Ok(topic), Ok(kind)) = (CString::new(data.topic_name), CString::new(data.type_name)) {
                each(&topic, &kind);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_parts_of_a_second() {
        assert_eq!(nanoseconds(Timestamp::from_ticks(3 << 31)), 1_500_000_000);
        assert_eq!(nanoseconds(Timestamp::from_ticks(u64::MAX)) / 1_000_000_000, i64::from(u32::MAX));
    }
}
