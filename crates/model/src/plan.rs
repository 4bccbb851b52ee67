//! What a run needs, computed before anything starts: clients, traffic, memory, and whether a machine is sufficient.
//!
//! Traffic counts payloads without the overhead of a protocol. Rates are those of a fleet with all devices online; mean
//! rates include planned churn. Start with [`Plan::new`], then [`Plan::verdicts`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::arrival::Arrival;
use crate::fleet::{Device, Fleet, SecondConnection, StreamSource};
use crate::placement::{self, GroupNodes, Labels, NodeLabels};
use crate::workload::{DeviceGroup, Workload};

mod largest;
mod requests;
mod verdicts;

use largest::Largest;
pub use requests::RequestPlan;
pub use verdicts::{Machine, Unit, Verdict};

/// Bytes of the message accounting of one stream.
pub const BOOK_BYTES_PER_STREAM: u64 = 192;
/// Bytes of the generator without clients: code, histograms, body pool, buffers of a shard.
pub const BASE_BYTES: u64 = 32 << 20;
/// Bytes of one connection with its session and schedule.
pub const CONNECTION_BYTES: u64 = 2_560;
/// Bytes that TLS adds to a connection.
pub const TLS_BYTES: u64 = 30 * 1024;
/// Descriptors of the generator besides its connections.
pub const OTHER_DESCRIPTORS: u64 = 64;

/// Settings of a run that affect the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Nodes that run the fleet, at least 1.
    pub nodes: u16,
    /// Labels of each node; empty if they are not known.
    pub labels: Vec<Labels>,
    /// Length of the warm-up.
    pub warmup: Duration,
    /// Length of the measured window.
    pub duration: Duration,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Which sessions have a second connection.
    pub second_connection: SecondConnection,
    /// Largest packet that the system accepts, in bytes, if known.
    pub packet_limit_bytes: Option<u32>,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            nodes: 1,
            labels: vec![],
            warmup: Duration::from_secs(5),
            duration: Duration::from_secs(60),
            tls: false,
            second_connection: SecondConnection::Never,
            packet_limit_bytes: None,
        }
    }
}

/// A flow of messages; averages over the measured window, except for the peaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Messages per second while all devices are online.
    pub messages_per_s: f64,
    /// Payload bytes per second while all devices are online.
    pub bytes_per_s: f64,
    /// Messages per second with all devices online, each at the peak of its profile; equal to `messages_per_s` without
    /// profiles.
    pub peak_messages_per_s: f64,
    /// Payload bytes per second at the same peak.
    pub peak_bytes_per_s: f64,
    /// Mean messages per second with planned churn.
    pub mean_messages_per_s: f64,
    /// Mean payload bytes per second with planned churn.
    pub mean_bytes_per_s: f64,
}

impl Traffic {
    fn add(&mut self, other: &Traffic) {
        self.messages_per_s += other.messages_per_s;
        self.bytes_per_s += other.bytes_per_s;
        self.peak_messages_per_s += other.peak_messages_per_s;
        self.peak_bytes_per_s += other.peak_bytes_per_s;
        self.mean_messages_per_s += other.mean_messages_per_s;
        self.mean_bytes_per_s += other.mean_bytes_per_s;
    }

    /// The flow that results if each message of this flow triggers `messages` messages of `bytes` bytes on average.
    fn reply_traffic(&self, messages: f64, bytes: f64) -> Traffic {
        let times = |per_s: f64| per_s * messages;
        Traffic {
            messages_per_s: times(self.messages_per_s),
            bytes_per_s: times(self.messages_per_s) * bytes,
            peak_messages_per_s: times(self.peak_messages_per_s),
            peak_bytes_per_s: times(self.peak_messages_per_s) * bytes,
            mean_messages_per_s: times(self.mean_messages_per_s),
            mean_bytes_per_s: times(self.mean_messages_per_s) * bytes,
        }
    }
}

