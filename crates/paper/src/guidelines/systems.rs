//! Names of compared systems: experiments label one system differently, but its definition has one name.

use crate::record::ComparedSystem;

/// Why a system is not compared although it has figures: as experiments put it.
const NEVER_RANKED: &str = "the built-in broker is a demonstration, never ranked";

/// The systems of an experiment, by their labels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Systems<'a>(pub &'a [ComparedSystem]);

impl Systems<'_> {
    /// Name of the system with a label: that of its definition, and its protocol if it is called otherwise. The label is added where the
    /// experiment has several such systems; it is the name where the record does not have the label.
    pub fn name(&self, label: &str) -> String {
        let Some(own) = self.find(label) else { return label.to_owned() };
        let is_same = |other: &&ComparedSystem| (&other.system, &other.protocol) == (&own.system, &own.protocol);
        let mut name = own.system.clone();
        if let Some(protocol) = own.protocol.as_ref().filter(|protocol| **protocol != own.system) {
            name.push_str(&format!(" over {protocol}"));
        }
        if self.0.iter().filter(is_same).count() > 1 {
            name.push_str(&format!(" ({label})"));
        }
        name
    }

    /// Why the system with a label takes no part in a ranking; `None` if it does.
    pub fn why_not_ranked(&self, label: &str) -> Option<&'static str> {
        self.find(label).filter(|own| !own.ranked).map(|_| NEVER_RANKED)
    }

    fn find(&self, label: &str) -> Option<&ComparedSystem> {
        self.0.iter().find(|system| system.label == label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(label: &str, system: &str, protocol: &str) -> ComparedSystem {
        let protocol = Some(protocol.to_owned());
        ComparedSystem { label: label.to_owned(), system: system.to_owned(), protocol, ranked: system != "coap" }
    }

    #[test]
    fn a_system_has_one_name_whatever_its_label_is() {
        let one = [system("Mosquitto", "mosquitto", "mqtt311"), system("RabbitMQ AMQP", "rabbitmq", "amqp091")];
        let other = [system("MQTT", "mosquitto", "mqtt311"), system("AMQP", "rabbitmq", "amqp091")];
        assert_eq!(Systems(&one).name("Mosquitto"), Systems(&other).name("MQTT"));
        assert_eq!(Systems(&one).name("RabbitMQ AMQP"), Systems(&other).name("AMQP"));
        assert_eq!(Systems(&other).name("AMQP"), "rabbitmq over amqp091");
        assert_eq!(Systems(&[system("NATS", "nats", "nats")]).name("NATS"), "nats");
        let twice = [system("as shipped", "mosquitto", "mqtt5"), system("tuned", "mosquitto", "mqtt5")];
        assert_eq!(Systems(&twice).name("tuned"), "mosquitto over mqtt5 (tuned)");
        assert_eq!(Systems(&[]).name("Mosquitto"), "Mosquitto", "an older record has labels only");
    }

    #[test]
    fn only_a_demonstration_is_not_ranked() {
        let systems = [system("CoAP", "coap", "coap"), system("MQTT", "mosquitto", "mqtt311")];
        assert_eq!(Systems(&systems).why_not_ranked("CoAP"), Some(NEVER_RANKED));
        assert_eq!(Systems(&systems).why_not_ranked("MQTT"), None);
        assert_eq!(Systems(&[]).why_not_ranked("CoAP"), None);
    }
}
