//! A client: an address that requests came from.

use std::net::SocketAddr;

use pubmark_wire::coap::Exchange;

use super::answered::Answered;
use super::upload::Upload;
use crate::net::Key;

/// Payloads that one client may send in blocks at the same time.
pub(super) const MOST_UPLOADS: usize = 4;

/// The state of a client.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) last_received_ns: u64,
    pub(super) answered: Answered,
    pub(super) uploads: Vec<Upload>,
    pub(super) observers: Vec<Key>,
    /// The outstanding ping: observers that sent nothing for a while are pinged.
    pub(super) ping: Option<(u16, Exchange)>,
    /// Next time of its timer, 0 for never.
    pub(super) timer_ns: u64,
    next_message_id: u16,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, first_message_id: u16, now_ns: u64) -> Peer {
        Peer {
            address,
            last_received_ns: now_ns,
            answered: Answered::default(),
            uploads: Vec::new(),
            observers: Vec::new(),
            ping: None,
            timer_ns: 0,
            next_message_id: first_message_id,
        }
    }

    /// An identifier for a message to it.
    pub(super) fn message_id(&mut self) -> u16 {
        self.next_message_id = self.next_message_id.wrapping_add(1);
        self.next_message_id
    }
}
