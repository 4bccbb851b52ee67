//! The text protocols against invalid bytes, and every cut of valid bytes.

use proptest::prelude::*;
use pubmark_wire::front::Front;
use pubmark_wire::{nats, resp};

/// Largest packet of these tests, bytes.
const MOST_BYTES: usize = 4_096;

/// Bytes that look like a protocol's now and then: words, line ends, numbers, noise.
fn almost(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        2 => Just(b"\r\n".to_vec()),
        2 => (0u64..5_000).prop_map(|number| number.to_string().into_bytes()),
        1 => Just(b" ".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
}

const NATS_WORDS: &[&str] = &["MSG a.b 1 ", "HMSG a 2 ", "INFO {}", "PING", "PONG", "+OK", "-ERR 'no'", "NATS/1.0"];
const RESP_WORDS: &[&str] = &["+OK", "-ERR no", ":1", "$5", "$-1", "*2", ">3", "%1", "|1", "_", "#t", ",1.5", "hello"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_break_nats(bytes in almost(NATS_WORDS)) {
        // More bytes never contradict the result of fewer, and no announced length is larger than allowed.
        let mut before = None;
        for length in 1..=bytes.len() {
            match nats::next(&bytes[..length], MOST_BYTES) {
                Ok(Front::Whole { bytes: whole, packet: operation }) => {
                    prop_assert!(whole <= length);
                    prop_assert_eq!(nats::next(&bytes, MOST_BYTES), Ok(Front::Whole { bytes: whole, packet: operation }));
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
    fn no_bytes_break_resp(bytes in almost(RESP_WORDS)) {
        let mut least = 0;
        for length in 1..=bytes.len() {
            match resp::next(&bytes[..length], MOST_BYTES) {
                Ok(Front::Whole { bytes: whole, packet: reply }) => {
                    prop_assert!(whole <= length && whole >= least);
                    prop_assert_eq!(resp::next(&bytes, MOST_BYTES), Ok(Front::Whole { bytes: whole, packet: reply }));
                    return Ok(());
                }
                Ok(Front::Partial(Some(announced))) => {
                    prop_assert!(announced > length && announced <= MOST_BYTES && announced >= least);
                    least = announced;
                }
                Ok(Front::Partial(None)) => {}
                Err(_) => return Ok(()),
            }
        }
    }

    #[test]
    fn noise_is_survived(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
        let _ = nats::next(&bytes, MOST_BYTES);
        let _ = resp::next(&bytes, MOST_BYTES);
        let _ = nats::Info::read(&bytes);
    }

    #[test]
    fn commands_of_a_client_are_read_back(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..4)) {
        let mut out = Vec::new();
        let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        resp::encode_command(&slices, &mut out);
        // A command is an array; as a push it shows its parts.
        out[0] = b'>';
        let Ok(Front::Whole { packet: resp::Reply::Push(parts), bytes }) = resp::next(&out, MOST_BYTES) else {
            panic!("{}", out.escape_ascii());
        };
        prop_assert_eq!((parts.as_slice(), bytes), (&slices[..], out.len()));
    }

    #[test]
    fn a_filter_without_plus_means_the_same_to_redis(
        topic in "[a-c*?]{1,2}(/[a-c*?\\[\\\\]{1,2}){0,3}",
        parent in "[a-c*?]{1,2}(/[a-c*?]{1,2}){0,1}",
    ) {
        for filter in [parent.clone(), format!("{parent}/#"), "#".to_owned()] {
            let standard = pubmark_model::topic::TopicFilter(filter.clone()).matches(&topic);
            prop_assert_eq!(resp::filter_matches(&filter, &topic), standard, "{} {}", filter, topic);
        }
    }
}
