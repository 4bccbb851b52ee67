//! The server's messages to our inbox: responses to requests, acknowledgements of messages, confirmations of acknowledgements.

use pubmark_protocol::events::{Cause, Event, Reason, Sink};
use pubmark_wire::nats::Message;
use pubmark_wire::nats::jetstream::ApiResponse;

use super::session::{JetStream, Step};
use crate::connection::{Link, Progress, Shared};

/// The server's number of the error that there is no such consumer (`JSConsumerNotFoundErr`).
const CONSUMER_NOT_FOUND: u32 = 10_014;

impl JetStream {
    /// Handles a message to our inbox.
    pub(super) fn on_response(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let awaits_none = || Cause::Protocol(format!("an unexpected response on `{}`", message.subject));
        let (kind, number) = self.of_inbox(message.subject).ok_or_else(awaits_none)?;
        match (kind, self.step) {
            ("s", Step::Streams(left)) => self.on_stream(link, shared, message, (number, left), sink),
            ("i", Step::Consumers(left)) => self.on_consumer_info(link, shared, message, left, sink),
            ("x", Step::Deletions(left)) => self.on_deleted(link, shared, message, left, sink),
            ("c", Step::Ready) => self.on_consumer(link, shared, message, number, sink),
            ("p", Step::Ready) => self.on_published(link, shared, message, number, sink),
            // A message's acknowledgement is confirmed; `number` holds listener and number in the stream.
            ("k", Step::Ready) => {
                let confirmed = message.subject.rsplit('.').nth(1).and_then(|listener| listener.parse::<usize>().ok());
                let listener = confirmed.ok_or_else(awaits_none)?;
                // A status, such as 503 for no responders, confirms nothing: a server that is being stopped sends it, and may send the
                // message once more after its start. That the consumer was deleted has a report of its own.
                if status(message).is_none() {
                    self.unconfirmed.remove(&(listener, number));
                }
                Ok(())
            }
            _ => Err(awaits_none()),
        }
    }

    /// Kind and last number of a subject of our inbox, as [`JetStream::inbox`] makes it.
    fn of_inbox<'a>(&self, subject: &'a str) -> Option<(&'a str, u64)> {
        let ours = subject.strip_prefix(self.own.as_str())?.strip_prefix(".a.")?;
        let (kind, _) = ours.split_once('.')?;
        Some((kind, ours.rsplit('.').next()?.parse().ok()?))
    }

    fn on_stream(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        (number, left): (u64, usize),
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let answer = read(message)?.map_err(Cause::Refused)?;
        let Some(stream) = usize::try_from(number).ok().and_then(|number| self.streams.values_mut().nth(number)) else {
            return Err(Cause::Protocol(format!("an answer about stream {number}, which does not exist")));
        };
        self.is_retained &= stream.created == answer.created;
        stream.created = answer.created;
        self.step = Step::Streams(left.saturating_sub(1));
        if left <= 1 {
            self.on_streams(link, shared, sink);
        }
        Ok(())
    }

    fn on_consumer_info(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        left: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        self.is_retained &= read(message)?.is_ok();
        self.step = Step::Consumers(left.saturating_sub(1));
        if left <= 1 {
            self.open(link, shared, sink);
        }
        Ok(())
    }

    /// A consumer is deleted, or there was none.
    fn on_deleted(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        left: usize,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let error = ApiResponse::read(message.payload).ok().and_then(|answer| answer.error);
        if error.is_none_or(|error| error.err_code != CONSUMER_NOT_FOUND) {
            read(message)?.map_err(Cause::Refused)?;
        }
        self.step = Step::Deletions(left.saturating_sub(1));
        if left <= 1 {
            self.open(link, shared, sink);
        }
        Ok(())
    }

    fn on_consumer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        index: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let answer = read(message)?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(listener) = self.listeners.get_mut(index) else {
            return Err(Cause::Protocol(format!("an answer about consumer {index}, which does not exist")));
        };
        listener.is_requested = false;
        listener.is_made = answer.is_ok();
        let qos = listener.qos;
        self.is_retained = link.config.persistent && self.all_made();
        let granted = answer.map(|consumer| {
            if let Some(name) = consumer.name {
                link.respond(shared, |out| self.watch(index, &name, out));
            }
            qos
        });
        sink.event(link.id, Event::Subscribed { index, granted });
        Ok(())
    }

    /// A consumer is gone, by the server's words: nothing more will come. Reported once.
    pub(super) fn on_revoked(&mut self, link: &Link, index: usize, words: String, sink: &mut impl Sink) {
        let was_made = self.listeners.get_mut(index).is_some_and(|listener| std::mem::take(&mut listener.is_made));
        if was_made {
            self.is_retained = false;
            sink.event(link.id, Event::Subscribed { index, granted: Err(Reason::words(words)) });
        }
    }

    fn on_published(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        tag: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let outcome = read(message)?.map(|_| ());
        let tag = u16::try_from(tag).unwrap_or_default();
        let is_awaited = self.in_flight.get(tag).is_some_and(|entry| entry.progress == Progress::Written);
        let Some(sent) = self.remove(tag).filter(|_| is_awaited) else {
            return Err(Cause::Protocol(format!("an acknowledgement of message {tag}, which awaits none")));
        };
        let acknowledged = outcome.is_ok().then_some(sent);
        sink.event(link.id, Event::Acknowledged { token: sent.token(), outcome });
        let subject = &self.subjects[usize::from(sent.publication)];
        if self.refused.contains_key(&**subject) {
            let subject = subject.clone();
            self.settle_refused(link, &subject, acknowledged, sink);
        }
        self.send_held(link, shared, sink);
        Ok(())
    }
}

/// Decodes a response: accepted, or refused with a reason. A status without a body is a refusal: there is no responder.
fn read(message: &Message<'_>) -> Result<Result<ApiResponse, Reason>, Cause> {
    if message.payload.is_empty() {
        let words = match status(message).unwrap_or_default() {
            "503" => "503: no responders: no stream stores the subject, or JetStream is disabled",
            words => words,
        };
        return Ok(Err(Reason::words(words.to_owned())));
    }
    let answer =
        ApiResponse::read(message.payload).map_err(|why| Cause::Protocol(format!("an invalid response: {why}")))?;
    Ok(match &answer.error {
        None => Ok(answer),
        Some(error) => Err(Reason::words(format!("{} ({})", error.description, error.err_code))),
    })
}

/// A status of the server's instead of a message, such as `409 Consumer Deleted`: code and words, which are in the line of the
/// headers' version.
pub(super) fn status<'a>(message: &Message<'a>) -> Option<&'a str> {
    if !message.payload.is_empty() {
        return None;
    }
    let line = message.headers.split(|byte| *byte == b'\r').next()?.strip_prefix(b"NATS/1.0")?;
    std::str::from_utf8(line).ok().map(str::trim).filter(|words| !words.is_empty())
}
