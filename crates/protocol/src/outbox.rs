//! Outgoing bytes of one connection, and the published messages among them.
//!
//! Messages are appended encoded. Just before bytes are handed to the socket, the header of every message whose first byte is
//! among them gets its write start; when the last byte of a message was accepted it is *settled*. The buffers come from a
//! [`BufferPool`] and are returned as soon as all is written, so an idle connection has none.

use std::collections::VecDeque;

use crate::events::Token;
use crate::header;
use crate::timing::Timing;

/// Bytes waiting in a connection above which it accepts no more messages.
pub const FULL_BYTES: usize = 64 * 1024;
/// Written bytes at the front of a buffer are dropped when there are this many, so that a busy one does not grow.
const COMPACT_BYTES: usize = 256 * 1024;
const POOLED_BUFFERS: usize = 64;
const POOLED_BYTES: usize = 512 * 1024;

/// A published message in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name in events.
    pub token: Token,
    /// Its due time and the time when it was submitted; its header's lag and write start count from here.
    pub timing: Timing,
    /// A value of the adapter's own, for instance the packet id.
    pub tag: u16,
    /// Resent: it was reported as written before and is not reported again, neither written nor abandoned.
    pub repeated: bool,
    /// It has no bytes: it is not sent, and is reported in its turn.
    pub withheld: bool,
}

#[derive(Clone, Copy, Debug)]
struct MessageSpan {
    message: Message,
    /// Positions since the buffer was taken from the pool.
    start: u64,
    header: u64,
    end: u64,
    write_start_ns: u64,
    /// [`Buffers::late_ns`] when it was appended.
    late_before_ns: u64,
    /// The same when its write began.
    late_ns: u64,
}

#[derive(Debug, Default)]
struct Buffers {
    bytes: Vec<u8>,
    /// Position of `bytes[0]`.
    base: u64,
    /// Position up to which bytes were handed to the socket or to TLS.
    accepted: u64,
    spans: VecDeque<MessageSpan>,
    /// The marks at the front whose first byte was handed over.
    begun: usize,
    /// Time until which the socket's buffer was known to be full, ns of `CLOCK_MONOTONIC`.
    full_until_ns: u64,
    /// Nothing was written since.
    is_full: bool,
    /// Submission of the first message since the last attempt to write, ns of `CLOCK_MONOTONIC`; 0: none.
    first_ns: u64,
    /// How long what waits here waited for pubmark, not for a full socket, at most, ns.
    late_ns: u64,
    /// Of it, before the last attempt.
    last_late_ns: u64,
}

/// Buffers of a shard that no connection uses now.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // The box is what an outbox holds: a null pointer while it is idle.
pub struct BufferPool {
    free: Vec<Box<Buffers>>,
}

impl BufferPool {
    fn take(&mut self) -> Box<Buffers> {
        self.free.pop().unwrap_or_default()
    }

    fn release(&mut self, mut buffers: Box<Buffers>) {
        if self.free.len() < POOLED_BUFFERS && buffers.bytes.capacity() <= POOLED_BYTES {
            buffers.bytes.clear();
            buffers.spans.clear();
            (buffers.base, buffers.accepted, buffers.begun) = (0, 0, 0);
            (buffers.full_until_ns, buffers.is_full, buffers.first_ns) = (0, false, 0);
            (buffers.late_ns, buffers.last_late_ns) = (0, 0);
            self.free.push(buffers);
        }
    }
}

/// One connection's outgoing bytes.
#[derive(Debug, Default)]
pub struct Outbox {
    buffers: Option<Box<Buffers>>,
}

