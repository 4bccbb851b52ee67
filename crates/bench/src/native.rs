//! Load tools of other projects, measured in the same call.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::usage;

/// Messages that a tool publishes.
const MESSAGES: u32 = 500_000;
/// A message of 16 B.
const MESSAGE: &str = "0123456789abcdef";

/// CPU seconds of redis-benchmark per million messages of 16 B that it publishes over one connection, 16 at a time.
pub fn redis_benchmark(server: SocketAddr) -> Result<f64, String> {
    let (host, port, messages) = (server.ip().to_string(), server.port().to_string(), MESSAGES.to_string());
    let arguments =
        ["-h", &host, "-p", &port, "-c", "1", "-n", &messages, "-P", "16", "-q", "PUBLISH", "bench", MESSAGE];
    cpu_per_million("redis-benchmark", "redis-tools", &arguments, false)
}

/// CPU seconds of mosquitto_pub per million messages of 16 B that it publishes over one connection, a line each.
pub fn mosquitto_pub(server: SocketAddr) -> Result<f64, String> {
    let (host, port) = (server.ip().to_string(), server.port().to_string());
    let arguments = ["-h", &host, "-p", &port, "-V", "5", "-t", "bench", "-q", "0", "-l"];
    cpu_per_million("mosquitto_pub", "mosquitto-clients", &arguments, true)
}

/// CPU seconds of mosquitto_pub and mosquitto_sub together per million messages of 16 B from one to the other.
pub fn mosquitto_pub_sub(server: SocketAddr) -> Result<f64, String> {
    let (host, port, messages) = (server.ip().to_string(), server.port().to_string(), (MESSAGES + 1).to_string());
    // A retained message: its arrival shows that the subscriber is subscribed.
    let kept = ["-h", &host, "-p", &port, "-V", "5", "-t", "bench", "-r", "-m", READY];
    cpu_per_million("mosquitto_pub", "mosquitto-clients", &kept, false)?;
    // Ends after N messages, or after 30 s with an error: then some were lost.
    let mut subscriber = Command::new("mosquitto_sub")
        .args(["-h", &host, "-p", &port, "-V", "5", "-t", "bench", "-q", "0", "-C", &messages, "-W", "30"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("failed to start mosquitto_sub (Debian: mosquitto-clients): {error}"))?;
    let output = subscriber.stdout.take().ok_or("mosquitto_sub has no output")?;
    let mut output = std::io::BufReader::new(output);
    let ready = wait_for_line(&mut output, READY);
    // Its output must be read to the end, otherwise it would block.
    let reading = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    let before = usage::children_cpu_s();
    let published = ready.and_then(|()| mosquitto_pub(server));
    let status = subscriber.wait().map_err(|error| format!("mosquitto_sub: {error}"))?;
    reading.join().map_err(|_| "the reader of mosquitto_sub ended")?.map_err(|error| error.to_string())?;
    published?;
    if !status.success() {
        return Err(format!("mosquitto_sub did not get all messages: it ended with {status}"));
    }
    Ok((usage::children_cpu_s() - before) / (f64::from(MESSAGES) / 1e6))
}

/// The message that is published first.
const READY: &str = "ready";

/// Reads lines until one contains this word.
fn wait_for_line(output: &mut impl std::io::BufRead, word: &str) -> Result<(), String> {
    let mut line = String::new();
    while output.read_line(&mut line).map_err(|error| error.to_string())? > 0 {
        if line.contains(word) {
            return Ok(());
        }
        line.clear();
    }
    Err(format!("no {word} was heard of"))
}

/// Where `.ci/install-perf-test` puts the jars of RabbitMQ's perf-test.
const PERF_TEST: &str = "target/perf-test";
/// In-flight window of its producer: that of our adapter.
const PERF_TEST_CONFIRMS: &str = "20";

/// CPU seconds of RabbitMQ's perf-test, the start of its virtual machine included, per million messages of 16 B that one producer, which
/// waits for confirms, sends to one consumer, which acknowledges each.
pub fn perf_test(server: SocketAddr) -> Result<f64, String> {
    if !Path::new(PERF_TEST).is_dir() {
        return Err(format!("no jars in {PERF_TEST}: `.ci/install-perf-test`, which needs mvn and java"));
    }
    let (jars, uri, messages) = (format!("{PERF_TEST}/*"), format!("amqp://{server}"), MESSAGES.to_string());
    let of = ["-cp", &jars, "com.rabbitmq.perf.PerfTest", "--uri", &uri, "-x", "1", "-y", "1", "-s", "16"];
    let how = ["--confirm", PERF_TEST_CONFIRMS, "--qos", "0", "--pmessages", &messages, "--cmessages", &messages];
    cpu_per_million("java", "default-jre-headless", &[&of[..], &how].concat(), false)
}

/// Runs a tool to its end, with the messages as lines of its standard input if it reads them there.
fn cpu_per_million(program: &str, package: &str, arguments: &[&str], feed: bool) -> Result<f64, String> {
    let before = usage::children_cpu_s();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(if feed { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("failed to start {program} (Debian: {package}): {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        let lines = format!("{MESSAGE}\n").repeat(MESSAGES as usize);
        input.write_all(lines.as_bytes()).map_err(|error| format!("{program} stopped reading: {error}"))?;
    }
    let status = child.wait().map_err(|error| format!("{program}: {error}"))?;
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    Ok((usage::children_cpu_s() - before) / (f64::from(MESSAGES) / 1e6))
}

/// Seconds that `ddsperf` runs.
const DDS_SECONDS: &str = "4";

/// CPU seconds of ddsperf's two processes per million samples of this size (bytes) that the reader gets, and thousands of them a
/// second.
pub fn ddsperf(size: u32) -> Result<(f64, f64), String> {
    let size = size.to_string();
    let before = usage::children_cpu_s();
    let duration = format!("-D{DDS_SECONDS}");
    let start = |arguments: &[&str]| {
        Command::new("ddsperf")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start ddsperf (Debian: cyclonedds-tools): {error}"))
    };
    let mut writer = start(&[&duration, "pub", "size", &size])?;
    let output = start(&[&duration, "sub"])?.wait_with_output().map_err(|error| format!("ddsperf: {error}"))?;
    writer.wait().map_err(|error| format!("ddsperf: {error}"))?;
    let cpu_s = usage::children_cpu_s() - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let samples = dds_samples(&text).ok_or_else(|| format!("ddsperf did not say how many samples came:\n{text}"))?;
    let seconds: f64 = DDS_SECONDS.parse().map_err(|error| format!("{DDS_SECONDS}: {error}"))?;
    Ok((cpu_s / (samples / 1e6), samples / seconds / 1e3))
}

/// The last count of ddsperf's reader: `size 100 total 1686395 lost 0 …`.
fn dds_samples(text: &str) -> Option<f64> {
    let line = text.lines().rev().find(|line| line.contains(" total ") && line.contains(" lost "))?;
    line.split(" total ").nth(1)?.split_whitespace().next()?.parse().ok()
}
