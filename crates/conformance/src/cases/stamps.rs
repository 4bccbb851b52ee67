//! The timestamps in headers and events.

use pubmark_protocol::clock;
use pubmark_testing::assert_count_eq;

use super::Target;
use crate::peer::{publisher, subscriber};
use crate::recorder::Event;

/// The offset between the kernel's two clocks is sampled with an error below this.
const CLOCK_ERROR_NS: u64 = 50_000;

pub fn stamps_are_in_order(target: &mut Target) {
    const COUNT: usize = 200;
    let level = target.first_sure_level();
    let mut peer = target.peer();
    peer.join(subscriber("stamps-in", "stamps", level));
    let sender = peer.join(publisher("stamps-out", "stamps", level));
    let begin = clock::monotonic_ns();
    for sent in 1..=COUNT {
        peer.send(sender, 100);
        peer.wait("one message", |record| record.arrived.len() == sent);
    }
    let written = peer.record.all(|event| match event {
        Event::Written(_, token, write_start_ns, written_ns) => Some((token.sequence, *write_start_ns, *written_ns)),
        _ => None,
    });
    let mut stamped = 0;
    for (one, (sequence, write_start_ns, written_ns)) in peer.record.arrived.iter().zip(written) {
        let header = one.header;
        assert_count_eq!(header.sequence, sequence);
        assert!(begin <= header.due_ns && header.due_ns <= write_start_ns && write_start_ns <= written_ns);
        let in_header_us = header.write_start_us.expect("a full header has one");
        assert_eq!(u64::from(in_header_us), (write_start_ns - header.due_ns) / 1_000);
        assert!(write_start_ns < one.at_ns && one.empty_at_ns.is_none_or(|empty_at_ns| empty_at_ns <= one.at_ns));
        if let Some(kernel_ns) = one.kernel_ns {
            assert!(kernel_ns + CLOCK_ERROR_NS >= write_start_ns && kernel_ns <= one.at_ns + CLOCK_ERROR_NS);
            let empty_at_ns = one.empty_at_ns.expect("who has stamps reads");
            assert!(kernel_ns + CLOCK_ERROR_NS >= empty_at_ns, "the socket was empty before it came");
            stamped += 1;
        }
    }
    if target.reads_itself() {
        return pubmark_testing::skip(format_args!(
            "{}'s library reads by itself, no stamps of the kernel's",
            target.capabilities.name
        ));
    }
    assert!(stamped > COUNT / 2, "{stamped} of {COUNT} messages have the kernel's stamp");
}

/// The adapter does not read for 20 ms while ten messages arrive: the receive lateness of the first must be at least that.
pub fn a_reader_held_up(target: &mut Target) {
    const HELD_UP_NS: u64 = 20_000_000;
    const COUNT: usize = 10;
    let level = target.first_sure_level();
    let mut reader = target.peer();
    reader.join(subscriber("held-up-in", "held-up", level));
    let mut writer = target.peer();
    let sender = writer.join(publisher("held-up-out", "held-up", level));
    reader.linger(10);
    let due_ns = clock::monotonic_ns();
    for _ in 0..COUNT {
        writer.send(sender, 100);
    }
    while clock::monotonic_ns() < due_ns + HELD_UP_NS {
        std::hint::spin_loop();
    }
    reader.wait("what waited", |record| record.arrived.len() == COUNT);
    let first = &reader.record.arrived[0];
    let bound_ns = first.at_ns - first.empty_at_ns.unwrap().max(first.header.due_ns);
    assert!(bound_ns > HELD_UP_NS / 2, "receive lateness is bounded by {bound_ns} ns, too little to be true");
    let last = &reader.record.arrived[COUNT - 1];
    if last.at_ns == first.at_ns {
        // The kernel's timestamp of a read of a stream belongs to its last message; each datagram has its own.
        assert!(first.kernel_ns.is_none_or(|first_ns| Some(first_ns) < last.kernel_ns), "one stamp for two messages");
    }
}
