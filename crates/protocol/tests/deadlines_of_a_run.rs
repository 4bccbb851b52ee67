//! Deadlines of a thread whose process follows a run's clock: the kernel wakes it by the machine's, which may be there first.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use pubmark_protocol::clock;
use pubmark_protocol::reactor::Reactor;
use pubmark_protocol::run_clock::{Mapping, RunClock};

#[test]
fn a_deadline_that_the_kernel_meets_too_early_is_met_all_the_same() {
    let kept: &'static RunClock = Box::leak(Box::default());
    let set = |run_ns: u64| kept.set(Mapping { local_ns: clock::raw_ns(), run_ns, rate_ppb: 0 });
    set(1_000_000_000_000);
    clock::follow(kept);
    let mut reactor = Reactor::new().unwrap();
    let waker = reactor.waker();
    let until_ns = clock::monotonic_ns() + 50_000_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The timer is set by now; the run's time falls 10 ms behind it.
            std::thread::sleep(Duration::from_millis(20));
            set(clock::monotonic_ns() - 10_000_000);
        });
        // A wait that never ends would show nothing.
        scope.spawn(move || {
            std::thread::sleep(Duration::from_secs(2));
            waker.wake();
        });
        let mut ready = vec![];
        let mut early = 0;
        loop {
            let awake = reactor.wait(Some(until_ns), &mut ready).unwrap();
            assert!(!awake.woken, "it was still waiting after 2 s, woken {early} times too early");
            if awake.at_ns >= until_ns {
                break;
            }
            early += 1;
        }
        assert!((1..100).contains(&early), "{early}");
    });
}
