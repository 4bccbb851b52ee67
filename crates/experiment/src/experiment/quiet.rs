//! The wait for a quiet machine: other load during a run affects its figures.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pubmark_model::experiment::QuietMachine;

/// Time over which the share is measured before every run: a shorter one misses bursts.
pub const OVER: Duration = Duration::from_secs(1);
/// Interval between two checks of a request to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How the wait ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quiet {
    /// Time waited, including the first sample of one second.
    pub waited: Duration,
    /// The machine did not become quiet in time.
    pub busy: bool,
    /// Share of its CPU time that others used last, 0 to 1; `None` where it cannot be read.
    pub share: Option<f64>,
}

/// Waits until other processes use less than the given share. pubmark sleeps meanwhile and has started nothing, so all
/// use is by others. A machine whose load cannot be read counts as busy.
///
/// `note` is called once with the share, if there is a wait.
pub fn wait(wanted: &QuietMachine, stop: &AtomicBool, note: &mut dyn FnMut(f64)) -> Quiet {
    let began = Instant::now();
    let mut noted = false;
    loop {
        let share = share(stop);
        let waited = began.elapsed();
        let busy = share.is_none_or(|share| share > wanted.below);
        if !busy || share.is_none() || waited >= wanted.within || stop.load(Ordering::Relaxed) {
            return Quiet { waited, busy, share };
        }
        if let (Some(share), false) = (share, noted) {
            note(share);
            noted = true;
        }
    }
}

/// Share of the machine's CPU time used over the next second; `None` where it cannot be read.
pub fn share(stop: &AtomicBool) -> Option<f64> {
    let before = Times::read()?;
    let began = Instant::now();
    while began.elapsed() < OVER && !stop.load(Ordering::Relaxed) {
        thread::sleep(POLL_INTERVAL.min(OVER.saturating_sub(began.elapsed())));
    }
    Times::read()?.used_since(&before)
}

/// CPU time of the machine since its start, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    total: u64,
    idle: u64,
}

impl Times {
    fn read() -> Option<Times> {
        Times::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// `cpu user nice system idle iowait irq softirq steal …` (proc_stat(5)); guest times after them are part of user.
    fn parse(text: &str) -> Option<Times> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        Some(Times { total: times.iter().sum(), idle: times.get(3)? + times.get(4)? })
    }

    fn used_since(&self, earlier: &Times) -> Option<f64> {
        let passed = self.total.checked_sub(earlier.total).filter(|passed| *passed > 0)?;
        let idle = self.idle.saturating_sub(earlier.idle).min(passed);
        Some((passed - idle) as f64 / passed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn time_that_is_not_idle_is_used() {
        let earlier = Times::parse("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(earlier, Times { total: 1_000, idle: 800 });
        // 100 ticks, 60 of them idle or waiting for a disk.
        let now = Times::parse("cpu  120 0 110 750 110 5 5 0 0 0\n").unwrap();
        assert_eq!(now.used_since(&earlier), Some(0.4));
        assert_eq!(now.used_since(&now), None);
    }

    #[test]
    fn any_machine_is_quiet_enough_without_a_limit() {
        let quiet = wait(&QuietMachine { below: 1.0, within: Duration::ZERO }, &NEVER, &mut |_| {});
        assert!(!quiet.busy && quiet.waited >= OVER && quiet.waited < 20 * OVER, "{quiet:?}");
        assert!((0.0..=1.0).contains(&quiet.share.unwrap()));
    }

    #[test]
    fn the_wait_for_a_quiet_machine_ends_at_its_limit() {
        let mut notes = 0;
        // A share below 0 is impossible.
        let wanted = QuietMachine { below: -1.0, within: Duration::from_millis(1_500) };
        let quiet = wait(&wanted, &NEVER, &mut |_| notes += 1);
        assert!(quiet.busy && quiet.waited >= wanted.within && quiet.waited < 20 * OVER, "{quiet:?}");
        assert_eq!(notes, 1);
    }

    #[test]
    fn a_request_to_stop_ends_the_wait() {
        let stop = AtomicBool::new(true);
        let quiet = wait(&QuietMachine { below: -1.0, within: Duration::from_secs(600) }, &stop, &mut |_| {});
        assert!(quiet.waited < 10 * OVER, "{quiet:?}");
    }
}
