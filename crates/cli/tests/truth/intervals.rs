//! Bounds of latencies: the truth, which the lying broker's journal has, lies between them for each message and at every
//! quantile, however late the generator is.
//!
//! The broker had a message at most from its write start, which its header says, until all its bytes were in the subscriber's socket,
//! and at least from its receipt until it was forwarded. All are stamps of one clock, so the test assumes nothing about the machine.

use std::collections::HashMap;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::liar::{Liar, Truth};

/// Additional delay of each message in the broker.
pub const DELAY: &str = "delay 3ms";
/// 20 devices, 50 msg/s each, for 2 s: [`MESSAGES`].
const LOAD: [&str; 10] = [
    "fan-in",
    "--set",
    "publishers=20",
    "--set",
    "rate=50/s",
    "--duration",
    "2s",
    "--warmup",
    "0s",
    "--message-log=csv",
];
pub const MESSAGES: u64 = 2_000;
/// Number of runs of each kind; `make bars` has a thousand in total.
const RUNS: u64 = 2;

/// How long a message was in the system, ns.
struct Held {
    at_least_ns: u64,
    at_most_ns: u64,
}

/// The messages of the run, by publisher and sequence number, as the journal has them.
fn held(truth: &Truth) -> HashMap<(u64, u64), Held> {
    let journal = std::fs::read_to_string(&truth.journal).unwrap();
    let lines: Vec<Vec<&str>> = journal.lines().map(|line| line.split(' ').collect()).collect();
    let time_ns = |line: &[&str]| line[1].parse::<u64>().unwrap();
    // The fan-in has one subscriber. A line names the last message in its socket: the messages before it are there, too.
    let subscriber = lines.iter().find(|line| line[2] == "forwarded").unwrap()[3];
    let mut written = lines.iter().filter(|line| line[2] == "written" && line[3] == subscriber).peekable();
    let forwarded = lines.iter().filter(|line| line[2] == "forwarded").map(|line| {
        let line_number: u64 = line[0].parse().unwrap();
        while written.next_if(|written| written[4].parse::<u64>().unwrap() < line_number).is_some() {}
        let in_socket_ns = time_ns(written.peek().expect("every message reached the socket"));
        let received = &lines[line[4].parse::<usize>().unwrap() - 1];
        assert_eq!(received[2], "received");
        // Behind version and run: publisher, sequence number, due time and lag, which is write start − due in µs.
        let head = line[line.len() - 2];
        let number = |first: usize, bytes: usize| {
            let byte = |index: usize| u64::from_str_radix(&head[2 * (first + index)..2 * (first + index) + 2], 16);
            (0..bytes).map(|index| byte(index).unwrap() << (8 * index)).sum::<u64>()
        };
        let write_start_ns = number(12, 7) + number(20, 4) * 1_000;
        let held = Held { at_least_ns: time_ns(line) - time_ns(received), at_most_ns: in_socket_ns - write_start_ns };
        ((number(4, 3), number(8, 4)), held)
    });
    forwarded.collect()
}

/// The lower and the upper bound of each delivery in the message log, ns, by publisher and sequence number.
fn bounds(truth: &Truth) -> HashMap<(u64, u64), [u64; 2]> {
    let log = std::fs::read_to_string(truth.run.join("messages.csv")).unwrap();
    let mut rows = log.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let columns = ["publisher", "sequence", "latency_lower_ns", "latency_upper_ns"]
        .map(|name| names.iter().position(|other| *other == name).unwrap());
    let of = |row: Vec<&str>| {
        let [publisher, sequence, lower_ns, upper_ns] = columns.map(|column| row[column].parse().unwrap());
        ((publisher, sequence), [lower_ns, upper_ns])
    };
    rows.map(of).collect()
}

/// Requires that the true time of each message is between its bounds, and that of each percentile between those of the record.
pub fn demand_truth_inside(truth: &Truth, messages: u64) {
    let held = demand_percentiles_inside(truth, messages, 0, 0);
    let bounds = bounds(truth);
    assert_count_eq!(bounds.len(), held.len());
    for (message, held) in &held {
        let [lower_ns, upper_ns] = bounds[message];
        assert!(upper_ns >= held.at_least_ns, "{message:?}: {upper_ns} ns, {} ns in truth at least", held.at_least_ns);
        assert!(lower_ns <= held.at_most_ns, "{message:?}: {lower_ns} ns, {} ns in truth at most", held.at_most_ns);
    }
}

