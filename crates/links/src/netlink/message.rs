//! Bytes of a netlink message: header, fixed part, attributes; all aligned to 4 bytes, numbers in the machine's order.

use std::io;

/// Length of `nlmsghdr`.
const HEADER: usize = 16;

/// An attribute that has attributes in it (`NLA_F_NESTED`).
const NESTED: u16 = 1 << 15;

/// The attribute of an error with its reason as text (linux/netlink.h: NLMSGERR_ATTR_MSG).
const EXPLANATION: u16 = 1;

/// A request being built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    bytes: Vec<u8>,
    kind: u16,
    flags: u16,
}

impl Message {
    /// A request of `kind` (`RTM_…`) with `flags` (`NLM_F_…`) and the fixed part `body`.
    pub fn new(kind: u16, flags: libc::c_int, body: &[u8]) -> Message {
        let mut bytes = vec![0; HEADER];
        bytes.extend_from_slice(body);
        align(&mut bytes);
        Message { bytes, kind, flags: flags as u16 | libc::NLM_F_REQUEST as u16 }
    }

    /// The same, with the flag that requests a response.
    pub fn acknowledged(mut self) -> Message {
        self.flags |= libc::NLM_F_ACK as u16;
        self
    }

    /// Adds an attribute.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        self.bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        align(&mut self.bytes);
        self
    }

    /// Adds an attribute that is a number.
    pub fn number(self, kind: u16, value: u32) -> Message {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute with what `inside` adds in it, after the bytes `front`.
    pub fn nested(
        mut self,
        kind: u16,
        flagged: bool,
        front: &[u8],
        inside: impl FnOnce(Message) -> Message,
    ) -> Message {
        let start = self.bytes.len();
        let kind = if flagged { kind | NESTED } else { kind };
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(front);
        align(&mut self.bytes);
        let mut message = inside(self);
        let length = (message.bytes.len() - start) as u16;
        message.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        message
    }

    /// The bytes to send.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[4..6].copy_from_slice(&self.kind.to_ne_bytes());
        self.bytes[6..8].copy_from_slice(&self.flags.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

fn align(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The kernel's response to request `sequence` in what was read: the body of a message, empty for an acknowledgement, or the
/// error. `None` if it is not there.
pub fn answer(mut bytes: &[u8], sequence: u32) -> Option<io::Result<Vec<u8>>> {
    loop {
        let length = u32_at(bytes, 0)? as usize;
        let message = bytes.get(..length).filter(|message| message.len() >= HEADER)?;
        if u32_at(message, 8)? == sequence {
            let body = &message[HEADER..];
            return Some(match i32::from(u16_at(message, 4)?) {
                libc::NLMSG_ERROR => refusal(message, body),
                libc::NLMSG_DONE => Ok(Vec::new()),
                _ => Ok(body.to_vec()),
            });
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn refusal(message: &[u8], body: &[u8]) -> io::Result<Vec<u8>> {
    let code = u32_at(body, 0).unwrap_or_default() as i32;
    if code == 0 {
        return Ok(Vec::new());
    }
    let error = io::Error::from_raw_os_error(-code);
    // Behind the code stands the request's header (all of the request unless NLM_F_CAPPED), then attributes with a
    // text.
    let flags = u16_at(message, 6).unwrap_or_default();
    let capped = flags & libc::NLM_F_CAPPED as u16 != 0;
    let request = u32_at(body, 4).unwrap_or_default() as usize;
    let at = 4 + if capped { HEADER } else { request.next_multiple_of(4) };
    let text = (flags & libc::NLM_F_ACK_TLVS as u16 != 0)
        .then(|| body.get(at..).and_then(|rest| find(rest, EXPLANATION)))
        .flatten();
    Err(match text {
        Some(text) => {
            let text = String::from_utf8_lossy(text);
            io::Error::new(error.kind(), format!("{error}: {}", text.trim_end_matches('\0')))
        }
        None => error,
    })
}

/// The value of the first attribute of `kind`.
pub fn find(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        if length < 4 {
            return None;
        }
        if u16_at(bytes, 2)? & !NESTED == kind {
            return bytes.get(4..length);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_aligned_and_carries_its_lengths() {
        let message = Message::new(19, 0, &[1, 2, 3, 4])
            .attribute(3, b"wan0\0")
            .nested(26, false, &[], |inside| inside.number(4, 7));
        let bytes = message.acknowledged().finish(9);
        let expected: &[u8] = &[
            48, 0, 0, 0, 19, 0, 5, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 9, 0, 3, 0, b'w', b'a', b'n', b'0', 0, 0, 0,
            0, 12, 0, 26, 0, 8, 0, 4, 0, 7, 0, 0, 0,
        ];
        assert_eq!(&bytes[4..], &expected[4..]);
        assert_eq!(bytes.len(), usize::from(bytes[0]));
    }

    #[test]
    fn the_kernels_words_are_read_from_a_refusal() {
        let request = Message::new(16, 0, &[0; 16]).finish(3);
        let flags = (libc::NLM_F_ACK_TLVS | libc::NLM_F_CAPPED) as u16;
        let mut body = (-libc::EINVAL).to_ne_bytes().to_vec();
        body.extend_from_slice(&request[..HEADER]);
        let mut refusal = Message::new(libc::NLMSG_ERROR as u16, 0, &body).attribute(1, b"no such thing\0");
        refusal.flags = flags;
        let bytes = refusal.finish(3);
        let error = answer(&bytes, 3).unwrap().unwrap_err();
        assert!(error.to_string().ends_with(": no such thing"), "{error}");
        assert!(answer(&bytes, 4).is_none());
        for length in 0..bytes.len() {
            assert!(answer(&bytes[..length], 3).is_none(), "cut at {length}");
        }
    }
}
