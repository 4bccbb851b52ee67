//! The two versions, and what each can do.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, OverWebSocket, SentMeans};
use pubmark_wire::mqtt::{MAXIMUM_REMAINING_LENGTH, Version};

/// Bytes that a PUBLISH can have besides its payload: topic with its length, packet id, property length.
const LARGEST_HEAD_BYTES: u32 = 2 + 65_535 + 2 + 1;

const MQTT_311: Capabilities = Capabilities {
    name: "mqtt311",
    title: "MQTT 3.1.1",
    schemes: &["mqtt", "mqtts", "ws", "wss"],
    tls_schemes: &["mqtts", "wss"],
    default_port: 1883,
    default_tls_port: 8883,
    levels: &[
        Level { qos: Qos::BestEffort, means: "QoS 0" },
        Level { qos: Qos::AtLeastOnce, means: "QoS 1: PUBACK" },
        Level { qos: Qos::ExactlyOnce, means: "QoS 2: PUBREC, PUBREL, PUBCOMP" },
    ],
    wildcards: true,
    retain: true,
    persistent_sessions: true,
    ends_sessions: false,
    features: Features {
        log_in: true,
        own_certificates: true,
        shared_subscriptions: true,
        wills: true,
        // MQTT 5.0 §6; the path is what most servers listen at.
        websocket: Some(OverWebSocket { schemes: ["ws", "wss"], subprotocol: "mqtt", path: "/mqtt" }),
        ..Features::NONE
    },
    sent_means: SentMeans::Wire,
    maximum_payload_bytes: MAXIMUM_REMAINING_LENGTH as u32 - LARGEST_HEAD_BYTES,
    check_topic: None,
    filter_matches: None,
};

/// A version of MQTT, as a type.
pub trait ProtocolVersion {
    /// The version.
    const VERSION: Version;
    /// What its clients can do.
    const CAPABILITIES: Capabilities;
}

/// MQTT 3.1.1.
#[derive(Debug)]
pub enum V311 {}

impl ProtocolVersion for V311 {
    const VERSION: Version = Version::V311;
    const CAPABILITIES: Capabilities = MQTT_311;
}

/// MQTT 5.0.
#[derive(Debug)]
pub enum V5 {}

impl ProtocolVersion for V5 {
    const VERSION: Version = Version::V5;
    const CAPABILITIES: Capabilities = Capabilities {
        name: "mqtt5",
        title: "MQTT 5.0",
        ends_sessions: true,
        features: Features {
            will_delay: true,
            message_expiry: true,
            topic_alias: true,
            reauthenticates: true,
            requests: Some("response topic, correlation data"),
            properties: Some("user properties"),
            ..MQTT_311.features
        },
        ..MQTT_311
    };
}
