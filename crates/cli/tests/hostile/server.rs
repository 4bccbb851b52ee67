//! A server that executes the steps of a case on every connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One step of a conversation.
#[derive(Clone)]
pub enum Step {
    /// Reads until these bytes have arrived.
    Hear(Vec<u8>),
    /// Sends these bytes.
    Say(Vec<u8>),
    /// Sends these bytes N times, or until the client disconnects.
    Over(usize, Vec<u8>),
    /// Sends these bytes one by one, every 20 ms.
    Slowly(Vec<u8>),
    /// Waits N milliseconds.
    Wait(u64),
    /// Responds to every occurrence of the first bytes with the second ones, until the end.
    Echo(Vec<u8>, Vec<u8>),
    /// Ends the connection.
    Close,
    /// Resets the connection.
    Reset,
}

/// Reads until these bytes have arrived.
pub fn hear(bytes: impl AsRef<[u8]>) -> Step {
    Step::Hear(bytes.as_ref().to_vec())
}

/// Sends these bytes.
pub fn say(bytes: impl AsRef<[u8]>) -> Step {
    Step::Say(bytes.as_ref().to_vec())
}

/// A server; it ends when this is dropped.
pub struct Server {
    /// Address on which it listens.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which may have ended already.
        let _ = TcpStream::connect(self.address);
    }
}

impl Server {
    /// Serves every connection by `serve`, on a thread of its own.
    pub fn start(serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Server {
        let listener = pubmark_conformance::ports::listen();
        let address = listener.local_addr().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let (serve, stop) = (Arc::new(serve), Arc::clone(&ended));
        std::thread::spawn(move || accept(&listener, &serve, &stop));
        Server { address, ended }
    }

    /// A server that executes these steps with every client.
    pub fn of_steps(steps: Vec<Step>) -> Server {
        Server::start(move |stream| converse(stream, &steps))
    }
}

fn accept(
    listener: &TcpListener,
    serve: &Arc<impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static>,
    ended: &AtomicBool,
) {
    while let Ok((stream, _)) = listener.accept() {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let serve = Arc::clone(serve);
        std::thread::spawn(move || {
            stream.set_nodelay(true).unwrap();
            // No longer wait for a client than its call may last.
            stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(100))).unwrap();
            // The client may end the connection at any time.
            let _ = serve(stream);
        });
    }
}

fn converse(mut stream: TcpStream, steps: &[Step]) -> std::io::Result<()> {
    let mut heard = Vec::new();
    for step in steps {
        match step {
            Step::Hear(wanted) => hear_until(&mut stream, &mut heard, wanted)?,
            Step::Say(bytes) => stream.write_all(bytes)?,
            Step::Over(times, bytes) => (0..*times).try_for_each(|_| stream.write_all(bytes))?,
            Step::Slowly(bytes) => {
                for byte in bytes {
                    stream.write_all(&[*byte])?;
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            Step::Wait(ms) => std::thread::sleep(Duration::from_millis(*ms)),
            Step::Echo(wanted, answer) => loop {
                hear_until(&mut stream, &mut heard, wanted)?;
                stream.write_all(answer)?;
            },
            Step::Close => return Ok(()),
            Step::Reset => return reset(&stream),
        }
    }
    let mut ignored = [0; 16 * 1_024];
    while stream.read(&mut ignored)? > 0 {}
    Ok(())
}

/// Reads until `wanted` has arrived, and removes it with all bytes before it.
fn hear_until(stream: &mut TcpStream, heard: &mut Vec<u8>, wanted: &[u8]) -> std::io::Result<()> {
    loop {
        if let Some(at) = heard.windows(wanted.len()).position(|window| window == wanted) {
            heard.drain(..at + wanted.len());
            return Ok(());
        }
        let mut piece = [0; 16 * 1_024];
        match stream.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => heard.extend_from_slice(&piece[..length]),
        }
    }
}

/// Ends a connection with a reset: unread data is discarded.
fn reset(stream: &TcpStream) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the option's value is valid for the time of the call.
    let done = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
