//! Leftovers of RustDDS after its clients. The test has its own process, whose threads and files it reads.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pubmark_adapters::dds::RustClients;
use pubmark_conformance::dds::Domain;
use pubmark_conformance::deadline::Deadline;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_model::qos::Qos;

/// Number of rounds of clients, after one that is not counted because resources are allocated once.
const ROUNDS: usize = 4;
/// Longest time that clients may take to end.
const LONGEST: Duration = Duration::from_secs(5);

fn entries(folder: &str) -> BTreeSet<String> {
    let names = std::fs::read_dir(folder).unwrap().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Threads, and open files.
fn held() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"].map(|folder| entries(folder).len())
}

/// Clients with matched writers and readers; returns the duration of their end.
fn connect_and_disconnect() -> Duration {
    let mut peer = Peer::<RustClients>::open(Domain::free().at());
    peer.join(subscriber("left-in", "left/+", Qos::AtLeastOnce));
    let sender: Vec<_> = (0..5)
        .map(|index| peer.join(publisher(&format!("left-out-{index}"), &format!("left/{index}"), Qos::AtLeastOnce)))
        .collect();
    for one in sender {
        peer.send(one, 100);
    }
    peer.wait("all", |record| record.arrived.len() == 5 && record.acknowledged() == 5);
    let begin = Instant::now();
    drop(peer);
    begin.elapsed()
}

#[test]
fn threads_and_sockets_end_with_the_clients() {
    let _deadline = Deadline::start("RustDDS");
    connect_and_disconnect();
    let before = held();
    let longest = (0..ROUNDS).map(|_| connect_and_disconnect()).max().unwrap();
    // The entry of a joined thread may remain for a moment: now, and at the earlier count.
    let is_more = |after: [usize; 2]| after.iter().zip(before).any(|(after, before)| *after > before);
    let deadline = Instant::now() + LONGEST;
    while is_more(held()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let after = held();
    eprintln!("threads and files {before:?} before, {after:?} after {ROUNDS} rounds; an end takes at most {longest:?}");
    assert!(!is_more(after), "{after:?} held, {before:?} before");
    assert!(longest < LONGEST, "{longest:?}");
}
