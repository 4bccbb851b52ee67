//! Publishing by PUT. Best effort uses a non-confirmable message, at least once a confirmable one that is retransmitted until
//! there is a response; what does not fit a datagram is sent in blocks ([`super::transfer`]).
//!
//! NSTART (RFC 7252 §4.7) is the session's in-flight window: a device that waits for each response is a workload with a window
//! of one, and a benchmark that always did so would measure the round trip. Retransmission has the standard's back-off.

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, SendOutcome, SessionConfig};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink, Token};
use pubmark_protocol::header;
use pubmark_wire::coap::{BLOCK_BYTES, Code, Kind, LARGEST_BODY_BYTES, Message, Step, Writer, encode_path, number};

use super::in_flight::{InFlight, Sent};
use super::link::{Blocked, Link, Shared};
use super::request::{MOST_IN_FLIGHT, Request};
use super::response::{acknowledges, outcome};
use super::transfer::Transfer;
use crate::payload;

/// Messages waiting for a socket above which it accepts no more; the window's, if that is larger.
const MOST_QUEUED: usize = 64;
/// RFC 7967: no response for success, but for every refusal.
const NO_SUCCESS: u32 = 2;

/// A message that was handed over and is not written.
#[derive(Clone, Copy, Debug)]
struct Queued {
    message: Outgoing,
    /// Its index in flight, if its response is awaited.
    place: Option<u16>,
}

/// Outgoing messages of a session.
pub(super) struct Publishing {
    queue: VecDeque<Queued>,
    in_flight: InFlight,
    pub(super) transfer: Option<Box<Transfer>>,
    /// A message that goes in blocks waits in the queue.
    transfer_queued: bool,
    /// How long earlier transfers waited for pubmark, at most, ns.
    pub(super) late_before_ns: u64,
    window: u16,
    pub(super) transfer_count: u16,
}

impl Publishing {
    pub(super) fn new(config: &SessionConfig) -> Publishing {
        Publishing {
            queue: VecDeque::new(),
            in_flight: InFlight::new(config.in_flight_window.min(MOST_IN_FLIGHT)),
            transfer: None,
            transfer_queued: false,
            late_before_ns: 0,
            window: config.in_flight_window,
            transfer_count: 0,
        }
    }

    /// The window, if it is smaller than the requested one.
    pub(super) fn lowered_window(&self) -> Option<u16> {
        (self.window > MOST_IN_FLIGHT).then_some(MOST_IN_FLIGHT)
    }

    /// Accepts a message; the session is open.
    pub(super) fn take(&mut self, config: &SessionConfig, message: Outgoing) -> Result<SendOutcome, Blocked> {
        if message.payload_bytes > LARGEST_BODY_BYTES {
            return Ok(SendOutcome::TooLarge(LARGEST_BODY_BYTES));
        }
        let acknowledged = config.publications[usize::from(message.publication)].qos != Qos::BestEffort;
        if !self.has_room(Blocked::Transfer) {
            return Err(Blocked::Transfer);
        }
        if !self.has_room(Blocked::Queue) {
            return Err(Blocked::Queue);
        }
        if acknowledged && !self.has_room(Blocked::Window) {
            return Err(Blocked::Window);
        }
        let blocks = message.payload_bytes as usize > BLOCK_BYTES;
        self.transfer_queued = blocks;
        let place = (acknowledged && !blocks).then(|| self.in_flight.add(message));
        self.queue.push_back(Queued { message, place });
        Ok(SendOutcome::Accepted)
    }

    /// Is what was in the way gone?
    pub(super) fn has_room(&self, blocked: Blocked) -> bool {
        match blocked {
            Blocked::NotOpen => true,
            Blocked::Queue => self.queue.len() < MOST_QUEUED.max(self.window.into()),
            Blocked::Window => self.in_flight.has_room(),
            Blocked::Transfer => self.transfer.is_none() && !self.transfer_queued,
        }
    }

    /// Writes queued messages, as far as the socket accepts them; after a message in blocks the rest waits.
    pub(super) fn write(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        self.resume_transfer(link, shared, sink)?;
        while self.transfer.is_none() {
            let Some(mut front) = self.queue.front().copied() else { return Ok(()) };
            // What is handed over is flushed at once: a message that was here before the last wait was blocked by the system.
            front.message.timing = front.message.timing.waited_until(shared.reactor.served_until_ns());
            let begun = if front.message.payload_bytes as usize > BLOCK_BYTES {
                self.begin_transfer(link, shared, front.message, sink)?
            } else {
                self.write_one(link, shared, front, sink)?
            };
            if !begun {
                return Ok(());
            }
            self.queue.pop_front();
        }
        Ok(())
    }