/// Load of one node. Where labels do not decide, nodes differ by at most one device, and the largest share is reported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeShare {
    /// Devices.
    pub devices: u64,
    /// Subscribers.
    pub subscribers: u64,
    /// Connections: one for each client, or two ([`PlanOptions::second_connection`]).
    pub connections: u64,
    /// File descriptors.
    pub descriptors: u64,
    /// Memory of the message accounting, bytes.
    pub book_bytes: u64,
    /// Memory of the whole generator with the message accounting, bytes; an estimate.
    pub generator_bytes: u64,
    /// Messages sent and received per second, all devices online and at their peak; `None` with a flood.
    pub messages_per_s: Option<f64>,
    /// Payload bytes sent and received per second, under the same conditions.
    pub bytes_per_s: Option<f64>,
}

/// What a run needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The workload's name.
    pub workload: String,
    /// Nodes.
    pub nodes: u32,
    /// Devices on all nodes.
    pub devices: u64,
    /// Subscribers on all nodes.
    pub subscribers: u64,
    /// Connections to the system: one for each client, or two ([`PlanOptions::second_connection`]).
    pub connections: u64,
    /// Topics published to.
    pub topics: u64,
    /// Traffic into the system; `None` with a flood, which has no rate.
    pub incoming: Option<Traffic>,
    /// Traffic out of the system after fan-out: a message counts once for each subscriber that receives it.
    pub outgoing: Option<Traffic>,
    /// Mean share of due times at which the device is online; `None` with a flood, or if nothing is due.
    pub availability: Option<f64>,
    /// (publisher, topic) × subscription.
    pub streams: u64,
    /// Streams that two or more filters of their subscriber match; a system may send a copy for each.
    pub overlapping_streams: u64,
    /// Largest payload, with negligible chance of a larger one, bytes.
    pub largest_payload_bytes: u32,
    /// That payload with its topic and the protocol's header, bytes.
    pub largest_packet_bytes: u64,
    /// The packet size limit of the system, if it has one.
    pub packet_limit_bytes: Option<u32>,
    /// Messages due in the measured window; `None` with a flood.
    pub messages_due: Option<f64>,
    /// Messages due while their device is planned to be online.
    pub messages_sent: Option<f64>,
    /// Deliveries expected of these messages.
    pub deliveries: Option<f64>,
    /// Subscriber groups that receive from no device; probably the filter is wrong.
    pub subscribers_without_devices: Vec<String>,
    /// Device groups with devices whose messages no subscriber receives, and the number of these devices.
    pub devices_without_subscribers: Vec<(String, u64)>,
    /// Seconds per second that a subscriber processes messages, for the busiest group; `None` if no group has a processing
    /// time.
    pub processing: Option<Processing>,
    /// Requesters and responders; `None` without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestPlan>,
    /// Share of the largest node.
    pub node: NodeShare,
}

/// Time that a group's subscribers process messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Processing {
    /// Name of the group.
    pub group: String,
    /// Seconds of processing per second, for one subscriber.
    pub share: f64,
}

