//! From a log-in to an open session: streams, the state of a persistent session, consumers.

use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::DeliveryWindow;
use pubmark_protocol::events::{Connected, Event, Reason, Sink};
use pubmark_wire::nats::encode_subscribe;
use pubmark_wire::nats::jetstream::{
    Consumer, CreateConsumer, Stream, consumer_deleted_subject, consumer_info_subject, delete_consumer_subject,
    encode_empty_request, encode_request,
};

use super::session::{INBOX, JetStream, Step, all_headers_bytes};
use crate::connection::{Dialect as _, Link, Shared};

/// Most unacknowledged messages of a consumer whose subscriber takes no time over them.
pub(super) const MAX_ACK_PENDING: u32 = 65_536;

/// Time until a message that was not acknowledged is sent again: what was pushed into a connection that had ended. The server's
/// own 30 s are longer than most runs wait for late messages.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(5);

impl JetStream {
    /// The log-in was accepted: requests the streams.
    pub(super) fn on_pong(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        if self.step != Step::LogIn {
            return;
        }
        self.step = Step::Streams(self.streams.len());
        if self.streams.is_empty() {
            return self.on_streams(link, shared, sink);
        }
        link.outbox.append(&mut shared.pool, |out| {
            encode_subscribe(&format!("{}.a.>", self.own), None, INBOX, out);
            for (number, (name, kept)) in (0..).zip(&self.streams) {
                let storage = self.storage.name();
                let stream = Stream { name, subjects: &kept.subjects, retention: "interest", storage };
                encode_request(&stream.create_subject(), &self.inbox("s", number), &stream, out);
            }
        });
    }

    /// All streams exist. Checks whether consumers of a persistent session still exist, or deletes those of an earlier run.
    pub(super) fn on_streams(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        if link.config.persistent && !self.was_open && !self.listeners.is_empty() {
            return self.delete_consumers(link, shared);
        }
        if !self.is_retained || self.listeners.is_empty() {
            return self.open(link, shared, sink);
        }
        self.step = Step::Consumers(self.listeners.len());
        link.outbox.append(&mut shared.pool, |out| {
            for (index, listener) in self.listeners.iter().enumerate() {
                let subject = consumer_info_subject(&listener.stream, &self.durable(index));
                encode_empty_request(&subject, &self.inbox("i", index as u64), out);
            }
        });
    }

    /// Deletes the consumers of a persistent session that was never open. Those that exist are an earlier run's, with its messages: the
    /// request to create the same one would change nothing.
    fn delete_consumers(&mut self, link: &mut Link, shared: &mut Shared) {
        self.step = Step::Deletions(self.listeners.len());
        link.outbox.append(&mut shared.pool, |out| {
            for (index, listener) in self.listeners.iter().enumerate() {
                let subject = delete_consumer_subject(&listener.stream, &self.durable(index));
                encode_empty_request(&subject, &self.inbox("x", index as u64), out);
            }
        });
    }

    /// All responses have arrived: the session is open.
    pub(super) fn open(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        self.step = Step::Ready;
        self.was_open = true;
        let keep_alive_s = shared.config.connections.keep_alive_s;
        link.opened(shared, keep_alive_s);
        let session_present = self.is_retained;
        sink.event(link.id, Event::Connected(Connected { session_present, ..self.opening.connected() }));
        if session_present {
            self.in_flight.hold_all();
        } else {
            self.forget(link.id, sink);
        }
        self.is_retained = link.config.persistent && self.all_made();
        self.listen(link, shared, !session_present);
        self.send_held(link, shared, sink);
    }

    /// Subscribes to what consumers send, and makes the consumers if they are to be made.
    fn listen(&mut self, link: &mut Link, shared: &mut Shared, makes: bool) {
        let persistent = link.config.persistent;
        self.listeners.iter_mut().for_each(|listener| listener.is_requested = makes);
        let window = self.window(link);
        // The server reads a signed number.
        let ack_wait_ns = i64::try_from(window.redelivers_after.as_nanos()).unwrap_or(i64::MAX) as u64;
        link.outbox.append(&mut shared.pool, |out| {
            for (index, listener) in self.listeners.iter().enumerate() {
                let deliver_subject = self.delivery(index, persistent);
                encode_subscribe(&deliver_subject, None, INBOX + 1 + index as u64, out);
                if !makes {
                    self.watch(index, &self.durable(index), out);
                    continue;
                }
                let durable = persistent.then(|| self.durable(index));
                let several = listener.subjects.len() > 1;
                let is_acknowledged = listener.qos != Qos::BestEffort;
                let create = CreateConsumer {
                    stream_name: &listener.stream,
                    config: Consumer {
                        durable_name: durable.as_deref(),
                        deliver_subject: &deliver_subject,
                        filter_subject: listener.subjects.first().map(String::as_str).filter(|_| !several),
                        filter_subjects: several.then_some(&listener.subjects),
                        deliver_policy: "new",
                        ack_policy: if is_acknowledged { "explicit" } else { "none" },
                        ack_wait: is_acknowledged.then_some(ack_wait_ns),
                        max_ack_pending: is_acknowledged.then_some(window.messages),
                    },
                };
                encode_request(&create.create_subject(), &self.inbox("c", index as u64), &create, out);
            }
        });
    }

    /// How far the server sends ahead of the acknowledgements of each consumer. A message that the subscriber has not begun waits here
    /// without one, and the server sends it once more after the window's time.
    fn window(&self, link: &Link) -> DeliveryWindow {
        let of_fast = DeliveryWindow { messages: MAX_ACK_PENDING, redelivers_after: ACK_WAIT };
        of_fast.of_slow_subscriber(link.config.options.processing, self.listeners.len())
    }

    /// Subscribes to the report that a consumer was deleted, alone or with its stream: the server sends nothing to a consumer that
    /// it pushes to.
    pub(super) fn watch(&self, index: usize, consumer: &str, out: &mut Vec<u8>) {
        let subject = consumer_deleted_subject(&self.listeners[index].stream, consumer);
        encode_subscribe(&subject, None, INBOX + 1 + (self.listeners.len() + index) as u64, out);
    }

    /// Sends messages of an earlier connection again, as far as the window allows.
    pub(super) fn send_held(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        while let Some(tag) = self.in_flight.next_held() {
            let Some(entry) = self.in_flight.get(tag).copied() else { continue };
            // The server may take less than it did: it would end the connection for such a message, each time anew.
            let publication = &link.config.publications[usize::from(entry.message.publication)];
            let header_bytes = all_headers_bytes(publication, &entry.message);
            if self.opening.check_size(entry.message.payload_bytes as usize + header_bytes).is_err() {
                self.remove(tag);
                sink.event(
                    link.id,
                    Event::Acknowledged {
                        token: entry.token(),
                        outcome: Err(Reason::words("larger than the server takes by now")),
                    },
                );
                continue;
            }
            self.append(link, shared, entry.message, tag, true);
            sink.event(link.id, Event::Resent(entry.token()));
        }
    }
}