    /// Writes one message; false if the socket is full.
    fn write_one(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        Queued { message, place }: Queued,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        let token = message.token();
        let entry = place.and_then(|place| self.in_flight.get_mut(place).map(|entry| (place, entry)));
        let (kind, request) = match &entry {
            Some((place, entry)) => (Kind::Confirmable, Request::Publish { place: *place, salt: entry.salt }),
            None => (Kind::NonConfirmable, Request::Once { publication: token.publication, sequence: token.sequence }),
        };
        let message_id = link.message_id();
        let write_start_ns = clock::monotonic_ns();
        let written = put(link, shared, kind, message_id, request, &message, write_start_ns)?;
        if !written {
            return Ok(false);
        }
        let written_ns = clock::monotonic_ns();
        if let Some((_, entry)) = entry {
            let exchange = shared.exchange(written_ns);
            entry.sent = Some(Sent { message_id, write_start_ns, exchange });
            entry.message.timing = message.timing;
            link.wake_by(shared, exchange.due_ns());
        }
        let own_ns = message.timing.since_submitted_ns(write_start_ns);
        sink.event(link.id, Event::Written { token, write_start_ns, written_ns, own_ns });
        Ok(true)
    }

    fn begin_transfer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: Outgoing,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        self.transfer_count = self.transfer_count.wrapping_add(1);
        let Some(transfer) = Transfer::begin(link, shared, message, self.transfer_count, sink)? else {
            return Ok(false);
        };
        self.transfer = Some(Box::new(transfer));
        self.transfer_queued = false;
        Ok(true)
    }

    /// Is the response to this message awaited?
    pub(super) fn awaits(&self, place: u16, salt: u16) -> bool {
        self.in_flight.get(place).is_some_and(|entry| entry.salt == salt && entry.sent.is_some())
    }

    /// A response to a confirmable publication; false if none awaits it.
    pub(super) fn on_response(
        &mut self,
        link: &Link,
        (place, salt): (u16, u16),
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) -> bool {
        let Some(entry) = self.in_flight.get(place).filter(|entry| entry.salt == salt) else { return false };
        let Some(sent) = entry.sent else { return false };
        if acknowledges(message).is_some_and(|message_id| message_id != sent.message_id) {
            return false;
        }
        let token = entry.token();
        self.in_flight.remove(place);
        sink.event(link.id, Event::Acknowledged { token, outcome: outcome(message) });
        true
    }

    /// A response to a message without an awaited one: only a refusal matters.
    pub(super) fn on_refusal(
        &self,
        link: &Link,
        publication: u16,
        sequence: u32,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) -> bool {
        let known = link.config.publications.get(usize::from(publication));
        if known.is_none_or(|publication| publication.qos != Qos::BestEffort) {
            return false;
        }
        if let Err(reason) = outcome(message) {
            sink.event(link.id, Event::Acknowledged { token: Token { publication, sequence }, outcome: Err(reason) });
        }
        true
    }

    /// An acknowledgement without the response; false if it is for nothing of ours.
    pub(super) fn on_acknowledgement(&mut self, shared: &Shared, message_id: u16, now_ns: u64) -> bool {
        if let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.message_id == message_id) {
            transfer.exchange.acknowledge(&shared.times, now_ns);
            return true;
        }
        let sent = self.in_flight.find(message_id).and_then(|place| self.in_flight.get_mut(place)?.sent.as_mut());
        let known = sent.is_some();
        if let Some(sent) = sent {
            sent.exchange.acknowledge(&shared.times, now_ns);
        }
        known
    }

    /// The server could not process a message: that is a refusal without a code.
    pub(super) fn on_reset(
        &mut self,
        link: &Link,
        message_id: u16,
        delivery: &Delivery<'_>,
        sink: &mut impl Sink,
    ) -> bool {
        let reason = || Reason::words("rejected with a reset");
        if self.transfer.as_ref().is_some_and(|transfer| transfer.message_id == message_id) {
            if let Some(transfer) = self.take_transfer() {
                transfer.refuse(link, delivery, reason(), sink);
            }
            return true;
        }
        let found = self.in_flight.find(message_id).and_then(|place| self.in_flight.remove(place));
        if let Some(entry) = &found {
            sink.event(link.id, Event::Acknowledged { token: entry.token(), outcome: Err(reason()) });
        }
        found.is_some()
    }

    /// When [`Publishing::repeat`] has something to do.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let transfer = self.transfer.as_ref().map(|transfer| transfer.exchange.due_ns());
        transfer.into_iter().chain(self.in_flight.due_ns()).min()
    }

    /// Sends messages without a response again. If all retransmissions had none the message's delivery is unknown; if nothing
    /// at all was received in the meantime, the server is gone.
    pub(super) fn repeat(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        for place in self.in_flight.places() {
            let Some(entry) = self.in_flight.get_mut(place) else { continue };
            let (salt, message) = (entry.salt, entry.message);
            let Some(sent) = &mut entry.sent else { continue };
            match sent.exchange.step(&shared.times, now_ns) {
                Step::Wait => {}
                Step::Repeat => {
                    let (message_id, write_start_ns) = (sent.message_id, sent.write_start_ns);
                    let request = Request::Publish { place, salt };
                    put(link, shared, Kind::Confirmable, message_id, request, &message, write_start_ns)?;
                }
                Step::GiveUp if link.received_at_ns < sent.write_start_ns => return Err(Cause::Silent),
                Step::GiveUp => {
                    self.in_flight.remove(place);
                    sink.event(link.id, Event::Unacknowledged(message.token()));
                }
            }
        }
        self.repeat_transfer(link, shared, now_ns, sink)
    }

    fn repeat_transfer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        let due_ns = transfer.exchange.due_ns();
        match transfer.exchange.step(&shared.times, now_ns) {
            Step::Wait => Ok(()),
            Step::Repeat => {
                transfer.note_repetition(due_ns);
                transfer.send_block(link, shared, sink)
            }
            Step::GiveUp if link.received_at_ns < transfer.block_at_ns => Err(Cause::Silent),
            Step::GiveUp => {
                if let Some(transfer) = self.take_transfer() {
                    transfer.forget(link, sink);
                }
                Ok(())
            }
        }
    }

    /// The session is over: unwritten messages are abandoned, delivery of those without a response is unknown.
    pub(super) fn end(&mut self, link: &Link, sink: &mut impl Sink) {
        let id = link.id;
        if let Some(transfer) = self.take_transfer() {
            transfer.forget(link, sink);
        }
        for Queued { message, place } in self.queue.drain(..) {
            if let Some(place) = place {
                self.in_flight.remove(place);
            }
            sink.event(id, Event::Abandoned(message.token()));
        }
        self.transfer_queued = false;
        for entry in self.in_flight.drain() {
            sink.event(id, Event::Unacknowledged(entry.token()));
        }
    }

    /// Bytes of payloads that were not written.
    pub(super) fn unsent_bytes(&self) -> u64 {
        let queued: u64 = self.queue.iter().map(|queued| u64::from(queued.message.payload_bytes)).sum();
        queued + self.transfer.as_ref().map_or(0, |transfer| transfer.unsent_bytes())
    }
}

/// Sends a whole message in one datagram; false if the socket is full. The header gets the write start, which for a
/// repetition is that of the first transmission.
fn put(
    link: &mut Link,
    shared: &mut Shared,
    kind: Kind,
    message_id: u16,
    request: Request,
    message: &Outgoing,
    write_start_ns: u64,
) -> Result<bool, Cause> {
    let publication = &link.config.publications[usize::from(message.publication)];
    let mut out = std::mem::take(&mut shared.scratch);
    out.clear();
    let mut writer = Writer::new(kind, Code::PUT, message_id, request.token().as_bytes(), &mut out);
    encode_path(&mut writer, &publication.topic);
    if kind == Kind::NonConfirmable {
        writer.uint(number::NO_RESPONSE, NO_SUCCESS);
    }
    if message.payload_bytes > 0 {
        writer.payload();
    }
    let at = out.len();
    payload::append(&shared.config, publication, message, &mut out);
    header::patch_write_start(&mut out[at..], &message.timing, write_start_ns);
    let result = link.transmit(&out);
    shared.scratch = out;
    result
}