impl Plan {
    /// Computes what `workload` needs.
    pub fn new(workload: &Workload, options: &PlanOptions) -> Plan {
        let nodes = NodeLabels { nodes: options.nodes.max(1), labels: &options.labels };
        let groups = GroupNodes::of(&workload.placements(), nodes);
        let fleet = Fleet::of_copies(workload, &groups.copies());
        let flows = flows(workload, &fleet, options.warmup, options.duration);
        let incoming = flows.iter().copied().try_fold(Traffic::default(), sum);
        let heard = DeliveryPlan::new(workload, &fleet, &flows);
        let largest_payload_bytes = workload.devices.iter().map(DeviceGroup::largest_payload_bytes).max().unwrap_or(0);
        let largest_payload_bytes = largest_payload_bytes.max(workload.largest_reply_bytes());
        let largest_topic =
            workload.devices.iter().map(|group| group.topic.0.len() + group.name.len()).max().unwrap_or(0);
        let devices = fleet.device_count() as u64;
        let subscribers = fleet.subscribers().len() as u64;
        let (clients, connections) = clients(workload, &fleet, options.second_connection);
        let seconds = options.duration.as_secs_f64();
        let mut plan = Plan {
            workload: workload.name.clone(),
            nodes: nodes.nodes.into(),
            devices,
            subscribers,
            connections,
            topics: fleet.topic_count(workload) as u64,
            incoming,
            outgoing: heard.total,
            availability: incoming
                .filter(|flow| flow.messages_per_s > 0.0)
                .map(|flow| flow.mean_messages_per_s / flow.messages_per_s),
            streams: heard.streams,
            overlapping_streams: heard.overlapping,
            largest_payload_bytes,
            largest_packet_bytes: u64::from(largest_payload_bytes) + largest_topic as u64 + 32,
            packet_limit_bytes: options.packet_limit_bytes,
            messages_due: incoming.map(|flow| flow.messages_per_s * seconds),
            messages_sent: incoming.map(|flow| flow.mean_messages_per_s * seconds),
            deliveries: heard.total.map(|flow| flow.mean_messages_per_s * seconds),
            subscribers_without_devices: heard.without_devices,
            devices_without_subscribers: heard.without_subscribers,
            processing: heard.processing,
            requests: RequestPlan::new(workload, &fleet, &flows),
            node: NodeShare {
                devices: 0,
                subscribers: 0,
                connections: 0,
                descriptors: 0,
                book_bytes: 0,
                generator_bytes: 0,
                messages_per_s: None,
                bytes_per_s: None,
            },
        };
        plan.node = plan.share_of_a_node(workload, &Largest::of(&fleet, &groups, plan.nodes), clients, options.tls);
        plan
    }

    /// Share of the largest node. Subscribers that exist once are counted on this node if they may run on it, and so are
    /// their streams. `clients` is the number of clients on all nodes.
    fn share_of_a_node(&self, workload: &Workload, largest: &Largest, clients: u64, tls: bool) -> NodeShare {
        let nodes = u64::from(self.nodes);
        let (devices, subscribers) = (largest.devices, largest.subscribers);
        let part = u128::from(self.streams) * u128::from(subscribers);
        let streams = part.div_ceil(u128::from(self.subscribers.max(1))) as u64;
        let received = if self.subscribers == 0 { 1.0 } else { subscribers as f64 / self.subscribers as f64 };
        let sent = match placement::keys(workload).is_empty() {
            true => 1.0 / nodes as f64,
            false => devices as f64 / self.devices.max(1) as f64,
        };
        let spread = |whole: u64| whole.div_ceil(nodes);
        // Clients shared by several groups are distributed in the same way as devices.
        let shared = (self.devices + self.subscribers) - clients;
        let own = devices + subscribers - spread(shared).min(devices + subscribers);
        // The node's part of all connections is that of its clients.
        let connections = (own * self.connections).div_ceil(clients.max(1));
        let book_bytes = streams * BOOK_BYTES_PER_STREAM;
        let connection_bytes = CONNECTION_BYTES + if tls { TLS_BYTES } else { 0 };
        // Memory for one waiting message at each device and one partly read message at each subscriber.
        let waiting: f64 = workload
            .devices
            .iter()
            .zip(&largest.parts)
            .map(|(group, part)| f64::from(group.count) * part * group.mean_payload_bytes())
            .sum();
        let half_read = subscribers * u64::from(self.largest_payload_bytes);
        // A reply is sent by the responder and received by the requester.
        let answers =
            |part: fn(&Traffic) -> f64| self.requests.as_ref().and_then(|plan| plan.answers.as_ref()).map_or(0.0, part);
        let both = |offered: Option<f64>, taken: Option<f64>, reply_traffic: f64| {
            Some((offered? + reply_traffic) * sent + (taken? + reply_traffic) * received)
        };
        NodeShare {
            devices,
            subscribers,
            connections,
            descriptors: connections + OTHER_DESCRIPTORS,
            book_bytes,
            generator_bytes: BASE_BYTES + connections * connection_bytes + book_bytes + waiting as u64 + half_read,
            messages_per_s: both(
                self.incoming.map(|flow| flow.peak_messages_per_s),
                self.outgoing.map(|flow| flow.peak_messages_per_s),
                answers(|flow| flow.peak_messages_per_s),
            ),
            bytes_per_s: both(
                self.incoming.map(|flow| flow.peak_bytes_per_s),
                self.outgoing.map(|flow| flow.peak_bytes_per_s),
                answers(|flow| flow.peak_bytes_per_s),
            ),
        }
    }
}

