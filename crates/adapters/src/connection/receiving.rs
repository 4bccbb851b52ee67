//! Bytes from the server: split into packets and passed to the dialect.
//!
//! A read goes into the shard's shared buffer and is handled there; a session stores only the front of an incomplete packet.
//! The kernel's receive timestamp is that of the last byte of a read. It is passed on only with a message that is alone in its
//! read: the system may have held back one that came with others until those were read or acknowledged.

use pubmark_wire::front::Front;
use std::ops::ControlFlow;

use pubmark_protocol::client_certificate::CERTIFICATE_REQUESTED;
use pubmark_protocol::clock;
use pubmark_protocol::events::{ANSWERED, Cause, Delivery, Sink, Unread};
use pubmark_protocol::stream::{ReadBuffers, Received, Stream};

use super::dialect::Dialect;
use super::link::{Phase, Shared};
use super::session::Session;
use super::working::HeldBytes;
use crate::unread::{Read, WINDOW_BYTES};

/// Most reads of one session before the other sessions are served.
const READS_AT_A_TIME: usize = 16;
/// Fewest and most characters that are quoted of the first bytes of a server of another protocol.
const QUOTED: std::ops::RangeInclusive<usize> = 4..=40;

/// When a packet arrived.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    at_ns: u64,
    empty_at_ns: u64,
    /// Before it arrived, bytes were not read during these times.
    unread: &'a [Unread],
    /// Of the last byte of the read.
    kernel_ns: Option<u64>,
    /// When its subscriber was last done with a message; 0 if it takes no time over one.
    resumed_ns: u64,
    /// It was read before its subscriber was last done.
    was_held: bool,
    /// Nothing but earlier parts of the message precedes the packet in its read.
    begins_the_read: bool,
    /// The packet ends where the read ends.
    ends_the_read: bool,
}

impl<'a> Times<'a> {
    fn unstamped(at_ns: u64, empty_at_ns: u64, unread: &'a [Unread]) -> Times<'a> {
        Times {
            at_ns,
            empty_at_ns,
            unread,
            kernel_ns: None,
            resumed_ns: 0,
            was_held: false,
            begins_the_read: false,
            ends_the_read: false,
        }
    }

    /// For bytes that were read while their subscriber processed a message, and are handled now, when it is done. They
    /// have no timestamp of the kernel's.
    pub(super) fn held(at_ns: u64, empty_at_ns: u64, unread: &'a [Unread]) -> Times<'a> {
        Times { was_held: true, ..Times::unstamped(at_ns, empty_at_ns, unread) }
    }

    fn of(self, begins_the_read: bool, ends_the_read: bool) -> Times<'a> {
        Times { begins_the_read, ends_the_read, ..self }
    }

    /// Times of a message with others in the same packet.
    pub fn of_one_of_many(self) -> Times<'a> {
        self.of(false, false)
    }

    /// The kernel's stamp, if it is that of the message: the read had nothing else.
    fn message_stamp_ns(&self) -> Option<u64> {
        self.kernel_ns.filter(|_| self.begins_the_read && self.ends_the_read)
    }

    /// The same, if the message did not wait for its subscriber: that wait is not receive lateness.
    fn own_stamp_ns(&self) -> Option<u64> {
        self.message_stamp_ns().filter(|kernel_ns| *kernel_ns >= self.resumed_ns)
    }

    /// Had the message surely arrived when its subscriber was done with the one before?
    fn has_waited(&self) -> bool {
        self.was_held || self.message_stamp_ns().is_some_and(|kernel_ns| kernel_ns < self.resumed_ns)
    }

    /// The latest time at which the message, or the packet, had surely not arrived.
    fn absent_at_ns(&self) -> u64 {
        self.empty_at_ns.max(self.own_stamp_ns().unwrap_or(0))
    }

    /// The latest time until which only the system can have prevented its arrival, of the time since `since_ns`, at which a session
    /// was blocked. What it awaits was written before: the unread time before that may hold it back, too.
    fn awaited_until_ns(&self, since_ns: u64) -> u64 {
        let absent_at_ns = self.absent_at_ns();
        let since_ns = self.unread.last().map_or(since_ns, |last| since_ns.min(last.from_ns));
        absent_at_ns.saturating_sub(Unread::all_between_ns(self.unread, since_ns, absent_at_ns))
    }

