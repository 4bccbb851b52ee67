//! Payloads: the header, and after it the body, which follows from publisher and sequence number, so that a message can be
//! encoded again without being stored. And what is sent beside them: properties, a header among them if it is not in the
//! payload.

use std::ops::Range;

#[cfg(any(test, feature = "mqtt", feature = "nats", feature = "amqp091", feature = "amqp10"))]
use pubmark_model::payload::HEADER_PROPERTY;
use pubmark_model::payload::HeaderPlace;
use pubmark_protocol::body;
#[cfg(feature = "mqtt")]
use pubmark_protocol::clients::Will;
use pubmark_protocol::clients::{Outgoing, Publication, ShardConfig};
use pubmark_protocol::header;
use pubmark_protocol::requests::OutgoingReply;

/// Appends the whole payload of a message, with the header first if it fits.
pub fn append(config: &ShardConfig, publication: &Publication, message: &Outgoing, out: &mut Vec<u8>) {
    append_part(config, publication, message, 0..message.payload_bytes as usize, out);
}

/// Appends the header of a payload and returns its length.
fn append_header(config: &ShardConfig, publisher: u32, message: &Outgoing, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    let Outgoing { sequence, timing, root, payload_bytes, .. } = *message;
    let bytes = header::write(out, payload_bytes as usize, config.run, publisher, sequence, timing.due_ns);
    root.map_or(bytes, |root| header::extend_to_reaction(out, at, root))
}

/// Appends the payload of a reply: its header, and after it bytes of the shard's pool.
pub fn append_reply(config: &ShardConfig, answer: &OutgoingReply<'_>, out: &mut Vec<u8>) {
    header::write_reply(out, config.run, answer.publisher, answer.sequence, answer.due_ns);
    let body_bytes = reply_bytes(answer) - header::FULL;
    body::append_pool(&config.body_pool, answer.publisher, answer.sequence, 0, body_bytes, out);
}

/// Appends a part of the payload that [`append_reply`] would append, with its write start, for protocols that send it
/// in pieces; a piece may be smaller than the header.
#[cfg(feature = "coap")]
pub fn append_answer_part(
    config: &ShardConfig,
    answer: &OutgoingReply<'_>,
    write_start_ns: u64,
    part: Range<usize>,
    out: &mut Vec<u8>,
) {
    if part.start < header::FULL {
        let at = out.len();
        header::write_reply(out, config.run, answer.publisher, answer.sequence, answer.due_ns);
        header::patch_write_start(&mut out[at..], &answer.timing, write_start_ns);
        out.truncate(at + part.end.min(header::FULL));
        out.drain(at..at + part.start);
    }
    let skipped = part.start.saturating_sub(header::FULL);
    let bytes = part.end.saturating_sub(header::FULL + skipped);
    body::append_pool(&config.body_pool, answer.publisher, answer.sequence, skipped, bytes, out);
}

/// Bytes of a reply's payload.
pub fn reply_bytes(answer: &OutgoingReply<'_>) -> usize {
    (answer.payload_bytes as usize).max(header::FULL)
}

/// Appends the payload of a will: its header, and behind it bytes of the shard's pool.
#[cfg(feature = "mqtt")]
pub fn append_will(config: &ShardConfig, will: &Will, out: &mut Vec<u8>) {
    header::write_will(out, config.run, will.publisher);
    let body_bytes = usize::from(will.payload_bytes).saturating_sub(header::WILL);
    body::append_pool(&config.body_pool, will.publisher, 0, 0, body_bytes, out);
}