/// Number of clients, one for each device and subscriber except for those that share a client, and of their connections.
fn clients(workload: &Workload, fleet: &Fleet, second: SecondConnection) -> (u64, u64) {
    let of_devices: Vec<u64> = workload.devices.iter().map(|group| second.of_device(workload, group)).collect();
    let of_subscribers: Vec<u64> =
        workload.subscribers.iter().map(|group| second.of_subscriber(workload, group)).collect();
    let mut shared = HashSet::new();
    let (mut clients, mut connections) = (0, 0);
    let mut last = None;
    for device in fleet.devices() {
        let identity = Some((device.copy, device.group, device.index));
        let again = std::mem::replace(&mut last, identity) == identity;
        let group = usize::from(device.group);
        let is_new = match &workload.devices[group].client {
            Some(client) => shared.insert((client, device.copy, device.index)),
            None => !again,
        };
        if is_new {
            clients += 1;
            connections += of_devices[group];
        }
    }
    for subscriber in fleet.subscribers() {
        let group = usize::from(subscriber.group);
        let is_new = match &workload.subscribers[group].client {
            Some(client) => shared.insert((client, subscriber.copy, subscriber.index)),
            None => true,
        };
        if is_new {
            clients += 1;
            connections += of_subscribers[group];
        }
    }
    (clients, connections)
}

/// Traffic of each publisher: scheduled messages, or one message for each trigger. `None` where the rate is not known.
fn flows(workload: &Workload, fleet: &Fleet, warmup: Duration, window: Duration) -> Vec<Option<Traffic>> {
    let of_groups: Vec<Option<Traffic>> =
        workload.devices.iter().map(|group| of_one_device(group, warmup, window)).collect();
    let reacts = |device: &Device| workload.devices[usize::from(device.group)].reaction().is_some();
    let scheduled = |device: &Device| match reacts(device) {
        true => Some(Traffic::default()),
        false => of_groups[usize::from(device.group)],
    };
    let mut flows: Vec<Option<Traffic>> = fleet.devices().iter().map(scheduled).collect();
    for link in fleet.links() {
        let group = &workload.devices[usize::from(fleet.devices()[link.reacts as usize].group)];
        let bytes = group.mean_payload_bytes();
        let messages = f64::from(group.reaction().map_or(0, |reaction| reaction.burst.messages));
        let answers = flows[link.trigger as usize].map(|flow| flow.reply_traffic(messages, bytes));
        flows[link.reacts as usize] = flows[link.reacts as usize].and_then(|total| sum(total, answers));
    }
    flows
}

fn of_one_device(group: &DeviceGroup, warmup: Duration, window: Duration) -> Option<Traffic> {
    let rate = group.arrival.mean_rate_within(warmup, window)?;
    let peak = match &group.arrival {
        Arrival::Profiled { .. } => group.arrival.peak_rate_per_s()?,
        _ => rate,
    };
    let online = group.churn.as_ref().map_or(1.0, |churn| churn.availability());
    let bytes = group.mean_payload_bytes();
    Some(Traffic {
        messages_per_s: rate,
        bytes_per_s: rate * bytes,
        peak_messages_per_s: peak,
        peak_bytes_per_s: peak * bytes,
        mean_messages_per_s: rate * online,
        mean_bytes_per_s: rate * bytes * online,
    })
}

