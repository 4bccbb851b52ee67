//! The publishing side of a session: the peer's subscriptions.
//!
//! A publisher sends what its peer subscribed to and nothing else (37/ZMTP, "The Publish-Subscribe Pattern"). Subscriptions are
//! additive, so each of our topics counts those that it begins with; the subscriptions themselves are not stored, or each of
//! ten thousand devices would store those of all subscribers.

use pubmark_protocol::clients::Publication;
use pubmark_wire::zmtp::append_frame_front;

/// A topic of ours.
struct Topic {
    /// Its frame.
    frame: Box<[u8]>,
    /// Where in it the topic begins.
    at: usize,
    /// Subscriptions of the peer's that it begins with.
    subscriptions: u32,
}

/// All topics of a session.
pub struct PeerSubscriptions {
    topics: Box<[Topic]>,
    /// In the middle of a message of the peer's.
    inside: bool,
}

impl PeerSubscriptions {
    /// No subscription yet.
    pub fn new(publications: &[Publication]) -> PeerSubscriptions {
        let topic = |publication: &Publication| {
            let mut frame = Vec::new();
            append_frame_front(true, publication.topic.len(), &mut frame);
            let at = frame.len();
            frame.extend_from_slice(publication.topic.as_bytes());
            Topic { frame: frame.into(), at, subscriptions: 0 }
        };
        PeerSubscriptions { topics: publications.iter().map(topic).collect(), inside: false }
    }

    /// A new connection: its peer has no subscription yet.
    pub fn forget(&mut self) {
        self.topics.iter_mut().for_each(|topic| topic.subscriptions = 0);
        self.inside = false;
    }

    /// Is there no topic to subscribe to?
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// The peer subscribes to topics that begin with `prefix`, or cancels one such subscription. Cancelling a subscription that
    /// does not exist is not detected: a peer that cancels too many receives too few messages.
    pub fn change(&mut self, prefix: &[u8], targets: bool) {
        for topic in self.topics.iter_mut().filter(|topic| topic.frame[topic.at..].starts_with(prefix)) {
            topic.subscriptions =
                if targets { topic.subscriptions.saturating_add(1) } else { topic.subscriptions.saturating_sub(1) };
        }
    }

    /// A frame of the peer's. Only subscriptions in the form of ZMTP 3.0 are expected, as libzmq sends them at any version when
    /// its application forwards them (a proxy does); anything else is dropped (29/PUBSUB). True if it is a subscription.
    pub fn on_frame(&mut self, more: bool, body: &[u8]) -> bool {
        let begins = !std::mem::replace(&mut self.inside, more);
        let Some((kind @ (0 | 1), prefix)) = body.split_first().filter(|_| begins && !more) else { return false };
        self.change(prefix, *kind == 1);
        *kind == 1
    }

    /// The topic's frame, if the peer subscribed to it.
    pub fn frame(&self, publication: u16) -> Option<&[u8]> {
        self.topics.get(usize::from(publication)).filter(|topic| topic.subscriptions > 0).map(|topic| &*topic.frame)
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::payload::HeaderPlace;
    use pubmark_model::qos::Qos;

    use super::*;

    fn peer_subscriptions(topics: &[&str]) -> PeerSubscriptions {
        let publication = |topic: &&str| Publication {
            publisher: 1,
            topic: (*topic).into(),
            qos: Qos::BestEffort,
            retain: false,
            body: None,
            header: HeaderPlace::Payload,
            properties: [].into(),
        };
        PeerSubscriptions::new(&topics.iter().map(publication).collect::<Vec<_>>())
    }

    fn subscriptions(peer_subscriptions: &PeerSubscriptions) -> Vec<bool> {
        (0..peer_subscriptions.topics.len() as u16).map(|index| peer_subscriptions.frame(index).is_some()).collect()
    }

    #[test]
    fn a_topic_is_wanted_while_a_subscription_that_it_begins_with_is_left() {
        let mut peer_subscriptions = peer_subscriptions(&["a/b", "a/c", "b"]);
        assert_eq!(subscriptions(&peer_subscriptions), [false, false, false]);
        peer_subscriptions.change(b"a", true);
        peer_subscriptions.change(b"a/b", true);
        assert_eq!(subscriptions(&peer_subscriptions), [true, true, false]);
        peer_subscriptions.change(b"a", false);
        assert_eq!(subscriptions(&peer_subscriptions), [true, false, false]);
        peer_subscriptions.change(b"a/b/c", true);
        peer_subscriptions.change(b"a/b", false);
        assert_eq!(subscriptions(&peer_subscriptions), [false, false, false], "a longer prefix is none of it");
        peer_subscriptions.change(b"", true);
        assert_eq!(subscriptions(&peer_subscriptions), [true, true, true]);
        assert_eq!(peer_subscriptions.frame(2), Some(&b"\x01\x01b"[..]));
        peer_subscriptions.forget();
        assert_eq!(subscriptions(&peer_subscriptions), [false, false, false]);
    }

    #[test]
    fn subscriptions_come_as_messages_too_and_other_messages_are_dropped() {
        let mut peer_subscriptions = peer_subscriptions(&["a"]);
        assert!(peer_subscriptions.on_frame(false, b"\x01a"));
        assert_eq!(subscriptions(&peer_subscriptions), [true]);
        assert!(!peer_subscriptions.on_frame(false, b"\0a"));
        assert_eq!(subscriptions(&peer_subscriptions), [false]);
        // What is in a message of several frames is none, whatever its frames look like.
        for (more, body) in
            [(true, &b"\x01a"[..]), (true, b"\x01a"), (false, b"\x01a"), (false, b""), (false, b"\x02a")]
        {
            assert!(!peer_subscriptions.on_frame(more, body));
        }
        assert_eq!(subscriptions(&peer_subscriptions), [false]);
        assert!(peer_subscriptions.on_frame(false, b"\x01"));
        assert_eq!(subscriptions(&peer_subscriptions), [true]);
    }
}
