//! Redis Streams.

use std::time::Duration;

use pubmark_adapters::redis_streams::RedisStreamsClients;
use pubmark_conformance::peer::{RUN, publisher, session, subscriber};
use pubmark_conformance::recorder::Event;
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Unread};
use pubmark_protocol::header;
use pubmark_testing::assert_count_eq;

use crate::script::{Harness, Script};

const HELLO: &[u8] = b"%1\r\n$5\r\nproto\r\n:3\r\n";

/// A session after the HELLO response.
fn welcomed(config: SessionConfig) -> (Harness<RedisStreamsClients>, SessionId, Script) {
    let mut harness = Harness::new(false);
    let (id, mut script) = harness.accept(config);
    script.expect(&mut harness.peer, b"\r\n");
    script.send_bytes(HELLO);
    (harness, id, script)
}

/// A subscriber that waits for entries of `pubmark:level`.
fn reading(qos: Qos) -> (Harness<RedisStreamsClients>, SessionId, Script) {
    let (mut harness, id, mut script) = welcomed(subscriber("reads", "level/+", qos));
    let reason = script.expect(&mut harness.peer, b"MKSTREAM\r\n");
    assert!(reason.contains("DESTROY") && reason.contains("pubmark:level"), "{reason}");
    script.send_bytes(b"-ERR The XGROUP subcommand requires the key to exist\r\n+OK\r\n");
    script.expect(&mut harness.peer, b">\r\n");
    harness.peer.wait("subscribed", |record| {
        record.count(|event| matches!(event, Event::Subscribed(_, 0, Ok(granted)) if *granted == qos)) == 1
    });
    (harness, id, script)
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn payload() -> Vec<u8> {
    let mut payload = Vec::new();
    header::write(&mut payload, 24, RUN, 7, 1, 1);
    payload
}

/// An entry with a topic.
fn entry(id: &str, topic: &str) -> Vec<u8> {
    let fields = [bulk(b"t"), bulk(topic.as_bytes()), bulk(b"p"), bulk(&payload())].concat();
    [b"*2\r\n".to_vec(), bulk(id.as_bytes()), b"*4\r\n".to_vec(), fields].concat()
}

fn entries(entries: &[Vec<u8>]) -> Vec<u8> {
    let head = format!("*{}\r\n", entries.len()).into_bytes();
    [b"%1\r\n".to_vec(), bulk(b"pubmark:level"), head, entries.concat()].concat()
}

#[test]
fn entries_are_chosen_by_topic_and_all_are_acknowledged() {
    let (mut harness, id, mut script) = reading(Qos::AtLeastOnce);
    let trimmed = [b"*2\r\n".to_vec(), bulk(b"3-0"), b"*-1\r\n".to_vec()].concat();
    let others = [b"*2\r\n".to_vec(), bulk(b"4-0"), b"*2\r\n".to_vec(), bulk(b"x"), bulk(b"y")].concat();
    let all = [entry("1-0", "level/a"), entry("2-0", "level/a/deeper"), trimmed, others, entry("5-0", "level/b")];
    script.send_bytes(&entries(&all));
    harness.peer.wait("both", |record| record.sequences(id).len() == 2);
    let reason = script.expect(&mut harness.peer, b">\r\n");
    assert!(
        reason.contains("XACK") && ["1-0", "2-0", "3-0", "4-0", "5-0"].iter().all(|id| reason.contains(id)),
        "{reason}"
    );
    // The response to XACK, and a null for a read without entries.
    script.send_bytes(b":5\r\n_\r\n");
    script.expect(&mut harness.peer, b">\r\n");
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn at_best_effort_nothing_is_acknowledged() {
    let (mut harness, id, mut script) = reading(Qos::BestEffort);
    script.send_bytes(&entries(&[entry("1-0", "level/a")]));
    harness.peer.wait("it", |record| record.sequences(id).len() == 1);
    let reason = script.expect(&mut harness.peer, b">\r\n");
    assert!(reason.contains("NOACK") && !reason.contains("XACK"), "{reason}");
}

/// How late a read is in tests of that.
const LATE: Duration = Duration::from_millis(40);

/// The `COUNT` of an XREADGROUP.
fn most_entries(request: &str) -> usize {
    request.split("\r\n").skip_while(|word| *word != "COUNT").nth(2).unwrap().parse().unwrap()
}

/// Requires that a late read counts for what arrived last.
fn demand_late(harness: &Harness<RedisStreamsClients>) {
    let unread = &harness.peer.record.arrived.last().unwrap().unread;
    // The kernel's stamp is of another clock, which is converted.
    assert!(Unread::all_between_ns(unread, 0, u64::MAX) > LATE.as_nanos() as u64 / 2, "{unread:?}");
}

/// What does not fit a response waits at the server until that is read and the next one requested.
#[test]
fn a_late_read_of_a_full_response_counts_for_what_comes_in_the_responses_after_it() {
    let (mut harness, id, mut script) = reading(Qos::BestEffort);
    script.send_bytes(&entries(&[entry("1-0", "level/a")]));
    let most = most_entries(&script.expect(&mut harness.peer, b">\r\n"));
    let full: Vec<Vec<u8>> = (0..most).map(|number| entry(&format!("2-{number}"), "level/a")).collect();
    script.send_bytes(&entries(&full));
    std::thread::sleep(LATE);
    script.expect(&mut harness.peer, b">\r\n");
    for one in ["3-0", "4-0"] {
        script.send_bytes(&entries(&[entry(one, "level/a")]));
        script.expect(&mut harness.peer, b">\r\n");
    }
    assert_count_eq!(harness.peer.record.sequences(id).len(), 1 + most + 2);
    demand_late(&harness);
}

/// The response to XACK has no entries, and neither have the first parts of a response that comes in several.
#[test]
fn a_late_read_counts_after_reads_without_entries() {
    let (mut harness, id, mut script) = reading(Qos::AtLeastOnce);
    script.send_bytes(&entries(&[entry("1-0", "level/a")]));
    let most = most_entries(&script.expect(&mut harness.peer, b">\r\n"));
    let full: Vec<Vec<u8>> = (0..most).map(|number| entry(&format!("2-{number}"), "level/a")).collect();
    script.send_bytes(&[&b":1\r\n"[..], &entries(&full)].concat());
    std::thread::sleep(LATE);
    script.expect(&mut harness.peer, b">\r\n");
    let next = entries(&[entry("3-0", "level/a")]);
    for piece in [format!(":{most}\r\n").as_bytes(), &next[..20], &next[20..40], &next[40..]] {
        script.send_bytes(piece);
        harness.peer.linger(2);
    }
    harness.peer.wait("all", |record| record.sequences(id).len() == 1 + most + 1);
    demand_late(&harness);
}

/// Of each of many streams a response has one entry at most, so that every response may have left others at the server.
#[test]
fn prompt_reads_of_full_responses_count_for_no_more_than_the_time_they_took() {
    const STREAMS: usize = 51;
    const RESPONSES: usize = 1_000;
    let mut config = subscriber("reads", "level/+", Qos::BestEffort);
    let others =
        (1..STREAMS).flat_map(|number| subscriber("", &format!("other{number}/+"), Qos::BestEffort).subscriptions);
    config.subscriptions.extend(others);
    let (mut harness, id, mut script) = welcomed(config);
    let mut requested = String::new();
    while requested.matches("MKSTREAM").count() < STREAMS {
        requested += &script.expect(&mut harness.peer, b"MKSTREAM\r\n");
    }
    script.send_bytes(&b":0\r\n+OK\r\n".repeat(STREAMS));
    assert_count_eq!(most_entries(&script.expect(&mut harness.peer, b">\r\n")), 1);
    for number in 0..RESPONSES {
        script.send_bytes(&entries(&[entry(&format!("{number}-0"), "level/a")]));
        script.expect(&mut harness.peer, b">\r\n");
    }
    assert_count_eq!(harness.peer.record.sequences(id).len(), RESPONSES);
    // Of a message that was written 5 ms before its read: in that time there were a few responses. A busy machine makes some late.
    let last = harness.peer.record.arrived[RESPONSES - 100..].iter();
    let least_ns = last.map(|one| Unread::all_between_ns(&one.unread, one.at_ns - 5_000_000, one.at_ns)).min();
    assert!(least_ns < Some(2_500_000), "{least_ns:?}");
}

#[test]
fn a_server_that_responds_without_end_and_reads_no_request_is_left() {
    let (mut harness, id, mut script) = reading(Qos::AtLeastOnce);
    let cause = script.repeat_unread(&mut harness.peer, id, b"_\r\n");
    assert_eq!(cause, Cause::Dropped("ended by us: it does not read our answers".to_owned()));
}

#[test]
fn entries_arrive_wherever_they_are_cut() {
    let (mut harness, id, mut script) = reading(Qos::BestEffort);
    let bytes = entries(&[entry("1-0", "level/a"), entry("2-0", "level/b")]);
    script.send_split(&mut harness.peer, id, &bytes, 2);
    // What is behind a list that comes in parts belongs to the next packet.
    script.send_split(&mut harness.peer, id, &[&b"+PONG\r\n"[..], &bytes, b"+PONG\r\n"].concat(), 2);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn responses_match_messages_in_order() {
    let (mut harness, id, mut script) = welcomed(publisher("adds", "level/a", Qos::AtLeastOnce));
    harness.peer.wait("connected", |record| !record.connects(id).is_empty());
    for _ in 0..3 {
        harness.peer.send(id, 24);
    }
    script.send_bytes(b"$3\r\n1-0\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n$3\r\n2-0\r\n");
    harness.peer.wait("all", |record| record.count(|event| matches!(event, Event::Acknowledged(..))) == 3);
    let outcomes = harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.is_ok())),
        _ => None,
    });
    assert_eq!(outcomes, [(1, true), (2, false), (3, true)]);
    script.send_bytes(b"$3\r\n3-0\r\n");
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Protocol(words)] if words.contains("answers nothing")), "{causes:?}");
}

