//! A row of a table: a case, with its expected result.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pubmark_testing::assert_count;
use serde_json::Value;

use crate::call::{Called, call};
use crate::server::{Server, Step};

/// Number of cases of a table that run at the same time: most of them wait.
const AT_ONCE: usize = 12;
/// Largest memory of a call, bytes: so small a run needs 60 MB.
const MOST_MEMORY_BYTES: u64 = 400 << 20;
/// Largest count that is plausible in a run of seconds: a count that wrapped around is far above it.
const LARGEST_COUNT: u64 = 1 << 40;

/// Expected result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// No client can connect: exit code 6.
    NobodyIn,
    /// A run that is invalid: exit code 5.
    Invalid,
    /// No client can connect, or a run whose verdict is not *valid*: which one depends on timing.
    NeverValid,
    /// No client can connect, or a run with any verdict: it depends on timing whether the server confirms messages that
    /// it does not forward. Each such case has a comment with the reason.
    NoGood,
    /// A run that counts the server's actions, good or bad: exit code 0 or 5.
    Counted,
}

/// A row.
pub struct Case {
    /// What the server does, in a few words.
    pub name: &'static str,
    /// The server's steps in every connection.
    pub steps: Vec<Step>,
    /// Expected result.
    pub ends: Ends,
}

/// A row, in a shorter form.
pub fn case(name: &'static str, ends: Ends, steps: Vec<Step>) -> Case {
    Case { name, steps, ends }
}

/// How the runs of a table are called.
pub struct Table {
    /// Scheme of the endpoint.
    pub scheme: &'static str,
    /// Further arguments of `pubmark run`, the workload first.
    pub arguments: &'static [&'static str],
}

impl Table {
    /// Runs the binary against a server at this address.
    pub fn run(&self, address: SocketAddr) -> Called {
        let endpoint = format!("{}://{address}", self.scheme);
        let fixed = ["--warmup", "0s", "--duration", "500ms", "--drain", "1s", "--json", "--quiet"];
        call(&[&["run"], self.arguments, &fixed[..], &["--endpoint", &endpoint]].concat())
    }

    /// Runs all cases, several at the same time, and fails with all errors.
    pub fn run_all(&self, cases: &[Case]) {
        let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(cases.len()) {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let server = Server::of_steps(case.steps.clone());
                        let called = self.run(server.address);
                        if let Err(why) = judge(case.ends, &called).and_then(|()| nothing_delivered(&called)) {
                            failures.lock().unwrap().push(format!("{}: {}: {why}", self.scheme, case.name));
                        }
                    }
                });
            }
        });
        let failures = failures.into_inner().unwrap();
        assert_count!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
    }
}

/// Checks that a call has the expected result, and is sound in all other respects.
pub fn judge(ends: Ends, called: &Called) -> Result<(), String> {
    sound(called)?;
    let record = called.record();
    let status = record.as_ref().and_then(|record| record["verdict"]["status"].as_str()).unwrap_or("none");
    let (code, errors) = (called.code, called.errors.trim());
    let fits = match ends {
        Ends::NobodyIn => code == Some(6) && status != "valid",
        Ends::Invalid => code == Some(5) && status == "invalid",
        Ends::NoGood => matches!(code, Some(0 | 5 | 6)),
        Ends::NeverValid => matches!(code, Some(0 | 5 | 6)) && status != "valid",
        Ends::Counted => matches!(code, Some(0 | 5)) && status != "none",
    };
    match fits {
        true => Ok(()),
        false => Err(format!("not {ends:?}, but code {code:?} and verdict {status}; {errors}")),
    }
}

/// Messages that a server did not forward are not counted as delivered, whatever it sends instead.
pub fn nothing_delivered(called: &Called) -> Result<(), String> {
    let Some(record) = called.record() else { return Ok(()) };
    match record["delivery"]["delivered"].as_u64() {
        Some(0) => Ok(()),
        _ => Err(format!("messages that nobody carried were delivered: {}", record["delivery"])),
    }
}

/// Conditions that hold whatever a peer does.
pub fn sound(called: &Called) -> Result<(), String> {
    let errors = called.errors.trim();
    if called.hung {
        return Err(format!("it did not end: {errors}"));
    }
    if errors.contains("panicked") || called.code.is_none() || called.code == Some(1) {
        return Err(format!("a fault of its own, code {:?}: {errors}", called.code));
    }
    if called.memory_bytes > MOST_MEMORY_BYTES {
        return Err(format!("it took {} MB of memory", called.memory_bytes >> 20));
    }
    called.record().map_or(Ok(()), |record| books(&record))
}

/// What a rule of the verdict found; `None` if it does not concern the run.
pub fn status_of<'a>(record: &'a Value, code: &str) -> Option<&'a str> {
    let checks = record["verdict"]["checks"].as_array()?;
    checks.iter().find(|check| check["code"] == code)?["status"].as_str()
}

/// Checks that the message accounting of a record adds up, with plausible counts.
pub fn books(record: &Value) -> Result<(), String> {
    let delivery = &record["delivery"];
    let count = |name: &str| delivery[name].as_u64().ok_or(format!("no count `{name}`: {delivery}"));
    let sum =
        |names: &[&str]| names.iter().try_fold(0u64, |sum, name| Ok::<_, String>(sum.saturating_add(count(name)?)));
    let left_us = sum(&["sent", "skipped_planned", "skipped_disconnected", "refused", "unsent"])?;
    if left_us != count("offered")? {
        return Err(format!("the sending side does not close: {delivery}"));
    }
    if sum(&["delivered", "lost", "unknown"])? != count("expected")? {
        return Err(format!("the receiving side does not close: {delivery}"));
    }
    let latencies = record["latency"]["total"]["upper"]["count"].as_u64().unwrap_or(0);
    // Between processes, messages that nobody sent are recognised only after they were measured; then V26 names them.
    let delivered = sum(&["delivered", "delivered_after_refusal", "unmatched"])?;
    if latencies > delivered && status_of(record, "V26") != Some("invalid") {
        return Err(format!("{latencies} latencies of fewer deliveries: {delivery}"));
    }
    let counts = delivery.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_u64());
    match counts.max() {
        Some(largest) if largest > LARGEST_COUNT => Err(format!("a count of {largest}: {delivery}")),
        _ => Ok(()),
    }
}
