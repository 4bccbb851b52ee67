//! Interface between a protocol and its connection.

use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::{Goodbye, Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Sink};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::front::Front;

use super::link::{Blocked, Link, Shared};
use super::receiving::Times;

/// Why a message is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not now.
    Blocked(Blocked),
    /// Never: more than the system allows, which is this many bytes.
    TooLarge(u32),
}

/// A protocol over a byte stream; a value for each session, which outlives its connections.
pub trait Dialect: Sized {
    /// What its clients can do.
    const CAPABILITIES: Capabilities;
    /// TLS is agreed before the first word; otherwise the dialect calls [`Link::encrypt`] when its time has come.
    const TLS_FIRST: bool = true;
    /// The server responds to pings. Otherwise each side sends heartbeats on its own (AMQP).
    const ANSWERS_PINGS: bool = true;
    /// A packet has one message at most, so that a subscriber can be given one after the other.
    const ONE_MESSAGE_A_PACKET: bool = true;
    /// What the server's welcome is called, for an end that comes before it.
    const WELCOME: &'static str;

    /// A packet of the server's, still in the buffer it was read into.
    type Packet<'a>;

    /// A session that has not been connected.
    fn new(config: &SessionConfig) -> Self;

    /// TCP is connected: the first words.
    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause>;

    /// The packet at the front of `bytes`, which are not empty. An error as soon as it is known to be larger than `most_bytes`
    /// or invalid, so that the buffer does not grow.
    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Self::Packet<'_>>, Cause>;

    /// How many of the bytes that follow belong to a front whose length is not known yet: one at least, and none that could be
    /// the next packet's. `bytes` are not empty. Used if [`Dialect::ONE_MESSAGE_A_PACKET`].
    fn partial_bytes(bytes: &[u8]) -> usize {
        let _ = bytes;
        1
    }

    /// Handles a packet of the server's.
    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        packet: &Self::Packet<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause>;

    /// The time is over for which [`Link::wait`] was called, and the session is not open.
    fn wait_expired(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let _ = (link, shared, sink);
    }

    /// Authenticates again: the time of [`Link::renew_after`] is over, and the session is open.
    fn renew(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        let _ = (link, shared);
        Ok(())
    }

    /// Appends a message to the outbox; the session is open and the outbox has room.
    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal>;

    /// Appends a reply to the outbox; the session is open and the outbox has space. Only called on dialects whose capabilities
    /// include requests.
    fn reply(&mut self, link: &mut Link, shared: &mut Shared, reply: &OutgoingReply<'_>) -> Result<(), Refusal> {
        let _ = (link, shared, reply);
        Err(Refusal::TooLarge(0))
    }

    /// Does the message that the last packet belongs to go on in the next one?
    fn is_within_message(&self) -> bool {
        false
    }

    /// Is the in-flight window not full?
    fn has_room(&self) -> bool {
        true
    }

    /// The last byte of the message with this tag is in the socket; tags that are 0 are not reported.
    fn written(&mut self, tag: u16) {
        let _ = tag;
    }

    /// The message with this tag never left; tags that are 0 are not reported.
    fn abandoned(&mut self, tag: u16) {
        let _ = tag;
    }

    /// A ping: the server responds to it, or (without [`Dialect::ANSWERS_PINGS`]) sends heartbeats as often as we do.
    fn ping(out: &mut Vec<u8>);

    /// Appends the protocol's last words; the session is open. `goodbye` is not [`Goodbye::Cut`].
    fn send_goodbye(&mut self, link: &mut Link, shared: &mut Shared, goodbye: Goodbye) {
        let _ = (link, shared, goodbye);
    }

    /// Did the connection begin with a will, and has the dialect not said goodbye on its own?
    fn has_will(&self) -> bool {
        false
    }

    /// The server has no state of the session any more: reports messages whose delivery is unknown.
    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        let _ = (session, sink);
    }
}

/// [`Dialect::partial_bytes`] of protocols made of lines.
pub fn up_to_line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1)
}