/// Appends a part of the payload that [`append`] would append, for protocols that send it in pieces. A part that begins
/// behind the payload's first byte begins behind its header.
pub fn append_part(
    config: &ShardConfig,
    publication: &Publication,
    message: &Outgoing,
    part: Range<usize>,
    out: &mut Vec<u8>,
) {
    let (publisher, sequence) = (publication.publisher, message.sequence);
    let at = out.len();
    let header_bytes = match publication.header {
        HeaderPlace::UserProperty => 0,
        HeaderPlace::Payload if (message.payload_bytes as usize) < header::COMPACT => {
            out.resize(out.len() + part.len(), 0);
            return;
        }
        HeaderPlace::Payload => append_header(config, publisher, message, out),
    };
    if part.start > 0 {
        out.truncate(at);
    }
    let skipped = part.start.saturating_sub(header_bytes);
    let bytes = part.end.saturating_sub(header_bytes + skipped);
    match &publication.body {
        Some(body) => body.append(&message.filled(publisher, config.wall_ahead_ns), skipped, bytes, out),
        None => body::append_pool(&config.body_pool, publisher, sequence, skipped, bytes, out),
    }
}

/// What stands behind the header of a whole payload that [`append`] appended.
#[cfg(feature = "amqp10")]
pub fn body<'a>(publication: &Publication, message: &Outgoing, payload: &'a [u8]) -> &'a [u8] {
    let header_bytes = match (publication.header, message.root) {
        (HeaderPlace::UserProperty, _) => 0,
        (HeaderPlace::Payload, None) => header::FULL,
        (HeaderPlace::Payload, Some(_)) => header::REACTION,
    };
    payload.get(header_bytes..).unwrap_or_default()
}

/// Space for a header as text.
#[cfg(any(test, feature = "mqtt", feature = "nats", feature = "amqp091", feature = "amqp10"))]
pub type TextSpace = [u8; header::LONGEST_TEXT];

/// The header of a message as text, if it goes beside the payload.
#[cfg(any(test, feature = "mqtt", feature = "nats", feature = "amqp091", feature = "amqp10"))]
pub fn header_text<'a>(
    config: &ShardConfig,
    publication: &Publication,
    message: &Outgoing,
    space: &'a mut TextSpace,
) -> Option<&'a str> {
    let Outgoing { sequence, timing, root, .. } = *message;
    match publication.header {
        HeaderPlace::Payload => None,
        HeaderPlace::UserProperty => {
            Some(header::write_text(space, config.run, publication.publisher, sequence, timing.due_ns, root))
        }
    }
}

/// What goes beside a message's payload, names and values: the workload's own, and behind them the header.
#[cfg(any(test, feature = "mqtt", feature = "nats", feature = "amqp091", feature = "amqp10"))]
pub fn properties<'a>(
    own: &'a [(String, String)],
    header: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> + Clone {
    let own = own.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    own.chain(header.map(|header| (HEADER_PROPERTY, header)))
}

/// Bytes of a message's properties. `each` is what the protocol adds to the name and the value of one.
#[cfg(any(test, feature = "mqtt", feature = "nats"))]
pub fn property_bytes(publication: &Publication, is_reaction: bool, each: usize) -> usize {
    let own: usize = publication.properties.iter().map(|(name, value)| name.len() + value.len() + each).sum();
    own + match publication.header {
        HeaderPlace::Payload => 0,
        HeaderPlace::UserProperty => HEADER_PROPERTY.len() + header::text_bytes(is_reaction) + each,
    }
}

/// Does anything go beside the payloads of a publication?
#[cfg(any(feature = "nats", feature = "amqp091", feature = "amqp10"))]
pub fn has_properties(publication: &Publication) -> bool {
    publication.header == HeaderPlace::UserProperty || !publication.properties.is_empty()
}

#[cfg(test)]
mod tests {
    use pubmark_model::template::{BodyDraw, Template};
    use pubmark_protocol::body::Body;
    use pubmark_protocol::header::Root;
    use pubmark_protocol::timing::Timing;

    use super::*;

