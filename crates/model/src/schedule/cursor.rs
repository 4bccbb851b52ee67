//! A device's due times, one after the other.

use crate::fleet::Device;
use crate::schedule::arrivals::Position;
use crate::schedule::churn::ChurnState;
use crate::schedule::{NEVER, Rules};
use crate::template::BodyDraw;

/// One message of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When it is to be sent, ns since the start of the measured window.
    pub due_ns: i64,
    /// Payload to send, with the header if that is in it; at least [`crate::workload::DeviceGroup::smallest_payload_bytes`].
    pub payload_bytes: u32,
    /// Payload size as drawn from the workload's distribution.
    pub configured_bytes: u32,
    /// Whether the drawn size was too small for the header and was raised.
    pub size_raised: bool,
    /// The draw that determines the fields of the body.
    pub draw: BodyDraw,
    /// Whether the device is planned to be online at that instant (before any check at the same instant).
    pub planned_online: bool,
}

/// Current position of a device in its schedule.
#[derive(Clone, Debug)]
pub struct Cursor {
    key: u64,
    position: Position,
    churn: ChurnState,
    /// Number of messages returned; wraps after 2³², after which sizes repeat.
    taken: u32,
    /// Length of the device's name in bytes.
    device_bytes: u8,
}

const _: () = assert!(size_of::<Cursor>() <= 64, "a fleet holds a cursor for each device");

impl Cursor {
    /// Starts at the device's first message.
    pub fn new(rules: &Rules, device: &Device) -> Cursor {
        let key = rules.device_key(device);
        Cursor {
            key,
            position: rules.arrival.first(key, rules.start_ns, rules.end_ns),
            churn: ChurnState::new(rules, key),
            taken: 0,
            device_bytes: device.name_bytes(),
        }
    }

    /// Due time of the next message; `None` at the end of the timeline. In a flood it is always the start.
    pub fn peek_ns(&self) -> Option<i64> {
        (self.position.due_ns != NEVER).then_some(self.position.due_ns)
    }

    /// Returns the next message. `rules` must be the rules that the cursor was created with.
    pub fn take(&mut self, rules: &Rules) -> Option<Due> {
        let draw = BodyDraw { key: self.key, number: self.taken };
        let (due_ns, planned_online) = self.take_time(rules)?;
        let configured_bytes = rules.size.draw(draw, self.device_bytes);
        Some(Due {
            due_ns,
            payload_bytes: configured_bytes.max(rules.smallest_bytes),
            configured_bytes,
            size_raised: configured_bytes < rules.smallest_bytes,
            draw,
            planned_online,
        })
    }

    /// Returns the due time of the next message and whether the device is planned to be online then, as [`Cursor::take`]
    /// does. The message's size is not drawn: that of a template costs more than all the rest.
    pub fn take_time(&mut self, rules: &Rules) -> Option<(i64, bool)> {
        let due_ns = self.peek_ns()?;
        rules.arrival.advance(&mut self.position, self.key, rules.end_ns);
        self.taken = self.taken.wrapping_add(1);
        Some((due_ns, self.churn.online_before(due_ns, rules, self.key)))
    }
}
