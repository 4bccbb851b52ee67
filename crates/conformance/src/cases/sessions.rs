//! What sessions retain when their connection ends.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SessionConfig};
use pubmark_protocol::events::Cause;
use pubmark_testing::{assert_count, assert_count_eq};

use super::Target;
use crate::peer::{Peer, publisher, subscriber};
use crate::recorder::Event;

fn keeping(config: SessionConfig, listener: impl std::fmt::Debug, name: &str) -> SessionConfig {
    // All listeners and versions share the sessions of one server.
    SessionConfig { persistent: true, client_id: format!("{}-{listener:?}-{name}", config.client_id).into(), ..config }
}

fn has_no_sessions(target: &Target) -> bool {
    if !target.capabilities.persistent_sessions {
        pubmark_testing::skip(format_args!("{} keeps no sessions", target.capabilities.name));
    }
    !target.capabilities.persistent_sessions
}

pub fn persistent_gets_what_it_missed(target: &mut Target) {
    if has_no_sessions(target) {
        return;
    }
    const MISSED: u32 = 10;
    for (goodbye, client_id) in [(Goodbye::Graceful, "missed-graceful"), (Goodbye::Cut, "missed-cut")] {
        let mut peer = target.peer();
        let config = subscriber(client_id, client_id, Qos::AtLeastOnce);
        let receiver = peer.join(keeping(config, target.listener, target.capabilities.name));
        assert!(!peer.record.connects(receiver)[0].session_present);
        let sender = peer.join(publisher("missed-out", client_id, Qos::AtLeastOnce));
        peer.leave(receiver, goodbye);
        assert_eq!(peer.record.causes(receiver), [Cause::Ours]);
        for _ in 0..MISSED {
            peer.send(sender, 100);
        }
        peer.wait("acknowledged", |record| record.acknowledged() == MISSED as usize);
        assert_count!(peer.record.arrived.is_empty());
        peer.connect(receiver);
        assert!(peer.record.connects(receiver)[1].session_present);
        peer.wait("what it missed", |record| record.arrived.len() >= MISSED as usize);
        let mut sequences = peer.record.sequences(receiver);
        if target.capabilities.features.redelivers_after.is_some() {
            // The server may have noticed the end of the connection only after the first of them.
            sequences.sort_unstable();
        }
        assert_count_eq!(sequences, (1..=MISSED).collect::<Vec<_>>());
        assert_count!(peer.record.arrived.iter().all(|one| !one.retained));
        let replies = peer.record.count(|event| matches!(event, Event::Subscribed(id, ..) if *id == receiver));
        assert_count_eq!(replies, 1, "a session that is there is not asked for its subscriptions again");
    }
}

pub fn final_goodbye_leaves_nothing(target: &mut Target) {
    if has_no_sessions(target) {
        return;
    }
    if !target.capabilities.ends_sessions {
        pubmark_testing::skip(format_args!("{} cannot end a session with a goodbye", target.capabilities.name));
        return;
    }
    let mut peer = target.peer();
    let config = subscriber("final", "final", Qos::AtLeastOnce);
    let receiver = peer.join(keeping(config, target.listener, target.capabilities.name));
    peer.leave(receiver, Goodbye::Final);
    peer.connect(receiver);
    assert!(!peer.record.connects(receiver)[1].session_present, "the session is still there");
}

/// An earlier run left its session on the server, with a message in it: a new run has not the state to continue it.
pub fn earlier_run_is_not_continued(target: &mut Target) {
    if has_no_sessions(target) {
        return;
    }
    // In MQTT 3.1.1 one connection finds the session, and another one discards it.
    const ATTEMPTS: usize = 3;
    let name = "earlier-run";
    let config = || keeping(subscriber(name, name, Qos::AtLeastOnce), target.listener, target.capabilities.name);
    let mut earlier = target.peer();
    let left = earlier.join(config());
    earlier.leave(left, Goodbye::Graceful);
    let sender = earlier.join(publisher("earlier-out", name, Qos::AtLeastOnce));
    earlier.send(sender, 100);
    earlier.wait("acknowledged", |record| record.acknowledged() == 1);
    earlier.leave(sender, Goodbye::Graceful);
    let mut peer = target.peer();
    let receiver = peer.join_within(ATTEMPTS, config());
    assert!(!peer.record.connects(receiver)[0].session_present);
    let sender = peer.join(publisher("later-out", name, Qos::AtLeastOnce));
    (0..2).for_each(|_| peer.send(sender, 100));
    peer.wait("the second", |record| record.sequences(receiver).last() == Some(&2));
    assert_count_eq!(peer.record.sequences(receiver), [1, 2], "the message of the earlier run arrived");
}

