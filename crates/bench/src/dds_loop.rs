//! A minimal writer and reader over Cyclone DDS, with which our adapter is compared. Each sample is one packet, as for
//! devices; `ddsperf` packs the samples of a burst together.

use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_cyclone::domain::Domain;
use pubmark_cyclone::entities::{Intake, Reader, Writer, Written};
use pubmark_cyclone::library::{CallError, library};
use pubmark_cyclone::qos::{History, Qos};
use pubmark_cyclone::sample::Kind;
use pubmark_cyclone::signal::Signal;
use pubmark_protocol::clock;
use serde::{Deserialize, Serialize};

use crate::usage;

/// The task of the child process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Size of a payload, bytes.
    pub payload_bytes: usize,
}

/// CPU seconds of the process and samples received in the measured window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// CPU seconds of this process.
    pub cpu_s: f64,
    /// Samples received.
    pub delivered: u64,
}

const TOPIC: &CStr = c"bench_loop";
/// The name of the workload's topic inside a sample.
const NAME: &CStr = c"fan-in/publisher";
/// A domain that systems under test do not use.
const DOMAIN: u16 = 100;
/// Longest wait for writer and reader to match.
const MATCH_WITHIN: Duration = Duration::from_secs(20);
const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_secs(3);
/// Longest sleep of the reader, and of a writer whose history is full.
const NAP: Duration = Duration::from_millis(1);
const QOS: Qos =
    Qos { reliable: true, history: History::KeepAll, late_joiners_get: None, liveliness_lease: None, lifespan: None };

/// Writes as fast as the library accepts samples, from one domain of this process to another, over the loopback
/// interface.
pub fn run(order: &Order) -> Result<Finding, String> {
    let (writing, reading) = (domain()?, domain()?);
    let words = |error: CallError| error.to_string();
    let (here, there) = (thread::current(), reader_of(&reading)?);
    let wake = Arc::new(move || here.unpark());
    let topic = writing.topic(TOPIC, Kind::Plain).map_err(words)?;
    let writer = writing.writer(&topic, &QOS, Signal::new(wake)).map_err(words)?;
    let begin = Instant::now();
    while writer.matched() == 0 {
        if begin.elapsed() > MATCH_WITHIN {
            return Err("the writer found no reader".to_owned());
        }
        thread::park_timeout(NAP);
    }
    let payload = vec![b'x'; order.payload_bytes];
    flood(&writer, &payload, WARM_UP)?;
    let (cpu_s, delivered) = (usage::cpu_s(), there.received.load(Relaxed));
    flood(&writer, &payload, WINDOW)?;
    Ok(Finding { cpu_s: usage::cpu_s() - cpu_s, delivered: there.received.load(Relaxed) - delivered })
}

fn flood(writer: &Writer, payload: &[u8], length: Duration) -> Result<(), String> {
    let end = Instant::now() + length;
    while Instant::now() < end {
        for _ in 0..100 {
            if writer.write(NAME, payload).map_err(|error| error.to_string())? == Written::Full {
                thread::park_timeout(NAP);
            }
        }
    }
    Ok(())
}

/// A reader on its own thread, stopped when dropped.
struct Receiving {
    received: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn reader_of(domain: &Domain) -> Result<Receiving, String> {
    let words = |error: CallError| error.to_string();
    let (received, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, ends) = (Arc::clone(&received), Arc::clone(&stopped));
    let (sender, handle) = std::sync::mpsc::channel::<Reader>();
    let thread = thread::spawn(move || {
        let Ok(reader) = handle.recv() else { return };
        while !ends.load(Relaxed) {
            // The same work per sample as ours: read the clock, look at the payload.
            let taken = reader.take(|sample| {
                let at_ns = clock::monotonic_ns();
                counted.fetch_add(u64::from(at_ns > 0 && !sample.payload.is_empty()), Relaxed);
            });
            if !matches!(taken, Ok(true)) {
                thread::park_timeout(NAP);
            }
        }
    });
    let waiting = thread.thread().clone();
    let topic = domain.topic(TOPIC, Kind::Plain).map_err(words)?;
    let signal = Signal::new(Arc::new(move || waiting.unpark()));
    let reader = domain.reader(&topic, &QOS, signal, Intake::WhenAsked).map_err(words)?;
    sender.send(reader).map_err(|error| error.to_string())?;
    Ok(Receiving { received, stopped, thread: Some(thread) })
}

/// A domain on the loopback interface, with the settings of the adapter.
fn domain() -> Result<Domain, String> {
    let settings = format!(
        "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
         <AllowMulticast>false</AllowMulticast></General><Discovery><ExternalDomainId>{DOMAIN}</ExternalDomainId>\
         <ParticipantIndex>auto</ParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>\
         <Tracing><Verbosity>none</Verbosity></Tracing></Domain></CycloneDDS>"
    );
    let settings = CString::new(settings).map_err(|error| error.to_string())?;
    Domain::open(library().map_err(ToString::to_string)?, &settings).map_err(|error| error.to_string())
}
