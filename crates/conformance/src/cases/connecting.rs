//! Connection attempts that fail, and the cause that the adapter reports.

use pubmark_protocol::clients::SessionConfig;
use pubmark_protocol::endpoint::{Endpoint, Tls};
use pubmark_protocol::events::Cause;

use super::Target;
use crate::certificates::Certificates;
use crate::peer::{credentials, publisher, session, subscriber};
use crate::ports;
use crate::server::{LOGIN, Listener, Missing};

pub fn wrong_password(target: &mut Target) {
    let endpoint = match target.server.endpoint(Listener::Guarded) {
        Ok(endpoint) => endpoint,
        Err(Missing(reason)) => return pubmark_testing::skip(format_args!("{}: {reason}", target.capabilities.name)),
    };
    let mut peer = target.peer_at_listener(Listener::Guarded).expect("it has an endpoint");
    for login in [None, credentials(LOGIN.0, "wrong"), credentials("nobody", LOGIN.1)] {
        let cause = peer.fail_to_connect(SessionConfig { credentials: login, ..session("password-wrong") });
        assert!(matches!(cause, Cause::NotAuthorized(_)), "{cause:?}");
    }
    let level = target.acknowledged_level();
    let with_login = |config| SessionConfig { credentials: credentials(LOGIN.0, LOGIN.1), ..config };
    peer.join(with_login(subscriber("password-in", "password", level)));
    let sender = peer.join(with_login(publisher("password-right", "password", level)));
    peer.send(sender, 16);
    target.settle(&mut peer, 1);
    peer.wait("arrived", |record| record.arrived.len() == 1);
    // The endpoint's log-in serves sessions that have none.
    let mut peer = target.peer_at(Endpoint { credentials: credentials(LOGIN.0, LOGIN.1), ..endpoint });
    peer.join(session("password-of-endpoint"));
}

pub fn unreachable(target: &mut Target) {
    let mut peer = target.peer_at(Endpoint { address: ports::free(), ..target.endpoint() });
    let cause = peer.fail_to_connect(session("unreachable"));
    assert!(matches!(&cause, Cause::Unreachable(words) if words.contains("refused")), "{cause:?}");
}

pub fn wrong_authority(target: &mut Target) {
    if target.listener != Listener::Encrypted {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let other = Certificates::make(directory.path(), "other");
    let with = |server_name: &str, authorities| {
        let tls = Some(Tls { server_name: server_name.to_owned(), authorities, identity: None });
        target.peer_at(Endpoint { tls, ..target.endpoint() })
    };
    let cause = with("localhost", Some(other.authority)).fail_to_connect(session("wrong-authority"));
    assert!(matches!(cause, Cause::Tls(_)), "{cause:?}");
    let known = target.endpoint().tls.and_then(|tls| tls.authorities);
    let cause = with("other.example", known.clone()).fail_to_connect(session("wrong-name"));
    assert!(matches!(cause, Cause::Tls(_)), "{cause:?}");
    with("127.0.0.1", known).join(session("by-address"));
    with("other.example", None).join(session("any-certificate"));
    // TLS to a listener without TLS.
    let plain = target.server.endpoint(Listener::Plain).unwrap();
    let mut peer = target.peer_at(Endpoint { address: plain.address, ..target.endpoint() });
    let id = peer.clients.add_session(session("tls-to-plain"));
    peer.clients.connect(id, &mut peer.record);
    peer.linger(1_000);
    match &peer.record.causes(id)[..] {
        // A server may wait for the end of what it parses as a line: the engine's time limit for connects ends that.
        [] => {
            pubmark_testing::skip(format_args!("{} says nothing to a TLS hello", target.capabilities.name));
            assert_eq!(peer.record.connects(id), []);
        }
        causes => assert!(matches!(causes, [Cause::Tls(_)]), "{causes:?}"),
    }
}
