//! What clients of a program can do: what it claims, of what pubmark's own adapter for the protocol can.

use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::client_program::{Claims, LARGEST_PAYLOAD};

/// Capabilities of a program that claims this, in a protocol that pubmark's own adapter has these in. They are worked out once for a
/// program and stay until the end of the process.
pub fn capabilities(own: &Capabilities, claims: &Claims) -> Capabilities {
    let levels: Vec<Level> =
        own.levels.iter().filter(|level| claims.qos.contains(&level.qos.level())).copied().collect();
    let websocket = own.features.websocket.map(|over| over.schemes).unwrap_or_default();
    let tls: Vec<&'static str> =
        own.tls_schemes.iter().copied().filter(|scheme| claims.tls && !websocket.contains(scheme)).collect();
    let of_tcp = |scheme: &&'static str| !websocket.contains(scheme);
    let plain_or_claimed = |scheme: &&'static str| tls.contains(scheme) || !own.tls_schemes.contains(scheme);
    let schemes: Vec<&'static str> = own.schemes.iter().copied().filter(of_tcp).filter(plain_or_claimed).collect();
    Capabilities {
        schemes: schemes.leak(),
        tls_schemes: tls.leak(),
        levels: levels.leak(),
        wildcards: own.wildcards && claims.wildcards,
        retain: own.retain && claims.retain,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features {
            shared_subscriptions: own.features.shared_subscriptions && claims.shared_subscriptions,
            brokerless: own.features.brokerless,
            chooses_addresses: true,
            log_in: own.features.log_in,
            settings: own.features.settings,
            ..Features::NONE
        },
        sent_means: SentMeans::HandedOver,
        maximum_payload_bytes: own.maximum_payload_bytes.min(LARGEST_PAYLOAD as u32),
        ..*own
    }
}
