//! A TCP proxy in front of a broker: identifies each connection by the first bytes of its client, and cuts connections
//! on demand.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pubmark_conformance::ports;

/// One connection: both ends, and the first bytes from the client (a CONNECT, which names it).
struct Connection {
    ends: [TcpStream; 2],
    opening: Vec<u8>,
}

/// The forwarder; its threads end with the connections.
pub struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<Connection>>>,
    is_closed: Arc<AtomicBool>,
}

impl Proxy {
    /// Forwards to a port on 127.0.0.1.
    pub fn to(port: u16) -> Proxy {
        let listener = ports::listen();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let is_closed = Arc::new(AtomicBool::new(false));
        let (known, closed) = (Arc::clone(&connections), Arc::clone(&is_closed));
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if closed.load(Ordering::SeqCst) {
                    continue;
                }
                let known = Arc::clone(&known);
                std::thread::spawn(move || forward(client, port, &known));
            }
        });
        Proxy { address, connections, is_closed }
    }

    /// Closes new connections at once, or forwards them again.
    pub fn close(&self, closed: bool) {
        self.is_closed.store(closed, Ordering::SeqCst);
    }

    /// Address where clients connect.
    pub fn endpoint(&self) -> String {
        format!("mqtt://{}", self.address)
    }

    /// Cuts all connections whose first bytes `chosen` selects; returns their number.
    pub fn cut(&self, chosen: impl Fn(&[u8]) -> bool) -> usize {
        let mut connections = self.connections.lock().unwrap();
        let (cut, kept): (Vec<_>, Vec<_>) = connections.drain(..).partition(|connection| chosen(&connection.opening));
        *connections = kept;
        for connection in &cut {
            for end in &connection.ends {
                // An end that is already closed counts as cut.
                let _ = end.shutdown(Shutdown::Both);
            }
        }
        cut.len()
    }
}

/// Whether these bytes are the CONNECT of a subscriber. Client identifiers are `pm`, six digits, `s` or `p`, a number.
pub fn is_subscriber(opening: &[u8]) -> bool {
    let name =
        opening.windows(9).find(|bytes| bytes.starts_with(b"pm") && bytes[2..8].iter().all(u8::is_ascii_hexdigit));
    name.is_some_and(|name| name[8] == b's')
}

fn forward(mut client: TcpStream, port: u16, known: &Mutex<Vec<Connection>>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    for end in [&client, &server] {
        end.set_nodelay(true).unwrap();
    }
    let mut opening = vec![0; 4_096];
    let Ok(length) = client.read(&mut opening) else { return };
    opening.truncate(length);
    if server.write_all(&opening).is_err() {
        return;
    }
    let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
    known.lock().unwrap().push(Connection { ends, opening });
    let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || copy(back_from, back_to));
    copy(client, server);
}

/// Copies until either end is closed, and closes the other.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    // A connection that fails has ended; the error does not matter.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}
