//! The validated workload: who sends what, who listens. Made only by parsing and checking (`parse`) or by the built-in tables.

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
use crate::schedule::{FULL_HEADER_BYTES, SMALLEST_ANSWER_BYTES, SMALLEST_PAYLOAD_BYTES};
use crate::secret::Secret;
use crate::topic::{TopicFilter, TopicTemplate};
use crate::transform::{self, Step};

/// Which reading of a published workload: as the paper's numbers were made, or as its text means it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a session keeps when its connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// Nothing: subscriptions and queued messages are gone.
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

/// Bytes at the front of a will's payload that say whose it is.
pub const WILL_HEADER_BYTES: u32 = 8;

/// A message that the system publishes in a device's name when its connection ends without a goodbye.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MqttSettings {
    /// The system drops a message that it could not deliver within this time; whole seconds, at least one.
    pub message_expiry: Option<Duration>,
    /// A number stands for the topic from the second message on a connection on.
    pub topic_alias: bool,
}

/// A group of like devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Where the header of its messages is.
    pub header: HeaderPlace,
    /// User properties of its messages: keys and values.
    pub properties: Vec<(String, String)>,
    /// What is done with the body of each message before it is sent, in this order; subscribers undo it.
    pub transform: Vec<Step>,
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
    /// Who its clients are.
    pub identity: GroupIdentity,
    /// Name of the clients that carry it: all groups that name them share their connections, device 0 on client 0 and so on.
    /// `None`: each device has a connection of its own.
    pub client: Option<String>,
    /// Name of its link, one of the workload's; `None`: the machine's own network. Groups on shared clients have the same.
    pub link: Option<String>,
    /// Its clients run in a process of their own, so that what they cost is told apart. Groups on shared clients go together.
    pub isolate: bool,
    /// Its messages are requests: the group is one of requesters.
    pub requests: Option<Requests>,
}

impl DeviceGroup {
    /// Smallest payload of its messages, bytes; smaller sizes are raised to it and counted.
    pub fn smallest_payload_bytes(&self) -> u32 {
        match self.header {
            HeaderPlace::UserProperty => 1,
            HeaderPlace::Payload if self.reaction().is_some() => SMALLEST_ANSWER_BYTES,
            // A payload behind the steps may have any size: the form of its header cannot depend on it.
            HeaderPlace::Payload if !self.transform.is_empty() => FULL_HEADER_BYTES,
            HeaderPlace::Payload => SMALLEST_PAYLOAD_BYTES,
        }
    }

    /// Smallest payload that is sent, bytes; 0 where steps make it depend on the content.
    pub fn smallest_sent_bytes(&self) -> u32 {
        if self.transform.is_empty() { self.size.lower_bound() } else { 0 }
    }

    /// Largest payload that is sent, with negligible chance of a larger one, bytes: what its steps add is in it, what they save is not.
    pub fn largest_payload_bytes(&self) -> u32 {
        self.size
            .upper_bound()
            .max(self.smallest_payload_bytes())
            .saturating_add(transform::added_bytes(&self.transform))
    }

    /// Bytes of the full header in its payloads; 0 if it is beside them.
    pub fn header_bytes(&self) -> u32 {
        match self.header {
            HeaderPlace::UserProperty => 0,
            HeaderPlace::Payload if self.reaction().is_some() => SMALLEST_ANSWER_BYTES,
            HeaderPlace::Payload => FULL_HEADER_BYTES,
        }
    }

    /// Size that holds whatever its template becomes, header included, or its document if that is the whole payload, bytes; `None` if
    /// its body has no such size.
    pub fn template_needs(&self) -> Option<u32> {
        match &self.body {
            Body::Template(template) => Some(self.header_bytes() + template.most_bytes() as u32),
            Body::Json(document) if self.header == HeaderPlace::UserProperty => Some(document.len() as u32),
            Body::Random | Body::Text | Body::Json(_) => None,
        }
    }

    /// Do all its sizes hold what its template becomes?
    pub fn template_fits(&self) -> bool {
        let fits = |needed| matches!(self.size, SizeDistribution::Rendered { .. }) || self.size.lower_bound() >= needed;
        self.template_needs().is_none_or(fits)
    }

