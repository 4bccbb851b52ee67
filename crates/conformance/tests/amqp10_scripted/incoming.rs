//! Messages of the server: whole, split, in parts, interleaved, too many.

use pubmark_conformance::peer::{session, subscriber};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients as _, SessionConfig, SessionId, Subscription};
use pubmark_protocol::clock;
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};
use pubmark_wire::amqp10::{Performative, Role, State, Transfer, composite};

use crate::script::{CHANNEL, Script, Until, delivery, message};

fn opened(qos: Qos) -> (Script, SessionId) {
    let mut script = Script::new();
    let id = script.connect_client(subscriber("in", "a", qos), Until::All);
    (script, id)
}

/// A session with two receivers, which the server knows as 0 and 1.
fn with_two() -> (Script, SessionId) {
    let filter = |filter: &str| Subscription { filter: filter.into(), qos: Qos::AtLeastOnce };
    let mut script = Script::new();
    let config = SessionConfig { subscriptions: vec![filter("a"), filter("b")], ..session("two") };
    let id = script.connect_client(config, Until::All);
    (script, id)
}

fn encoded(transfers: &[Transfer<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    transfers.iter().for_each(|transfer| transfer.encode(CHANNEL, &mut out));
    out
}

impl Script {
    fn expect_accepted(&mut self) -> (u32, u32) {
        self.expect("disposition", |performative| match performative {
            Performative::Disposition(ours) => {
                assert_eq!((ours.role, ours.settled, ours.state), (Role::Receiver, true, Some(State::Accepted)));
                Some((ours.first, ours.last))
            }
            _ => None,
        })
    }
}

#[test]
fn a_message_arrives_once_wherever_it_is_cut() {
    let (mut script, id) = opened(Qos::BestEffort);
    let whole = message(1, 24);
    let parts = message(2, 60);
    let part = |at: usize, to: usize, more| Transfer { more, ..delivery(1, true, &parts[at..to]) };
    let bytes = encoded(&[delivery(0, true, &whole), part(0, 1, true), part(1, 1, true), part(1, 65, false)]);
    for cut in 1..bytes.len() {
        let before = script.peer.record.sequences(id).len();
        script.send_bytes(&bytes[..cut]);
        script.peer.linger(1);
        script.send_bytes(&bytes[cut..]);
        script.peer.wait("both", |record| record.sequences(id).len() == before + 2);
    }
    assert_count_eq!(script.peer.record.foreign, 0);
    assert!(script.peer.record.arrived.iter().all(|one| one.intact && matches!(one.payload_bytes, 24 | 60)));
}

#[test]
fn a_slow_subscriber_accepts_each_message_when_it_begins_to_process_it() {
    let (mut script, id) = opened(Qos::AtLeastOnce);
    script.peer.record.works = Some(id);
    let payloads: Vec<Vec<u8>> = (0..3).map(|sequence| message(sequence, 16)).collect();
    let transfers: Vec<_> = (0..).zip(&payloads).map(|(id, payload)| delivery(id, false, payload)).collect();
    script.send_bytes(&encoded(&transfers));
    for number in 0..3 {
        assert_eq!(script.expect_accepted(), (number, number));
        assert_count_eq!(script.peer.record.sequences(id).len(), number as usize + 1);
        script.peer.record.at_work = false;
        script.peer.clients.resume(id, clock::monotonic_ns(), &mut script.peer.record);
    }
}

#[test]
fn unsettled_deliveries_are_accepted_in_ranges() {
    let (mut script, id) = opened(Qos::AtLeastOnce);
    let payloads: Vec<Vec<u8>> = (0..6).map(|sequence| message(sequence, 16)).collect();
    // Delivery numbers belong to the session, not to one link.
    let numbers = [(0, false), (1, false), (2, true), (3, false), (9, false), (10, false)];
    let transfers: Vec<_> =
        numbers.iter().zip(&payloads).map(|((id, settled), payload)| delivery(*id, *settled, payload)).collect();
    script.send_bytes(&encoded(&transfers));
    script.peer.wait("all", |record| record.sequences(id).len() == 6);
    assert_eq!(
        [script.expect_accepted(), script.expect_accepted(), script.expect_accepted()],
        [(0, 1), (3, 3), (9, 10)]
    );
    // As soon as it has arrived, whatever follows.
    script.send_bytes(&encoded(&[delivery(11, false, &payloads[0])]));
    assert_eq!(script.expect_accepted(), (11, 11));
}

#[test]
fn credit_is_given_again_before_it_runs_out() {
    let (mut script, id) = opened(Qos::BestEffort);
    let payload = message(1, 16);
    let mut flows = 0;
    for number in 0..2_000 {
        script.send_bytes(&encoded(&[delivery(number, true, &payload)]));
        if (number + 1) % 500 == 0 {
            let flow = script.expect_flow();
            assert_eq!((flow.delivery_count, flow.link_credit), (Some(number + 1), Some(1_000)));
            assert_eq!(flow.next_incoming_id, Some(7 + number + 1));
            flows += 1;
        }
    }
    script.peer.wait("all", |record| record.sequences(id).len() == 2_000);
    assert_count_eq!(flows, 4);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn links_may_interleave_their_parts_and_give_up_on_them() {
    let (mut script, id) = with_two();
    let (first, second) = (message(1, 100), message(2, 200));
    let of = |handle, id, more, payload| Transfer { handle, more, ..delivery(id, false, payload) };
    let nameless =
        |handle, more, payload| Transfer { delivery_id: None, delivery_tag: None, ..of(handle, 0, more, payload) };
    script.send_bytes(&encoded(&[
        of(0, 0, true, &first[..50]),
        of(1, 1, true, &second[..10]),
        nameless(0, false, &first[50..]),
        of(1, 1, true, &second[10..20]),
        of(0, 2, true, b"begun by mistake"),
        Transfer { aborted: true, ..of(0, 2, false, b"not looked at") },
        nameless(1, false, &second[20..]),
    ]));
    script.peer.wait("both", |record| record.sequences(id) == [1, 2]);
    assert_count_eq!(script.peer.record.foreign, 0);
    assert_eq!(script.expect_accepted(), (0, 1));
    let third = message(3, 16);
    script.send_bytes(&encoded(&[of(0, 3, false, &third)]));
    assert_eq!(script.expect_accepted(), (3, 3));
}

#[test]
fn settled_by_any_part_is_settled() {
    let (mut script, id) = opened(Qos::AtLeastOnce);
    let payload = message(1, 50);
    let part = |settled, more, payload| Transfer { settled, more, ..delivery(0, false, payload) };
    script.send_bytes(&encoded(&[part(None, true, &payload[..9]), part(Some(true), false, &payload[9..])]));
    script.peer.wait("it", |record| record.sequences(id) == [1]);
    script.send_bytes(&encoded(&[delivery(1, false, &payload)]));
    assert_eq!(script.expect_accepted(), (1, 1));
}

#[test]
fn bodies_of_every_form_arrive() {
    let (mut script, id) = opened(Qos::BestEffort);
    let plain = message(1, 40);
    let mut dressed = Vec::new();
    composite(0x70, &mut dressed, |fields| fields.boolean(true));
    composite(0x73, &mut dressed, |fields| fields.text("id"));
    dressed.extend_from_slice(&plain);
    dressed.extend_from_slice(&[0, 0x53, 0x78, 0xc1, 1, 0]);
    let mut value = plain.clone();
    value[2] = 0x77;
    // A body of two data sections is their concatenation.
    let payload = &plain[5..];
    let halves = [&b"\0\x53\x75\xa0\x11"[..], &payload[..17], b"\0\x53\x75\xb0\0\0\0\x17", &payload[17..]].concat();
    for (number, message) in [dressed, value, halves].iter().enumerate() {
        script.send_bytes(&encoded(&[delivery(number as u32, true, message)]));
    }
    script.peer.wait("all", |record| record.sequences(id) == [1, 1, 1]);
    assert_count!(script.peer.record.arrived.iter().all(|one| one.intact && one.payload_bytes == 40));
    script.send_bytes(&encoded(&[delivery(9, true, b"")]));
    script.peer.wait("nothing", |record| record.foreign == 1);
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn a_server_that_breaks_the_rules_of_delivery_is_left() {
    let payload = message(1, 16);
    let many: Vec<Transfer<'_>> =
        (0..1_001).map(|id| Transfer { more: false, ..delivery(id, true, &payload) }).collect();
    let large = vec![0; 60_000];
    let endless: Vec<Transfer<'_>> = (0..200).map(|_| Transfer { more: true, ..delivery(0, true, &large) }).collect();
    let other = Transfer { more: true, ..delivery(0, true, b"x") };
    let cases = [
        ("a transfer without an attach", encoded(&[Transfer { handle: 5, ..delivery(0, true, &payload) }])),
        ("a huge handle", encoded(&[Transfer { handle: u32::MAX, ..delivery(0, true, &payload) }])),
        ("a delivery without a number", encoded(&[Transfer { delivery_id: None, ..delivery(0, true, &payload) }])),
        ("a delivery in a delivery", encoded(&[other, delivery(1, true, &payload)])),
        ("a message without an end", encoded(&endless)),
        ("a message that is none", encoded(&[delivery(0, true, b"\x41")])),
    ];
    for (what, bytes) in cases {
        let (mut script, id) = opened(Qos::BestEffort);
        script.pour(id, &bytes);
        let cause = script.end_of(id);
        assert!(matches!(cause, Cause::Protocol(_)), "{what}: {cause:?}");
        assert_count!(script.peer.record.arrived.len() <= 1, "{what}");
    }
    // More than its credit: only messages within the credit arrive, because the client cannot grant more while it
    // reads.
    let (mut script, id) = opened(Qos::BestEffort);
    script.pour(id, &encoded(&many));
    script.peer.wait("all", |record| record.sequences(id).len() == 1_001 || !record.causes(id).is_empty());
    assert!(script.peer.record.sequences(id).len() >= 1_000);
}
