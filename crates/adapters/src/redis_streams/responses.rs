//! Responses in their order: to HELLO, to groups, to messages.

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink, Token};
use pubmark_wire::resp::{Reply, encode_command};

use super::session::{Awaited, RedisStreams};
use crate::connection::{Dialect as _, Link, Progress, Sending, Shared, Times};
use crate::redis::opening;

impl RedisStreams {
    pub(super) fn on_reply(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        reply: &Reply<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        // The response to PING, which no other command has; and unsolicited pushes.
        if matches!(reply, Reply::Simple("PONG") | Reply::Push(_)) {
            return Ok(());
        }
        let Some(awaited) = self.awaited.pop_front() else {
            return Err(Cause::Protocol(format!("{} that answers nothing", kind(reply))));
        };
        match (awaited, reply) {
            (Awaited::Hello, Reply::Aggregate(_)) => {
                self.create_groups(link, shared, sink);
                Ok(())
            }
            (Awaited::Hello, Reply::Error(words)) => Err(opening::refusal(words)),
            // A stream that does not exist has no group to delete; any other error is reported when the group is created.
            (Awaited::Destroyed, Reply::Integer(_) | Reply::Error(_)) => Ok(()),
            (Awaited::Group(stream), Reply::Simple(_) | Reply::Error(_)) => {
                self.on_group(link, stream, reply)?;
                if self.answered == self.asked {
                    self.open(link, shared, sink);
                }
                Ok(())
            }
            (Awaited::Added { tag, token }, Reply::Bulk(_)) => self.on_added(link, shared, (tag, token), Ok(()), sink),
            (Awaited::Added { tag, token }, Reply::Error(words)) if !opening::ends_connection(words) => {
                self.on_added(link, shared, (tag, token), Err(Reason::words((*words).to_owned())), sink)
            }
            (Awaited::Read { again, most }, Reply::Aggregate(values)) => {
                let entries = self.on_entries(link, shared, values, times, sink)?;
                if again || entries >= most {
                    // The server may have more, which waits for the next read.
                    link.note_part();
                }
                self.read(link, shared, again && entries > 0);
                Ok(())
            }
            (Awaited::Read { .. }, Reply::Null) => {
                self.read(link, shared, false);
                Ok(())
            }
            (Awaited::Acknowledged, Reply::Integer(_)) => Ok(()),
            (_, Reply::Error(words)) => {
                let too_large = words.contains("invalid bulk length");
                Err(Cause::Server { reason: Reason::words((*words).to_owned()), too_large })
            }
            (awaited, other) => Err(Cause::Protocol(format!("{} in answer to {awaited:?}", kind(other)))),
        }
    }

    /// Does the session begin with new groups? A session that is not persistent does so on each connection, a persistent one on its
    /// first connection in a run: groups that exist then are an earlier run's, with its messages.
    fn begins_anew(&self, link: &Link) -> bool {
        !link.config.persistent || !self.was_open
    }

    /// The log-in was accepted: requests groups. A persistent session has a group on the streams it writes to, too, which shows
    /// whether the server still has the session.
    fn create_groups(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let begins_anew = self.begins_anew(link);
        let listed = if link.config.persistent { self.streams.len() } else { self.read };
        (self.asked, self.answered, self.found) = (listed, 0, 0);
        if self.asked == 0 {
            return self.open(link, shared, sink);
        }
        let awaited = &mut self.awaited;
        link.outbox.append(&mut shared.pool, |out| {
            let group = self.group.as_bytes();
            for (index, key) in self.streams[..listed].iter().enumerate() {
                if begins_anew {
                    encode_command(&[b"XGROUP", b"DESTROY", key.as_bytes(), group], out);
                    awaited.push_back(Awaited::Destroyed);
                }
                encode_command(&[b"XGROUP", b"CREATE", key.as_bytes(), group, b"$", b"MKSTREAM"], out);
                awaited.push_back(Awaited::Group(index));
            }
        });
    }

