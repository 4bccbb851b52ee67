//! `mqttv5 bench` of another project, a load tool whose timers wake up once per millisecond, measured in the same call.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::Deserialize;

/// Where `.ci/install-mqttv5` puts the program.
const PROGRAM: &str = "target/mqttv5/bin/mqttv5";
/// Longest wait for its connections and its warm-up.
const START: Duration = Duration::from_secs(30);
/// Longest wait for the end of its measurement: it drains until nothing arrives any more.
const DRAIN: Duration = Duration::from_secs(20);

/// A load: `publishers` to one subscriber at QoS 0.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Publishers, each with a connection and a topic of its own.
    pub publishers: u32,
    /// Total messages per second.
    pub rate_per_s: u32,
    /// Size of a payload, bytes.
    pub payload_bytes: u32,
    /// Measured seconds.
    pub duration_s: u32,
}

impl Load {
    /// Is this what arrives of the load in its measured seconds, within 2 %? Costs of two tools are compared only then: a
    /// tool that sends less than asked for, or counts messages of other seconds, reports no error.
    pub fn check(&self, tool: &str, arrived: u64) -> Result<(), String> {
        let offered = u64::from(self.rate_per_s) * u64::from(self.duration_s);
        if arrived.abs_diff(offered) > offered / 50 {
            return Err(format!("{tool} received {arrived} messages of a load of {offered}"));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Output {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    /// Deliveries in each measured second.
    samples: Vec<u64>,
}

/// CPU seconds of both sides per million messages that arrive in the measured window.
///
/// # Errors
/// The program is not installed, fails, or prints something else than expected.
pub fn cpu_s_per_million(server: SocketAddr, load: &Load) -> Result<f64, String> {
    if !Path::new(PROGRAM).is_file() {
        return Err(format!("no {PROGRAM}: `.ci/install-mqttv5`"));
    }
    let mut child = Started(start(server, load)?);
    let notes = child.0.stderr.take().ok_or("mqttv5 has no standard error")?;
    wait_for(notes, "measuring for")?;
    let window = Duration::from_secs(load.duration_s.into());
    let before = cpu_s(child.0.id())?;
    std::thread::sleep(window);
    let cpu_s = cpu_s(child.0.id())? - before;
    let found: Output = serde_json::from_slice(&child.finish()?).map_err(|error| format!("mqttv5: {error}"))?;
    // A sample for each second of the window; what arrives after it is in none.
    let arrived: u64 = found.results.samples.iter().sum();
    load.check("mqttv5", arrived)?;
    Ok(cpu_s / (arrived as f64 / 1e6))
}

fn start(server: SocketAddr, load: &Load) -> Result<Child, String> {
    let options = [
        ("--host", server.ip().to_string()),
        ("--port", server.port().to_string()),
        ("--publishers", load.publishers.to_string()),
        ("--topics", load.publishers.to_string()),
        ("--rate", load.rate_per_s.to_string()),
        ("--payload-size", load.payload_bytes.to_string()),
        ("--duration", load.duration_s.to_string()),
    ];
    let more = ["--subscribers", "1", "--qos", "0", "--warmup", "2", "--inflight", "1"];
    Command::new(PROGRAM)
        .args(["bench", "--mode", "throughput"])
        .args(more)
        .args(options.iter().flat_map(|(option, value)| [*option, value]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("failed to start {PROGRAM}: {error}"))
}

/// The program, killed when dropped.
struct Started(Child);

impl Started {
    /// Its standard output, after its end.
    fn finish(&mut self) -> Result<Vec<u8>, String> {
        let mut output = self.0.stdout.take().ok_or("mqttv5 has no standard output")?;
        let reading = std::thread::spawn(move || {
            let mut bytes = vec![];
            output.read_to_end(&mut bytes).map(|_| bytes)
        });
        let began = Instant::now();
        let status = loop {
            match self.0.try_wait().map_err(|error| format!("mqttv5: {error}"))? {
                Some(status) => break status,
                None if began.elapsed() > DRAIN => return Err(format!("mqttv5 did not end within {DRAIN:?}")),
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        if !status.success() {
            return Err(format!("mqttv5 ended with {status}"));
        }
        reading.join().map_err(|_| "the reader of mqttv5 ended")?.map_err(|error| error.to_string())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It has ended already unless something failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until it prints a line with these words. A thread reads what it prints, to its end, so that it never blocks.
fn wait_for(notes: ChildStderr, words: &'static str) -> Result<(), String> {
    let (sender, found) = mpsc::channel();
    std::thread::spawn(move || {
        let mut last = String::new();
        for line in BufReader::new(notes).lines().map_while(Result::ok) {
            if line.contains(words) {
                // Nobody waits any more after the deadline.
                let _ = sender.send(Ok(()));
            }
            last = line;
        }
        let _ = sender.send(Err(format!("mqttv5 ended before its measurement: {}", last.trim())));
    });
    found.recv_timeout(START).map_err(|_| format!("mqttv5 did not begin to measure within {START:?}"))?
}

/// CPU time of all threads of another process so far, seconds.
fn cpu_s(pid: u32) -> Result<f64, String> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` lives through the call.
    let error = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    if error != 0 {
        return Err(format!("no CPU clock of process {pid}: {}", std::io::Error::from_raw_os_error(error)));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(format!("CPU clock of process {pid}: {}", std::io::Error::last_os_error()));
    }
    Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_under_less_load_or_with_messages_of_other_seconds_is_not_compared() {
        let load = Load { publishers: 100, rate_per_s: 10_000, payload_bytes: 1_000, duration_s: 5 };
        assert!([49_000, 50_000, 51_000].iter().all(|arrived| load.check("it", *arrived).is_ok()));
        for arrived in [0, 48_999, 51_001, 60_000] {
            assert_eq!(load.check("it", arrived), Err(format!("it received {arrived} messages of a load of 50000")));
        }
    }
}
