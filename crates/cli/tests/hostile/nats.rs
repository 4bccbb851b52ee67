//! NATS servers that lie.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use pubmark_testing::{assert_count, assert_count_eq};

use crate::case::Ends::{Counted, Invalid, NeverValid, NoGood, NobodyIn};
use crate::case::{Table, books, case, judge, sound, status_of};
use crate::server::Step::{Close, Echo, Over, Reset, Slowly, Wait};
use crate::server::{Server, Step, hear, say};

const TABLE: Table =
    Table { scheme: "nats", arguments: &["fan-in", "--qos", "0", "--set", "publishers=2", "--set", "rate=20/s"] };
/// The same load, with the subscriber in another process than the publishers.
const ISOLATED: Table = Table {
    scheme: "nats",
    arguments: &["fan-in", "--qos", "0", "--set", "publishers=2", "--set", "rate=20/s", "--isolate", "all"],
};
/// The same load on two nodes: the subscriber is in another process than one publisher.
const ON_NODES: Table = Table {
    scheme: "nats",
    arguments: &["fan-in", "--qos", "0", "--set", "publishers=2", "--set", "rate=20/s", "--local-nodes", "2"],
};
/// Two devices, and one that reacts to each message of theirs.
const REACTING: Table =
    Table { scheme: "nats", arguments: &[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/reacting.yaml")] };
/// Two devices whose messages are signed.
const SIGNED: Table =
    Table { scheme: "nats", arguments: &[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/signed.yaml")] };
const REQUESTS: Table = Table {
    scheme: "nats",
    arguments: &["request-reply", "--set", "requesters=2", "--set", "rate=20/s", "--set", "timeout=300ms"],
};

const INFO: &str = "INFO {\"server_id\":\"x\",\"max_payload\":1048576,\"headers\":true}\r\n";

/// An accepted log-in, and the following steps.
fn opened(steps: Vec<Step>) -> Vec<Step> {
    [vec![say(INFO), hear("PING\r\n"), say("PONG\r\n")], steps].concat()
}

#[test]
fn servers_that_lie_before_the_log_in() {
    let info = |json: &str| vec![say(format!("INFO {json}\r\n"))];
    let after_info = |words: &str| vec![say(INFO), hear("PING\r\n"), say(words)];
    TABLE.run_all(&[
        case("says nothing", NobodyIn, vec![]),
        case("closes at once", NobodyIn, vec![Close]),
        case("resets at once", NobodyIn, vec![Reset]),
        case("speaks HTTP", NobodyIn, vec![say("HTTP/1.1 400 Bad Request\r\n\r\n")]),
        case("speaks TLS", NobodyIn, vec![say(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")]),
        case("speaks MQTT", NobodyIn, vec![say(b"\x20\x02\x00\x00")]),
        case("no JSON", NobodyIn, info("nothing")),
        case("JSON without limits", NobodyIn, info("{}")),
        case("deep JSON", NobodyIn, info(&"[".repeat(60_000))),
        case("a negative limit", NobodyIn, info("{\"max_payload\":-1}")),
        case("an enormous limit", NobodyIn, info("{\"max_payload\":99999999999999999999}")),
        case("a line without end", NobodyIn, vec![say("INFO "), Over(4_096, vec![b'x'; 65_536])]),
        case("INFO byte by byte", NobodyIn, vec![Slowly(INFO.as_bytes().to_vec())]),
        case("INFO for ever", NobodyIn, vec![Over(1_000_000, INFO.as_bytes().to_vec())]),
        case("demands TLS", NobodyIn, info("{\"max_payload\":1,\"tls_required\":true}")),
        case("refuses the log-in", NobodyIn, after_info("-ERR 'Authorization Violation'\r\n")),
        case("is full", NobodyIn, after_info("-ERR 'maximum connections exceeded'\r\n")),
        case("an error without words", NobodyIn, after_info("-ERR\r\n")),
        case("an error of 60 KB", NobodyIn, after_info(&format!("-ERR '{}'\r\n", "e".repeat(60_000)))),
        case("an error that is no text", NobodyIn, vec![say(INFO), hear("PING\r\n"), say(b"-ERR '\xff\xfe'\r\n")]),
        case("errors for ever", NobodyIn, vec![say(INFO), Over(1_000_000, b"-ERR 'no'\r\n".to_vec())]),
        case("a message first", NobodyIn, after_info("MSG a 1 0\r\n\r\n")),
        case("PONG before INFO", NobodyIn, vec![say("PONG\r\n")]),
        case("pings for ever and no PONG", NobodyIn, vec![say(INFO), Over(1_000_000, b"PING\r\n".to_vec())]),
        case("closes after the log-in", NeverValid, opened(vec![Close])),
    ]);
}

#[test]
fn servers_that_lie_after_the_log_in() {
    let err = "-ERR 'Permissions Violation for Subscription to \"fan-in/0-0\"'\r\n";
    let say_all = |words: &[u8]| opened(vec![say(words)]);
    TABLE.run_all(&[
        case("answers nothing more", NeverValid, opened(vec![])),
        case("takes all and delivers nothing", Counted, opened(vec![Echo(b"PING\r\n".to_vec(), b"PONG\r\n".to_vec())])),
        case("message of an unknown subscription", NeverValid, say_all(b"MSG a 99 3\r\nabc\r\n")),
        case("message of a negative size", NeverValid, say_all(b"MSG a 1 -3\r\nabc\r\n")),
        case("message larger than taken", NeverValid, say_all(b"MSG a 1 999999999\r\n")),
        case("message of a size that overflows", NeverValid, say_all(b"MSG a 1 99999999999999999999\r\n")),
        case("payload without its end", NeverValid, say_all(b"MSG a 1 3\r\nabcde")),
        case("headers longer than the message", NeverValid, say_all(b"HMSG a 1 9 3\r\nabc\r\n")),
        case("a subject that is no text", NeverValid, say_all(b"MSG \xff\xfe 1 3\r\nabc\r\n")),
        case("bytes that are nothing", NeverValid, say_all(&[0; 10_000])),
        case("half a message and silence", NeverValid, say_all(b"MSG a 1 3\r\na")),
        case("unknown word", NeverValid, say_all(b"FROBNICATE\r\n")),
        case("slow consumer", NeverValid, say_all(b"-ERR 'Slow Consumer'\r\n")),
        case("stale connection", NeverValid, say_all(b"-ERR 'Stale Connection'\r\n")),
        case(
            "refuses a subscription a million times",
            NeverValid,
            opened(vec![Over(200_000, err.as_bytes().to_vec())]),
        ),
        case("pings for ever", NeverValid, opened(vec![Over(300_000, b"PING\r\n".to_vec())])),
        // A PONG that comes behind the PING after a subscription says that it is there: of a flood some may, before the others end.
        case("PONGs for ever", NoGood, opened(vec![Over(300_000, b"PONG\r\n".to_vec())])),
        case("INFO for ever", NeverValid, opened(vec![Over(20_000, INFO.as_bytes().to_vec())])),
        case(
            "strangers' messages for ever",
            Counted,
            opened(vec![
                Wait(50),
                say("PONG\r\n"),
                Over(100_000, b"MSG a 1 16\r\n0123456789abcdef\r\n".to_vec()),
                Echo(b"PING\r\n".to_vec(), b"PONG\r\n".to_vec()),
            ]),
        ),
        case(
            "takes less and less",
            Counted,
            opened(vec![say("PONG\r\nINFO {\"max_payload\":1}\r\n"), Echo(b"PING\r\n".to_vec(), b"PONG\r\n".to_vec())]),
        ),
        case("closes in the middle", Counted, opened(vec![say("PONG\r\n"), Wait(600), Close])),
        case("resets in the middle", Counted, opened(vec![say("PONG\r\n"), Wait(600), Reset])),
    ]);
}

/// Lies about messages of an otherwise honest server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// Reports for each request, and for neighbouring correlations, that there is no responder, again and again.
    Unserved,
    /// Reports that for requests that no client sent.
    ForgedUnserved,
    /// Delivers a hundred copies.
    Copies,
    /// Delivers half of the payload.
    Cut,
    /// Changes a bit of the last byte.
    Flip,
    /// Delivers to the wrong subscription.
    Elsewhere,
    /// Delivers messages with sequence numbers that no publisher used, in addition to the real ones.
    Sequences,
    /// The same, with due times a year later than those of the real ones.
    SequencesOfAnotherYear,
    /// Changes the due time by a year.
    Due,
    /// Moves the due time by 1 ms, so that latencies are shorter.
    DueLater,
}

type Subscribers = Arc<Mutex<HashMap<usize, (TcpStream, Vec<(String, String)>)>>>;

/// A server that carries messages, and lies about them.
fn carrier(lie: Lie) -> Server {
    let subscribers: Subscribers = Arc::default();
    let numbers = Arc::new(Mutex::new(0));
    Server::start(move |stream| {
        let number = {
            let mut number = numbers.lock().unwrap();
            *number += 1;
            *number
        };
        subscribers.lock().unwrap().insert(number, (stream.try_clone()?, vec![]));
        let served = serve(stream, number, &subscribers, lie);
        subscribers.lock().unwrap().remove(&number);
        served
    })
}

fn serve(stream: TcpStream, number: usize, subscribers: &Subscribers, lie: Lie) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    (&stream).write_all(INFO.as_bytes())?;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["PING"] => (&stream).write_all(b"PONG\r\n")?,
            ["SUB", filter, .., sid] => {
                let mut all = subscribers.lock().unwrap();
                all.get_mut(&number).unwrap().1.push((filter.to_owned(), sid.to_owned()));
            }
            ["PUB", subject, .., size] => {
                let reply = (words.len() == 4).then(|| words[2]);
                let mut payload = vec![0; size.parse::<usize>().unwrap() + 2];
                reader.read_exact(&mut payload)?;
                payload.truncate(payload.len() - 2);
                carry(subject, reply, &payload, &stream, subscribers, lie)?;
            }
            _ => {}
        }
    }
}

fn carry(
    subject: &str,
    reply: Option<&str>,
    payload: &[u8],
    back: &TcpStream,
    subscribers: &Subscribers,
    lie: Lie,
) -> std::io::Result<()> {
    if let (Some(reply), Lie::Unserved | Lie::ForgedUnserved) = (reply, lie) {
        let (inbox, mark) = reply.rsplit_once('.').unwrap();
        let (publication, sequence) = mark.split_once('-').unwrap();
        let first: u32 = if lie == Lie::Unserved { 1 } else { 4_000_000_000 };
        let status = "NATS/1.0 503\r\n\r\n";
        let answers = (first..first + 300).flat_map(|other| {
            [mark.to_owned(), format!("{publication}-{other}"), format!("7-{sequence}"), format!("65535-{sequence}")]
        });
        let all: String = answers
            .map(|mark| format!("HMSG {inbox}.{mark} 1 {} {}\r\n{status}\r\n", status.len(), status.len()))
            .collect();
        let mut back = back;
        return back.write_all(all.as_bytes());
    }
    for (stream, filters) in subscribers.lock().unwrap().values_mut() {
        for (filter, sid) in filters.iter() {
            if matches(filter, subject) {
                for copy in copies(lie, payload) {
                    let sid = if lie == Lie::Elsewhere { "77" } else { sid };
                    let reply = reply.map(|reply| format!("{reply} ")).unwrap_or_default();
                    let mut out = format!("MSG {subject} {sid} {reply}{}\r\n", copy.len()).into_bytes();
                    out.extend_from_slice(&copy);
                    out.extend_from_slice(b"\r\n");
                    // A subscriber that has disconnected does not count.
                    let _ = stream.write_all(&out);
                }
            }
        }
    }
    Ok(())
}

fn matches(filter: &str, subject: &str) -> bool {
    let (mut filters, mut words) = (filter.split('.'), subject.split('.'));
    loop {
        match (filters.next(), words.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some(filter), Some(word)) if filter == "*" || filter == word => {}
            _ => return false,
        }
    }
}

/// The delivered copies of a payload. The full header has the sequence number from byte 8, the due time from byte 12.
fn copies(lie: Lie, payload: &[u8]) -> Vec<Vec<u8>> {
    let changed = |at: usize, bytes: &[u8]| {
        let mut copy = payload.to_vec();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        copy
    };
    match lie {
        Lie::Copies => vec![payload.to_vec(); 100],
        Lie::Cut => vec![payload[..payload.len() / 2].to_vec()],
        Lie::Flip => vec![changed(payload.len() - 1, &[payload[payload.len() - 1] ^ 1])],
        Lie::Sequences | Lie::SequencesOfAnotherYear => {
            let forged = (0..50u32).map(|more| changed(8, &(1_000_000 + more * 70_000).to_le_bytes()));
            let forged = forged.map(|copy| if lie == Lie::Sequences { copy } else { later(copy, YEAR_NS) });
            forged.chain([payload.to_vec()]).collect()
        }
        Lie::Due => vec![later(payload.to_vec(), YEAR_NS)],
        Lie::DueLater => vec![later(payload.to_vec(), 1_000_000)],
        Lie::None | Lie::Unserved | Lie::ForgedUnserved | Lie::Elsewhere => vec![payload.to_vec()],
    }
}

const YEAR_NS: u64 = 31_536_000_000_000_000;

/// The same payload with a due time that is later by this, ns.
fn later(mut payload: Vec<u8>, by_ns: u64) -> Vec<u8> {
    let due_ns = u64::from_le_bytes(payload[12..20].try_into().unwrap());
    payload[12..20].copy_from_slice(&(due_ns + by_ns).to_le_bytes());
    payload
}

#[test]
fn a_server_that_refuses_requests_which_nobody_made_refuses_no_more_than_there_are() {
    for lie in [Lie::Unserved, Lie::ForgedUnserved] {
        let server = carrier(lie);
        let called = REQUESTS.run(server.address);
        sound(&called).unwrap_or_else(|why| panic!("COUNT: {lie:?}: {why}"));
        let record = called.record().unwrap_or_else(|| panic!("{lie:?}: {}", called.errors));
        books(&record).unwrap_or_else(|why| panic!("COUNT: {lie:?}: {why}"));
        let count = |name: &str| record["delivery"][name].as_u64().unwrap();
        let offered = count("offered");
        assert_count_eq!(offered, 20, "{lie:?}: two requesters, 20 a second, half a second");
        assert_count_eq!(count("refused"), offered, "{lie:?}: {}", record["delivery"]);
        assert_count_eq!((count("sent"), count("expected")), (0, 0), "{lie:?}: {}", record["delivery"]);
    }
}

#[test]
fn a_signed_message_that_is_changed_on_its_way_is_corrupt_and_not_delivered() {
    for (lie, delivered) in [(Lie::None, 20), (Lie::Flip, 0)] {
        let called = SIGNED.run(carrier(lie).address);
        judge(Counted, &called).unwrap_or_else(|why| panic!("COUNT: {lie:?}: {why}"));
        let record = called.record().unwrap();
        let count = |name: &str| record["delivery"][name].as_u64().unwrap();
        let lost = 20 - delivered;
        let found = (count("delivered"), count("corrupt"), count("lost"));
        assert_count_eq!(found, (delivered, lost, lost), "{lie:?}: {}", record["delivery"]);
        let row = &record["cost"]["transform"][0];
        assert_count_eq!(row["failed"].as_u64().unwrap(), lost, "{lie:?}: {row}");
        assert_count_eq!(row["receiving"]["messages"].as_u64().unwrap(), delivered, "{lie:?}: {row}");
        let warnings = record["verdict"]["warnings"].as_array().unwrap();
        assert_eq!(warnings.iter().any(|warning| warning["code"] == "W23"), lost > 0, "{lie:?}: {warnings:?}");
    }
}

#[test]
fn servers_that_carry_messages_and_lie_about_them() {
    for (lie, ends) in [(Lie::Copies, Counted), (Lie::Cut, Counted), (Lie::Elsewhere, Counted), (Lie::Due, Invalid)] {
        let called = TABLE.run(carrier(lie).address);
        judge(ends, &called).unwrap_or_else(|why| panic!("COUNT: {lie:?}: {why}"));
        let record = called.record().unwrap_or_else(|| panic!("COUNT: {lie:?}: {}", called.errors));
        let delivery = record["delivery"].clone();
        // Half a second of load: a due time that was forged is in no bin.
        let bins = record["tables"]["series"].as_array().unwrap();
        assert_count!(bins.len() <= 2, "{lie:?}: {bins:?}");
        let count = |name: &str| delivery[name].as_u64().unwrap_or(0);
        match lie {
            Lie::Copies => assert_count_eq!((count("delivered"), count("duplicated")), (20, 20 * 99), "{delivery}"),
            Lie::Cut => assert_count_eq!((count("delivered"), count("truncated")), (0, 20), "{delivery}"),
            Lie::Elsewhere => assert_count_eq!(count("delivered"), 0, "{delivery}"),
            _ => {
                // They were delivered, but none has a latency.
                assert_count_eq!((count("delivered"), status_of(&record, "V26")), (20, Some("invalid")), "{delivery}");
            }
        }
    }
    // Messages that no publisher sent are foreign; without a lie the same server is correct.
    for (lie, foreign) in [(Lie::Sequences, 1_000), (Lie::SequencesOfAnotherYear, 1_000), (Lie::None, 0)] {
        let called = TABLE.run(carrier(lie).address);
        judge(Counted, &called).unwrap_or_else(|why| panic!("COUNT: {lie:?}: {why}"));
        let record = called.record().unwrap();
        let delivery = &record["delivery"];
        let count = |name: &str| delivery[name].as_u64().unwrap();
        assert_count_eq!(
            (count("delivered"), count("lost"), count("foreign")),
            (20, 0, foreign),
            "{lie:?}: {delivery}"
        );
        assert_count_eq!(count("never_sent"), 0, "{lie:?}: recognised on arrival: {delivery}");
        assert_eq!(status_of(&record, "V26"), Some("valid"), "{lie:?}");
        assert_count_eq!(
            record["latency"]["total"]["upper"]["count"],
            20,
            "{lie:?}: {}",
            record["latency"]["total"]["upper"]
        );
    }
}

#[test]
fn a_device_reacts_to_what_was_sent_and_to_nothing_that_is_forged() {
    for (lie, foreign) in [(Lie::None, 0), (Lie::Sequences, 1_000), (Lie::Copies, 0)] {
        let called = REACTING.run(carrier(lie).address);
        judge(Counted, &called).unwrap_or_else(|why| panic!("COUNT: {lie:?}: {why}"));
        let record = called.record().unwrap();
        let delivery = &record["delivery"];
        let count = |name: &str| delivery[name].as_u64().unwrap();
        let reactions = &delivery["reactions"];
        assert_count_eq!(
            (&reactions["scheduled"], &reactions["triggered"], &reactions["starved"]),
            (&20.into(), &20.into(), &0.into()),
            "{lie:?}: {reactions}"
        );
        assert_count_eq!((count("offered"), count("sent")), (40, 40), "{lie:?}: {delivery}");
        assert_count_eq!((count("delivered"), count("foreign")), (20, foreign), "{lie:?}: {delivery}");
    }
}

#[test]
fn messages_that_nobody_sent_make_a_run_of_several_processes_invalid() {
    for table in [ISOLATED, ON_NODES] {
        for (lie, ends, status) in [
            (Lie::None, Counted, "valid"),
            (Lie::Sequences, Invalid, "invalid"),
            (Lie::SequencesOfAnotherYear, Invalid, "invalid"),
        ] {
            let what = format!("{lie:?}, {:?}", table.arguments);
            let called = table.run(carrier(lie).address);
            judge(ends, &called).unwrap_or_else(|why| panic!("COUNT: {what}: {why}"));
            let record = called.record().unwrap();
            let delivery = &record["delivery"];
            let count = |name: &str| delivery[name].as_u64().unwrap();
            assert_eq!(status_of(&record, "V26"), Some(status), "{what}: {}", record["verdict"]["reasons"]);
            assert_count_eq!(count("never_sent") > 0, lie != Lie::None, "{what}: {delivery}");
            assert_count!(count("never_sent") <= count("foreign"), "{what}: {delivery}");
        }
    }
}

#[test]
fn due_times_that_are_moved_within_the_window_make_a_run_invalid() {
    for table in [TABLE, ISOLATED, ON_NODES] {
        for (lie, ends, status) in [(Lie::None, Counted, "valid"), (Lie::DueLater, Invalid, "invalid")] {
            let what = format!("{lie:?}, {:?}", table.arguments);
            let called = table.run(carrier(lie).address);
            judge(ends, &called).unwrap_or_else(|why| panic!("COUNT: {what}: {why}"));
            let record = called.record().unwrap();
            let delivery = &record["delivery"];
            assert_eq!(status_of(&record, "V26"), Some(status), "{what}: {}", record["verdict"]["reasons"]);
            let audit = &delivery["due_times"];
            let (audited, wrong) = (audit["audited"].as_u64().unwrap(), audit["wrong"].as_u64().unwrap());
            // The last message of each of the two devices may be moved out of the window.
            assert_count!((18..=20).contains(&audited), "{what}: {delivery}");
            assert_count_eq!(wrong, if lie == Lie::None { 0 } else { audited }, "{what}: {delivery}");
        }
    }
}
