//! ZMTP against invalid bytes, every cut of valid bytes, and encoder against decoder.

use proptest::prelude::*;
use pubmark_model::topic::TopicFilter;
use pubmark_wire::front::Front;
use pubmark_wire::zmtp::{
    self, Command, GREETING_BYTES, Item, LONGEST_COMMAND_BYTES, Mechanism, SocketType, append_frame_front, next,
};

/// Largest frame of these tests, bytes.
const MOST_BYTES: usize = 4_096;

/// Bytes that look like ZMTP now and then: greetings, fronts of frames, names of commands, noise.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let mut greeting = Vec::new();
    zmtp::encode_greeting_front(&mut greeting);
    zmtp::encode_greeting_rest(Mechanism::Null, &mut greeting);
    let part = prop_oneof![
        1 => Just(greeting),
        1 => Just(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01".to_vec()),
        4 => (0u8..8, 0u8..30).prop_map(|(flags, size)| vec![flags, size]),
        2 => (0u8..8, 0u64..5_000).prop_map(|(flags, size)| [&[flags][..], &size.to_be_bytes()].concat()),
        2 => proptest::sample::select(&["\x05READY\x0bSocket-Type\0\0\0\x03SUB", "\x04PING\0\0", "\x09SUBSCRIBE"][..])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(part, 1..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_break_it(bytes in almost()) {
        // More bytes never contradict the result of fewer, and no announced length is larger than allowed.
        let mut least = 0;
        for length in 1..=bytes.len() {
            match next(&bytes[..length], MOST_BYTES) {
                Ok(Front::Whole { packet: item, bytes: whole }) => {
                    prop_assert!(whole <= length && whole >= least && whole <= MOST_BYTES);
                    prop_assert_eq!(next(&bytes, MOST_BYTES), Ok(Front::Whole { packet: item, bytes: whole }));
                    if let Item::Command(body) = item {
                        let _ = Command::read(body);
                    }
                    return Ok(());
                }
                Ok(Front::Partial(Some(announced))) => {
                    prop_assert!(announced > length && announced >= least && announced <= MOST_BYTES);
                    least = announced;
                }
                Ok(Front::Partial(None)) | Err(_) => return Ok(()),
            }
        }
    }

    #[test]
    fn noise_is_survived(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
        let _ = next(&bytes, MOST_BYTES);
        let _ = Command::read(&bytes);
    }

    #[test]
    fn what_is_written_is_read_back(
        topic in proptest::collection::vec(any::<u8>(), 0..600),
        user in proptest::collection::vec(any::<u8>(), 0..=255),
        context in proptest::collection::vec(any::<u8>(), 0..=16),
    ) {
        let mut out = Vec::new();
        zmtp::encode_hello(&user, &topic[..topic.len().min(255)], &mut out);
        zmtp::encode_ping(&context, &mut out);
        zmtp::encode_pong(&context, &mut out);
        zmtp::encode_subscribe(&topic, &mut out);
        zmtp::encode_cancel(&topic, &mut out);
        append_frame_front(true, topic.len(), &mut out);
        out.extend_from_slice(&topic);
        zmtp::encode_subscription_message(true, &topic, &mut out);
        let mut items = Vec::new();
        let mut rest = &out[..];
        while !rest.is_empty() {
            let Ok(Front::Whole { packet: item, bytes }) = next(rest, MOST_BYTES) else { panic!("{}", rest.escape_ascii()) };
            items.push(item);
            rest = &rest[bytes..];
        }
        let commands: Vec<Command<'_>> = items.iter().filter_map(|item| match item {
            Item::Command(body) => Command::read(body).ok(),
            _ => None,
        }).collect();
        prop_assert_eq!(commands, [
            Command::Hello { user: &user, password: &topic[..topic.len().min(255)] },
            Command::Ping { context: &context },
            Command::Pong { context: &context },
            Command::Subscribe(&topic),
            Command::Cancel(&topic),
        ]);
        let asked = [&[1][..], &topic].concat();
        prop_assert_eq!(&items[5..], [Item::Frame { more: true, body: &topic }, Item::Frame { more: false, body: &asked }]);
    }

    #[test]
    fn every_topic_that_a_filter_matches_begins_with_its_prefix(
        filter in "([ab$]{0,2}|\\+)(/([ab]{0,2}|\\+)){0,3}(/#)?",
        topic in "[ab$]{0,2}(/[ab]{0,2}){0,4}",
    ) {
        if TopicFilter(filter.clone()).matches(&topic) {
            prop_assert!(topic.starts_with(zmtp::prefix(&filter)), "{} {}", filter, topic);
        }
    }
}

#[test]
fn a_handshake_of_libzmq_4_3_4_is_read() {
    let mut bytes = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL".to_vec();
    bytes.resize(GREETING_BYTES, 0);
    bytes
        .extend_from_slice(b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04XSUB\x04\x0b\x09SUBSCRIBEa\0\x02\x01b\0\x02\0b");
    let mut items = Vec::new();
    let mut rest = &bytes[..];
    while let Ok(Front::Whole { packet: item, bytes }) = next(rest, MOST_BYTES) {
        items.push(item);
        rest = &rest[bytes..];
    }
    let [Item::Greeting(greeting), Item::Command(ready), Item::Command(subscribe), asked, taken_back] = items[..]
    else {
        panic!("{items:?}");
    };
    assert_eq!((greeting.minor, greeting.mechanism, greeting.as_server), (1, Mechanism::Null, false));
    let Ok(Command::Ready(metadata)) = Command::read(ready) else { panic!("no READY") };
    assert_eq!(metadata.get("Socket-Type").and_then(SocketType::of), Some(SocketType::Xsub));
    assert_eq!(Command::read(subscribe), Ok(Command::Subscribe(b"a")));
    assert_eq!(asked, Item::Frame { more: false, body: b"\x01b" });
    assert_eq!(taken_back, Item::Frame { more: false, body: b"\0b" });
    assert!(LONGEST_COMMAND_BYTES > "SUBSCRIBE".len() + 65_535);
}
