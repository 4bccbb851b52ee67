//! Subscribers with a processing time for each message.

use pubmark_protocol::clock;
use pubmark_testing::assert_count_eq;

use super::Target;
use crate::peer::{publisher, subscriber};

/// More than one read of a socket returns, and more than a server sends without acknowledgements.
const COUNT: u32 = 60;
const PAYLOAD_BYTES: u32 = 4_000;

pub fn one_at_a_time(target: &mut Target) {
    let name = target.capabilities.name;
    if !target.pauses {
        return pubmark_testing::skip(format_args!("clients over {name} read on while their subscribers are at work"));
    }
    for qos in target.capabilities.qos() {
        let mut peer = target.peer();
        let topic = format!("work-{}", qos.level());
        let slow = peer.join(subscriber(&format!("{topic}-slow"), &topic, qos));
        let quick = peer.join(subscriber(&format!("{topic}-quick"), &topic, qos));
        let sender = peer.join(publisher(&format!("{topic}-says"), &topic, qos));
        peer.record.works = Some(slow);
        (0..COUNT).for_each(|_| peer.send(sender, PAYLOAD_BYTES));
        peer.wait("the quick one", |record| record.sequences(quick).len() >= COUNT as usize);
        peer.linger(100);
        assert_count_eq!(peer.record.sequences(slow).len(), 1, "{qos:?}: it was handed more than one");
        for done in 1..=COUNT as usize {
            peer.wait("the next message", |record| record.sequences(slow).len() == done);
            peer.linger(1);
            assert_count_eq!(peer.record.sequences(slow).len(), done, "{qos:?}: it was handed more than one");
            let due_ns = clock::monotonic_ns();
            peer.record.at_work = false;
            peer.clients.resume(slow, due_ns, &mut peer.record);
            // The wait for the subscriber's own processing does not count as receive lateness.
            let next = peer.record.arrived.iter().rfind(|one| one.session == slow).filter(|_| peer.record.at_work);
            if let Some(next) = next.filter(|_| done < COUNT as usize) {
                assert!(next.empty_at_ns.is_some_and(|at_ns| at_ns >= due_ns), "{qos:?}: {next:?} after {due_ns}");
                assert!(next.kernel_ns.is_none_or(|at_ns| at_ns >= due_ns), "{qos:?}: {next:?} after {due_ns}");
            }
        }
        assert_count_eq!(peer.record.sequences(slow), (1..=COUNT).collect::<Vec<_>>(), "{qos:?}");
        peer.record.works = None;
        assert!(peer.record.causes(slow).is_empty(), "{qos:?}: {:?}", peer.record.causes(slow));
    }
}

/// What the server sends in that time, ping responses included, is not read: the adapter must not take that for a silent server.
pub fn a_long_time(target: &mut Target) {
    if !target.pauses {
        return pubmark_testing::skip(format_args!("clients over {} read on all the while", target.capabilities.name));
    }
    let qos = target.first_sure_level();
    let mut peer = target.peer_with_keep_alive(1);
    let slow = peer.join(subscriber("long-slow", "long-work", qos));
    let sender = peer.join(publisher("long-says", "long-work", qos));
    peer.record.works = Some(slow);
    peer.send(sender, PAYLOAD_BYTES);
    peer.send(sender, PAYLOAD_BYTES);
    peer.wait("the first message", |record| record.sequences(slow).len() == 1);
    // Longer than two keep-alive intervals, after which a silent server counts as gone.
    peer.linger(3_500);
    assert!(peer.record.causes(slow).is_empty(), "{:?}", peer.record.causes(slow));
    peer.record.at_work = false;
    peer.clients.resume(slow, clock::monotonic_ns(), &mut peer.record);
    peer.wait("the second message", |record| record.sequences(slow) == [1, 2]);
}
