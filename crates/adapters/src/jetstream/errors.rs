//! The server's errors. Those about a right that the session lacks leave the connection.
//!
//! An error about a message names its subject, not the message. It comes when the server would have passed the message to its
//! stream, and the stream acknowledges messages in their order. So of the messages to a subject that have no acknowledgement, all
//! were refused if there are as many errors; otherwise those that were sent before one with an acknowledgement.

use std::collections::BTreeSet;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::events::{Cause, Event, Reason, Sink};
use pubmark_wire::nats::jetstream::{ACK_SUBJECTS, CONSUMER_DELETED, create_consumer_subject};

use super::session::JetStream;
use crate::connection::{Link, Phase, Progress, Shared};
use crate::nats::opening;

/// Start of a server's error about a message to a subject that may not be published to.
const FORBIDDEN: &str = "permissions violation for publish to \"";

/// Errors about messages to one subject, of which it is not known yet which ones they are.
pub(super) struct RefusedMessages {
    /// Number of them.
    count: usize,
    /// The server's words.
    reason: Reason,
    /// Messages to the subject that were written and await an acknowledgement; those of a publication in their order. It is kept from
    /// the first error on: a search of the whole window for each error and each acknowledgement would be quadratic.
    awaiting: BTreeSet<Awaiting>,
}

/// A message that awaits its acknowledgement: publication, sequence number, tag.
type Awaiting = (u16, u32, u16);

impl JetStream {
    /// Handles an error; the cause if it ends the connection.
    pub(super) fn on_error(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        words: &str,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        // Without the right to these reports, a consumer that is deleted goes unnoticed; everything else works.
        if opening::forbidden_subject(words).is_some_and(|subject| subject.starts_with(CONSUMER_DELETED)) {
            if !std::mem::replace(&mut self.lacks_reports, true) {
                sink.event(link.id, Event::NotPermitted("reports of deleted consumers"));
            }
            return Ok(());
        }
        if link.phase != Phase::Open || !opening::refuses_message(words) {
            return Err(opening::cause(link.phase, words));
        }
        let subject = forbidden_subject(words).unwrap_or_default();
        if self.subjects.iter().any(|own| &**own == subject) {
            self.on_message_refused(link, subject, words, sink);
            self.send_held(link, shared, sink);
        } else if subject.starts_with(ACK_SUBJECTS) {
            sink.event(link.id, Event::NotPermitted("acknowledging messages"));
        } else if let Some(index) = self.requested_consumer(link, subject) {
            self.listeners[index].is_requested = false;
            sink.event(link.id, Event::Subscribed { index, granted: Err(Reason::words(words.to_owned())) });
        } else {
            sink.event(link.id, Event::NotPermitted("publishing to a subject"));
        }
        Ok(())
    }

    /// A message to this subject was not passed on.
    fn on_message_refused(&mut self, link: &Link, subject: &str, words: &str, sink: &mut impl Sink) {
        // Where the session also sends messages of level 0 to the subject, an error may be about one of those.
        let mut publications = self.subjects.iter().zip(&link.config.publications);
        let has_level_0 = publications.any(|(own, one)| &**own == subject && one.qos == Qos::BestEffort);
        if !has_level_0 && !self.refused.contains_key(subject) {
            let (reason, awaiting) = (Reason::words(words.to_owned()), self.search_awaiting(subject));
            self.refused.insert(subject.into(), RefusedMessages { count: 0, reason, awaiting });
        }
        match self.refused.get_mut(subject) {
            Some(refused) if !refused.awaiting.is_empty() => refused.count += 1,
            // Of those all that is known is their number.
            _ => return sink.event(link.id, Event::NotPermitted("publishing to a subject")),
        }
        self.settle_refused(link, subject, None, sink);
    }

    /// Reports those of the messages to a subject that are known to be refused now that another one has an outcome: `acknowledged` if
    /// the stream has it.
    pub(super) fn settle_refused(
        &mut self,
        link: &Link,
        subject: &str,
        acknowledged: Option<Outgoing>,
        sink: &mut impl Sink,
    ) {
        let Some(refused) = self.refused.get_mut(subject) else { return };
        let awaiting = &refused.awaiting;
        let known: Vec<Awaiting> = match acknowledged {
            _ if awaiting.len() <= refused.count => awaiting.iter().copied().collect(),
            Some(one) => {
                let before = (one.publication, 0, 0)..(one.publication, one.sequence, 0);
                awaiting.range(before).take(refused.count).copied().collect()
            }
            None => vec![],
        };
        if known.is_empty() {
            return;
        }
        refused.count -= known.len();
        let reason = refused.reason.clone();
        for message in known.into_iter().filter_map(|(_, _, tag)| self.remove(tag)) {
            sink.event(link.id, Event::Acknowledged { token: message.token(), outcome: Err(reason.clone()) });
        }
    }

    /// The last byte of a message in flight was written.
    pub(super) fn note_written(&mut self, tag: u16) {
        self.in_flight.written(tag);
        let Some(Outgoing { publication, sequence, .. }) = self.in_flight.get(tag).map(|entry| entry.message) else {
            return;
        };
        if let Some(refused) = self.refused.get_mut(&*self.subjects[usize::from(publication)]) {
            refused.awaiting.insert((publication, sequence, tag));
        }
    }

    /// Removes a message from those in flight.
    pub(super) fn remove(&mut self, tag: u16) -> Option<Outgoing> {
        let message = self.in_flight.remove(tag)?.message;
        let Outgoing { publication, sequence, .. } = message;
        if let Some(refused) = self.refused.get_mut(&*self.subjects[usize::from(publication)]) {
            refused.awaiting.remove(&(publication, sequence, tag));
        }
        Some(message)
    }

    /// Searches the messages in flight for those to a subject that were written and await an acknowledgement.
    fn search_awaiting(&mut self, subject: &str) -> BTreeSet<Awaiting> {
        let mut found = BTreeSet::new();
        for tag in 1..=self.highest_tag {
            let Some(entry) = self.in_flight.get(tag) else { continue };
            let Outgoing { publication, sequence, .. } = entry.message;
            if entry.progress == Progress::Written && &*self.subjects[usize::from(publication)] == subject {
                found.insert((publication, sequence, tag));
            }
        }
        found
    }

    /// The first consumer that was requested at this subject and that the server has not responded about.
    fn requested_consumer(&self, link: &Link, subject: &str) -> Option<usize> {
        (0..self.listeners.len()).find(|index| {
            let listener = &self.listeners[*index];
            let durable = link.config.persistent.then(|| self.durable(*index));
            listener.is_requested && create_consumer_subject(&listener.stream, durable.as_deref()) == subject
        })
    }
}

/// The subject that we may not publish to, if that is what an error is about.
fn forbidden_subject(words: &str) -> Option<&str> {
    let (start, rest) = words.split_at_checked(FORBIDDEN.len())?;
    rest.split('"').next().filter(|_| start.eq_ignore_ascii_case(FORBIDDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_a_message_names_its_subject() {
        for (words, subject) in [
            ("Permissions Violation for Publish to \"level.a\"", Some("level.a")),
            ("permissions violation for publish to \"$JS.ACK.S.C.1.2.3.4.5\"", Some("$JS.ACK.S.C.1.2.3.4.5")),
            ("Permissions Violation for Publish to level.a", None),
            ("Permissions Violation for Publish with Reply of \"level.a\"", None),
            ("Permissions Violation for Subscription to \"level.a\"", None),
            ("Invalid Publish Subject", None),
            ("", None),
        ] {
            assert_eq!(forbidden_subject(words), subject, "{words}");
        }
    }
}
