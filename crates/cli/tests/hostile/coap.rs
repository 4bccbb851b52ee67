//! CoAP servers that lie: they use datagrams, so that a server is a function of the datagram that it receives.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pubmark_testing::assert_count;

use crate::case::Ends::NeverValid;
use crate::case::{Ends, Table, judge, nothing_delivered};

const TABLE: Table =
    Table { scheme: "coap", arguments: &["fan-in", "--qos", "1", "--set", "publishers=2", "--set", "rate=20/s"] };

/// The responses of a server to a datagram.
type Answers = fn(&[u8]) -> Vec<Vec<u8>>;

/// A response with this type and code, and with the identifier and token of the request.
fn answer(of: &[u8], kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let length = usize::from(of[0] & 0x0f).min(8).min(of.len().saturating_sub(4));
    let mut out = vec![0x40 | kind << 4 | length as u8, code, of[2], of[3]];
    out.extend_from_slice(&of[4..4 + length]);
    out.extend_from_slice(rest);
    out
}

const ACKNOWLEDGEMENT: u8 = 2;
const RESET: u8 = 3;
const CONTENT: u8 = 0x45;

const CASES: [(&str, Ends, Answers); 21] = [
    ("says nothing", NeverValid, |_| vec![]),
    ("empty datagrams", NeverValid, |_| vec![vec![]]),
    ("one byte", NeverValid, |_| vec![vec![0x60]]),
    ("another version", NeverValid, |of| vec![[&[0xc0][..], &of[1..4]].concat()]),
    ("resets everything", NeverValid, |of| vec![vec![0x70, 0, of[2], of[3]]]),
    ("resets with a code", NeverValid, |of| vec![answer(of, RESET, CONTENT, &[])]),
    ("a token of 15 bytes", NeverValid, |of| vec![vec![0x6f, CONTENT, of[2], of[3], 1, 2, 3]]),
    ("a token that nobody used", NeverValid, |of| vec![vec![0x64, CONTENT, of[2], of[3], 9, 9, 9, 9]]),
    ("an option that is too long", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[0xdd, 0xff])]),
    ("the option that is reserved", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[0xff])]),
    ("not found", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, 0x84, &[])]),
    ("service unavailable", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, 0xa3, &[])]),
    ("a code that is none", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, 0xff, &[])]),
    ("a request in return", NeverValid, |of| vec![answer(of, 0, 0x01, &[])]),
    ("content without an observation", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[0xff, b'x'])]),
    ("the answer a thousand times", NeverValid, |of| {
        vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[0x60, 0xff, b'x']); 1_000]
    }),
    ("acknowledges and says no more", NeverValid, |of| vec![vec![0x60, 0, of[2], of[3]]]),
    ("a first block of blocks without end", NeverValid, |of| {
        vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[0xd1, 0x0a, 0x0e, 0xff, b'x'])]
    }),
    ("a block of number a million", NeverValid, |of| {
        vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[0xd3, 0x0a, 0xff, 0xff, 0xff, 0xff, b'x'])]
    }),
    ("its own words back", NeverValid, |of| vec![of.to_vec()]),
    ("64 KB", NeverValid, |of| vec![answer(of, ACKNOWLEDGEMENT, CONTENT, &[&[0xff][..], &[b'x'; 60_000]].concat())]),
];

/// Responds to datagrams until it is dropped.
struct Server {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn serve(answers: Answers) -> Server {
    let socket = (0..100).find_map(|_| UdpSocket::bind(pubmark_conformance::ports::free()).ok()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let address = socket.local_addr().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&ended);
    std::thread::spawn(move || {
        let mut datagram = [0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut datagram) else { continue };
            if length >= 4 {
                // A client that has ended receives nothing.
                answers(&datagram[..length]).iter().for_each(|said| drop(socket.send_to(said, from)));
            }
        }
    });
    Server { address, ended }
}

#[test]
fn servers_that_lie() {
    let results: Vec<String> = std::thread::scope(|scope| {
        let run = |(name, ends, answers): (&'static str, Ends, Answers)| {
            scope.spawn(move || {
                let server = serve(answers);
                let called = TABLE.run(server.address);
                let judged = judge(ends, &called).and_then(|()| nothing_delivered(&called));
                judged.err().map(|why| format!("{name}: {why}"))
            })
        };
        let threads: Vec<_> = CASES.into_iter().map(run).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_count!(results.is_empty(), "{} of {} cases:\n{}", results.len(), CASES.len(), results.join("\n"));
}

#[test]
fn a_port_without_a_server() {
    let address = pubmark_conformance::ports::free();
    if let Err(why) = judge(NeverValid, &TABLE.run(address)) {
        panic!("COUNT: {why}");
    }
}
