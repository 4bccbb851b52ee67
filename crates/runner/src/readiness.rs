//! Tests whether a system is ready: a message has to pass through it, from publisher to subscriber.

use std::time::Duration;

use pubmark_systems::{Definition, probe};

use crate::target::{connectable, for_subscribers};
use pubmark_protocols as protocols;

/// Time limit for a definition's probe; the caller tries again.
const LIMIT: Duration = Duration::from_secs(2);

/// Sends a message through a system over a protocol of its definition: with our adapter if there is one, otherwise with
/// the definition's probe.
pub fn over(definition: &Definition, protocol: &str, found: &pubmark_systems::Endpoint) -> Result<(), String> {
    match protocols::find(protocol) {
        Some(ours) => ours.round_trip(&connectable(found), &for_subscribers(found)),
        None => probe::run(definition, protocol, found, LIMIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_profile_reach_clients_and_follow_the_port_in_the_record() {
        let found = pubmark_systems::Endpoint {
            scheme: "nats".to_owned(),
            address: ([127, 0, 0, 1], 4_222).into(),
            subscribers: None,
            settings: Some("?storage=memory".to_owned()),
            authority: None,
            credentials: None,
            values: Default::default(),
        };
        for endpoint in [connectable(&found), for_subscribers(&found)] {
            assert_eq!(endpoint.settings.as_deref(), Some("?storage=memory"));
            assert_eq!(endpoint.shown, "nats://127.0.0.1:4222?storage=memory");
        }
    }
}