    /// Bytes of a payload that holds its JSON document behind the header; `None` if its body is none, or a template, which is never cut.
    pub fn json_document_needs(&self) -> Option<u32> {
        match &self.body {
            Body::Json(document) => Some(self.header_bytes() + document.len() as u32),
            Body::Template(_) | Body::Random | Body::Text => None,
        }
    }

    /// Bodies of its first messages, at most N; `None` if they are no JSON documents, or parts of one.
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

    /// Mean size of its payloads as sent, bytes.
    pub fn mean_payload_bytes(&self) -> f64 {
        self.size.mean_raised(self.smallest_payload_bytes())
    }

    /// What it reacts to, if it does.
    pub fn reaction(&self) -> Option<&Reaction> {
        match &self.arrival {
            Arrival::Reaction(reaction) => Some(reaction),
            _ => None,
        }
    }
}

/// Who filters messages by their content for a group of subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilterPlace {
    /// Each subscriber, of what it received.
    #[default]
    Client,
    /// The broker, of what it has for the subscription.
    Broker,
}

impl FilterPlace {
    /// The word used in files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            FilterPlace::Client => "client",
            FilterPlace::Broker => "broker",
        }
    }
}

/// A group of like subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Who its clients are.
    pub identity: GroupIdentity,
    /// Name of the shared group that its subscribers are: each message goes to one of them.
    pub shared: Option<String>,
    /// Time a subscriber spends on a message before it takes the next; zero for none.
    pub processing: Duration,
    /// Name of the clients that carry it, as [`DeviceGroup::client`].
    pub client: Option<String>,
    /// Name of its link, as [`DeviceGroup::link`].
    pub link: Option<String>,
    /// Its clients run in a process of their own, as [`DeviceGroup::isolate`].
    pub isolate: bool,
    /// It answers requests: the group is one of responders.
    pub responds: Option<Responds>,
    /// Messages that it is interested in, by their content; all if `None`.
    pub predicate: Option<Predicate>,
    /// Who filters them.
    pub filtered_at: FilterPlace,
}

impl SubscriberGroup {
    /// What the broker is to filter its messages by, if it is to.
    pub fn broker_filter(&self) -> Option<&Predicate> {
        self.predicate.as_ref().filter(|_| self.filtered_at == FilterPlace::Broker)
    }
}

/// A named change that was made to a workload so that it can run, or differs from what was asked.
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

    /// How many there are of what is called so: a device group, a subscriber group, or clients.
    pub fn count_of(&self, name: &str) -> Option<u32> {
        let devices = self.devices.iter().map(|group| (&group.name, &group.client, group.count));
        let subscribers = self.subscribers.iter().map(|group| (&group.name, &group.client, group.count));
        devices
            .chain(subscribers)
            .find(|(group, client, _)| *group == name || client.as_deref() == Some(name))
            .map(|(_, _, count)| count)
    }

    /// The links that groups are behind, each with the names of those groups, in the order of [`Workload::links`].
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

    /// Does any device react to messages?
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
    /// Where the figures come from (paper, data set), if anywhere.
    pub source: Option<String>,
    /// Which reading.
    pub variant: Variant,
    /// Does it have two readings?
    pub has_readings: bool,
    /// Multiplier of the device counts, ≥ 1.
    pub scale: u32,
    /// Who sends.
    pub devices: Vec<DeviceGroup>,
    /// Who listens.
    pub subscribers: Vec<SubscriberGroup>,
    /// Links by name: those that the file defines and the presets that groups are behind. Each group behind one has it to
    /// itself, groups on shared clients together.
    pub links: Vec<Link>,
    /// What is broken during a run.
    pub faults: Vec<Fault>,
    /// Limits that a run has to keep, as written; whoever knows the figures reads them.
    pub objectives: Vec<String>,
    /// Programs that compute figures from the message log.
    pub metrics: Vec<MetricProgram>,
    /// On which nodes groups run when there are several.
    pub placement: Placements,
    /// Changes made while loading.
    pub deviations: Vec<Deviation>,
    /// Parameters of the file that passwords are made of. What `--set` gives them is shown nowhere.
    pub secret_parameters: Vec<String>,
}
