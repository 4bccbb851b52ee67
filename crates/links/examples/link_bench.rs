//! What links cost: round trips, packets a second and CPU beside loopback and a veth pair, and how long a socket in
//! another namespace takes. `cargo run --release -p pubmark-links --example link_bench`, as root.
#![allow(clippy::print_stdout, reason = "its result goes to standard output")]
#![allow(clippy::unwrap_used, reason = "an example that cannot run shows why")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pubmark_links::namespace::Namespace;
use pubmark_links::network::{Network, Settings};
use pubmark_links::watch::{Watch, WatchSpec};
use pubmark_links::{addresses, privilege};
use pubmark_model::link::{Conditions, Link};
use pubmark_protocol::sampling::Sampling;
use pubmark_protocol::{datagram, header};

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').next().unwrap_or("?").to_owned()
}

/// Puts the calling thread under SCHED_FIFO, below the emulator.
fn realtime() {
    // SAFETY: numbers alone, of which zero is one; musl has more of them than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 5;
    // SAFETY: a live sched_param; 0 names the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) };
}

fn network(groups: usize, realtime: bool) -> Network {
    let links = (0..groups).map(|group| Link::symmetric(&format!("group {group}"), Conditions::default())).collect();
    Network::start(Settings { realtime, ..Settings::new(links, 1) }).unwrap()
}

/// The same with an observer that looks for messages in every packet, and finds one in each.
fn watched_network(groups: usize) -> Network {
    let links = (0..groups).map(|group| Link::symmetric(&format!("group {group}"), Conditions::default())).collect();
    let watch = Watch::new();
    watch.order(WatchSpec {
        run: RUN,
        sampling: Sampling::one_in(1),
        payload_bytes: [64].into(),
        duration_ns: u64::MAX / 4,
        most: 800_000,
    });
    watch.begin(1);
    Network::start_observed(Settings::new(links, 1), watch.watcher()).unwrap()
}

/// Number of the run in the headers of messages.
const RUN: u32 = 0x1234_5678;

/// A message of 64 B.
fn message() -> [u8; 64] {
    let mut bytes = Vec::new();
    header::write(&mut bytes, 64, RUN, 0, 1, 2);
    bytes.resize(64, 0);
    std::array::from_fn(|index| bytes[index])
}

/// TCP requests and replies of 64 B: prints quantiles of the round trip.
fn round_trips(name: &str, server: &Namespace, client: &Namespace, address: IpAddr, punctual: bool) {
    let listener = server.enter(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let target = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        if punctual {
            realtime();
        }
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut block = [0; 64];
        while stream.read_exact(&mut block).is_ok() {
            stream.write_all(&block).unwrap();
        }
    });
    let client = client.clone();
    let asking = std::thread::spawn(move || {
        if punctual {
            realtime();
        }
        let mut stream = client.enter(|| TcpStream::connect(target)).unwrap().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut block = message();
        let mut times = Vec::new();
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end && times.len() < 20_000 {
            let start = Instant::now();
            stream.write_all(&block).unwrap();
            stream.read_exact(&mut block).unwrap();
            times.push(start.elapsed().as_nanos() as u64);
        }
        times
    });
    let mut times = asking.join().unwrap();
    serving.join().unwrap();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "{name:<44} min {:>6.1}  p50 {:>6.1}  p99 {:>7.1}  p99.9 {:>8.1} µs  ({} round trips, load {})",
        at(0.0),
        at(0.5),
        at(0.99),
        at(0.999),
        times.len(),
        load()
    );
}

