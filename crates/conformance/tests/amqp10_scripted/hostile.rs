//! Bytes that no server should send: they only end the connection.

use std::io::Write as _;
use std::time::{Duration, Instant};

use pubmark_conformance::peer::{publisher, subscriber};
use pubmark_model::qos::Qos;
use pubmark_model::random::Stream;
use pubmark_protocol::clients::{Goodbye, SessionId};
use pubmark_protocol::events::Cause;
use pubmark_testing::assert_count_eq;
use pubmark_wire::amqp10::{
    Disposition, Flow, FrameKind, Performative, Role, SenderSettles, State, composite, encode_frame,
};

use crate::script::{CHANNEL, Script, Until, attach, delivery, flow, message};

/// More than the sockets' buffers and the responses that a client may have for a server that does not read.
const MOST_UNREAD_BYTES: usize = 64 << 20;
/// Longest wait until the client ends such a connection.
const LIMIT: Duration = Duration::from_secs(20);

impl Script {
    /// Repeats these bytes and reads nothing until the client ends the connection; returns the cause.
    fn repeat_unread(&mut self, id: SessionId, bytes: &[u8]) -> Cause {
        let block = bytes.repeat(10_000);
        let (mut sent, deadline) = (0, Instant::now() + LIMIT);
        while self.peer.record.causes(id).is_empty() {
            assert!(sent < MOST_UNREAD_BYTES && Instant::now() < deadline, "the client goes on after {sent} B");
            match self.stream().write(&block[sent % bytes.len()..]) {
                Ok(taken) => sent += taken,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
            }
            self.peer.linger(1);
        }
        self.end_of(id)
    }

