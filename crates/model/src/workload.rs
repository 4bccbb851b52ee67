//! The validated workload: who publishes what, and who subscribes. It comes only from parsing and validation (`load`) or
//! from the built-in tables.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrival::Arrival;
use crate::churn::Churn;
use crate::fault::Fault;
use crate::identity::GroupIdentity;
use crate::link::Link;
use crate::metric::MetricProgram;
use crate::payload::{Body, HeaderPlace, SizeDistribution};
use crate::placement::{GroupPlacements, Placement, Placements};
use crate::predicate::Predicate;
use crate::qos::Qos;
use crate::reaction::Reaction;
use crate::requests::{Requests, Responds};
use crate::schedule::{FULL_HEADER_BYTES, SMALLEST_PAYLOAD_BYTES, SMALLEST_REACTION_BYTES};
use crate::secret::Secret;
use crate::slowdown::Slowdown;
use crate::topic::{TopicFilter, TopicTemplate};
use crate::transform::{self, Step};

/// Which variant of a published workload: with the errors behind the paper's figures, or as its text means it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// With the errors that are in the paper's figures.
    Published,
    /// As the text means it; the default.
    #[default]
    Corrected,
}

impl Variant {
    /// The name used in files, on the command line and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Variant::Published => "published",
            Variant::Corrected => "corrected",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the system retains of a session when its connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// Nothing: subscriptions and queued messages are deleted.
    #[default]
    Clean,
    /// Subscriptions and messages not yet acknowledged.
    Persistent,
}

/// User name and password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password.
    pub password: Secret,
}

/// Bytes at the front of a will's payload that identify the device.
pub const WILL_HEADER_BYTES: u32 = 8;

/// A message that the system publishes for a device when its connection ends without a DISCONNECT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Will {
    /// Topic that the will is published to.
    pub topic: TopicTemplate,
    /// Whole payload, [`WILL_HEADER_BYTES`] to 65,535.
    pub payload_bytes: u32,
    /// QoS of the will.
    pub qos: Qos,
    /// Published with the retain flag.
    pub retain: bool,
    /// Will delay in whole seconds: the will is not published if the device reconnects within this time.
    pub delay: Duration,
}

/// Settings that only MQTT has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MqttSettings {
    /// The system drops a message that it could not deliver within this time; whole seconds, at least one.
    pub message_expiry: Option<Duration>,
    /// From the second message of a topic on a connection, a number (topic alias) is sent instead of the topic.
    pub topic_alias: bool,
}

/// A group of devices with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceGroup {
    /// `domain/type`, unique in the workload; the key of a breakdown by type.
    pub name: String,
    /// Devices in one copy of the workload, already multiplied by the scale.
    pub count: u32,
    /// Arrival process: when the devices send.
    pub arrival: Arrival,
    /// Distribution of payload sizes.
    pub size: SizeDistribution,
    /// Content of a payload.
    pub body: Body,
    /// Where the header of the group's messages is.
    pub header: HeaderPlace,
    /// User properties of the group's messages: keys and values.
    pub properties: Vec<(String, String)>,
    /// Steps that transform the body of each message before it is sent, in this order; subscribers reverse them.
    pub transform: Vec<Step>,
    /// Topic that the devices publish to.
    pub topic: TopicTemplate,
    /// QoS requested.
    pub qos: Qos,
    /// Sent with the retain flag.
    pub retain: bool,
    /// What the system retains of a device's session.
    pub session: SessionKind,
    /// Planned disconnects and reconnects; `None` means always online.
    pub churn: Option<Churn>,
    /// Will of each device, published when its connection ends without a DISCONNECT.
    pub will: Option<Will>,
    /// Settings that only MQTT has.
    pub mqtt: MqttSettings,
    /// In-flight window: messages sent and not acknowledged, at most (QoS 1, 2); the server may allow fewer.
    pub in_flight_window: u16,
    /// Client identifiers and credentials of the devices.
    pub identity: GroupIdentity,
    /// Name of the clients that carry the group. All groups with the same name share their connections: device 0 uses
    /// client 0, and so on. `None`: each device has its own connection.
    pub client: Option<String>,
    /// Name of the group's link, one of the workload's links; `None`: the machine's network, without emulation. Groups on
    /// shared clients have the same link.
    pub link: Option<String>,
    /// The clients run in a separate process, so that their cost is measured separately. Groups on shared clients are
    /// isolated together.
    pub isolate: bool,
    /// The messages are requests: this is a group of requesters.
    pub requests: Option<Requests>,
    /// Received messages after which the devices send less for some time.
    pub slowdown: Option<Slowdown>,
}

