//! Encrypted connections: for other machines, with a certificate of the user, and handshakes that never end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::server::{Server, folder};

/// Name by which the server is called in these tests.
const NAME: &str = "lab.example";
/// Connections that a server has at once (`listener::MOST_CONNECTIONS`).
const MOST_CONNECTIONS: usize = 256;
/// Files that a server has open besides connections, at most.
const OTHER_FILES: usize = 40;
/// Number of handshakes that are begun and not finished.
const STALLED: usize = 400;
/// The head of a record of 512 B and the beginning of a ClientHello.
const BEGUN: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
/// Longest time until all of them are closed: 5 s each, and those beyond the number after the others.
const CLOSED_LIMIT: Duration = Duration::from_secs(25);

/// Status and body of a request that trusts only this certificate; `None` if there is no encrypted connection.
fn get(server: &Server, certificate: &Path, name: &str, token: Option<&str>) -> Option<(u16, String)> {
    let port = server.port;
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "40", "--write-out", "\n%{http_code}", "--cacert"]).arg(certificate);
    curl.args(["--resolve", &format!("{NAME}:{port}:127.0.0.1")]);
    curl.args(token.iter().flat_map(|token| ["-H".to_owned(), format!("authorization: Bearer {token}")]));
    let done = curl.arg(format!("https://{name}:{port}/runs")).output().expect("curl");
    let text = String::from_utf8(done.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n')?;
    done.status.success().then(|| (status.parse().unwrap(), body.to_owned()))
}

#[test]
fn other_machines_connect_with_a_certificate_of_ones_own_and_the_token() {
    let place = folder();
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let (certificate, key) = (place.path().join("chain.pem"), place.path().join("key.pem"));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let stranger = place.path().join("stranger.pem");
    fs::write(&stranger, other.cert.pem()).unwrap();
    let files = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let server = Server::listen(Ipv4Addr::UNSPECIFIED, place.path(), &[&["--host", NAME][..], &files].concat());
    let (status, body) = get(&server, &certificate, NAME, Some(&server.token)).expect("a connection");
    assert!(status == 200 && body.contains("\"total\""), "{status} {body}");
    assert_eq!(get(&server, &certificate, NAME, None).expect("a connection").0, 401, "encryption alone opens nothing");
    assert_eq!(get(&server, &certificate, NAME, Some("x")).expect("a connection").0, 401);
    assert_eq!(get(&server, &stranger, NAME, Some(&server.token)), None, "another certificate of the same name");
    let mut plain = crate::call::connect(server.port);
    let head = format!("GET /runs HTTP/1.1\r\nhost: {NAME}\r\nauthorization: Bearer {}\r\n\r\n", server.token);
    plain.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A reset is equivalent to an end.
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("200"), "without encryption nothing is answered");
    assert!(!place.path().join("runs/.serve/certificate.pem").exists(), "none was made");
}

#[test]
fn a_certificate_that_was_made_here_is_for_the_names_that_were_given() {
    let place = folder();
    let server = Server::listen(Ipv4Addr::UNSPECIFIED, place.path(), &["--host", NAME, "--tls-self"]);
    let certificate = place.path().join("runs/.serve/certificate.pem");
    assert_eq!(get(&server, &certificate, NAME, Some(&server.token)).expect("a connection").0, 200);
    assert_eq!(get(&server, &certificate, "127.0.0.1", Some(&server.token)).expect("a connection").0, 200);
    let pem = fs::read_to_string(&certificate).unwrap();
    assert!(!pem.contains("PRIVATE"), "the file that clients trust");
}

#[test]
fn handshakes_that_never_end_are_limited_in_time_and_number() {
    let place = folder();
    let server = Server::start(place.path(), &["--tls-self", "--host", NAME]);
    let certificate = place.path().join("runs/.serve/certificate.pem");
    let address = (Ipv4Addr::LOCALHOST, server.port).into();
    let began = Instant::now();
    let open = |_| {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok()?;
        stream.write_all(BEGUN).ok()?;
        Some(stream)
    };
    let mut stalled: Vec<TcpStream> = (0..STALLED).filter_map(open).collect();
    assert!(stalled.len() > MOST_CONNECTIONS, "{} are open", stalled.len());
    let open_files = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    assert!(open_files <= MOST_CONNECTIONS + OTHER_FILES, "{open_files} files are open");
    // Some send a byte from time to time; they are closed nevertheless.
    let (dripping, silent) = stalled.split_at_mut(20);
    std::thread::scope(|scope| {
        let proper = scope.spawn(|| get(&server, &certificate, NAME, Some(&server.token)));
        while !proper.is_finished() {
            dripping.iter_mut().for_each(|stream| drop(stream.write_all(b"\0")));
            std::thread::sleep(Duration::from_millis(200));
        }
        let (status, _) = proper.join().unwrap().expect("a connection, when the first ones are given up");
        assert_eq!(status, 200);
    });
    for stream in silent.iter_mut().chain(dripping) {
        let left = CLOSED_LIMIT.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).unwrap();
        let mut rest = Vec::new();
        let kind = stream.read_to_end(&mut rest).err().map(|error| error.kind());
        assert!(!matches!(kind, Some(std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)), "it still waits");
    }
    assert_eq!(get(&server, &certificate, NAME, Some(&server.token)).expect("a connection").0, 200);
}
