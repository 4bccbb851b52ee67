//! Without a proxy: our subscribers listen, our devices connect to each; and programs over libzmq on the other side.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use pubmark_adapters::zeromq::peers::ZeroMqPeersClients;
use pubmark_conformance::peer::{Peer, publisher, session, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::Event;
use pubmark_model::payload::HeaderPlace;
use pubmark_model::qos::Qos;
use pubmark_protocol::any;
use pubmark_protocol::clients::{Goodbye, Publication, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::zmtp::Mechanism;

use crate::libzmq::Program;
use crate::script::{greeting, message, ready};

fn two_endpoints() -> [Endpoint; 2] {
    [(); 2].map(|()| {
        let address = ports::free();
        Endpoint {
            shown: format!("zmq://{address}"),
            address,
            tls: None,
            credentials: None,
            upgrade: None,
            settings: None,
        }
    })
}

fn open(endpoints: [Endpoint; 2]) -> Peer {
    Peer::of_two(any::open::<ZeroMqPeersClients>, endpoints, 60)
}

/// Two subscribers that listen, and a device; all of one shard.
fn three(filters: [&str; 2], topics: &[&str]) -> (Peer, [SessionId; 2], SessionId) {
    let mut peer = open(two_endpoints());
    let mut place = 0;
    let receive = filters.map(|filter| {
        let config = SessionConfig { endpoint: place, ..subscriber(&format!("in{place}"), filter, Qos::BestEffort) };
        place += 1;
        peer.join(config)
    });
    let publication = |topic: &&str| Publication {
        publisher: 7,
        topic: (*topic).into(),
        qos: Qos::BestEffort,
        retain: false,
        body: None,
        header: HeaderPlace::Payload,
        properties: [].into(),
    };
    let publications = topics.iter().map(publication).collect();
    let sender = peer.join(SessionConfig { publications, ..session("out") });
    (peer, receive, sender)
}

#[test]
fn each_subscriber_gets_its_topics_and_a_message_is_sent_once() {
    let (mut peer, [first, second], sender) = three(["a/#", "+/x"], &["a/x", "a/y", "b/x", "b/y"]);
    for (publication, size) in [(0, 16), (1, 70_000), (2, 24), (3, 24), (0, 1_000_000)] {
        assert_eq!(peer.offer_to(sender, publication, size), SendOutcome::Accepted);
        peer.flush(sender);
    }
    peer.wait("all", |record| record.written() == 5 && record.arrived.len() == 6);
    assert_count_eq!(peer.record.sequences(first), [1, 2, 5]);
    assert_count_eq!(peer.record.sequences(second), [1, 3, 5]);
    assert_count!(peer.record.arrived.iter().all(|one| one.intact));
    let written = peer.record.all(|event| match event {
        Event::Written(id, token, start_ns, end_ns) => Some((*id == sender && start_ns <= end_ns, token.sequence)),
        _ => None,
    });
    assert_eq!(written, [(true, 1), (true, 2), (true, 3), (true, 4), (true, 5)]);
    // `+/x` has the empty prefix: a/y and b/y were sent as well, so nothing was withheld.
    assert_count_eq!((peer.record.withheld, peer.record.discarded), (0, 2));
    peer.wait_sent();
}

#[test]
fn messages_without_a_subscriber_are_withheld_in_order() {
    let (mut peer, [first, _], sender) = three(["a", "b"], &["a", "c"]);
    for publication in [1, 0, 1, 0] {
        assert_eq!(peer.offer_to(sender, publication, 16), SendOutcome::Accepted);
    }
    peer.flush(sender);
    peer.wait("all", |record| record.sequences(first).len() == 2);
    let written = peer.record.all(|event| match event {
        Event::Written(_, token, ..) => Some(token.sequence),
        _ => None,
    });
    assert_count_eq!((written, peer.record.withheld), (vec![1, 2, 3, 4], 2));
}

#[test]
fn a_flood_to_two_arrives_whole_and_in_order() {
    const COUNT: u32 = 5_000;
    let (mut peer, receive, sender) = three(["a", "a"], &["a"]);
    for _ in 0..COUNT {
        peer.send(sender, 1_000);
    }
    peer.wait("all", |record| record.arrived.len() == 2 * COUNT as usize);
    for session in receive {
        assert_count_eq!(peer.record.sequences(session), (1..=COUNT).collect::<Vec<_>>());
    }
    assert_count_eq!(peer.record.written(), COUNT as usize);
}

/// A subscriber to everything that reads only on command.
fn lazy(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().unwrap();
    let words = [greeting(1, Mechanism::Null), ready("SUB"), b"\x04\x0a\x09SUBSCRIBE".to_vec()].concat();
    stream.write_all(&words).unwrap();
    stream
}

#[test]
fn a_subscriber_that_does_not_read_holds_its_device_up_and_nothing_is_dropped() {
    let [first, second] = two_endpoints();
    let listener = TcpListener::bind(second.address).unwrap();
    let mut peer = open([first, second]);
    let receiver = peer.join(SessionConfig { endpoint: 0, ..subscriber("in", "a", Qos::BestEffort) });
    let sender = peer.clients.add_session(publisher("out", "a", Qos::BestEffort));
    peer.clients.connect(sender, &mut peer.record);
    assert_eq!(peer.offer(sender, 16), SendOutcome::WouldBlock);
    let mut stream = lazy(&listener);
    peer.wait("connected and told", |record| record.count(|event| *event == Event::Writable(sender)) == 1);
    let mut sent = 0;
    loop {
        while peer.offer(sender, 50_000) == SendOutcome::Accepted {
            peer.flush(sender);
            sent += 1;
            assert!(sent < 10_000, "it takes what nobody reads");
        }
        // The kernel enlarges the buffer for a while.
        peer.linger(100);
        if peer.offer(sender, 50_000) != SendOutcome::Accepted {
            break;
        }
        sent += 1;
    }
    peer.wait("what the other one reads", |record| record.sequences(receiver).len() == sent);
    assert!(peer.record.written() < sent, "not written to both");
    let expected = sent * (3 + 9 + 50_000);
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; 64 + 27 + expected];
        stream.read_exact(&mut bytes).unwrap();
        stream
    });
    peer.wait("writable", |record| record.count(|event| *event == Event::Writable(sender)) == 2);
    peer.wait("written", |record| record.written() == sent);
    drop(reader.join().unwrap());
    // One of its subscribers has disconnected: the device is not connected to all of them.
    peer.wait("closed", |record| record.causes(sender).len() == 1);
    assert!(matches!(peer.record.causes(sender)[..], [Cause::Dropped(_)]));
    assert_eq!((peer.offer(sender, 16), peer.record.causes(receiver)), (SendOutcome::WouldBlock, vec![]));
}

