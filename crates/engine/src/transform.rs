//! The steps of `transform` on a shard: publishers apply them to bodies, and subscribers reverse them for received
//! bodies.

use std::collections::HashMap;
use std::sync::Arc;

use pubmark_model::payload::HeaderPlace;
use pubmark_model::transform::{MOST_STEPS, Step};
use pubmark_model::workload::Workload;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::{self, Header};
use pubmark_protocol::transform::keys::KeyedSteps;
use pubmark_protocol::transform::{Corrupt, MessageName, StepCosts, TransformedBody, Transformer};
use serde::{Deserialize, Serialize};

/// Largest number of publishers whose keys a shard stores: some 10 MB. With more publishers, the stored keys are
/// discarded and derived again.
const KEYS_LIMIT: usize = 16_384;

/// Counts of one step for measured messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSum {
    /// Number of bodies.
    pub messages: u64,
    /// CPU time of the threads that executed it, ns.
    pub cpu_ns: u64,
    /// Bytes of the bodies before the step.
    pub bytes_before: u64,
    /// Bytes of the bodies after the step.
    pub bytes_after: u64,
    /// Received bodies for which the step could not be reversed.
    pub failed: u64,
}

impl StepSum {
    fn merge(&mut self, other: StepSum) {
        self.messages += other.messages;
        self.cpu_ns += other.cpu_ns;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.failed += other.failed;
    }
}

/// By index of a step, for the messages of one device group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransformCounts {
    /// Counts of its publishers, for messages that were passed to the adapter.
    pub publishing: [StepSum; MOST_STEPS],
    /// Counts of clients, for copies that they received. The bytes before a step are the bytes received.
    pub receiving: [StepSum; MOST_STEPS],
}

impl TransformCounts {
    /// Adds the counts of another shard.
    pub fn merge(&mut self, other: &TransformCounts) {
        self.publishing.iter_mut().zip(other.publishing).for_each(|(sum, other)| sum.merge(other));
        self.receiving.iter_mut().zip(other.receiving).for_each(|(sum, other)| sum.merge(other));
    }
}

/// By device group; `None` for a group without steps.
pub type GroupTransforms = Vec<Option<Box<TransformCounts>>>;

fn counts_of(all: &mut GroupTransforms, group: u16) -> &mut TransformCounts {
    let group = usize::from(group);
    if all.len() <= group {
        all.resize(group + 1, None);
    }
    all[group].get_or_insert_with(Default::default)
}

fn enter(sums: &mut [StepSum; MOST_STEPS], costs: &StepCosts, steps: usize) {
    for (sum, cost) in sums.iter_mut().zip(costs).take(steps) {
        sum.merge(StepSum {
            messages: 1,
            cpu_ns: cost.cpu_ns,
            bytes_before: cost.bytes_before.into(),
            bytes_after: cost.bytes_after.into(),
            failed: 0,
        });
    }
}

/// Adds the costs of the steps of a publisher's message.
pub fn record_transform(all: &mut GroupTransforms, group: u16, workload: &Workload, costs: &StepCosts) {
    let steps = workload.devices[usize::from(group)].transform.len();
    enter(&mut counts_of(all, group).publishing, costs, steps);
}

/// Creates the bodies of a publisher with steps.
pub struct PublisherSteps {
    body: Arc<TransformedBody>,
    header: HeaderPlace,
    /// Wall clock − `CLOCK_MONOTONIC`, ns, as used by the adapter.
    wall_ahead_ns: i64,
}

/// Result of the steps for a message.
#[derive(Clone, Copy, Debug)]
pub struct TransformResult {
    /// Costs by step.
    pub costs: StepCosts,
    /// CPU time of all steps, ns, if the device executed them between the due time and the send. It is 0 for a message
    /// that waited for its session, because the steps may have been executed during the wait.
    pub delay_ns: u64,
}

impl PublisherSteps {
    /// For a publisher with these bodies.
    pub fn new(body: Arc<TransformedBody>, header: HeaderPlace, wall_ahead_ns: i64) -> PublisherSteps {
        PublisherSteps { body, header, wall_ahead_ns }
    }

