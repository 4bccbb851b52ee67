//! A row of a table, and what must come of it.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pubmark_testing::assert_count;
use serde_json::Value;

use crate::call::{Called, call};
use crate::server::{Server, Step};

/// Cases of a table under way at once: most of them wait.
const AT_ONCE: usize = 12;
/// Most memory that a call may take, bytes: a run this small takes 60 MB.
const MOST_MEMORY_BYTES: u64 = 400 << 20;
/// Largest count that can be right in a run of seconds: what wrapped around is far above it.
const LARGEST_COUNT: u64 = 1 << 40;

/// What a case must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// No client gets in: exit code 6.
    NobodyIn,
    /// A run that is invalid: exit code 5.
    Invalid,
    /// No client gets in, or a run whose verdict is not *valid*: the clock decides which.
    NeverValid,
    /// No client gets in, or a run with any verdict: whether the server grants what it does not carry is a matter of time. Each such case
    /// says why.
    NoGood,
    /// A run that counts what the server did, good or bad: exit code 0 or 5.
    Counted,
}

/// A row.
pub struct Case {
    /// What the server does, in a few words.
    pub name: &'static str,
    /// Its part of every conversation.
    pub steps: Vec<Step>,
    /// What must come of it.
    pub ends: Ends,
}

/// A row, shorter.
pub fn case(name: &'static str, ends: Ends, steps: Vec<Step>) -> Case {
    Case { name, steps, ends }
}

/// How a table's runs are called.
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

    /// Runs all cases, some at a time, and fails with all that went wrong.
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

/// Is a call what it must be, and sound in all else?
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

/// What a server did not carry was not delivered, whatever it says instead.
pub fn nothing_delivered(called: &Called) -> Result<(), String> {
    let Some(record) = called.record() else { return Ok(()) };
    match record["delivery"]["delivered"].as_u64() {
        Some(0) => Ok(()),
        _ => Err(format!("messages that nobody carried were delivered: {}", record["delivery"])),
    }
}

/// What holds whatever a peer does.
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

/// Do the books of a record close, with counts that can be?
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
    if latencies > sum(&["delivered", "delivered_after_refusal", "unmatched"])? {
        return Err(format!("{latencies} latencies of fewer deliveries: {delivery}"));
    }
    let counts = delivery.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_u64());
    match counts.max() {
        Some(largest) if largest > LARGEST_COUNT => Err(format!("a count of {largest}: {delivery}")),
        _ => Ok(()),
    }
}