fn sum(mut total: Traffic, flow: Option<Traffic>) -> Option<Traffic> {
    total.add(&flow?);
    Some(total)
}

/// Deliveries of all subscribers, summed.
struct DeliveryPlan {
    total: Option<Traffic>,
    streams: u64,
    overlapping: u64,
    without_devices: Vec<String>,
    without_subscribers: Vec<(String, u64)>,
    processing: Option<Processing>,
}

impl DeliveryPlan {
    fn new(workload: &Workload, fleet: &Fleet, flows: &[Option<Traffic>]) -> DeliveryPlan {
        let lists = fleet.streams(workload);
        // Subscribers with the same filters share a list, which is summed once.
        let mut known: HashMap<*const StreamSource, (Option<Traffic>, u64)> = HashMap::new();
        let mut deliveries_planned = DeliveryPlan {
            total: Some(Traffic::default()),
            streams: 0,
            overlapping: 0,
            without_devices: Vec::new(),
            without_subscribers: Vec::new(),
            processing: None,
        };
        let mut streams_by_group = vec![0_u64; workload.subscribers.len()];
        let mut is_received = vec![false; flows.len()];
        // A shared group is one audience, and each member receives a part.
        let audiences = fleet.audiences(workload);
        let mut members = vec![0_u32; fleet.subscribers().len()];
        audiences.iter().for_each(|audience| members[*audience as usize] += 1);
        let mut counted = vec![false; members.len()];
        for ((subscriber, list), audience) in fleet.subscribers().iter().zip(&lists).zip(audiences) {
            let (flow, overlapping) = *known.entry(Arc::as_ptr(list).cast()).or_insert_with(|| {
                let of = |heard: &StreamSource| flows[heard.publisher as usize];
                let flow = list.iter().map(of).try_fold(Traffic::default(), sum);
                list.iter().for_each(|heard| is_received[heard.publisher as usize] = true);
                (flow, list.iter().filter(|heard| heard.filters > 1).count() as u64)
            });
            if !std::mem::replace(&mut counted[audience as usize], true) {
                deliveries_planned.total = deliveries_planned.total.and_then(|total| sum(total, flow));
                deliveries_planned.streams += list.len() as u64;
                deliveries_planned.overlapping += overlapping;
            }
            let group = usize::from(subscriber.group);
            streams_by_group[group] += list.len() as u64;
            deliveries_planned.note_processing(&workload.subscribers[group], flow, members[audience as usize]);
        }
        let groups = workload.subscribers.iter().zip(streams_by_group);
        deliveries_planned.without_devices =
            groups.filter(|(_, heard)| *heard == 0).map(|(group, _)| group.name.clone()).collect();
        // A reacting device has a publisher for each trigger.
        let without = fleet.devices().iter().filter(|device| !is_received[device.publisher as usize]);
        let without: HashSet<(u16, u32, u32)> =
            without.map(|device| (device.group, device.copy, device.index)).collect();
        let mut unreceived = vec![0_u64; workload.devices.len()];
        without.iter().for_each(|(group, _, _)| unreceived[usize::from(*group)] += 1);
        let groups = workload.devices.iter().zip(unreceived).filter(|(_, devices)| *devices > 0);
        deliveries_planned.without_subscribers = groups.map(|(group, devices)| (group.name.clone(), devices)).collect();
        deliveries_planned
    }

    fn note_processing(&mut self, group: &crate::workload::SubscriberGroup, flow: Option<Traffic>, members: u32) {
        let each_s = match &group.responds {
            Some(responds) => responds.processing.mean().as_secs_f64() / f64::from(responds.concurrency),
            None => group.processing.as_secs_f64(),
        };
        let Some(flow) = flow.filter(|_| each_s > 0.0) else { return };
        let share = flow.peak_messages_per_s * each_s / f64::from(members);
        if self.processing.as_ref().is_none_or(|known| known.share < share) {
            self.processing = Some(Processing { group: group.name.clone(), share });
        }
    }
}
