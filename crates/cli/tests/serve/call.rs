//! A minimal HTTP/1.1 client: one connection for each request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longest wait for a response.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    /// Its body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as JSON of a response that must have this status.
    pub fn of(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }
}

/// Sends bytes and reads until the end of the connection.
pub fn raw(port: u16, bytes: &[u8]) -> String {
    let mut stream = connect(port);
    // A server may close before all of a large body is written.
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A connection.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// A whole request.
pub fn request(port: u16, method: &str, path: &str, token: Option<&str>, body: &str) -> Response {
    let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{authorization}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    parsed(&raw(port, text.as_bytes()))
}

/// The body of a complete response, as bytes.
pub fn bytes(port: u16, path: &str, token: &str) -> Vec<u8> {
    let mut stream = connect(port);
    // HTTP/1.0 has no chunks: the body ends with the connection.
    let head = format!("GET {path} HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    assert!(
        all.starts_with(b"HTTP/1.0 200") || all.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&all[..end])
    );
    all.split_off(end + 4)
}

/// Parses a response; chunks are joined.
pub fn parsed(text: &str) -> Response {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Response { status, head: head.to_owned(), body }
}

fn unchunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&rest[..size]);
        text = rest[size..].trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    body
}

/// Events as they arrive: their data, until the connection ends.
pub struct Events {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Events {
    /// Follows a run.
    pub fn of(port: u16, token: &str, id: &str) -> Events {
        let mut stream = connect(port);
        write!(
            stream,
            "GET /runs/{id}/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        Events { lines: BufReader::new(stream).lines() }
    }
}

impl Iterator for Events {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.lines.next()?.unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}
