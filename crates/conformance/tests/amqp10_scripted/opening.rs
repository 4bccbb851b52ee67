//! From TCP to an open session, and other responses of a server.

use pubmark_conformance::peer::{credentials, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Clients, SendOutcome, SessionConfig, SessionOptions, Subscription};
use pubmark_protocol::events::{Cause, Reason};
use pubmark_wire::amqp10::{
    Attach, Condition, Detach, FrameKind, Open, Performative, ProtocolHeader, Role, SenderSettles, Terminus, composite,
    encode_close, encode_end, encode_frame,
};

use crate::script::{CHANNEL, Script, Until, attach, mechanisms, outcome};

fn header(header: ProtocolHeader) -> Vec<u8> {
    let mut out = Vec::new();
    header.encode(&mut out);
    out
}

/// The cause of the end if the server sends these bytes at this stage.
fn end(config: SessionConfig, until: Until, words: &[u8]) -> Cause {
    let mut script = Script::new();
    let id = script.connect_client(config, until);
    script.send_bytes(words);
    script.end_of(id)
}

fn refused(words: &'static str) -> Cause {
    Cause::Refused(Reason::words(words))
}

const ERROR: Option<Condition<'static>> = Some(Condition { name: "amqp:not-allowed", description: Some("go away") });

#[test]
fn packets_instead_of_a_log_in_are_distinguished() {
    let sasl = header(ProtocolHeader::SASL);
    let at_first = |words: &[u8]| end(session("ends"), Until::Accepted, words);
    assert_eq!(at_first(b"AMQP\0\0\x09\x01"), refused("it speaks AMQP 0-9-1"));
    assert_eq!(at_first(&header(ProtocolHeader::AMQP)), refused("it speaks AMQP 1.0.0"));
    assert_eq!(at_first(b"AMQP\x02\x01\0\0"), refused("it takes connections with TLS only"));
    for wrong in [&b"HTTP/1.1 400 Bad Request"[..], b"\x16\x03\x01\x02\x00", b"\0\0\0\x08\x02\0\0\0", b"\0\0\0\0"] {
        assert!(matches!(at_first(wrong), Cause::Protocol(_)), "{}", wrong.escape_ascii());
    }
    let none = at_first(&[&sasl[..], &mechanisms(&["PLAIN", "SCRAM-SHA-256"])].concat());
    let reason = Reason::words("it offers the mechanisms PLAIN, SCRAM-SHA-256, not ANONYMOUS");
    assert_eq!(none, Cause::NotAuthorized(reason));
    let known = SessionConfig { credentials: credentials("me", "secret"), ..session("known") };
    let none = end(known, Until::Accepted, &[&sasl[..], &mechanisms(&["ANONYMOUS"])].concat());
    assert!(matches!(none, Cause::NotAuthorized(_)), "{none:?}");
}

#[test]
fn every_outcome_of_a_log_in_has_a_cause() {
    let after = |words: &[u8]| end(session("outcome"), Until::LogIn, words);
    assert_eq!(after(&outcome(1)), Cause::NotAuthorized(Reason::code(1, "authentication failed")));
    assert_eq!(after(&outcome(2)), Cause::Refused(Reason::code(2, "system error")));
    assert_eq!(after(&outcome(3)), Cause::Refused(Reason::code(3, "permanent system error")));
    assert_eq!(after(&outcome(4)), Cause::Refused(Reason::code(4, "transient system error")));
    assert_eq!(after(&outcome(99)), Cause::Refused(Reason::code(99, "unknown outcome")));
    let mut challenge = Vec::new();
    encode_frame(FrameKind::Sasl, 0, &mut challenge, |out| composite(0x42, out, |fields| fields.binary(b"?")));
    assert!(matches!(after(&challenge), Cause::Protocol(_)));
    assert!(matches!(after(&mechanisms(&["PLAIN"])), Cause::Protocol(_)), "mechanisms twice");
    // The response of RabbitMQ to an anonymous log-in that it does not accept.
    let cause = end(session("asked"), Until::Open, &header(ProtocolHeader::SASL));
    assert_eq!(cause, Cause::NotAuthorized(Reason::words("it asks for a log-in")));
}

