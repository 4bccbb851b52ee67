//! The end of a subscription: its binding goes, the queue and its consumer stay for the others.
//!
//! What the server put into the queue before that is still sent; nothing in it says by which binding it came.

use pubmark_protocol::events::{Cause, Said, Sink};
use pubmark_wire::amqp091::encode_unbind;

use super::session::{Amqp091, EXCHANGE, PLAIN};
use crate::connection::{Link, Shared};

impl Amqp091 {
    /// Unbinds the queue, unless another subscription has the same binding key: to the server those are one binding.
    pub(super) fn unbind(&mut self, link: &mut Link, shared: &mut Shared, index: usize, sink: &mut impl Sink) {
        if !self.consumer.consumes() {
            link.unsubscribed.remove(&index);
            return sink.unsubscribed(link.id, index, Err(Said::words("its subscriptions are not all answered")));
        }
        let keys = &self.binding_keys;
        if link.listens_to().any(|other| keys[other] == keys[index]) {
            return sink.unsubscribed(link.id, index, Ok(()));
        }
        self.unbinding.push_back(index);
        let queue = self.consumer.queue();
        link.outbox.append(&mut shared.pool, |out| encode_unbind(PLAIN, queue, EXCHANGE, &keys[index], out));
    }

    /// The server has unbound it.
    pub(super) fn on_unbound(&mut self, link: &Link, sink: &mut impl Sink) -> Result<(), Cause> {
        let index = self.unbinding.pop_front();
        let index = index.ok_or_else(|| Cause::Protocol("queue.unbind-ok, which answers nothing".to_owned()))?;
        sink.unsubscribed(link.id, index, Ok(()));
        Ok(())
    }

    /// The first subscription from this one on that was not ended; behind the last if there is none.
    pub(super) fn bound_from(&self, link: &Link, first: usize) -> usize {
        link.listens_to().find(|index| *index >= first).unwrap_or(self.binding_keys.len())
    }
}
