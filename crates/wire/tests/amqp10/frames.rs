//! Frames at every length, and noise.

use proptest::prelude::*;
use pubmark_wire::amqp10::{
    Frame, FrameKind, Packet, Performative, ProtocolHeader, SaslFrame, body, encode_frame, next,
};
use pubmark_wire::front::Front;

/// Largest frame of these tests, bytes.
const MOST_BYTES: usize = 4_096;

/// Bytes that look like AMQP now and then.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let frame = (any::<bool>(), any::<u16>(), proptest::collection::vec(any::<u8>(), 0..60)).prop_map(
        |(sasl, channel, body)| {
            let mut out = vec![];
            let kind = if sasl { FrameKind::Sasl } else { FrameKind::Amqp };
            encode_frame(kind, channel, &mut out, |out| out.extend_from_slice(&body));
            out
        },
    );
    let header = any::<(u8, [u8; 3])>().prop_map(|(id, version)| {
        let mut out = vec![];
        ProtocolHeader { id, version }.encode(&mut out);
        out
    });
    let part = prop_oneof![
        3 => frame,
        2 => header,
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => (any::<u32>(), any::<[u8; 4]>()).prop_map(|(size, rest)| [&(size % 5_000).to_be_bytes()[..], &rest].concat()),
    ];
    proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn more_bytes_never_contradict_an_earlier_result(bytes in almost()) {
        let mut least = 0;
        for length in 1..=bytes.len() {
            match next(&bytes[..length], MOST_BYTES) {
                Ok(Front::Whole { packet, bytes: whole }) => {
                    prop_assert!(whole <= length && whole >= least);
                    prop_assert_eq!(next(&bytes, MOST_BYTES), Ok(Front::Whole { packet, bytes: whole }));
                    return Ok(());
                }
                Ok(Front::Partial(Some(announced))) => {
                    prop_assert!(announced > length && announced <= MOST_BYTES && announced >= least);
                    least = announced;
                }
                Ok(Front::Partial(None)) | Err(_) => return Ok(()),
            }
        }
    }

    #[test]
    fn any_frame_content_is_survived(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
        let _ = Performative::decode(&bytes);
        let _ = SaslFrame::decode(&bytes);
        let _ = body(&bytes);
        // A descriptor of each kind, and noise behind it.
        for code in (0x10..=0x18).chain(0x40..=0x44).chain(0x70..=0x78) {
            let described = [&[0, 0x53, code, 0xc0, bytes.len() as u8 + 1, bytes[0] % 16][..], &bytes].concat();
            let _ = Performative::decode(&described);
            let _ = SaslFrame::decode(&described);
            let _ = body(&described);
        }
    }
}

#[test]
fn an_empty_frame_is_a_sign_of_life() {
    let mut out = vec![];
    pubmark_wire::amqp10::encode_empty(&mut out);
    let packet = Packet::Frame(Frame { kind: FrameKind::Amqp, channel: 0, body: &[] });
    assert_eq!(next(&out, 512), Ok(Front::Whole { packet, bytes: 8 }));
}
