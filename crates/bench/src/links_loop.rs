//! Cost of emulated links without impairment: round trips over loopback and over the star, and packet rate without a
//! drop.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use pubmark_links::namespace::Namespace;
use pubmark_links::network::{Network, Settings};
use pubmark_links::{addresses, privilege};
use pubmark_model::link::{Conditions, Link};
use pubmark_protocol::datagram;
use serde::{Deserialize, Serialize};

/// Round trips of a measurement.
const ROUND_TRIPS: usize = 20_000;
/// Round trips at the start that are discarded, while the machine wakes up.
const FIRST: usize = 1_000;
/// Packet rates that are tried, per second, ascending.
const RATES: [u32; 5] = [100_000, 125_000, 150_000, 200_000, 250_000];
/// Duration of each rate.
const TRY: Duration = Duration::from_secs(2);
/// Interval between bursts of packets.
const BURSTS: Duration = Duration::from_micros(500);
const PACKET: [u8; 64] = [7; 64];

/// The result.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LinkCost {
    /// Round trip of 64 B by TCP over loopback, µs: p50, p99.
    pub loopback_us: [f64; 2],
    /// The same over the star.
    pub star_us: [f64; 2],
    /// Highest of [`RATES`] without a drop, packets per second; 0 if there is none.
    pub packets_per_s: f64,
    /// CPU time of the emulator per packet at that rate, ns.
    pub cpu_ns: f64,
    /// Did the emulator get SCHED_FIFO?
    pub realtime: bool,
}

/// Measures once.
pub fn run(_: &()) -> Result<LinkCost, String> {
    if let Some(missing) = privilege::probe().missing() {
        return Err(missing);
    }
    let network = network()?;
    let (core, group) = (network.core().clone(), ends(&network)?);
    let mut found = LinkCost {
        loopback_us: round_trips(&core, &core, [127, 0, 0, 1].into())?,
        star_us: round_trips(&core, &group, addresses::CORE_V4.into())?,
        ..LinkCost::default()
    };
    let last = network.stop().map_err(|error| error.to_string())?;
    if last.unexpected_drops() > 0 {
        return Err(format!("round trips lost {} packets", last.unexpected_drops()));
    }
    found.realtime = last.snapshot.realtime;
    for rate in RATES {
        let Some(cpu_ns) = offer(rate)? else { break };
        (found.packets_per_s, found.cpu_ns) = (f64::from(rate), cpu_ns);
    }
    Ok(found)
}

fn network() -> Result<Network, String> {
    let links = vec![Link::symmetric("bench", Conditions::default())];
    Network::start(Settings { realtime: true, ..Settings::new(links, 1) }).map_err(|error| error.to_string())
}

fn ends(network: &Network) -> Result<Namespace, String> {
    network.group(0).cloned().ok_or_else(|| "a network without a group".to_owned())
}

fn within<T>(namespace: &Namespace, make: impl FnOnce() -> std::io::Result<T>) -> Result<T, String> {
    namespace.enter(make).map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// p50 and p99 of requests and replies, µs.
fn round_trips(server: &Namespace, client: &Namespace, address: IpAddr) -> Result<[f64; 2], String> {
    let listener = within(server, || TcpListener::bind((address, 0)))?;
    let target = listener.local_addr().map_err(|error| error.to_string())?;
    let serving = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut block = [0; 64];
        while stream.read_exact(&mut block).is_ok() {
            stream.write_all(&block)?;
        }
        Ok(())
    });
    let mut stream = within(client, || TcpStream::connect(target))?;
    let ask = |stream: &mut TcpStream| -> std::io::Result<Vec<u64>> {
        stream.set_nodelay(true)?;
        let mut block = PACKET;
        (0..ROUND_TRIPS)
            .map(|_| {
                let start = Instant::now();
                stream.write_all(&block)?;
                stream.read_exact(&mut block)?;
                Ok(start.elapsed().as_nanos() as u64)
            })
            .collect()
    };
    let mut times = ask(&mut stream).map_err(|error| error.to_string())?.split_off(FIRST);
    drop(stream);
    serving.join().map_err(|_| "the server ended")?.map_err(|error| error.to_string())?;
    times.sort_unstable();
    Ok([0.5, 0.99].map(|share| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3))
}

/// Offers packets at a rate; returns the CPU time of the emulator per packet, ns, if all arrived.
fn offer(rate: u32) -> Result<Option<f64>, String> {
    let network = network()?;
    let group = ends(&network)?;
    let receiver = within(network.core(), || UdpSocket::bind(SocketAddr::new(addresses::CORE_V4.into(), 0)))?;
    let words = |error: std::io::Error| error.to_string();
    datagram::enlarge_receive_buffer(receiver.as_fd(), 64 << 20).map_err(words)?;
    receiver.set_read_timeout(Some(Duration::from_millis(500))).map_err(words)?;
    let target = receiver.local_addr().map_err(words)?;
    let counting = std::thread::spawn(move || {
        let (mut count, mut buffer) = (0u64, [0; 100]);
        while receiver.recv(&mut buffer).is_ok() {
            count += 1;
        }
        count
    });
    let sender = within(&group, || UdpSocket::bind("0.0.0.0:0"))?;
    sender.connect(target).map_err(words)?;
    let (start, mut sent) = (Instant::now(), 0u64);
    while start.elapsed() < TRY {
        let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        while sent < due {
            sender.send(&PACKET).map_err(words)?;
            sent += 1;
        }
        std::thread::sleep(BURSTS);
    }
    let received = counting.join().map_err(|_| "the receiver ended")?;
    let last = network.stop().map_err(|error| error.to_string())?;
    let is_complete = last.unexpected_drops() == 0 && received == sent;
    Ok(is_complete.then(|| last.snapshot.cpu_ns as f64 / sent.max(1) as f64))
}
