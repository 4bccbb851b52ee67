//! The subscribing side of a session: which arrivals match its filters.
//!
//! A subscription is a prefix, a filter in MQTT's syntax is not: `a/b` subscribes to `a/bc` as well, `a/+` to `a/b/c`. So
//! arrivals are checked with the whole filters, and those that match none are counted.

use std::collections::BTreeSet;

use pubmark_model::topic::TopicFilter;
use pubmark_protocol::clients::Subscription;
use pubmark_wire::zmtp::prefix;

/// Longest topic in MQTT's syntax, bytes: no filter matches a longer one, and no more of one is stored.
const LONGEST_TOPIC_BYTES: usize = 65_535;

/// What a frame completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// No message yet.
    Part,
    /// A message with a topic that a filter chooses; nothing is its payload if it has not exactly one.
    Chosen(&'a [u8]),
    /// A message that no filter chooses.
    Discarded,
}

/// The filters of a session, and the message that is arriving.
pub struct Chosen {
    filters: Box<[TopicFilter]>,
    /// Of the message that arrives, or of the last one.
    topic: Vec<u8>,
    /// Does a filter choose it?
    chosen: bool,
    /// Frames of the message that have arrived; more than two are counted as three.
    frames: u8,
}

impl Chosen {
    /// By these filters.
    pub fn new(subscriptions: &[Subscription]) -> Chosen {
        let filter = |subscription: &Subscription| TopicFilter(subscription.filter.to_string());
        let filters = subscriptions.iter().map(filter).collect();
        let mut chosen = Chosen { filters, topic: Vec::new(), chosen: false, frames: 0 };
        chosen.evaluate(b"");
        chosen
    }

    /// A new connection.
    pub fn forget(&mut self) {
        self.frames = 0;
    }

    /// The prefixes to subscribe to, each once.
    pub fn prefixes(&self) -> BTreeSet<&str> {
        self.filters.iter().map(|filter| prefix(&filter.0)).collect()
    }

    /// Are further frames of the message to come?
    pub fn is_within_message(&self) -> bool {
        self.frames > 0
    }

    /// A frame of the peer's.
    pub fn on_frame<'a>(&mut self, more: bool, body: &'a [u8]) -> Arrival<'a> {
        if self.frames == 0 {
            self.evaluate(body);
        }
        self.frames = (self.frames + 1).min(3);
        if more {
            return Arrival::Part;
        }
        match (self.chosen, std::mem::take(&mut self.frames)) {
            (false, _) => Arrival::Discarded,
            (true, 2) => Arrival::Chosen(body),
            (true, _) => Arrival::Chosen(&[]),
        }
    }

    /// Looks at a topic, unless it is the same again.
    fn evaluate(&mut self, topic: &[u8]) {
        if topic == self.topic && !topic.is_empty() {
            return;
        }
        self.topic.clear();
        let text = std::str::from_utf8(topic).ok().filter(|text| text.len() <= LONGEST_TOPIC_BYTES);
        self.chosen = text.is_some_and(|text| self.filters.iter().any(|filter| filter.matches(text)));
        // What is too long or no text is chosen by nothing and looked at again.
        self.topic.extend_from_slice(text.unwrap_or_default().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::qos::Qos;

    use super::*;

    fn chosen(filters: &[&str]) -> Chosen {
        let subscription = |filter: &&str| Subscription { filter: (*filter).into(), qos: Qos::BestEffort };
        Chosen::new(&filters.iter().map(subscription).collect::<Vec<_>>())
    }

    fn two(chosen: &mut Chosen, topic: &[u8]) -> bool {
        assert_eq!(chosen.on_frame(true, topic), Arrival::Part);
        match chosen.on_frame(false, b"payload") {
            Arrival::Chosen(payload) => payload == b"payload",
            Arrival::Discarded => false,
            Arrival::Part => panic!("the message is over"),
        }
    }

    #[test]
    fn the_whole_filters_choose_among_what_their_prefixes_let_through() {
        let mut chosen = chosen(&["a/b", "a/+/c", "d/#"]);
        assert_eq!(chosen.prefixes().into_iter().collect::<Vec<_>>(), ["a/", "a/b", "d"]);
        for (topic, expected) in
            [("a/b", true), ("a/b", true), ("a/bc", false), ("a/x/c", true), ("a/x", false), ("d", true), ("dd", false)]
        {
            assert_eq!(two(&mut chosen, topic.as_bytes()), expected, "{topic}");
        }
    }

    #[test]
    fn a_message_of_another_shape_has_no_payload_of_ours() {
        let mut chosen = chosen(&["#"]);
        assert_eq!(chosen.on_frame(false, b"a alone"), Arrival::Chosen(b""));
        assert_eq!(chosen.on_frame(false, b""), Arrival::Chosen(b""));
        for _ in 0..300 {
            assert_eq!(chosen.on_frame(true, b"a"), Arrival::Part);
        }
        assert_eq!(chosen.on_frame(false, b"last"), Arrival::Chosen(b""));
        assert!(two(&mut chosen, b"a"));
        assert!(!two(&mut chosen, b"\xff"));
        assert!(!two(&mut chosen, &[b'a'; LONGEST_TOPIC_BYTES + 1]));
        assert!(chosen.topic.is_empty());
        chosen.on_frame(true, b"cut off");
        chosen.forget();
        assert!(two(&mut chosen, b"a"));
    }
}
