//! A process on a node follows the run's clock, and so do its links: the steps of a series begin at the run's time. The clock of a
//! process is one for all its threads, so this is a test binary of its own.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::net::UdpSocket;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{core_socket, group_socket, settings};
use pubmark_links::network::{BackEnd, Network, Settings};
use pubmark_links::privilege;
use pubmark_links::verify::{Property, verify};
use pubmark_model::link::{Conditions, Rate, Step};
use pubmark_protocol::clock;
use pubmark_protocol::run_clock::{Mapping, RunClock};

/// The run's time minus this machine's, ns: one hour, as if the coordinator had started an hour earlier.
const AHEAD_NS: i64 = 3_600_000_000_000;
/// When the link goes down, ns since the start of the window.
const STEP_NS: u64 = 50_000_000;
/// A time that no test waits for unless the run's clock is set forward.
const FAR: Duration = Duration::from_secs(600);
/// Time in which a wait ends after the clock was set forward: [`clock::LONGEST_WAIT`], and what a busy machine needs.
const SOON: Duration = Duration::from_secs(5);
/// Time in which a link is verified, also where a measurement is repeated on a busy machine.
const VERIFIED_WITHIN: Duration = Duration::from_secs(60);

/// Makes this process follow a run's clock that is an hour ahead, and returns it: for one test at a time.
fn follow() -> MutexGuard<'static, &'static RunClock> {
    let followed = follow_at(AHEAD_NS);
    assert!(clock::machine_ahead_ns() < -AHEAD_NS / 2, "{}", clock::machine_ahead_ns());
    followed
}

/// The same for a run's clock that is `ahead_ns` ahead of this machine's.
fn follow_at(ahead_ns: i64) -> MutexGuard<'static, &'static RunClock> {
    static FOLLOWED: LazyLock<Mutex<&'static RunClock>> = LazyLock::new(|| {
        let kept: &'static RunClock = Box::leak(Box::default());
        clock::follow(kept);
        Mutex::new(kept)
    });
    let followed = FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner);
    let run_ns = clock::machine_ns().saturating_add_signed(ahead_ns);
    followed.set(Mapping { local_ns: clock::raw_ns(), run_ns, rate_ppb: 0 });
    followed
}

/// Sets the run's clock forward, as a better estimate would by much less.
fn set_forward(run_clock: &RunClock, by: Duration) {
    run_clock.set(Mapping {
        local_ns: clock::raw_ns(),
        run_ns: clock::monotonic_ns() + by.as_nanos() as u64,
        rate_ppb: 0,
    });
}

/// Gives the thread of the links time to compute its wait. If it needs longer, the test passes without showing anything.
fn begin_to_wait() {
    std::thread::sleep(Duration::from_millis(100));
}

/// A link that goes down this long after the start of the window.
fn goes_down(at_ns: u64) -> Settings {
    let mut settings = settings(&[Conditions::default()]);
    let down = Conditions { down: true, ..Conditions::default() };
    settings.links[0].up.push(Step { at_ns, conditions: down });
    settings
}

/// A socket of the group, connected to one of the core's, which has received a packet.
fn connected(network: &Network) -> (UdpSocket, UdpSocket) {
    let (own, peer) = (group_socket(network, 0, false), core_socket(network, false));
    own.connect(peer.local_addr().unwrap()).unwrap();
    own.send(b"first").unwrap();
    peer.recv(&mut [0; 10]).unwrap();
    (own, peer)
}