#[test]
fn a_refused_message_at_best_effort_is_reported_and_the_connection_stays() {
    let (mut harness, id, mut script) = welcomed(publisher("adds", "level/a", Qos::BestEffort));
    harness.peer.wait("connected", |record| !record.connects(id).is_empty());
    for _ in 0..3 {
        harness.peer.send(id, 24);
    }
    script.send_bytes(b"$3\r\n1-0\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n$3\r\n2-0\r\n");
    harness.peer.wait("refused", |record| !record.refused().is_empty());
    harness.peer.linger(20);
    let outcomes = harness.peer.record.all(|event| match event {
        Event::Acknowledged(_, token, outcome) => Some((token.sequence, outcome.is_ok())),
        _ => None,
    });
    assert_eq!(outcomes, [(2, false)]);
    assert_eq!(harness.peer.record.causes(id), []);
    script.send_bytes(b"-ERR Protocol error: invalid bulk length\r\n");
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
}

/// A read that waits blocks its connection.
#[test]
fn a_session_that_publishes_and_subscribes_reads_on_a_connection_of_its_own() {
    let subscriptions = subscriber("both", "other/+", Qos::AtLeastOnce).subscriptions;
    let config = SessionConfig { persistent: true, subscriptions, ..publisher("both", "level/a", Qos::AtLeastOnce) };
    let (mut harness, id, mut sends) = welcomed(config);
    let group = sends.expect(&mut harness.peer, b"MKSTREAM\r\n");
    assert!(group.contains("pubmark:level") && group.contains("both:sends\r\n") && !group.contains("other"), "{group}");
    sends.send_bytes(b":0\r\n+OK\r\n");
    let mut reads = harness.accept_further();
    reads.expect(&mut harness.peer, b"\r\n");
    reads.send_bytes(HELLO);
    let group = reads.expect(&mut harness.peer, b"MKSTREAM\r\n");
    assert!(group.contains("pubmark:other") && group.contains("\r\nboth\r\n") && !group.contains("level"), "{group}");
    reads.send_bytes(b":0\r\n+OK\r\n");
    assert!(reads.expect(&mut harness.peer, b">\r\n").contains("BLOCK"));
    harness.peer.wait("connected", |record| record.connects(id).len() == 1);
    assert!(!harness.peer.record.connects(id)[0].session_present);
    harness.peer.send(id, 24);
    assert!(sends.expect(&mut harness.peer, b"\r\n").contains("XADD"));
    sends.send_bytes(b"$3\r\n1-0\r\n");
    harness.peer.wait("acknowledged", |record| record.acknowledged() == 1);
    assert_eq!(harness.peer.record.causes(id), []);
}