    #[test]
    fn the_parts_of_a_payload_are_the_payload() {
        let config = ShardConfig { run: 1, body_pool: (0..=250).collect(), ..ShardConfig::default() };
        let reacts = [None, Some(Root { due_ns: 4, lag_ns: 0 })];
        let template =
            Template::parse("{\"v\": {{normal 21 0.5}}, \"s\": \"{{string 1500}}\", \"at\": {{timestamp ms}}}");
        let template = Body::Template { template: template.expect("a template").into(), device: "0-3".into() };
        let bodies = [None, Some(Body::Document((0..=99).collect())), Some(template)];
        for (body, root) in bodies.into_iter().flat_map(|body| reacts.map(|root| (body.clone(), root))) {
            let qos = pubmark_model::qos::Qos::BestEffort;
            let publication = Publication {
                publisher: 3,
                topic: "a".into(),
                qos,
                retain: false,
                body,
                header: HeaderPlace::Payload,
                properties: [].into(),
            };
            let message = Outgoing {
                publication: 0,
                sequence: 7,
                timing: Timing::on_time(5),
                root,
                draw: BodyDraw::default(),
                plain_body_bytes: 0,
                payload_bytes: 3_000,
            };
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            append(&config, &publication, &message, &mut whole);
            for part in [0..1_024, 1_024..2_048, 2_048..2_064, 2_064..3_000] {
                append_part(&config, &publication, &message, part, &mut parts);
            }
            assert_eq!(parts, whole);
            let header = header::read(&whole, 6);
            assert_eq!(header.map(|header| (header.due_ns, header.root)), Some((5, root)));
        }
    }

    #[test]
    fn a_header_beside_the_payload_leaves_the_body_alone_in_it() {
        let wall_ahead_ns = 1_769_860_800_000_000_000;
        let config = ShardConfig { run: 1, wall_ahead_ns, ..ShardConfig::default() };
        let template = Template::parse("{\"n\": {{counter 5 2}}, \"at\": {{timestamp ms}}}").expect("a template");
        let publication = Publication {
            publisher: 3,
            topic: "a".into(),
            qos: pubmark_model::qos::Qos::BestEffort,
            retain: false,
            body: Some(Body::Template { template: template.into(), device: "0-3".into() }),
            header: HeaderPlace::UserProperty,
            properties: [("site".to_owned(), "hall".to_owned())].into(),
        };
        let draw = BodyDraw { key: 1, number: 4 };
        let message = Outgoing {
            publication: 0,
            sequence: 7,
            timing: Timing::on_time(1_000_000),
            root: None,
            draw,
            plain_body_bytes: 0,
            payload_bytes: 40,
        };
        let mut payload = Vec::new();
        append(&config, &publication, &message, &mut payload);
        assert_eq!(String::from_utf8_lossy(&payload), "{\"n\": 13, \"at\": 1769860800001}          ");
        let mut space = [0; header::LONGEST_TEXT];
        let text = header_text(&config, &publication, &message, &mut space);
        let beside: Vec<_> = properties(&publication.properties, text).collect();
        assert_eq!((beside[0], beside[1].0), (("site", "hall"), "pubmark"));
        let header = header::read_text(beside[1].1.as_bytes(), 6);
        assert_eq!(header.map(|header| (header.publisher, header.sequence, header.due_ns)), Some((3, 7, 1_000_000)));
        let bytes: usize = beside.iter().map(|(name, value)| name.len() + value.len() + 5).sum();
        assert_eq!(property_bytes(&publication, false, 5), bytes);
    }

    #[test]
    #[cfg(feature = "coap")]
    fn the_parts_of_an_answer_are_the_answer() {
        let config = ShardConfig { run: 1, body_pool: (0..=250).collect(), ..ShardConfig::default() };
        let answer = OutgoingReply {
            to: pubmark_protocol::requests::ReplyTo { address: "", correlation: &[] },
            qos: pubmark_model::qos::Qos::BestEffort,
            number: 1,
            publisher: 3,
            sequence: 7,
            due_ns: 5,
            timing: Timing::on_time(1_000_000),
            payload_bytes: 3_000,
        };
        let mut whole = Vec::new();
        append_reply(&config, &answer, &mut whole);
        header::patch_write_start(&mut whole, &answer.timing, 9_000_000);
        for size in [16, 32, 1_024, 3_000] {
            let mut parts = Vec::new();
            for start in (0..3_000).step_by(size) {
                append_answer_part(&config, &answer, 9_000_000, start..3_000.min(start + size), &mut parts);
            }
            assert_eq!(parts, whole, "{size}");
        }
        assert_eq!(header::read_reply(&whole, 1, 0).and_then(|header| header.write_start_us), Some(8_000));
    }
}
