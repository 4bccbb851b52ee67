//! The interface of the relay for its users.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pubmark_protocol::datagram;

use super::{Counts, RECEIVE_BYTES, Request, Response, channel};
use crate::error::LinkError;
use crate::namespace::Namespace;

/// Longest silence in response to what the relay is requested before a run: it resolves names and tries addresses in that time.
const PREPARED_WITHIN: Duration = Duration::from_secs(20);
/// Longest silence in response to what it is requested during a run, that of a worker process without heartbeats. It responds between
/// two turns of its loop, so until then it has forwarded nothing either.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// Longest part of a wait for a response, ms.
const LOOK_MS: libc::c_int = 100;
/// Largest part of a wait that counts as silence. If it took longer, this process was itself prevented from running, and the relay may
/// have been as well.
const LONGEST_GAP: Duration = Duration::from_millis(500);
/// Queue of connections that are not accepted yet: many clients may connect at once.
const BACKLOG: libc::c_int = 4_096;

/// What the relay could not do.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// It has ended.
    #[error("the relay between the links and the system does not answer")]
    Disconnected(#[source] io::Error),
    /// It did not respond for this long: it is stopped or frozen.
    #[error("the relay between the links and the system was silent for {} s", .0.as_secs())]
    Silent(Duration),
    /// An earlier request failed, for this reason.
    #[error("{0}")]
    Lost(String),
    /// It refused.
    #[error("{0}")]
    Refused(String),
    /// The sockets that clients connect to could not be made.
    #[error(transparent)]
    Sockets(#[from] LinkError),
}

/// A relay that runs in another process.
#[derive(Debug)]
pub struct Relay {
    channel: OwnedFd,
    /// Held from a request to its response: several threads send requests, and none may get the response of another.
    calls: Mutex<Calls>,
}

/// What earlier requests left.
#[derive(Debug, Default)]
struct Calls {
    /// Why the relay is lost. No other request of that run is sent; a relay that responds again serves the next run.
    lost: Option<String>,
    /// A response was not waited for: it comes before that of the next request.
    is_late: bool,
}

impl Relay {
    /// At the other end of a [`super::pair`].
    pub fn new(channel: OwnedFd) -> Relay {
        Relay { channel, calls: Mutex::default() }
    }

    /// The address of a host, as the relay's network finds it.
    ///
    /// # Errors
    /// There is none, or the relay is gone.
    pub fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, RelayError> {
        match self.call(&Request::Resolve { host: host.to_owned(), port }, None)? {
            Response::Address(address) => Ok(address),
            other => Err(unexpected(other)),
        }
    }

    /// Does a system take connections?
    ///
    /// # Errors
    /// It does not, for the reason given, or the relay is gone.
    pub fn try_connect(&self, to: SocketAddr) -> Result<(), RelayError> {
        match self.call(&Request::Try { to }, None)? {
            Response::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Lets clients reach `to`, the system under test, at `address` inside `core`: connections and datagrams, at the same port.
    ///
    /// # Errors
    /// The port is in use there, or the relay is gone.
    pub fn listen(&self, core: &Namespace, address: IpAddr, to: SocketAddr) -> Result<SocketAddr, RelayError> {
        let (listener, socket, at) = core.enter(|| sockets(address, to.port()))??;
        self.send_socket(&Request::Stream { to, is_system: true }, listener.into())?;
        self.send_socket(&Request::Datagrams { to }, socket.into())?;
        Ok(at)
    }

    /// Lets connections of pubmark's own reach `to`, which is not the system under test, at `address` inside `core`. They are carried
    /// alike, and counted nowhere.
    ///
    /// # Errors
    /// The relay is gone.
    pub fn listen_for_own(&self, core: &Namespace, address: IpAddr, to: SocketAddr) -> Result<SocketAddr, RelayError> {
        let (listener, at) = core.enter(|| listener(address, to.port()))??;
        self.send_socket(&Request::Stream { to, is_system: false }, listener.into())?;
        Ok(at)
    }

    /// Lets it give up what it carries and listens for: what a run before left. It then counts [`Counts::exhausted`] anew. A relay
    /// that was silent in that run, and responds again, is no longer lost.
    ///
    /// # Errors
    /// The relay is gone, or was silent for 20 s.
    pub fn forget(&self) -> Result<(), RelayError> {
        match self.call(&Request::Forget, None)? {
            Response::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Does its loop still turn? Requested several times in 3 s during a run, because nothing else is.
    ///
    /// # Errors
    /// The relay is gone, or was silent for 3 s.
    pub fn check(&self) -> Result<(), RelayError> {
        match self.call(&Request::Check, None)? {
            Response::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// What it has counted.
    ///
    /// # Errors
    /// The relay is gone.
    pub fn counts(&self) -> Result<Counts, RelayError> {
        match self.call(&Request::Count, None)? {
            Response::Counts(counts) => Ok(*counts),
            other => Err(unexpected(other)),
        }
    }

    /// Bytes of connections to the system that it has received and whose receiver has not acknowledged them, in its buffers and in the
    /// kernel's for its sockets, and the kernel's memory of datagrams that it has not read. Memory is more than the payload, so where
    /// there are datagrams the figure says only whether any wait. While it counts them it forwards nothing.
    ///
    /// # Errors
    /// The relay is gone.
    pub fn waiting_bytes(&self) -> Result<u64, RelayError> {
        match self.call(&Request::Waiting, None)? {
            Response::Waiting(bytes) => Ok(bytes),
            other => Err(unexpected(other)),
        }
    }

    /// Gives a socket away: with our copy open, a relay that is gone would still seem to listen.
    fn send_socket(&self, request: &Request, socket: OwnedFd) -> Result<(), RelayError> {
        match self.call(request, Some(&socket))? {
            Response::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    fn call(&self, request: &Request, socket: Option<&OwnedFd>) -> Result<Response, RelayError> {
        // No code panics while it changes them.
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_before_run = matches!(request, Request::Resolve { .. } | Request::Forget);
        if let Some(reason) = &calls.lost
            && !is_before_run
        {
            return Err(RelayError::Lost(reason.clone()));
        }
        let response = self.exchange(&mut calls.is_late, request, socket);
        // Before the lock is released: whoever waits for it gets this reason, too.
        calls.lost = response.as_ref().err().map(ToString::to_string);
        response
    }

    /// Sends a request and waits for its response, and before that for one that is late.
    fn exchange(
        &self,
        is_late: &mut bool,
        request: &Request,
        socket: Option<&OwnedFd>,
    ) -> Result<Response, RelayError> {
        let limit = match request {
            Request::Count | Request::Waiting | Request::Check => SILENCE_LIMIT,
            _ => PREPARED_WITHIN,
        };
        if *is_late {
            self.receive(limit)?;
            *is_late = false;
        }
        channel::send(self.channel.as_fd(), request, socket.map(AsFd::as_fd)).map_err(RelayError::Disconnected)?;
        let response = self.receive(limit);
        *is_late = matches!(response, Err(RelayError::Silent(_)));
        response
    }

    fn receive(&self, limit: Duration) -> Result<Response, RelayError> {
        let error = match self.wait(limit) {
            Ok(true) => match channel::receive(self.channel.as_fd()) {
                Ok(Some((response, _))) => return Ok(response),
                Ok(None) => io::Error::from(io::ErrorKind::UnexpectedEof),
                Err(error) => error,
            },
            Ok(false) => return Err(RelayError::Silent(limit)),
            Err(error) => error,
        };
        // What comes after something unreadable must not be taken for the response to the next request.
        // SAFETY: numbers only; it fails if the channel is closed already.
        unsafe { libc::shutdown(self.channel.as_raw_fd(), libc::SHUT_RDWR) };
        Err(RelayError::Disconnected(error))
    }

    /// Waits until a response, or the end of the channel, can be read; false after a silence of `limit`.
    fn wait(&self, limit: Duration) -> io::Result<bool> {
        let mut silence = Duration::ZERO;
        while silence < limit {
            let began = Instant::now();
            let mut look = libc::pollfd { fd: self.channel.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one live entry.
            match unsafe { libc::poll(&raw mut look, 1, LOOK_MS) } {
                1.. => return Ok(true),
                0 => {}
                _ => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
            silence += began.elapsed().min(LONGEST_GAP);
        }
        Ok(false)
    }
}

fn unexpected(answer: Response) -> RelayError {
    match answer {
        Response::Failed(why) => RelayError::Refused(why),
        _ => RelayError::Disconnected(io::Error::other("it answered something else")),
    }
}

fn refused(address: IpAddr) -> impl Fn(io::Error) -> LinkError + Copy {
    move |error| LinkError::refused(format!("listen at {address} for a relay"), error)
}

/// The address for clients: with the server's own port, or another if that is in use by another endpoint.
fn listener(address: IpAddr, port: u16) -> Result<(TcpListener, SocketAddr), LinkError> {
    let refused = refused(address);
    let listener = TcpListener::bind((address, port)).or_else(|_| TcpListener::bind((address, 0))).map_err(refused)?;
    // SAFETY: numbers only. The standard library's backlog is too short for a fleet; asking again lengthens it.
    if unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } < 0 {
        return Err(refused(io::Error::last_os_error()));
    }
    let at = listener.local_addr().map_err(refused)?;
    Ok((listener, at))
}

/// The same, with a socket of datagrams at that address.
fn sockets(address: IpAddr, port: u16) -> Result<(TcpListener, UdpSocket, SocketAddr), LinkError> {
    let (listener, at) = listener(address, port)?;
    let socket = UdpSocket::bind(at).map_err(refused(address))?;
    // Here, because the relay may lack the right to it in this namespace. What finds no room all the same is counted.
    let _ = datagram::enlarge_receive_buffer(socket.as_fd(), RECEIVE_BYTES);
    Ok((listener, socket, at))
}
