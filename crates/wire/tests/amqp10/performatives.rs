//! Every performative, written and read back.

use proptest::option;
use proptest::prelude::*;
use pubmark_wire::amqp10::{
    Attach, Begin, Condition, Detach, Disposition, Flow, FrameKind, Open, Packet, Performative, Role, SaslFrame,
    SenderSettles, State, Terminus, Transfer, composite, encode_anonymous, encode_close, encode_end, encode_frame,
    encode_plain, next,
};
use pubmark_wire::front::Front;

#[test]
fn a_selector_is_a_described_text_among_the_filters_of_a_source() {
    let source = Terminus { selector: Some("a > 3"), ..Terminus::at(Some("t")) };
    let attach = Attach {
        name: "r0",
        handle: 0,
        role: Role::Receiver,
        sender_settles: SenderSettles::Settled,
        source: Some(source),
        target: None,
        initial_delivery_count: None,
        max_message_bytes: None,
    };
    let mut out = vec![];
    attach.encode(0, &mut out);
    let filters =
        b"\xd1\0\0\0\x38\0\0\0\x02\xa3\x21apache.org:selector-filter:string\0\x80\0\0\x46\x8c\0\0\0\x04\xa1\x05a > 3";
    let place = out.windows(filters.len()).position(|part| part == filters).expect("the filters");
    read_back(0, &out, Performative::Attach(attach));
    // A peer may know the filter by its name, and applies none where the map is empty or has other filters.
    let encode = |filters: &[u8]| {
        let mut source = b"\xa1\x01t\x40\x40\x40\x40\x40\x40".to_vec();
        source.extend_from_slice(filters);
        let source =
            [b"\0\x53\x28\xd0".to_vec(), (source.len() as u32 + 4).to_be_bytes().to_vec(), vec![0, 0, 0, 8], source]
                .concat();
        let mut out = vec![];
        encode_frame(FrameKind::Amqp, 0, &mut out, |out| {
            composite(0x12, out, |fields| {
                fields.text("r0");
                fields.uint(0);
                fields.boolean(false);
                fields.null();
                fields.null();
                fields.encoded(&source);
            });
        });
        out
    };
    let selector = |frame: &[u8]| match Performative::decode(only(frame, 0)) {
        Ok(Performative::Attach(attach)) => attach.source.and_then(|source| source.selector.map(str::to_owned)),
        other => panic!("{other:?}"),
    };
    assert_eq!(selector(&encode(&out[place..place + filters.len()])).as_deref(), Some("a > 3"));
    let map = |name: &[u8], value: &[u8]| {
        let pair = [&[0xa3, name.len() as u8], name, value].concat();
        [&[0xc1, pair.len() as u8 + 1, 2], &pair[..]].concat()
    };
    let named = [&b"\0\xa3\x21apache.org:selector-filter:string"[..], b"\xa1\x05a > 3"].concat();
    assert_eq!(selector(&encode(&map(b"jms", &named))).as_deref(), Some("a > 3"));
    let (other, plain) = (map(b"k", b"\0\x53\x09\xa1\x01x"), map(b"k", b"\x41"));
    for none in [&b"\x40"[..], b"\xc1\x01\0", &other, &plain] {
        assert_eq!(selector(&encode(none)), None, "{}", none.escape_ascii());
    }
}

/// The body of the only frame in some bytes.
fn only(bytes: &[u8], channel: u16) -> &[u8] {
    let Ok(Front::Whole { packet: Packet::Frame(frame), bytes: whole }) = next(bytes, usize::MAX) else {
        panic!("{}", bytes.escape_ascii());
    };
    assert_eq!((whole, frame.channel), (bytes.len(), channel));
    frame.body
}

fn read_back(channel: u16, bytes: &[u8], expected: Performative<'_>) {
    assert_eq!(Performative::decode(only(bytes, channel)), Ok(expected), "{}", bytes.escape_ascii());
}