/// Requires it of the percentiles and of the maximum, where the ways to the system and back take this long together at least,
/// and the way back this long at most, ns. Of a single message behind links that is not known: the relay's TCP waits for its
/// window, too. Returns the messages.
fn demand_percentiles_inside(
    truth: &Truth,
    messages: u64,
    both_at_least_ns: u64,
    back_at_most_ns: u64,
) -> HashMap<(u64, u64), Held> {
    truth.demand_agreement();
    let mut held = held(truth);
    for held in held.values_mut() {
        held.at_least_ns += both_at_least_ns;
        // It began at the write start, so the way to the system is part of it.
        held.at_most_ns += back_at_most_ns;
    }
    let (lower, upper) = (truth.histogram("latency_lower"), truth.histogram("latency"));
    assert_count_eq!([lower.len(), upper.len(), held.len() as u64], [messages; 3]);
    let ascending = |of: fn(&Held) -> u64| {
        let mut times_ns: Vec<u64> = held.values().map(of).collect();
        times_ns.sort_unstable();
        times_ns
    };
    let (least, most) = (ascending(|held| held.at_least_ns), ascending(|held| held.at_most_ns));
    for percent in 1..=100 {
        let place = least.len() * percent / 100 - 1;
        let fraction = percent as f64 / 100.0;
        // The lowest and the highest time of the bucket: a histogram has three digits.
        let at_least = lower.lowest_equivalent(lower.value_at_quantile(fraction));
        let at_most = upper.highest_equivalent(upper.value_at_quantile(fraction));
        assert!(at_most >= least[place], "p{percent}: {at_most} ns at most, {} ns in truth at least", least[place]);
        assert!(at_least <= most[place], "p{percent}: {at_least} ns at least, {} ns in truth at most", most[place]);
    }
    held
}

/// Stops and continues a process until it has ended, for 5 to 50 ms each time.
fn stop_now_and_then(child: &mut Child, seed: u64) {
    let mut drawn = seed;
    while child.try_wait().unwrap().is_none() {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let stop = Duration::from_micros(5_000 + (drawn >> 33) % 45_000);
        // SAFETY: signals to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGSTOP) }, 0);
        thread::sleep(stop);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGCONT) }, 0);
        thread::sleep(Duration::from_millis(60));
    }
}

