//! Packets at random. Their texts live until the test process ends, so that packets borrow from nothing.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::*;

fn leak(text: String) -> &'static str {
    text.leak()
}

fn text() -> impl Strategy<Value = &'static str> {
    "[a-zA-Z0-9 äß€😀]{0,12}".prop_map(leak)
}

fn binary() -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), 0..40).prop_map(|bytes| &*bytes.leak())
}

fn topic() -> impl Strategy<Value = &'static str> {
    "[a-z/é]{1,20}".prop_map(leak)
}

fn filter() -> impl Strategy<Value = &'static str> {
    let level = prop_oneof![Just("+".to_string()), "[a-z]{0,5}"];
    (vec(level, 1..4), any::<bool>()).prop_map(|(mut levels, rest)| {
        if rest || levels == [""] {
            levels.push("#".to_string());
        }
        leak(levels.join("/"))
    })
}

fn qos() -> impl Strategy<Value = Qos> {
    proptest::sample::select(Qos::ALL.to_vec())
}

fn user_properties() -> impl Strategy<Value = Vec<Property<'static>>> {
    vec((text(), text()).prop_map(|(name, value)| Property::UserProperty(name, value)), 0..3)
}

/// Properties of one packet: those of `choices` that are drawn, then users' own.
fn properties(version: Version, choices: Vec<BoxedStrategy<Property<'static>>>) -> BoxedStrategy<Properties<'static>> {
    if version == Version::V311 {
        return Just(Properties::NONE).boxed();
    }
    let choices: Vec<_> = choices.into_iter().map(option::of).collect();
    (choices, user_properties())
        .prop_map(|(single, users)| {
            let list: Vec<Property<'static>> = single.into_iter().flatten().chain(users).collect();
            Properties::new(list.leak())
        })
        .boxed()
}

fn of_message() -> Vec<BoxedStrategy<Property<'static>>> {
    vec![
        any::<bool>().prop_map(Property::PayloadFormatIndicator).boxed(),
        any::<u32>().prop_map(Property::MessageExpiryInterval).boxed(),
        text().prop_map(Property::ContentType).boxed(),
        topic().prop_map(Property::ResponseTopic).boxed(),
        binary().prop_map(Property::CorrelationData).boxed(),
    ]
}

fn reason_string() -> Vec<BoxedStrategy<Property<'static>>> {
    vec![text().prop_map(Property::ReasonString).boxed()]
}

fn will(version: Version) -> impl Strategy<Value = Will<'static>> {
    let mut choices = of_message();
    choices.push(any::<u32>().prop_map(Property::WillDelayInterval).boxed());
    (qos(), any::<bool>(), topic(), binary(), properties(version, choices))
        .prop_map(|(qos, retain, topic, payload, properties)| Will { qos, retain, topic, payload, properties })
}

pub fn connect(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let choices = vec![
        any::<u32>().prop_map(Property::SessionExpiryInterval).boxed(),
        any::<bool>().prop_map(Property::RequestProblemInformation).boxed(),
        any::<bool>().prop_map(Property::RequestResponseInformation).boxed(),
        (1..=u16::MAX).prop_map(Property::ReceiveMaximum).boxed(),
        any::<u16>().prop_map(Property::TopicAliasMaximum).boxed(),
        (1..=u32::MAX).prop_map(Property::MaximumPacketSize).boxed(),
        text().prop_map(Property::AuthenticationMethod).boxed(),
    ];
    // The oracles know a password only with a user name, and an empty client identifier only with a clean start.
    let login = option::of((text(), option::of(binary())));
    (any::<bool>(), any::<u16>(), text(), option::of(will(version)), login, properties(version, choices)).prop_map(
        move |(clean_start, keep_alive_s, client_id, will, login, properties)| {
            Packet::Connect(Connect {
                version,
                clean_start: clean_start || client_id.is_empty(),
                keep_alive_s,
                client_id,
                will,
                user: login.map(|login| login.0),
                password: login.and_then(|login| login.1),
                properties,
            })
        },
    )
}

pub fn connack(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let choices = vec![
        any::<u32>().prop_map(Property::SessionExpiryInterval).boxed(),
        (1..=u16::MAX).prop_map(Property::ReceiveMaximum).boxed(),
        any::<bool>().prop_map(Property::MaximumQos).boxed(),
        any::<bool>().prop_map(Property::RetainAvailable).boxed(),
        (1..=u32::MAX).prop_map(Property::MaximumPacketSize).boxed(),
        text().prop_map(Property::AssignedClientIdentifier).boxed(),
        any::<u16>().prop_map(Property::TopicAliasMaximum).boxed(),
        text().prop_map(Property::ReasonString).boxed(),
        any::<bool>().prop_map(Property::WildcardSubscriptionAvailable).boxed(),
        any::<bool>().prop_map(Property::SubscriptionIdentifierAvailable).boxed(),
        any::<bool>().prop_map(Property::SharedSubscriptionAvailable).boxed(),
        any::<u16>().prop_map(Property::ServerKeepAlive).boxed(),
        text().prop_map(Property::ResponseInformation).boxed(),
        text().prop_map(Property::ServerReference).boxed(),
    ];
    let codes = match version {
        Version::V311 => vec![0, 1, 2, 3, 4, 5],
        Version::V5 => vec![0, 0x80, 0x84, 0x86, 0x87, 0x95, 0x9f],
    };
    (any::<bool>(), proptest::sample::select(codes), properties(version, choices)).prop_map(
        |(present, code, properties)| {
            Packet::Connack(Connack { session_present: present && code == 0, code, properties })
        },
    )
}

