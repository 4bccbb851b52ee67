//! Messages that a client writes: a method, a header, and a body in as many frames as it takes (§4.2.6).

use super::FRAME_END;
use super::content::{Correlation, DELIVERY_MODE, HEADERS};
use super::write::{method, short_text, sized, text_entry};

/// Octets ahead of a body frame's payload.
const FRONT_BYTES: usize = 7;

/// All of a message but its size and its body: `basic.publish` and the header, made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    channel: u16,
    persistent: bool,
    /// Bytes of the method's frame, which `front` begins with.
    method_bytes: usize,
    /// Up to the body's size.
    front: Box<[u8]>,
    /// Behind it: which properties there are, and the only one.
    back: [u8; 4],
}

impl Publish {
    /// Messages to an exchange on a channel; `persistent` ones are stored on disk in a durable queue (delivery mode 2).
    pub fn new(channel: u16, exchange: &str, routing_key: &str, persistent: bool) -> Publish {
        let mut front = Vec::new();
        basic_publish(channel, exchange, routing_key, &mut front);
        let method_bytes = front.len();
        // Class, weight, size, flags, delivery mode.
        const HEADER_BYTES: u32 = 2 + 2 + 8 + 2 + 1;
        front.push(2);
        front.extend_from_slice(&channel.to_be_bytes());
        front.extend_from_slice(&HEADER_BYTES.to_be_bytes());
        front.extend_from_slice(&[0, 60, 0, 0]);
        // Flag 12 of the properties is the delivery mode.
        let back = [0x10, 0, 1 + u8::from(persistent), FRAME_END];
        Publish { channel, persistent, method_bytes, front: front.into(), back }
    }

    /// Its channel.
    pub fn channel(&self) -> u16 {
        self.channel
    }

    /// Appends everything of a message of `body_bytes` but its body, which is [`append_body`]'s.
    #[inline]
    pub fn append(&self, body_bytes: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.front);
        out.extend_from_slice(&(body_bytes as u64).to_be_bytes());
        out.extend_from_slice(&self.back);
    }

    /// The same for a message with headers (§4.2.5.5), which are texts; returns where in `out` the value of the last one ends.
    pub fn append_with_headers<'a>(
        &self,
        body_bytes: usize,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
        out: &mut Vec<u8>,
    ) -> usize {
        out.extend_from_slice(&self.front[..self.method_bytes]);
        out.push(2);
        out.extend_from_slice(&self.channel.to_be_bytes());
        let mut end = 0;
        sized(out, |out| {
            out.extend_from_slice(&[0, 60, 0, 0]);
            out.extend_from_slice(&(body_bytes as u64).to_be_bytes());
            out.extend_from_slice(&(HEADERS | DELIVERY_MODE).to_be_bytes());
            sized(out, |out| headers.for_each(|(name, value)| text_entry(name, value, out)));
            end = out.len();
            out.push(1 + u8::from(self.persistent));
        });
        out.push(FRAME_END);
        end
    }

    /// The same for a message that is a request.
    pub fn append_request(&self, body_bytes: usize, request: Correlation<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.front[..self.method_bytes]);
        header(self.channel, self.persistent, body_bytes, request, out);
    }
}

/// Appends everything of a reply but its body: to a queue, which the default exchange knows by its name (§3.1.3.1).
pub fn append_reply(
    channel: u16,
    queue: &str,
    persistent: bool,
    body_bytes: usize,
    confirm: Correlation<'_>,
    out: &mut Vec<u8>,
) {
    basic_publish(channel, "", queue, out);
    header(channel, persistent, body_bytes, confirm, out);
}

fn basic_publish(channel: u16, exchange: &str, routing_key: &str, out: &mut Vec<u8>) {
    method(channel, 60, 40, out, |out| {
        out.extend_from_slice(&[0, 0]);
        short_text(exchange, out);
        short_text(routing_key, out);
        // Neither mandatory nor immediate: a message without a queue is dropped.
        out.push(0);
    });
}

/// The frame of a header with the delivery mode and the properties of a request or a reply.
fn header(channel: u16, persistent: bool, body_bytes: usize, correlation: Correlation<'_>, out: &mut Vec<u8>) {
    out.push(2);
    out.extend_from_slice(&channel.to_be_bytes());
    sized(out, |out| {
        out.extend_from_slice(&[0, 60, 0, 0]);
        out.extend_from_slice(&(body_bytes as u64).to_be_bytes());
        out.extend_from_slice(&(DELIVERY_MODE | correlation.flags()).to_be_bytes());
        out.push(1 + u8::from(persistent));
        for text in [correlation.correlation_id, correlation.reply_to] {
            if !text.is_empty() {
                short_text(text, out);
            }
        }
    });
    out.push(FRAME_END);
}