    fn on_group(&mut self, link: &Link, stream: usize, reply: &Reply<'_>) -> Result<(), Cause> {
        self.answered += 1;
        let refused_before = self.refused.iter().position(|(refused, _)| *refused == stream);
        if let Some(index) = refused_before {
            self.refused.swap_remove(index);
        }
        let Reply::Error(words) = reply else { return Ok(()) };
        let reason = Reason::words((*words).to_owned());
        match words.starts_with("BUSYGROUP") {
            true if !self.begins_anew(link) && refused_before.is_none() => self.found += 1,
            // One that could not be deleted would deliver what others left in it, on a later connection, too.
            _ if stream < self.read => self.refused.push((stream, reason)),
            // No subscription can be refused: the session cannot be persistent.
            _ => return Err(Cause::Refused(reason)),
        }
        Ok(())
    }

    /// Every group has a response: the session is open.
    fn open(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let begins_anew = self.begins_anew(link);
        self.was_open = true;
        let session_present = !begins_anew && self.asked > 0 && self.found == self.asked;
        let keep_alive_s = shared.config.connections.keep_alive_s;
        link.opened(shared, keep_alive_s);
        sink.event(link.id, Event::Connected(Connected { session_present, ..Connected::default() }));
        if session_present {
            self.in_flight.hold_all();
        } else {
            self.forget(link.id, sink);
            self.report_subscriptions(link, sink);
        }
        self.send_held(link, shared, sink);
        // If the server has lost some of the groups, the others still have what was read and not acknowledged.
        self.read(link, shared, !begins_anew);
    }

    /// Reports the outcome of every subscription, once for each session of the server's.
    fn report_subscriptions(&self, link: &Link, sink: &mut impl Sink) {
        for (index, listener) in self.listeners.iter().enumerate() {
            let refused = self.refused.iter().find(|(stream, _)| *stream == listener.stream);
            let granted = refused.map_or(Ok(listener.qos), |(_, reason)| Err(reason.clone()));
            sink.event(link.id, Event::Subscribed { index, granted });
        }
    }

    fn on_added(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (tag, token): (u16, Token),
        outcome: Result<(), Reason>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if tag == 0 {
            // At QoS 0 no response is awaited; but a refused message must not count as sent and lost.
            if outcome.is_err() {
                sink.event(link.id, Event::Acknowledged { token, outcome });
            }
            return Ok(());
        }
        let is_awaited = self.in_flight.get(tag).is_some_and(|entry| entry.progress == Progress::Written);
        let Some(entry) = self.in_flight.remove(tag).filter(|_| is_awaited) else {
            return Err(Cause::Protocol("an answer to XADD before all of it was written".to_owned()));
        };
        sink.event(link.id, Event::Acknowledged { token: entry.token(), outcome });
        self.send_held(link, shared, sink);
        Ok(())
    }

    /// Sends messages of an earlier connection again, as far as the window allows.
    fn send_held(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        while let Some(tag) = self.in_flight.next_held() {
            let Some(entry) = self.in_flight.get(tag).copied() else { continue };
            debug_assert!(entry.qos > Qos::BestEffort, "others are not kept");
            let payload_bytes = entry.message.payload_bytes as usize;
            self.append(link, shared, entry.message, Sending { tag, payload_bytes, repeated: true, header_before: 0 });
            sink.event(link.id, Event::Resent(entry.token()));
        }
    }
}

/// The kind of a response; its contents may be a message of any size.
fn kind(reply: &Reply<'_>) -> &'static str {
    match reply {
        Reply::Simple(_) => "a word",
        Reply::Error(_) => "an error",
        Reply::Integer(_) => "a number",
        Reply::Bulk(_) => "a string",
        Reply::Null => "nothing",
        Reply::Aggregate(_) => "a list",
        Reply::Push(_) => "a push",
        Reply::Other => "something else",
    }
}
