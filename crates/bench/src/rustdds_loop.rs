//! A minimal writer and reader over RustDDS, with which our adapter is compared. It is paced, because a flood overruns
//! the library's reader, which then drops samples (docs/explanation/dds.md).

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_protocol::clock;
use rustdds::bytes::Bytes;
use rustdds::no_key::{DataWriter, Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter, SimpleDataReader};
use rustdds::policy::{History, Reliability, ResourceLimits};
use rustdds::{
    DataWriterStatus, DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder,
    RepresentationIdentifier, StatusEvented, Timestamp, Topic, TopicKind,
};
use serde::{Deserialize, Serialize};

use crate::usage;

/// The task of the child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Size of a payload, bytes.
    pub payload_bytes: usize,
    /// Samples per second.
    pub rate: u32,
}

/// CPU seconds of the process in the measured window, and its samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// CPU seconds of this process.
    pub cpu_s: f64,
    /// Samples written.
    pub sent: u64,
    /// Samples received in the window.
    pub arrived: u64,
    /// Samples received in the window or in the drain.
    pub delivered: u64,
}

/// A domain that systems under test do not use.
const DOMAIN: u16 = 100;
const TOPIC: &str = "bench_loop";
/// Samples that the reader's history holds, as in the adapter. The library's default of 64 overflows when the reader is
/// late.
const HISTORY_SAMPLES: i32 = 512;
/// Longest wait for writer and reader to match.
const MATCH_WITHIN: Duration = Duration::from_secs(20);
const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_secs(3);
/// Longest wait for the last samples.
const DRAIN: Duration = Duration::from_secs(2);
/// Longest sleep of the reader, and of the thread that waits for it.
const NAP: Duration = Duration::from_millis(1);

/// The bytes of a payload, which the library does not interpret.
struct Raw(Bytes);

#[derive(Clone)]
struct RawBytes;

impl SerializerAdapter<Raw> for RawBytes {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(sample: &Raw) -> Result<Bytes, Infallible> {
        Ok(sample.0.clone())
    }
}

impl DeserializerAdapter<Raw> for RawBytes {
    type Error = Infallible;
    type Decoded = Raw;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE]
    }

    fn transform_decoded(decoded: Raw) -> Raw {
        decoded
    }
}

impl DefaultDecoder<Raw> for RawBytes {
    type Decoder = RawBytes;
    const DECODER: RawBytes = RawBytes;
}

impl<'de> Decode<'de, Raw> for RawBytes {
    type Error = Infallible;

    fn decode_bytes(self, bytes: &'de [u8], _: RepresentationIdentifier) -> Result<Raw, Infallible> {
        Ok(Raw(Bytes::copy_from_slice(bytes)))
    }
}

/// Writes at even times, from one participant of this process to another, over the loopback interface.
pub fn run(order: &Order) -> Result<Finding, String> {
    let (writing, reading) = (participant()?, participant()?);
    let receiving = Receiving::start(&reading)?;
    let none = QosPolicyBuilder::new().build();
    let publisher = writing.create_publisher(&none).map_err(|error| error.to_string())?;
    let writer = publisher.create_datawriter_no_key(&topic(&writing)?, Some(qos()));
    let writer: DataWriter<Raw, RawBytes> = writer.map_err(|error| error.to_string())?;
    await_reader(&writer)?;
    write(&writer, order, WARM_UP)?;
    let (cpu_s, before) = (usage::cpu_s(), receiving.received.load(Relaxed));
    let sent = write(&writer, order, WINDOW)?;
    let cpu_s = usage::cpu_s() - cpu_s;
    let received = || receiving.received.load(Relaxed) - before;
    let arrived = received();
    let begin = Instant::now();
    while received() < sent && begin.elapsed() < DRAIN {
        thread::sleep(NAP);
    }
    Ok(Finding { cpu_s, sent, arrived, delivered: received() })
}

fn await_reader(writer: &DataWriter<Raw, RawBytes>) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        while let Some(status) = writer.try_recv_status() {
            if let DataWriterStatus::PublicationMatched { current, .. } = status
                && current.count() > 0
            {
                return Ok(());
            }
        }
        if begin.elapsed() > MATCH_WITHIN {
            return Err("the writer found no reader".to_owned());
        }
        thread::sleep(NAP);
    }
}

/// Writes for this long; returns the number of samples.
fn write(writer: &DataWriter<Raw, RawBytes>, order: &Order, length: Duration) -> Result<u64, String> {
    let payload = vec![b'x'; order.payload_bytes];
    let begin = Instant::now();
    let count = (length.as_secs_f64() * f64::from(order.rate)) as u64;
    for number in 0..count {
        let due = Duration::from_secs_f64(number as f64 / f64::from(order.rate));
        if let Some(early) = due.checked_sub(begin.elapsed()) {
            thread::sleep(early);
        }
        let sample = Raw(Bytes::copy_from_slice(&payload));
        writer.write(sample, Some(Timestamp::now())).map_err(|error| format!("a sample was not taken: {error}"))?;
    }
    Ok(count)
}

/// A reader on its own thread, stopped when dropped.
struct Receiving {
    received: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Receiving {
    fn start(reading: &DomainParticipant) -> Result<Receiving, String> {
        let none = QosPolicyBuilder::new().build();
        let subscriber = reading.create_subscriber(&none).map_err(|error| error.to_string())?;
        let reader = subscriber.create_simple_datareader_no_key(&topic(reading)?, Some(qos()));
        let reader: SimpleDataReader<Raw, RawBytes> = reader.map_err(|error| error.to_string())?;
        let (received, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, ends) = (Arc::clone(&received), Arc::clone(&stopped));
        let thread = thread::spawn(move || read(&reader, &counted, &ends));
        Ok(Receiving { received, stopped, thread: Some(thread) })
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn read(reader: &SimpleDataReader<Raw, RawBytes>, received: &AtomicU64, stopped: &AtomicBool) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    while !stopped.load(Relaxed) {
        // The library wakes a waker once. It is set before the read, so that a sample that arrives during the read
        // wakes it again.
        reader.set_waker(Some(waker.clone()));
        reader.drain_read_notifications();
        while let Ok(Some(change)) = reader.try_take_one() {
            // The same work per sample as ours: read the clock, look at the payload.
            let at_ns = clock::monotonic_ns();
            received.fetch_add(u64::from(at_ns > 0 && !change.into_value().0.is_empty()), Relaxed);
        }
        thread::park_timeout(NAP);
    }
}

fn participant() -> Result<DomainParticipant, String> {
    let builder = DomainParticipantBuilder::new(DOMAIN).with_only_networks([IpAddr::from(Ipv4Addr::LOCALHOST)]);
    builder.build().map_err(|error| error.to_string())
}

fn topic(participant: &DomainParticipant) -> Result<Topic, String> {
    let none = QosPolicyBuilder::new().build();
    let topic = participant.create_topic(TOPIC.to_owned(), "Raw".to_owned(), &none, TopicKind::NoKey);
    topic.map_err(|error| error.to_string())
}

fn qos() -> QosPolicies {
    let limits = ResourceLimits {
        max_samples: HISTORY_SAMPLES,
        max_instances: HISTORY_SAMPLES,
        max_samples_per_instance: HISTORY_SAMPLES,
    };
    QosPolicyBuilder::new()
        .reliability(Reliability::Reliable { max_blocking_time: rustdds::Duration::ZERO })
        .history(History::KeepAll)
        .resource_limits(limits)
        .build()
}
