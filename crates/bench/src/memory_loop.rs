//! The path of a message without a socket: encode → frame → decode → message accounting → histograms. Continuous
//! integration counts its instructions.

use std::sync::Arc;
use std::time::Duration;

use pubmark_engine::announced::Announced;
use pubmark_engine::figures::Figures;
use pubmark_engine::message_log::files::LogFiles;
use pubmark_engine::message_log::row::{Row, RowKind};
use pubmark_engine::message_log::writer::{LogWriter, Logged, ShardLog};
use pubmark_engine::progress::Progress;
use pubmark_engine::receiver::{Audience, Receiver};
use pubmark_engine::window::Window;
use pubmark_engine::window_latency::WindowWatch;
use pubmark_model::fleet::StreamSource;
use pubmark_model::qos::Qos;
use pubmark_model::random::Stream;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::timing::Timing;
use pubmark_protocol::{clock, header};
use pubmark_wire::mqtt;

const RUN: u32 = 7;
const START_NS: u64 = 1_000_000_000_000;

/// The receiving side of a run: message accounting, histograms, time series.
pub struct Books {
    receiver: Receiver,
    announced: Arc<Announced>,
    window: Window,
    figures: Figures,
}

impl Books {
    /// Accounting for one subscriber of N publishers of `types` types.
    pub fn new(publishers: u32, types: u16) -> Books {
        let sources: Arc<[StreamSource]> =
            (0..publishers).map(|publisher| StreamSource { publisher, filters: 1 }).collect();
        let announced = Arc::new(Announced::new(publishers as usize));
        (0..publishers).for_each(|publisher| announced.begin(publisher));
        let groups = (0..publishers).map(|publisher| (publisher % u32::from(types)) as u16).collect();
        Books {
            receiver: Receiver::new(
                &[Audience { number: 0, sources, filters: 1, group: 0, shared: false }],
                groups,
                vec![header::FULL as u32; usize::from(types)].into(),
                Arc::clone(&announced),
                RUN,
            ),
            announced,
            window: Window::new(START_NS, 0, 3_600_000_000_000),
            // Published for other threads, as in a run.
            figures: Figures {
                live: Progress::new(1).ok().map(|progress| (Arc::new(progress), 0)),
                ..Figures::new(usize::from(types), 0, 3_600_000_000_000)
            },
        }
    }

    /// Announces that a message is about to be sent, as its publisher does.
    pub fn announce(&self, publisher: u32, sequence: u32) {
        self.announced.announce(publisher, sequence);
    }

    /// Records a payload that arrived `latency_ns` after it was due.
    pub fn enter(&mut self, payload: &[u8], at_ns: u64) -> bool {
        let delivery = Delivery {
            payload,
            at_ns,
            empty_at_ns: Some(at_ns - 2_000),
            kernel_ns: Some(at_ns - 1_000),
            ..Delivery::default()
        };
        self.receiver.enter(0, &delivery, &self.window, &mut self.figures).is_some()
    }

    /// Deliveries that were counted.
    pub fn delivered(&self) -> u64 {
        self.figures.times.latency.upper.count()
    }
}

/// Nanoseconds of thread CPU time a delivery costs, over `streams` streams in random order, and bytes of memory that all take.
pub fn books_cost(streams: u32, deliveries: u32) -> (f64, f64) {
    let before = crate::usage::resident_bytes("VmRSS").unwrap_or(0);
    let mut books = Books::new(streams, 20);
    let order = Stream::new(1, 1);
    let mut sequences = vec![0u32; streams as usize];
    let mut payload = Vec::with_capacity(header::FULL);
    // Touch every stream once, so that page faults of the start are not in the figure and its memory is.
    let mut at_ns = START_NS + 1_000_000;
    let mut deliver = |publisher: u32, latency_ns: u64, books: &mut Books| {
        sequences[publisher as usize] += 1;
        books.announce(publisher, sequences[publisher as usize]);
        at_ns += 10_000;
        payload.clear();
        header::write(&mut payload, header::FULL, RUN, publisher, sequences[publisher as usize], at_ns - latency_ns);
        header::patch_write_start(&mut payload, &Timing::on_time(at_ns - latency_ns), at_ns - latency_ns + 1_000);
        books.enter(&payload, at_ns)
    };
    let mut first_copies = 0u64;
    for publisher in 0..streams {
        first_copies += u64::from(deliver(publisher, 50_000, &mut books));
    }
    let after = crate::usage::resident_bytes("VmRSS").unwrap_or(0);
    let began_ns = clock::thread_cpu_ns();
    for index in 0..deliveries {
        let bits = order.bits(u64::from(index));
        let publisher = (((bits >> 32) * u64::from(streams)) >> 32) as u32;
        first_copies += u64::from(deliver(publisher, 20_000 + bits % 200_000, &mut books));
    }
    let cost_ns = (clock::thread_cpu_ns() - began_ns) as f64 / f64::from(deliveries);
    assert_eq!(first_copies, books.delivered(), "every delivery was a first copy");
    (cost_ns, (after - before) as f64)
}