/// Namespaces with a veth pair between them.
fn veth() -> (Namespace, Namespace) {
    let (left, right) = (Namespace::create("left").unwrap(), Namespace::create("right").unwrap());
    let ip = |inside: &Namespace, arguments: &str| {
        let mut command = Command::new("ip");
        command.args(arguments.split(' '));
        inside.contain(&mut command);
        assert!(command.status().unwrap().success(), "ip {arguments}");
    };
    // `ip` names the other namespace by a thread in it.
    let (send, receive) = mpsc::channel();
    let (end, wait) = mpsc::channel::<()>();
    let parked = right
        .spawn("parked", move || {
            // SAFETY: no pointers; the number of the calling thread.
            send.send(unsafe { libc::gettid() }).unwrap();
            let _ = wait.recv();
        })
        .unwrap();
    let thread = receive.recv().unwrap();
    ip(&left, &format!("link add veth0 type veth peer name veth1 netns {thread}"));
    ip(&left, "addr add 198.18.0.1/24 dev veth0");
    ip(&left, "link set veth0 up");
    ip(&right, "addr add 198.18.0.2/24 dev veth1");
    ip(&right, "link set veth1 up");
    drop(end);
    parked.join().unwrap().unwrap();
    (left, right)
}

/// Datagrams of 64 B as fast as one sender can, for two seconds.
fn flood(name: &str, receiver: &Namespace, sender: &Namespace, address: IpAddr, network: Option<Network>) {
    let socket = receiver.enter(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    datagram::enlarge_receive_buffer(socket.as_fd(), 64 << 20).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let target = socket.local_addr().unwrap();
    let counting = std::thread::spawn(move || {
        let (mut count, mut buffer) = (0u64, [0; 100]);
        while socket.recv(&mut buffer).is_ok() {
            count += 1;
        }
        (count, datagram::overflowed(socket.as_fd()).unwrap())
    });
    let bind = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = sender.enter(|| UdpSocket::bind(bind.parse::<SocketAddr>().unwrap())).unwrap().unwrap();
    socket.connect(target).unwrap();
    let (start, block) = (Instant::now(), message());
    let mut sent = 0u64;
    while start.elapsed() < Duration::from_secs(2) {
        for _ in 0..32 {
            sent += u64::from(socket.send(&block).is_ok());
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (received, overflow) = counting.join().unwrap();
    print!(
        "{name:<44} sent {:>7.0}/s, received {received} of {sent}, receiver's own overflow {overflow}, load {}",
        sent as f64 / seconds,
        load()
    );
    if let Some(network) = network {
        let last = network.stop().unwrap();
        let packets = last.snapshot.links[0].up.arrived.packets.max(1);
        print!(
            "; unasked drops {}, {} ns CPU a packet, SCHED_FIFO {}",
            last.unexpected_drops(),
            last.snapshot.cpu_ns / packets,
            last.snapshot.realtime
        );
    }
    println!();
}

/// Bulk TCP for two seconds.
fn bulk(name: &str, receiver: &Namespace, sender: &Namespace, address: IpAddr) {
    let listener = receiver.enter(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let target = listener.local_addr().unwrap();
    let mut stream = sender.enter(|| TcpStream::connect(target)).unwrap().unwrap();
    let reading = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut bytes, mut buffer) = (0u64, vec![0; 1 << 18]);
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            bytes += length as u64;
        }
        bytes
    });
    let start = Instant::now();
    let block = vec![0; 1 << 17];
    while start.elapsed() < Duration::from_secs(2) {
        stream.write_all(&block).unwrap();
    }
    drop(stream);
    let bytes = reading.join().unwrap();
    println!("{name:<44} {:.2} Gbit/s, load {}", bytes as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9, load());
}