#[test]
fn a_partly_written_message_is_abandoned_and_a_new_connection_starts_fresh() {
    let [first, second] = two_endpoints();
    let listener = TcpListener::bind(second.address).unwrap();
    let mut peer = open([first, second]);
    let receiver = peer.join(SessionConfig { endpoint: 0, ..subscriber("in", "a", Qos::BestEffort) });
    let sender = peer.clients.add_session(publisher("out", "a", Qos::BestEffort));
    peer.clients.connect(sender, &mut peer.record);
    let stream = lazy(&listener);
    peer.wait("connected", |record| record.connects(sender).len() == 1);
    let mut sent = 0;
    while peer.offer(sender, 50_000) == SendOutcome::Accepted {
        peer.flush(sender);
        sent += 1;
    }
    drop(stream);
    peer.wait("closed", |record| record.causes(sender).len() == 1);
    let abandoned = peer.record.count(|event| matches!(event, Event::Abandoned(id, _) if *id == sender));
    assert_count_eq!((peer.record.written() + abandoned, abandoned > 0), (sent, true));
    peer.clients.connect(sender, &mut peer.record);
    let mut stream = lazy(&listener);
    peer.wait("connected", |record| record.connects(sender).len() == 2);
    let before = peer.record.sequences(receiver).len();
    peer.send(sender, 16);
    peer.wait("the next", |record| record.sequences(receiver).len() > before);
    let mut bytes = vec![0; 64 + 27 + 3 + 2 + 16];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes[64 + 27..].starts_with(b"\x01\x01a\0\x10"), "nothing of the earlier connection");
}

