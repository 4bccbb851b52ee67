//! The schedule: when every device sends how many bytes, and when it is planned offline. A pure function of (seed,
//! workload).
//!
//! Random draws are numbered, not stored: each depends on the seed, the copy, the group's *name*, the device's index in its
//! group, the draw's purpose and its number. So another device, group, shard or node changes no other device's schedule.
//! Transcendental functions come from `libm`, so that all machines agree to the bit.
//!
//! Times are ns relative to the start of the measured window; the schedule covers [−warm-up, duration). Start with
//! [`Rules`] (one for each device group), [`Cursor`] (one for each device: its due times) and [`ChurnCursor`] (its planned
//! disconnects and reconnects). [`hash()`] identifies a schedule, [`dump()`] writes it as text.
//!
//! At the same instant, a device's messages come first, then a disconnect, then a reconnect.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fleet::Device;
use crate::random::{self, RandomTime, Stream, mix};
use crate::reaction::Burst;
use crate::template::BodyDraw;
use crate::workload::{DeviceGroup, Workload};

mod arrivals;
mod churn;
mod cursor;
mod dump;
mod hash;
mod sizes;
mod states;

pub use churn::{ChurnCursor, Transition};
pub use cursor::{Cursor, Due};
pub use dump::dump;
pub use hash::{DeviceHash, Summary, combine, hash, summary, summary_unless};

/// Size of the smallest payload in bytes: the compact header. Smaller sizes are raised to it and counted.
pub const SMALLEST_PAYLOAD_BYTES: u32 = 16;
/// Size of the full header in bytes; payloads of at least this size have it.
pub const FULL_HEADER_BYTES: u32 = 24;
/// Smallest payload of a reaction in bytes: its header also contains the due time of its root.
pub const SMALLEST_REACTION_BYTES: u32 = 32;

/// Purposes of draws: each purpose has a separate random stream for each device.
mod purpose {
    pub const PHASE: u64 = 1;
    pub const JITTER: u64 = 2;
    pub const GAP: u64 = 3;
    pub const ON_AT_START: u64 = 4;
    pub const ON_LENGTH: u64 = 5;
    pub const OFF_LENGTH: u64 = 6;
    pub const ON_PHASE: u64 = 7;
    pub const SIZE: u64 = 8;
    pub const CHECK_PHASE: u64 = 9;
    pub const CHECKS_BEFORE_START: u64 = 10;
    pub const CHECKS: u64 = 11;
    pub const THINK: u64 = 12;
    pub const STATE_AT_START: u64 = 13;
    pub const STATE_LENGTH: u64 = 14;
    pub const STATE_PHASE: u64 = 15;
    pub const NEXT_STATE: u64 = 16;
}

/// The time range of a schedule: [−warm-up, duration).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Length of the measured window, ns.
    pub duration_ns: u64,
}

impl Timeline {
    /// First instant of the schedule, at or below 0.
    pub fn start_ns(&self) -> i64 {
        -i64::try_from(self.warmup_ns).unwrap_or(i64::MAX)
    }

    /// First instant after the schedule. [`i64::MAX`] means *never* in a cursor, so the end is below it.
    pub fn end_ns(&self) -> i64 {
        i64::try_from(self.duration_ns).unwrap_or(i64::MAX).min(NEVER - 1)
    }
}

/// A time that is never reached.
const NEVER: i64 = i64::MAX;

/// What the schedules of a device group have in common, computed once.
#[derive(Clone, Debug)]
pub struct Rules {
    start_ns: i64,
    end_ns: i64,
    /// Key derived from (seed, group name).
    key: u64,
    /// Key derived from the group name only.
    name_key: u64,
    arrival: arrivals::ArrivalRule,
    size: sizes::SizeRule,
    /// Smaller sizes are raised to this size.
    smallest_bytes: u32,
    churn: Option<churn::ChurnRule>,
    think: Option<RandomTime>,
    burst: Burst,
}

/// Properties of a reaction: a function of (seed, stream of the trigger, its sequence number).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionDraw {
    /// Time between the trigger's receipt and the due time, ns.
    pub think_ns: u64,
    /// Size of the whole payload, including the header if the payload contains it.
    pub payload_bytes: u32,
    /// Whether the configured size was smaller than the header and was raised.
    pub size_raised: bool,
    /// The draw that determines the fields of the body.
    pub draw: BodyDraw,
    /// Number of messages that follow in the same burst.
    pub left: u32,
}