/// 1,000 TCP sockets by each of `threads`, in one of `places`: by entering, and by asking a thread that lives there.
fn socket_making(network: &Network, threads: usize) {
    const EACH: usize = 1_000;
    let make_plain = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let timed = |name: &str, work: &(dyn Fn(usize) + Sync)| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || work(thread));
            }
        });
        let each = start.elapsed().as_nanos() as f64 / (threads * EACH) as f64 / 1e3;
        println!("{threads} thread(s), {EACH} sockets each, {name:<28} {each:.2} µs a socket (wall), load {}", load());
    };
    timed("at home", &|_| (0..EACH).for_each(|_| drop(make_plain())));
    timed("Namespace::enter", &|thread| {
        let namespace = network.group(thread % network.groups()).unwrap();
        (0..EACH).for_each(|_| drop(namespace.enter(make_plain).unwrap()));
    });
    let helpers: Vec<_> = (0..network.groups())
        .map(|group| {
            let (ask, asked) = mpsc::channel::<mpsc::SyncSender<UdpSocket>>();
            let helper = network.group(group).unwrap().spawn("helper", move || {
                for reply in asked {
                    let _ = reply.send(UdpSocket::bind("127.0.0.1:0").unwrap());
                }
            });
            (ask, helper.unwrap())
        })
        .collect();
    let targets: Vec<std::sync::Mutex<mpsc::Sender<_>>> =
        helpers.iter().map(|(ask, _)| std::sync::Mutex::new(ask.clone())).collect();
    timed("a helper thread a namespace", &|thread| {
        let ask = targets[thread % targets.len()].lock().unwrap().clone();
        for _ in 0..EACH {
            let (reply, answer) = mpsc::sync_channel(1);
            ask.send(reply).unwrap();
            drop(answer.recv().unwrap());
        }
    });
    drop(targets);
    for (ask, helper) in helpers {
        drop(ask);
        helper.join().unwrap().unwrap();
    }
}

fn main() {
    if let Some(missing) = privilege::probe().missing() {
        return println!("skipped: {missing}");
    }
    println!("{:?}", privilege::probe());
    let start = Instant::now();
    let star = network(10, true);
    println!("10 groups set up in {:?}", start.elapsed());
    let (core, group) = (star.core().clone(), star.group(0).unwrap().clone());
    let (left, right) = veth();
    let loopback = IpAddr::from([127, 0, 0, 1]);
    for punctual in [false, true] {
        let with = if punctual { ", ends SCHED_FIFO" } else { "" };
        round_trips(&format!("loopback{with}"), &core, &core, loopback, punctual);
        round_trips(&format!("veth{with}"), &left, &right, [198, 18, 0, 1].into(), punctual);
        round_trips(&format!("star IPv4{with}"), &core, &group, addresses::CORE_V4.into(), punctual);
        round_trips(&format!("star IPv6{with}"), &core, &group, addresses::CORE_V6.into(), punctual);
    }
    bulk("TCP over loopback", &core, &core, loopback);
    bulk("TCP over veth", &left, &right, [198, 18, 0, 1].into());
    bulk("TCP over the star", &core, &group, addresses::CORE_V4.into());
    socket_making(&star, 1);
    socket_making(&star, 8);
    let last = star.stop().unwrap();
    println!("unexpected drops so far: {}", last.unexpected_drops());
    flood("UDP 64 B over loopback", &core, &core, loopback, None);
    flood("UDP 64 B over veth", &left, &right, [198, 18, 0, 1].into(), None);
    let star = watched_network(1);
    let (core, group) = (star.core().clone(), star.group(0).unwrap().clone());
    flood("UDP 64 B over the star, watched", &core, &group, addresses::CORE_V4.into(), Some(star));
    let star = watched_network(1);
    let (core, group) = (star.core().clone(), star.group(0).unwrap().clone());
    for _ in 0..2 {
        round_trips("star IPv4, watched", &core, &group, addresses::CORE_V4.into(), false);
    }
    drop(star);
    for realtime in [true, false] {
        let star = network(1, realtime);
        let (core, group) = (star.core().clone(), star.group(0).unwrap().clone());
        let name = format!("UDP 64 B over the star, SCHED_FIFO {realtime}");
        flood(&name, &core, &group, addresses::CORE_V4.into(), Some(star));
        let star = network(1, realtime);
        let (core, group) = (star.core().clone(), star.group(0).unwrap().clone());
        round_trips(&format!("star IPv4, SCHED_FIFO {realtime}"), &core, &group, addresses::CORE_V4.into(), false);
        drop(star);
    }
}
