//! The server's side of a session: receivers and the credit they were given, our window, parts of messages.

use super::outgoing::LinkState;

/// Messages that a receiver lets come before it gives credit again, which it does when half of them are there.
pub const CREDIT: u32 = 1_000;
/// Transfers that a session lets come before it opens its window again, which it does when half of them are there. Credit
/// is what holds a server back; the window only must not be in its way.
pub const WINDOW: u32 = 65_536;

/// A link on which pubmark receives messages.
#[derive(Debug)]
pub struct Receiver {
    /// Its state.
    pub state: LinkState,
    /// Messages that may still come.
    pub credit: u32,
    /// Messages that came, counted as their sender counts (part 2, §2.6.7).
    pub delivery_count: u32,
    /// The message that has begun and not ended.
    pub partial: Option<PartialMessage>,
}

/// A message of which a part is there.
#[derive(Debug)]
pub struct PartialMessage {
    /// Its number.
    pub delivery: u32,
    /// The server has forgotten it already.
    pub settled: bool,
    /// What is there.
    pub bytes: Vec<u8>,
}

/// The server's side of a session.
#[derive(Debug)]
pub struct Incoming {
    /// One a subscription.
    pub receivers: Vec<Receiver>,
    /// Number of the next transfer.
    pub next_transfer: u32,
    /// Transfers that may come.
    pub window: u32,
    /// Bytes of all messages that have begun.
    pub partial_bytes: usize,
    /// Deliveries that came and were not accepted yet, first and last.
    pub to_accept: Option<(u32, u32)>,
}

impl Incoming {
    /// Before the first connection.
    pub fn new(subscriptions: usize) -> Incoming {
        let receivers = (0..subscriptions).map(|_| Receiver::new()).collect();
        Incoming { receivers, next_transfer: 0, window: WINDOW, partial_bytes: 0, to_accept: None }
    }

    /// A new connection: all links are to be made again.
    pub fn reset(&mut self) {
        self.receivers.iter_mut().for_each(|receiver| *receiver = Receiver::new());
        (self.next_transfer, self.window, self.partial_bytes, self.to_accept) = (0, WINDOW, 0, None);
    }
}

impl Receiver {
    fn new() -> Receiver {
        Receiver { state: LinkState::Requested, credit: 0, delivery_count: 0, partial: None }
    }
}
