//! The state of one client, connected or not.

use std::collections::HashSet;
use std::rc::Rc;

use super::message::{Manner, Message};
use crate::net::Key;
use crate::outgoing::Outgoing;

/// A client's state, which may outlive its connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client_id: Rc<str>,
    /// Its connection, while there is one.
    pub(crate) peer: Option<Key>,
    /// Seconds that it outlives its connection, `u32::MAX` for ever.
    pub(crate) expiry_s: u32,
    /// When the connection ended.
    pub(crate) disconnected_ns: u64,
    /// Its topic filters; the options of each subscription are in the tree.
    pub(crate) filters: HashSet<Box<str>>,
    pub(crate) outgoing: Outgoing<Queued>,
    /// Messages at QoS 2 received and not yet released by the client.
    pub(crate) unreleased: HashSet<u16>,
    pub(crate) will: Option<Will>,
    /// When the will is due, once the connection ended.
    pub(crate) will_due_ns: Option<u64>,
    /// Number of the last message that was routed here, and its index in the list of targets: found without a search if several
    /// filters of the client match.
    pub(crate) routed: (u64, u32),
}

/// A message to be published when the connection ends without DISCONNECT.
#[derive(Debug)]
pub(crate) struct Will {
    pub(crate) message: Message,
    pub(crate) manner: Manner,
    pub(crate) delay_s: u32,
}

/// A message for this client alone: as it was published, and how it is forwarded.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) message: Rc<Message>,
    pub(crate) manner: Manner,
    pub(crate) subscription_ids: Box<[u32]>,
}

impl Queued {
    /// Bytes that it occupies, without what is the same for all messages.
    pub(crate) fn bytes(&self) -> usize {
        self.message.bytes() + size_of_val(&*self.subscription_ids)
    }
}

impl Session {
    pub(crate) fn new(client_id: Rc<str>) -> Session {
        Session {
            client_id,
            peer: None,
            expiry_s: 0,
            disconnected_ns: 0,
            filters: HashSet::new(),
            outgoing: Outgoing::new(),
            unreleased: HashSet::new(),
            will: None,
            will_due_ns: None,
            routed: (0, 0),
        }
    }
}
