//! Messages of the server's, and its DISCONNECT.

use pubmark_model::payload::HEADER_PROPERTY;
use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink};
use pubmark_protocol::requests::{self, ReplyTo};
use pubmark_wire::mqtt::{
    AckKind, Disconnect, Frame, Properties, Property, Publish, decode_publish, reason, reason_name,
};

use super::session::{Mqtt, broken};
use super::version::ProtocolVersion;
use crate::connection::{Link, Shared, Times};

impl<V: ProtocolVersion> Mqtt<V> {
    pub(super) fn on_publish(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        found: &Frame<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let publish = decode_publish(V::VERSION, found).map_err(broken)?;
        let mut first = true;
        if let Some(packet_id) = publish.head.packet_id {
            let kind = if publish.head.qos == Qos::ExactlyOnce {
                first = self.received_ids.insert(packet_id);
                AckKind::Pubrec
            } else {
                AckKind::Puback
            };
            self.acknowledge(link, shared, kind, packet_id, reason::SUCCESS);
        }
        if first {
            hand_on(link, &publish, times, sink);
        }
        Ok(())
    }
}

/// Reports a message by its kind: a request, a reply, or neither (MQTT 5.0 §4.10).
fn hand_on(link: &Link, publish: &Publish<'_>, times: Times, sink: &mut impl Sink) {
    let properties = &publish.head.properties;
    let header = header_of(properties);
    let delivery = Delivery { header, ..times.delivery(publish.payload, publish.head.retain) };
    let correlation = properties.correlation_data();
    match properties.response_topic() {
        Some(address) => sink.event(
            link.id,
            Event::Requested { reply_to: ReplyTo { address, correlation: correlation.unwrap_or(&[]) }, delivery },
        ),
        None if link.config.options.reply_topic.is_some() => {
            sink.event(link.id, Event::Replied { request: correlation.and_then(requests::correlated), delivery });
        }
        None => sink.event(link.id, Event::Delivered(delivery)),
    }
}

/// The text of the property for a header; `None` if there is none, empty, and so a stranger's, if there are several.
fn header_of<'a>(properties: &Properties<'a>) -> Option<&'a [u8]> {
    if properties.is_empty() {
        return None;
    }
    let mut texts = properties.iter().filter_map(|property| match property {
        Property::UserProperty(HEADER_PROPERTY, text) => Some(text.as_bytes()),
        _ => None,
    });
    let first = texts.next()?;
    Some(if texts.next().is_some() { &[] } else { first })
}

/// The server ends the connection with words.
pub fn disconnect_cause(disconnect: &Disconnect<'_>) -> Cause {
    let code = disconnect.reason;
    if code == reason::NOT_AUTHORIZED {
        // Of a session that was accepted: a token has expired, or rights were taken away.
        return Cause::NotAuthorized(Reason::code(code, reason_name(code)));
    }
    Cause::Server { reason: Reason::code(code, reason_name(code)), too_large: code == reason::PACKET_TOO_LARGE }
}

#[cfg(test)]
mod tests {
    use pubmark_protocol::header::{self, LONGEST_TEXT};

    use super::*;

    #[test]
    fn a_message_is_known_by_one_header_alone() {
        let mut space = [0; LONGEST_TEXT];
        let text = header::write_text(&mut space, 1, 3, 7, 5, None);
        let [own, other] = [Property::UserProperty(HEADER_PROPERTY, text), Property::UserProperty("site", text)];
        let forged = text.replace('c', "g");
        let [short, forged] = [&text[2..], &forged].map(|text| Property::UserProperty(HEADER_PROPERTY, text));
        let number = |list: &[Property<'_>]| {
            header_of(&Properties::new(list)).map(|text| header::read_text(text, 6).map(|header| header.sequence))
        };
        assert_eq!(number(&[other, own]), Some(Some(7)));
        assert_eq!(number(&[]), None);
        assert_eq!(number(&[other]), None);
        for strange in [&[own, other, own][..], &[own, forged], &[short], &[forged]] {
            assert_eq!(number(strange), Some(None), "{strange:?}");
        }
    }
}