    /// Does nothing follow the packet in its read?
    pub fn ends_the_read(&self) -> bool {
        self.ends_the_read
    }

    /// A message that came with the packet. The kernel's stamp goes with it only if the read had nothing else.
    pub fn delivery<'b>(&self, payload: &'b [u8], retained: bool) -> Delivery<'b>
    where
        'a: 'b,
    {
        Delivery {
            payload,
            retained,
            at_ns: self.at_ns,
            empty_at_ns: Some(self.empty_at_ns),
            kernel_ns: self.own_stamp_ns(),
            unread: self.unread,
            has_waited: self.has_waited(),
            ..Delivery::default()
        }
    }
}

impl<D: Dialect> Session<D> {
    /// Reads until the socket is empty or it is the others' turn.
    pub(super) fn receive(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        if self.link.at_work {
            // There is something; it is looked at when the subscriber is done.
            self.link.drained = false;
            return Ok(());
        }
        // The buffers leave `shared` so that packets in them can be handled with it.
        let mut buffers = std::mem::take(&mut shared.buffers);
        let mut result = Ok(());
        for _ in 0..READS_AT_A_TIME {
            match self.receive_once(shared, &mut buffers, sink) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(cause) => {
                    result = Err(cause);
                    break;
                }
            }
        }
        shared.buffers = buffers;
        if result.is_ok() && !self.link.drained && !self.link.at_work {
            shared.unread.push(self.link.id.0);
        }
        result
    }

    fn receive_once(
        &mut self,
        shared: &mut Shared,
        buffers: &mut ReadBuffers,
        sink: &mut impl Sink,
    ) -> Result<ControlFlow<()>, Cause> {
        let Some(stream) = &mut self.link.stream else { return Ok(ControlFlow::Break(())) };
        let handshaking = stream.is_handshaking();
        let received = match stream.read(buffers) {
            Ok(received) => received,
            Err(error) => return Err(self.link.cause_of(shared, error)),
        };
        self.link.report_secured(sink);
        let mut may_release = false;
        if received.taken > 0 {
            let read = self.handle_read(shared, &received, sink)?;
            may_release = read.may_release();
            self.note_read(&read);
        } else if self.link.partial.is_empty() && !self.dialect.is_within_message() {
            // The rest of a message is under way, and the responses to those before it may wait for it.
            self.link.unread.note_nothing();
        }
        if self.link.at_work {
            // The end of the stream, or what else is there, is found again by the next read.
            self.link.drained = received.emptied && !received.ended && !self.link.ended;
            return Ok(ControlFlow::Break(()));
        }
        if received.ended {
            return Err(self.cause_of_end(shared, handshaking));
        }
        self.link.drained = received.emptied;
        if received.emptied {
            // The begin of this read counts: what the next one finds arrived after that moment, while a time after the read
            // could be later than an arrival, if this thread was delayed in between.
            self.link.empty_at_ns = received.began_ns;
        }
        let done = received.emptied && !self.link.ended && !may_release;
        Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Handles the packets of a read.
    fn handle_read(
        &mut self,
        shared: &mut Shared,
        received: &Received<'_>,
        sink: &mut impl Sink,
    ) -> Result<Read, Cause> {
        let (at_ns, bytes, empty_at_ns) = (received.at_ns, received.taken, self.link.empty_at_ns);
        if received.bytes.is_empty() {
            return Ok(Read { absent_at_ns: empty_at_ns, at_ns, packets: 0, bytes, has_responses: false });
        }
        self.link.received_at_ns = at_ns;
        // Of a read that may have filled TCP's window, what came last may have waited for what came first to be read.
        let kernel_ns = received.stamp_realtime_ns.map(|stamp_ns| shared.offset.to_monotonic_ns(stamp_ns, at_ns));
        let kernel_ns = kernel_ns.filter(|_| bytes < WINDOW_BYTES);
        let resumed_ns = self.link.resumed_ns;
        // A copy, as the dialect notes what it requests.
        let unread = self.link.unread;
        let times = Times { kernel_ns, resumed_ns, ..Times::unstamped(at_ns, empty_at_ns, unread.all()) };
        let (packets, waiting) = (self.link.packets, self.link.outbox.pending_bytes());
        let left = self.consume(shared, received.bytes, times, sink);
        let left =
            left.map_err(|cause| if self.link.phase == Phase::Open { cause } else { answered(cause, received.bytes) })?;
        if left > 0 {
            self.link.held = HeldBytes::end_of(received.bytes, left);
        }
        let packets = self.link.packets.wrapping_sub(packets);
        let is_one = packets == 1 && left == 0 && self.link.partial.is_empty() && !self.dialect.is_within_message();
        let times = times.of(is_one, is_one);
        self.note_if_free(times.awaited_until_ns(self.link.blocked_since_ns));
        let has_responses = self.link.outbox.pending_bytes() > waiting;
        Ok(Read { absent_at_ns: times.absent_at_ns(), at_ns, packets, bytes, has_responses })
    }

    /// Notes what was read from the socket; sends TCP's acknowledgement at once if that may release something.
    fn note_read(&mut self, read: &Read) {
        let mut acknowledged_ns = read.at_ns;
        if read.may_release()
            && let Some(stream) = &self.link.stream
        {
            // It fails only on a connection that has ended, which the next read reports.
            let _ = stream.socket().acknowledge();
            acknowledged_ns = clock::monotonic_ns();
        }
        self.link.unread.note_read(read, acknowledged_ns);
    }

    fn cause_of_end(&self, shared: &Shared, handshaking: bool) -> Cause {
        if let Some(cause) = self.link.cause_of_fault() {
            return cause;
        }
        // In TLS 1.3 our side of the handshake is over before a server looks for the certificate (RFC 8446 §4.4.2.4).
        if self.link.phase != Phase::Open && self.link.lacks_certificate(shared) {
            return Cause::Tls(format!("{CERTIFICATE_REQUESTED} (it closed the connection)"));
        }
        if handshaking {
            return Cause::Tls("closed by the server during the handshake".to_owned());
        }
        if self.link.stream.as_ref().is_some_and(Stream::is_upgrading) {
            return Cause::Dropped("closed by the server during the WebSocket handshake".to_owned());
        }
        Cause::Dropped(match self.link.phase {
            Phase::Open => "closed by the server".to_owned(),
            _ => format!("closed by the server before {}", D::WELCOME),
        })
    }

    /// Handles all packets that are complete now, or those up to a message that the subscriber processes; returns how many
    /// bytes follow that one.
    pub(super) fn consume(
        &mut self,
        shared: &mut Shared,
        mut bytes: &[u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<usize, Cause> {
        let packets = self.link.packets;
        if !self.link.partial.is_empty() {
            bytes = self.complete_partial(shared, bytes, times, sink)?;
        }
        while !bytes.is_empty() && !self.link.at_work {
            match D::next_packet(bytes, shared.config.connections.maximum_packet_bytes)? {
                Front::Whole { packet, bytes: total } => {
                    bytes = &bytes[total..];
                    let times = times.of(self.link.packets == packets, bytes.is_empty());
                    self.handle_packet(shared, &packet, times, sink)?;
                }
                Front::Partial(total) => {
                    self.link.partial = std::mem::take(&mut shared.spare);
                    self.keep(bytes, total);
                    return Ok(0);
                }
            }
        }
        Ok(bytes.len())
    }

    fn handle_packet(
        &mut self,
        shared: &mut Shared,
        packet: &D::Packet<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        self.dialect.handle(&mut self.link, shared, packet, times, sink)?;
        self.link.check_responses()?;
        if !self.dialect.is_within_message() {
            self.link.packets = self.link.packets.wrapping_add(1);
        }
        self.link.at_work = sink.is_at_work(self.link.id);
        Ok(())
    }

    /// Adds to the packet begun earlier; returns the bytes behind it.
    fn complete_partial<'a>(
        &mut self,
        shared: &mut Shared,
        bytes: &'a [u8],
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<&'a [u8], Cause> {
        let mut whole = std::mem::take(&mut self.link.partial);
        let most_bytes = shared.config.connections.maximum_packet_bytes;
        let mut rest = bytes;
        loop {
            let partial = match D::next_packet(&whole, most_bytes)? {
                Front::Partial(total) => Some(total),
                Front::Whole { packet, bytes: total } => {
                    let surplus = whole.len() - total;
                    debug_assert!(surplus == 0 || !D::ONE_MESSAGE_A_PACKET, "no more than what was missing was added");
                    rest = &bytes[bytes.len() - rest.len() - surplus..];
                    self.handle_packet(shared, &packet, times.of(true, rest.is_empty()), sink)?;
                    None
                }
            };
            let Some(total) = partial else {
                whole.clear();
                shared.spare = whole;
                return Ok(rest);
            };
            if rest.is_empty() {
                self.link.partial = whole;
                self.keep(&[], total);
                return Ok(rest);
            }
            let missing = match total {
                // A list is parsed from its front each time: with each value of hundreds that would take longer than a copy of what
                // may be behind it.
                _ if !D::ONE_MESSAGE_A_PACKET => rest.len(),
                Some(total) => total - whole.len(),
                None => D::partial_bytes(rest),
            };
            let (more, behind) = rest.split_at(missing.min(rest.len()));
            whole.extend_from_slice(more);
            rest = behind;
        }
    }

    /// Stores bytes of an incomplete packet, with capacity for the rest of it.
    fn keep(&mut self, bytes: &[u8], total: Option<usize>) {
        let partial = &mut self.link.partial;
        partial.extend_from_slice(bytes);
        if let Some(total) = total {
            partial.reserve_exact(total.saturating_sub(partial.len()));
        }
    }
}

/// Adds the server's first bytes to the cause if they are a line of text: the greeting of another protocol identifies that one.
fn answered(cause: Cause, bytes: &[u8]) -> Cause {
    let Cause::Protocol(words) = cause else { return cause };
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let quoted = &line[..line.len().min(*QUOTED.end())];
    let is_text = quoted.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    if !is_text || !QUOTED.contains(&quoted.len()) {
        return Cause::Protocol(words);
    }
    let more = if quoted.len() < line.len() { "…" } else { "" };
    Cause::Protocol(format!("{words}{ANSWERED}`{}{more}`", String::from_utf8_lossy(quoted).replace('`', "'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waited_for_its_subscriber_if_it_was_held_or_alone_in_its_read_with_an_earlier_stamp() {
        let times = Times { resumed_ns: 500, ..Times::unstamped(900, 500, &[]) };
        let found = |kernel_ns: Option<u64>, is_alone: bool| {
            let times = Times { kernel_ns, ..times }.of(is_alone, is_alone);
            let delivery = times.delivery(b"", false);
            (delivery.has_waited, delivery.kernel_ns)
        };
        assert_eq!(found(Some(499), true), (true, None));
        assert_eq!(found(Some(500), true), (false, Some(500)));
        assert_eq!([found(Some(499), false), found(None, true)], [(false, None); 2], "it may have come after that");
        assert!(Times::held(900, 500, &[]).delivery(b"", false).has_waited);
    }

    #[test]
    fn a_wait_for_the_system_is_shortened_by_the_unread_times_in_it() {
        let unread = [Unread { from_ns: 100, to_ns: 300 }, Unread { from_ns: 600, to_ns: 800 }];
        let times = Times::unstamped(950, 900, &unread);
        assert_eq!([0, 200, 400, 700].map(|since_ns| times.awaited_until_ns(since_ns)), [500, 600, 700, 700]);
    }

    #[test]
    fn text_of_another_protocol_is_quoted_and_bytes_are_not() {
        let words = |bytes: &[u8]| match answered(Cause::Protocol("PUBLISH before CONNACK".to_owned()), bytes) {
            Cause::Protocol(words) => words,
            other => panic!("{other:?}"),
        };
        assert_eq!(words(b"SSH-2.0-OpenSSH_9.2\r\n"), "PUBLISH before CONNACK; it answered `SSH-2.0-OpenSSH_9.2`");
        assert_eq!(words(&[b'a'; 50]), format!("PUBLISH before CONNACK; it answered `{}…`", "a".repeat(40)));
        for bytes in [&b"\x30\x05\0\x01ax"[..], b"", b"ok\n", b"\x1b[31mred text"] {
            assert_eq!(words(bytes), "PUBLISH before CONNACK");
        }
    }
}
