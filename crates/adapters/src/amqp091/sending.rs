//! Outgoing messages: handed over, sent again, confirmed; and when the server wants none.

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::events::{Cause, Event, Reason, Sink};
use pubmark_protocol::header::LONGEST_TEXT;
use pubmark_protocol::outbox::Message;
use pubmark_protocol::requests::{self, OutgoingReply, REPLY};
use pubmark_wire::amqp091::{Confirm, Correlation, FRAME_EXTRA_BYTES, append_body, append_reply, encode_flow_ok};

use super::session::{Amqp091, CONFIRMED, PLAIN, level};
use crate::connection::{Blocked, InFlight, Link, Progress, Refusal, Shared};
use crate::payload;

/// Messages that the server is to confirm.
#[derive(Debug)]
pub(super) struct Confirms {
    pub(super) in_flight: InFlight,
    /// Their identifiers by the numbers that the server counts them by on this connection; 0 for one that is confirmed
    /// while an earlier one is not.
    unconfirmed: VecDeque<u16>,
    /// The number of the first of them.
    first: u64,
}

impl Confirms {
    pub(super) fn new(window: u16) -> Confirms {
        Confirms { in_flight: InFlight::new(window.max(1)), unconfirmed: VecDeque::new(), first: 1 }
    }

    /// For a new connection, on which the server counts from 1.
    pub(super) fn restart(&mut self) {
        self.unconfirmed.clear();
        self.first = 1;
    }

    /// How many messages, from the first on, a confirm covers, or the index of the one; `None` if none of them awaits it.
    fn place(&self, answer: Confirm) -> Option<usize> {
        let last = self.unconfirmed.len().checked_sub(1)?;
        if answer.tag == 0 && answer.multiple {
            return Some(last);
        }
        let place = usize::try_from(answer.tag.checked_sub(self.first)?).ok()?;
        (place <= last && (answer.multiple || self.unconfirmed[place] != 0)).then_some(place)
    }

    fn take_first(&mut self) -> Option<u16> {
        let id = self.unconfirmed.pop_front()?;
        self.first += 1;
        Some(id)
    }

    /// Drops from the front what is confirmed.
    fn drop_confirmed(&mut self) {
        while self.unconfirmed.front() == Some(&0) {
            self.take_first();
        }
    }
}

/// Where the server wants no messages at present.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PausedChannels {
    /// Nowhere (`connection.blocked`).
    pub(super) connection: bool,
    plain: bool,
    confirmed: bool,
}

impl PausedChannels {
    pub(super) fn any(self) -> bool {
        self.connection || self.plain || self.confirmed
    }

    fn on(self, channel: u16) -> bool {
        self.connection || if channel == CONFIRMED { self.confirmed } else { self.plain }
    }
}

impl Amqp091 {
    /// Appends a message; the refusal otherwise.
    pub(super) fn publish(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let place = usize::from(message.publication);
        let is_confirmed = self.publishes[place].channel() == CONFIRMED;
        let is_stopped = self.paused.on(if is_confirmed { CONFIRMED } else { PLAIN });
        if is_stopped || (is_confirmed && !self.confirms.in_flight.has_room()) {
            return Err(Refusal::Blocked(Blocked::Window));
        }
        let mut tag = 0;
        if is_confirmed {
            let qos = level(link.config.publications[place].qos);
            tag = self.confirms.in_flight.add(message, qos);
            self.confirms.unconfirmed.push_back(tag);
        }
        self.append(link, shared, message, tag, false);
        Ok(())
    }

    fn append(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing, tag: u16, repeated: bool) {
        let place = usize::from(message.publication);
        let payload_bytes = message.payload_bytes as usize;
        let publish = &self.publishes[place];
        let publication = &link.config.publications[place];
        let most_bytes = self.most_frame_bytes - FRAME_EXTRA_BYTES;
        let config = &shared.config;
        let asks = link.config.options.reply_topic.is_some();
        if asks {
            self.correlation_id.clear();
            requests::correlation_as_text(message.token(), &mut self.correlation_id);
        }
        let request = Correlation { reply_to: self.consumer.queue(), correlation_id: &self.correlation_id };
        let entry = Message { token: message.token(), timing: message.timing, tag, repeated, withheld: false };
        link.outbox.append_message(&mut shared.pool, entry, |out| {
            let mut header_at = None;
            if asks {
                publish.append_request(payload_bytes, request, out);
            } else if payload::has_properties(publication) {
                let mut space = [0; LONGEST_TEXT];
                let header = payload::header_text(config, publication, &message, &mut space);
                let headers = payload::properties(&publication.properties, header);
                let end = publish.append_with_headers(payload_bytes, headers, out);
                header_at = header.map(|header| end - header.len());
            } else {
                publish.append(payload_bytes, out);
            }
            let body_at = append_body(publish.channel(), payload_bytes, most_bytes, out, |out| {
                payload::append(config, publication, &message, out);
            });
            header_at.unwrap_or(body_at)
        });
    }

