//! The end of a subscription: its link is closed for good, which the server answers with the same.
//!
//! What the server sent before it read that still arrives, and is accepted like any other message.

use pubmark_protocol::events::{Said, Sink};
use pubmark_wire::amqp10::Detach;

use super::opening::CHANNEL;
use super::outgoing::LinkState;
use super::session::Amqp10;
use crate::connection::{Link, Shared};

impl Amqp10 {
    /// Closes the link of a subscription.
    pub(super) fn detach(&mut self, link: &mut Link, shared: &mut Shared, index: usize, sink: &mut impl Sink) {
        if self.incoming.receivers[index].state != LinkState::Attached {
            link.unsubscribed.remove(&index);
            return sink.unsubscribed(link.id, index, Err(Said::words("it has no link")));
        }
        self.accept_all(link, shared);
        self.incoming.receivers[index].state = LinkState::Leaving;
        let ours = Detach { handle: self.receiver_handle(index), closed: true, error: None };
        link.outbox.append(&mut shared.pool, |out| ours.encode(CHANNEL, out));
    }

    /// Did we close the link of a subscription, and the server has not agreed yet?
    pub(super) fn is_leaving(&self, index: usize) -> bool {
        self.incoming.receivers[index].state == LinkState::Leaving
    }
}
