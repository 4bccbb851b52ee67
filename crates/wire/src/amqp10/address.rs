//! Topics in MQTT's syntax as addresses. AMQP 1.0 leaves the syntax of addresses to each server, so it is chosen by the name
//! that the server gives itself.
//!
//! | MQTT | words of an address | RabbitMQ | Artemis |
//! |---|---|---|---|
//! | `a/b` | `a.b` | `/topic/a.b` | `a.b` with the capability `topic` |
//! | `a/+` | `a.*` | `/topic/a.*` | `a.*` with the capability `topic` |
//! | `a/#` | `a.#` | `/topic/a.#` | `a.#` with the capability `topic` |
//!
//! `*` is one word and `#` any number of them, none included, with both servers: the same as in MQTT.

/// Longest routing key that RabbitMQ's exchanges take, bytes (AMQP 0-9-1, short string).
pub const LONGEST_BYTES: usize = 255;

/// Why a topic or filter has no address that all servers read in the same way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Between two slashes, or before the first or behind the last, is nothing.
    #[error("`{0}` has an empty level, which an AMQP address cannot have")]
    EmptyLevel(String),
    /// A character has a meaning of its own with one of the servers.
    #[error("`{topic}` has `{character}` in it, which an AMQP address cannot have")]
    Character {
        /// The topic.
        topic: String,
        /// The character, escaped.
        character: String,
    },
    /// Wildcards would match it, although MQTT says that they must not.
    #[error("`{0}` begins with `$`, which AMQP's wildcards do not pass over")]
    Dollar(String),
    /// Longer than a routing key.
    #[error("`{0}` has more than 255 B, the most that a routing key can have")]
    Long(String),
}

/// The words of the address of a topic or filter.
pub fn words(topic: &str) -> Result<String, AddressError> {
    if topic.starts_with('$') {
        return Err(AddressError::Dollar(topic.to_owned()));
    }
    if topic.len() > LONGEST_BYTES {
        return Err(AddressError::Long(topic.to_owned()));
    }
    let levels: Result<Vec<&str>, AddressError> = topic.split('/').map(|level| word(topic, level)).collect();
    Ok(levels?.join("."))
}

fn word<'a>(topic: &str, level: &'a str) -> Result<&'a str, AddressError> {
    match level {
        "" => return Err(AddressError::EmptyLevel(topic.to_owned())),
        "+" => return Ok("*"),
        "#" => return Ok("#"),
        _ => {}
    }
    let character = |found: &str| {
        let character = found.escape_default().to_string();
        Err(AddressError::Character { topic: topic.to_owned(), character })
    };
    // `%2F` is a slash to RabbitMQ, which reads no others than ASCII; `::` stands before a queue's name with Artemis.
    let special = |c: char| !matches!(c, ' '..='~') || matches!(c, '.' | '*' | '#' | '+' | '%');
    if let Some(found) = level.chars().find(|c| special(*c)) {
        return character(found.encode_utf8(&mut [0; 4]));
    }
    if level.contains("::") { character("::") } else { Ok(level) }
}

/// How a server writes addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// <https://www.rabbitmq.com/docs/3.13/amqp#address>, and version 1 of the addresses of its version 4.
    RabbitMq,
    /// <https://artemis.apache.org/components/artemis/documentation/latest/amqp.html>
    Artemis,
}

impl Naming {
    /// Products whose addresses are known, as their servers name themselves.
    pub const PRODUCTS: &[(&str, Naming)] =
        &[("RabbitMQ", Naming::RabbitMq), ("apache-activemq-artemis", Naming::Artemis)];

    /// How a product writes addresses, if it is a known one.
    pub fn of_product(product: &str) -> Option<Naming> {
        Naming::PRODUCTS.iter().find(|(name, _)| *name == product).map(|(_, naming)| *naming)
    }

    /// The address with these words.
    pub fn address(self, words: &str) -> String {
        match self {
            Naming::RabbitMq => format!("/topic/{words}"),
            Naming::Artemis => words.to_owned(),
        }
    }

