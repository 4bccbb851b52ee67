//! Outgoing messages: handed over, sent again, acknowledged.

use pubmark_model::payload::MOST_PROPERTIES;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, Publication, SessionOptions, ShardConfig};
use pubmark_protocol::events::{Cause, Event, Reason, Sink};
use pubmark_protocol::header::LONGEST_TEXT;
use pubmark_protocol::outbox::Message;
use pubmark_protocol::requests::{self, CORRELATION_BYTES};
use pubmark_wire::mqtt::{
    Ack, AckKind, EncodeError, MAXIMUM_REMAINING_LENGTH, Properties, Property, PublishHead, Version, encode_ack,
    encode_publish_head, reason, reason_name,
};

use super::aliases::Alias;
use super::session::Mqtt;
use super::version::ProtocolVersion;
use crate::connection::{Blocked, Link, Progress, Refusal, Shared};
use crate::payload;

/// What a message carries besides its topic and payload (5.0).
#[derive(Clone, Copy, Default)]
struct Extras<'a> {
    expiry_s: Option<u32>,
    alias: Option<Alias>,
    reply_topic: Option<&'a str>,
    /// Bytes of its user properties.
    user_bytes: usize,
}

/// Bytes of a user property besides its name and its value: its number, and two lengths.
const USER_PROPERTY_BYTES: usize = 5;

impl<'a> Extras<'a> {
    fn new(
        options: &'a SessionOptions,
        alias: Option<Alias>,
        publication: &Publication,
        message: &Outgoing,
    ) -> Extras<'a> {
        let user_bytes = payload::property_bytes(publication, message.root.is_some(), USER_PROPERTY_BYTES);
        Extras { expiry_s: options.message_expiry_s, alias, reply_topic: options.reply_topic.as_deref(), user_bytes }
    }

    /// Bytes of its properties, without their length.
    fn property_bytes(self) -> usize {
        // A number and four bytes; a number and two; twice a number with a field, of two bytes and what is in it.
        let reply_bytes = self.reply_topic.map_or(0, |topic| 3 + topic.len() + 3 + CORRELATION_BYTES);
        self.expiry_s.map_or(0, |_| 5) + self.alias.map_or(0, |_| 3) + reply_bytes + self.user_bytes
    }

    /// The topic as it is written: an alias that the server knows stands for it.
    fn topic(self, publication: &Publication) -> &str {
        if self.alias.is_some_and(|alias| !alias.is_new) { "" } else { &publication.topic }
    }
}

/// A message with all that its packet depends on.
struct Packet<'a> {
    publication: &'a Publication,
    extras: Extras<'a>,
    message: Outgoing,
    qos: Qos,
    packet_id: Option<u16>,
    dup: bool,
}

impl Packet<'_> {
    /// Appends the packet; returns where its payload header begins.
    fn encode(&self, version: Version, config: &ShardConfig, out: &mut Vec<u8>) -> Result<usize, EncodeError> {
        let Extras { expiry_s, alias, reply_topic, .. } = self.extras;
        let correlation = requests::correlation(self.message.token());
        let all = [
            expiry_s.map(Property::MessageExpiryInterval),
            alias.map(|alias| Property::TopicAlias(alias.number)),
            reply_topic.map(Property::ResponseTopic),
            reply_topic.map(|_| Property::CorrelationData(&correlation)),
        ];
        let mut space = [0; LONGEST_TEXT];
        let header = payload::header_text(config, self.publication, &self.message, &mut space);
        let user = payload::properties(&self.publication.properties, header)
            .map(|(name, value)| Property::UserProperty(name, value));
        let mut written = [Property::TopicAlias(0); 4 + 1 + MOST_PROPERTIES];
        let mut count = 0;
        for property in all.into_iter().flatten().chain(user).take(written.len()) {
            written[count] = property;
            count += 1;
        }
        let head = PublishHead {
            dup: self.dup,
            qos: self.qos,
            retain: self.publication.retain,
            topic: self.extras.topic(self.publication),
            packet_id: self.packet_id,
            properties: Properties::new(&written[..count]),
        };
        encode_publish_head(version, &head, self.message.payload_bytes as usize, out)?;
        // The last property's value ends where the payload begins.
        let at = out.len() - header.map_or(0, str::len);
        payload::append(config, self.publication, &self.message, out);
        Ok(at)
    }
}

