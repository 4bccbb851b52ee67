//! TCP on a lossy link: loss, delay and retransmission together have the throughput that theory predicts.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{core, delayed, network, stop};
use pubmark_links::sockets;
use pubmark_model::link::{Conditions, Loss, Rate};

/// Bits a second that a connection of group 0 carries for `time`, by what the receiver read.
fn goodput(network: &pubmark_links::network::Network, control: &str, time: Duration) -> f64 {
    let listener = network.core().enter(|| TcpListener::bind(core(false, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let mut sender = network.group(0).unwrap().enter(|| TcpStream::connect(address)).unwrap().unwrap();
    sockets::set_congestion_control(sender.as_fd(), control).unwrap();
    assert_eq!(sockets::congestion_control(sender.as_fd()).unwrap(), control);
    let (mut receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(common::PATIENCE)).unwrap();
    sender.set_write_timeout(Some(common::PATIENCE)).unwrap();
    std::thread::scope(|scope| {
        let end = Instant::now() + time;
        scope.spawn(move || {
            let block = [0; 16_384];
            while Instant::now() < end && sender.write_all(&block).is_ok() {}
            // Closed hard, so that what is still queued doesn't count.
        });
        let (start, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 65_536]);
        while Instant::now() < end {
            match receiver.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => bytes += length,
            }
        }
        bytes as f64 * 8.0 / start.elapsed().as_secs_f64()
    })
}

#[test]
fn cubic_on_a_lossy_link_carries_what_the_formula_says() {
    let lossless = delayed(Duration::from_millis(5));
    let Some(network) = network(&[Conditions { loss: Loss::Random(0.01), ..lossless }]) else { return };
    let measured = goodput(&network, "cubic", Duration::from_secs(4));
    // Mathis, Semke, Mahdavi, Ott (CCR 1997): MSS/RTT · √(3/2)/√p, the acknowledgements that are lost being cumulative.
    let expected = 1_448.0 * 8.0 / 0.010 * libm::sqrt(1.5) / libm::sqrt(0.01);
    println!(
        "cubic at 1 % loss and 10 ms: {:.1} Mbit/s measured, {:.1} by the formula",
        measured / 1e6,
        expected / 1e6
    );
    assert!(measured > expected / 2.0 && measured < expected * 2.0, "{measured} for {expected}");
    stop(network);
}

#[test]
fn tcp_fills_a_bottleneck() {
    let rate = Some(Rate { bits_per_second: 10_000_000, queue_bytes: 64_000 });
    let Some(network) = network(&[Conditions { rate, ..delayed(Duration::from_millis(5)) }]) else { return };
    let measured = goodput(&network, "cubic", Duration::from_secs(3));
    println!("cubic at 10 Mbit/s: {:.2} Mbit/s of goodput", measured / 1e6);
    // Headers take 52 of 1,500 B; the start and the queue's drops cost some more.
    assert!(measured > 8.5e6 && measured < 9.66e6, "{measured}");
    let link = stop(network).snapshot.links[0];
    assert!(link.up.queue_high_water_bytes <= 64_000);
}
