//! A message that is stored: retained, queued, or in flight.

use std::collections::HashMap;

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::{EncodeError, decode_publish, encode_publish, frame};
use pubmark_wire::mqtt::{Frame, Properties, Property, Publish, PublishHead, Version};

const NANOSECONDS: u64 = 1_000_000_000;

/// A message in our own memory, encoded as a QoS 0 packet of MQTT 5.0: one allocation.
#[derive(Debug)]
pub(crate) struct Message {
    packet: Box<[u8]>,
    /// When it was received, ns of `CLOCK_MONOTONIC`: its expiry counts from here.
    pub(crate) received_ns: u64,
}

impl Message {
    pub(crate) fn new(publish: &Publish<'_>, received_ns: u64) -> Result<Message, EncodeError> {
        let head = PublishHead { dup: false, qos: Qos::BestEffort, retain: false, packet_id: None, ..publish.head };
        let mut packet = Vec::new();
        encode_publish(Version::V5, &Publish { head, payload: publish.payload }, &mut packet)?;
        Ok(Message { packet: packet.into(), received_ns })
    }

    /// The message as it was published, at QoS 0.
    pub(crate) fn publish(&self) -> Publish<'_> {
        let frame: Frame<'_> = frame(&self.packet, usize::MAX)
            .ok()
            .flatten()
            .expect("the bytes were written by `Message::new` and never changed");
        decode_publish(Version::V5, &frame).expect("the bytes were written by `Message::new` and never changed")
    }
}

/// How a message is forwarded to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
}

/// The properties that are forwarded with a message to a subscriber (MQTT 5.0 §3.3.2.3): all but the topic alias and the
/// publisher's subscription identifiers; the seconds until it expires are reduced by the time it waited. `None` if it has
/// expired.
pub(crate) fn forwarded<'a>(
    properties: &Properties<'a>,
    subscription_ids: &[u32],
    age_ns: u64,
) -> Option<Vec<Property<'a>>> {
    let mut list: Vec<Property<'a>> = subscription_ids.iter().map(|id| Property::SubscriptionIdentifier(*id)).collect();
    for property in properties.iter() {
        match property {
            Property::TopicAlias(_) | Property::SubscriptionIdentifier(_) => {}
            Property::MessageExpiryInterval(seconds) => {
                let left_ns = (u64::from(seconds) * NANOSECONDS).checked_sub(age_ns).filter(|left| *left > 0)?;
                // Rounded up, so that a message does not lose a second at every broker on its path.
                list.push(Property::MessageExpiryInterval(left_ns.div_ceil(NANOSECONDS) as u32));
            }
            other => list.push(other),
        }
    }
    Some(list)
}

/// Topics with their last retained message.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    by_topic: HashMap<Box<str>, (std::rc::Rc<Message>, Qos)>,
}

impl Retained {
    /// Stores a retained message; an empty payload removes the stored one. False if there are too many topics.
    pub(crate) fn store(
        &mut self,
        publish: &Publish<'_>,
        received_ns: u64,
        maximum_topics: usize,
    ) -> Result<bool, EncodeError> {
        let topic = publish.head.topic;
        if publish.payload.is_empty() {
            self.by_topic.remove(topic);
            return Ok(true);
        }
        if self.by_topic.len() >= maximum_topics && !self.by_topic.contains_key(topic) {
            return Ok(false);
        }
        let message = std::rc::Rc::new(Message::new(publish, received_ns)?);
        self.by_topic.insert(topic.into(), (message, publish.head.qos));
        Ok(true)
    }

    /// The retained messages that a filter matches.
    pub(crate) fn matching(&self, filter: &str) -> Vec<(std::rc::Rc<Message>, Qos)> {
        if !filter.contains(['+', '#']) {
            return self.by_topic.get(filter).cloned().into_iter().collect();
        }
        let filter = pubmark_model::topic::TopicFilter(filter.to_string());
        let found = self.by_topic.iter().filter(|(topic, _)| filter.matches(topic));
        found.map(|(_, kept)| kept.clone()).collect()
    }
}
