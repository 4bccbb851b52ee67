//! UNSUBSCRIBE and its answer. One at a time, so that one packet identifier is enough for all of them.

use pubmark_protocol::events::{Cause, Said, Sink};
use pubmark_wire::mqtt::{Properties, TopicFilters, Unsuback, Unsubscribe, Version, encode_unsubscribe, reason_name};

use super::connecting::unsubscribe_id;
use super::session::Mqtt;
use super::version::ProtocolVersion;
use crate::connection::{Link, Shared};

/// Codes from here up say that a request failed (MQTT 5.0 §2.4).
const FIRST_FAILURE: u8 = 0x80;

impl<V: ProtocolVersion> Mqtt<V> {
    /// Ends a subscription as soon as those asked for before are ended.
    pub(super) fn end_subscription(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: usize,
        sink: &mut impl Sink,
    ) {
        let subscriptions = &link.config.subscriptions;
        if self.answered < subscriptions.len() {
            link.unsubscribed.remove(&index);
            return sink.unsubscribed(link.id, index, Err(Said::words("its subscriptions are not all answered")));
        }
        // To the server two subscriptions with one filter are one (MQTT 5.0 §3.8.4): it stays for the other.
        if link.listens_to().any(|other| subscriptions[other].filter == subscriptions[index].filter) {
            return sink.unsubscribed(link.id, index, Ok(()));
        }
        self.ending.push_back(index);
        if self.ending.len() == 1 {
            self.say_unsubscribe(link, shared);
        }
    }

    fn say_unsubscribe(&self, link: &mut Link, shared: &mut Shared) {
        let Some(index) = self.ending.front() else { return };
        let Link { config, outbox, .. } = link;
        let filters = [&*config.subscriptions[*index].filter];
        let unsubscribe = Unsubscribe {
            packet_id: unsubscribe_id(config.subscriptions.len()),
            properties: Properties::NONE,
            filters: TopicFilters::new(&filters),
        };
        outbox.append(&mut shared.pool, |out| {
            encode_unsubscribe(V::VERSION, &unsubscribe, out).expect("a filter that was subscribed to is not too long");
        });
    }

    /// The server's answer to an UNSUBSCRIBE.
    pub(super) fn on_unsuback(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        unsuback: &Unsuback<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let (id, codes) = (unsuback.packet_id, unsuback.codes);
        let is_awaited = id == unsubscribe_id(link.config.subscriptions.len()) && !self.ending.is_empty();
        let asked = usize::from(V::VERSION == Version::V5);
        if !is_awaited {
            return Err(Cause::Protocol(format!("UNSUBACK {id}, which answers nothing")));
        }
        if codes.len() != asked {
            return Err(Cause::Protocol(format!("UNSUBACK {id} has {} codes, not {asked}", codes.len())));
        }
        let failure = codes.first().copied().filter(|code| *code >= FIRST_FAILURE);
        if let Some(index) = self.ending.pop_front() {
            if failure.is_some() {
                link.unsubscribed.remove(&index);
            }
            let outcome = failure.map_or(Ok(()), |code| Err(Said::code(code, reason_name(code))));
            sink.unsubscribed(link.id, index, outcome);
        }
        self.say_unsubscribe(link, shared);
        Ok(())
    }
}