type Error = Option<(String, Option<String>)>;

fn any_error() -> impl Strategy<Value = Error> {
    option::of(("[a-z:]{1,30}", option::of(".{0,300}")))
}

fn condition(error: &Error) -> Option<Condition<'_>> {
    error.as_ref().map(|(name, description)| Condition { name, description: description.as_deref() })
}

fn role(receives: bool) -> Role {
    if receives { Role::Receiver } else { Role::Sender }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn connections(
        name in ".{0,300}", hostname in option::of(".{0,20}"), numbers in any::<(u32, u16, Option<u32>, bool)>(),
        product in option::of(".{0,20}"), version in option::of(".{0,20}"), error in any_error(),
    ) {
        let open = Open {
            container_id: &name,
            hostname: hostname.as_deref(),
            max_frame_bytes: numbers.0,
            channel_max: numbers.1,
            idle_time_out_ms: numbers.2,
            anonymous_relay: numbers.3,
            product: product.as_deref(),
            version: version.as_deref(),
        };
        let mut out = vec![];
        open.encode(&mut out);
        read_back(0, &out, Performative::Open(open));
        let mut out = vec![];
        encode_close(condition(&error), &mut out);
        read_back(0, &out, Performative::Close(condition(&error)));
        let mut out = vec![];
        encode_end(numbers.1, condition(&error), &mut out);
        read_back(numbers.1, &out, Performative::End(condition(&error)));
    }

    #[test]
    fn sessions(channel in any::<u16>(), remote_channel in any::<Option<u16>>(), numbers in any::<[u32; 4]>()) {
        let [next_outgoing_id, incoming_window, outgoing_window, handle_max] = numbers;
        let begin = Begin { remote_channel, next_outgoing_id, incoming_window, outgoing_window, handle_max };
        let mut out = vec![];
        begin.encode(channel, &mut out);
        read_back(channel, &out, Performative::Begin(begin));
    }

    #[test]
    fn links(
        name in ".{0,300}", handle in any::<u32>(), receives in any::<bool>(), closed in any::<bool>(),
        mode in 0usize..3, source in option::of(option::of(".{0,20}")), target in option::of(option::of(".{0,300}")),
        counts in any::<(Option<u32>, Option<u64>)>(), error in any_error(), dynamic in any::<bool>(),
        selector in option::of(".{0,300}"),
    ) {
        let terminus = |address: &Option<Option<String>>| {
            address.as_ref().map(|address| Terminus { dynamic, ..Terminus::at(address.clone().map(|text| &*text.leak())) })
        };
        let attach = Attach {
            name: &name,
            handle,
            role: role(receives),
            sender_settles: [SenderSettles::Unsettled, SenderSettles::Settled, SenderSettles::Mixed][mode],
            source: terminus(&source).map(|source| Terminus { selector: selector.as_deref(), ..source }),
            target: terminus(&target),
            initial_delivery_count: counts.0,
            max_message_bytes: counts.1,
        };
        let mut out = vec![];
        attach.encode(3, &mut out);
        read_back(3, &out, Performative::Attach(attach));
        // Capabilities are written and not read.
        let asking = target.as_ref().map(|_| Terminus { capabilities: &["topic", "shared"], ..Terminus::at(None) });
        let mut out = vec![];
        Attach { target: asking, ..attach }.encode(3, &mut out);
        prop_assert_eq!(out.windows(5).any(|part| part == b"topic"), asking.is_some());
        prop_assert!(Performative::decode(only(&out, 3)).is_ok());
        let detach = Detach { handle, closed, error: condition(&error) };
        let mut out = vec![];
        detach.encode(3, &mut out);
        read_back(3, &out, Performative::Detach(detach));
    }

    #[test]
    fn windows(
        next_incoming_id in any::<Option<u32>>(), numbers in any::<[u32; 3]>(), link in any::<[Option<u32>; 3]>(),
        drain in any::<bool>(), echo in any::<bool>(),
    ) {
        let flow = Flow {
            next_incoming_id,
            incoming_window: numbers[0],
            next_outgoing_id: numbers[1],
            outgoing_window: numbers[2],
            handle: link[0],
            delivery_count: link[1],
            link_credit: link[2],
            drain,
            echo,
        };
        let mut out = vec![];
        flow.encode(0, &mut out);
        read_back(0, &out, Performative::Flow(flow));
    }

    #[test]
    fn deliveries(
        handle in any::<u32>(), delivery in option::of((any::<u32>(), proptest::collection::vec(any::<u8>(), 0..32))),
        settled in any::<Option<bool>>(), more in any::<bool>(), aborted in any::<bool>(),
        payload in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let transfer = Transfer {
            handle,
            delivery_id: delivery.as_ref().map(|(id, _)| *id),
            delivery_tag: delivery.as_ref().map(|(_, tag)| tag.as_slice()),
            settled,
            more,
            aborted,
            payload: &payload,
        };
        let mut out = vec![];
        transfer.encode(7, &mut out);
        read_back(7, &out, Performative::Transfer(transfer));
        let mut front = vec![];
        transfer.encode_front(7, payload.len(), &mut front);
        prop_assert_eq!([front, payload.clone()].concat(), out);
    }

    #[test]
    fn outcomes(range in any::<(u32, u32)>(), receives in any::<bool>(), settled in any::<bool>(), error in any_error(), kind in 0..7) {
        let state = match kind {
            0 => None,
            1 => Some(State::Received),
            2 => Some(State::Accepted),
            3 => Some(State::Rejected(condition(&error))),
            4 => Some(State::Released),
            5 => Some(State::Modified { failed: settled, undeliverable_here: receives }),
            _ => Some(State::Rejected(None)),
        };
        let disposition = Disposition { role: role(receives), first: range.0, last: range.1, settled, state };
        let mut out = vec![];
        disposition.encode(0, &mut out);
        read_back(0, &out, Performative::Disposition(disposition));
    }
}