/// Appends a body of `body_bytes`, which `fill` appends, in frames of at most `most_bytes` of it each; returns where in `out`
/// it begins. An empty body has no frame (§4.2.6). Frames are put around it afterwards, so that the usual body of one frame is
/// written once.
#[inline]
pub fn append_body(
    channel: u16,
    body_bytes: usize,
    most_bytes: usize,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>),
) -> usize {
    if body_bytes == 0 {
        return out.len();
    }
    out.extend_from_slice(&frame_front(channel, body_bytes.min(most_bytes)));
    let at = out.len();
    fill(out);
    debug_assert_eq!(out.len(), at + body_bytes, "the body has as many bytes as was said");
    if body_bytes > most_bytes {
        split(channel, at, most_bytes, out);
    }
    out.push(FRAME_END);
    at
}

fn frame_front(channel: u16, bytes: usize) -> [u8; FRONT_BYTES] {
    let [high, low] = channel.to_be_bytes();
    let [a, b, c, d] = (bytes as u32).to_be_bytes();
    [3, high, low, a, b, c, d]
}

/// Moves the parts of the body at `at` apart, the last one first, and puts between them an end and a front.
#[cold]
fn split(channel: u16, at: usize, most_bytes: usize, out: &mut Vec<u8>) {
    const BETWEEN: usize = 1 + FRONT_BYTES;
    let body_bytes = out.len() - at;
    let parts = body_bytes.div_ceil(most_bytes);
    out.resize(out.len() + (parts - 1) * BETWEEN, 0);
    for part in (1..parts).rev() {
        let from = at + part * most_bytes;
        let bytes = most_bytes.min(body_bytes - part * most_bytes);
        let to = from + part * BETWEEN;
        out.copy_within(from..from + bytes, to);
        out[to - BETWEEN] = FRAME_END;
        out[to - FRONT_BYTES..to].copy_from_slice(&frame_front(channel, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::{read_content_header, read_header};
    use super::*;

    #[test]
    fn a_message_is_a_method_a_header_and_a_body() {
        let mut out = Vec::new();
        Publish::new(1, "amq.topic", "a.b", true).append(2, &mut out);
        let at = append_body(1, 2, 100, &mut out, |out| out.extend_from_slice(b"hi"));
        let expected = b"\x01\x00\x01\x00\x00\x00\x15\x00\x3c\x00\x28\x00\x00\x09amq.topic\x03a.b\x00\xce\
            \x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x10\x00\x02\xce\
            \x03\x00\x01\x00\x00\x00\x02hi\xce";
        assert_eq!(out, expected);
        assert_eq!(&out[at..at + 2], b"hi");
    }

    #[test]
    fn headers_are_a_table_before_the_delivery_mode() {
        let mut out = Vec::new();
        let headers = [("a", "xyz"), ("pubmark", "c1")];
        let end = Publish::new(1, "amq.topic", "a.b", true).append_with_headers(2, headers.into_iter(), &mut out);
        let expected = b"\x02\x00\x01\x00\x00\x00\x2c\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x30\x00\
            \x00\x00\x00\x19\x01aS\x00\x00\x00\x03xyz\x07pubmarkS\x00\x00\x00\x02c1\x02\xce";
        assert!(out.ends_with(expected), "{}", out.escape_ascii());
        assert_eq!(&out[end - 2..end], b"c1");
        let payload = &expected[7..expected.len() - 1];
        assert_eq!(read_content_header(payload), Ok(2));
        assert_eq!((read_header(payload, "pubmark"), read_header(payload, "a")), (Some(&b"c1"[..]), Some(&b"xyz"[..])));
        assert_eq!(read_header(payload, "b"), None);
        for cut in 0..payload.len() {
            // Whatever is cut, nothing is read beyond it.
            let _ = read_header(&payload[..cut], "pubmark");
        }
    }

    #[test]
    fn an_empty_body_has_no_frame() {
        let mut out = b"before".to_vec();
        assert_eq!(append_body(1, 0, 100, &mut out, |_| {}), 6);
        assert_eq!(out, b"before");
    }

    #[test]
    fn a_long_body_is_split_where_a_frame_is_full() {
        for (body, expected) in [
            (&b"abcd"[..], &b"\x03\x00\x02\x00\x00\x00\x04abcd\xce"[..]),
            (b"abcde", b"\x03\x00\x02\x00\x00\x00\x04abcd\xce\x03\x00\x02\x00\x00\x00\x01e\xce"),
            (b"abcdefgh", b"\x03\x00\x02\x00\x00\x00\x04abcd\xce\x03\x00\x02\x00\x00\x00\x04efgh\xce"),
            (
                b"abcdefghi",
                b"\x03\x00\x02\x00\x00\x00\x04abcd\xce\x03\x00\x02\x00\x00\x00\x04efgh\xce\x03\x00\x02\x00\x00\x00\x01i\xce",
            ),
        ] {
            let mut out = b"before".to_vec();
            let at = append_body(2, body.len(), 4, &mut out, |out| out.extend_from_slice(body));
            assert_eq!((at, out.strip_prefix(b"before").unwrap_or_default()), (13, expected));
        }
    }
}
