//! What is left of RustDDS when its clients are gone. Alone in its process, as it reads the process' own threads and files.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pubmark_adapters::dds::RustClients;
use pubmark_conformance::dds::Domain;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_model::qos::Qos;

/// Times that clients come and go, after one that is not counted: what is needed once stays.
const ROUNDS: usize = 4;
/// Longest time in which clients may end.
const LONGEST: Duration = Duration::from_secs(5);

fn entries(folder: &str) -> BTreeSet<String> {
    let names = std::fs::read_dir(folder).unwrap().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Threads, and open files.
fn held() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"].map(|folder| entries(folder).len())
}

/// Clients with writers and readers that have met; gives how long their end took.
fn come_and_go() -> Duration {
    let mut peer = Peer::<RustClients>::open(Domain::free().at());
    peer.join(subscriber("left-in", "left/+", Qos::AtLeastOnce));
    let says: Vec<_> = (0..5)
        .map(|index| peer.join(publisher(&format!("left-out-{index}"), &format!("left/{index}"), Qos::AtLeastOnce)))
        .collect();
    for one in says {
        peer.send(one, 100);
    }
    peer.wait("all", |record| record.arrived.len() == 5 && record.acknowledged() == 5);
    let begin = Instant::now();
    drop(peer);
    begin.elapsed()
}

#[test]
fn threads_and_sockets_end_with_the_clients() {
    come_and_go();
    let before = held();
    let longest = (0..ROUNDS).map(|_| come_and_go()).max().unwrap();
    // A thread is joined, and its entry may be there for a moment more: now, and when it was counted before.
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
