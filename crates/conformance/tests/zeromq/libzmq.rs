//! Programs over libzmq that publish and subscribe themselves: they bind, ours connect.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pubmark_adapters::zeromq::ZeroMqClients;
use pubmark_conformance::peer::{Peer, RUN, publisher, subscriber};
use pubmark_conformance::ports;
use pubmark_conformance::recorder::Event;
use pubmark_conformance::server::Missing;
use pubmark_conformance::zeromq::python;
use pubmark_model::qos::Qos;
use pubmark_protocol::any;
use pubmark_protocol::clients::{Publication, SendOutcome};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::Cause;
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;

/// A Python program with pyzmq, its port the first argument; killed when dropped.
pub struct Program {
    child: Child,
    sender: Lines<BufReader<ChildStdout>>,
    receiver: ChildStdin,
    peer: Peer,
}

impl Program {
    /// Starts it and waits until it has bound; `None` without pyzmq.
    pub fn start(text: &str) -> Option<Program> {
        let python = match python() {
            Ok(python) => python,
            Err(Missing(why)) => {
                pubmark_testing::skip(why);
                return None;
            }
        };
        loop {
            let address = ports::free();
            let mut command = Command::new(&python);
            command.args(["-u", "-c", text, &address.port().to_string()]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let (out, receiver) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
            let mut sender = BufReader::new(out).lines();
            // It ends if another process has bound the port.
            if sender.next().is_some_and(|line| line.unwrap() == "bound") {
                let shown = format!("zmq://{address}");
                let peer = Peer::of(
                    any::open::<ZeroMqClients>,
                    Endpoint { shown, address, tls: None, credentials: None, upgrade: None, settings: None },
                );
                return Some(Program { child, sender, receiver, peer });
            }
            child.wait().unwrap();
        }
    }

    pub fn send_bytes(&mut self, line: &str) {
        writeln!(self.receiver, "{line}").unwrap();
    }

    pub fn receive(&mut self) -> String {
        self.sender.next().unwrap().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Publishes a payload, given in hexadecimal digits, to topics.
const PUBLISHER: &str = "
import sys, zmq
socket = zmq.Context().socket(zmq.XPUB)
socket.bind('tcp://127.0.0.1:' + sys.argv[1])
print('bound')
print(socket.recv().hex())
for line in sys.stdin:
    topic, payload = line.split()
    socket.send_multipart([topic.encode(), bytes.fromhex(payload)])
";

#[test]
fn messages_of_a_binding_publisher_are_received() {
    let Some(mut program) = Program::start(PUBLISHER) else { return };
    let receiver = program.peer.join(subscriber("hears", "a/+", Qos::BestEffort));
    assert_eq!(program.receive(), "01612f", "it was asked for the prefix a/");
    for (topic, sequence) in [("a/b", 1), ("ab", 2), ("a/b/c", 3), ("a/c", 4)] {
        let mut payload = Vec::new();
        header::write(&mut payload, 24, RUN, 7, sequence, 1);
        let digits: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        program.send_bytes(&format!("{topic} {digits}"));
    }
    program.peer.wait("both", |record| record.sequences(receiver).len() == 2);
    assert_count_eq!(program.peer.record.sequences(receiver), [1, 4]);
    assert_count_eq!(program.peer.record.discarded, 1, "what does not begin alike was not sent");
}

/// Subscribes to a first prefix, then to one more per line; prints what it receives.
const SUBSCRIBER: &str = "
import sys, threading, zmq
context = zmq.Context()
socket = context.socket(zmq.SUB)
socket.bind('tcp://127.0.0.1:' + sys.argv[1])
socket.subscribe('a')
print('bound')
while True:
    topic, payload = socket.recv_multipart()
    print(topic.decode(), len(payload))
    if len(payload) == 17:
        socket.unsubscribe('a')
        socket.subscribe('b/')
";

#[test]
fn a_binding_subscriber_gets_its_topics_and_nothing_else_is_sent() {
    let Some(mut program) = Program::start(SUBSCRIBER) else { return };
    let mut config = publisher("says", "a/b", Qos::BestEffort);
    config.publications.push(Publication { topic: "b/c".into(), ..config.publications[0].clone() });
    let sender = program.peer.join(config);
    for (publication, size) in [(0, 16), (1, 16), (0, 100_000), (0, 17)] {
        assert_eq!(program.peer.offer_to(sender, publication, size), SendOutcome::Accepted);
        program.peer.flush(sender);
    }
    program.peer.wait("written", |record| record.written() == 4);
    assert_eq!([(); 3].map(|()| program.receive()), ["a/b 16", "a/b 100000", "a/b 17"]);
    assert_count_eq!(program.peer.record.withheld, 1);
    // Its new subscription is in flight; until it arrives the program has no subscription for our messages.
    let mut tried = 0;
    while program.peer.record.withheld == tried + 1 {
        tried += 1;
        program.peer.linger(1);
        program.peer.offer_to(sender, 1, 24);
        program.peer.flush(sender);
    }
    assert_eq!(program.receive(), "b/c 24");
}

/// Accepts no message larger than 1,000 B, and sends pings.
const STRICT: &str = "
import sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.maxmsgsize = 1000
socket.setsockopt(zmq.HEARTBEAT_IVL, 50)
socket.setsockopt(zmq.HEARTBEAT_TTL, 300)
socket.bind('tcp://127.0.0.1:' + sys.argv[1])
socket.subscribe('')
print('bound')
while True:
    print(len(socket.recv_multipart()[1]))
";

#[test]
fn pings_of_libzmq_are_answered_and_what_it_calls_too_large_ends_the_connection() {
    let Some(mut program) = Program::start(STRICT) else { return };
    let sender = program.peer.join(publisher("says", "a", Qos::BestEffort));
    program.peer.linger(1_000);
    program.peer.send(sender, 900);
    assert_eq!(program.receive(), "900");
    assert_eq!(program.peer.record.causes(sender), [], "unanswered pings would have ended it");
    program.peer.send(sender, 1_001);
    program.peer.wait("closed", |record| !record.causes(sender).is_empty());
    assert!(matches!(program.peer.record.causes(sender)[..], [Cause::Dropped(_)]));
    assert_count_eq!(program.peer.record.count(|event| matches!(event, Event::Abandoned(..))), 0);
}
