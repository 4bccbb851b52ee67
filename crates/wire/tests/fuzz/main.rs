//! Fuzzing of every parser that reads what a server or a client sent: nothing may panic, announce more than is allowed, or
//! read what is not there. `PUBMARK_FUZZ_S` sets the seconds of each target.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed unwrap is a failed test, and its course is shown"
)]

mod mutation;

use mutation::fuzz;
use pubmark_model::qos::Qos;
use pubmark_wire::front::Front;
use pubmark_wire::mqtt::{self, Version};
use pubmark_wire::{amqp10, amqp091, coap, nats, resp, zmtp};

/// Largest packet that is accepted, bytes.
const MOST_BYTES: usize = 1_000;

fn mqtt_corpus(version: Version) -> Vec<Vec<u8>> {
    let head = mqtt::PublishHead {
        dup: false,
        qos: Qos::AtLeastOnce,
        retain: true,
        topic: "a/b",
        packet_id: Some(7),
        properties: mqtt::Properties::NONE,
    };
    let mut publish = vec![];
    mqtt::encode_publish_head(version, &head, 5, &mut publish).unwrap();
    publish.extend_from_slice(b"hello");
    let connect = mqtt::Connect {
        version,
        clean_start: true,
        keep_alive_s: 60,
        client_id: "client",
        will: None,
        user: Some("user"),
        password: Some(b"password"),
        properties: mqtt::Properties::NONE,
    };
    let mut first = vec![];
    mqtt::encode_connect(&connect, &mut first).unwrap();
    let mut ping = vec![];
    mqtt::encode_pingreq(&mut ping);
    // CONNACK with Receive Maximum, Maximum QoS, Assigned Client Identifier; SUBACK; PUBACK; DISCONNECT with a reason string; AUTH.
    let connack: &[u8] = &[0x20, 13, 0, 0, 10, 0x21, 0, 20, 0x24, 1, 0x12, 0, 2, b'i', b'd'];
    let others: [&[u8]; 5] = [
        connack,
        &[0x90, 5, 0, 1, 0, 0, 0x80],
        &[0x40, 4, 0, 7, 0x10, 0],
        &[0xe0, 7, 0x8b, 5, 0x1f, 0, 2, b'n', b'o'],
        &[0xf0, 13, 0x19, 11, 0x15, 0, 3, b'J', b'W', b'T', 0x16, 0, 2, b'a', b'.'],
    ];
    [publish, first, ping].into_iter().chain(others.map(<[u8]>::to_vec)).collect()
}

fn fuzz_mqtt(version: Version) {
    fuzz(&format!("MQTT {version:?}"), &mqtt_corpus(version), |bytes| {
        if let Ok(Some(frame)) = mqtt::frame(bytes, MOST_BYTES) {
            assert!(frame.total_bytes <= bytes.len() && frame.total_bytes <= MOST_BYTES);
            let _ = mqtt::decode(version, &frame);
            let _ = mqtt::decode_connack(version, &frame);
            let _ = mqtt::decode_ack(version, &frame);
        }
    });
}

#[test]
fn mqtt_311() {
    fuzz_mqtt(Version::V311);
}

#[test]
fn mqtt_5() {
    fuzz_mqtt(Version::V5);
}

#[test]
fn nats() {
    let corpus = [
        "INFO {\"server_id\":\"x\",\"max_payload\":1000,\"tls_required\":true}\r\n",
        "MSG a.b 1 reply 5\r\nhello\r\n",
        "HMSG a.b 1 12 17\r\nNATS/1.0\r\n\r\nhello\r\n",
        "PING\r\nPONG\r\n+OK\r\n",
        "-ERR 'Permissions Violation for Subscription to \"a\"'\r\n",
    ]
    .map(|text| text.as_bytes().to_vec());
    fuzz("NATS", &corpus, |bytes| {
        match nats::next(bytes, MOST_BYTES) {
            Ok(Front::Whole { bytes: whole, packet: operation }) => {
                assert!(whole > 0 && whole <= bytes.len());
                if let nats::Operation::Info(json) = operation {
                    let _ = nats::Info::read(json);
                }
            }
            Ok(Front::Partial(Some(announced))) => assert!(announced > bytes.len() && announced <= MOST_BYTES),
            Ok(Front::Partial(None)) | Err(_) => {}
        }
        let _ = nats::jetstream::ApiResponse::read(bytes);
        let _ = std::str::from_utf8(bytes).map(nats::jetstream::stream_sequence);
    });
}

#[test]
fn resp() {
    let corpus = [
        ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n",
        ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$5\r\nhello\r\n",
        "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nmodules\r\n*1\r\n%1\r\n+name\r\n_\r\n",
        "-WRONGPASS no\r\n+OK\r\n:12\r\n$-1\r\n",
        "|1\r\n+a\r\n,1.5\r\n:7\r\n",
    ]
    .map(|text| text.as_bytes().to_vec());
    fuzz("RESP", &corpus, |bytes| match resp::next(bytes, MOST_BYTES) {
        Ok(Front::Whole { bytes: whole, .. }) => assert!(whole > 0 && whole <= bytes.len()),
        Ok(Front::Partial(Some(announced))) => assert!(announced > bytes.len() && announced <= MOST_BYTES),
        Ok(Front::Partial(None)) | Err(_) => {}
    });
}