impl Outbox {
    /// Appends bytes that are no published message.
    pub fn append(&mut self, pool: &mut BufferPool, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.buffers.get_or_insert_with(|| pool.take()).bytes);
    }

    /// Appends a message; `encode` returns where in the buffer its payload header begins.
    pub fn append_message(
        &mut self,
        pool: &mut BufferPool,
        message: Message,
        encode: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        let buffers = self.buffers.get_or_insert_with(|| pool.take());
        let start = buffers.base + buffers.bytes.len() as u64;
        let header = buffers.base + encode(&mut buffers.bytes) as u64;
        let end = buffers.base + buffers.bytes.len() as u64;
        let late_before_ns = buffers.late_ns;
        let submitted_ns = message.timing.submitted_ns;
        buffers.spans.push_back(MessageSpan {
            message,
            start,
            header,
            end,
            write_start_ns: 0,
            late_before_ns,
            late_ns: 0,
        });
        if buffers.first_ns == 0 {
            buffers.first_ns = submitted_ns;
        }
    }

    /// Appends a message of no bytes, which is settled with what precedes it; its write start is `at_ns`.
    pub fn append_nothing(&mut self, pool: &mut BufferPool, message: Message, at_ns: u64) {
        let buffers = self.buffers.get_or_insert_with(|| pool.take());
        let end = buffers.base + buffers.bytes.len() as u64;
        let (late_before_ns, late_ns) = (buffers.late_ns, buffers.late_ns);
        let (start, header) = (end, end);
        let write_start_ns = at_ns;
        buffers.spans.push_back(MessageSpan { message, start, header, end, write_start_ns, late_before_ns, late_ns });
    }

    /// Bytes not yet handed over.
    pub fn pending_bytes(&self) -> usize {
        self.buffers.as_ref().map_or(0, |buffers| buffers.pending())
    }

    /// Is nothing left to hand over or to settle?
    pub fn is_empty(&self) -> bool {
        self.buffers.is_none()
    }

    /// The socket's buffer was full at this time.
    pub fn note_full(&mut self, at_ns: u64) {
        if let Some(buffers) = self.buffers.as_mut() {
            buffers.full_until_ns = buffers.full_until_ns.max(at_ns);
            buffers.is_full = true;
        }
    }

    /// Writing is tried at this time: since the socket's buffer was last full, or since the first message was appended, pubmark may
    /// have been the cause of waiting.
    pub fn note_attempt(&mut self, at_ns: u64) {
        let Some(buffers) = self.buffers.as_mut() else { return };
        let first_ns = std::mem::take(&mut buffers.first_ns);
        let since_ns = match std::mem::take(&mut buffers.is_full) {
            true => buffers.full_until_ns,
            false if first_ns > 0 => first_ns,
            false => return,
        };
        buffers.last_late_ns = at_ns.saturating_sub(since_ns);
        buffers.late_ns += buffers.last_late_ns;
    }

    /// The next bytes, at most `most_bytes`, with lag and write start of messages that begin among them set: it is `now_ns`.
    pub fn prepare(&mut self, now_ns: u64, most_bytes: usize) -> &[u8] {
        let Some(buffers) = self.buffers.as_mut() else { return &[] };
        let from = (buffers.accepted - buffers.base) as usize;
        let to = buffers.bytes.len().min(from.saturating_add(most_bytes));
        let limit = buffers.base + to as u64;
        // The wait before the present attempt is in the time since the submission, or since the socket was full.
        let earlier_ns = buffers.late_ns - buffers.last_late_ns;
        let begin = buffers.spans.range_mut(buffers.begun..).take_while(|span| span.start < limit);
        // A message without bytes has no header: another message's first byte is there.
        for span in begin.filter(|span| span.end > span.start) {
            (span.write_start_ns, span.late_ns) = (now_ns, buffers.late_ns);
            let header = (span.header - buffers.base) as usize..(span.end - buffers.base) as usize;
            span.message.timing = span.message.timing.waited_until(buffers.full_until_ns);
            let timing = &mut span.message.timing;
            timing.submitted_ns = timing.submitted_ns.saturating_sub(earlier_ns.saturating_sub(span.late_before_ns));
            header::patch_write_start(&mut buffers.bytes[header], &span.message.timing, now_ns);
        }
        &buffers.bytes[from..to]
    }

    /// The first `bytes` of what [`Outbox::prepare`] returned were accepted.
    pub fn advance(&mut self, bytes: usize) {
        let Some(buffers) = self.buffers.as_mut() else { return };
        buffers.accepted += bytes as u64;
        let accepted = buffers.accepted;
        buffers.begun += buffers.spans.range(buffers.begun..).take_while(|span| span.start < accepted).count();
    }

    /// All that was handed over is in the socket: `report` is called for each message that is complete there, with its write start.
    /// A message that waited for a full socket counts as submitted when that ended, and earlier by the times for which pubmark delayed
    /// what was before it, or the rest of a write that a full socket had cut.
    pub fn settle(&mut self, pool: &mut BufferPool, mut report: impl FnMut(Message, u64)) {
        let Some(buffers) = self.buffers.as_mut() else { return };
        while let Some(span) = buffers.spans.front().filter(|span| span.end <= buffers.accepted) {
            if !span.message.repeated {
                let mut message = span.message;
                let late_ns = buffers.late_ns - span.late_ns;
                message.timing.submitted_ns = message.timing.submitted_ns.saturating_sub(late_ns);
                report(message, span.write_start_ns);
            }
            buffers.spans.pop_front();
            // A message of no bytes at the end is settled without having begun.
            buffers.begun = buffers.begun.saturating_sub(1);
        }
        if buffers.pending() == 0 {
            if let Some(buffers) = self.buffers.take() {
                pool.release(buffers);
            }
        } else {
            buffers.compact();
        }
    }

    /// The connection is gone: `report` is called for each message that was not settled.
    pub fn abandon(&mut self, pool: &mut BufferPool, mut report: impl FnMut(Message)) {
        let Some(buffers) = self.buffers.take() else { return };
        for span in buffers.spans.iter().filter(|span| !span.message.repeated) {
            report(span.message);
        }
        pool.release(buffers);
    }
}

