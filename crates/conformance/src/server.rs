//! A server that adapters are run against.

use pubmark_protocol::endpoint::Endpoint;

/// User and password that [`Listener::Guarded`] takes.
pub const LOGIN: (&str, &str) = ("device", "correct horse");
/// Largest packet that a server started with [`Limits::Small`] takes, in bytes.
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

/// What a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Packets of any size.
    Large,
    /// Packets up to [`SMALL_PACKET_BYTES`].
    Small,
}

/// Why a server, or one of its listeners, is not there.
#[derive(Clone, Debug)]
pub struct Missing(pub String);

/// A server that a test starts, stops and asks for its addresses.
pub trait Server {
    /// Starts it and waits until it accepts connections.
    fn start(limits: Limits) -> Result<Self, Missing>
    where
        Self: Sized;

    /// Where one of its listeners is; an encrypted one with the authorities to trust.
    fn endpoint(&self, listener: Listener) -> Result<Endpoint, Missing>;

    /// Where subscribers of that listener connect.
    fn subscribers_endpoint(&self, listener: Listener) -> Result<Endpoint, Missing> {
        self.endpoint(listener)
    }

    /// Ends it without a goodbye; all its sessions are gone.
    fn kill(&mut self);

    /// Starts it again at the same addresses.
    fn restart(&mut self);

    /// May messages at best effort be lost though nothing is wrong?
    fn may_lose(&self) -> bool {
        false
    }

    /// May a writer at best effort be open before those who listen know of it, so that they miss its first messages?
    fn meets_late(&self) -> bool {
        false
    }

    /// Stops it from doing anything until [`Server::resume`]; false where that is not possible.
    fn pause(&self) -> bool;

    /// Ends a pause.
    fn resume(&self);
}
