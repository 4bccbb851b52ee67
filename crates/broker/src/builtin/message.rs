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

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.packet.len()
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
/// expired. One that is repeated does not expire: at QoS 2 the client may know its identifier (MQTT 5.0 §4.3.3).
pub(crate) fn forwarded<'a>(
    properties: &Properties<'a>,
    subscription_ids: &[u32],
    age_ns: u64,
    is_repeated: bool,
) -> Option<Vec<Property<'a>>> {
    let mut list: Vec<Property<'a>> = subscription_ids.iter().map(|id| Property::SubscriptionIdentifier(*id)).collect();
    for property in properties.iter() {
        match property {
            Property::TopicAlias(_) | Property::SubscriptionIdentifier(_) => {}
            Property::MessageExpiryInterval(seconds) => {
                let left_ns = (u64::from(seconds) * NANOSECONDS).saturating_sub(age_ns);
                if left_ns == 0 && !is_repeated {
                    return None;
                }
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
    /// Bytes of all these messages.
    bytes: usize,
}

impl Retained {
    /// Stores a retained message; an empty payload removes the stored one. False if there are too many topics or bytes; the
    /// topic then has none, rather than an old one.
    pub(crate) fn store(
        &mut self,
        publish: &Publish<'_>,
        received_ns: u64,
        maximum_topics: usize,
        maximum_bytes: usize,
    ) -> Result<bool, EncodeError> {
        let topic = publish.head.topic;
        if let Some((old, _)) = self.by_topic.remove(topic) {
            self.bytes -= old.bytes();
        }
        if publish.payload.is_empty() {
            return Ok(true);
        }
        if self.by_topic.len() >= maximum_topics || self.bytes > maximum_bytes {
            return Ok(false);
        }
        let message = std::rc::Rc::new(Message::new(publish, received_ns)?);
        self.bytes += message.bytes();
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn retained_messages_have_limits_and_a_topic_has_its_last_one_or_none() {
        let mut retained = Retained::default();
        let mut store = |topic, payload: &[u8]| {
            let properties = Properties::NONE;
            let head =
                PublishHead { dup: false, qos: Qos::BestEffort, retain: true, topic, packet_id: None, properties };
            let is_stored = retained.store(&Publish { head, payload }, 0, 2, 2_000).unwrap();
            let found = retained.matching(topic);
            (is_stored, found.first().map(|(message, _)| message.publish().payload.to_vec()))
        };
        assert_eq!(store("a", b"1"), (true, Some(b"1".to_vec())));
        assert_eq!(store("a", &[2; 3_000]), (true, Some(vec![2; 3_000])));
        assert_eq!(store("b", b"3"), (false, None), "there are too many bytes");
        assert_eq!(store("a", b"4"), (true, Some(b"4".to_vec())), "a message in the place of another one");
        assert_eq!(store("b", &[5; 3_000]), (true, Some(vec![5; 3_000])));
        assert_eq!(store("c", b"6"), (false, None), "there are too many topics");
        assert_eq!(store("a", b"7"), (false, None), "an old message would be a wrong one");
        assert_eq!(store("b", b""), (true, None));
        assert_eq!((retained.by_topic.len(), retained.bytes), (0, 0));
    }
}
