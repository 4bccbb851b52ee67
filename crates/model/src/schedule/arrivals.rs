//! Due times of each arrival process. All times are whole ns, so there is no drift.

use std::sync::Arc;

use crate::arrival::{Arrival, Phase};
use crate::profile::DeviceTime;
use crate::random::Stream;
use crate::schedule::states::StateRule;
use crate::schedule::{NEVER, nanoseconds, purpose};

/// An arrival process with its constants computed.
#[derive(Clone, Debug)]
pub(super) enum ArrivalRule {
    Periodic {
        interval_ns: i64,
        phase: Phase,
        jitter_ns: i64,
    },
    Poisson {
        mean_gap_ns: f64,
    },
    OnOff {
        interval_ns: i64,
        on_ns: f64,
        off_ns: f64,
    },
    /// A periodic or Poisson process in the device's own time, which its profile stretches.
    Profiled {
        base: Box<ArrivalRule>,
        time: DeviceTime,
    },
    States(StateRule),
    Trace {
        offsets_ns: Arc<[u64]>,
        usable: usize,
        period_ns: Option<i64>,
    },
    Flood,
    /// Nothing is due until a message is received.
    Reaction,
}

/// Current position of a device in its arrival process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The next due time, or [`NEVER`].
    pub due_ns: i64,
    /// Periodic: the due time without jitter. Poisson: the due time before the profile is applied. On-off: end of the on
    /// period. States: end of the state. Trace: start of this round.
    pub base_ns: i64,
    /// Number of the next random draw (periodic, Poisson), of the on period, or of the offset in the trace; see
    /// [`StateRule`] for states.
    pub turn: i64,
}

impl ArrivalRule {
    pub fn new(arrival: &Arrival) -> ArrivalRule {
        match arrival {
            Arrival::Periodic { interval, phase, jitter } => {
                let interval_ns = nanoseconds(*interval).max(1);
                // Loading has validated this; the same bound here keeps due times in order for any input.
                let jitter_ns = nanoseconds(*jitter).min((interval_ns - 1) / 2);
                ArrivalRule::Periodic { interval_ns, phase: *phase, jitter_ns }
            }
            Arrival::Poisson { rate_per_s } => ArrivalRule::Poisson { mean_gap_ns: 1e9 / rate_per_s },
            Arrival::OnOff { interval, mean_on, mean_off } => ArrivalRule::OnOff {
                interval_ns: nanoseconds(*interval).max(1),
                on_ns: mean_on.as_nanos() as f64,
                off_ns: mean_off.as_nanos() as f64,
            },
            Arrival::Profiled { base, profile } => {
                ArrivalRule::Profiled { base: Box::new(ArrivalRule::new(base)), time: DeviceTime::new(profile) }
            }
            Arrival::States(states) => ArrivalRule::States(StateRule::new(states)),
            Arrival::Trace { offsets_ns, period } => {
                let period_ns = period.map(nanoseconds).filter(|period_ns| *period_ns > 0);
                // Rounds must not overlap: offsets at or after the period would be in the next round.
                let usable = period_ns
                    .map_or(offsets_ns.len(), |period_ns| offsets_ns.partition_point(|at| *at < period_ns as u64));
                ArrivalRule::Trace { offsets_ns: offsets_ns.clone(), usable, period_ns }
            }
            Arrival::Flood => ArrivalRule::Flood,
            Arrival::Reaction(_) => ArrivalRule::Reaction,
        }
    }

    /// The first due time at or after `start_ns`.
    pub fn first(&self, key: u64, start_ns: i64, end_ns: i64) -> Position {
        let mut position = Position { due_ns: start_ns, base_ns: start_ns, turn: 0 };
        match self {
            ArrivalRule::Periodic { interval_ns, phase: Phase::Aligned, .. } => {
                position.base_ns = start_ns.saturating_add(*interval_ns);
                self.settle_periodic(&mut position, key);
            }
            ArrivalRule::Periodic { interval_ns, phase: Phase::Spread, .. } => {
                let phase_ns = scale(Stream::new(key, purpose::PHASE).bits(0), *interval_ns);
                // One interval early: jitter may move that message after the start.
                position.base_ns = start_ns.saturating_add(phase_ns).saturating_sub(*interval_ns);
                self.settle_periodic(&mut position, key);
                while position.due_ns < start_ns {
                    self.advance(&mut position, key, NEVER);
                }
            }
            ArrivalRule::Poisson { .. } => self.advance(&mut position, key, end_ns),
            ArrivalRule::OnOff { on_ns, off_ns, .. } => {
                // Both lengths are exponential and so memoryless: a period that is cut by the start is as long as any.
                let on = Stream::new(key, purpose::ON_AT_START).unit(0) * (on_ns + off_ns) < *on_ns;
                let off_for_ns = if on { 0 } else { exponential_ns(key, purpose::OFF_LENGTH, 0, *off_ns) };
                self.enter_on_period(&mut position, key, start_ns.saturating_add(off_for_ns), end_ns);
            }
            ArrivalRule::Profiled { base, time } => {
                position = base.first(key, time.at(start_ns), NEVER);
                position.due_ns = in_run(time, position.due_ns).max(start_ns);
            }
            ArrivalRule::States(rule) => rule.first(&mut position, key, end_ns),
            ArrivalRule::Trace { .. } => self.settle_trace(&mut position),
            ArrivalRule::Flood => return position,
            ArrivalRule::Reaction => position.due_ns = NEVER,
        }
        if position.due_ns >= end_ns {
            position.due_ns = NEVER;
        }
        position
    }