#[test]
fn devices_come_and_go() {
    let (mut peer, [first, second], sender) = three(["a", "b"], &["a"]);
    for round in 1..=20 {
        peer.send(sender, 16);
        peer.wait("it", |record| record.sequences(first).len() == round);
        peer.leave(sender, if round % 2 == 0 { Goodbye::Cut } else { Goodbye::Graceful });
        peer.connect(sender);
    }
    assert_eq!(peer.record.causes(sender), vec![Cause::Ours; 20]);
    for session in [first, second] {
        assert_eq!(peer.record.causes(session), [], "whoever leaves takes nobody along");
        peer.leave(session, Goodbye::Graceful);
        assert_eq!(peer.record.causes(session), [Cause::Ours]);
    }
    peer.wait("closed", |record| record.causes(sender).len() == 21);
    // They listen again on the same ports.
    [first, second].into_iter().for_each(|session| peer.connect(session));
    peer.connect(sender);
    peer.send(sender, 16);
    peer.wait("it", |record| record.sequences(first).len() == 21);
}

#[test]
fn a_used_endpoint_and_one_without_a_listener_are_reported() {
    let [first, second] = two_endpoints();
    let _taken = TcpListener::bind(first.address).unwrap();
    let mut peer = open([first, second]);
    let cause = peer.fail_to_connect(SessionConfig { endpoint: 0, ..subscriber("in", "a", Qos::BestEffort) });
    assert!(matches!(&cause, Cause::Unreachable(why) if why.contains("failed to listen on")), "{cause:?}");
    let cause = peer.fail_to_connect(publisher("out", "a", Qos::BestEffort));
    assert!(matches!(&cause, Cause::Unreachable(why) if why.contains("refused")), "{cause:?}");
}

#[test]
fn a_connecting_peer_that_is_no_publisher_is_rejected_and_the_others_stay() {
    let endpoints = two_endpoints();
    let address = endpoints[0].address;
    let (mut peer, wrong) = (open(endpoints), [greeting(1, Mechanism::Null), ready("SUB")].concat());
    let receiver = peer.join(SessionConfig { endpoint: 0, ..subscriber("in", "a", Qos::BestEffort) });
    let mut good = TcpStream::connect(address).unwrap();
    good.write_all(&[greeting(1, Mechanism::Null), ready("PUB"), message("a", 1)].concat()).unwrap();
    for words in [&b"GET / HTTP/1.1\r\n"[..], &wrong, b"\xff\0\0\0\0\0\0\0\0\x7f\x01"] {
        let mut bad = TcpStream::connect(address).unwrap();
        bad.write_all(words).unwrap();
        peer.linger(50);
        let mut rest = vec![];
        // The end of the stream, or a reset if the peer had unsent data.
        let _ = bad.read_to_end(&mut rest);
    }
    good.write_all(&message("a", 2)).unwrap();
    peer.wait("both", |record| record.sequences(receiver) == [1, 2]);
    assert_eq!(peer.record.causes(receiver), []);
}

/// Connects to two of our subscribers and publishes one message per line.
const CONNECTING_PUBLISHER: &str = "
import sys, zmq
socket = zmq.Context().socket(zmq.XPUB)
print('bound')
for line in sys.stdin:
    word, value = line.split()
    if word == 'connect':
        socket.connect('tcp://' + value)
        print(socket.recv().hex())
    else:
        socket.send_multipart([b'a', bytes.fromhex(value)])
";

#[test]
fn messages_of_a_connecting_libzmq_publisher_are_received() {
    let Some(mut program) = Program::start(CONNECTING_PUBLISHER) else { return };
    let endpoints = two_endpoints();
    let address = endpoints[0].address;
    let mut peer = open(endpoints);
    let receiver = peer.join(SessionConfig { endpoint: 0, ..subscriber("in", "a", Qos::BestEffort) });
    program.send_bytes(&format!("connect {address}"));
    peer.linger(200);
    assert_eq!(program.receive(), "0161", "it was asked for the prefix a");
    let digits: String = message("a", 1)[5..].iter().map(|byte| format!("{byte:02x}")).collect();
    program.send_bytes(&format!("send {digits}"));
    peer.wait("it", |record| record.sequences(receiver) == [1]);
}