#[test]
fn coap() {
    let corpus: [&[u8]; 4] = [
        // PUT /ps/a in blocks; a notification with an ETag and a first block; a ping; a GET that observes.
        &[0x44, 3, 0, 1, 0x40, 0, 0, 1, 0xb2, b'p', b's', 0x01, b'a', 0xd1, 3, 0x0e, 0xd2, 20, 4, 0, 0xff, b'x'],
        &[0x53, 0x45, 0, 2, 0x80, 0, 0, 0x41, 7, 0x21, 9, 0xd1, 4, 0x0e, 0xff, b'x'],
        &[0x40, 0, 0, 3],
        &[0x43, 1, 0, 4, 0x80, 0, 0, 0x60, 0x52, b'p', b's', 0x01, b'+'],
    ];
    fuzz("CoAP", &corpus.map(<[u8]>::to_vec), |bytes| {
        let _ = coap::peek(bytes);
        if let Ok(message) = coap::decode(bytes) {
            assert!(message.token.len() <= coap::LONGEST_TOKEN_BYTES && message.payload.len() < bytes.len());
            for (_, value) in message.options {
                let _ = (coap::uint(value), coap::Block::read(value).map(coap::Block::offset));
            }
            let mut topic = String::new();
            if coap::decode_topic(&message, &mut topic) {
                assert!(coap::check_topic(&topic).is_ok());
            }
        }
    });
}

#[test]
fn amqp091() {
    let answer: &[u8] = b"\x01\x00\x02\x00\x00\x00\x0d\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x09\x01\xce";
    let message: &[u8] = b"\x01\x00\x01\x00\x00\x00\x1d\x00\x3c\x00\x3c\x01c\x00\x00\x00\x00\x00\x00\x00\x07\x00\x09amq.topic\x03a.b\xce\
        \x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x10\x00\x01\xce\
        \x03\x00\x01\x00\x00\x00\x05hello\xce";
    let start: &[u8] =
        b"\x01\x00\x00\x00\x00\x00\x24\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x04\x01at\x01\x00\x00\x00\x05PLAIN\
        \x00\x00\x00\x05en_US\xce";
    let close: &[u8] = b"\x01\x00\x01\x00\x00\x00\x0d\x00\x14\x00\x28\x01\x94\x02no\x00\x32\x00\x0a\xce";
    let declared: &[u8] = b"\x01\x00\x01\x00\x00\x00\x0e\x00\x32\x00\x0b\x01q\x00\x00\x00\x00\x00\x00\x00\x00\xce";
    let corpus =
        [answer, message, start, close, declared, amqp091::HEARTBEAT, amqp091::PROTOCOL_HEADER].map(<[u8]>::to_vec);
    fuzz("AMQP 0-9-1", &corpus, |bytes| {
        // Whole frames one after another, as a connection reads them.
        let mut rest = bytes;
        while !rest.is_empty() {
            match amqp091::next(rest, MOST_BYTES) {
                Ok(Front::Whole { packet: item, bytes: whole }) => {
                    assert!(whole > 0 && whole <= rest.len() && whole <= MOST_BYTES);
                    if let amqp091::Item::Frame(frame) = item {
                        assert_eq!(frame.payload.len() + amqp091::FRAME_EXTRA_BYTES, whole);
                        let _ = amqp091::Method::read(frame.payload);
                        let _ = amqp091::read_content_header(frame.payload);
                    }
                    rest = &rest[whole..];
                }
                Ok(Front::Partial(Some(announced))) => {
                    assert!(announced > rest.len() && announced <= MOST_BYTES);
                    break;
                }
                Ok(Front::Partial(None)) | Err(_) => break,
            }
        }
        let _ = amqp091::Method::read(bytes);
        let _ = std::str::from_utf8(bytes).map(amqp091::routing_key);
    });
}

