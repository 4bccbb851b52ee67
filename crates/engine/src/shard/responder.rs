//! Additional state of a session that replies to requests.

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_model::requests::Responds;

/// A responder.
#[derive(Debug)]
pub struct Responder {
    pub(super) rules: Responds,
    pub(super) qos: Qos,
    /// Number of requests being worked on.
    pub(super) busy: u16,
    /// Requests that wait for a free position, in the order of their arrival.
    pub(super) waiting: VecDeque<u32>,
    /// Requests that were worked on, but whose replies the system does not accept yet.
    pub(super) ready: VecDeque<u32>,
}

impl Responder {
    /// A responder without requests. Its replies are sent at the QoS of its subscriptions.
    pub fn new(rules: Responds, qos: Qos) -> Responder {
        Responder { rules, qos, busy: 0, waiting: VecDeque::new(), ready: VecDeque::new() }
    }

    /// Payload size of its replies, bytes.
    pub fn reply_bytes(&self) -> u32 {
        self.rules.reply_bytes
    }
}
