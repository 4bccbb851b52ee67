//! DDS between its own clients, over the network of this machine.

#![allow(clippy::print_stderr)]

use pubmark_adapters::dds::{CycloneClients, RustClients};
use pubmark_conformance::cases::run_all_but;
use pubmark_conformance::dds::Domain;
use pubmark_conformance::deadline::Deadline;
use pubmark_conformance::peer::{Peer, publisher, subscriber};
use pubmark_conformance::server::Listener;
use pubmark_model::qos::Qos;
use pubmark_protocol::any::AnyClients;
use pubmark_protocol::clients::SessionId;
use pubmark_testing::{assert_count, assert_count_eq};

/// Cases about features that DDS lacks.
const LEFT_OUT: &[(&str, &str)] = &[
    ("the in-flight window is kept", "DDS has no window of messages; a writer's history limits it"),
    ("a port without listener is unreachable", "nobody has to listen anywhere"),
    ("unanswered messages of a lost session are reported", "without readers there is nobody who owes an answer"),
    ("a killed server is noticed", "there is no server"),
    ("a server that stops answering is noticed", "there is no server"),
];

/// Is the library installed? Prints the reason if not.
fn has_cyclone() -> bool {
    let missing = CycloneClients::missing();
    if let Some(why) = &missing {
        pubmark_testing::skip(format_args!("{why} (`apt-get install libddsc0debian`)"));
    }
    missing.is_none()
}

#[test]
fn cyclone_plain() {
    if has_cyclone() {
        run_all_but::<CycloneClients, Domain>(CycloneClients::capabilities(), Listener::Plain, LEFT_OUT);
    }
}

/// RustDDS acknowledges samples on receipt and drops the oldest unread ones beyond 512 of a topic;
/// a run that floods is refused (docs/explanation/dds.md).
const LEFT_OUT_FOR_RUST: &[(&str, &str)] = &[(
    "a flood through a full socket arrives whole and in order",
    "RustDDS drops what it has acknowledged when its reader is busy: runs that flood are refused",
)];

#[test]
fn rust_plain() {
    let left_out: Vec<(&str, &str)> = LEFT_OUT.iter().chain(LEFT_OUT_FOR_RUST).copied().collect();
    run_all_but::<RustClients, Domain>(RustClients::capabilities(), Listener::Plain, &left_out);
}

/// From one library to the other, both ways, at every level.
#[test]
fn cyclone_and_rust_understand_each_other() {
    if !has_cyclone() {
        return;
    }
    let _deadline = Deadline::start("Cyclone DDS and RustDDS");
    for settings in ["?topic=per-topic", "?topic=single"] {
        for qos in [Qos::BestEffort, Qos::AtLeastOnce] {
            let endpoint = Domain::free().with(settings).at();
            exchange(Peer::<CycloneClients>::open(endpoint.clone()), Peer::<RustClients>::open(endpoint.clone()), qos);
            exchange(Peer::<RustClients>::open(endpoint.clone()), Peer::<CycloneClients>::open(endpoint), qos);
        }
    }
}

/// What a reader's depth has no room for while the shard does not poll, pubmark has dropped, and not the system.
#[test]
fn rust_reports_samples_that_a_reader_of_one_has_no_room_for() {
    const SENT: u64 = 10;
    let _deadline = Deadline::start("RustDDS");
    let domain = Domain::free();
    let mut writer = Peer::<RustClients>::open(domain.at());
    let mut reader = Peer::<RustClients>::open(domain.with("?history=1").at());
    let receives = reader.join(subscriber("one-in", "one", Qos::AtLeastOnce));
    let sender = writer.join(publisher("one-out", "one", Qos::AtLeastOnce));
    while reader.record.arrived.is_empty() {
        send_acknowledged(&mut writer, sender, 1);
        reader.linger(20);
    }
    reader.linger(50);
    reader.record.arrived.clear();
    reader.record.missed = 0;
    // The reader's shard is this thread. The library has every sample that it has acknowledged.
    send_acknowledged(&mut writer, sender, SENT);
    let last = writer.record.written() as u32;
    reader.wait("the last one", |record| !record.arrived.is_empty());
    reader.linger(50);
    assert_count_eq!(reader.record.sequences(receives), [last]);
    assert_count_eq!(reader.record.missed, SENT - 1);
}

fn send_acknowledged(writer: &mut Peer<RustClients>, sender: SessionId, messages: u64) {
    (0..messages).for_each(|_| writer.send(sender, 16));
    let written = writer.record.written();
    writer.wait("acknowledged", |record| record.acknowledged() == written);
}

fn exchange<A: AnyClients, B: AnyClients>(mut writer: Peer<A>, mut reader: Peer<B>, qos: Qos) {
    const SIZES: [u32; 4] = [16, 100, 1_000, 60_000];
    reader.join(subscriber("other-in", "other/+", qos));
    let sender = writer.join(publisher("other-out", "other/topic", qos));
    // The first one may be too early at best effort.
    while reader.record.arrived.is_empty() {
        writer.send(sender, 16);
        writer.linger(10);
        reader.linger(20);
    }
    reader.linger(50);
    reader.record.arrived.clear();
    for size in SIZES {
        writer.send(sender, size);
        reader.wait("one size", |record| record.arrived.last().is_some_and(|one| one.payload_bytes == size as usize));
    }
    assert_count!(reader.record.arrived.iter().all(|one| one.intact));
    if qos > Qos::BestEffort {
        let written = writer.record.written();
        writer.wait("acknowledged", |record| record.acknowledged() == written);
    }
}