pub fn clean_forgets(target: &mut Target) {
    let mut peer = target.peer();
    let qos = target.acknowledged_level();
    let receiver = peer.join(subscriber("clean-in", "clean", qos));
    let witness = peer.join(subscriber("clean-witness", "clean", qos));
    let sender = peer.join(publisher("clean-out", "clean", qos));
    peer.leave(receiver, Goodbye::Cut);
    peer.send(sender, 100);
    peer.wait("the witness", |record| record.sequences(witness) == [1]);
    peer.connect(receiver);
    peer.wait("subscribed again", |record| {
        record.count(|event| matches!(event, Event::Subscribed(id, ..) if *id == receiver)) == 2
    });
    peer.send(sender, 100);
    peer.wait("the second", |record| record.sequences(receiver).last() == Some(&2));
    assert!(!peer.record.connects(receiver)[1].session_present);
    assert_count_eq!(peer.record.sequences(receiver), [2]);
}

pub fn sent_again(target: &mut Target) {
    if has_no_sessions(target) {
        return;
    }
    const COUNT: usize = 5;
    let levels = [(Qos::AtLeastOnce, "again-1"), (Qos::ExactlyOnce, "again-2")];
    for (qos, client_id) in levels.into_iter().filter(|(qos, _)| target.capabilities.offers(*qos)) {
        let mut peer = target.peer();
        let receiver = peer.join(subscriber("again-in", client_id, qos));
        let config = publisher(client_id, client_id, qos);
        let sender = peer.join(keeping(config, target.listener, target.capabilities.name));
        for _ in 0..COUNT {
            // The acknowledgements are not read before the connection is cut.
            assert_eq!(peer.offer(sender, 70_000), pubmark_protocol::clients::SendOutcome::Accepted);
            peer.flush(sender);
        }
        peer.leave(sender, Goodbye::Cut);
        let written = peer.record.written();
        let abandoned = peer.record.count(|event| matches!(event, Event::Abandoned(..)));
        assert_count_eq!((written + abandoned, peer.record.acknowledged()), (COUNT, 0));
        assert_count!(written > 0 && peer.record.unanswered() == 0, "{written} written");
        peer.connect(sender);
        assert!(peer.record.connects(sender)[1].session_present);
        assert_count_eq!(peer.record.count(|event| matches!(event, Event::Resent(..))), written);
        peer.wait("acknowledged", |record| record.acknowledged() == written);
        peer.send(sender, 70_000);
        peer.wait("the one behind", |record| record.acknowledged() == written + 1);
        peer.wait("its arrival", |record| record.sequences(receiver).contains(&(COUNT as u32 + 1)));
        let mut first_copies = peer.record.sequences(receiver);
        let copies = first_copies.len();
        first_copies.sort_unstable();
        first_copies.dedup();
        assert_count_eq!(first_copies.len(), written + 1);
        assert_count!(peer.record.arrived.iter().all(|one| one.intact && one.payload_bytes == 70_000));
        if qos == Qos::ExactlyOnce {
            assert_count_eq!(copies, written + 1, "exactly once");
        }
        assert_count_eq!(peer.record.written(), written + 1, "a repetition is not written twice");
    }
}

pub fn lost_session(target: &mut Target) {
    const COUNT: usize = 3;
    if target.has_no_acknowledgements() {
        return;
    }
    let mut peer = target.peer();
    let clean = peer.join(publisher("lost-clean", "lost", Qos::AtLeastOnce));
    let sessions = target.capabilities.persistent_sessions;
    let kept = sessions.then(|| {
        let highest = target.capabilities.qos().last().expect("it offers a level");
        // It subscribes, too: a server may store nothing for a session that only publishes, and then there is nothing to lose.
        let subscriptions = subscriber("lost-kept", "lost-kept", Qos::AtLeastOnce).subscriptions;
        let config = SessionConfig { subscriptions, ..publisher("lost-kept", "lost", highest) };
        peer.join(keeping(config, target.listener, target.capabilities.name))
    });
    for session in [Some(clean), kept].into_iter().flatten() {
        for _ in 0..COUNT {
            assert_eq!(peer.offer(session, 16), pubmark_protocol::clients::SendOutcome::Accepted);
        }
        peer.flush(session);
        peer.leave(session, Goodbye::Cut);
    }
    let of = |peer: &Peer, session| {
        peer.record.count(|event| matches!(event, Event::Unacknowledged(id, _) if *id == session))
    };
    assert_count_eq!(of(&peer, clean), COUNT, "a clean session is lost with its connection");
    let Some(kept) = kept else { return };
    assert_count_eq!(of(&peer, kept), 0, "a kept one may come back");
    target.server.kill();
    target.server.restart();
    peer.connect(kept);
    assert!(!peer.record.connects(kept)[1].session_present);
    assert_count_eq!(of(&peer, kept), COUNT, "the server has forgotten it");
    for _ in 0..COUNT {
        assert_eq!(peer.offer(kept, 16), pubmark_protocol::clients::SendOutcome::Accepted);
    }
    peer.flush(kept);
    peer.leave(kept, Goodbye::Cut);
    peer.clients.finish(&mut peer.record);
    assert_count_eq!(of(&peer, kept), 2 * COUNT, "at the end of the run nobody will know");
}
