//! What a session has besides, if it replies to requests.

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_model::requests::Responds;

/// A responder.
#[derive(Debug)]
pub struct Responder {
    pub(super) rules: Responds,
    pub(super) qos: Qos,
    /// Requests worked on.
    pub(super) busy: u16,
    /// Requests that wait for that, in the order of their arrival.
    pub(super) waiting: VecDeque<u32>,
    /// Worked on, but the system accepts no reply now.
    pub(super) ready: VecDeque<u32>,
}

impl Responder {
    /// A responder that received no request; its replies go out at the level of its subscriptions.
    pub fn new(rules: Responds, qos: Qos) -> Responder {
        Responder { rules, qos, busy: 0, waiting: VecDeque::new(), ready: VecDeque::new() }
    }

    /// Payload of its replies.
    pub fn reply_bytes(&self) -> u32 {
        self.rules.reply_bytes
    }
}
