//! Server of the toy protocol of docs/how-to/add-a-protocol.md: `toy-line-server ADDRESS [MOST_BYTES]`. One thread per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use pubmark_model::topic::TopicFilter;

/// Where messages to a client are written, one at a time.
type Writer = Arc<Mutex<TcpStream>>;

/// All subscriptions: number of the connection, filter, and the writer of that connection.
#[derive(Default)]
struct Subscriptions(Mutex<Vec<(usize, TopicFilter, Writer)>>);

impl Subscriptions {
    fn add(&self, connection: usize, filter: &str, writer: &Writer) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((connection, TopicFilter(filter.to_owned()), Arc::clone(writer)));
    }

    fn remove(&self, connection: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(number, ..)| *number != connection);
    }

    /// Each client gets a message once, whatever the number of its filters that match.
    fn of(&self, topic: &str) -> Vec<Writer> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut matching: Vec<_> = all.iter().filter(|(_, filter, _)| filter.matches(topic)).collect();
        matching.sort_by_key(|(number, ..)| *number);
        matching.dedup_by_key(|(number, ..)| *number);
        matching.into_iter().map(|(.., writer)| Arc::clone(writer)).collect()
    }
}

fn write(writer: &Writer, bytes: &[u8]) -> io::Result<()> {
    writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
}

fn serve(number: usize, socket: TcpStream, most_bytes: usize, subscriptions: &Subscriptions) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let writer: Writer = Arc::new(Mutex::new(socket.try_clone()?));
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
            ["HELLO"] => write(&writer, b"WELCOME\n")?,
            ["PING"] => write(&writer, b"PONG\n")?,
            ["SUB", filter] => {
                subscriptions.add(number, filter, &writer);
                write(&writer, b"OK\n")?;
            }
            ["PUB", topic, length] => {
                let length: usize = length.parse().map_err(io::Error::other)?;
                if line.len() + length > most_bytes {
                    return write(&writer, b"ERR too large\n");
                }
                let mut message = format!("MSG {length}\n").into_bytes();
                let front = message.len();
                message.resize(front + length + 1, 0);
                reader.read_exact(&mut message[front..])?;
                for subscriber in subscriptions.of(topic) {
                    // A failed write is ignored: the thread of that connection removes it.
                    let _ = write(&subscriber, &message);
                }
            }
            _ => return write(&writer, b"ERR unknown command\n"),
        }
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7070".to_owned());
    let most_bytes = arguments.next().and_then(|most| most.parse().ok()).unwrap_or(64 << 20);
    let subscriptions = Arc::new(Subscriptions::default());
    for (number, socket) in TcpListener::bind(address)?.incoming().enumerate() {
        let (socket, subscriptions) = (socket?, Arc::clone(&subscriptions));
        std::thread::spawn(move || {
            // A client that breaks the protocol loses its connection; other clients are not affected.
            let _ = serve(number, socket, most_bytes, &subscriptions);
            subscriptions.remove(number);
        });
    }
    Ok(())
}
