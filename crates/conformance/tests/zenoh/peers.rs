//! Without a router: subscribers listen, publishers connect.

use crate::turn_with_deadline;
use pubmark_adapters::zenoh::{PeersBlocking, ZenohClients};
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::{Event, ReceivedReply, ReceivedRequest};
use pubmark_model::qos::Qos;
use pubmark_protocol::any::AnyClients;
use pubmark_protocol::clients::{Goodbye, SendOutcome, SessionConfig, SessionOptions, Subscription};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::{Cause, Token};
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_protocol::timing::Timing;
use pubmark_testing::assert_count_eq;

type Clients = ZenohClients<PeersBlocking>;

fn endpoint() -> Endpoint {
    let address = ports::free();
    Endpoint {
        shown: format!("zenoh-peer://{address}"),
        address,
        tls: None,
        credentials: None,
        upgrade: None,
        settings: None,
    }
}

#[test]
fn a_request_goes_to_its_responder_and_the_reply_to_its_requester() {
    let _turn = turn_with_deadline();
    const COUNT: usize = 50;
    let endpoint = endpoint();
    let (mut replies, mut asks) = (Peer::<Clients>::open(endpoint.clone()), Peer::<Clients>::open(endpoint));
    let options = SessionOptions { replies_at: Some(Qos::BestEffort), ..SessionOptions::default() };
    let config = subscriber("answers", "asked/+", Qos::BestEffort);
    let responder = replies.join(SessionConfig { options, ..config });
    let options = SessionOptions { reply_topic: Some("answers/me".into()), ..SessionOptions::default() };
    let subscriptions = vec![Subscription { filter: "answers/me".into(), qos: Qos::BestEffort }];
    let config = publisher("asks", "asked/x", Qos::BestEffort);
    let requester = asks.join(SessionConfig { options, subscriptions, ..config });
    for _ in 0..COUNT {
        asks.send(requester, 100);
    }
    replies.wait("all requests", |record| record.received_requests.len() == COUNT);
    let asked = std::mem::take(&mut replies.record.received_requests);
    let answer = |one: &ReceivedRequest, number| OutgoingReply {
        to: ReplyTo { address: "asked/x", correlation: &[] },
        qos: Qos::BestEffort,
        number,
        publisher: one.header.publisher,
        sequence: one.header.sequence,
        due_ns: one.header.due_ns,
        timing: Timing::on_time(one.at_ns),
        payload_bytes: 300,
    };
    for (number, one) in (0..).zip(asked.iter().rev()) {
        assert_eq!(one.address, "asked/x");
        let to = ReplyTo { address: &one.address, correlation: &one.correlation };
        assert_eq!(
            replies.clients.reply(responder, &OutgoingReply { to, ..answer(one, number) }),
            SendOutcome::Accepted
        );
    }
    replies.flush(responder);
    asks.wait("all answers", |record| record.replies.len() == COUNT);
    assert!(asks.record.replies.iter().all(|one| one.intact && one.payload_bytes == 300));
    let named = |one: &ReceivedReply| one.request == Some(Token { publication: 0, sequence: one.header.sequence });
    assert!(asks.record.replies.iter().all(named));
    // A request gets one reply; an unknown one, or one with a reply, gets none.
    for correlation in [&asked[0].correlation[..], &[], &[1; 64]] {
        let again = OutgoingReply { to: ReplyTo { address: "asked/x", correlation }, ..answer(&asked[0], 7_000) };
        assert_eq!(replies.clients.reply(responder, &again), SendOutcome::Accepted);
        replies.flush(responder);
    }
    let abandoned = |event: &Event| matches!(event, Event::Abandoned(_, token) if token.sequence == 7_000);
    assert_count_eq!(replies.record.count(abandoned), 3);
    asks.linger(50);
    assert_count_eq!(asks.record.replies.len(), COUNT);
}

#[test]
fn one_subscriber_receives_from_many_publishers() {
    let _turn = turn_with_deadline();
    const COUNT: u32 = 200;
    let endpoint = endpoint();
    let mut listens = Peer::<Clients>::open(endpoint.clone());
    let mut connects = Peer::<Clients>::open(endpoint);
    listens.join(subscriber("in", "peers/+/value", Qos::BestEffort));
    for name in ["a", "b", "c"] {
        let topic = format!("peers/{name}/value");
        let sender = connects.join(publisher(name, &topic, Qos::BestEffort));
        for _ in 0..COUNT {
            connects.send(sender, 1_000);
        }
    }
    listens.wait("all", |record| record.arrived.len() == 3 * COUNT as usize);
    assert!(listens.record.arrived.iter().all(|one| one.intact && one.empty_at_ns.is_none()));
    assert_count_eq!(listens.record.missed, 0);
}

#[test]
fn a_second_subscriber_has_a_port_of_its_own_and_is_found() {
    let _turn = turn_with_deadline();
    let endpoint = endpoint();
    let mut peer = Peer::<Clients>::open(endpoint);
    let first = peer.join(subscriber("first", "peers/#", Qos::BestEffort));
    let second = peer.join(subscriber("second", "peers/#", Qos::BestEffort));
    let sender = peer.join(publisher("out", "peers/x", Qos::BestEffort));
    // Discovery between peers takes some time.
    let mut sent = 0;
    while peer.record.sequences(second).is_empty() {
        sent += 1;
        assert!(sent < 200, "the second subscriber was not found");
        peer.send(sender, 16);
        peer.linger(20);
    }
    let begin = sent;
    for _ in 0..100 {
        peer.send(sender, 16);
    }
    peer.wait("both have all", |record| {
        [first, second].iter().all(|id| record.sequences(*id).iter().filter(|number| **number > begin).count() == 100)
    });
}

#[test]
fn a_publisher_without_subscriber_is_reported_and_reconnects() {
    let _turn = turn_with_deadline();
    let endpoint = endpoint();
    let mut connects = Peer::<Clients>::open(endpoint.clone());
    let cause = connects.fail_to_connect(session("alone"));
    assert!(matches!(&cause, Cause::Unreachable(words) if words.contains("refused")), "{cause:?}");
    let mut listens = Peer::<Clients>::open(endpoint);
    let receiver = listens.join(subscriber("in", "peers/x", Qos::BestEffort));
    let sender = connects.join(publisher("out", "peers/x", Qos::BestEffort));
    connects.send(sender, 16);
    listens.wait("one", |record| record.arrived.len() == 1);
    listens.leave(receiver, Goodbye::Graceful);
    connects.wait("told", |record| !record.causes(sender).is_empty());
    assert!(matches!(connects.record.causes(sender)[..], [Cause::Dropped(_)]));
    assert_eq!(connects.offer(sender, 16), SendOutcome::WouldBlock);
    listens.connect(receiver);
    connects.connect(sender);
    assert_count_eq!(connects.record.count(|event| *event == Event::Writable(sender)), 1);
    connects.send(sender, 16);
    listens.wait("another", |record| record.arrived.len() == 2);
}
