//! Planned connectivity: when a device is online, by seeded checks at fixed periods.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a device disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leave {
    /// With the protocol's disconnect packet.
    Graceful,
    /// The connection is closed without a disconnect packet.
    Cut,
}

/// Time of the two checks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckPhase {
    /// Both at the same time counted from the start, in the order publish, disconnect, reconnect; the device starts online.
    /// Availability 1 / (1 + d(1 − r)/r) for equal periods (PSMark as published).
    Together,
    /// Each at a seeded random phase; the device starts in its stationary state.
    /// Availability (1 − d/2)·r / (d + r − d·r) for equal periods.
    Random,
}

/// Disconnect and reconnect checks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Churn {
    /// Time between disconnect checks; zero disables them.
    pub disconnect_check: Duration,
    /// Chance that a check disconnects, 0 to 1.
    pub disconnect_chance: f64,
    /// Time between reconnect checks; zero disables them.
    pub reconnect_check: Duration,
    /// Chance that a check reconnects, 0 to 1.
    pub reconnect_chance: f64,
    /// When the checks happen.
    pub phase: CheckPhase,
    /// How the device disconnects.
    pub leave: Leave,
}

/// Most checks from which an availability is computed, which take milliseconds.
const MOST_CHECKS: u32 = 200_000;

impl Churn {
    /// Long-run share of time online, mean of many devices. For equal periods this is the closed form of the phase.
    pub fn availability(&self) -> f64 {
        let (d, r) = (self.disconnect_chance, self.reconnect_chance);
        if d == 0.0 || self.disconnect_check.is_zero() {
            return 1.0;
        }
        if r == 0.0 || self.reconnect_check.is_zero() {
            return 0.0;
        }
        match (self.phase, self.disconnect_check == self.reconnect_check) {
            (CheckPhase::Together, true) => 1.0 / (1.0 + d * (1.0 - r) / r),
            (CheckPhase::Random, true) => (1.0 - d / 2.0) * r / (d + r - d * r),
            // Strikes that are so rare are independent of the periods; their sums would be lost in rounding.
            (_, false) if d.max(r) < 1e-6 => {
                let [leaves_per_s, returns_per_s] = [(d, self.disconnect_check), (r, self.reconnect_check)]
                    .map(|(chance, period)| chance / period.as_secs_f64());
                returns_per_s / (returns_per_s + leaves_per_s)
            }
            // Periods without a short common multiple meet at all distances, as with random phases.
            (CheckPhase::Together, false) => self.together().unwrap_or_else(|| self.at_random()),
            (CheckPhase::Random, false) => self.at_random(),
        }
    }

    /// With random phases and unequal periods: the share of time in which the last reconnect check that struck is more
    /// recent than the last disconnect check that struck. It is the integral, over the time since that reconnect check, of
    /// its density and the probability that no disconnect check struck since then.
    fn at_random(&self) -> f64 {
        let (d, r) = (self.disconnect_chance, self.reconnect_chance);
        let [leave_ns, back_ns] = [self.disconnect_check, self.reconnect_check].map(|period| period.as_nanos());
        let [leave_s, back_s] = [self.disconnect_check, self.reconnect_check].map(|period| period.as_secs_f64());
        // Numbers of whole periods passed, and the probabilities that none of their checks struck.
        let (mut leaves, mut backs) = (0u128, 0u128);
        let (mut no_leave, mut no_back) = (1.0, 1.0);
        let (mut from_ns, mut online) = (0u128, 0.0);
        let mut rest = 1.0;
        for _ in 0..MOST_CHECKS {
            let to_ns = ((leaves + 1) * leave_ns).min((backs + 1) * back_ns);
            // Within a period, the probability that its one check has happened grows evenly.
            let without_leave = |at_ns: u128| no_leave * (1.0 - d * (at_ns - leaves * leave_ns) as f64 / 1e9 / leave_s);
            let middle = (without_leave(from_ns) + without_leave(to_ns)) / 2.0;
            online += (to_ns - from_ns) as f64 / 1e9 * no_back * r / back_s * middle;
            rest = no_back * (1.0 - r * (to_ns - backs * back_ns) as f64 / 1e9 / back_s) * without_leave(to_ns);
            if to_ns == (leaves + 1) * leave_ns {
                (leaves, no_leave) = (leaves + 1, no_leave * (1.0 - d));
            }
            if to_ns == (backs + 1) * back_ns {
                (backs, no_back) = (backs + 1, no_back * (1.0 - r));
            }
            from_ns = to_ns;
            // At a common multiple of the periods everything repeats.
            if rest < 1e-15 || leaves * leave_ns == backs * back_ns {
                break;
            }
        }
        online / (1.0 - rest)
    }

    /// With checks at multiples of unequal periods from the same start: the mean over their common multiple. `None` if
    /// there are too many checks in it.
    fn together(&self) -> Option<f64> {
        let (d, r) = (self.disconnect_chance, self.reconnect_chance);
        let [leave_ns, back_ns] = [self.disconnect_check, self.reconnect_check].map(|period| period.as_nanos());
        let all_ns = leave_ns / common_divisor(leave_ns, back_ns) * back_ns;
        if all_ns / leave_ns + all_ns / back_ns > u128::from(MOST_CHECKS) {
            return None;
        }
        // The probability to be online is `fixed + kept × (the one at the start)`; both are summed over time.
        let (mut fixed, mut kept) = (0.0, 1.0);
        let (mut fixed_sum, mut kept_sum) = (0.0, 0.0);
        let mut from_ns = 0u128;
        while from_ns < all_ns {
            let to_ns = (from_ns / leave_ns + 1) * leave_ns;
            let to_ns = to_ns.min((from_ns / back_ns + 1) * back_ns);
            let share = (to_ns - from_ns) as f64 / all_ns as f64;
            fixed_sum += fixed * share;
            kept_sum += kept * share;
            // On one instant, the reconnect check comes last.
            if to_ns.is_multiple_of(leave_ns) {
                (fixed, kept) = (fixed * (1.0 - d), kept * (1.0 - d));
            }
            if to_ns.is_multiple_of(back_ns) {
                (fixed, kept) = (r + fixed * (1.0 - r), kept * (1.0 - r));
            }
            from_ns = to_ns;
        }
        Some(fixed_sum + kept_sum * fixed / (1.0 - kept))
    }
}

fn common_divisor(one: u128, other: u128) -> u128 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}