impl DeviceGroup {
    /// Smallest payload of the group's messages in bytes; smaller sizes are raised to it, which is counted.
    pub fn smallest_payload_bytes(&self) -> u32 {
        match self.header {
            HeaderPlace::UserProperty => 1,
            HeaderPlace::Payload if self.reaction().is_some() => SMALLEST_REACTION_BYTES,
            // The transform steps may produce any size, so the form of the header cannot depend on the size.
            HeaderPlace::Payload if !self.transform.is_empty() => FULL_HEADER_BYTES,
            HeaderPlace::Payload => SMALLEST_PAYLOAD_BYTES,
        }
    }

    /// Smallest payload that is sent, in bytes; 0 where transform steps make the size depend on the content.
    pub fn smallest_sent_bytes(&self) -> u32 {
        if self.transform.is_empty() { self.size.lower_bound() } else { 0 }
    }

    /// Largest payload that is sent, in bytes, with a negligible chance of a larger one. It includes what transform steps
    /// add, but not what they save.
    pub fn largest_payload_bytes(&self) -> u32 {
        self.size
            .upper_bound()
            .max(self.smallest_payload_bytes())
            .saturating_add(transform::added_bytes(&self.transform))
    }

    /// Bytes of the full header in the payload; 0 if the header is outside the payload.
    pub fn header_bytes(&self) -> u32 {
        match self.header {
            HeaderPlace::UserProperty => 0,
            HeaderPlace::Payload if self.reaction().is_some() => SMALLEST_REACTION_BYTES,
            HeaderPlace::Payload => FULL_HEADER_BYTES,
        }
    }

    /// Bytes that hold the expanded template with the header, or the document alone if it is the whole payload; `None` if
    /// the body has no such size.
    pub fn template_needs(&self) -> Option<u32> {
        match &self.body {
            Body::Template(template) => Some(self.header_bytes() + template.most_bytes() as u32),
            Body::Json(document) if self.header == HeaderPlace::UserProperty => Some(document.len() as u32),
            Body::Random | Body::Text | Body::Json(_) => None,
        }
    }

    /// Whether the expanded template fits into every payload size of the group.
    pub fn template_fits(&self) -> bool {
        let fits = |needed| matches!(self.size, SizeDistribution::Rendered { .. }) || self.size.lower_bound() >= needed;
        self.template_needs().is_none_or(fits)
    }

    /// Bytes of a payload that holds the header and the JSON document after it; `None` if the body is not JSON, or is a
    /// template, which is never truncated.
    pub fn json_document_needs(&self) -> Option<u32> {
        match &self.body {
            Body::Json(document) => Some(self.header_bytes() + document.len() as u32),
            Body::Template(_) | Body::Random | Body::Text => None,
        }
    }

    /// Bodies of the group's first messages, at most `count`; `None` if they are not complete JSON documents.
    pub fn json_examples(&self, count: u32) -> Option<Vec<Vec<u8>>> {
        match &self.body {
            Body::Template(template) => Some(template.examples(count)),
            Body::Json(document) => {
                let holds = self.json_document_needs().is_some_and(|bytes| self.size.lower_bound() >= bytes);
                holds.then(|| vec![document.as_bytes().to_vec()])
            }
            Body::Random | Body::Text => None,
        }
    }

    /// Mean size of the payloads as sent, in bytes.
    pub fn mean_payload_bytes(&self) -> f64 {
        self.size.mean_raised(self.smallest_payload_bytes())
    }

    /// The reaction that triggers the group's messages, if there is one.
    pub fn reaction(&self) -> Option<&Reaction> {
        match &self.arrival {
            Arrival::Reaction(reaction) => Some(reaction),
            _ => None,
        }
    }
}

/// Where messages are filtered by content for a group of subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilterPlace {
    /// Each subscriber filters the messages that it received.
    #[default]
    Client,
    /// The broker filters the messages of the subscription.
    Broker,
}

impl FilterPlace {
    /// The name used in files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            FilterPlace::Client => "client",
            FilterPlace::Broker => "broker",
        }
    }
}

/// A group of subscribers with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscriberGroup {
    /// Unique in the workload.
    pub name: String,
    /// Number of subscribers, each with its own connection (already multiplied by the scale where the workload says so).
    pub count: u32,
    /// Topic filters of each subscriber; `{index}` becomes the subscriber's number in its group, so that publishers and
    /// subscribers can form pairs.
    pub filters: Vec<TopicFilter>,
    /// QoS requested.
    pub qos: Qos,
    /// What the system retains of a subscriber's session.
    pub session: SessionKind,
    /// Client identifiers and credentials of the subscribers.
    pub identity: GroupIdentity,
    /// Name of the shared subscription that its subscribers form: each message is delivered to one of them.
    pub shared: Option<String>,
    /// Time that a subscriber processes a message before it reads the next; zero for none.
    pub processing: Duration,
    /// Name of the clients that carry the group, as [`DeviceGroup::client`].
    pub client: Option<String>,
    /// Name of the group's link, as [`DeviceGroup::link`].
    pub link: Option<String>,
    /// The clients run in a separate process, as [`DeviceGroup::isolate`].
    pub isolate: bool,
    /// The subscribers reply to requests: this is a group of responders.
    pub responds: Option<Responds>,
    /// Predicate on the content that selects messages; all messages if `None`.
    pub predicate: Option<Predicate>,
    /// Where messages are filtered.
    pub filtered_at: FilterPlace,
}

