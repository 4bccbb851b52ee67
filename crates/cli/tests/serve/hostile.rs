//! Hostile clients during a run: the run is executed as if they did not exist.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::call::{self, connect, raw};
use crate::server::{Server, folder};

/// A run that goes on until it is cancelled.
const RUN: &str = r#"{"workload": "smart-home", "duration": "300s", "warmup": "1s"}"#;
/// A short one.
const ALONE: &str = r#"{"workload": "smart-home", "duration": "10s", "warmup": "1s"}"#;
/// Requests of a client that does not read, for more bytes than the buffers of the kernel take.
const PIPELINED: usize = 200;

#[test]
fn a_run_goes_on_while_clients_mean_harm() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let id = server.submit(RUN);
    server.wait_for_load(&id);
    threads_that_answer_are_the_last_to_run(&server);
    // Clients of other machines take none of this one's CPU time: what these take comes last.
    // SAFETY: it has no memory to be unsafe with; on Linux the priority is that of this thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    wrong_tokens(&server);
    wrong_paths(&server);
    wrong_heads(&server);
    large_bodies(&server);
    many_connections(&server);
    slow_heads(&server);
    abandoned_work(&server);
    slow_body(&server);
    slow_readers(&server);
    assert_eq!(server.entry(&id)["state"], "running");
    server.delete(&id).of(200);
    let entry = server.wait(&id, &["complete", "failed", "cancelled"]);
    assert_eq!(entry["state"], "cancelled", "{entry}");
    let record = server.get(&format!("/runs/{id}/record")).of(200);
    let messages = &record["delivery"];
    assert_eq!(record["run"]["status"], "interrupted");
    pubmark_testing::assert_count_eq!(messages["lost"], 0, "{messages}");
    pubmark_testing::assert_count_eq!(messages["delivered"], messages["expected"], "{messages}");
    // Other programs of this machine may make a run invalid: then they do so without these clients, too.
    let reasons = reasons(&record);
    if !reasons.is_empty() {
        let alone = server.submit(ALONE);
        server.wait(&alone, &["complete"]);
        let alone = self::reasons(&server.get(&format!("/runs/{alone}/record")).of(200));
        assert!(reasons.iter().all(|code| alone.contains(code)), "{reasons:?}, and alone {alone:?}");
    }
}

