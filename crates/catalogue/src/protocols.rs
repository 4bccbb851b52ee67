//! The table of protocols.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, SentMeans};

use pubmark_protocols::{PROTOCOLS, Protocol};
use pubmark_report::wrapping::wrap;

/// Column at which a value starts.
const INDENT: usize = 23;

/// Column at which the description of a protocol starts in the list.
const LIST_INDENT: usize = 22;

/// A column of the table: its heading, and the function that returns its text.
type Column = (&'static str, fn(&Protocol) -> String);

/// The features, in order.
const COLUMNS: &[Column] = &[
    ("standard", |protocol| protocol.capabilities.title.to_owned()),
    ("endpoints", |protocol| {
        protocol.capabilities.schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(" ")
    }),
    ("QoS", |protocol| protocol.capabilities.qos().map(|qos| qos.level().to_string()).collect::<Vec<_>>().join(" ")),
    ("wildcards", |protocol| yes(protocol.capabilities.wildcards)),
    ("retained", |protocol| yes(protocol.capabilities.retain)),
    ("persistent sessions", |protocol| yes(protocol.capabilities.persistent_sessions)),
    ("shared groups", |protocol| yes(protocol.capabilities.features.shared_subscriptions)),
    ("slow subscribers", |protocol| yes(protocol.pauses)),
    ("wills", |protocol| {
        let features = protocol.capabilities.features;
        if features.will_delay { "yes, with delay".to_owned() } else { yes(features.wills) }
    }),
    ("message expiry", |protocol| yes(protocol.capabilities.features.message_expiry)),
    ("topic alias", |protocol| yes(protocol.capabilities.features.topic_alias)),
    ("user properties", |protocol| protocol.capabilities.features.properties.unwrap_or("no").to_owned()),
    ("content filters", |protocol| protocol.capabilities.features.content_filters.unwrap_or("no").to_owned()),
    ("requests", |protocol| protocol.capabilities.features.requests.unwrap_or("no").to_owned()),
    ("sent means", |protocol| sent_means(protocol.capabilities.sent_means).to_owned()),
    ("delivery window", |protocol| {
        let features = protocol.capabilities.features;
        let from = match features.delivery_window_from {
            Qos::BestEffort => String::new(),
            lowest => format!(" from QoS {}", lowest.level()),
        };
        features.delivery_window.map_or_else(|| "no limit".to_owned(), |most| format!("{most} messages{from}"))
    }),
    ("carries at most", |protocol| limits(&protocol.capabilities)),
];

/// What the adapter refuses besides: messages that are not requests, or more than the client library supports.
fn limits(protocol: &Capabilities) -> String {
    let kinds = protocol.features.only_requests.then(|| "requests and their replies".to_owned());
    let sessions = protocol.features.maximum_sessions.map(|most| format!("{most} sessions"));
    let rate = protocol
        .features
        .maximum_messages_per_s
        .map(|most| format!("{most} messages/s, {} B each", protocol.maximum_payload_bytes));
    let limits: Vec<String> = kinds.into_iter().chain(sessions).chain(rate).collect();
    if limits.is_empty() { "—".to_owned() } else { limits.join(", ") }
}

/// The option that selects a protocol, with its client library if it has several.
fn asked(protocol: &Protocol) -> String {
    let client = protocol.client.map(|client| format!(" --client {}", client.name)).unwrap_or_default();
    format!("{}{client}", protocol.capabilities.name)
}

fn yes(has: bool) -> String {
    if has { "yes" } else { "no" }.to_owned()
}

/// The value of `sent_means` in words, as in records.
pub fn sent_means(means: SentMeans) -> &'static str {
    match means {
        SentMeans::Wire => "wire",
        SentMeans::HandedOver => "handed-over",
    }
}

/// For the terminal: a line for each protocol.
pub fn text() -> String {
    let mut text = String::new();
    for protocol in PROTOCOLS {
        let levels: Vec<String> = protocol.capabilities.qos().map(|qos| qos.level().to_string()).collect();
        let words = format!("{}, QoS {}", protocol.capabilities.title, levels.join(" "));
        text.push_str(&wrap(&format!("{:<LIST_INDENT$} ", asked(protocol)), LIST_INDENT + 1, &words));
    }
    text
}

/// Names of the protocols.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = PROTOCOLS.iter().map(|protocol| protocol.capabilities.name.to_owned()).collect();
    names.dedup();
    names
}

/// Details of one protocol with its features; one section for each client library.
pub fn details(name: &str) -> Option<String> {
    let mut text = String::new();
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.capabilities.name == name) {
        text.push_str(&asked(protocol));
        text.push('\n');
        for (head, value) in COLUMNS {
            text.push_str(&wrap(&format!("  {head:<20} "), INDENT, &value(protocol)));
        }
        for level in protocol.capabilities.levels {
            let head = format!("QoS {} by", level.qos.level());
            text.push_str(&wrap(&format!("  {head:<20} "), INDENT, level.means));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The page `docs/reference/protocols.md`.
pub fn markdown() -> String {
    let mut text = String::from("# Protocols\n\n| `--protocol` |");
    for (head, _) in COLUMNS {
        text.push_str(&format!(" {head} |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(COLUMNS.len()));
    text.push('\n');
    for protocol in PROTOCOLS {
        text.push_str(&format!("| `{}` |", asked(protocol)));
        for (_, value) in COLUMNS {
            text.push_str(&format!(" {} |", value(protocol)));
        }
        text.push('\n');
    }
    text.push_str(
        "\n*Sent means*: `wire`, the last byte was accepted by our socket; `handed-over`, a library that queues has the \
         message. Service latencies of the two kinds are not compared.\n",
    );
    text.push_str(
        "\n## Delivery levels\n\nA workload asks for a level; each protocol keeps its promise in its own way.\n\n",
    );
    text.push_str("| `--protocol` | 0: best-effort | 1: at-least-once | 2: exactly-once |\n|---|---|---|---|\n");
    for protocol in PROTOCOLS {
        text.push_str(&format!("| `{}` |", asked(protocol)));
        for qos in Qos::ALL {
            let level = protocol.capabilities.levels.iter().find(|level| level.qos == qos);
            text.push_str(&format!(" {} |", level.map_or("—", |level| level.means)));
        }
        text.push('\n');
    }
    text.push_str(
        "\n—: not offered. A workload that asks for it is refused before the run; nothing is lowered in silence.\n",
    );
    text
}
