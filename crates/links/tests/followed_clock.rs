//! A process on a node follows the run's clock, and so do its links: the steps of a series begin at the run's time. The clock of a
//! process is one for all its threads, so this is a test binary of its own.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::sync::Once;
use std::time::{Duration, Instant};

use common::{core_socket, group_socket, settings};
use pubmark_links::network::{BackEnd, Network, Settings};
use pubmark_links::privilege;
use pubmark_model::link::{Conditions, Step};
use pubmark_protocol::clock;
use pubmark_protocol::run_clock::{Mapping, RunClock};

/// The run's time minus this machine's, ns: one hour, as if the coordinator had started an hour earlier.
const AHEAD_NS: u64 = 3_600_000_000_000;
/// When the link goes down, ns since the start of the window.
const STEP_NS: u64 = 50_000_000;

/// Makes this process follow a run's clock that is an hour ahead.
fn follow() {
    static FOLLOWED: Once = Once::new();
    FOLLOWED.call_once(|| {
        let kept: &'static RunClock = Box::leak(Box::default());
        kept.set(Mapping { local_ns: clock::raw_ns(), run_ns: clock::machine_ns() + AHEAD_NS, rate_ppb: 0 });
        clock::follow(kept);
    });
    assert!(clock::machine_ahead_ns() < -(AHEAD_NS as i64) / 2, "{}", clock::machine_ahead_ns());
}

/// A link that goes down after the start of the window.
fn goes_down() -> Settings {
    let mut settings = settings(&[Conditions::default()]);
    let down = Conditions { down: true, ..Conditions::default() };
    settings.links[0].up.push(Step { at_ns: STEP_NS, conditions: down });
    settings
}

/// Sends packets until the first one is lost: that is neither at once nor never.
fn the_step_comes_on_time(network: Network) {
    let (own, peer) = (group_socket(&network, 0, false), core_socket(&network, false));
    let to = peer.local_addr().unwrap();
    own.send_to(b"first", to).unwrap();
    peer.recv(&mut [0; 10]).unwrap();
    let start_ns = clock::monotonic_ns();
    network.begin(start_ns).unwrap();
    let deadline = Instant::now() + common::PATIENCE;
    let has_lost = || {
        let up = network.snapshot().links[0].up;
        // The kernel does not say why it dropped a packet.
        up.lost.packets + up.lost_down.packets > 0
    };
    while !has_lost() {
        assert!(Instant::now() < deadline, "the step never came: {:?}", network.snapshot());
        own.send_to(b"?", to).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let took_ns = clock::monotonic_ns() - start_ns;
    assert!(took_ns >= STEP_NS, "the step came after {took_ns} ns");
    network.stop().unwrap();
}

#[test]
fn a_step_of_the_emulator_comes_at_the_runs_time() {
    follow();
    let Some(network) = common::network_of(goes_down()) else { return };
    the_step_comes_on_time(network);
}

#[test]
fn a_step_of_the_kernels_netem_comes_at_the_runs_time() {
    follow();
    if let Err(why) = privilege::probe().kernel_netem {
        return pubmark_testing::skip(why);
    }
    the_step_comes_on_time(Network::start(Settings { back_end: BackEnd::KernelNetem, ..goes_down() }).unwrap());
}
