//! The watcher on packets made here: in one, in pieces, lost, out of order, of another run.

use pubmark_protocol::header;

use super::*;
use crate::star::{Observer, Passage};

const RUN: u32 = 0x0055_aa11;
const START_NS: u64 = 1_000_000;
/// Publisher 0 sends 2,000 B, publisher 1 sizes that differ.
const SIZES: [u32; 2] = [2_000, 0];

fn watch() -> (Watch, Watcher) {
    let watch = Watch::new();
    watch.order(WatchSpec {
        run: RUN,
        sampling: Sampling::one_in(1),
        payload_bytes: SIZES.into(),
        duration_ns: 1_000_000,
        most: 100,
    });
    let watcher = watch.watcher();
    (watch, watcher)
}

fn message(publisher: u32, sequence: u32, bytes: usize) -> Vec<u8> {
    let mut payload = vec![];
    header::write(&mut payload, bytes, RUN, publisher, sequence, START_NS + 10);
    payload.resize(bytes, 0xee);
    payload
}

/// A segment of TCP from port 9 to port 80 whose first byte has this number.
fn segment(first: u32, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0u8; 40];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(40 + data.len() as u16).to_be_bytes());
    packet[9] = 6;
    packet[20..24].copy_from_slice(&[0, 9, 0, 80]);
    packet[24..28].copy_from_slice(&first.to_be_bytes());
    packet[32] = 5 << 4;
    packet.extend(data);
    packet
}

/// It comes to the link at a time and leaves it 5 ns later.
fn pass(watcher: &mut Watcher, packet: &[u8], in_ns: u64) {
    watcher.passed(Passage { packet, group: 3, direction: Direction::Up, in_ns, out_ns: in_ns + 5 });
}

fn seen(watch: &Watch, watcher: Watcher) -> Vec<(u32, u32, u32, u64, u64)> {
    drop(watcher);
    let all = watch.take().sightings;
    assert!(all.iter().all(|one| (one.group, one.direction, one.port) == (3, Direction::Up, 9)), "{all:?}");
    all.iter().map(|one| (one.publisher, one.sequence, one.bytes, one.in_ns, one.out_ns)).collect()
}

#[test]
fn nothing_is_seen_before_it_begins() {
    let (watch, mut watcher) = watch();
    pass(&mut watcher, &segment(1, &message(1, 1, 100)), 50);
    assert_eq!(seen(&watch, watcher), []);
}

#[test]
fn a_long_message_ends_with_its_last_packet() {
    let (watch, mut watcher) = watch();
    watch.begin(START_NS);
    let message = message(0, 1, 2_000);
    pass(&mut watcher, &segment(100, &message[..1_400]), 50);
    pass(&mut watcher, &segment(1_500, &message[1_400..]), 80);
    assert_eq!(seen(&watch, watcher), [(0, 1, 2_000, 50, 85)]);
}

#[test]
fn data_after_a_loss_waits_for_its_retransmission() {
    let (watch, mut watcher) = watch();
    watch.begin(START_NS);
    let [first, second, third] = [1, 2, 3].map(|sequence| message(1, sequence, 100));
    pass(&mut watcher, &segment(100, &first), 50);
    watcher.lost(&segment(200, &second), 3, Direction::Up, 60);
    pass(&mut watcher, &segment(300, &third), 70);
    pass(&mut watcher, &segment(200, &second), 260);
    // The lost one came first at 60; the third was there at 75 and could be read when the second was.
    assert_eq!(seen(&watch, watcher), [(1, 1, 100, 50, 55), (1, 3, 100, 70, 265), (1, 2, 100, 60, 265)]);
}

#[test]
fn two_messages_in_a_packet_are_two_and_one_of_unknown_length_is_the_rest() {
    let (watch, mut watcher) = watch();
    watch.begin(START_NS);
    let both = [message(1, 1, 100), message(1, 2, 60)].concat();
    pass(&mut watcher, &segment(100, &both), 50);
    assert_eq!(seen(&watch, watcher), [(1, 1, 160, 50, 55), (1, 2, 60, 50, 55)]);
}

#[test]
fn messages_of_other_runs_and_times_are_not_followed() {
    let (watch, mut watcher) = watch();
    watch.begin(START_NS + 1_000);
    pass(&mut watcher, &segment(100, &message(1, 1, 100)), 50);
    assert_eq!(seen(&watch, watcher), []);
}