pub fn publish(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let mut choices = of_message();
    choices.push((1..=u16::MAX).prop_map(Property::TopicAlias).boxed());
    choices.push((1..=268_435_455u32).prop_map(Property::SubscriptionIdentifier).boxed());
    let payload = vec(any::<u8>(), 0..400).prop_map(|bytes| &*bytes.leak());
    (any::<bool>(), qos(), any::<bool>(), topic(), 1..=u16::MAX, properties(version, choices), payload).prop_map(
        |(dup, qos, retain, topic, packet_id, properties, payload)| {
            let acknowledged = qos != Qos::BestEffort;
            let packet_id = acknowledged.then_some(packet_id);
            let head = PublishHead { dup: dup && acknowledged, qos, retain, topic, packet_id, properties };
            Packet::Publish(Publish { head, payload })
        },
    )
}

pub fn ack(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let kinds = [AckKind::Puback, AckKind::Pubrec, AckKind::Pubrel, AckKind::Pubcomp];
    (proptest::sample::select(kinds.to_vec()), 1..=u16::MAX, any::<bool>(), properties(version, reason_string()))
        .prop_map(move |(kind, packet_id, failed, properties)| {
            let failure = match kind {
                AckKind::Puback | AckKind::Pubrec => reason::QUOTA_EXCEEDED,
                AckKind::Pubrel | AckKind::Pubcomp => reason::PACKET_IDENTIFIER_NOT_FOUND,
            };
            let reason = if failed && version == Version::V5 { failure } else { reason::SUCCESS };
            Packet::Ack(Ack { kind, packet_id, reason, properties })
        })
}

pub fn subscribe(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let choices = vec![(1..=268_435_455u32).prop_map(Property::SubscriptionIdentifier).boxed()];
    let handling = proptest::sample::select(vec![RetainHandling::Always, RetainHandling::IfNew, RetainHandling::Never]);
    let request = (filter(), qos(), any::<bool>(), any::<bool>(), handling).prop_map(
        move |(filter, qos, no_local, retain_as_published, retain_handling)| match version {
            Version::V311 => SubscribeRequest::new(filter, qos),
            Version::V5 => SubscribeRequest { filter, qos, no_local, retain_as_published, retain_handling },
        },
    );
    (1..=u16::MAX, properties(version, choices), vec(request, 1..5)).prop_map(|(packet_id, properties, requests)| {
        Packet::Subscribe(Subscribe { packet_id, properties, filters: Filters::new(requests.leak()) })
    })
}

pub fn suback(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let codes = match version {
        Version::V311 => vec![0, 1, 2, 0x80],
        Version::V5 => vec![0, 1, 2, 0x80, 0x87, 0x8f, 0x97],
    };
    (1..=u16::MAX, properties(version, reason_string()), vec(proptest::sample::select(codes), 1..5)).prop_map(
        |(packet_id, properties, codes)| Packet::Suback(Suback { packet_id, properties, codes: codes.leak() }),
    )
}

pub fn unsubscribe(version: Version) -> impl Strategy<Value = Packet<'static>> {
    (1..=u16::MAX, properties(version, Vec::new()), vec(filter(), 1..5)).prop_map(|(packet_id, properties, filters)| {
        let filters = TopicFilters::new(filters.leak());
        Packet::Unsubscribe(Unsubscribe { packet_id, properties, filters })
    })
}

pub fn unsuback(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let codes = vec(proptest::sample::select(vec![0, 0x11, 0x80, 0x87]), 1..5);
    (1..=u16::MAX, properties(version, reason_string()), codes).prop_map(move |(packet_id, properties, codes)| {
        let codes = if version == Version::V311 { &[][..] } else { &*codes.leak() };
        Packet::Unsuback(Unsuback { packet_id, properties, codes })
    })
}

pub fn disconnect(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let choices = reason_string();
    let codes = proptest::sample::select(vec![0, 0x04, 0x81, 0x8d, 0x8e, 0x95]);
    (codes, properties(version, choices)).prop_map(move |(reason, properties)| {
        let reason = if version == Version::V311 { reason::SUCCESS } else { reason };
        Packet::Disconnect(Disconnect { reason, properties })
    })
}

fn auth() -> impl Strategy<Value = Packet<'static>> {
    (proptest::sample::select(vec![0x18, 0x19]), text(), option::of(binary())).prop_map(|(reason, method, data)| {
        let mut list = vec![Property::AuthenticationMethod(method)];
        list.extend(data.map(Property::AuthenticationData));
        Packet::Auth(Auth { reason, properties: Properties::new(list.leak()) })
    })
}

/// Any packet of a version.
pub fn any_packet(version: Version) -> BoxedStrategy<Packet<'static>> {
    let both = prop_oneof![
        connect(version),
        connack(version),
        publish(version),
        ack(version),
        subscribe(version),
        suback(version),
        unsubscribe(version),
        unsuback(version),
        disconnect(version),
        Just(Packet::Pingreq),
        Just(Packet::Pingresp),
    ];
    match version {
        Version::V311 => both.boxed(),
        Version::V5 => prop_oneof![11 => both, 1 => auth()].boxed(),
    }
}

/// A packet and its version.
pub fn versioned() -> impl Strategy<Value = (Version, Packet<'static>)> {
    prop_oneof![Just(Version::V311), Just(Version::V5)]
        .prop_flat_map(|version| any_packet(version).prop_map(move |packet| (version, packet)))
}

/// The packet's bytes.
pub fn bytes_of(version: Version, packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(version, packet, &mut out).unwrap();
    out
}

/// The one packet in `bytes`, which must end where they end.
pub fn packet_in(version: Version, bytes: &[u8]) -> Result<Packet<'_>, DecodeError> {
    let frame = frame(bytes, usize::MAX)?.expect("a whole packet");
    assert_eq!(frame.total_bytes, bytes.len());
    decode(version, &frame)
}
