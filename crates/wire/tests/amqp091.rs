//! AMQP 0-9-1 against invalid bytes, every cut of valid bytes, and our own encoder.

use proptest::prelude::*;
use pubmark_wire::amqp091::{
    Correlation, Declare, Frame, Item, Kind, Login, Method, Publish, Tune, append_body, append_reply, encode_ack,
    encode_bind, encode_channel_open, encode_close, encode_consume, encode_declare, encode_delete, encode_flow_ok,
    encode_open, encode_qos, encode_select, encode_start_ok, encode_tune_ok, encode_unbind, next, read_content_header,
    read_correlation, routing_key,
};
use pubmark_wire::front::Front;

/// Largest frame of these tests, bytes.
const MOST_BYTES: usize = 4_096;

/// Bytes that look like frames now and then.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => 1u8..4, 1 => Just(8), 1 => any::<u8>()];
    let end = prop_oneof![9 => Just(0xceu8), 1 => any::<u8>()];
    let frame = (kind, 0u16..3, proptest::collection::vec(any::<u8>(), 0..40), end, -1i32..2).prop_map(
        |(kind, channel, payload, end, error)| {
            let announced = (payload.len() as i32 + error.max(0)) as u32;
            let mut bytes = vec![kind];
            bytes.extend(channel.to_be_bytes());
            bytes.extend(announced.to_be_bytes());
            bytes.extend(payload);
            bytes.push(end);
            bytes
        },
    );
    let part = prop_oneof![
        6 => frame,
        1 => Just(b"AMQP\x00\x00\x09\x01".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

/// A method's number, and arguments that may be its own.
fn method() -> impl Strategy<Value = Vec<u8>> {
    let class = prop_oneof![Just(10u16), Just(20), Just(50), Just(60), Just(85), any::<u16>()];
    let number = prop_oneof![
        8 => proptest::sample::select(vec![10u16, 11, 20, 21, 30, 31, 40, 41, 50, 51, 60, 61, 80, 120]),
        1 => any::<u16>(),
    ];
    (class, number, proptest::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..40))
        .prop_map(|(class, number, arguments)| [&class.to_be_bytes()[..], &number.to_be_bytes(), &arguments].concat())
}

/// All frames of some bytes, which are whole.
fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = vec![];
    while !bytes.is_empty() {
        let Ok(Front::Whole { packet: Item::Frame(frame), bytes: length }) = next(bytes, MOST_BYTES) else {
            panic!("no frame: {}", bytes.escape_ascii());
        };
        frames.push(frame);
        bytes = &bytes[length..];
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn more_bytes_never_contradict_an_earlier_result(bytes in almost()) {
        let mut before = None;
        for length in 1..=bytes.len() {
            match next(&bytes[..length], MOST_BYTES) {
                Ok(Front::Whole { bytes: whole, packet: item }) => {
                    prop_assert!(whole <= length && before.is_none_or(|before| before == whole));
                    prop_assert_eq!(next(&bytes, MOST_BYTES), Ok(Front::Whole { bytes: whole, packet: item }));
                    return Ok(());
                }
                Ok(Front::Partial(Some(announced))) => {
                    prop_assert!(announced > length && announced <= MOST_BYTES);
                    prop_assert!(before.is_none_or(|before| before == announced));
                    before = Some(announced);
                }
                Ok(Front::Partial(None)) => prop_assert!(before.is_none()),
                Err(_) => return Ok(()),
            }
        }
    }

    #[test]
    fn noise_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), method in method()) {
        let _ = next(&bytes, MOST_BYTES);
        let _ = Method::read(&bytes);
        let _ = Method::read(&method);
        let _ = read_content_header(&bytes);
        let _ = read_correlation(&bytes);
    }

    #[test]
    fn a_method_is_all_of_its_frame(method in method()) {
        if let Ok(read) = Method::read(&method) {
            prop_assert!(!read.name().is_empty());
            for length in 0..method.len() {
                prop_assert!(Method::read(&method[..length]).is_err(), "{} of {}", length, method.len());
            }
            prop_assert!(Method::read(&[&method[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn a_request_and_its_reply_carry_their_properties(
        id in "[0-9-]{0,30}",
        queue in "[a-z.]{1,60}",
        persistent in any::<bool>(),
    ) {
        let request = Correlation { reply_to: &queue, correlation_id: &id };
        let mut out = Vec::new();
        Publish::new(1, "amq.topic", "a.b", persistent).append_request(7, request, &mut out);
        let answer = Correlation { reply_to: "", correlation_id: &id };
        append_reply(2, &queue, persistent, 7, answer, &mut out);
        let frames = frames(&out);
        prop_assert_eq!(frames.len(), 4);
        for (frame, expected) in [(&frames[1], request), (&frames[3], answer)] {
            prop_assert_eq!(read_content_header(frame.payload), Ok(7));
            prop_assert_eq!(read_correlation(frame.payload), Ok(expected));
        }
        prop_assert!(frames[2].payload.windows(queue.len() + 1).any(|part| part[1..] == *queue.as_bytes()));
    }

    #[test]
    fn a_message_is_decoded_into_its_parts(
        body in proptest::collection::vec(any::<u8>(), 1..500),
        most_bytes in 1usize..200,
        key in "[a-z.]{0,40}",
        persistent in any::<bool>(),
    ) {
        let mut out = Vec::new();
        let publish = Publish::new(1, "amq.topic", &key, persistent);
        publish.append(body.len(), &mut out);
        let at = append_body(1, body.len(), most_bytes, &mut out, |out| out.extend_from_slice(&body));
        prop_assert_eq!(out[at], body[0]);
        let frames = frames(&out);
        prop_assert!(frames.iter().all(|frame| frame.channel == 1));
        prop_assert_eq!((frames[0].kind, frames[1].kind), (Kind::Method, Kind::Header));
        prop_assert!(frames[0].payload.windows(key.len() + 1).any(|part| part[1..] == *key.as_bytes()));
        prop_assert_eq!(read_content_header(frames[1].payload), Ok(body.len() as u64));
        prop_assert_eq!(frames[1].payload.last(), Some(&(1 + u8::from(persistent))));
        let parts: Vec<&[u8]> = frames[2..].iter().map(|frame| frame.payload).collect();
        prop_assert!(parts.iter().rev().skip(1).all(|part| part.len() == most_bytes));
        prop_assert!(frames[2..].iter().all(|frame| frame.kind == Kind::Body));
        prop_assert_eq!(parts.concat(), body);
    }

    #[test]
    fn any_client_name_gives_whole_frames(name in ".{0,300}", text in ".{0,300}", number in any::<u16>()) {
        let mut out = Vec::new();
        let login = Login { connection_name: &name, product: "p", version: "v", user: &name, password: &text };
        encode_start_ok(&login, &mut out);
        encode_tune_ok(Tune { channel_max: number, frame_max: 4_096, heartbeat_s: number }, &mut out);
        encode_open(&name, &mut out);
        encode_channel_open(number, &mut out);
        encode_flow_ok(number, true, &mut out);
        encode_declare(1, &Declare { queue: &name, durable: true, expires_ms: Some(9), ..Declare::default() }, &mut out);
        encode_bind(1, &name, "amq.topic", &text, &mut out);
        encode_unbind(1, &name, "amq.topic", &text, &mut out);
        encode_qos(1, number, &mut out);
        encode_consume(1, &name, "", true, &mut out);
        encode_ack(1, u64::from(number), true, &mut out);
        encode_select(2, &mut out);
        encode_delete(1, &name, false, &mut out);
        encode_close(&mut out);
        prop_assert_eq!(frames(&out).len(), 14);
    }

    #[test]
    fn a_topic_with_a_key_has_its_levels_as_words(topic in "[a-z +#$]{0,4}(/[a-z]{0,4}){0,4}") {
        if let Ok(key) = routing_key(&topic) {
            let words: Vec<String> = key.split('.').map(|word| word.replace('*', "+")).collect();
            prop_assert_eq!(words.join("/"), topic);
        }
    }
}
