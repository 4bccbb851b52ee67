//! Datagrams from the server: read many at a time, and handed to what each is for.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use pubmark_protocol::clock;
use pubmark_protocol::datagram::{AT_A_TIME, Datagrams};
use pubmark_protocol::events::{Cause, Delivery, Event, Sink, Unread};
use pubmark_wire::coap::{Code, Kind, Message, decode, peek};

use super::link::{Phase, Shared};
use super::request::Request;
use super::session::Session;
use crate::unread::Read;

/// Reads of one session before the others have their turn.
const READS_AT_A_TIME: usize = 8;

/// When a datagram came.
#[derive(Clone, Copy, Debug)]
struct Times<'a> {
    at_ns: u64,
    empty_at_ns: u64,
    unread: &'a [Unread],
    kernel_ns: Option<u64>,
}

impl<'a> Times<'a> {
    /// A delivery at this time.
    fn of<'b>(self, payload: &'b [u8]) -> Delivery<'b>
    where
        'a: 'b,
    {
        Delivery {
            payload,
            at_ns: self.at_ns,
            empty_at_ns: Some(self.empty_at_ns),
            kernel_ns: self.kernel_ns,
            unread: self.unread,
            ..Delivery::default()
        }
    }
}

impl Session {
    /// Reads until the socket is empty or it is the others' turn.
    pub(super) fn receive(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        // The buffers leave `shared` so that their datagrams can be handled with it.
        let mut datagrams = std::mem::take(&mut shared.datagrams);
        let mut result = Ok(());
        for _ in 0..READS_AT_A_TIME {
            match self.receive_once(shared, &mut datagrams, sink) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(cause) => {
                    result = Err(cause);
                    break;
                }
            }
        }
        shared.datagrams = datagrams;
        if result.is_ok() && !self.link.drained {
            shared.unread.push(self.link.id.0);
        }
        result
    }

    fn receive_once(
        &mut self,
        shared: &mut Shared,
        datagrams: &mut Datagrams,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, Cause> {
        let Some(socket) = &self.link.socket else { return Ok(ControlFlow::Break(())) };
        let began_ns = clock::monotonic_ns();
        let count = match datagrams.read(socket.as_fd()) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => {
                // The kernel reports it before the datagrams that had arrived by then: they are read next.
                self.link.broken.get_or_insert(error);
                self.link.drained = true;
                return Ok(ControlFlow::Continue(()));
            }
        };
        let at_ns = clock::monotonic_ns();
        let mut first_at_ns = at_ns;
        // A copy, as what handles the datagrams notes what it requests.
        let unread = self.link.unread;
        for datagram in (0..count).filter_map(|index| datagrams.get(index)) {
            self.link.note_received(datagram.bytes);
            let kernel_ns = datagram.stamp_realtime_ns.map(|stamp_ns| shared.offset.to_monotonic_ns(stamp_ns, at_ns));
            first_at_ns = first_at_ns.min(kernel_ns.unwrap_or(self.link.empty_at_ns));
            let times = Times { at_ns, empty_at_ns: self.link.empty_at_ns, unread: unread.all(), kernel_ns };
            match (&mut self.serving, datagram.from) {
                (Some(serving), Some(from)) => {
                    serving.on_datagram(&mut self.link, shared, from, times.of(datagram.bytes), sink);
                }
                (Some(_), None) => {}
                (None, _) => {
                    let handled = self.on_datagram(shared, datagram.bytes, times, sink);
                    // A socket that failed has received the others nevertheless.
                    if self.link.broken.is_none() {
                        handled?;
                    }
                }
            }
            self.note_if_free(times.empty_at_ns.max(times.kernel_ns.unwrap_or(0)));
        }
        if count > 0 {
            // A server that awaits an acknowledgement sends the next confirmable message after it (RFC 7252 §4.7).
            let absent_at_ns = first_at_ns.max(self.link.empty_at_ns);
            // Datagrams have no window: they count as one packet. The responses were sent as they were handled.
            let read = Read { absent_at_ns, at_ns, packets: 1, bytes: 0, has_responses: true };
            let acknowledged_ns = clock::monotonic_ns();
            self.link.unread.note_read(&read, acknowledged_ns);
            self.link.unread.note_written(acknowledged_ns);
        }
        // A full buffer holds several datagrams: after one alone no system call is needed.
        if count > 1 {
            self.report_overflow(sink);
        }
        self.link.drained = count < AT_A_TIME;
        if self.link.drained {
            // The begin of this read counts: what the next one finds came after that moment.
            self.link.empty_at_ns = began_ns;
        }
        // An error that waits behind what was read comes with a read that finds nothing.
        let link = &mut self.link;
        let done = link.drained && (count == 0 || (link.broken.is_none() && !std::mem::take(&mut link.ended)));
        Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Reports what the kernel dropped because pubmark did not read the socket in time: the system did not lose it.
    pub(super) fn report_overflow(&mut self, sink: &mut impl Sink) {
        let datagrams = self.link.take_overflowed();
        if datagrams > 0 {
            sink.event(self.link.id, Event::Overflowed(datagrams));
        }
    }

    fn on_datagram(
        &mut self,
        shared: &mut Shared,
        bytes: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let message = match decode(bytes) {
            Ok(message) => message,
            // A peer that responds to a ping with this is not a CoAP server.
            Err(error) if self.link.phase == Phase::Opening => return Err(Cause::Protocol(error.to_string())),
            // RFC 7252 §4.2 and §4.3: rejected if confirmable, otherwise ignored.
            Err(_) => return self.reject(shared, peek(bytes)),
        };
        self.link.received_at_ns = times.at_ns;
        match message.kind {
            Kind::Acknowledgement if message.code == Code::EMPTY => {
                if !self.on_pong(shared, message.message_id, sink)?
                    && !self.publishing.on_acknowledgement(shared, message.message_id, times.at_ns)
                {
                    self.observing.on_acknowledgement(shared, message.message_id, times.at_ns);
                    if let Some(requesting) = &mut self.requesting {
                        requesting.on_acknowledgement(shared, message.message_id, times.at_ns);
                    }
                }
                Ok(())
            }
            Kind::Reset => {
                if !self.on_pong(shared, message.message_id, sink)?
                    && !self.publishing.on_reset(&self.link, message.message_id, &times.of(message.payload), sink)
                {
                    self.observing.on_reset(&self.link, shared, message.message_id, sink);
                    if let Some(requesting) = &mut self.requesting {
                        requesting.on_reset(&self.link, message.message_id, &times.of(message.payload), sink);
                    }
                }
                Ok(())
            }
            Kind::Acknowledgement => self.on_response(shared, &message, times, sink).map(drop),
            Kind::Confirmable | Kind::NonConfirmable => self.on_message(shared, &message, times, sink),
        }
    }

    /// A message of the server's own accord: a notification, a response behind its acknowledgement, or nothing for us.
    fn on_message(
        &mut self,
        shared: &mut Shared,
        message: &Message<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if !message.code.is_response() {
            // A ping gets a reset as response, too; requests are not handled here.
            return self.reject(shared, Some((message.kind, message.message_id)));
        }
        let confirmable = message.kind == Kind::Confirmable;
        let lifetime_ns =
            if confirmable { shared.times.exchange_lifetime_ns() } else { shared.times.once_lifetime_ns() };
        if self.link.recent.is_repetition(message.message_id, times.at_ns, lifetime_ns) {
            return if confirmable { self.acknowledge(shared, message.message_id) } else { Ok(()) };
        }
        // Acknowledged before it is handled: the time that takes is ours, not the network's.
        let acknowledged =
            if confirmable && self.knows(message) { self.acknowledge(shared, message.message_id) } else { Ok(()) };
        if self.on_response(shared, message, times, sink)? {
            return acknowledged;
        }
        self.link.send_empty(shared, Kind::Reset, message.message_id)
    }

    /// Is there something that this response could be for?
    fn knows(&self, message: &Message<'_>) -> bool {
        if let Some(requesting) = &self.requesting {
            return requesting.knows(&self.link, message.token);
        }
        Request::of(message.token).is_some_and(|request| match request {
            Request::Observe { index, salt } => self.observing.has(index, salt),
            Request::Fetch { index, salt } => self.observing.fetches(index, salt),
            Request::Publish { place, salt } => self.publishing.awaits(place, salt),
            Request::Transfer { salt } => self.publishing.transfers(salt),
            Request::Once { .. } => true,
        })
    }

    fn acknowledge(&mut self, shared: &mut Shared, message_id: u16) -> Result<(), Cause> {
        self.link.send_empty(shared, Kind::Acknowledgement, message_id)
    }

    fn reject(&mut self, shared: &mut Shared, found: Option<(Kind, u16)>) -> Result<(), Cause> {
        match found {
            Some((Kind::Confirmable, message_id)) => self.link.send_empty(shared, Kind::Reset, message_id),
            _ => Ok(()),
        }
    }

    /// A response goes to what its token names; false if nothing awaits it.
    fn on_response(
        &mut self,
        shared: &mut Shared,
        message: &Message<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        let Session { link, publishing, observing, requesting, .. } = self;
        let delivery = times.of(message.payload);
        if !message.code.is_response() {
            return Ok(false);
        }
        if let Some(requesting) = requesting {
            return requesting.on_response(link, shared, message, delivery, sink);
        }
        match Request::of(message.token) {
            Some(Request::Observe { index, salt }) => {
                observing.on_notification(link, shared, (index, salt), message, delivery, sink)
            }
            Some(Request::Fetch { index, salt }) => {
                observing.on_block(link, shared, (index, salt), message, delivery, sink)
            }
            Some(Request::Publish { place, salt }) => Ok(publishing.on_response(link, (place, salt), message, sink)),
            Some(Request::Transfer { salt }) => {
                publishing.on_block_response(link, shared, salt, (message, &delivery), sink)
            }
            Some(Request::Once { publication, sequence }) => {
                Ok(publishing.on_refusal(link, publication, sequence, message, sink))
            }
            None => Ok(false),
        }
    }
}