    /// Capabilities with which an address is one for all subscribers, if the address itself does not have that.
    pub fn capabilities(self) -> &'static [&'static str] {
        match self {
            Naming::RabbitMq => &[],
            Naming::Artemis => &["topic"],
        }
    }

    /// Capabilities of a source whose messages are shared by all receivers with the same name, whatever connection they are
    /// on (the mapping of JMS, "shared" and "global"); `None` where there are no such sources.
    pub fn sharing(self) -> Option<&'static [&'static str]> {
        match self {
            // A queue could be shared, but nothing in its AMQP 1.0 binds one to a topic.
            Naming::RabbitMq => None,
            Naming::Artemis => Some(&["topic", "shared", "global"]),
        }
    }

    /// Address at which the replies to a requester's requests arrive.
    pub fn reply_address(self, words: &str) -> ReplyAddress {
        match self {
            // The broker ends the session of a client that requests a dynamic node (3.10). The second address is the same
            // queue, which is not created for a client that only sends to it.
            Naming::RabbitMq => {
                ReplyAddress::Node { source: format!("/queue/{words}"), reply_to: format!("/amq/queue/{words}") }
            }
            Naming::Artemis => ReplyAddress::Dynamic(&["temporary-queue"]),
        }
    }

    /// Can the address of a requester's node stand in a message (`to`), on a link whose target has none, if the server offers
    /// that?
    pub fn accepts_replies_on_one_link(self) -> bool {
        match self {
            // Version 4 offers it, but not for the addresses that version 3 has, which are those used here.
            Naming::RabbitMq => false,
            Naming::Artemis => true,
        }
    }

    /// Does the server choose among virtual hosts by the name in a client's `open`, as [`virtual_host`] writes it?
    pub fn has_virtual_hosts(self) -> bool {
        match self {
            Naming::RabbitMq => true,
            Naming::Artemis => false,
        }
    }
}

/// The name of a virtual host as the only servers that have them read it in an `open`
/// (<https://www.rabbitmq.com/docs/3.13/amqp#virtual-hosts>).
pub fn virtual_host(name: &str) -> String {
    format!("vhost:{name}")
}

/// Address at which the replies to requests arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyAddress {
    /// At a node of a name of ours.
    Node {
        /// Its address for who receives there; the node is made by that.
        source: String,
        /// Its address for the responder.
        reply_to: String,
    },
    /// At a node that the server makes and names, with these capabilities.
    Dynamic(&'static [&'static str]),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_filters_have_words() {
        for (topic, expected) in
            [("a/b", "a.b"), ("a/+/c", "a.*.c"), ("a/#", "a.#"), ("#", "#"), ("a b/c_d-e", "a b.c_d-e")]
        {
            assert_eq!(words(topic).unwrap(), expected);
        }
        assert_eq!(Naming::RabbitMq.address("a.*"), "/topic/a.*");
        assert_eq!(Naming::Artemis.address("a.*"), "a.*");
    }

    #[test]
    fn topics_without_an_address_are_named() {
        for topic in ["a//b", "/a", "a/", ""] {
            assert_eq!(words(topic), Err(AddressError::EmptyLevel(topic.to_owned())));
        }
        for (topic, character) in
            [("a.b", "."), ("a/b*", "*"), ("a+/b", "+"), ("a#", "#"), ("a%2Fb", "%"), ("a::b", "::"), ("ä", "\\u{e4}")]
        {
            let character = character.to_owned();
            assert_eq!(words(topic), Err(AddressError::Character { topic: topic.to_owned(), character }));
        }
        assert!(matches!(words("$SYS/a"), Err(AddressError::Dollar(_))));
        assert!(words(&"a".repeat(255)).is_ok());
        assert!(matches!(words(&"a".repeat(256)), Err(AddressError::Long(_))));
    }

    #[test]
    fn servers_are_known_by_their_own_names() {
        assert_eq!(Naming::of_product("RabbitMQ"), Some(Naming::RabbitMq));
        assert_eq!(Naming::of_product("apache-activemq-artemis"), Some(Naming::Artemis));
        assert_eq!(Naming::of_product("another"), None);
    }
}
