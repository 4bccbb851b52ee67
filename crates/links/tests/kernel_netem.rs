//! The kernel's netem applies the conditions of links, if the kernel has it. Otherwise these tests are skipped;
//! `.ci/kernel-netem` runs them in a virtual machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test")]

mod common;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use common::{core_socket, delayed, group_socket, settings};
use pubmark_links::network::{BackEnd, Network, Settings};
use pubmark_links::verify::{Outcome, Property, verify};
use pubmark_links::{Direction, privilege};
use pubmark_model::link::{Conditions, Delay, Distribution, Loss, Rate, Step};
use pubmark_protocol::clock;
use pubmark_testing::assert_count_eq;

const MS: Duration = Duration::from_millis(1);

/// A network of the kernel's; `None`, with a skip, if it has no netem.
fn network(settings: Settings) -> Option<Network> {
    if let Err(why) = privilege::probe().kernel_netem {
        pubmark_testing::skip(why);
        return None;
    }
    Some(Network::start(Settings { back_end: BackEnd::KernelNetem, ..settings }).unwrap())
}

/// Ends the network; nothing was lost at an interface.
fn stop(network: Network) -> pubmark_links::network::Final {
    let last = network.stop().unwrap();
    assert_eq!(last.unexpected_drops(), 0, "{last:?}");
    last
}

fn cases() -> Vec<(&'static str, Conditions)> {
    let jitter =
        |distribution| Delay { mean_ns: 20_000_000, jitter_ns: 2_000_000, distribution, jitter_reorders: true };
    let bursts = Loss::GilbertElliott { to_bad: 0.02, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let rate = Some(Rate { bits_per_second: 1_000_000, queue_bytes: 64_000 });
    vec![
        ("20 ms and loss", Conditions { loss: Loss::Random(0.01), ..delayed(20 * MS) }),
        ("uniform jitter", Conditions { delay: jitter(Distribution::Uniform), ..Conditions::default() }),
        ("normal jitter", Conditions { delay: jitter(Distribution::Normal), ..Conditions::default() }),
        ("bursts", Conditions { loss: bursts, duplicate: 0.05, ..delayed(10 * MS) }),
        ("1 Mbit/s", Conditions { rate, ..delayed(20 * MS) }),
        ("down", Conditions { down: true, ..delayed(MS) }),
    ]
}

#[test]
fn probes_find_the_kernels_links_as_configured() {
    let conditions: Vec<Conditions> = cases().into_iter().map(|case| case.1).collect();
    let Some(network) = network(settings(&conditions)) else { return };
    let found = verify(&network).unwrap();
    assert_eq!(found.len(), 2 * conditions.len());
    for (index, verification) in found.iter().enumerate() {
        let name = cases()[index / 2].0;
        println!("verified {name}: {verification}");
        for check in &verification.checks {
            // Times are as good as the machine is idle, and a virtual one may be anything but.
            let late = check.property == Property::Delay && check.measured.is_some_and(|found| found > check.asked);
            let slow = check.property == Property::Rate;
            assert!(check.outcome != Outcome::Missed || late || slow, "{name}: {verification}");
        }
        let has = |property| verification.checks.iter().any(|check| check.property == property);
        assert!(has(Property::Unexpected) && (has(Property::Loss) || has(Property::Down)), "{verification}");
    }
    stop(network);
}

#[test]
fn a_rate_is_of_ip_packets_and_bounds_its_queue() {
    let rate = Some(Rate { bits_per_second: 800_000, queue_bytes: 15_000 });
    let Some(network) = network(settings(&[Conditions { rate, ..Conditions::default() }])) else { return };
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    let sent = clock::monotonic_ns();
    for _ in 0..30 {
        own.send_to(&[0; 972], peer.local_addr().unwrap()).unwrap();
    }
    // 1,000 bytes take 10 ms each; eleven fit, ten that wait and one in service.
    for _ in 0..11 {
        peer.recv(&mut [0; 2_000]).unwrap();
    }
    // From the first that was sent: who reads the first one late would see a shorter time, and a link that is too fast.
    let span_ms = (clock::monotonic_ns() - sent) as f64 / 1e6;
    println!("verified rate: 11 packets in {span_ms:.3} ms");
    assert!((110.0..135.0).contains(&span_ms), "{span_ms}");
    let up = stop(network).snapshot.links[0].up;
    assert_count_eq!(
        (up.arrived.packets, up.delivered.packets, up.lost.packets, up.waiting.packets),
        (30, 11, 19, 0),
        "{up:?}"
    );
    assert_count_eq!(up.arrived.bytes, 30_000, "IP bytes, without Ethernet's");
}

#[test]
fn losses_and_duplicates_are_as_frequent_as_configured() {
    let conditions = Conditions { loss: Loss::Random(0.05), ..Conditions::default() };
    let twice = Conditions { duplicate: 0.05, ..Conditions::default() };
    let Some(network) = network(settings(&[conditions, twice])) else { return };
    const SENT: u64 = 4_000;
    for group in [0, 1] {
        let (own, peer) = (group_socket(&network, group, false), core_socket(&network, false));
        for _ in 0..SENT {
            own.send_to(&[0; 100], peer.local_addr().unwrap()).unwrap();
        }
    }
    let links = stop(network).snapshot.links;
    let (lost, copies) = (links[0].up.lost.packets, links[1].up.delivered.packets - SENT);
    println!("verified shares: {lost} of {SENT} lost, {copies} twice");
    // Five standard deviations of the binomial distribution around 200 are 69.
    assert!((131..=269).contains(&lost) && (131..=269).contains(&copies), "{lost} {copies}");
    assert_count_eq!((links[0].up.arrived.packets, links[0].up.delivered.packets), (SENT, SENT - lost));
}

#[test]
fn steps_and_cuts_change_a_link_while_it_runs() {
    let mut settings = settings(&[delayed(MS)]);
    settings.links[0].up.push(Step { at_ns: 300_000_000, conditions: delayed(80 * MS) });
    let Some(network) = network(settings) else { return };
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    let travel = || {
        let sent = Instant::now();
        own.send_to(b"?", peer.local_addr().unwrap()).unwrap();
        peer.recv(&mut [0; 10]).unwrap();
        sent.elapsed()
    };
    assert!(travel() < 60 * MS);
    network.begin(clock::monotonic_ns()).unwrap();
    let deadline = Instant::now() + common::PATIENCE;
    while travel() < 80 * MS {
        assert!(Instant::now() < deadline, "the step never came");
    }
    assert!(travel() >= 80 * MS, "it stays");
    network.cut(0, true).unwrap();
    peer.set_read_timeout(Some(200 * MS)).unwrap();
    let silent = || {
        own.send_to(b"?", peer.local_addr().unwrap()).unwrap();
        peer.recv(&mut [0; 10]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    while !silent() {
        assert!(Instant::now() < deadline, "the cut never came");
    }
    network.cut(0, false).unwrap();
    while silent() {
        assert!(Instant::now() < deadline, "it never came back");
    }
    assert!(network.snapshot().links[0].of(Direction::Up).lost.packets > 0);
    println!("verified steps and cuts");
    stop(network);
}