/// Sends packets until the first one is lost.
fn send_until_lost(network: &Network, own: &UdpSocket, within: Duration) {
    let deadline = Instant::now() + within;
    let has_lost = || {
        let up = network.snapshot().links[0].up;
        // The kernel does not say why it dropped a packet.
        up.lost.packets + up.lost_down.packets > 0
    };
    while !has_lost() {
        assert!(Instant::now() < deadline, "the step never came: {:?}", network.snapshot());
        own.send(b"?").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Packets are lost from the step on: that is neither at once nor never.
fn the_step_comes_on_time(network: Network) {
    let (own, _peer) = connected(&network);
    let start_ns = clock::monotonic_ns();
    network.begin(start_ns).unwrap();
    send_until_lost(&network, &own, common::PATIENCE);
    let took_ns = clock::monotonic_ns() - start_ns;
    assert!(took_ns >= STEP_NS, "the step came after {took_ns} ns");
    network.stop().unwrap();
}

/// Probes of the delay do not wait for each other at a slow link, and none of them waits for another clock.
fn probes_are_apart() {
    let rate = Some(Rate { bits_per_second: 100_000, queue_bytes: 64_000 });
    let Some(network) = common::network(&[Conditions { rate, ..Conditions::default() }]) else { return };
    let (found_to, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || found_to.send(verify(&network)));
    let found = found.recv_timeout(VERIFIED_WITHIN).unwrap().unwrap();
    assert_eq!(found.len(), 2);
    for direction in &found {
        let delay = direction.checks.iter().find(|check| check.property == Property::Delay).unwrap();
        // All at once, nearly 200 probes would take 100 times as long on average.
        assert!(delay.measured.unwrap() < 10.0 * delay.asked, "{direction}");
    }
}

#[test]
fn probes_are_apart_where_the_runs_clock_is_ahead_of_the_machines() {
    let _run_clock = follow();
    probes_are_apart();
}

#[test]
fn probes_are_apart_where_the_runs_clock_is_behind_the_machines() {
    let behind_ns = (clock::machine_ns() / 2) as i64;
    let _run_clock = follow_at(-behind_ns);
    assert!(clock::machine_ahead_ns() > behind_ns / 2, "{}", clock::machine_ahead_ns());
    probes_are_apart();
}

#[test]
fn a_step_of_the_emulator_comes_at_the_runs_time() {
    let _run_clock = follow();
    let Some(network) = common::network_of(goes_down(STEP_NS)) else { return };
    the_step_comes_on_time(network);
}

#[test]
fn a_step_of_the_kernels_netem_comes_at_the_runs_time() {
    let _run_clock = follow();
    if let Err(why) = privilege::probe().kernel_netem {
        return pubmark_testing::skip(why);
    }
    let settings = Settings { back_end: BackEnd::KernelNetem, ..goes_down(STEP_NS) };
    the_step_comes_on_time(Network::start(settings).unwrap());
}

#[test]
fn a_packet_that_the_emulator_holds_leaves_by_the_clock_as_it_is_estimated_later() {
    let run_clock = follow();
    let Some(network) = common::network(&[common::delayed(FAR)]) else { return };
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    own.connect(peer.local_addr().unwrap()).unwrap();
    own.send(b"first").unwrap();
    let deadline = Instant::now() + common::PATIENCE;
    while network.snapshot().links[0].up.waiting.packets == 0 {
        assert!(Instant::now() < deadline, "the packet never came to the link: {:?}", network.snapshot());
        std::thread::sleep(Duration::from_millis(1));
    }
    begin_to_wait();
    set_forward(&run_clock, FAR);
    peer.set_read_timeout(Some(SOON)).unwrap();
    peer.recv(&mut [0; 10]).unwrap();
    network.stop().unwrap();
}

#[test]
fn a_step_that_netem_waits_for_comes_by_the_clock_as_it_is_estimated_later() {
    let run_clock = follow();
    if let Err(why) = privilege::probe().kernel_netem {
        return pubmark_testing::skip(why);
    }
    let settings = Settings { back_end: BackEnd::KernelNetem, ..goes_down(FAR.as_nanos() as u64) };
    let network = Network::start(settings).unwrap();
    let (own, _peer) = connected(&network);
    network.begin(clock::monotonic_ns()).unwrap();
    begin_to_wait();
    set_forward(&run_clock, FAR);
    send_until_lost(&network, &own, SOON);
    network.stop().unwrap();
}