fn stopped_run(liar: Liar, arguments: &[&str], seed: u64) -> Truth {
    let mut command = liar.command(&[&LOAD[..], arguments].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stop_now_and_then(&mut child, seed);
    liar.truth(&child.wait_with_output().unwrap())
}

#[test]
fn the_truth_lies_between_the_bounds_of_a_generator_that_stands_still_now_and_then() {
    for (qos, seed) in
        [("0", 1), ("1", 2)].into_iter().flat_map(|(qos, seed)| (0..RUNS).map(move |run| (qos, 10 * run + seed)))
    {
        let truth = stopped_run(Liar::start_alone(DELAY, &[]), &["--qos", qos], seed);
        demand_truth_inside(&truth, MESSAGES);
        // The test can tell the bounds apart: the stops, which delay a third of the messages, are in the upper bound and not in the
        // lower one. That one is short for messages sent late, whose headers round the lag up, and for those read together.
        let (lower, upper) = (truth.histogram("latency_lower"), truth.histogram("latency"));
        assert!(upper.value_at_quantile(0.99) > 20_000_000, "{} ns", upper.value_at_quantile(0.99));
        let most_ns = lower.value_at_quantile(0.9);
        assert!((2_900_000..20_000_000).contains(&most_ns), "{most_ns} ns");
    }
}

#[test]
fn the_truth_lies_between_the_bounds_over_tls() {
    for seed in 0..RUNS {
        let (liar, [option, trusted]) = Liar::start_encrypted_alone(DELAY);
        demand_truth_inside(&stopped_run(liar, &[&option, &trusted], seed), MESSAGES);
    }
}

#[test]
fn the_truth_lies_between_the_bounds_over_websocket() {
    for seed in 0..RUNS {
        demand_truth_inside(&stopped_run(Liar::start_websocket(DELAY), &[], seed), MESSAGES);
    }
}

fn quanta_us(truth: &Truth) -> Vec<Option<f64>> {
    let threads = truth.record["cost"]["threads"].as_array().unwrap();
    threads.iter().map(|thread| thread["quantum_us"].as_f64()).collect()
}

#[test]
fn the_truth_lies_between_the_bounds_of_messages_that_are_sent_together() {
    for qos in ["0", "1"] {
        let arguments = [&LOAD[..], &["--qos", qos, "--pace", "2ms"]].concat();
        let truth = Liar::start_alone(DELAY, &[]).run(&arguments);
        demand_truth_inside(&truth, MESSAGES);
        assert_eq!(quanta_us(&truth), [Some(2_000.0); 2]);
        // 1,000 messages a second: each waits for 1 ms in the middle, and not in the lower bound.
        let (lower, upper) = (truth.histogram("latency_lower"), truth.histogram("latency"));
        let width_ns = upper.value_at_quantile(0.5).saturating_sub(lower.value_at_quantile(0.5));
        assert!(width_ns > 500_000, "{width_ns} ns");
    }
}

// With Nagle's algorithm a message may leave the broker's kernel only with an acknowledgement. How long that one was in a queue of the
// loopback is not in the journal, so this test runs where the processors have nothing else to do.
#[test]
fn what_waits_for_a_reader_of_quanta_is_not_the_systems_time_with_nagles_algorithm() {
    for qos in ["0", "1"] {
        let arguments = [&LOAD[..], &["--qos", qos, "--pace", "2ms"]].concat();
        let truth = Liar::start_alone(DELAY, &["--nagle", "on"]).run(&arguments);
        demand_truth_inside(&truth, MESSAGES);
    }
}

#[test]
fn a_quantum_of_its_own_follows_from_the_latency_and_from_the_limits() {
    // 40 ms: a twentieth is more than the longest one.
    for (delay, limits, expected_us) in
        [("delay 40ms", "p99<10s", Some(1_000.0)), ("delay 40ms", "p99>4ms", Some(200.0)), ("", "p99<10s", None)]
    {
        let arguments =
            ["fan-in", "--set", "publishers=20", "--set", "rate=50/s", "--duration", "1s", "--warmup", "1s"];
        let arguments = [&arguments[..], &["--pace", "auto", "--slo", limits, "--undecided", "pass"]].concat();
        let liar = Liar::start_alone(delay, &[]);
        let output = liar.command(&arguments).output().unwrap();
        let found = quanta_us(&liar.truth(&output));
        assert_eq!(found, [expected_us; 2], "{delay}, {limits}");
    }
}

/// A kind of the thousand runs.
#[derive(Clone, Copy)]
enum Kind {
    /// The generator is stopped now and then.
    Stopped { qos: &'static str },
    /// The same over TLS.
    Encrypted,
    /// The same over WebSocket.
    Websocket,
    /// Messages are sent in quanta.
    Quanta { qos: &'static str },
    /// Clients behind links of 5 ms each way, and a relay behind the links.
    Links,
}

const KINDS: [(&str, Kind); 7] = [
    ("stopped for 5 to 50 ms, QoS 0", Kind::Stopped { qos: "0" }),
    ("stopped for 5 to 50 ms, QoS 1", Kind::Stopped { qos: "1" }),
    ("stopped for 5 to 50 ms, TLS", Kind::Encrypted),
    ("stopped for 5 to 50 ms, WebSocket", Kind::Websocket),
    ("quanta of 2 ms, QoS 0", Kind::Quanta { qos: "0" }),
    ("quanta of 2 ms, QoS 1", Kind::Quanta { qos: "1" }),
    ("links of 5 ms each way", Kind::Links),
];
/// Delay of a link in one direction, ns.
const LINK_NS: u64 = 5_000_000;

impl Kind {
    /// One run, whose counts and bounds are required; returns lower and upper bound of p99, ns.
    fn judge(self, seed: u64) -> (u64, u64) {
        let truth = match self {
            Kind::Stopped { qos } => stopped_run(Liar::start(DELAY), &["--qos", qos], seed),
            Kind::Encrypted => {
                let (liar, [option, trusted]) = Liar::start_encrypted(DELAY);
                stopped_run(liar, &[&option, &trusted], seed)
            }
            Kind::Websocket => stopped_run(Liar::start_websocket(DELAY), &[], seed),
            Kind::Quanta { qos } => Liar::start(DELAY).run(&[&LOAD[..], &["--qos", qos, "--pace", "2ms"]].concat()),
            Kind::Links => Liar::start(DELAY).run(&[&LOAD[..], &["--link", "{delay: 5ms}"]].concat()),
        };
        if let Kind::Links = self {
            let links = &truth.record["conditions"]["links"];
            let ns = |figure: &Value| (figure.as_f64().unwrap() * 1e3) as u64;
            let late_ns = ns(&links["lateness"]["max_us"]) + ns(&links["relay"]["longest_held_us"]);
            demand_percentiles_inside(&truth, MESSAGES, 2 * LINK_NS, LINK_NS + late_ns);
        } else {
            demand_truth_inside(&truth, MESSAGES);
        }
        let p99 = |name| truth.histogram(name).value_at_quantile(0.99);
        (p99("latency_lower"), p99("latency"))
    }
}

/// Runs at a time: they are each other's busy siblings.
const BESIDE: usize = 6;

#[test]
#[ignore = "a thousand runs, up to half an hour: `make bars`"]
fn the_truth_lies_between_the_bounds_in_a_thousand_runs() {
    let runs: usize = std::env::var("PUBMARK_RUNS").map_or(1_000, |runs| runs.parse().unwrap());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = vec![];
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return done;
            }
            let kind = run % KINDS.len();
            // The first one that fails says why, and fails the test; the others are still counted.
            let judged = thread::spawn(move || KINDS[kind].1.judge(run as u64)).join();
            if judged.is_err() {
                println!("run {run}, {}: outside, or no run; the reason is above", KINDS[kind].0);
            }
            done.push((kind, judged.ok()));
        }
    };
    let done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..BESIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    for (index, (name, _)) in KINDS.iter().enumerate() {
        let of_kind: Vec<_> = done.iter().filter(|(kind, _)| *kind == index).map(|(_, judged)| *judged).collect();
        let mut widths: Vec<u64> =
            of_kind.iter().flatten().map(|(lower, upper)| upper.saturating_sub(*lower)).collect();
        widths.sort_unstable();
        let middle =
            widths.get(widths.len() / 2).map_or("none".to_owned(), |width| format!("{:.2} ms", *width as f64 / 1e6));
        println!("{name}: inside in {} of {}; median width at p99: {middle}", widths.len(), of_kind.len());
    }
    let inside = done.iter().filter(|(_, judged)| judged.is_some()).count();
    assert_count_eq!((inside, done.len()), (runs, runs));
}
