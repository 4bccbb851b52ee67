//! A real node_exporter, read as during a run, and servers with wrong responses.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pubmark_systems::clock;
use pubmark_systems::environment::CpuTimes;
use pubmark_systems::node_exporter::{HostWatch, ScrapeError, Scraper};

/// Debian's node_exporter on a port of the loopback address.
struct Exporter {
    child: Child,
    port: u16,
}

impl Exporter {
    fn start() -> Option<Exporter> {
        let port = pubmark_systems::ports::free(1).unwrap()[0];
        let started = Command::new("prometheus-node-exporter")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(child) => Some(Exporter { child, port }),
            Err(error) => {
                pubmark_testing::skip(format_args!(
                    "no prometheus-node-exporter ({error}; `apt-get install prometheus-node-exporter`)"
                ));
                None
            }
        }
    }

    fn scraper(&self) -> Scraper {
        Scraper::new(&format!("http://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Waits until the exporter responds, at most 20 s.
    fn wait(&self) {
        let (scraper, start) = (self.scraper(), Instant::now());
        while let Err(error) = scraper.read() {
            assert!(start.elapsed() < Duration::from_secs(20), "{error}: {:?}", std::error::Error::source(&error));
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Listens, sends each of `answers` as the response to one request, then ends. Returns the port and the requests.
fn peer(answers: Vec<Vec<u8>>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = common::listen();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut query = vec![0; 4_096];
            let length = stream.read(&mut query).unwrap();
            requests.push(String::from_utf8_lossy(&query[..length]).lines().next().unwrap_or_default().to_owned());
            // The client closes the connection if the response is too slow or too long.
            stream.write_all(&answer).ok();
        }
        requests
    });
    (port, thread)
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn debian_s_exporter_is_read_and_agrees_with_the_kernel() {
    let Some(exporter) = Exporter::start() else { return };
    exporter.wait();
    let snapshot = exporter.scraper().read().unwrap();
    // SAFETY: a plain call.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let from_kernel = CpuTimes::read().unwrap().total as f64 / ticks_per_s;
    assert!(snapshot.cores.unwrap() >= 1 && snapshot.cpu_seconds.contains_key("idle"), "{snapshot:?}");
    let all: f64 = snapshot.cpu_seconds.values().sum();
    assert!((all - from_kernel).abs() < 5.0, "{all} {from_kernel}");
    let memory = pubmark_systems::environment::read().memory_bytes;
    assert_eq!(snapshot.memory_bytes, Some(memory));
    assert!(snapshot.used_bytes().unwrap() < memory, "{snapshot:?}");
    assert!(!snapshot.received_bytes.contains_key("lo"), "{snapshot:?}");
}

#[test]
fn a_busy_core_is_seen_in_the_cost_of_the_machine() {
    let Some(exporter) = Exporter::start() else { return };
    exporter.wait();
    let watch = HostWatch::start(exporter.scraper()).unwrap();
    let start_ns = clock::monotonic_ns();
    let mut own_ns = own_cpu_ns();
    let mut turns = 0u64;
    while clock::monotonic_ns() - start_ns < 2_000_000_000 {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
    own_ns = own_cpu_ns() - own_ns;
    let end_ns = clock::monotonic_ns();
    watch.read_soon();
    let readings = watch.finish().unwrap();
    let usage = readings.usage(start_ns, end_ns);
    eprintln!("{usage:?}");
    let ours = own_ns as f64 / (end_ns - start_ns) as f64;
    // The exporter's counters have steps of 10 ms for each core and mode.
    let cores = usage.cores.unwrap();
    assert!(cores > 0.8 * ours && cores <= f64::from(usage.cores_total.unwrap()) + 0.1, "{cores} of {ours}");
    assert!(usage.peak_used_bytes > Some(1 << 20) && usage.failed_readings == 0, "{usage:?}");
}

fn own_cpu_ns() -> u64 {
    pubmark_systems::meter::OwnMeter::default().read().unwrap().cpu_ns
}

#[test]
fn one_query_is_one_request_and_names_the_collectors() {
    let body = "node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 1\n";
    let (port, requests) = peer(vec![answer("200 OK", body)]);
    let scraper = Scraper::new(&format!("127.0.0.1:{port}")).unwrap();
    assert_eq!(scraper.read().unwrap().busy_seconds(), 1.0);
    let requests = requests.join().unwrap();
    assert_eq!(requests, ["GET /metrics?collect[]=cpu&collect[]=meminfo&collect[]=netdev HTTP/1.1"]);
}

#[test]
fn wrong_responses_are_errors_within_2_s() {
    let endless = [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec(), vec![b'x'; 9 << 20]].concat();
    let moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_vec();
    for (name, bytes) in [
        ("not found", answer("404 Not Found", "no")),
        ("collector missing", answer("400 Bad Request", "missing collector")),
        ("another program", answer("200 OK", "<html></html>")),
        ("moved", moved),
        ("too long", endless),
        ("no HTTP", b"hello\r\n\r\n".to_vec()),
        ("cut short", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12".to_vec()),
        ("silent", vec![]),
    ] {
        let (port, thread) = peer(vec![bytes]);
        let scraper = Scraper::new(&format!("127.0.0.1:{port}")).unwrap();
        let start = Instant::now();
        let error = scraper.read().unwrap_err();
        eprintln!("{name}: {error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(matches!(error, ScrapeError::NoResponse { .. } | ScrapeError::NoMetrics { .. }), "{name}: {error}");
        assert!(start.elapsed() < Duration::from_secs(10), "{name}");
        thread.join().unwrap();
    }
}

#[test]
fn a_peer_that_never_responds_is_given_up() {
    let listener = common::listen();
    let port = listener.local_addr().unwrap().port();
    let start = Instant::now();
    let error = Scraper::new(&format!("127.0.0.1:{port}")).unwrap().read().unwrap_err();
    assert!(matches!(error, ScrapeError::NoResponse { .. }), "{error}");
    assert!((Duration::from_secs(1)..Duration::from_secs(20)).contains(&start.elapsed()), "{:?}", start.elapsed());
    drop(listener);
}

#[test]
fn readings_that_fail_are_counted_and_leave_the_rest_known() {
    let body = |user: u32| answer("200 OK", &format!("node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {user}\n"));
    let (port, peer) = peer(vec![body(10), answer("500 Oops", ""), body(20)]);
    let watch = HostWatch::start(Scraper::new(&format!("127.0.0.1:{port}")).unwrap()).unwrap();
    let start_ns = clock::monotonic_ns();
    watch.read_soon();
    watch.read_soon();
    let readings = watch.finish().unwrap();
    assert_eq!((readings.failed, readings.snapshots.len()), (1, 2));
    let usage = readings.usage(start_ns, readings.snapshots[1].0);
    assert!(usage.cores.is_some() && usage.failed_readings == 1, "{usage:?}");
    assert_eq!((usage.memory_bytes, usage.received_bytes), (None, None));
    peer.join().unwrap();
    // A wrong address is reported at once.
    assert!(HostWatch::start(Scraper::new(&format!("127.0.0.1:{port}")).unwrap()).is_err());
}