    /// Moves to the next due time, [`NEVER`] if it is not before `end_ns`.
    pub fn advance(&self, position: &mut Position, key: u64, end_ns: i64) {
        match self {
            ArrivalRule::Periodic { interval_ns, .. } => {
                position.base_ns = position.base_ns.saturating_add(*interval_ns);
                position.turn += 1;
                self.settle_periodic(position, key);
            }
            ArrivalRule::Poisson { mean_gap_ns } => {
                let gap_ns = exponential_ns(key, purpose::GAP, position.turn, *mean_gap_ns);
                position.base_ns = position.base_ns.saturating_add(gap_ns);
                position.due_ns = position.base_ns;
                position.turn += 1;
            }
            ArrivalRule::Profiled { base, time } => {
                let before_ns = position.due_ns;
                base.advance(position, key, NEVER);
                // Keeps the order of due times despite rounding to whole ns near a point of the profile.
                position.due_ns = in_run(time, position.due_ns).max(before_ns);
            }
            ArrivalRule::States(rule) => rule.advance(position, key, end_ns),
            ArrivalRule::OnOff { interval_ns, off_ns, .. } => {
                position.due_ns = position.due_ns.saturating_add(*interval_ns);
                if position.due_ns >= position.base_ns {
                    position.turn += 1;
                    let off_for_ns = exponential_ns(key, purpose::OFF_LENGTH, position.turn, *off_ns);
                    self.enter_on_period(position, key, position.base_ns.saturating_add(off_for_ns), end_ns);
                }
            }
            ArrivalRule::Trace { .. } => {
                position.turn += 1;
                self.settle_trace(position);
            }
            ArrivalRule::Flood | ArrivalRule::Reaction => return,
        }
        if position.due_ns >= end_ns {
            position.due_ns = NEVER;
        }
    }

    fn settle_periodic(&self, position: &mut Position, key: u64) {
        let ArrivalRule::Periodic { jitter_ns, .. } = self else { return };
        position.due_ns = position.base_ns;
        if *jitter_ns > 0 {
            let draw = Stream::new(key, purpose::JITTER).bits(position.turn as u64);
            position.due_ns = position.base_ns.saturating_add(scale(draw, 2 * jitter_ns + 1) - jitter_ns);
        }
    }

    /// Finds the first message of the on period that begins at `on_from_ns`, or of the first on period after it that has a
    /// message. The first message of a period is at a random point of an interval, so that the mean rate is correct even
    /// for short periods.
    fn enter_on_period(&self, position: &mut Position, key: u64, mut on_from_ns: i64, end_ns: i64) {
        let ArrivalRule::OnOff { interval_ns, on_ns, off_ns } = self else { return };
        position.due_ns = NEVER;
        while on_from_ns < end_ns {
            position.base_ns =
                on_from_ns.saturating_add(exponential_ns(key, purpose::ON_LENGTH, position.turn, *on_ns));
            let wait_ns = scale(Stream::new(key, purpose::ON_PHASE).bits(position.turn as u64), *interval_ns);
            let due_ns = on_from_ns.saturating_add(wait_ns);
            if due_ns < position.base_ns {
                position.due_ns = due_ns;
                return;
            }
            position.turn += 1;
            let off_for_ns = exponential_ns(key, purpose::OFF_LENGTH, position.turn, *off_ns);
            // At least 1 ns, so that the loop ends when lengths round to zero.
            on_from_ns = position.base_ns.saturating_add(off_for_ns).max(on_from_ns.saturating_add(1));
        }
    }

    fn settle_trace(&self, position: &mut Position) {
        let ArrivalRule::Trace { offsets_ns, usable, period_ns } = self else { return };
        position.due_ns = NEVER;
        if *usable == 0 {
            return;
        }
        if position.turn as usize >= *usable {
            let Some(period_ns) = period_ns else { return };
            position.base_ns = position.base_ns.saturating_add(*period_ns);
            position.turn = 0;
        }
        let offset_ns = i64::try_from(offsets_ns[position.turn as usize]).unwrap_or(NEVER);
        position.due_ns = position.base_ns.saturating_add(offset_ns);
    }
}

fn in_run(time: &DeviceTime, device_ns: i64) -> i64 {
    if device_ns == NEVER { NEVER } else { time.run_ns(device_ns) }
}

/// A uniform draw of 64 bits scaled to [0, `span_ns`).
pub(super) fn scale(bits: u64, span_ns: i64) -> i64 {
    ((u128::from(bits) * span_ns as u128) >> 64) as i64
}

/// An exponentially distributed time in whole ns.
fn exponential_ns(key: u64, purpose: u64, index: i64, mean_ns: f64) -> i64 {
    (Stream::new(key, purpose).exponential(index as u64) * mean_ns).round() as i64
}
