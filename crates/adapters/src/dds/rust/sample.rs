//! Samples as RustDDS takes and gives them: plain CDR of `struct { string topic; sequence<octet> payload; }` (DDSI-RTPS 2.5 §10),
//! written and read here, so that a sample is copied once on its way out and once on its way in.

use std::convert::Infallible;

use pubmark_cyclone::sample::Sample;
use rustdds::RepresentationIdentifier;
use rustdds::bytes::Bytes;
use rustdds::no_key::{Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter};

/// Longest topic and payload together, bytes: lengths are 32 bits.
const LONGEST: usize = u32::MAX as usize - 16;

/// A sample in CDR.
pub struct Encoded {
    bytes: Bytes,
    is_little_endian: bool,
}

impl Encoded {
    /// A sample to write; `None` if its lengths do not fit 32 bits.
    pub fn of(topic: &[u8], payload: &[u8]) -> Option<Encoded> {
        if topic.len().checked_add(payload.len())? > LONGEST {
            return None;
        }
        // Checked above: both fit.
        let length = |bytes: usize| (bytes as u32).to_le_bytes();
        let mut out = Vec::with_capacity(topic.len() + payload.len() + 16);
        out.extend_from_slice(&length(topic.len() + 1));
        out.extend_from_slice(topic);
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(&length(payload.len()));
        out.extend_from_slice(payload);
        Some(Encoded { bytes: out.into(), is_little_endian: true })
    }

    /// Its fields, with the time at which it was written, ns of `CLOCK_REALTIME`; `None` where its lengths do not fit into it.
    pub fn fields(&self, source_ns: i64) -> Option<Sample<'_>> {
        let bytes = &self.bytes;
        let number = |at: usize| {
            let word: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
            Some(if self.is_little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) } as usize)
        };
        let end = number(0)?.checked_add(4)?;
        // The string's length counts its final zero.
        let topic = bytes.get(4..end.checked_sub(1)?)?;
        let at = end.checked_next_multiple_of(4)?;
        let begin = at.checked_add(4)?;
        let payload = bytes.get(begin..begin.checked_add(number(at)?)?)?;
        Some(Sample { topic, payload, source_ns, taken_ns: None })
    }
}

/// The library's interface for encoding and decoding samples. The bytes pass through unchanged.
#[derive(Clone)]
pub struct Cdr;

impl SerializerAdapter<Encoded> for Cdr {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(sample: &Encoded) -> Result<Bytes, Infallible> {
        Ok(sample.bytes.clone())
    }
}

impl DeserializerAdapter<Encoded> for Cdr {
    type Error = Infallible;
    type Decoded = Encoded;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE, RepresentationIdentifier::CDR_BE]
    }

    fn transform_decoded(decoded: Encoded) -> Encoded {
        decoded
    }
}

impl DefaultDecoder<Encoded> for Cdr {
    type Decoder = Cdr;
    const DECODER: Cdr = Cdr;
}

impl<'de> Decode<'de, Encoded> for Cdr {
    type Error = Infallible;

    fn decode_bytes(self, bytes: &'de [u8], encoding: RepresentationIdentifier) -> Result<Encoded, Infallible> {
        let is_little_endian = encoding == RepresentationIdentifier::CDR_LE;
        Ok(Encoded { bytes: Bytes::copy_from_slice(bytes), is_little_endian })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Encoded {
        Encoded { bytes: Bytes::copy_from_slice(bytes), is_little_endian: true }
    }

    #[test]
    fn a_sample_round_trips_and_wrong_lengths_are_refused() {
        for (topic, payload) in [("", &b""[..]), ("a", b"1"), ("a/b", b"1234"), ("abcd", &[7; 1_000])] {
            let sample = Encoded::of(topic.as_bytes(), payload).unwrap();
            let back = sample.fields(0).unwrap();
            assert_eq!((back.topic, back.payload), (topic.as_bytes(), payload));
            for end in 0..sample.bytes.len() {
                assert!(cut(&sample.bytes[..end]).fields(0).is_none(), "{end} of {}", sample.bytes.len());
            }
        }
        assert!(cut(&[0xff; 64]).fields(0).is_none() && cut(&[0; 8]).fields(0).is_none());
    }

    #[test]
    fn both_orders_of_bytes_are_read() {
        let bytes = b"\0\0\0\x02a\0\0\0\0\0\0\x03xyz";
        let sample = Encoded { bytes: Bytes::copy_from_slice(bytes), is_little_endian: false };
        let back = sample.fields(0).unwrap();
        assert_eq!((back.topic, back.payload), (&b"a"[..], &b"xyz"[..]));
    }
}
