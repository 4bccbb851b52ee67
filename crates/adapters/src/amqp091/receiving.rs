//! Messages of the server's: a method, a header, and a body in one frame or several; and their acknowledgement.
//!
//! Frames of other channels may stand between those of a message (§4.2.6), so each frame is a packet of its own and the
//! session knows which part of a message comes next. A body in one frame, the usual one, is handed on where it was read.

use pubmark_model::payload::HEADER_PROPERTY;
use pubmark_protocol::events::{Cause, Delivery, Event, Sink};
use pubmark_protocol::header::LONGEST_TEXT;
use pubmark_protocol::requests::{self, ReplyTo};
use pubmark_wire::amqp091::{Deliver, encode_ack, read_content_header, read_correlation, read_header};

use super::cause::broken;
use super::session::{Amqp091, PLAIN};
use crate::connection::{Link, Shared, Times};

/// Messages delivered until they are acknowledged even if more are there to be read; well below what the server may send
/// ahead.
const MOST_UNACKNOWLEDGED: u32 = 100;

/// Which part of a message comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expected {
    /// The first one.
    #[default]
    Method,
    /// Its header.
    Header,
    /// Its body, or the rest of it, of N bytes as a whole.
    Body(usize),
}

/// State of the server's messages.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    expected: Expected,
    /// Number of the message that is being received, or of the last one.
    tag: u64,
    /// Number of the last message delivered.
    delivered: u64,
    /// Parts of a body in several frames.
    body: Vec<u8>,
    /// Messages delivered and not acknowledged.
    unacknowledged: u32,
    /// Of the current message, if it is a request or a reply.
    reply_to: String,
    correlation_id: String,
    /// Of the message that is being received: the text of its header that is ours, with `has_header`.
    header: Vec<u8>,
    has_header: bool,
}

impl Incoming {
    /// Is a part of a message still to come?
    pub(super) fn is_unfinished(&self) -> bool {
        self.expected != Expected::Method
    }
}

impl Amqp091 {
    /// A message begins.
    pub(super) fn on_deliver(&mut self, deliver: &Deliver) -> Result<(), Cause> {
        if !self.consumer.is_wanted() {
            return Err(Cause::Protocol("a message for a consumer that does not exist".to_owned()));
        }
        self.incoming.tag = deliver.tag;
        self.incoming.expected = Expected::Header;
        Ok(())
    }

    pub(super) fn on_header(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        payload: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.incoming.expected != Expected::Header {
            return Err(Cause::Protocol("a content header that belongs to no message".to_owned()));
        }
        let body_bytes = read_content_header(payload).map_err(broken)?;
        // Another program's correlation may not be text; such a message is neither a request nor a reply of this run.
        let correlation = read_correlation(payload).unwrap_or_default();
        self.incoming.reply_to.clear();
        self.incoming.reply_to.push_str(correlation.reply_to);
        self.incoming.correlation_id.clear();
        self.incoming.correlation_id.push_str(correlation.correlation_id);
        let header = read_header(payload, HEADER_PROPERTY);
        self.incoming.has_header = header.is_some();
        self.incoming.header.clear();
        // A longer one is a stranger's.
        self.incoming.header.extend(header.into_iter().flatten().take(LONGEST_TEXT + 1));
        let most = shared.config.connections.maximum_packet_bytes;
        match usize::try_from(body_bytes) {
            Ok(0) => self.deliver(link, shared, &[], times, sink),
            Ok(bytes) if bytes <= most => self.incoming.expected = Expected::Body(bytes),
            _ => return Err(Cause::Protocol(format!("message of {body_bytes} B exceeds the limit of {most} B"))),
        }
        Ok(())
    }

    pub(super) fn on_body(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        payload: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let Expected::Body(bytes) = self.incoming.expected else {
            return Err(Cause::Protocol("a body that belongs to no message".to_owned()));
        };
        let body = &mut self.incoming.body;
        let missing = bytes - body.len();
        if payload.is_empty() || payload.len() > missing {
            return Err(Cause::Protocol(format!("{} B of a body of which {missing} B are missing", payload.len())));
        }
        if payload.len() == bytes {
            self.deliver(link, shared, payload, times, sink);
            return Ok(());
        }
        if body.is_empty() {
            body.reserve_exact(bytes);
        }
        body.extend_from_slice(payload);
        if payload.len() == missing {
            let body = std::mem::take(body);
            self.deliver(link, shared, &body, times, sink);
        }
        Ok(())
    }

    /// A message is whole.
    fn deliver(&mut self, link: &mut Link, shared: &mut Shared, body: &[u8], times: Times, sink: &mut impl Sink) {
        self.incoming.expected = Expected::Method;
        self.incoming.delivered = self.incoming.tag;
        self.report_message(link, body, times, sink);
        if self.consumer.acknowledges() {
            self.incoming.unacknowledged += 1;
            if self.incoming.unacknowledged >= MOST_UNACKNOWLEDGED {
                self.acknowledge(link, shared);
            }
        }
    }

    /// Reports a message by its kind: a request, a reply, or neither.
    fn report_message(&self, link: &Link, body: &[u8], times: Times, sink: &mut impl Sink) {
        let Incoming { reply_to, correlation_id, header, has_header, .. } = &self.incoming;
        let delivery = Delivery { header: has_header.then_some(header), ..times.delivery(body, false) };
        if !reply_to.is_empty() {
            let reply_to = ReplyTo { address: reply_to, correlation: correlation_id.as_bytes() };
            sink.event(link.id, Event::Requested { reply_to, delivery });
        } else if link.config.options.reply_topic.is_some() {
            sink.event(link.id, Event::Replied { request: requests::correlated_by_text(correlation_id), delivery });
        } else {
            sink.event(link.id, Event::Delivered(delivery));
        }
    }

    /// Acknowledges all that was delivered.
    pub(super) fn acknowledge(&mut self, link: &mut Link, shared: &mut Shared) {
        let several = match std::mem::take(&mut self.incoming.unacknowledged) {
            0 => return,
            count => count > 1,
        };
        let tag = self.incoming.delivered;
        link.respond(shared, |out| encode_ack(PLAIN, tag, several, out));
    }
}