#[test]
fn a_client_cannot_make_the_server_read_its_files_or_variables() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    // Whoever opened it for reading would wait there: a request that is answered did not.
    let fifo = place.path().join("secret");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with a zero, and a mode.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let fifo = fifo.display().to_string();
    let connection = |fields: &str| format!(r#"{{"workload": "hello", "connection": {{"user": "u", {fields}}}}}"#);
    let endpoint = |fields: &str| {
        format!(
            "name: t\nworkload: hello\naxes:\n  system:\n  - builtin\n  - {{endpoint: 'mqtts://127.0.0.1', label: a, user: u, {fields}}}\n"
        )
    };
    let mut bodies = vec![format!(r#"{{"workload": "hello", "nodes": {{"credentials": "{fifo}"}}}}"#)];
    for fields in ["password_file", "tls_ca", "tls_cert", "tls_key"] {
        bodies.push(connection(&format!(r#""{fields}": "{fifo}""#)));
    }
    bodies.push(connection(r#""password_env": "HOME""#));
    let refused = |server: &Server, body: &str, right: &str| {
        for path in ["/runs", "/validate", "/dry-run"] {
            let found = server.post(path, body).of(403);
            assert!(found["hint"].as_str().unwrap().contains(&format!("--allow {right}")), "{path} {body}: {found}");
        }
    };
    bodies.iter().for_each(|body| refused(&server, body, "commands"));
    // Nor with an endpoint that is allowed.
    let other = folder();
    let allowing = Server::start(other.path(), &["--allow", "endpoints,systems"]);
    bodies.iter().for_each(|body| refused(&allowing, body, "commands"));
    for fields in [format!("password_file: {fifo}"), "password_env: HOME".to_owned(), format!("tls_ca: {fifo}")] {
        refused(&allowing, &endpoint(&fields), "commands");
    }
    // A search takes no such field.
    let search = format!(r#"{{"capacity": "hello", "user": "u", "password_file": "{fifo}"}}"#);
    let found = server.post("/runs", &search).of(422);
    assert!(found["error"].as_str().unwrap().contains("unknown field `password_file`"), "{found}");
    assert_eq!(server.get("/runs").of(200)["total"], 0, "nothing was taken in");
}

/// Codes of what makes a run invalid.
fn reasons(record: &Value) -> Vec<String> {
    if record["verdict"]["status"] != "invalid" {
        return vec![];
    }
    let reasons = record["verdict"]["reasons"].as_array().unwrap().iter();
    let invalid = reasons.filter(|reason| reason["status"].as_str().is_none_or(|status| status == "invalid"));
    invalid.map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
}

/// Niceness of the threads of a process, by their names (`proc_pid_stat(5)`).
fn niceness(pid: u32) -> Vec<(String, i32)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    let nice = |stat: String| {
        let (head, rest) = stat.rsplit_once(") ").unwrap();
        // The state is field 3, the niceness 19.
        (head.split_once('(').unwrap().1.to_owned(), rest.split(' ').nth(16).unwrap().parse().unwrap())
    };
    stats.map(nice).collect()
}

fn threads_that_answer_are_the_last_to_run(server: &Server) {
    // Requests begin the threads for slow work, too.
    assert_eq!(server.get("/systems").status, 200);
    let of_server = niceness(server.pid());
    let answering: Vec<i32> = of_server.iter().filter(|(name, _)| name == "serve").map(|(_, nice)| *nice).collect();
    assert!(answering.len() >= 3 && answering.iter().all(|nice| *nice == 19), "{of_server:?}");
    // Runs are started by a thread of the priority that the server was started with.
    let of_run = niceness(server.child().expect("a run"));
    let usual = of_server.iter().find(|(name, _)| name == "queue").expect("a queue").1;
    assert!(usual < 19 && of_run.iter().all(|(_, nice)| *nice == usual), "{of_run:?}, the queue has {usual}");
}

fn wrong_tokens(server: &Server) {
    for token in ["", "0", &"0".repeat(64), &"x".repeat(10_000), &format!("{} ", server.token), &server.token[..63]] {
        let status = call::request(server.port, "GET", "/runs", Some(token), "").status;
        // A space at the end is no part of a header's value (RFC 9110 §5.5).
        let wanted: &[u16] = if token.trim_end() == server.token { &[200] } else { &[401] };
        assert!(wanted.contains(&status), "{}: {status}", token.len());
    }
}

fn wrong_paths(server: &Server) {
    let secret = std::fs::read_to_string(server.runs().join(".serve/token")).unwrap();
    for path in [
        "/runs/../../etc/passwd/record",
        "/runs/..%2f..%2fetc%2fpasswd/record",
        "/runs/%2e%2e/record",
        "/runs/.serve/record",
        "/runs/.serve%2ftoken/messages",
        "/runs/latest%2f..%2f.serve/record",
        "/runs/%00/record",
        "/runs/%ff%fe/record",
        "//etc/passwd",
        "/runs/a/b/c/d",
    ] {
        let response = server.get(path);
        assert!(matches!(response.status, 400 | 404), "{path}: {response:?}");
        assert!(!response.body.contains("root:") && !response.body.contains(secret.trim()), "{path}");
    }
    let long = format!("/runs/{}", "a".repeat(8_000));
    assert_eq!(server.get(&long).status, 404);
}

fn wrong_heads(server: &Server) {
    let (port, token) = (server.port, &server.token);
    let head = |lines: &str| raw(port, format!("GET /runs HTTP/1.1\r\n{lines}connection: close\r\n\r\n").as_bytes());
    let host = format!("host: 127.0.0.1:{port}\r\n");
    let authorization = format!("authorization: Bearer {token}\r\n");
    let status = |text: &str| text.split(' ').nth(1).unwrap_or("").to_owned();
    assert_eq!(status(&head(&format!("{host}{authorization}"))), "200");
    for (what, lines, wanted) in [
        ("another name", format!("host: evil.example\r\n{authorization}"), "421"),
        ("no name", authorization.clone(), "421"),
        ("two names", format!("{host}host: evil.example\r\n{authorization}"), "421"),
        ("another site", format!("{host}{authorization}origin: http://evil.example\r\n"), "403"),
        ("two tokens", format!("{host}authorization: Bearer x\r\n{authorization}"), "401"),
        ("a cookie", format!("{host}cookie: token={token}\r\n"), "401"),
        ("a line in a value", format!("{host}x: a\rauthorization: Bearer {token}\r\n"), "400"),
        ("a folded line", format!("{host}x: a\r\n {authorization}"), "400"),
        ("both lengths", format!("{host}{authorization}content-length: 3\r\ncontent-length: 4\r\n"), "400"),
        ("a huge head", format!("{host}x: {}\r\n", "a".repeat(100_000)), "431"),
        ("many lines", format!("{host}{}", "x: a\r\n".repeat(1_000)), "431"),
    ] {
        let text = head(&lines);
        assert!(status(&text) == wanted || text.is_empty() && wanted != "401", "{what}: {text}");
    }
    assert!(!raw(port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").contains("200"), "TLS to a plain port");
    // What is sent in a path does not come back as a header.
    let injected = raw(
        port,
        format!("GET /runs/x%0d%0aset-cookie:%20a=b HTTP/1.1\r\n{host}{authorization}connection: close\r\n\r\n")
            .as_bytes(),
    );
    assert!(!injected.to_lowercase().contains("\r\nset-cookie"), "{injected}");
}

/// A hundred megabytes are not read, nor a body without an end.
fn large_bodies(server: &Server) {
    let piece = vec![b' '; 1 << 20];
    for (what, head, token) in [
        ("with its length", "content-length: 104857600\r\n", &server.token),
        ("in chunks", "transfer-encoding: chunked\r\n", &server.token),
        ("without the token", "content-length: 104857600\r\n", &"x".to_owned()),
    ] {
        let mut stream = connect(server.port);
        let port = server.port;
        write!(stream, "POST /runs HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n{head}\r\n")
            .unwrap();
        let mut sent = 0;
        for _ in 0..100 {
            let chunk = if head.starts_with("transfer") { format!("{:x}\r\n", piece.len()) } else { String::new() };
            let end: &[u8] = if head.starts_with("transfer") { b"\r\n" } else { b"" };
            if [chunk.as_bytes(), &piece, end].into_iter().any(|bytes| stream.write_all(bytes).is_err()) {
                break;
            }
            sent += 1;
        }
        assert!(sent < 100, "{what}: all of it was read");
    }
}

/// A thousand connections at once: those that come later wait, and nobody else's request fails for good.
fn many_connections(server: &Server) {
    let address = (std::net::Ipv4Addr::LOCALHOST, server.port).into();
    let open = |_| TcpStream::connect_timeout(&address, Duration::from_millis(10)).ok();
    let idle: Vec<TcpStream> = (0..1_000).filter_map(open).collect();
    assert!(idle.len() > 256, "{}", idle.len());
    // While they are open: their time is limited, so that it is this request's turn in the end.
    assert_eq!(server.get("/runs").status, 200);
    drop(idle);
}

/// Clients that ask for something large and read nothing of it hold no connection for ever, be it one that needs no token.
fn slow_readers(server: &Server) {
    let request = format!("GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n\r\n", server.port);
    let ask = |_| {
        let mut stream = connect(server.port);
        // Several in a row: one alone may fit into the buffers of the kernel.
        stream.write_all(request.repeat(PIPELINED).as_bytes()).unwrap();
        stream
    };
    let readers: Vec<TcpStream> = (0..256).map(ask).collect();
    assert_eq!(server.get("/runs").status, 200);
    drop(readers);
}

/// Work whose client has disconnected is stopped: the cells of this experiment need minutes each.
fn abandoned_work(server: &Server) {
    let cells = "name: large\ntitle: Large\nworkload: smart-home\nduration: 240h\nwarmup: 0s\nrepeat: 1\n\
                 axes: {system: builtin, protocol: mqtt5, qos: [0, 1], scale: [20, 30]}\n";
    let (port, token) = (server.port, &server.token);
    let head = format!("POST /dry-run HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n");
    for _ in 0..8 {
        let mut stream = connect(server.port);
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{cells}", cells.len()).as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut answer = [0; 64];
        let read = stream.read(&mut answer);
        assert!(read.is_err(), "it was answered at once: {}", String::from_utf8_lossy(&answer));
    }
    let began = Instant::now();
    assert_eq!(server.get("/runs").status, 200);
    assert_eq!(server.post("/validate", r#"{"workload": "smart-home"}"#).status, 200);
    // Whether something of it can be run is known without its schedules.
    assert_eq!(server.post("/validate", cells).status, 200);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// A connection with a body of one byte a second is closed.
fn slow_body(server: &Server) {
    let mut stream = connect(server.port);
    let (port, token) = (server.port, &server.token);
    let head = format!("POST /validate HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n");
    stream.write_all(format!("{head}content-length: 1000\r\n\r\n").as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let began = Instant::now();
    let mut answer = [0; 64];
    let read = loop {
        // A closed connection refuses the byte.
        drop(stream.write_all(b" "));
        match stream.read(&mut answer) {
            Err(_) if began.elapsed() < Duration::from_secs(20) => {}
            ended => break ended,
        }
    };
    let text = String::from_utf8_lossy(&answer[..read.unwrap_or(0)]).into_owned();
    assert!(text.is_empty() || text.contains(" 408 "), "{text}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// Connections with headers of one byte a second are closed.
fn slow_heads(server: &Server) {
    let mut slow: Vec<TcpStream> = (0..50).map(|_| connect(server.port)).collect();
    let began = Instant::now();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET /runs HTTP/1.1\r\nhost: ").unwrap());
    assert_eq!(server.get("/runs").status, 200, "others are answered meanwhile");
    while began.elapsed() < Duration::from_secs(7) {
        // A connection that is already closed refuses the byte.
        slow.iter_mut().for_each(|stream| drop(stream.write_all(b"x")));
        std::thread::sleep(Duration::from_secs(1));
    }
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let kind = ended.err().map(|error| error.kind());
        assert!(!matches!(kind, Some(std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)), "it still waits");
    }
}
