//! The name of a schedule: 64 bits over every device's due times, configured sizes and planned changes.
//!
//! Not a seal: it tells schedules apart, it does not protect them. Seed, topic, protocol and system are not in it: two
//! seeds that lead to the same sends have the same hash.

use crate::fleet::{Device, Fleet};
use crate::random::{self, mix};
use crate::schedule::{ChurnCursor, Cursor, Due, Rules, Timeline, Transition, identity_key};
use crate::workload::Workload;

/// The hash of one device's schedule, gathered while it is run through. Messages and changes may come interleaved in any
/// way, as long as each kind comes in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceHash {
    dues: u64,
    changes: u64,
}

impl DeviceHash {
    /// Of a device that has nothing planned yet.
    pub fn new(rules: &Rules, device: &Device, online_at_start: bool) -> DeviceHash {
        let identity = identity_key(rules.name_key, device);
        DeviceHash { dues: identity, changes: mix(identity ^ u64::from(online_at_start)) }
    }

    /// Adds the next message, sent or not.
    pub fn add_due(&mut self, due: &Due) {
        self.dues = mix(mix(self.dues ^ due.due_ns as u64).wrapping_add(u64::from(due.configured_bytes)));
    }

    /// Adds the next planned change.
    pub fn add_transition(&mut self, transition: &Transition) {
        self.changes = mix(mix(self.changes ^ transition.at_ns as u64).wrapping_add(u64::from(transition.online)));
    }

    /// The hash of what was added.
    pub fn value(&self) -> u64 {
        mix(self.dues ^ self.changes.rotate_left(32))
    }
}

/// What a whole schedule comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its hash: 16 hexadecimal digits, or `none` if any group floods, because a flood has no schedule.
    pub hash: String,
    /// Messages due in the measured window; `None` if any group floods. What devices do in reaction to others is not in it.
    pub offered: Option<u64>,
}

/// Runs through a whole schedule.
pub fn summary(workload: &Workload, fleet: &Fleet, seed: u64, timeline: &Timeline) -> Summary {
    let rules = Rules::all(workload, seed, timeline);
    if rules.iter().any(Rules::is_flood) {
        return Summary { hash: "none".to_owned(), offered: None };
    }
    let mut offered = 0;
    let device_hash = |device: &Device| device_hash(&rules[usize::from(device.group)], device, &mut offered);
    let values: Vec<u64> = fleet.devices().iter().map(device_hash).collect();
    Summary { hash: combine(workload, fleet, &values), offered: Some(offered) }
}

/// [`Summary::hash`] of a whole schedule.
pub fn hash(workload: &Workload, fleet: &Fleet, seed: u64, timeline: &Timeline) -> String {
    summary(workload, fleet, seed, timeline).hash
}

/// Puts [`DeviceHash::value`]s, by publisher number, together to what [`hash`] gives; `none` if any group floods.
pub fn combine(workload: &Workload, fleet: &Fleet, values: &[u64]) -> String {
    if workload.devices.iter().any(|group| matches!(group.arrival, crate::arrival::Arrival::Flood)) {
        return "none".to_owned();
    }
    let folded = in_identity_order(workload, fleet)
        .into_iter()
        .fold(0, |key, device| random::fold(key, &values[device.publisher as usize].to_le_bytes()));
    format!("{folded:016x}")
}

/// Scheduled devices by (copy, group name, index), an order that does not depend on how the fleet was counted out.
pub(super) fn in_identity_order(workload: &Workload, fleet: &Fleet) -> Vec<Device> {
    // What reacts has no schedule.
    let scheduled = |device: &&Device| workload.devices[usize::from(device.group)].reaction().is_none();
    let mut devices: Vec<Device> = fleet.devices().iter().filter(scheduled).copied().collect();
    devices.sort_by_key(|device| (device.copy, &workload.devices[usize::from(device.group)].name, device.index));
    devices
}

/// Hash of a device's schedule; adds its messages in the measured window to `offered`.
fn device_hash(rules: &Rules, device: &Device, offered: &mut u64) -> u64 {
    let mut churn = ChurnCursor::new(rules, device);
    let mut hash = DeviceHash::new(rules, device, churn.online_at_start());
    let mut cursor = Cursor::new(rules, device);
    while let Some(due) = cursor.take(rules) {
        hash.add_due(&due);
        *offered += u64::from(due.due_ns >= 0 && rules.think.is_none());
    }
    while let Some(transition) = churn.take(rules) {
        hash.add_transition(&transition);
    }
    hash.value()
}