#[test]
fn a_log_in_goes_in_plain_and_only_if_there_is_one() {
    let known = SessionConfig { credentials: credentials("me", "two words"), ..session("known") };
    for (config, expected) in
        [(known, &b"\xa3\x05PLAIN\xa0\x0d\0me\0two words"[..]), (session("nobody"), b"\xa3\x09ANONYMOUS\xa0\0")]
    {
        let mut script = Script::new();
        script.connect_client(config, Until::Accepted);
        script.send_bytes(&header(ProtocolHeader::SASL));
        script.send_bytes(&mechanisms(&["PLAIN", "ANONYMOUS"]));
        // After the client's own header, which the script has read.
        let (kind, body) = script.frame();
        assert_eq!(kind, FrameKind::Sasl);
        assert!(body.windows(expected.len()).any(|part| part == expected), "{}", body.escape_ascii());
    }
}

#[test]
fn a_server_with_an_unknown_address_syntax_is_refused() {
    for (product, shown) in [(Some("qpid-cpp"), "`qpid-cpp`"), (None, "`no name`")] {
        let mut script = Script::new();
        script.open.product = product;
        let id = script.connect_client(publisher("stranger", "a", Qos::BestEffort), Until::Begin);
        let begin = script.begin;
        script.send_with(|out| begin.encode(CHANNEL, out));
        let cause = script.end_of(id);
        assert!(matches!(&cause, Cause::Refused(reason) if reason.text.contains(shown)), "{cause:?}");
    }
}

#[test]
fn a_virtual_host_is_sent_to_servers_with_virtual_hosts_and_refused_elsewhere() {
    let mut script = Script::with_settings("/a%2Fb");
    script.connect_client(session("hosted"), Until::Receivers);
    assert_eq!(script.hostname.as_deref(), Some("vhost:a/b"));
    // The response of RabbitMQ to an unknown virtual host.
    let mut script = Script::with_settings("/none");
    let id = script.connect_client(session("wrong"), Until::Begin);
    script.send_with(|out| {
        encode_close(Some(Condition { name: "amqp:unauthorized-access", description: Some("no") }), out);
    });
    let reason = Reason::words("amqp:unauthorized-access: no (virtual host `none`)");
    assert_eq!(script.end_of(id), Cause::NotAuthorized(reason));
    let mut script = Script::with_settings("/a%2Fb");
    script.open.product = Some("apache-activemq-artemis");
    let id = script.connect_client(session("lost"), Until::Begin);
    let begin = script.begin;
    script.send_with(|out| begin.encode(CHANNEL, out));
    assert_eq!(script.end_of(id), refused("it has no virtual hosts that a client chooses from"));
}

