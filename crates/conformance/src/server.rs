//! A server that adapters are run against.

use pubmark_protocol::endpoint::Endpoint;

/// User and password that [`Listener::Guarded`] accepts.
pub const LOGIN: (&str, &str) = ("device", "correct horse");
/// Largest packet that a server started with [`Limits::Small`] accepts, in bytes.
pub const SMALL_PACKET_BYTES: u32 = 100_000;

/// One of a server's listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Anyone, not encrypted.
    Plain,
    /// Anyone, TLS.
    Encrypted,
    /// [`LOGIN`] only, not encrypted.
    Guarded,
}

impl Listener {
    /// All of them, in the order of their numbers.
    pub const ALL: [Listener; 3] = [Listener::Plain, Listener::Encrypted, Listener::Guarded];
}

/// What a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Packets of any size.
    Large,
    /// Packets up to [`SMALL_PACKET_BYTES`].
    Small,
}

/// Why a server, or one of its listeners, is not available.
#[derive(Clone, Debug)]
pub struct Missing(pub String);

/// A server that a test starts and stops, with the addresses of its listeners.
pub trait Server {
    /// Starts it and waits until it accepts connections.
    fn start(limits: Limits) -> Result<Self, Missing>
    where
        Self: Sized;

    /// Endpoint of one of its listeners; for an encrypted one with the authorities to trust.
    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing>;

    /// Endpoint for subscribers of that listener.
    fn subscribers_endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        self.endpoint(listener)
    }

    /// Kills it; all its sessions are lost.
    fn kill(&mut self);

    /// Starts it again at the same addresses.
    fn restart(&mut self);

    /// May messages at best effort be lost though nothing is wrong?
    fn may_lose(&self) -> bool {
        false
    }

    /// May a writer at best effort be open before its subscribers know of it, so that they miss its first messages?
    fn discovers_late(&self) -> bool {
        false
    }

    /// Stops it (no CPU time) until [`Server::resume`]; false where that is not possible.
    fn pause(&self) -> bool;

    /// Ends a pause.
    fn resume(&self);
}
