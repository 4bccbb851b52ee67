//! Heartbeats of worker processes. A separate thread increments a counter in shared memory, however busy the process's
//! shards are, and the process that started it detects when the counter stops. A worker that is busy for long still
//! sends heartbeats. One that was stopped (SIGSTOP, a frozen control group, a debugger) does not, while its socket
//! stays open.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use crate::progress::Progress;
use crate::realtime;

/// Interval between two heartbeats.
const BEAT: Duration = Duration::from_millis(250);
/// A worker without a heartbeat for this long is lost.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// Longest wait for the first heartbeat, while the program is loaded and receives its order.
pub const START_LIMIT: Duration = Duration::from_secs(10);
/// Largest part of the interval between two checks that counts as silence. A watcher that checks less often was itself
/// prevented from running, and the watched process may have been as well.
const LONGEST_GAP: Duration = Duration::from_millis(500);

/// Increments the heartbeat of this process, in the entry of one of its shards, as long as another owner of `progress`
/// exists.
///
/// # Errors
/// The thread for this cannot be started.
pub fn beat(progress: &Arc<Progress>, shard: usize) -> io::Result<()> {
    let held = Arc::downgrade(progress);
    thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
        // If shards have real-time priority, this thread needs a higher one. Without the right to it, the shards have
        // none either.
        let _ = realtime::claim_higher_priority();
        while let Some(progress) = held.upgrade() {
            let Some(entry) = progress.shards().get(shard) else { return };
            entry.beats.fetch_add(1, Relaxed);
            drop(progress);
            thread::sleep(BEAT);
        }
    })?;
    Ok(())
}

/// Watches the heartbeat of a process.
#[derive(Debug)]
pub struct HeartbeatWatch {
    progress: Arc<Progress>,
    shard: usize,
    silence: Silence,
}

impl HeartbeatWatch {
    /// For a process that was just started and sends its heartbeat in the entry of this shard.
    pub fn new(progress: Arc<Progress>, shard: usize) -> HeartbeatWatch {
        HeartbeatWatch { progress, shard, silence: Silence::begin(Instant::now()) }
    }

    /// How long the process has been silent, if that is too long. Must be called several times a second.
    pub fn too_long(&mut self) -> Option<Duration> {
        let beats = self.progress.shards().get(self.shard).map_or(0, |entry| entry.beats.load(Relaxed));
        self.silence.check(beats, Instant::now())
    }
}

/// How long a counter has not changed, by the watcher's clock.
#[derive(Debug)]
struct Silence {
    beats: u64,
    length: Duration,
    checked: Instant,
}

impl Silence {
    fn begin(now: Instant) -> Silence {
        Silence { beats: 0, length: Duration::ZERO, checked: now }
    }

    fn check(&mut self, beats: u64, now: Instant) -> Option<Duration> {
        let gap = now.saturating_duration_since(self.checked).min(LONGEST_GAP);
        self.checked = now;
        match beats == self.beats {
            true => self.length += gap,
            false => (self.beats, self.length) = (beats, Duration::ZERO),
        }
        let limit = if beats == 0 { START_LIMIT } else { SILENCE_LIMIT };
        (self.length >= limit).then_some(limit)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Checks every 100 ms for `length`; returns the silence when it was found to be too long.
    fn found(silence: &mut Silence, now: &mut Instant, beats: u64, length: Duration) -> Option<Duration> {
        let began = *now;
        while *now < began + length {
            *now += Duration::from_millis(100);
            if silence.check(beats, *now).is_some() {
                return Some(now.saturating_duration_since(began));
            }
        }
        None
    }

    #[test]
    fn a_counter_that_stops_is_noticed_and_one_that_never_began_has_longer() {
        let mut now = Instant::now();
        let mut silence = Silence::begin(now);
        assert_eq!(found(&mut silence, &mut now, 0, Duration::from_secs(9)), None);
        assert_eq!(found(&mut silence, &mut now, 1, Duration::from_secs(2)), None);
        assert_eq!(found(&mut silence, &mut now, 2, Duration::from_millis(2_900)), None);
        assert_eq!(found(&mut silence, &mut now, 3, Duration::from_secs(9)), Some(Duration::from_millis(3_100)));
        let mut silence = Silence::begin(now);
        assert_eq!(found(&mut silence, &mut now, 0, Duration::from_secs(20)), Some(START_LIMIT));
    }

    #[test]
    fn a_watcher_that_paused_reports_no_silence() {
        let mut now = Instant::now();
        let mut silence = Silence::begin(now);
        assert_eq!(silence.check(1, now), None);
        // Both were paused for an hour: the machine was suspended.
        now += Duration::from_secs(3_600);
        assert_eq!(silence.check(1, now), None);
        assert_eq!(found(&mut silence, &mut now, 1, Duration::from_secs(9)), Some(Duration::from_millis(2_500)));
    }

    #[test]
    fn a_process_sends_heartbeats_in_the_entry_of_its_shard_until_its_memory_is_dropped() {
        let progress = Arc::new(Progress::new(2).unwrap());
        beat(&progress, 1).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while progress.shards()[1].beats.load(Relaxed) < 2 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(progress.shards()[1].beats.load(Relaxed) >= 2);
        assert_eq!(progress.shards()[0].beats.load(Relaxed), 0);
    }
}