    /// Sends bytes that may exceed the socket buffer, until the client ends the connection.
    pub fn pour(&mut self, id: SessionId, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.peer.record.causes(id).is_empty() {
            match self.stream().write(&bytes[..bytes.len().min(10_000)]) {
                Ok(taken) => bytes = &bytes[taken..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.peer.linger(1),
                // The client has closed the connection.
                Err(_) => return,
            }
        }
    }
}

fn frame(channel: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(FrameKind::Amqp, channel, &mut out, |out| out.extend_from_slice(body));
    out
}

fn performative(code: u8, write: impl FnOnce(&mut pubmark_wire::amqp10::FieldWriter<'_>)) -> Vec<u8> {
    let mut body = Vec::new();
    composite(code, &mut body, write);
    frame(CHANNEL, &body)
}

#[test]
fn bytes_that_are_no_frame_end_the_connection() {
    let attached = |handle, name: &str, role| {
        let mut out = Vec::new();
        attach(name, handle, role).encode(CHANNEL, &mut out);
        out
    };
    let mut elsewhere = Vec::new();
    delivery(0, true, &message(1, 16)).encode(CHANNEL + 1, &mut elsewhere);
    let mut unattached = Vec::new();
    Flow { handle: Some(77), link_credit: Some(1), ..flow(&Script::new().begin) }.encode(CHANNEL, &mut unattached);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a size of 7", b"\0\0\0\x07\x02\0\0\0".to_vec()),
        ("a huge size", b"\xff\xff\xff\xff\x02\0\0\0".to_vec()),
        ("a size above ours", b"\0\x02\0\x01\x02\0\0\0".to_vec()),
        ("a data offset of 1", b"\0\0\0\x10\x01\0\0\0".to_vec()),
        ("a data offset behind the frame", b"\0\0\0\x10\x05\0\0\0".to_vec()),
        ("a frame of a third kind", b"\0\0\0\x08\x02\x02\0\0".to_vec()),
        ("a protocol header", b"AMQP\0\x01\0\0".to_vec()),
        ("an unknown performative", performative(0x19, |_| {})),
        ("a body that is no performative", frame(CHANNEL, &[0x41])),
        ("a body that is cut", frame(CHANNEL, &[0, 0x53, 0x14, 0xc0, 50, 3, 0x43])),
        ("nested descriptors", frame(CHANNEL, &[0; 5_000])),
        ("a transfer without a handle", performative(0x14, |_| {})),
        ("a flow without a window", performative(0x13, |fields| fields.uint(1))),
        ("a disposition without a role", performative(0x15, |_| {})),
        ("a transfer of another channel", elsewhere),
        ("a flow of no link", unattached),
        ("a detach of no link", performative(0x16, |fields| fields.uint(9))),
        ("a second open", performative(0x10, |fields| fields.text("again"))),
        ("a second begin", performative(0x11, |fields| (0..5).for_each(|_| fields.uint(1)))),
        ("a link of its own", attached(3, "its-own", Role::Sender)),
        ("a link that was answered", attached(3, "r0", Role::Sender)),
        ("a link with the wrong role", attached(3, "r0", Role::Receiver)),
        ("a SASL frame", crate::script::outcome(0)),
    ];
    for (what, bytes) in cases {
        let mut script = Script::new();
        let id = script.connect_client(subscriber("hostile", "a", Qos::BestEffort), Until::All);
        script.send_bytes(&bytes);
        let cause = script.end_of(id);
        assert!(matches!(cause, Cause::Protocol(_)), "{what}: {cause:?}");
    }
}

#[test]
fn an_attach_with_a_handle_that_it_may_not_give_ends_the_connection() {
    for handle in [256, u32::MAX] {
        let mut script = Script::new();
        let id = script.connect_client(subscriber("handle", "a", Qos::BestEffort), Until::Receivers);
        script.answer_receiver("r0", handle, SenderSettles::Settled);
        assert!(matches!(script.end_of(id), Cause::Protocol(_)));
    }
}

/// Random bytes, and frames with random bytes in them: the client lives, and the session can connect again.
#[test]
fn random_bytes_never_do_more_than_end_the_connection() {
    let random = Stream::new(0x5eed, 10);
    let mut drawn = 0;
    let mut next = |below: u64| {
        drawn += 1;
        random.bits(drawn) % below
    };
    let mut script = Script::new();
    let id = script.connect_client(subscriber("random", "a", Qos::AtLeastOnce), Until::All);
    for round in 0..300 {
        let mut bytes = match next(3) {
            0 => (0..next(200) + 1).map(|_| next(256) as u8).collect(),
            1 => frame(CHANNEL, &(0..next(40)).map(|_| next(256) as u8).collect::<Vec<_>>()),
            _ => {
                let mut out = Vec::new();
                delivery(0, false, &message(1, 50)).encode(CHANNEL, &mut out);
                out
            }
        };
        let place = next(bytes.len() as u64) as usize;
        bytes[place] ^= 1 << next(8);
        script.pour(id, &bytes);
        script.close();
        script.peer.wait("closed", |record| record.causes(id).len() > round);
        script.peer.leave(id, Goodbye::Cut);
        script.reconnect_client(id, Until::All);
    }
}

/// A delivery that does not follow the one before it has a disposition of its own.
#[test]
fn a_server_that_sends_messages_without_end_and_reads_no_disposition_is_left() {
    let mut script = Script::new();
    let id = script.connect_client(subscriber("unread", "a", Qos::AtLeastOnce), Until::All);
    let mut bytes = Vec::new();
    delivery(0, false, b"").encode(CHANNEL, &mut bytes);
    let cause = script.repeat_unread(id, &bytes);
    assert_eq!(cause, Cause::Dropped("ended by us: it does not read our answers".to_owned()));
}

#[test]
fn a_server_that_sends_outcomes_without_end_and_reads_no_disposition_is_left() {
    let mut script = Script::new();
    let id = script.connect_client(publisher("settles", "a", Qos::AtLeastOnce), Until::All);
    script.peer.send(id, 16);
    script.expect("transfer", |performative| matches!(performative, Performative::Transfer(_)).then_some(()));
    let outcome = Disposition { role: Role::Receiver, first: 0, last: 0, settled: false, state: Some(State::Accepted) };
    let mut bytes = Vec::new();
    outcome.encode(CHANNEL, &mut bytes);
    let cause = script.repeat_unread(id, &bytes);
    assert_eq!(cause, Cause::Dropped("ended by us: it does not read our answers".to_owned()));
    assert_count_eq!(script.peer.record.acknowledged(), 1);
}
