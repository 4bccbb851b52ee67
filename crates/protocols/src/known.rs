//! Every protocol that pubmark can be built with, so that a build without one can name the missing feature.

/// A protocol, whether it is in this build or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name on the command line.
    pub name: &'static str,
    /// The cargo feature of `pubmark-cli` that includes it in a build.
    pub feature: &'static str,
    /// Schemes of its endpoints.
    pub schemes: &'static [&'static str],
}

const MQTT: &[&str] = &["mqtt", "mqtts", "ws", "wss"];
const NATS: &[&str] = &["nats", "tls"];
const REDIS: &[&str] = &["redis", "rediss"];
const AMQP: &[&str] = &["amqp", "amqps"];

/// All of them, in the order of [`PROTOCOLS`](crate::PROTOCOLS).
pub const KNOWN: &[Known] = &[
    Known { name: "mqtt5", feature: "mqtt", schemes: MQTT },
    Known { name: "mqtt311", feature: "mqtt", schemes: MQTT },
    Known { name: "nats", feature: "nats", schemes: NATS },
    Known { name: "jetstream", feature: "nats", schemes: NATS },
    Known { name: "redis", feature: "redis", schemes: REDIS },
    Known { name: "redis-streams", feature: "redis", schemes: REDIS },
    Known { name: "amqp091", feature: "amqp091", schemes: AMQP },
    Known { name: "amqp10", feature: "amqp10", schemes: AMQP },
    Known { name: "coap", feature: "coap", schemes: &["coap"] },
    Known { name: "coap-peers", feature: "coap", schemes: &["coap"] },
    Known { name: "zeromq", feature: "zeromq", schemes: &["zmq"] },
    Known { name: "zeromq-peers", feature: "zeromq", schemes: &["zmq"] },
    Known { name: "zenoh", feature: "zenoh", schemes: &["zenoh"] },
    Known { name: "zenoh-block", feature: "zenoh", schemes: &["zenoh"] },
    Known { name: "zenoh-peer", feature: "zenoh", schemes: &["zenoh-peer"] },
    Known { name: "zenoh-peer-block", feature: "zenoh", schemes: &["zenoh-peer"] },
    Known { name: "dds", feature: "dds", schemes: &["dds"] },
];

/// The protocol of that name, if pubmark has it and this build does not.
pub fn left_out(name: &str) -> Option<&'static Known> {
    first_outside(&crate::names(), |known| known.name == name)
}

/// A protocol whose endpoints have this scheme, if pubmark has one and this build does not.
pub fn left_out_of_scheme(scheme: &str) -> Option<&'static Known> {
    first_outside(&crate::names(), |known| known.schemes.contains(&scheme))
}

fn first_outside(built: &[&str], is_meant: impl Fn(&Known) -> bool) -> Option<&'static Known> {
    let meant = || KNOWN.iter().filter(|known| is_meant(known));
    match meant().any(|known| built.contains(&known.name)) {
        true => None,
        false => meant().next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_protocol_knows_the_feature_that_it_lacks() {
        let only_mqtt = ["mqtt5", "mqtt311"];
        let lacks = |name: &str| first_outside(&only_mqtt, |known| known.name == name).map(|known| known.feature);
        assert_eq!(lacks("dds"), Some("dds"));
        assert_eq!(lacks("redis-streams"), Some("redis"));
        assert_eq!(lacks("mqtt5"), None);
        assert_eq!(lacks("stomp"), None, "no build has it");
        let of_scheme = |scheme: &str| first_outside(&only_mqtt, |known| known.schemes.contains(&scheme));
        assert_eq!(of_scheme("zmq").map(|known| known.name), Some("zeromq"));
        assert_eq!(of_scheme("wss"), None);
    }
}