/// Bytes of a whole PUBLISH, and those behind its fixed header.
fn packet_bytes(
    version: Version,
    publication: &Publication,
    extras: Extras<'_>,
    qos: Qos,
    payload_bytes: usize,
) -> (usize, usize) {
    let identifier_bytes = if qos == Qos::BestEffort { 0 } else { 2 };
    let properties = extras.property_bytes();
    let property_bytes = if version == Version::V5 { length_bytes(properties) + properties } else { 0 };
    let remaining = 2 + extras.topic(publication).len() + identifier_bytes + property_bytes + payload_bytes;
    (1 + length_bytes(remaining) + remaining, remaining)
}

/// Bytes of a length, as a variable byte integer.
pub(super) fn length_bytes(remaining: usize) -> usize {
    match remaining {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

impl<V: ProtocolVersion> Mqtt<V> {
    /// Appends a message; the refusal otherwise.
    pub(super) fn publish(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let publication = &link.config.publications[usize::from(message.publication)];
        let qos = publication.qos.min(self.maximum_qos);
        let payload_bytes = message.payload_bytes as usize;
        let alias = self.aliases.of(message.publication);
        let extras = Extras::new(&link.config.options, alias, publication, &message);
        let (bytes, remaining) = packet_bytes(V::VERSION, publication, extras, qos, payload_bytes);
        if publication.topic.len() > usize::from(u16::MAX) {
            return Err(Refusal::TooLarge(u16::MAX.into()));
        }
        if remaining > MAXIMUM_REMAINING_LENGTH {
            return Err(Refusal::TooLarge(MAXIMUM_REMAINING_LENGTH as u32));
        }
        if bytes > self.maximum_packet_bytes as usize {
            return Err(Refusal::TooLarge(self.maximum_packet_bytes));
        }
        if qos != Qos::BestEffort && !self.in_flight.has_room() {
            return Err(Refusal::Blocked(Blocked::Window));
        }
        let packet_id = (qos != Qos::BestEffort).then(|| self.in_flight.add(message, qos));
        let packet = Packet { publication, extras, message, qos, packet_id, dup: false };
        let entry = Message {
            token: message.token(),
            timing: message.timing,
            tag: packet_id.unwrap_or(0),
            repeated: false,
            withheld: false,
        };
        let config = &shared.config;
        link.outbox.append_message(&mut shared.pool, entry, |out| {
            packet.encode(V::VERSION, config, out).expect("topic and length were checked")
        });
        if alias.is_some_and(|alias| alias.is_new) {
            self.aliases.note(message.publication);
        }
        Ok(())
    }

    /// Sends messages of an earlier connection again, as far as the window allows.
    pub(super) fn send_held(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        while let Some(packet_id) = self.in_flight.next_held() {
            let Some(entry) = self.in_flight.get(packet_id).copied() else { continue };
            // A reply cannot be made again; sessions that reply are never persistent, so there is none here.
            let publication = link.config.publications.get(usize::from(entry.message.publication));
            if entry.progress == Progress::Released {
                self.acknowledge(link, shared, AckKind::Pubrel, packet_id, reason::SUCCESS);
                continue;
            }
            let Some(publication) = publication else { continue };
            // Its first connection's alias means nothing on this one, so the topic is written out.
            let extras = Extras::new(&link.config.options, None, publication, &entry.message);
            let (bytes, _) =
                packet_bytes(V::VERSION, publication, extras, entry.qos, entry.message.payload_bytes as usize);
            if let Some(reason) = self.cannot_repeat(bytes, entry.qos) {
                // At QoS 2 the server may have it: it would take the next message with its identifier for a repetition, and
                // acknowledge it without publishing it (MQTT 5.0 §4.3.3).
                match entry.qos {
                    Qos::ExactlyOnce => self.in_flight.retire(packet_id),
                    Qos::BestEffort | Qos::AtLeastOnce => self.in_flight.remove(packet_id),
                };
                sink.event(link.id, Event::Acknowledged { token: entry.token(), outcome: Err(reason) });
                continue;
            }
            let packet = Packet {
                publication,
                extras,
                message: entry.message,
                qos: entry.qos,
                packet_id: Some(packet_id),
                dup: true,
            };
            let message = Message {
                token: entry.token(),
                timing: entry.message.timing,
                tag: packet_id,
                repeated: true,
                withheld: false,
            };
            let config = &shared.config;
            link.outbox.append_message(&mut shared.pool, message, |out| {
                packet.encode(V::VERSION, config, out).expect("it was encoded before")
            });
            sink.event(link.id, Event::Resent(entry.token()));
        }
    }

    /// Why the server would end the connection for a message sent again, each time anew: it may be longer than it was, with its
    /// topic written out, and the server may take less than it did.
    fn cannot_repeat(&self, bytes: usize, qos: Qos) -> Option<Reason> {
        if bytes > self.maximum_packet_bytes as usize {
            let most = self.maximum_packet_bytes;
            return Some(Reason::words(format!(
                "too large to be sent again with its topic: the server takes {most} B"
            )));
        }
        (qos > self.maximum_qos).then(|| Reason::words(format!("the server takes no QoS {} any more", qos.level())))
    }

    /// Appends an acknowledgement; it leaves with the next write.
    pub(super) fn acknowledge(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        kind: AckKind,
        packet_id: u16,
        reason: u8,
    ) {
        link.respond(shared, |out| {
            encode_ack(V::VERSION, &Ack::new(kind, packet_id, reason), out).expect("packet identifiers read are not 0");
        });
    }

    /// A packet of the server about a message that pubmark or the server sent.
    pub(super) fn on_ack(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        ack: &Ack<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match ack.kind {
            AckKind::Puback => self.on_puback(link, ack, sink)?,
            AckKind::Pubrec => self.on_pubrec(link, shared, ack, sink)?,
            AckKind::Pubcomp => self.on_pubcomp(ack)?,
            AckKind::Pubrel => {
                let known = self.received_ids.remove(ack.packet_id);
                let reason = if known { reason::SUCCESS } else { reason::PACKET_IDENTIFIER_NOT_FOUND };
                self.acknowledge(link, shared, AckKind::Pubcomp, ack.packet_id, reason);
                return Ok(());
            }
        }
        self.send_held(link, shared, sink);
        Ok(())
    }

    fn on_puback(&mut self, link: &Link, ack: &Ack<'_>, sink: &mut impl Sink) -> Result<(), Cause> {
        let expected = |qos, progress| qos == Qos::AtLeastOnce && progress == Progress::Written;
        match self.in_flight.get(ack.packet_id) {
            Some(entry) if expected(entry.qos, entry.progress) => {
                let token = entry.token();
                self.in_flight.remove(ack.packet_id);
                sink.event(link.id, Event::Acknowledged { token, outcome: outcome(ack) });
                Ok(())
            }
            _ => Err(not_in_flight(ack)),
        }
    }

    fn on_pubrec(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        ack: &Ack<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match self.in_flight.get(ack.packet_id) {
            Some(entry) if entry.qos != Qos::ExactlyOnce || entry.progress == Progress::Handed => {
                return Err(not_in_flight(ack));
            }
            Some(entry) => {
                let token = entry.token();
                let news = entry.progress == Progress::Written;
                entry.progress = Progress::Released;
                if news {
                    sink.event(link.id, Event::Acknowledged { token, outcome: outcome(ack) });
                }
                if outcome(ack).is_err() {
                    // A refused message has no second step (MQTT 5.0 §4.3.3).
                    self.in_flight.remove(ack.packet_id);
                    return Ok(());
                }
                self.acknowledge(link, shared, AckKind::Pubrel, ack.packet_id, reason::SUCCESS);
            }
            None => self.acknowledge(link, shared, AckKind::Pubrel, ack.packet_id, reason::PACKET_IDENTIFIER_NOT_FOUND),
        }
        Ok(())
    }

    fn on_pubcomp(&mut self, ack: &Ack<'_>) -> Result<(), Cause> {
        match self.in_flight.get(ack.packet_id) {
            Some(entry) if entry.progress == Progress::Released => {
                self.in_flight.remove(ack.packet_id);
                Ok(())
            }
            Some(_) => Err(not_in_flight(ack)),
            // The response to a PUBREL for an identifier that we did not know either.
            None => Ok(()),
        }
    }
}

/// The outcome in an acknowledgement: codes from 0x80 on are refusals (MQTT 5.0 §2.4).
fn outcome(ack: &Ack<'_>) -> Result<(), Reason> {
    let code = ack.reason;
    if code < reason::UNSPECIFIED_ERROR { Ok(()) } else { Err(Reason::code(code, reason_name(code))) }
}

fn not_in_flight(ack: &Ack<'_>) -> Cause {
    Cause::Protocol(format!("{} for packet {}, which does not await it", ack.kind.packet_type(), ack.packet_id))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_protocol::timing::Timing;

    use super::*;
    use pubmark_model::payload::HeaderPlace;
    use pubmark_model::template::BodyDraw;

    fn every_extra() -> Vec<Extras<'static>> {
        let alias = |is_new| Some(Alias { number: 7, is_new });
        let mut every = vec![];
        for alias in [None, alias(true), alias(false)] {
            for expiry_s in [None, Some(10)] {
                every.extend([None, Some("answers/me")].map(|reply_topic| Extras {
                    expiry_s,
                    alias,
                    reply_topic,
                    user_bytes: 0,
                }));
            }
        }
        every
    }

    /// With a user property whose value has this length, if it has one.
    fn publication(qos: Qos, value_bytes: usize) -> Publication {
        let property = (value_bytes > 0).then(|| ("site".to_owned(), "x".repeat(value_bytes)));
        Publication {
            publisher: 1,
            topic: "a/b".into(),
            qos,
            retain: false,
            body: None,
            header: HeaderPlace::Payload,
            properties: property.into_iter().collect(),
        }
    }

    fn message(payload_bytes: u32) -> Outgoing {
        Outgoing {
            publication: 0,
            sequence: 1,
            timing: Timing::on_time(0),
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes,
        }
    }

    #[test]
    fn the_length_of_many_properties_takes_several_bytes() {
        let (config, options) = (ShardConfig::default(), SessionOptions::default());
        let (message, qos) = (message(16), Qos::BestEffort);
        // A property has nine bytes besides its value; their length takes a second byte from 128 on, and a third from 16,384.
        for value_bytes in [118, 119, 16_374, 16_375] {
            let publication = &publication(qos, value_bytes);
            let extras = Extras::new(&options, None, publication, &message);
            for version in [Version::V311, Version::V5] {
                let packet = Packet { publication, extras, message, qos, packet_id: None, dup: false };
                let mut out = Vec::new();
                packet.encode(version, &config, &mut out).unwrap();
                assert_eq!(packet_bytes(version, publication, extras, qos, 16).0, out.len(), "{value_bytes} B");
            }
        }
    }

    #[test]
    fn the_length_of_a_packet_is_known_before_it_is_encoded() {
        let config = ShardConfig { run: 1, body_pool: [7; 100].into(), ..ShardConfig::default() };
        for version in [Version::V311, Version::V5] {
            for (qos, packet_id) in
                [(Qos::BestEffort, None), (Qos::AtLeastOnce, Some(1)), (Qos::ExactlyOnce, Some(65_535))]
            {
                for payload_bytes in [16, 100, 119, 120, 121, 122, 16_370, 16_380, 16_384, 2_097_152] {
                    let publication = &publication(qos, 0);
                    for extras in every_extra() {
                        let message = message(payload_bytes);
                        let packet = Packet { publication, extras, message, qos, packet_id, dup: false };
                        let mut out = Vec::new();
                        packet.encode(version, &config, &mut out).unwrap();
                        assert_eq!(
                            packet_bytes(version, publication, extras, qos, payload_bytes as usize).0,
                            out.len()
                        );
                    }
                }
            }
        }
    }
}
