//! Heartbeats of worker processes: a thread of its own counts up in shared memory, however busy the process's shards are, and whoever
//! started the process notices when it stops. A worker that is at work for long still beats; one that was stopped (SIGSTOP, a frozen
//! control group, a debugger) does not, and its socket stays open.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use crate::progress::Progress;
use crate::realtime;

/// Between two beats.
const BEAT: Duration = Duration::from_millis(250);
/// A worker that did not beat for so long is lost.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// Longest wait for the first beat: a program is loaded and is sent what it is to do meanwhile.
pub const START_LIMIT: Duration = Duration::from_secs(10);
/// Most of the time between two looks that counts as silence: whoever looks less often was kept from running itself, and so may have
/// been what it looks at.
const LONGEST_GAP: Duration = Duration::from_millis(500);

/// Beats for this process, in the entry of one of its shards, as long as somebody else holds `progress`.
///
/// # Errors
/// There is no thread to do it.
pub fn beat(progress: &Arc<Progress>, shard: usize) -> io::Result<()> {
    let held = Arc::downgrade(progress);
    thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
        // Where shards run before all others, this thread has to run before them. Without the right to that they do not, either.
        let _ = realtime::claim_ahead();
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
    /// Of a process that was just started and beats in the entry of this shard.
    pub fn new(progress: Arc<Progress>, shard: usize) -> HeartbeatWatch {
        HeartbeatWatch { progress, shard, silence: Silence::begin(Instant::now()) }
    }

    /// For how long it has been silent, if that is too long. To be called several times a second.
    pub fn too_long(&mut self) -> Option<Duration> {
        let beats = self.progress.shards().get(self.shard).map_or(0, |entry| entry.beats.load(Relaxed));
        self.silence.check(beats, Instant::now())
    }
}

/// How long a counter has not moved, by the clock of whoever looks at it.
#[derive(Debug)]
struct Silence {
    beats: u64,
    length: Duration,
    looked: Instant,
}

impl Silence {
    fn begin(now: Instant) -> Silence {
        Silence { beats: 0, length: Duration::ZERO, looked: now }
    }

    fn check(&mut self, beats: u64, now: Instant) -> Option<Duration> {
        let gap = now.saturating_duration_since(self.looked).min(LONGEST_GAP);
        self.looked = now;
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

    /// Looks every 100 ms for so long; when silence was found too long.
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
    fn who_did_not_look_for_long_calls_nobody_silent() {
        let mut now = Instant::now();
        let mut silence = Silence::begin(now);
        assert_eq!(silence.check(1, now), None);
        // Both stood still for an hour: the machine was suspended.
        now += Duration::from_secs(3_600);
        assert_eq!(silence.check(1, now), None);
        assert_eq!(found(&mut silence, &mut now, 1, Duration::from_secs(9)), Some(Duration::from_millis(2_500)));
    }

    #[test]
    fn a_process_beats_in_the_entry_of_its_shard_until_its_memory_goes() {
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