#[test]
fn a_persistent_session_that_cannot_be_stored_is_refused() {
    let config = SessionConfig { persistent: true, ..publisher("keeps", "level/a", Qos::AtLeastOnce) };
    let (mut harness, id, mut script) = welcomed(config);
    script.expect(&mut harness.peer, b"MKSTREAM\r\n");
    script.send_bytes(b"-NOPERM this user has no permissions to run the 'xgroup|destroy' command\r\n");
    script.send_bytes(b"-NOPERM this user has no permissions to run the 'xgroup|create' command\r\n");
    harness.peer.wait("closed", |record| !record.causes(id).is_empty());
    let causes = harness.peer.record.causes(id);
    assert!(matches!(&causes[..], [Cause::Refused(reason)] if reason.text.starts_with("NOPERM")), "{causes:?}");
}

/// An earlier run may have left groups with these names, and a connection that ended before the responses may have created them.
#[test]
fn a_session_begins_with_new_groups_until_it_was_open_and_finds_them_later() {
    let config = SessionConfig { persistent: true, ..subscriber("keeps", "level/+", Qos::AtLeastOnce) };
    let (mut harness, id, mut script) = welcomed(config);
    let granted = |event: &Event| matches!(event, Event::Subscribed(_, 0, Ok(Qos::AtLeastOnce)));
    for connects in 1..=4 {
        let was_open = connects > 2;
        let request = script.expect(&mut harness.peer, b"MKSTREAM\r\n");
        assert_eq!(request.contains("DESTROY"), !was_open, "{connects}: {request}");
        let (groups, from) = match was_open {
            true => (&b"-BUSYGROUP Consumer Group name already exists\r\n"[..], &b"$1\r\n0\r\n"[..]),
            false => (&b":1\r\n+OK\r\n"[..], &b">\r\n"[..]),
        };
        if connects > 1 {
            script.send_bytes(groups);
            // Of a session that was found, it reads what was read before and not acknowledged.
            script.expect(&mut harness.peer, from);
            harness.peer.wait("connected", |record| record.connects(id).len() == connects - 1);
            assert_eq!(harness.peer.record.connects(id)[connects - 2].session_present, was_open);
            assert_count_eq!(harness.peer.record.count(granted), 1, "after {connects} connects");
        }
        drop(script);
        harness.peer.wait("closed", |record| record.causes(id).len() == connects);
        script = harness.accept_again(id);
        script.expect(&mut harness.peer, b"\r\n");
        script.send_bytes(HELLO);
    }
}