#[test]
fn a_group_has_one_name_at_servers_that_share_and_is_refused_elsewhere() {
    let member = || {
        let subscription = |filter: &str| Subscription { filter: filter.into(), qos: Qos::BestEffort };
        let options = SessionOptions { shared: Some("workers".into()), ..SessionOptions::default() };
        SessionConfig { subscriptions: vec![subscription("a/+"), subscription("b")], options, ..session("member") }
    };
    let granted = |script: &Script| {
        script.peer.record.all(|event| match event {
            Event::Subscribed(_, index, granted) => Some((*index, granted.is_ok())),
            _ => None,
        })
    };
    let mut script = Script::new();
    script.open.product = Some("apache-activemq-artemis");
    script.connect_client(member(), Until::All);
    script.peer.wait("both", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 2);
    assert_eq!(
        script.attached_receivers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["workers.r0", "workers.r1"]
    );
    assert_eq!(script.ends, [(Some("a.*".to_owned()), false), (Some("b".to_owned()), false)]);
    assert_eq!(granted(&script), [(0, true), (1, true)]);
    let mut script = Script::new();
    let id = script.peer.clients.add_session(member());
    script.reconnect_client(id, Until::Receivers);
    assert_eq!(granted(&script), [(0, false), (1, false)], "RabbitMQ has none");
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn a_content_filter_that_the_server_does_not_name_is_not_accepted() {
    const SELECTOR: &str = "payload$n > 3.0";
    for (applied, is_granted) in [(Some(SELECTOR), true), (Some("payload$n > 4.0"), false), (None, false)] {
        let mut script = Script::new();
        let options = SessionOptions { selector: Some(SELECTOR.into()), ..SessionOptions::default() };
        let config = SessionConfig { options, ..subscriber("filtered", "a", Qos::AtLeastOnce) };
        let id = script.connect_client(config, Until::Senders);
        let filter = script.expect("attach", |performative| match performative {
            Performative::Attach(attach) => attach.source?.selector.map(str::to_owned),
            _ => None,
        });
        assert_eq!(filter, SELECTOR);
        let source = Some(Terminus { selector: applied, ..Terminus::at(Some("there")) });
        let response = Attach { source, initial_delivery_count: Some(0), ..attach("r0", 4, Role::Sender) };
        script.send_with(|out| response.encode(CHANNEL, out));
        let granted = |script: &Script| {
            script.peer.record.all(|event| match event {
                Event::Subscribed(_, 0, granted) => Some(granted.clone()),
                _ => None,
            })
        };
        script.peer.wait("the response", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 1);
        if is_granted {
            assert_eq!(granted(&script), [Ok(Qos::AtLeastOnce)]);
            assert!(script.expect_flow().link_credit > Some(0));
            continue;
        }
        let ours = script.expect("detach", |performative| match performative {
            Performative::Detach(detach) => Some((detach.handle, detach.closed)),
            _ => None,
        });
        assert_eq!(ours, (0, true), "no credit, and the link ends");
        let detach = Detach { handle: 4, closed: true, error: None };
        script.send_with(|out| detach.encode(CHANNEL, out));
        script.peer.linger(50);
        let reason = Reason::words("it did not accept the content filter (`at: client` needs none)");
        assert_eq!(granted(&script), [Err(reason)]);
        assert_eq!(script.peer.record.causes(id), [], "the session goes on");
    }
}

#[test]
fn limits_of_the_server_are_checked_before_anything_is_sent() {
    let mut script = Script::new();
    script.open.max_frame_bytes = 511;
    let id = script.connect_client(session("small"), Until::Open);
    let open = script.open;
    script.send_with(|out| {
        ProtocolHeader::AMQP.encode(out);
        open.encode(out);
    });
    assert!(matches!(script.end_of(id), Cause::Protocol(words) if words.contains("511")));
    let mut script = Script::new();
    script.begin.handle_max = 0;
    let subscription = Subscription { filter: "b".into(), qos: Qos::BestEffort };
    let config = SessionConfig { subscriptions: vec![subscription], ..publisher("many", "a", Qos::BestEffort) };
    let id = script.connect_client(config, Until::Begin);
    let begin = script.begin;
    script.send_with(|out| begin.encode(CHANNEL, out));
    let cause = script.end_of(id);
    assert_eq!(cause, refused("it takes 1 links in a session, 2 are needed"));
}

#[test]
fn a_close_at_every_stage_is_reported_with_its_text() {
    let both = || {
        let subscription = Subscription { filter: "b".into(), qos: Qos::BestEffort };
        SessionConfig { subscriptions: vec![subscription], ..publisher("both", "a", Qos::BestEffort) }
    };
    for until in [Until::Open, Until::Begin, Until::Senders, Until::Receivers, Until::All] {
        for of_session in [false, true] {
            let mut words = Vec::new();
            if until == Until::Open {
                header(ProtocolHeader::AMQP).iter().for_each(|byte| words.push(*byte));
            }
            if of_session && until < Until::Senders {
                continue;
            }
            match of_session {
                true => encode_end(CHANNEL, ERROR, &mut words),
                false => encode_close(ERROR, &mut words),
            }
            let reason = Reason::words("amqp:not-allowed: go away");
            let expected = match until {
                Until::Receivers | Until::All => Cause::Server { reason, too_large: false },
                _ => Cause::Refused(reason),
            };
            assert_eq!(end(both(), until, &words), expected, "{until:?} {of_session}");
        }
    }
    let mut words = Vec::new();
    encode_close(Some(Condition { name: "amqp:unauthorized-access", description: None }), &mut words);
    let cause = end(both(), Until::Begin, &words);
    assert_eq!(cause, Cause::NotAuthorized(Reason::words("amqp:unauthorized-access")));
    let mut words = Vec::new();
    encode_close(None, &mut words);
    assert_eq!(end(both(), Until::Begin, &words), refused("it closed the connection"));
}

#[test]
fn a_refused_sender_is_reported_with_the_servers_text() {
    let mut script = Script::new();
    let id = script.connect_client(publisher("refused", "a", Qos::AtLeastOnce), Until::Senders);
    let none = Attach { target: None, ..attach("s0", 3, Role::Receiver) };
    script.send_with(|out| none.encode(CHANNEL, out));
    let detach = Detach { handle: 3, closed: true, error: ERROR };
    script.send_with(|out| detach.encode(CHANNEL, out));
    assert_eq!(script.end_of(id), refused("amqp:not-allowed: go away"));
    assert_eq!(script.peer.record.connects(id), []);
}

#[test]
fn a_refused_subscription_leaves_the_rest() {
    let filter = |filter: &str, qos| Subscription { filter: filter.into(), qos };
    let subscriptions =
        vec![filter("open/#", Qos::AtLeastOnce), filter("secret", Qos::BestEffort), filter("also/+", Qos::AtLeastOnce)];
    let mut script = Script::new();
    let id = script.connect_client(SessionConfig { subscriptions, ..session("some") }, Until::Receivers);
    assert_eq!(script.attached_receivers, [("r0".to_owned(), 0), ("r1".to_owned(), 1), ("r2".to_owned(), 2)]);
    // In another order than the requests, and with handles of the server's own.
    script.answer_receiver("r2", 0, SenderSettles::Settled);
    let none = Attach { source: None, ..attach("r1", 9, Role::Sender) };
    let detach = Detach { handle: 9, closed: true, error: ERROR };
    script.send_with(|out| {
        none.encode(CHANNEL, out);
        detach.encode(CHANNEL, out);
    });
    script.answer_receiver("r0", 1, SenderSettles::Unsettled);
    script.peer.wait("answers", |record| record.count(|event| matches!(event, Event::Subscribed(..))) == 3);
    let replies = script.peer.record.all(|event| match event {
        Event::Subscribed(of, index, granted) if *of == id => Some((*index, granted.clone())),
        _ => None,
    });
    // A sender that settles before sending grants best effort, whatever was requested.
    let reason = Reason::words("amqp:not-allowed: go away");
    assert_eq!(replies, [(2, Ok(Qos::BestEffort)), (1, Err(reason)), (0, Ok(Qos::AtLeastOnce))]);
    assert_eq!(script.expect_flow().handle, Some(2));
    let ours = script.expect("detach", |performative| match performative {
        Performative::Detach(detach) => Some((detach.handle, detach.closed)),
        _ => None,
    });
    assert_eq!(ours, (1, true));
    assert_eq!(script.expect_flow().handle, Some(0));
    assert_eq!(script.peer.record.causes(id), []);
}

#[test]
fn a_session_opens_with_the_first_credit_and_a_lost_receiver_ends_it() {
    let mut script = Script::new();
    script.credit = 0;
    let config = SessionConfig {
        subscriptions: vec![Subscription { filter: "b".into(), qos: Qos::BestEffort }],
        ..publisher("credit", "a", Qos::BestEffort)
    };
    let id = script.connect_client(config, Until::Senders);
    script.answer_sender("s0", 0);
    script.peer.linger(50);
    assert_eq!(script.peer.record.connects(id), []);
    assert_eq!(script.peer.offer(id, 16), SendOutcome::WouldBlock);
    let credit =
        pubmark_wire::amqp10::Flow { handle: Some(0), link_credit: Some(1), ..crate::script::flow(&script.begin) };
    script.send_with(|out| credit.encode(CHANNEL, out));
    script.peer.wait("connected", |record| !record.connects(id).is_empty());
    assert_eq!(script.peer.offer(id, 16), SendOutcome::Accepted);
    script.expect_attach(Role::Receiver);
    script.expect("transfer", |performative| matches!(performative, Performative::Transfer(_)).then_some(()));
    script.answer_receiver("r0", 1, SenderSettles::Settled);
    script.expect_flow();
    let detach = Detach { handle: 1, closed: true, error: None };
    script.send_with(|out| detach.encode(CHANNEL, out));
    let reason = Reason::words("it has no messages from `b`");
    assert_eq!(script.end_of(id), Cause::Server { reason, too_large: false });
}

#[test]
fn each_server_is_given_its_own_addresses() {
    for (product, expected) in [
        ("RabbitMQ", ["/topic/home.kitchen", "/topic/home.*.#"]),
        ("apache-activemq-artemis", ["home.kitchen", "home.*.#"]),
    ] {
        let mut script = Script::new();
        script.open.product = Some(product);
        let config = SessionConfig {
            subscriptions: vec![Subscription { filter: "home/+/#".into(), qos: Qos::BestEffort }],
            ..publisher("addresses", "home/kitchen", Qos::BestEffort)
        };
        script.connect_client(config, Until::Begin);
        let begin = script.begin;
        script.send_with(|out| begin.encode(CHANNEL, out));
        let target = script.expect("attach", |performative| match performative {
            Performative::Attach(attach) => Some(attach.target?.address?.to_owned()),
            _ => None,
        });
        script.answer_sender("s0", 0);
        let source = script.expect("attach", |performative| match performative {
            Performative::Attach(attach) => Some(attach.source?.address?.to_owned()),
            _ => None,
        });
        assert_eq!([target, source], expected);
    }
}

#[test]
fn a_topic_without_an_address_is_never_sent() {
    let mut script = Script::new();
    let mut config = publisher("dots", "a.b", Qos::BestEffort);
    let id = script.peer.clients.add_session(config.clone());
    script.peer.clients.connect(id, &mut script.peer.record);
    let cause = script.end_of(id);
    assert!(matches!(&cause, Cause::Dropped(words) if words.contains("`a.b` has `.` in it")), "{cause:?}");
    config = subscriber("dots", "a//b", Qos::BestEffort);
    let id = script.peer.clients.add_session(config);
    script.peer.clients.connect(id, &mut script.peer.record);
    assert!(matches!(script.end_of(id), Cause::Dropped(words) if words.contains("empty level")));
}

#[test]
fn our_announced_capabilities_are_what_we_do() {
    let mut script = Script::with_keep_alive(30);
    script.connect_client(session("ourselves"), Until::LogIn);
    script.send_bytes(&outcome(0));
    script.expect_header(ProtocolHeader::AMQP);
    let open = script.expect("open", |performative| match performative {
        Performative::Open(Open { container_id, max_frame_bytes, channel_max, idle_time_out_ms, .. }) => {
            Some((container_id.to_owned(), max_frame_bytes, channel_max, idle_time_out_ms))
        }
        _ => None,
    });
    assert_eq!(open, ("ourselves".to_owned(), 131_072, 0, Some(30_000)));
}