/// A frame of each kind that a server sends.
fn amqp10_corpus() -> Vec<Vec<u8>> {
    use amqp10::{
        Attach, Begin, Condition, Detach, Disposition, Flow, Open, Role, SenderSettles, State, Terminus, Transfer,
    };
    let terminus = Some(Terminus {
        address: Some("/topic/a.b"),
        dynamic: true,
        capabilities: &["topic"],
        selector: Some("a > 3"),
    });
    let error = Some(Condition { name: "amqp:not-found", description: Some("no such address") });
    let encoded = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = vec![];
        write(&mut out);
        out
    };
    let open = Open {
        container_id: "server",
        hostname: None,
        max_frame_bytes: 131_072,
        channel_max: 1,
        idle_time_out_ms: Some(30_000),
        anonymous_relay: true,
        product: Some("RabbitMQ"),
        version: Some("3"),
    };
    let begin =
        Begin { remote_channel: Some(0), next_outgoing_id: 1, incoming_window: 9, outgoing_window: 9, handle_max: 255 };
    let attach = Attach {
        name: "s0",
        handle: 0,
        role: Role::Receiver,
        sender_settles: SenderSettles::Mixed,
        source: terminus,
        target: terminus,
        initial_delivery_count: Some(0),
        max_message_bytes: Some(1_000),
    };
    let flow = Flow {
        next_incoming_id: Some(1),
        incoming_window: 9,
        next_outgoing_id: 1,
        outgoing_window: 9,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(1_000),
        drain: true,
        echo: true,
    };
    let transfer = Transfer {
        handle: 0,
        delivery_id: Some(1),
        delivery_tag: Some(b"tag"),
        settled: Some(false),
        more: true,
        aborted: false,
        payload: b"\0\x53\x70\xc0\x02\x01\x41\0\x53\x73\xc1\x01\0\0\x53\x75\xa0\x05hello",
    };
    let disposition =
        Disposition { role: Role::Receiver, first: 1, last: 5, settled: true, state: Some(State::Rejected(error)) };
    vec![
        encoded(&|out| amqp10::ProtocolHeader::SASL.encode(out)),
        encoded(&|out| open.encode(out)),
        encoded(&|out| begin.encode(0, out)),
        encoded(&|out| attach.encode(0, out)),
        encoded(&|out| flow.encode(0, out)),
        encoded(&|out| transfer.encode(0, out)),
        encoded(&|out| disposition.encode(0, out)),
        encoded(&|out| Detach { handle: 0, closed: true, error }.encode(0, out)),
        encoded(&|out| amqp10::encode_end(0, error, out)),
        encoded(&|out| amqp10::encode_close(error, out)),
        encoded(&|out| amqp10::encode_empty(out)),
        encoded(&|out| amqp10::encode_plain("user", "password", "host", out)),
    ]
}

#[test]
fn amqp10() {
    fuzz("AMQP 1.0", &amqp10_corpus(), |bytes| {
        // Whole packets one after another, as a connection reads them.
        let mut rest = bytes;
        while !rest.is_empty() {
            match amqp10::next(rest, MOST_BYTES) {
                Ok(Front::Whole { packet, bytes: whole }) => {
                    assert!(whole > 0 && whole <= rest.len() && whole <= MOST_BYTES);
                    if let amqp10::Packet::Frame(frame) = packet {
                        assert!(frame.body.len() < whole);
                        let _ = amqp10::SaslFrame::decode(frame.body);
                        if let Ok(amqp10::Performative::Transfer(transfer)) = amqp10::Performative::decode(frame.body) {
                            let _ = amqp10::body(transfer.payload);
                        }
                    }
                    rest = &rest[whole..];
                }
                Ok(Front::Partial(Some(announced))) => {
                    assert!(announced > rest.len() && announced <= MOST_BYTES);
                    break;
                }
                Ok(Front::Partial(None)) | Err(_) => break,
            }
        }
        let _ = amqp10::Performative::decode(bytes);
        let _ = amqp10::body(bytes);
        let _ = std::str::from_utf8(bytes).map(amqp10::words);
    });
}

#[test]
fn zmtp() {
    let mut greeting = vec![];
    zmtp::encode_greeting_front(&mut greeting);
    zmtp::encode_greeting_rest(zmtp::Mechanism::Plain, &mut greeting);
    let others: [&[u8]; 6] = [
        b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04XSUB\x04\x0b\x09SUBSCRIBEa",
        b"\x04\x0b\x05ERROR\x04 400\x04\x08\x07WELCOME",
        b"\x04\x0c\x05HELLO\x02me\x02pw",
        b"\x01\x03a/b\x02\0\0\0\0\0\0\0\x05hello",
        b"\x04\x0a\x04PING\0\x0actx\x04\x08\x04PONGctx",
        b"\x06\0\0\0\0\0\0\0\x08\x06CANCELa\0\x02\x01b",
    ];
    let corpus: Vec<Vec<u8>> = [greeting].into_iter().chain(others.map(<[u8]>::to_vec)).collect();
    fuzz("ZMTP", &corpus, |bytes| {
        // Whole frames one after another, as a connection reads them.
        let mut rest = bytes;
        while !rest.is_empty() {
            match zmtp::next(rest, MOST_BYTES) {
                Ok(Front::Whole { packet: item, bytes: whole }) => {
                    assert!(whole > 0 && whole <= rest.len() && whole <= MOST_BYTES);
                    if let zmtp::Item::Command(body) = item
                        && let Ok(zmtp::Command::Ready(metadata)) = zmtp::Command::read(body)
                    {
                        let _ = metadata.get("Socket-Type").and_then(zmtp::SocketType::of);
                    }
                    rest = &rest[whole..];
                }
                Ok(Front::Partial(Some(announced))) => {
                    assert!(announced > rest.len() && announced <= MOST_BYTES);
                    break;
                }
                Ok(Front::Partial(None)) | Err(_) => break,
            }
        }
        let _ = zmtp::Command::read(bytes);
        let _ = std::str::from_utf8(bytes).map(zmtp::prefix);
    });
}
