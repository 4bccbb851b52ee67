//! Redis servers that lie.

use crate::case::Ends::{NeverValid, NobodyIn};
use crate::case::{Table, case};
use crate::server::Step::{Close, Over, Reset, Slowly, Wait};
use crate::server::{Step, hear, say};

const TABLE: Table =
    Table { scheme: "redis", arguments: &["fan-in", "--qos", "0", "--set", "publishers=2", "--set", "rate=20/s"] };

const HELLO: &str = "%1\r\n$5\r\nproto\r\n:3\r\n";

fn opened(steps: Vec<Step>) -> Vec<Step> {
    [vec![hear("HELLO"), say(HELLO)], steps].concat()
}

#[test]
fn servers_that_lie() {
    let first = |words: &str| vec![hear("HELLO"), say(words)];
    let then = |words: &str| opened(vec![say(words)]);
    TABLE.run_all(&[
        case("says nothing", NobodyIn, vec![]),
        case("closes at once", NobodyIn, vec![Close]),
        case("resets at once", NobodyIn, vec![Reset]),
        case("speaks HTTP", NobodyIn, vec![say("HTTP/1.1 400 Bad Request\r\n\r\n")]),
        case("speaks TLS", NobodyIn, vec![say(b"\x16\x03\x01\x02\x00")]),
        case("wrong password", NobodyIn, first("-WRONGPASS invalid username-password pair\r\n")),
        case("an old server", NobodyIn, first("-ERR unknown command `HELLO`\r\n")),
        case("loading", NobodyIn, first("-LOADING Redis is loading the dataset in memory\r\n")),
        case("an error of 100 KB", NobodyIn, first(&format!("-ERR {}\r\n", "e".repeat(100_000)))),
        case("a line without end", NobodyIn, vec![hear("HELLO"), say("-ERR "), Over(4_096, vec![b'x'; 65_536])]),
        case("+OK", NobodyIn, first("+OK\r\n")),
        case("a list of a billion", NobodyIn, first("*999999999\r\n")),
        case("a list of lists", NobodyIn, first(&"*1\r\n".repeat(100_000))),
        case("a string of 512 MB announced", NobodyIn, first("$536870912\r\n")),
        case("a string of negative length", NobodyIn, first("$-7\r\n")),
        case("a number that overflows", NobodyIn, first(":99999999999999999999999\r\n")),
        case("a map of an odd number", NobodyIn, first("%1\r\n$5\r\nproto\r\n")),
        case("HELLO byte by byte, then nothing", NeverValid, vec![hear("HELLO"), Slowly(HELLO.as_bytes().to_vec())]),
        case("answers nothing more", NeverValid, opened(vec![])),
        case(
            "refuses every subscription",
            NeverValid,
            opened(vec![hear("SUBSCRIBE"), say("-NOPERM no permissions\r\n")]),
        ),
        case("a push of no kind", NeverValid, then(">1\r\n$4\r\nwhat\r\n")),
        case("an empty push", NeverValid, then(">0\r\n")),
        case("a message without payload", NeverValid, then(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n")),
        case("a message of a billion bytes", NeverValid, then(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1000000000\r\n")),
        case("subscribed to what nobody asked for", NeverValid, then(">3\r\n$9\r\nsubscribe\r\n$1\r\nz\r\n:1\r\n")),
        case("answers without questions", NeverValid, opened(vec![Over(200_000, b":1\r\n".to_vec())])),
        case("errors without questions", NeverValid, opened(vec![Over(200_000, b"-ERR no\r\n".to_vec())])),
        case(
            "pushes for ever",
            NeverValid,
            opened(vec![Over(100_000, b">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$3\r\nabc\r\n".to_vec())]),
        ),
        case("zeros", NeverValid, then(&"\0".repeat(10_000))),
        case("closes in the middle", NeverValid, opened(vec![Wait(600), Close])),
        case("resets in the middle", NeverValid, opened(vec![Wait(600), Reset])),
    ]);
}