/// The same with a message log of both sides, in a file until the end.
///
/// # Errors
/// The log cannot be written, or lacks rows.
pub fn run_logged(messages: u32) -> Result<u64, String> {
    let files = LogFiles::create(&std::env::temp_dir()).map_err(|error| error.to_string())?;
    let writer = LogWriter::start(&files.file(0)).map_err(|error| error.to_string())?;
    let (delivered, log) = send(messages, Some(writer.shard()), false);
    let logged = log.map(ShardLog::finish).unwrap_or_default();
    if logged == Logged::default() { Ok(delivered) } else { Err(format!("the log lacks rows: {logged:?}")) }
}

/// Passes `messages` messages of 100 B through codec and accounting; returns how many arrived.
pub fn run(messages: u32) -> u64 {
    send(messages, None, false).0
}

/// The same while another thread reads the figures of `--metrics` and `--live` a fixed number of times.
pub fn run_watched(messages: u32) -> u64 {
    send(messages, None, true).0
}

/// How often it reads: more often than once a second in any run of the loop.
const READS: u32 = 50;

/// Reads the counters and the latencies of all shards, as the controlling thread of a run does.
fn watch(progress: &Progress) -> u64 {
    let mut window = WindowWatch::default();
    let read = |_| {
        std::thread::sleep(Duration::from_millis(1));
        window.last(progress).upper.deliveries.iter().sum::<u64>() + progress.totals().delivered
    };
    (0..READS).map(read).max().unwrap_or(0)
}

fn send(messages: u32, log: Option<ShardLog>, is_watched: bool) -> (u64, Option<ShardLog>) {
    let mut books = Books::new(64, 8);
    let progress = books.figures.live.as_ref().filter(|_| is_watched).map(|(progress, _)| Arc::clone(progress));
    let watching = progress.map(|progress| std::thread::spawn(move || watch(&progress)));
    books.figures.log = log.map(Box::new);
    let mut buffer = Vec::new();
    let head = mqtt::PublishHead {
        dup: false,
        qos: Qos::BestEffort,
        retain: false,
        topic: "psmark/home/sensor/17",
        packet_id: None,
        properties: mqtt::Properties::default(),
    };
    for index in 0..messages {
        let publisher = index % 64;
        let due_ns = START_NS + u64::from(index) * 1_000;
        books.announce(publisher, index / 64 + 1);
        if let Some(log) = &mut books.figures.log {
            log.note(handed(publisher, index / 64 + 1, due_ns));
        }
        buffer.clear();
        mqtt::encode_publish_head(mqtt::Version::V5, &head, 100, &mut buffer).expect("the head is within all limits");
        let at = buffer.len();
        header::write(&mut buffer, 100, RUN, publisher, index / 64 + 1, due_ns);
        buffer.resize(at + 100, 0x5a);
        header::patch_write_start(&mut buffer[at..], &Timing::on_time(due_ns), due_ns + 3_000);
        if let Ok(Some(frame)) = mqtt::frame(&buffer, 1 << 20)
            && let Ok(publish) = mqtt::decode_publish(mqtt::Version::V5, &frame)
        {
            books.enter(publish.payload, due_ns + 50_000 + u64::from(index % 1_000));
        }
    }
    // Only its end matters, not its result.
    if let Some(watching) = watching {
        watching.join().expect("it reads counters alone");
    }
    (books.delivered(), books.figures.log.take().map(|log| *log))
}

/// The row of a message that a publisher writes to the log.
fn handed(publisher: u32, sequence: u32, due_ns: u64) -> Row {
    Row {
        kind: RowKind::Submitted,
        publisher,
        sequence,
        audience: 0,
        payload_bytes: 100,
        due_ns,
        at_ns: due_ns,
        lag_ns: 0,
        late_ns: 0,
        write_start_us: None,
    }
}