#[test]
fn a_group_that_could_not_be_deleted_is_not_used() {
    let words: &[u8] = b"-NOPERM this user has no permissions to run the 'xgroup|destroy' command\r\n\
        -BUSYGROUP Consumer Group name already exists\r\n";
    for persistent in [false, true] {
        let config = SessionConfig { persistent, ..subscriber("left", "level/+", Qos::AtLeastOnce) };
        let (mut harness, id, mut script) = welcomed(config);
        script.expect(&mut harness.peer, b"MKSTREAM\r\n");
        script.send_bytes(words);
        harness.peer.wait("refused", |record| {
            record.count(|event| matches!(event, Event::Subscribed(of, 0, Err(_)) if *of == id)) == 1
        });
        assert!(!harness.peer.record.connects(id)[0].session_present);
        if !persistent {
            continue;
        }
        drop(script);
        harness.peer.wait("closed", |record| record.causes(id).len() == 1);
        let mut script = harness.accept_again(id);
        script.expect(&mut harness.peer, b"\r\n");
        script.send_bytes(HELLO);
        script.expect(&mut harness.peer, b"MKSTREAM\r\n");
        script.send_bytes(b"-BUSYGROUP Consumer Group name already exists\r\n");
        harness.peer.wait("refused again", |record| {
            record.count(|event| matches!(event, Event::Subscribed(of, 0, Err(_)) if *of == id)) == 2
        });
        assert!(!harness.peer.record.connects(id)[1].session_present);
    }
}