impl Rules {
    /// Rules of one group.
    pub fn new(group: &DeviceGroup, seed: u64, timeline: &Timeline) -> Rules {
        Rules {
            start_ns: timeline.start_ns(),
            end_ns: timeline.end_ns(),
            key: random::fold(mix(seed), group.name.as_bytes()),
            name_key: random::fold(0, group.name.as_bytes()),
            arrival: arrivals::ArrivalRule::new(&group.arrival),
            size: sizes::SizeRule::new(&group.size),
            smallest_bytes: group.smallest_payload_bytes(),
            churn: group.churn.as_ref().map(churn::ChurnRule::new),
            think: group.reaction().map(|reaction| reaction.think),
            burst: group.reaction().map_or(Burst::ONE, |reaction| reaction.burst),
        }
    }

    /// Rules of all groups of a workload, indexed by [`Device::group`].
    pub fn all(workload: &Workload, seed: u64, timeline: &Timeline) -> Vec<Rules> {
        workload.devices.iter().map(|group| Rules::new(group, seed, timeline)).collect()
    }

    /// Whether the group floods. Its cursors then always return the start.
    pub fn is_flood(&self) -> bool {
        matches!(self.arrival, arrivals::ArrivalRule::Flood)
    }

    /// Key of the draws for reactions of `device`, whose group has these rules, to messages of `trigger`, whose group has
    /// `trigger_rules`.
    pub fn reply_key(&self, device: &Device, trigger_rules: &Rules, trigger: &Device) -> u64 {
        mix(self.device_key(device) ^ trigger_rules.device_key(trigger).rotate_left(32))
    }

    /// The reaction to a trigger's message; `None` if the group does not react. The device's name is `device_bytes` bytes
    /// long.
    pub fn reaction(&self, key: u64, sequence: u32, device_bytes: u8) -> Option<ReactionDraw> {
        let think_ns = self.think?.draw_ns(Stream::new(key, purpose::THINK), u64::from(sequence));
        let number = sequence.wrapping_mul(self.burst.messages);
        let left = self.burst.messages.saturating_sub(1);
        Some(ReactionDraw { think_ns, left, ..self.reaction_of(BodyDraw { key, number }, device_bytes) })
    }

    /// The next message of a burst after the one with this draw, with `left` messages left, and the time between the two
    /// instead of the think time; `None` after the last one.
    pub fn next_reaction(&self, draw: BodyDraw, left: u32, device_bytes: u8) -> Option<ReactionDraw> {
        let left = left.checked_sub(1)?;
        let think_ns = u64::try_from(self.burst.interval.as_nanos()).unwrap_or(u64::MAX);
        let next = BodyDraw { number: draw.number.wrapping_add(1), ..draw };
        Some(ReactionDraw { think_ns, left, ..self.reaction_of(next, device_bytes) })
    }

    /// Numbers that describe the bursts of a group: messages of a burst, the time between two of them in ns, and `draws`
    /// draws of the think time in ns and of a size in bytes. `None` if the group does not react, or reacts with one
    /// message.
    fn burst_draws(&self, draws: u32) -> Option<Vec<u64>> {
        let think = self.think.filter(|_| self.burst != Burst::ONE)?;
        let interval_ns = u64::try_from(self.burst.interval.as_nanos()).unwrap_or(u64::MAX);
        let drawn = (0..draws).flat_map(|number| {
            let think_ns = think.draw_ns(Stream::new(self.key, purpose::THINK), u64::from(number));
            [think_ns, u64::from(self.size.draw(BodyDraw { key: self.key, number }, 0))]
        });
        Some([u64::from(self.burst.messages), interval_ns].into_iter().chain(drawn).collect())
    }

    fn reaction_of(&self, draw: BodyDraw, device_bytes: u8) -> ReactionDraw {
        let configured = self.size.draw(draw, device_bytes);
        ReactionDraw {
            think_ns: 0,
            payload_bytes: configured.max(self.smallest_bytes),
            size_raised: configured < self.smallest_bytes,
            draw,
            left: 0,
        }
    }

    /// Key of all draws for a device.
    fn device_key(&self, device: &Device) -> u64 {
        identity_key(self.key, device)
    }
}

/// Adds a device's copy and index to a key of its group.
fn identity_key(group_key: u64, device: &Device) -> u64 {
    mix(mix(group_key ^ u64::from(device.copy)).wrapping_add(u64::from(device.index)))
}

/// Whole ns of a duration, limited to the range of the type.
fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

#[cfg(test)]
#[path = "schedule_tests/mod.rs"]
pub(crate) mod tests;
