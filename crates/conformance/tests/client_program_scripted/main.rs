//! A scripted client program: correct, silent, wrong, or dying. It cannot stop a shard, and nothing of it remains.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubmark_adapters::client_program::{ProgramClients, hello_of};
use pubmark_conformance::peer::{Peer, credentials, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_model::template::BodyDraw;
use pubmark_protocol::client_program::{ClientProgram, Misreport};
use pubmark_protocol::clients::{
    Clients, ConnectionSettings, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig,
};
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::events::{Cause, Reason};
use pubmark_protocol::timing::Timing;
use pubmark_testing::{assert_count, assert_count_eq};

fn words(mode: &str, more: &[&str]) -> Vec<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = here.join("tests/client_program_scripted/program.py");
    let paths = [script, here.join("../../clients")].map(|path| path.display().to_string());
    ["python3"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .chain([mode])
        .chain(more.iter().copied())
        .map(str::to_owned)
        .collect()
}

fn open(words: Vec<String>) -> Result<ProgramClients, OpenError> {
    open_for(words, false)
}

fn open_for(words: Vec<String>, whole_payloads: bool) -> Result<ProgramClients, OpenError> {
    let endpoint = Endpoint {
        shown: "nowhere".to_owned(),
        address: "127.0.0.1:1".parse().unwrap(),
        tls: None,
        credentials: None,
        upgrade: None,
        settings: None,
    };
    let program = Some(Arc::new(ClientProgram { words, protocol: "mqtt5".to_owned(), whole_payloads }));
    ProgramClients::open(ShardConfig {
        endpoints: [endpoint.clone(), endpoint].into(),
        run: pubmark_conformance::peer::RUN,
        wall_ahead_ns: 0,
        body_pool: (0..pubmark_conformance::recorder::POOL_BYTES).map(|byte| byte as u8).collect(),
        connections: ConnectionSettings { program, ..ConnectionSettings::default() },
        ..ShardConfig::default()
    })
}

fn peer(mode: &str) -> Peer<ProgramClients> {
    Peer::of_clients(open(words(mode, &[])).unwrap())
}

/// Sends one message at QoS 1 through a program; returns the record after its arrival and acknowledgement.
fn one_message(mode: &str) -> Peer<ProgramClients> {
    let mut peer = peer(mode);
    peer.join(subscriber("in", "topic", Qos::AtLeastOnce));
    let sender = peer.join(publisher("out", "topic", Qos::AtLeastOnce));
    peer.send(sender, 100);
    peer.wait("arrived", |record| record.arrived.len() == 1 && record.acknowledged() == 1);
    peer.linger(300);
    peer
}

#[test]
fn an_honest_program_is_believed() {
    let peer = one_message("honest");
    assert_eq!(peer.record.misreports, []);
    assert_count_eq!((peer.record.written(), peer.record.arrived.len()), (1, 1));
    let arrived = &peer.record.arrived[0];
    assert!(arrived.intact && arrived.empty_at_ns.is_none() && arrived.kernel_ns.is_none());
    let Some(Event::Written(_, _, start_ns, written_ns)) =
        peer.record.events.iter().find(|event| matches!(event, Event::Written(..)))
    else {
        panic!("it was written");
    };
    // The stamps are those of the program: they precede the read by pubmark.
    assert!(start_ns < written_ns && *written_ns == arrived.at_ns, "{start_ns} {written_ns} {}", arrived.at_ns);
    assert!(peer.record.round_trips_ns.len() >= 2, "{:?}", peer.record.round_trips_ns);
    assert!(peer.record.round_trips_ns.iter().all(|took_ns| *took_ns > 0));
}

/// It stamps the message, sleeps for 50 ms, and reports the delivery then.
#[test]
fn without_stamps_the_time_of_reading_counts() {
    let delivered = |mode: &str| {
        let peer = one_message(mode);
        assert_eq!(peer.record.misreports, [], "{mode}");
        let written = peer.record.all(|event| match event {
            Event::Written(.., written_ns) => Some(*written_ns),
            _ => None,
        });
        (written[0], peer.record.arrived[0].clone())
    };
    let (written_ns, stamped) = delivered("delivers-late");
    assert_eq!(stamped.at_ns, written_ns, "the stamp of both");
    let (_, unstamped) = delivered("delivers-late-without-stamp");
    let latency_ns = unstamped.at_ns - unstamped.header.due_ns;
    assert!(latency_ns >= 50_000_000, "read {latency_ns} ns after it was due, and reported 50 ms after it came");
    let (written_ns, neither) = delivered("no-stamps");
    assert!(neither.at_ns >= written_ns && written_ns > neither.header.due_ns);
}

/// Due long before it is submitted, and reported as delivered in between: with a full header and with a compact one.
#[test]
fn no_message_arrives_before_it_was_handed_over() {
    for payload_bytes in [100, 16] {
        let mut peer = peer("delivers-before-write");
        peer.join(subscriber("in", "topic", Qos::BestEffort));
        let sender = peer.join(publisher("out", "topic", Qos::BestEffort));
        let before_ns = pubmark_protocol::clock::monotonic_ns();
        let outgoing = Outgoing {
            publication: 0,
            sequence: 1,
            timing: Timing::on_time(before_ns - 200_000_000),
            root: None,
            draw: BodyDraw::default(),
            plain_body_bytes: 0,
            payload_bytes,
        };
        assert_eq!(Clients::send(&mut *peer.clients, sender, outgoing), SendOutcome::Accepted);
        peer.flush(sender);
        peer.wait("arrived", |record| record.arrived.len() == 1);
        assert_eq!(peer.record.misreports, [Misreport::StampBeforeDue], "{payload_bytes} B");
        let arrived = &peer.record.arrived[0];
        assert!(arrived.at_ns > before_ns, "{payload_bytes} B: the time of reading counts");
    }
}

#[test]
fn a_lie_is_counted_by_its_name_and_changes_nothing() {
    let named = [
        Misreport::WrittenTwice,
        Misreport::UnknownMessage,
        Misreport::UnknownClient,
        Misreport::UnknownConnection,
        Misreport::UnknownSubscription,
        Misreport::OutOfTurn,
        Misreport::UnknownPing,
        Misreport::AcknowledgedTwice,
    ];
    for lie in named {
        let peer = one_message(lie.name());
        assert_eq!(peer.record.misreports, [lie], "{}", lie.name());
        assert_count_eq!((peer.record.written(), peer.record.acknowledged(), peer.record.arrived.len()), (1, 1, 1));
        let closed = peer.record.count(|event| matches!(event, Event::Closed(..)));
        assert_count_eq!(closed, 0);
    }
}

/// A subscriber with a password and a publisher whose message makes the program report a revoked subscription; the subscriber, and the
/// outcomes of its subscription.
fn revoked(mode: &str) -> (Peer<ProgramClients>, SessionId, Vec<Result<Qos, Reason>>) {
    let mut peer = peer(mode);
    let config = subscriber("in", "topic", Qos::AtLeastOnce);
    let listener = peer.join(SessionConfig { credentials: credentials("ann", "sesame"), ..config });
    let sender = peer.join(publisher("out", "topic", Qos::AtLeastOnce));
    peer.send(sender, 100);
    peer.wait("acknowledged", |record| record.acknowledged() == 1);
    peer.linger(300);
    let outcomes = peer.record.all(|event| match event {
        Event::Subscribed(of, 0, granted) if *of == listener => Some(granted.clone()),
        _ => None,
    });
    (peer, listener, outcomes)
}

#[test]
fn a_subscription_that_the_system_revokes_is_reported_with_its_reason_and_the_connection_stays() {
    let (peer, listener, outcomes) = revoked("revokes");
    let [Ok(Qos::AtLeastOnce), Err(reason)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(reason.code, Some(135));
    assert!(reason.text.starts_with("no …") && reason.text.len() <= 256, "no password, and not all of it: {reason}");
    assert!(!reason.text.contains(char::is_control), "{reason}");
    assert_eq!(peer.record.causes(listener), []);
    assert_eq!(peer.record.misreports, []);
}

#[test]
fn a_revoked_subscription_that_cannot_be_one_is_counted_and_changes_nothing() {
    for (mode, lie) in [
        ("revokes-of-unknown-client", Misreport::UnknownClient),
        ("revokes-of-unknown-connection", Misreport::UnknownConnection),
        ("revokes-unknown-filter", Misreport::UnknownSubscription),
        ("revokes-filter-of-another", Misreport::UnknownSubscription),
    ] {
        let (peer, listener, outcomes) = revoked(mode);
        assert_eq!(peer.record.misreports, [lie], "{mode}");
        assert_eq!((outcomes, peer.record.causes(listener)), (vec![Ok(Qos::AtLeastOnce)], vec![]), "{mode}");
    }
    let (peer, _, outcomes) = revoked("revokes-refused");
    assert_eq!(peer.record.misreports, [Misreport::OutOfTurn], "what was refused cannot be revoked");
    assert!(matches!(&outcomes[..], [Err(_)]), "{outcomes:?}");
    for mode in ["revokes-twice", "revokes-and-grants"] {
        let (peer, _, outcomes) = revoked(mode);
        assert_eq!(peer.record.misreports, [Misreport::OutOfTurn], "{mode}");
        assert!(matches!(&outcomes[..], [Ok(_), Err(_)]), "{mode}: {outcomes:?}");
    }
}

#[test]
fn a_message_of_a_number_that_was_never_given_is_unknown() {
    let peer = one_message("sequence-zero");
    assert_eq!(peer.record.misreports, [Misreport::UnknownMessage]);
    assert_count_eq!((peer.record.written(), peer.record.acknowledged()), (1, 1));
}

#[test]
fn messages_that_are_never_called_written_are_forgotten_and_counted() {
    let mut peer = peer("never-writes");
    let sender = peer.join(publisher("out", "topic", Qos::AtLeastOnce));
    for _ in 0..1_005 {
        peer.send(sender, 16);
    }
    peer.wait("acknowledged", |record| record.acknowledged() == 1_005);
    assert_eq!(peer.record.misreports, [Misreport::NeverWritten; 5]);
    assert_count_eq!(peer.record.written(), 1_005, "what was acknowledged was written");
}

#[test]
fn a_stamp_that_cannot_be_true_is_not_used() {
    for lie in [Misreport::StampInFuture, Misreport::StampBeforeDue] {
        let before_ns = pubmark_protocol::clock::monotonic_ns();
        let peer = one_message(lie.name());
        let after_ns = pubmark_protocol::clock::monotonic_ns();
        assert_eq!(peer.record.misreports, [lie, lie], "one of the write and one of the delivery");
        let arrived = &peer.record.arrived[0];
        assert!((before_ns..after_ns).contains(&arrived.at_ns) && arrived.at_ns > arrived.header.due_ns);
    }
}

#[test]
fn a_header_can_stand_for_its_payload() {
    let peer = one_message("headers-only");
    assert_count_eq!(peer.record.arrived[0].payload_bytes, 100);
    assert_eq!(peer.record.misreports, []);
}

#[test]
fn a_header_alone_is_no_delivery_where_the_run_looks_into_payloads() {
    for (mode, reported) in [("headers-only", &[Misreport::BodyIncomplete; 3][..]), ("honest", &[])] {
        let mut peer = Peer::of_clients(open_for(words(mode, &[]), true).unwrap());
        peer.join(subscriber("in", "topic", Qos::AtLeastOnce));
        let sender = peer.join(publisher("out", "topic", Qos::AtLeastOnce));
        (0..3).for_each(|_| {
            peer.send(sender, 100);
        });
        peer.wait("reported", |record| record.misreports.len() + record.arrived.len() == 3);
        assert_eq!(peer.record.misreports, reported, "{mode}");
        assert_count_eq!((peer.record.acknowledged(), peer.record.arrived.len()), (3, 3 - reported.len()));
    }
}

#[test]
fn a_message_that_the_library_refuses_on_an_open_connection_is_declined() {
    let mut peer = peer("abandons");
    let sender = peer.join(publisher("out", "topic", Qos::AtLeastOnce));
    peer.send(sender, 100);
    peer.wait("declined", |record| record.count(|event| matches!(event, Event::Declined(..))) == 1);
    assert_count_eq!((peer.record.written(), peer.record.unanswered()), (0, 0));
    assert_count_eq!(peer.record.count(|event| matches!(event, Event::Abandoned(..))), 0);
}

/// Sends one message to a program that ends because of it; returns why its clients were closed, and the outcome of
/// later messages.
fn cause_of(mode: &str) -> String {
    let mut peer = peer(mode);
    let sender = peer.join(publisher("out", "topic", Qos::AtLeastOnce));
    peer.send(sender, 100);
    peer.wait("closed", |record| !record.causes(sender).is_empty());
    assert_count_eq!(peer.record.unanswered(), 1, "nobody knows what became of the message");
    let later = peer.clients.add_session(session("later"));
    Clients::connect(&mut *peer.clients, later, &mut peer.record);
    let [Cause::Dropped(why)] = &peer.record.causes(sender)[..] else { panic!("{:?}", peer.record.causes(sender)) };
    assert_eq!(peer.record.causes(later), [Cause::Unreachable(why.clone())], "it is not started again");
    why.clone()
}

#[test]
fn a_program_that_dies_closes_all_its_clients_with_a_reason() {
    let why = cause_of("dies");
    assert_eq!(why, "the client program `python3` ended with exit status: 3; it printed: no more messages, please");
}

#[test]
fn a_program_that_breaks_the_protocol_is_ended() {
    let why = cause_of("breaks-off");
    assert_eq!(why, "the client program `python3` broke the client protocol: a frame of kind 0x8c, which there is not");
    let why = cause_of("revokes-with-unknown-code");
    assert_eq!(why, "the client program `python3` broke the client protocol: a frame of kind 0x8b with 3 for `code`");
    let why = cause_of("too-long");
    assert!(why.contains("broke the client protocol: a frame of 2147483647 bytes, where"), "{why}");
}

#[test]
fn a_program_that_stalls_is_ended_after_ten_seconds() {
    let began = Instant::now();
    let why = cause_of("stalls");
    assert!(why.contains("stalled: it sent no response for 10 s"), "{why}");
    assert!(began.elapsed() < Duration::from_secs(18), "{:?}", began.elapsed());
}

/// The ping waits behind the connects for longer than ten seconds, after which silence counts as a stall.
#[test]
fn a_program_that_is_slow_and_works_is_not_ended() {
    let mut peer = peer("slow-connects");
    let began = Instant::now();
    let sessions: Vec<_> =
        (0..30).map(|number| peer.clients.add_session(session(&format!("client-{number}")))).collect();
    for one in &sessions {
        Clients::connect(&mut *peer.clients, *one, &mut peer.record);
    }
    while peer.record.count(|event| matches!(event, Event::Connected(..) | Event::Closed(..))) < sessions.len() {
        assert!(began.elapsed() < Duration::from_secs(60));
        peer.linger(50);
    }
    assert!(began.elapsed() > Duration::from_secs(11), "it was not slow enough for this test: {:?}", began.elapsed());
    assert!(sessions.iter().all(|one| peer.record.causes(*one).is_empty()), "{:?}", peer.record.causes(sessions[29]));
}

#[test]
fn what_a_program_prints_or_gives_as_a_reason_holds_no_password_and_no_control_character() {
    for (mode, expected) in [
        (
            "prints-password",
            Cause::Dropped(
                "the client program `python3` ended with exit status: 3; it printed: [31mno use: …".to_owned(),
            ),
        ),
        ("says-password", Cause::Refused(Reason { code: Some(4), text: "no use: …".into() })),
    ] {
        let mut peer = peer(mode);
        let config = publisher("out", "topic", Qos::AtLeastOnce);
        let sender = peer.join(SessionConfig { credentials: credentials("ann", "open\tsesame"), ..config });
        peer.send(sender, 100);
        peer.wait("closed", |record| !record.causes(sender).is_empty());
        assert_eq!(peer.record.causes(sender), [expected]);
    }
}

#[test]
fn a_program_without_a_hello_is_given_up() {
    let error = hello_of(&words("no-hello", &[])).unwrap_err();
    assert!(error.contains("it sent no hello within 10 s"), "{error}");
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_for_end(pid: i32) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_of_a_program_remains() {
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join("child");
    let clients = open(words("has-a-child", &[file.to_str().unwrap()])).unwrap();
    let child: i32 = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    assert!(is_alive(child));
    drop(clients);
    wait_for_end(child);
    // A program that does not exit after the goodbye.
    let began = Instant::now();
    drop(open(words("stays", &[])).unwrap());
    let took = began.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(8)).contains(&took), "{took:?}");
}

#[test]
fn no_more_is_handed_over_than_the_credit() {
    // It stalls at the first message, and the socket accepts some more: messages beyond that stay in the schedule.
    let mut peer = peer("stalls");
    let sender = peer.join(publisher("out", "topic", Qos::BestEffort));
    let mut accepted = 0;
    while peer.offer(sender, 1_000) == SendOutcome::Accepted {
        accepted += 1;
        peer.flush(sender);
        assert!(accepted <= 1_000);
    }
    assert_count!(accepted == 1_000, "{accepted}");
    assert_count_eq!(peer.record.written(), 0);
}

#[test]
fn the_credit_of_a_session_that_leaves_is_reported_to_those_that_wait_for_it_at_once() {
    let mut peer = peer("stalls");
    let leaving = peer.join(publisher("leaving", "topic", Qos::BestEffort));
    let waiting = peer.join(publisher("waiting", "topic", Qos::BestEffort));
    while peer.offer(leaving, 16) == SendOutcome::Accepted {
        peer.flush(leaving);
    }
    assert_eq!(peer.offer(waiting, 16), SendOutcome::WouldBlock);
    let is_reported = |event: &Event| matches!(event, Event::Writable(session) if *session == waiting);
    assert_count_eq!(peer.record.count(is_reported), 0);
    peer.leave(leaving, Goodbye::Cut);
    assert_count_eq!(peer.record.count(is_reported), 1, "within the call");
}
