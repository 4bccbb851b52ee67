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

impl Churn {
    /// Long-run share of time online, from the closed form for the phase; exact for equal periods.
    pub fn availability(&self) -> f64 {
        let (d, r) = (self.disconnect_chance, self.reconnect_chance);
        if d == 0.0 || self.disconnect_check.is_zero() {
            return 1.0;
        }
        if r == 0.0 || self.reconnect_check.is_zero() {
            return 0.0;
        }
        match self.phase {
            CheckPhase::Together => 1.0 / (1.0 + d * (1.0 - r) / r),
            CheckPhase::Random => (1.0 - d / 2.0) * r / (d + r - d * r),
        }
    }
}
