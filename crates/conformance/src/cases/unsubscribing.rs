//! The end of one of a session's subscriptions.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, Publication, SessionConfig, SessionId, Subscription};

use super::Target;
use crate::peer::{Peer, publisher, subscriber};
use crate::recorder::Event;

/// What is tried: ends of the filter that ends and of the one that stays, each with that of a topic that it chooses. Some servers keep
/// something for each first level of topics: it differs in the first two.
const FILTERS: [[(&str, &str); 2]; 3] = [
    [("-gone", "-gone"), ("-stays", "-stays")],
    [("/gone/#", "/gone/x"), ("/stays/+", "/stays/x")],
    // The one that ends chooses what the other does as well.
    [("-both/#", "-both/x"), ("-both", "-both")],
];

/// A session with two subscriptions, one that hears the same, and one that sends to both.
struct Three {
    hears: SessionId,
    witness: SessionId,
    says: SessionId,
    sent: u32,
}

impl Three {
    fn join(peer: &mut Peer, name: &str, pairs: [(String, String); 2], qos: Qos, persistent: bool) -> Three {
        let subscription = |(filter, _): &(String, String)| Subscription { filter: filter.as_str().into(), qos };
        let subscriptions: Vec<_> = pairs.iter().map(subscription).collect();
        let hears = SessionConfig { persistent, subscriptions: subscriptions.clone(), ..subscriber(name, "", qos) };
        let hears = peer.join(hears);
        let witness = peer.join(SessionConfig { subscriptions, ..subscriber(&format!("{name}-witness"), "", qos) });
        let config = publisher(&format!("{name}-out"), "", qos);
        let to = |(_, topic): &(String, String)| Publication {
            topic: topic.as_str().into(),
            ..config.publications[0].clone()
        };
        let says = peer.join(SessionConfig { publications: pairs.iter().map(to).collect(), ..config.clone() });
        Three { hears, witness, says, sent: 0 }
    }

    /// Sends one message to each topic and waits until the witness has both; their numbers.
    fn send(&mut self, peer: &mut Peer) -> [u32; 2] {
        for publication in 0..2 {
            peer.send_to(self.says, publication, 16);
        }
        let (numbers, witness) = ([self.sent + 1, self.sent + 2], self.witness);
        self.sent += 2;
        peer.wait("the witness", |record| numbers.iter().all(|number| record.sequences(witness).contains(number)));
        numbers
    }

    /// The same; the session that had two subscriptions is to hear these of them.
    fn send_heard(&mut self, peer: &mut Peer, heard: [bool; 2]) {
        let (numbers, hears) = (self.send(peer), self.hears);
        let comes = |number: &(u32, bool)| number.1;
        let expected: Vec<u32> = numbers.into_iter().zip(heard).filter(comes).map(|(number, _)| number).collect();
        peer.wait("what is subscribed to", |record| {
            expected.iter().all(|number| record.sequences(hears).contains(number))
        });
        peer.linger(50);
        let came = peer.record.sequences(hears);
        for (number, comes) in numbers.into_iter().zip(heard) {
            assert_eq!(came.contains(&number), comes, "message {number} of {numbers:?}");
        }
    }

    /// Ends a subscription and waits until that is said.
    fn end(&self, peer: &mut Peer, index: usize) {
        peer.clients.unsubscribe(self.hears, index, &mut peer.record);
        let is_it =
            |event: &Event| matches!(event, Event::Unsubscribed(id, of, _) if (*id, *of) == (self.hears, index));
        peer.wait("the end of a subscription", |record| record.count(is_it) == 1);
        let ended = Event::Unsubscribed(self.hears, index, Ok(()));
        assert!(peer.record.events.contains(&ended), "{:?}", peer.record.events.last());
    }

    /// How often a subscription was granted.
    fn grants(&self, peer: &Peer, index: usize) -> usize {
        let is_it =
            |event: &Event| matches!(event, Event::Subscribed(id, of, Ok(_)) if (*id, *of) == (self.hears, index));
        peer.record.count(is_it)
    }
}

pub fn an_ended_subscription_is_silent(target: &mut Target) {
    let kinds: &[bool] = if target.capabilities.persistent_sessions { &[false, true] } else { &[false] };
    for (nth, filters) in FILTERS.iter().enumerate() {
        if nth > 0 && !target.capabilities.wildcards {
            pubmark_testing::skip(format_args!("{} has no wildcards", target.capabilities.name));
            continue;
        }
        for persistent in kinds {
            // The sessions of both listeners and several adapters may live in one server.
            let name = format!("ends-{}-{:?}-{nth}-{persistent}", target.capabilities.name, target.listener);
            let below = |(filter, topic): &(&str, &str)| (format!("{name}{filter}"), format!("{name}{topic}"));
            let qos = if *persistent { target.acknowledged_level() } else { target.first_sure_level() };
            let mut peer = target.peer();
            let mut three = Three::join(&mut peer, &name, [below(&filters[0]), below(&filters[1])], qos, *persistent);
            three.send_heard(&mut peer, [true, true]);
            three.end(&mut peer, 0);
            three.send_heard(&mut peer, [false, true]);
            assert_eq!(peer.record.causes(three.hears), []);
            if *persistent {
                a_kept_one_has_lost_it(&mut peer, &mut three)
            } else {
                a_clean_one_forgets(&mut peer, &mut three)
            }
        }
    }
}

/// The server keeps the other subscription, and nothing of the one that was ended.
fn a_kept_one_has_lost_it(peer: &mut Peer, three: &mut Three) {
    peer.leave(three.hears, Goodbye::Cut);
    let [ended, kept] = three.send(peer);
    peer.connect(three.hears);
    assert!(peer.record.connects(three.hears)[1].session_present, "the session is there");
    let hears = three.hears;
    peer.wait("what it missed", |record| record.sequences(hears).contains(&kept));
    three.send_heard(peer, [false, true]);
    assert!(!peer.record.sequences(hears).contains(&ended), "message {ended} was kept for it");
    assert_eq!((three.grants(peer, 0), three.grants(peer, 1)), (1, 1));
    peer.leave(hears, Goodbye::Final);
}

/// It is not made anew, nor is one that was ended without a connection.
fn a_clean_one_forgets(peer: &mut Peer, three: &mut Three) {
    let hears = three.hears;
    peer.leave(hears, Goodbye::Graceful);
    peer.connect(hears);
    let granted = |event: &Event| matches!(event, Event::Subscribed(id, 1, Ok(_)) if *id == hears);
    peer.wait("the other one", |record| record.count(granted) == 2);
    three.send_heard(peer, [false, true]);
    assert_eq!(three.grants(peer, 0), 1, "it was made again");
    peer.clients.unsubscribe(hears, 2, &mut peer.record);
    assert!(matches!(peer.record.events.last(), Some(Event::Unsubscribed(_, 2, Err(_)))), "there is no third one");
    peer.leave(hears, Goodbye::Graceful);
    three.end(peer, 1);
    peer.connect(hears);
    three.send_heard(peer, [false, false]);
    assert_eq!((three.grants(peer, 0), three.grants(peer, 1)), (1, 2));
    assert!(peer.record.causes(hears).iter().all(|cause| *cause == pubmark_protocol::events::Cause::Ours));
}
