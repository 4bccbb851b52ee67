//! The validated workload: who sends what, who listens. Made only by parsing and checking (`parse`) or by the built-in tables.

use std::time::Duration;

use crate::arrival::Arrival;
use crate::churn::Churn;
use crate::payload::{Body, SizeDistribution};
use crate::qos::Qos;
use crate::topic::{TopicFilter, TopicTemplate};

/// Which reading of a published workload: as the paper's numbers were made, or as its text means it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// With the errors the paper's numbers were made with.
    Published,
    /// As the text means it; the default.
    #[default]
    Corrected,
}

impl Variant {
    /// The word used in files, on the command line, in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Variant::Published => "published",
            Variant::Corrected => "corrected",
        }
    }
}

/// What a session keeps when its connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionKind {
    /// Nothing: subscriptions and queued messages are gone.
    #[default]
    Clean,
    /// Subscriptions and messages not yet acknowledged.
    Persistent,
}

/// User name and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password; never written to a record.
    pub password: String,
}

/// Bytes at the front of a will's payload that say whose it is.
pub const WILL_HEADER_BYTES: u32 = 8;

/// A message that the system publishes in a device's name when its connection ends without a goodbye.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Where to.
    pub topic: TopicTemplate,
    /// Whole payload, [`WILL_HEADER_BYTES`] to 65,535.
    pub payload_bytes: u32,
    /// Delivery level.
    pub qos: Qos,
    /// Kept as a retained message.
    pub retain: bool,
    /// Whole seconds in which a device that comes back keeps it from being published.
    pub delay: Duration,
}

/// Settings of MQTT alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MqttSettings {
    /// The system drops a message that it could not deliver within this time; whole seconds, at least one.
    pub message_expiry: Option<Duration>,
    /// A number stands for the topic from the second message on a connection on.
    pub topic_alias: bool,
}

/// A group of like devices.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceGroup {
    /// `domain/type`, unique in the workload; the key of a breakdown by type.
    pub name: String,
    /// Devices in one copy of the workload, already multiplied by the scale.
    pub count: u32,
    /// When they send.
    pub arrival: Arrival,
    /// How much they send.
    pub size: SizeDistribution,
    /// What fills a payload.
    pub body: Body,
    /// Where they send.
    pub topic: TopicTemplate,
    /// Delivery level asked of the system.
    pub qos: Qos,
    /// Sent with the retain flag.
    pub retain: bool,
    /// What a session keeps.
    pub session: SessionKind,
    /// Planned leaving and coming back; `None` is always online.
    pub churn: Option<Churn>,
    /// Published for a device whose connection ends without a goodbye.
    pub will: Option<Will>,
    /// Settings of MQTT alone.
    pub mqtt: MqttSettings,
    /// Messages sent and not yet acknowledged at most (QoS 1, 2); the server may allow less.
    pub in_flight_window: u16,
    /// Log-in, if the system asks for one.
    pub credentials: Option<Credentials>,
}

/// A group of like subscribers.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriberGroup {
    /// Unique in the workload.
    pub name: String,
    /// Subscribers, each with a connection of its own (already multiplied by the scale where the workload says so).
    pub count: u32,
    /// What each subscribes to; `{index}` becomes the subscriber's number in its group, so that pairs can be made.
    pub filters: Vec<TopicFilter>,
    /// Delivery level asked for.
    pub qos: Qos,
    /// What a session keeps.
    pub session: SessionKind,
    /// Log-in, if the system asks for one.
    pub credentials: Option<Credentials>,
    /// Name of the shared group that its subscribers are: each message goes to one of them.
    pub shared: Option<String>,
    /// Time a subscriber spends on a message before it takes the next; zero for none.
    pub processing: Duration,
}

/// Whether each node runs all devices or a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The fleet is split over the nodes.
    Split,
    /// Every node runs a copy of the fleet (PSMark).
    Replicate,
}

/// A named change that was made to a workload so that it can run, or differs from what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Short stable name, for instance `payload-raised-to-header`.
    pub name: String,
    /// One sentence: what was changed, from what to what, why.
    pub detail: String,
}

/// A validated workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name on the command line and in records.
    pub name: String,
    /// One sentence for `pubmark list workloads`.
    pub description: String,
    /// Where the figures come from (paper, data set), if anywhere.
    pub source: Option<String>,
    /// Which reading.
    pub variant: Variant,
    /// Multiplier of the device counts, ≥ 1.
    pub scale: u32,
    /// Who sends.
    pub devices: Vec<DeviceGroup>,
    /// Who listens.
    pub subscribers: Vec<SubscriberGroup>,
    /// How devices are placed when there are several nodes.
    pub placement: Placement,
    /// Subscribers exist on every node (true) or once.
    pub subscribers_on_every_node: bool,
    /// Changes made while loading.
    pub deviations: Vec<Deviation>,
}
