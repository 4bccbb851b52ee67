//! The relay between links and a system that runs already: what it carries, ends, refuses and counts. It serves on a thread here; the
//! process that it has in a run is of the program's own tests. Both sides are on this machine's loopback.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_links::namespace::Namespace;
use pubmark_links::relay::{Relay, RelayError, pair, serve};
use pubmark_testing::assert_count_eq;

const WITHIN: Duration = Duration::from_secs(10);
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Where clients connect: an address of its own, as the system has the same port.
const THERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A relay looks up the host `slow`, and does nothing else until it may go on.
static IS_BUSY: AtomicBool = AtomicBool::new(false);
static MAY_GO_ON: AtomicBool = AtomicBool::new(false);

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    if host == "slow" {
        IS_BUSY.store(true, Ordering::Release);
        let began = Instant::now();
        while !MAY_GO_ON.load(Ordering::Acquire) && began.elapsed() < WITHIN {
            thread::sleep(Duration::from_millis(1));
        }
    }
    if host == "here" { Ok((HERE, port).into()) } else { Err(format!("no `{host}`")) }
}

fn relay() -> Relay {
    let [ours, theirs] = pair().unwrap();
    thread::spawn(move || serve(theirs, resolve).unwrap());
    Relay::new(ours)
}

fn towards(relay: &Relay, to: SocketAddr) -> SocketAddr {
    relay.listen(&Namespace::current().unwrap(), THERE.into(), to).unwrap()
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to, WITHIN).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    stream.set_write_timeout(Some(WITHIN)).unwrap();
    stream
}

/// A connection through a relay, and its other end.
fn both(relay: &Relay) -> (TcpStream, TcpStream) {
    let system = TcpListener::bind((HERE, 0)).unwrap();
    let client = connect(towards(relay, system.local_addr().unwrap()));
    let (server, _) = system.accept().unwrap();
    server.set_read_timeout(Some(WITHIN)).unwrap();
    server.set_write_timeout(Some(WITHIN)).unwrap();
    (client, server)
}

#[test]
fn bytes_go_both_ways_and_are_counted_with_the_time_that_they_took() {
    let relay = relay();
    let (mut client, mut server) = both(&relay);
    let mut buffer = [0; 100];
    for round in 0..200u8 {
        client.write_all(&[round; 100]).unwrap();
        server.read_exact(&mut buffer).unwrap();
        assert_eq!(buffer, [round; 100]);
        server.write_all(&[round; 50]).unwrap();
        client.read_exact(&mut buffer[..50]).unwrap();
    }
    let counts = relay.counts().unwrap();
    assert_count_eq!((counts.connections, counts.refused), (1, 0));
    assert_eq!((counts.up.bytes, counts.down.bytes), (20_000, 10_000));
    assert_eq!((counts.up.reads, counts.down.reads), (200, 200));
    // The kernel switches its stamps on in the background: the first reads may come without.
    assert!(counts.up.added.count() > 100 && counts.up.added.count() <= 200, "{}", counts.up.added.count());
    let median_ns = counts.up.added.quantile_ns(0.5).unwrap();
    assert!((500..10_000_000).contains(&median_ns), "{median_ns} ns");
    assert!(counts.cpu_ns > 0);
}