impl Buffers {
    fn pending(&self) -> usize {
        self.bytes.len() - (self.accepted - self.base) as usize
    }

    /// Drops written bytes at the front, but not the header of a message that may be prepared again.
    fn compact(&mut self) {
        let written = (self.accepted - self.base) as usize;
        if written >= COMPACT_BYTES && written >= self.bytes.len() / 2 {
            self.bytes.drain(..written);
            self.base = self.accepted;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn message(sequence: u32) -> Message {
        Message {
            token: Token { publication: 0, sequence },
            timing: Timing::on_time(1_000),
            tag: 0,
            repeated: false,
            withheld: false,
        }
    }

    fn append(outbox: &mut Outbox, pool: &mut BufferPool, sequence: u32, payload_bytes: usize) {
        outbox.append_message(pool, message(sequence), |out| {
            out.extend_from_slice(b"head");
            let at = out.len();
            let length = header::write(out, payload_bytes, 1, 2, sequence, 1_000);
            out.resize(at + payload_bytes, length as u8);
            at
        });
    }

    fn settle(outbox: &mut Outbox, pool: &mut BufferPool) -> Vec<(u32, u64)> {
        let mut settled = Vec::new();
        outbox.settle(pool, |message, write_start| settled.push((message.token.sequence, write_start)));
        settled
    }

    fn write_start_us(bytes: &[u8]) -> Option<u32> {
        header::read(&bytes[4..], 0).unwrap().write_start_us
    }

    #[test]
    fn a_write_start_is_that_of_the_write_that_took_the_first_byte() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        append(&mut outbox, &mut pool, 1, 100);
        append(&mut outbox, &mut pool, 2, 100);
        // The first write includes the first message and nothing of the second.
        assert_eq!(outbox.prepare(5_000, usize::MAX).len(), 208);
        outbox.advance(104);
        assert_eq!(settle(&mut outbox, &mut pool), [(1, 5_000)]);
        // The second includes one byte of the second message; the rest goes with a third, which no longer changes its start.
        assert_eq!(write_start_us(outbox.prepare(9_000, usize::MAX)), Some(8));
        outbox.advance(1);
        assert_eq!(settle(&mut outbox, &mut pool), []);
        let rest = outbox.prepare(30_000, usize::MAX).to_vec();
        assert_eq!(write_start_us(&[b"h", &rest[..]].concat()), Some(8));
        outbox.advance(103);
        assert_eq!(settle(&mut outbox, &mut pool), [(2, 9_000)]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_message_behind_a_full_socket_is_reported_as_submitted_when_it_was_last_full() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        append(&mut outbox, &mut pool, 1, 100);
        outbox.note_full(8_500);
        outbox.prepare(9_000, usize::MAX);
        outbox.advance(104);
        let mut own_ns = vec![];
        outbox.settle(&mut pool, |message, start_ns| own_ns.push(message.timing.since_submitted_ns(start_ns)));
        assert_eq!(own_ns, [500]);
    }

    #[test]
    fn the_wait_for_pubmark_after_a_full_socket_cut_a_message_is_not_back_pressure() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        append(&mut outbox, &mut pool, 1, 100);
        outbox.note_attempt(2_000);
        outbox.prepare(2_000, usize::MAX);
        outbox.advance(50);
        outbox.note_full(2_100);
        append(&mut outbox, &mut pool, 2, 100);
        // There was room soon after it was full: pubmark comes back late.
        outbox.note_full(3_000);
        outbox.note_attempt(3_600);
        outbox.prepare(3_600, usize::MAX);
        outbox.advance(158);
        let mut own_ns = vec![];
        outbox.settle(&mut pool, |message, start_ns| own_ns.push(message.timing.since_submitted_ns(start_ns)));
        assert_eq!(own_ns, [1_000 + 600, 600]);
    }

    #[test]
    fn each_wait_for_pubmark_before_a_write_that_a_full_socket_cut_in_front_of_a_message_is_not_back_pressure() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        append(&mut outbox, &mut pool, 1, 100);
        append(&mut outbox, &mut pool, 2, 100);
        let mut own_ns = vec![];
        // Full after the first attempt until 3,000 and after the second until 5,000; each time pubmark comes back late.
        for (at_ns, taken, full_until_ns) in [(1_700, 50, 3_000), (3_400, 20, 5_000), (5_060, 138, 0)] {
            outbox.note_attempt(at_ns);
            outbox.prepare(at_ns, usize::MAX);
            outbox.advance(taken);
            outbox.note_full(full_until_ns);
            outbox.settle(&mut pool, |message, start_ns| own_ns.push(message.timing.since_submitted_ns(start_ns)));
        }
        assert_eq!(own_ns, [700 + 400 + 60; 2]);
    }