    /// Appends a reply, or returns the refusal: to the queue that the request named, with its correlation id.
    pub(super) fn publish_reply(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        answer: &OutgoingReply<'_>,
    ) -> Result<(), Refusal> {
        let is_confirmed = level(answer.qos) != Qos::BestEffort;
        let channel = if is_confirmed { CONFIRMED } else { PLAIN };
        if self.paused.on(channel) || (is_confirmed && !self.confirms.in_flight.has_room()) {
            return Err(Refusal::Blocked(Blocked::Window));
        }
        // A correlation that is not text cannot be encoded; our own requesters always send text.
        let Ok(correlation_id) = std::str::from_utf8(answer.to.correlation) else { return Err(Refusal::TooLarge(0)) };
        let payload_bytes = payload::reply_bytes(answer);
        let mut tag = 0;
        if is_confirmed {
            tag = self.confirms.in_flight.add(answer.message(), level(answer.qos));
            self.confirms.unconfirmed.push_back(tag);
        }
        let most_bytes = self.most_frame_bytes - FRAME_EXTRA_BYTES;
        let entry = Message { token: answer.token(), timing: answer.timing, tag, repeated: false, withheld: false };
        let config = &shared.config;
        let correlation = Correlation { reply_to: "", correlation_id };
        link.outbox.append_message(&mut shared.pool, entry, |out| {
            append_reply(channel, answer.to.address, is_confirmed, payload_bytes, correlation, out);
            append_body(channel, payload_bytes, most_bytes, out, |out| payload::append_reply(config, answer, out))
        });
        Ok(())
    }

    /// Sends messages of an earlier connection again, as far as the window allows.
    pub(super) fn send_held(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        while !self.paused.on(CONFIRMED)
            && let Some(tag) = self.confirms.in_flight.next_held()
        {
            // A reply cannot be made again; sessions that reply are never persistent, so there is none here.
            let entry = self.confirms.in_flight.get(tag).copied();
            let Some(entry) = entry.filter(|entry| entry.message.publication != REPLY) else { continue };
            self.confirms.unconfirmed.push_back(tag);
            self.append(link, shared, entry.message, tag, true);
            sink.event(link.id, Event::Resent(entry.token()));
        }
    }

    /// The server refuses messages.
    pub(super) fn on_nack(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        answer: Confirm,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        self.on_response(
            link,
            shared,
            answer,
            Err(Reason::words("the server took no responsibility for it (basic.nack)")),
            sink,
        )
    }

    /// The server confirms messages, or refuses them.
    pub(super) fn on_response(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        answer: Confirm,
        outcome: Result<(), Reason>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let not_awaited = || Cause::Protocol(format!("an answer to message {}, which does not await it", answer.tag));
        let place = self.confirms.place(answer).ok_or_else(not_awaited)?;
        if answer.multiple {
            for _ in 0..=place {
                if let Some(id) = self.confirms.take_first().filter(|id| *id != 0) {
                    self.settle(link, id, &outcome, sink).ok_or_else(not_awaited)?;
                }
            }
        } else {
            let id = std::mem::take(&mut self.confirms.unconfirmed[place]);
            self.settle(link, id, &outcome, sink).ok_or_else(not_awaited)?;
        }
        self.confirms.drop_confirmed();
        self.send_held(link, shared, sink);
        Ok(())
    }

    /// A message is confirmed or refused; `None` if it was not even written.
    fn settle(&mut self, link: &Link, id: u16, outcome: &Result<(), Reason>, sink: &mut impl Sink) -> Option<()> {
        let in_flight = &mut self.confirms.in_flight;
        in_flight.get(id).filter(|entry| entry.progress == Progress::Written)?;
        let entry = in_flight.remove(id)?;
        sink.event(link.id, Event::Acknowledged { token: entry.token(), outcome: outcome.clone() });
        Some(())
    }

    /// The server stops or resumes the flow of messages on a channel; we acknowledge that (§1.5.2.3).
    pub(super) fn on_flow(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        channel: u16,
        active: bool,
        sink: &mut impl Sink,
    ) {
        *(if channel == CONFIRMED { &mut self.paused.confirmed } else { &mut self.paused.plain }) = !active;
        link.respond(shared, |out| encode_flow_ok(channel, active, out));
        self.send_held(link, shared, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Confirms {
        let mut confirms = Confirms::new(20);
        confirms.unconfirmed.extend([7, 8, 9]);
        confirms
    }

    fn answer(tag: u64, multiple: bool) -> Confirm {
        Confirm { tag, multiple }
    }

    #[test]
    fn an_answer_is_about_messages_that_await_it_or_none() {
        let mut confirms = three();
        assert_eq!(confirms.place(answer(2, false)), Some(1));
        assert_eq!(confirms.place(answer(3, true)), Some(2));
        assert_eq!(confirms.place(answer(0, true)), Some(2));
        for (tag, multiple) in [(0, false), (4, false), (4, true), (u64::MAX, true)] {
            assert_eq!(confirms.place(answer(tag, multiple)), None, "{tag}");
        }
        confirms.unconfirmed[1] = 0;
        assert_eq!(confirms.place(answer(2, false)), None, "confirmed already");
        assert_eq!(confirms.place(answer(2, true)), Some(1), "the first one was not");
        assert_eq!(confirms.take_first(), Some(7));
        confirms.drop_confirmed();
        assert_eq!((confirms.first, confirms.unconfirmed.len()), (3, 1));
        assert_eq!(confirms.place(answer(2, true)), None);
        confirms.restart();
        assert_eq!(confirms.place(answer(0, true)), None);
        assert_eq!(confirms.first, 1);
    }
}