#[test]
fn connections_of_pubmarks_own_are_carried_and_not_counted() {
    let relay = relay();
    let exporter = TcpListener::bind((HERE, 0)).unwrap();
    let here = Namespace::current().unwrap();
    let at = relay.listen_for_own(&here, THERE.into(), exporter.local_addr().unwrap()).unwrap();
    let mut client = connect(at);
    let (mut server, _) = exporter.accept().unwrap();
    client.write_all(&[1; 100]).unwrap();
    server.set_read_timeout(Some(WITHIN)).unwrap();
    server.read_exact(&mut [0; 100]).unwrap();
    server.write_all(&[1; 50]).unwrap();
    client.read_exact(&mut [0; 50]).unwrap();
    // Until the buffer of the other end, which reads nothing, is full.
    client.set_nonblocking(true).unwrap();
    let (began, mut sent) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(200) {
        sent += client.write(&[7; 65_536]).unwrap_or(0);
    }
    assert!(sent > 0);
    drop(exporter);
    let refused = TcpStream::connect_timeout(&at, WITHIN).and_then(|mut client| client.read(&mut [0; 1]));
    assert!(refused.is_err(), "{refused:?}");
    let counts = relay.counts().unwrap();
    assert_count_eq!((counts.connections, counts.refused, counts.exhausted), (0, 0, 0));
    assert_eq!([counts.up.bytes, counts.up.reads, counts.down.bytes, counts.down.reads], [0; 4]);
    assert_eq!((counts.up.added.count(), counts.longest_held_ns), (0, 0));
    assert_eq!(relay.waiting_bytes().unwrap(), 0);
    // A client of the system is counted beside it.
    let (mut client, mut server) = both(&relay);
    client.write_all(&[1; 10]).unwrap();
    server.read_exact(&mut [0; 10]).unwrap();
    let counts = relay.counts().unwrap();
    assert_count_eq!(counts.connections, 1);
    assert_eq!((counts.up.bytes, counts.down.bytes), (10, 0));
    assert!(counts.longest_held_ns > 0);
}

