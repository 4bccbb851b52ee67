//! Connections that the client did not close itself.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SendOutcome;
use pubmark_protocol::events::Cause;
use pubmark_testing::assert_count_eq;

use super::Target;
use crate::peer::{publisher, subscriber};
use crate::recorder::Event;
use crate::server::SMALL_PACKET_BYTES;

pub fn killed_server(target: &mut Target) {
    // Without a connection that can break, the next ping finds that the server is gone.
    let mut peer = target.peer_with_keep_alive(1);
    let qos = target.acknowledged_level();
    let receiver = peer.join(subscriber("killed-in", "killed", qos));
    let sender = peer.join(publisher("killed-out", "killed", qos));
    peer.send(sender, 100);
    peer.wait("arrived", |record| record.arrived.len() == 1);
    target.settle(&mut peer, 1);
    target.server.kill();
    peer.wait("both closed", |record| [receiver, sender].iter().all(|id| record.causes(*id).len() == 1));
    for session in [receiver, sender] {
        let causes = peer.record.causes(session);
        assert!(matches!(causes[..], [Cause::Dropped(_)]), "{causes:?}");
    }
    assert_eq!(peer.offer(sender, 100), SendOutcome::WouldBlock);
    target.server.restart();
    let writable = peer.record.count(|event| *event == Event::Writable(sender));
    // The subscriber connects first: a publisher that filters for the system learns of a subscription only some time after it was made.
    peer.connect(receiver);
    peer.wait("subscribed", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 2);
    peer.connect(sender);
    assert_count_eq!(peer.record.count(|event| *event == Event::Writable(sender)), writable + 1);
    peer.send(sender, 100);
    peer.wait("arrived", |record| record.arrived.len() == 2);
}

/// Keep-alive of one second: the connection survives three idle seconds, and a paused server is detected.
pub fn silent_server(target: &mut Target) {
    let mut peer = target.peer_with_keep_alive(1);
    let receiver = peer.join(subscriber("silent-in", "silent", Qos::BestEffort));
    peer.linger(3_000);
    assert_eq!(peer.record.causes(receiver), []);
    if !target.server.pause() {
        return pubmark_testing::skip("this server cannot be paused");
    }
    peer.wait("closed", |record| !record.causes(receiver).is_empty());
    target.server.resume();
    let causes = peer.record.causes(receiver);
    let silent =
        |cause: &Cause| *cause == Cause::Silent || (target.reads_itself() && matches!(cause, Cause::Dropped(_)));
    assert!(causes.len() == 1 && silent(&causes[0]), "{causes:?}");
}

/// A message above the limit is refused before it is sent if the server announces its limit; otherwise the server refuses the
/// message or closes the connection.
pub fn too_large(target: &mut Target) {
    let mut peer = target.peer();
    let sender = peer.join(publisher("too-large", "too-large", target.acknowledged_level()));
    match peer.record.connects(sender)[0].maximum_packet_bytes {
        Some(limit) => {
            assert_eq!(limit, SMALL_PACKET_BYTES);
            assert_eq!(peer.offer(sender, SMALL_PACKET_BYTES + 1), SendOutcome::TooLarge(SMALL_PACKET_BYTES));
        }
        None => {
            assert_eq!(peer.offer(sender, SMALL_PACKET_BYTES), SendOutcome::Accepted);
            peer.flush(sender);
            let is_refusal = |event: &Event| matches!(event, Event::Acknowledged(_, _, Err(_)));
            peer.wait("no", |record| !record.causes(sender).is_empty() || record.count(is_refusal) > 0);
            assert_count_eq!(peer.record.acknowledged(), 0);
            if peer.record.count(is_refusal) == 0 {
                let causes = peer.record.causes(sender);
                assert!(matches!(causes[..], [Cause::Dropped(_) | Cause::Server { .. }]), "{causes:?}");
                peer.connect(sender);
            }
        }
    }
    let written = peer.record.written();
    peer.send(sender, 90_000);
    if target.acknowledges() {
        peer.wait("acknowledged", |record| record.acknowledged() == 1);
    } else {
        peer.wait("written", |record| record.written() == written + 1);
        peer.linger(50);
    }
    assert_eq!(peer.record.causes(sender).len(), peer.record.connects(sender).len() - 1, "this one is not too large");
}