    /// Creates the body of a message and sets its sizes. The steps are work of the device: for a message that did not
    /// wait, their time is not a lag of the generator.
    pub fn make(&self, publisher: u32, message: &mut Outgoing, has_waited: bool) -> TransformResult {
        let header_bytes = header_bytes(self.header, message.root.is_some());
        message.plain_body_bytes = message.payload_bytes.saturating_sub(header_bytes);
        let made = self.body.make(&message.filled(publisher, self.wall_ahead_ns));
        message.payload_bytes = header_bytes + made.bytes;
        let cpu_ns = made.costs.iter().map(|cost| cost.cpu_ns).sum();
        let delay_ns = if has_waited { 0 } else { cpu_ns };
        message.timing.submitted_ns += delay_ns;
        TransformResult { costs: made.costs, delay_ns }
    }
}

/// Size of the header in a payload with steps, bytes. The header is never compact.
fn header_bytes(place: HeaderPlace, is_reaction: bool) -> u32 {
    match (place, is_reaction) {
        (HeaderPlace::UserProperty, _) => 0,
        (HeaderPlace::Payload, false) => header::FULL as u32,
        (HeaderPlace::Payload, true) => header::REACTION as u32,
    }
}

/// Reverses the steps of received messages.
pub struct Reversal {
    workload: Arc<Workload>,
    seed: u64,
    transformer: Transformer,
    /// Steps with keys, by publisher.
    keyed: HashMap<u32, KeyedSteps>,
    body: Vec<u8>,
}

impl Reversal {
    /// For a shard of subscribers; `None` if no group has steps.
    pub fn new(workload: &Arc<Workload>, seed: u64) -> Option<Reversal> {
        workload.devices.iter().any(|group| !group.transform.is_empty()).then(|| Reversal {
            workload: Arc::clone(workload),
            seed,
            transformer: Transformer::default(),
            keyed: HashMap::new(),
            body: vec![],
        })
    }

    /// Reverses the steps of a message of this group, if it has any. The costs are counted if `counted` is given, which
    /// is for measured messages.
    ///
    /// # Errors
    /// The message is not as its publisher sent it.
    pub fn reverse(
        &mut self,
        group: u16,
        header: &Header,
        delivery: &Delivery<'_>,
        counted: Option<&mut GroupTransforms>,
    ) -> Result<(), Corrupt> {
        let sender = &self.workload.devices[usize::from(group)];
        let steps: &[Step] = &sender.transform;
        if steps.is_empty() {
            return Ok(());
        }
        if self.keyed.len() >= KEYS_LIMIT && !self.keyed.contains_key(&header.publisher) {
            self.keyed.clear();
        }
        let of_publisher = || KeyedSteps::of(steps, self.seed, header.publisher);
        let keyed = self.keyed.entry(header.publisher).or_insert_with(of_publisher);
        let place = if delivery.header.is_some() { HeaderPlace::UserProperty } else { HeaderPlace::Payload };
        let header_bytes = header_bytes(place, header.root.is_some()) as usize;
        self.body.clear();
        self.body.extend_from_slice(delivery.payload.get(header_bytes..).unwrap_or_default());
        let name = MessageName { publisher: header.publisher, sequence: header.sequence };
        // Twice the largest expected size: sizes are random, and a template may add some bytes.
        let most = sender.size.upper_bound().saturating_mul(2).saturating_add(4_096) as usize;
        let reversed = self.transformer.reverse(keyed, name, most, &mut self.body);
        if let Some(counted) = counted {
            let receiving = &mut counts_of(counted, group).receiving;
            match &reversed {
                Ok(costs) => enter(receiving, costs, steps.len()),
                Err(corrupt) => receiving[corrupt.step].failed += 1,
            }
        }
        reversed.map(|_| ())
    }

    /// The body of the last reversed message; `None` for a group without steps.
    pub fn document(&self, group: u16) -> Option<&[u8]> {
        (!self.workload.devices[usize::from(group)].transform.is_empty()).then_some(&self.body)
    }
}