#[test]
fn no_byte_is_held_longer_than_it_says() {
    let relay = relay();
    let (mut client, mut server) = both(&relay);
    for _ in 0..50 {
        client.write_all(&[1; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
    }
    let mut before = relay.counts().unwrap();
    let (mut held_ns, mut passed_ns) = (vec![], vec![]);
    for _ in 0..300 {
        // Time without anything to carry is no hold.
        thread::sleep(Duration::from_millis(1));
        let sent = std::time::Instant::now();
        client.write_all(&[1; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
        passed_ns.push(sent.elapsed().as_nanos() as u64);
        let counts = relay.counts().unwrap();
        // A sample is in a bucket that is 1/32 wide.
        let added_ns = counts.up.added.since(&before.up.added).buckets().map(|(ns, _)| ns - ns / 32).max().unwrap_or(0);
        assert!(counts.longest_held_ns >= added_ns, "{} < {added_ns}", counts.longest_held_ns);
        held_ns.push(counts.longest_held_ns);
        before = counts;
    }
    // The whole way, with both our ends, takes longer than the relay's part. The machine may stop the relay behind its write, so that
    // this holds for most rounds, not for each.
    held_ns.sort_unstable();
    passed_ns.sort_unstable();
    assert!(held_ns[150] <= passed_ns[150] + 20_000, "{} > {}", held_ns[150], passed_ns[150]);
}

#[test]
fn a_half_closed_stream_continues_in_the_other_direction() {
    let relay = relay();
    let (mut client, mut server) = both(&relay);
    client.write_all(b"last words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = String::new();
    server.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "last words");
    server.write_all(&[7; 300_000]).unwrap();
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 300_000);
}

#[test]
fn a_receiver_that_does_not_read_holds_its_sender_and_nothing_is_lost() {
    let relay = relay();
    let (mut client, mut server) = both(&relay);
    let (mut other_client, mut other_server) = both(&relay);
    let sender = thread::spawn(move || {
        let block: Vec<u8> = (0..1_000_000u32).map(|at| at as u8).collect();
        (0..40).for_each(|_| client.write_all(&block).unwrap());
    });
    thread::sleep(Duration::from_millis(300));
    assert!(!sender.is_finished(), "40 MB went to nobody");
    // Others are carried meanwhile.
    other_client.write_all(b"hello").unwrap();
    other_server.read_exact(&mut [0; 5]).unwrap();
    let mut all = Vec::new();
    server.read_to_end(&mut all).unwrap();
    sender.join().unwrap();
    assert_eq!(all.len(), 40_000_000);
    assert!(all.chunks(1_000_000).all(|block| block.iter().enumerate().all(|(at, byte)| *byte == at as u8)));
}

#[test]
fn a_system_that_takes_no_connection_resets_the_client_s() {
    let relay = relay();
    let free = TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap();
    // The reset may come before the connect is looked at.
    let connected = TcpStream::connect_timeout(&towards(&relay, free), WITHIN);
    let error = connected.and_then(|mut client| client.read(&mut [0; 1])).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_count_eq!(relay.counts().unwrap().refused, 1);
}

#[test]
fn a_connection_that_is_reset_is_reset_on_the_other_side() {
    let relay = relay();
    let (client, mut server) = both(&relay);
    // Closed with bytes unread, a socket resets its connection.
    server.write_all(b"unread").unwrap();
    thread::sleep(Duration::from_millis(100));
    drop(client);
    let error = server.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_thousand_connections_carry_their_own() {
    let relay = relay();
    let system = TcpListener::bind((HERE, 0)).unwrap();
    let at = towards(&relay, system.local_addr().unwrap());
    let serving = thread::spawn(move || {
        let all: Vec<TcpStream> = (0..1_000).map(|_| system.accept().unwrap().0).collect();
        for mut one in all {
            let mut word = [0; 4];
            one.read_exact(&mut word).unwrap();
            one.write_all(&word).unwrap();
        }
    });
    let mut clients: Vec<TcpStream> = (0..1_000).map(|_| connect(at)).collect();
    for (number, client) in (0u32..).zip(&mut clients) {
        client.write_all(&number.to_be_bytes()).unwrap();
    }
    for (number, client) in (0u32..).zip(&mut clients) {
        let mut word = [0; 4];
        client.read_exact(&mut word).unwrap();
        assert_eq!(u32::from_be_bytes(word), number);
    }
    serving.join().unwrap();
    assert_eq!(relay.counts().unwrap().connections, 1_000);
}

#[test]
fn datagrams_find_their_way_back() {
    let relay = relay();
    let system = UdpSocket::bind((HERE, 0)).unwrap();
    system.set_read_timeout(Some(WITHIN)).unwrap();
    let at = towards(&relay, system.local_addr().unwrap());
    let clients: Vec<UdpSocket> = (0..5).map(|_| UdpSocket::bind((HERE, 0)).unwrap()).collect();
    for (number, client) in (0u8..).zip(&clients) {
        client.set_read_timeout(Some(WITHIN)).unwrap();
        client.send_to(&[number; 1_200], at).unwrap();
    }
    let mut buffer = [0; 2_000];
    for _ in 0..5 {
        let (bytes, from) = system.recv_from(&mut buffer).unwrap();
        assert_eq!(bytes, 1_200);
        system.send_to(&buffer[..1], from).unwrap();
    }
    for (number, client) in (0u8..).zip(&clients) {
        let (bytes, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((bytes, buffer[0], from), (1, number, at));
    }
    let counts = relay.counts().unwrap();
    assert_eq!((counts.connections, counts.up.bytes, counts.down.bytes), (5, 6_000, 5));
}

#[test]
fn every_datagram_is_forwarded_or_counted_as_dropped() {
    // Together 120 MB: more than the largest buffer holds, with or without the right to one of 16 MB (which the kernel doubles).
    const SENT: u64 = 2_000;
    const BYTES: usize = 60_000;
    let relay = relay();
    let system = UdpSocket::bind((HERE, 0)).unwrap();
    let at = towards(&relay, system.local_addr().unwrap());
    let client = UdpSocket::bind((HERE, 0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| relay.resolve("slow", 1));
        while !IS_BUSY.load(Ordering::Acquire) {
            thread::yield_now();
        }
        for _ in 0..SENT {
            client.send_to(&[7; BYTES], at).unwrap();
        }
        MAY_GO_ON.store(true, Ordering::Release);
    });
    let began = Instant::now();
    let accounted = || {
        let up = relay.counts().unwrap().up;
        up.reads + up.dropped
    };
    while accounted() < SENT && began.elapsed() < WITHIN {
        thread::sleep(Duration::from_millis(1));
    }
    assert_count_eq!(accounted(), SENT);
    assert!(relay.counts().unwrap().up.dropped > 0, "the buffer had room for all");
}

#[test]
fn threads_that_ask_at_once_get_their_own_responses() {
    let relay = relay();
    thread::scope(|scope| {
        for port in 1..=8 {
            let relay = &relay;
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(relay.resolve("here", port).unwrap(), SocketAddr::from((HERE, port)));
                }
            });
        }
    });
}

#[test]
fn bytes_that_their_receiver_has_not_read_wait_in_the_relay() {
    let relay = relay();
    let (client, mut server) = both(&relay);
    assert_eq!(relay.waiting_bytes().unwrap(), 0);
    // Until the buffer of the other end, which reads nothing, is full.
    client.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let began = Instant::now();
    while relay.waiting_bytes().unwrap() == 0 || began.elapsed() < Duration::from_millis(200) {
        assert!(began.elapsed() < WITHIN, "{sent} B, and none waits");
        sent += (&client).write(&[7; 65_536]).unwrap_or(0);
    }
    server.set_read_timeout(Some(WITHIN)).unwrap();
    let mut buffer = vec![0; 65_536];
    let mut received = 0;
    while received < sent {
        received += server.read(&mut buffer).unwrap();
    }
    let began = Instant::now();
    while relay.waiting_bytes().unwrap() > 0 {
        assert!(began.elapsed() < WITHIN, "everything has arrived");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_host_is_looked_up_by_the_relay() {
    let relay = relay();
    assert_eq!(relay.resolve("here", 1_883).unwrap(), SocketAddr::from((HERE, 1_883)));
    let refused = relay.resolve("nowhere", 1).unwrap_err();
    assert!(matches!(&refused, RelayError::Refused(why) if why == "no `nowhere`"), "{refused}");
}

#[test]
fn a_relay_that_ended_is_reported_as_such() {
    let [ours, theirs] = pair().unwrap();
    drop(theirs);
    assert!(matches!(Relay::new(ours).counts(), Err(RelayError::Disconnected(_))));
}

#[test]
fn a_relay_that_does_not_respond_during_a_run_is_given_up_after_3_s() {
    relay().check().unwrap();
    // As if it were stopped: the channel is open, and nobody reads it.
    let [ours, theirs] = pair().unwrap();
    let stopped = Relay::new(ours);
    let began = Instant::now();
    let found = stopped.check().unwrap_err();
    let waited = began.elapsed();
    assert_eq!(found.to_string(), "the relay between the links and the system was silent for 3 s");
    assert!(waited >= Duration::from_secs(3) && waited < WITHIN, "{waited:?}");
    let began = Instant::now();
    assert_eq!(stopped.counts().unwrap_err().to_string(), found.to_string());
    assert!(began.elapsed() < Duration::from_secs(1), "it is lost: nothing more is waited for");
    drop(theirs);
}

#[test]
fn a_relay_is_lost_for_the_same_reason_whoever_asks() {
    let [ours, theirs] = pair().unwrap();
    let stopped = Relay::new(ours);
    let reasons: Vec<String> = thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| stopped.check().unwrap_err().to_string())).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(reasons, ["the relay between the links and the system was silent for 3 s"; 4]);
    drop(theirs);
}

#[test]
fn a_relay_that_responds_again_serves_the_next_run() {
    let [ours, theirs] = pair().unwrap();
    let relay = Relay::new(ours);
    relay.check().unwrap_err();
    thread::spawn(move || serve(theirs, resolve).unwrap());
    assert!(relay.check().is_err(), "this run lacks what was not carried meanwhile");
    relay.forget().unwrap();
    relay.check().unwrap();
    assert_count_eq!(relay.counts().unwrap().connections, 0);
    assert_eq!(relay.resolve("here", 7).unwrap(), SocketAddr::from((HERE, 7)), "each request has its own response");
}