    #[test]
    fn unsent_messages_are_abandoned_in_order_when_the_connection_ends() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        outbox.append(&mut pool, |out| out.extend_from_slice(b"ack"));
        for sequence in 1..=3 {
            append(&mut outbox, &mut pool, sequence, 24);
        }
        outbox.prepare(2_000, usize::MAX);
        outbox.advance(3 + 28 + 27);
        assert_eq!(settle(&mut outbox, &mut pool), [(1, 2_000)]);
        let mut abandoned = Vec::new();
        outbox.abandon(&mut pool, |message| abandoned.push(message.token.sequence));
        assert_eq!(abandoned, [2, 3]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_repeated_message_is_stamped_but_not_reported() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        let repeated = Message { repeated: true, ..message(1) };
        outbox.append_message(&mut pool, repeated, |out| {
            header::write(out, 24, 1, 2, 1, 1_000);
            0
        });
        assert_eq!(header::read(outbox.prepare(8_000, usize::MAX), 0).unwrap().write_start_us, Some(7));
        outbox.advance(24);
        assert_eq!(settle(&mut outbox, &mut pool), []);
    }

    #[test]
    fn a_message_of_no_bytes_is_settled_in_its_turn_and_changes_nothing_of_the_others() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        let withheld = |sequence| Message { withheld: true, ..message(sequence) };
        outbox.append_nothing(&mut pool, withheld(1), 3_000);
        assert!(!outbox.is_empty() && outbox.prepare(4_000, usize::MAX).is_empty());
        outbox.advance(0);
        assert_eq!(settle(&mut outbox, &mut pool), [(1, 3_000)]);
        assert!(outbox.is_empty());
        append(&mut outbox, &mut pool, 2, 100);
        outbox.append_nothing(&mut pool, withheld(3), 3_000);
        // The bytes where the next message begins look like a header: they must not change.
        outbox.append_message(&mut pool, message(4), |out| {
            let at = out.len();
            header::write(out, 100, 1, 2, 4, 1_000);
            out.resize(at + 100, 0);
            out.len() - 100
        });
        outbox.append_nothing(&mut pool, withheld(5), 3_500);
        assert_eq!(outbox.prepare(5_000, usize::MAX).len(), 204);
        outbox.advance(103);
        assert_eq!(settle(&mut outbox, &mut pool), []);
        outbox.prepare(6_000, usize::MAX);
        outbox.advance(1);
        assert_eq!(settle(&mut outbox, &mut pool), [(2, 5_000), (3, 3_000)]);
        assert_eq!(header::read(outbox.prepare(9_000, usize::MAX), 0).unwrap().write_start_us, Some(8));
        outbox.advance(100);
        assert_eq!(settle(&mut outbox, &mut pool), [(4, 9_000), (5, 3_500)]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_busy_outbox_does_not_grow_and_its_positions_survive_compaction() {
        let (mut outbox, mut pool) = (Outbox::default(), BufferPool::default());
        let (mut next, mut settled) = (0, 0);
        for round in 0..2_000 {
            while outbox.pending_bytes() < FULL_BYTES {
                append(&mut outbox, &mut pool, next, 1_000);
                next += 1;
            }
            let taken = outbox.prepare(round * 1_000 + 1_000, usize::MAX).len().min(10_007);
            outbox.advance(taken);
            for (sequence, _) in settle(&mut outbox, &mut pool) {
                assert_eq!(sequence, settled);
                settled += 1;
            }
        }
        assert!(settled > 19_000);
        assert!(outbox.buffers.unwrap().bytes.capacity() < 2 * (COMPACT_BYTES + FULL_BYTES));
    }
}