/// Some of a session's groups are gone: it counts as lost, and what the others delivered before is read again.
#[test]
fn a_session_that_lost_a_group_reads_what_the_others_still_have() {
    let mut config = SessionConfig { persistent: true, ..subscriber("keeps", "level/+", Qos::AtLeastOnce) };
    config.subscriptions.extend(subscriber("keeps", "other/+", Qos::AtLeastOnce).subscriptions);
    let (mut harness, id, mut script) = welcomed(config);
    script.expect(&mut harness.peer, b"MKSTREAM\r\n");
    script.send_bytes(b":0\r\n+OK\r\n:0\r\n+OK\r\n");
    script.expect(&mut harness.peer, b">\r\n$1\r\n>\r\n");
    drop(script);
    harness.peer.wait("closed", |record| record.causes(id).len() == 1);
    let mut script = harness.accept_again(id);
    script.expect(&mut harness.peer, b"\r\n");
    script.send_bytes(HELLO);
    let request = script.expect(&mut harness.peer, b"MKSTREAM\r\n");
    assert!(!request.contains("DESTROY"), "{request}");
    script.send_bytes(b"-BUSYGROUP Consumer Group name already exists\r\n+OK\r\n");
    script.expect(&mut harness.peer, b"$1\r\n0\r\n$1\r\n0\r\n");
    assert!(!harness.peer.record.connects(id)[1].session_present);
}

#[test]
fn packets_instead_of_a_welcome_are_distinguished() {
    let end = |words: &[u8]| Harness::<RedisStreamsClients>::new(false).end_after(session("ends"), words);
    assert!(matches!(end(b"-WRONGPASS invalid username-password pair\r\n"), Cause::NotAuthorized(_)));
    assert!(matches!(end(b"-ERR unknown command `HELLO`\r\n"), Cause::Refused(_)));
    for wrong in [&b"+OK\r\n"[..], b":1\r\n", b"HTTP/1.1 400\r\n"] {
        assert!(matches!(end(wrong), Cause::Protocol(_)), "{}", wrong.escape_ascii());
    }
}

#[test]
fn a_list_that_is_no_list_of_entries_ends_the_connection() {
    for wrong in [&b"*1\r\n:1\r\n"[..], b"%1\r\n$5\r\nother\r\n*0\r\n", b"%1\r\n$13\r\npubmark:level\r\n:1\r\n"] {
        let (mut harness, id, mut script) = reading(Qos::AtLeastOnce);
        script.send_bytes(wrong);
        harness.peer.wait("closed", |record| !record.causes(id).is_empty());
        assert!(matches!(harness.peer.record.causes(id)[..], [Cause::Protocol(_)]), "{}", wrong.escape_ascii());
    }
}