impl SubscriberGroup {
    /// The predicate by which the broker filters the group's messages, if the broker filters.
    pub fn broker_filter(&self) -> Option<&Predicate> {
        self.predicate.as_ref().filter(|_| self.filtered_at == FilterPlace::Broker)
    }
}

/// A named change to a workload: made so that it can run, or a difference from what was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deviation {
    /// Short stable name, for instance `payload-raised-to-header`.
    pub name: String,
    /// One sentence: what was changed, from what to what, why.
    pub detail: String,
}

impl Workload {
    /// Where a group of devices runs.
    pub fn placement_of_devices(&self, group: &DeviceGroup) -> &Placement {
        self.placement.of_devices(&group.name, group.client.as_deref())
    }

    /// Where a group of subscribers runs.
    pub fn placement_of_subscribers(&self, group: &SubscriberGroup) -> &Placement {
        self.placement.of_subscribers(&group.name, group.client.as_deref())
    }

    /// Where each group runs.
    pub fn placements(&self) -> GroupPlacements<'_> {
        GroupPlacements {
            devices: self.devices.iter().map(|group| self.placement_of_devices(group)).collect(),
            subscribers: self.subscribers.iter().map(|group| self.placement_of_subscribers(group)).collect(),
        }
    }

    /// Number of members of a device group, a subscriber group or a set of clients with this name.
    pub fn count_of(&self, name: &str) -> Option<u32> {
        let devices = self.devices.iter().map(|group| (&group.name, &group.client, group.count));
        let subscribers = self.subscribers.iter().map(|group| (&group.name, &group.client, group.count));
        devices
            .chain(subscribers)
            .find(|(group, client, _)| *group == name || client.as_deref() == Some(name))
            .map(|(_, _, count)| count)
    }

    /// The links that groups use, each with the names of these groups, in the order of [`Workload::links`].
    pub fn links_in_use(&self) -> Vec<(&Link, Vec<&str>)> {
        let devices = self.devices.iter().map(|group| (group.name.as_str(), group.link.as_deref()));
        let subscribers = self.subscribers.iter().map(|group| (group.name.as_str(), group.link.as_deref()));
        let groups: Vec<(&str, Option<&str>)> = devices.chain(subscribers).collect();
        let behind = |link: &Link| {
            groups.iter().filter(|(_, name)| *name == Some(link.name.as_str())).map(|(group, _)| *group).collect()
        };
        let all = self.links.iter().map(|link| (link, behind(link)));
        all.filter(|(_, groups): &(_, Vec<&str>)| !groups.is_empty()).collect()
    }

    /// Whether any device sends less after it received a message.
    pub fn has_slowdowns(&self) -> bool {
        self.devices.iter().any(|group| group.slowdown.is_some())
    }

    /// Whether any device reacts to messages.
    pub fn has_reactions(&self) -> bool {
        self.devices.iter().any(|group| group.reaction().is_some())
    }
}

/// A validated workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name on the command line and in records.
    pub name: String,
    /// One sentence for `pubmark list workloads`.
    pub description: String,
    /// Source of the figures (paper, data set), if there is one.
    pub source: Option<String>,
    /// Variant of the workload.
    pub variant: Variant,
    /// Whether the workload has two variants.
    pub has_readings: bool,
    /// Multiplier of the device counts, ≥ 1.
    pub scale: u32,
    /// Device groups.
    pub devices: Vec<DeviceGroup>,
    /// Subscriber groups.
    pub subscribers: Vec<SubscriberGroup>,
    /// Links by name: those that the file defines, and the presets that groups use. Each group has a link for itself;
    /// groups on shared clients share one.
    pub links: Vec<Link>,
    /// Faults injected during a run.
    pub faults: Vec<Fault>,
    /// Limits that a run has to meet, as written; the crate that has the figures parses them.
    pub objectives: Vec<String>,
    /// Programs that compute figures from the message log.
    pub metrics: Vec<MetricProgram>,
    /// Placement of groups on nodes, for runs with several nodes.
    pub placement: Placements,
    /// Changes made while the workload was loaded.
    pub deviations: Vec<Deviation>,
    /// Parameters of the file that are used in passwords. Their values from `--set` are never printed.
    pub secret_parameters: Vec<String>,
}