#[test]
fn a_log_in_is_written_as_its_mechanisms_say() {
    let mut out = vec![];
    encode_plain("me", "secret", "host", &mut out);
    assert!(
        out.ends_with(b"\x00\x53\x41\xc0\x1a\x03\xa3\x05PLAIN\xa0\x0a\0me\0secret\xa1\x04host"),
        "{}",
        out.escape_ascii()
    );
    let mut out = vec![];
    encode_anonymous("host", &mut out);
    assert!(out.ends_with(b"\xa3\x09ANONYMOUS\xa0\x00\xa1\x04host"), "{}", out.escape_ascii());
}

#[test]
fn responses_to_a_log_in_are_read() {
    let words = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = vec![];
        encode_frame(FrameKind::Sasl, 0, &mut out, |out| write(out));
        only(&out, 0).to_vec()
    };
    let many = words(&|out| composite(0x40, out, |fields| fields.symbols(&["PLAIN", "ANONYMOUS"])));
    assert_eq!(SaslFrame::decode(&many), Ok(SaslFrame::Mechanisms(vec!["PLAIN", "ANONYMOUS"])));
    let one = words(&|out| composite(0x40, out, |fields| fields.symbol("PLAIN")));
    assert_eq!(SaslFrame::decode(&one), Ok(SaslFrame::Mechanisms(vec!["PLAIN"])));
    let outcome = words(&|out| composite(0x44, out, |fields| fields.ubyte(1)));
    assert_eq!(SaslFrame::decode(&outcome), Ok(SaslFrame::Outcome(1)));
    let crowd = ["X"; 1_000];
    let crowd = words(&|out| composite(0x40, out, |fields| fields.symbols(&crowd)));
    assert!(SaslFrame::decode(&crowd).is_err());
    assert!(SaslFrame::decode(&words(&|out| composite(0x44, out, |_| {}))).is_err(), "an outcome without a code");
}
