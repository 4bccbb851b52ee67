//! The end of a subscription: GET with Observe 1 and the token of the subscription, sent until it is answered (RFC 7641 §3.6).

use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Said, Sink};
use pubmark_wire::coap::{Exchange, Kind, Step};

use super::link::{Link, Phase, Shared};
use super::observing::{DEREGISTER, Observing, kind_of, register};

/// How far the end of a subscription has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// Nobody asked for it.
    None,
    /// The answer is awaited.
    Asked { message_id: u16, exchange: Exchange },
    /// It is not made again.
    Ended,
}

impl Observing {
    /// Asks for the end of a subscription, confirmable if that itself was; of a session that is not open it is noted only.
    pub(super) fn unsubscribe(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let observation = &mut self.observations[index];
        match link.phase {
            Phase::Open if observation.is_observed() => {
                let message_id = link.message_id();
                let exchange = shared.exchange(clock::monotonic_ns());
                observation.end = End::Asked { message_id, exchange };
                link.wake_by(shared, exchange.due_ns());
                register(link, shared, index, message_id, DEREGISTER, kind_of(link, index))?;
            }
            Phase::Open => sink.unsubscribed(link.id, index, Err(Said::words("it is not subscribed to"))),
            _ => self.settle_end(link, shared, index, Ok(()), sink),
        }
        Ok(())
    }

    /// The end of a subscription was answered, or will not be: then its notifications are rejected, which ends it as well.
    pub(super) fn settle_end(
        &mut self,
        link: &Link,
        shared: &mut Shared,
        index: usize,
        outcome: Result<(), Said>,
        sink: &mut impl Sink,
    ) {
        self.drop_fetch(shared, index as u16);
        self.observations[index].has_ended();
        sink.unsubscribed(link.id, index, outcome);
    }

    /// Asks again for the end of a subscription.
    pub(super) fn repeat_end(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: usize,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let End::Asked { message_id, exchange } = &mut self.observations[index].end else { return Ok(()) };
        let kind = kind_of(link, index);
        match exchange.step(&shared.times, now_ns) {
            Step::Wait => {}
            Step::Repeat => {
                // To the message layer a request that is not confirmable is another one each time.
                if kind == Kind::NonConfirmable {
                    *message_id = link.message_id();
                }
                register(link, shared, index, *message_id, DEREGISTER, kind)?;
            }
            Step::GiveUp => self.settle_end(link, shared, index, Err(Said::words("no answer")), sink),
        }
        Ok(())
    }
}
