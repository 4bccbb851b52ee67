//! Random bytes after an accepted log-in, for every protocol over TCP.

use pubmark_model::random::Stream;

use crate::amqp::{random_new, random_old};
use crate::case::Ends::NeverValid;
use crate::case::{Case, Table, case};
use crate::server::{Step, hear, say};

/// Bytes of which about half are those of the protocol, changed at random.
fn bytes(of: &[u8], seed: u64) -> Vec<u8> {
    let stream = Stream::new(seed, 1);
    let mut out: Vec<u8> = of.iter().copied().cycle().take(400).collect();
    for draw in 0..40 {
        let place = (stream.bits(2 * draw) % out.len() as u64) as usize;
        out[place] = stream.bits(2 * draw + 1) as u8;
    }
    out
}

/// Scheme, options of the run, how the server opens, and what its random bytes are made from.
type Protocol = (&'static str, &'static [&'static str], Vec<Step>, Vec<u8>);

#[test]
fn random_bytes_do_no_more_than_end_the_connection() {
    let rounds = if crate::is_full() { 200 } else { 3 };
    let info = "INFO {\"server_id\":\"x\",\"max_payload\":1048576,\"headers\":true}\r\n";
    let ((old, of_old), (new, of_new)) = (random_old(), random_new());
    let protocols: [Protocol; 5] = [
        ("amqp", &["--protocol", "amqp091", "--qos", "0"], old, of_old),
        ("amqp", &["--protocol", "amqp10", "--qos", "0"], new, of_new),
        (
            "nats",
            &["--qos", "0"],
            vec![say(info), hear("PING\r\n"), say("PONG\r\nPONG\r\n")],
            b"MSG fan-in.0-0 1 16\r\n0123456789abcdef\r\n".to_vec(),
        ),
        (
            "mqtt",
            &["--protocol", "mqtt5", "--qos", "1"],
            vec![hear(b"MQTT"), say(b"\x20\x03\0\0\0")],
            b"\x32\x18\0\x0afan-in/0-0\0\x01\x000123456789\x40\x02\0\x01".to_vec(),
        ),
        (
            "redis",
            &["--qos", "0"],
            vec![hear("HELLO"), say("%1\r\n$5\r\nproto\r\n:3\r\n")],
            b">4\r\n$8\r\npmessage\r\n$8\r\nfan-in/*\r\n$10\r\nfan-in/0-0\r\n$3\r\nabc\r\n".to_vec(),
        ),
    ];
    // Most of them wait.
    std::thread::scope(|scope| {
        for (scheme, options, opening, of) in protocols {
            scope.spawn(move || {
                let arguments = [&["fan-in", "--set", "publishers=2", "--set", "rate=20/s"][..], options].concat();
                // A table lives as long as the test's process.
                let table = Table { scheme, arguments: arguments.leak() };
                let cases: Vec<Case> = (0..rounds)
                    .map(|seed| {
                        let name = format!("random bytes {seed}").leak();
                        case(name, NeverValid, [opening.clone(), vec![say(bytes(&of, seed))]].concat())
                    })
                    .collect();
                table.run_all(&cases);
            });
        }
    });
}
