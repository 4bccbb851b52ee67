//! Lies that take time; the journal's times are compared with the script.

use pubmark_model::qos::Qos;
use pubmark_testing::assert_count_eq;

use crate::stage::{Stage, publish, sequences, some};

const MILLISECOND_NS: u64 = 1_000_000;

#[test]
fn messages_are_delayed_by_the_time_that_the_script_names() {
    let stage = Stage::start("delay 50ms every=2");
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    publish(&mut stage.publisher(), Qos::BestEffort, 1..=4);
    assert_count_eq!(sequences(&mut subscriber, 4), some([1, 3, 2, 4]));
    let ended = stage.end();
    ended.check(&[("sent", 4), ("expected", 4), ("delivered", 4), ("out_of_order", 1)]);
    let received = ended.lines("received");
    let delay_ns = |forwarded: usize, index: usize| ended.lines("forwarded")[forwarded].0 - received[index].0;
    assert!(delay_ns(2, 1) >= 50 * MILLISECOND_NS && delay_ns(3, 3) >= 50 * MILLISECOND_NS);
}

#[test]
fn nothing_happens_while_the_broker_stands_still() {
    let stage = Stage::start("stall at=100ms for=300ms");
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    let mut publisher = stage.publisher();
    publish(&mut publisher, Qos::BestEffort, [1]);
    // It responds until the stall begins, and again afterwards.
    let begin = std::time::Instant::now();
    let mut longest = std::time::Duration::ZERO;
    while begin.elapsed() < std::time::Duration::from_millis(600) {
        let asked = std::time::Instant::now();
        publisher.expect_silence();
        longest = longest.max(asked.elapsed());
    }
    publish(&mut publisher, Qos::BestEffort, [2]);
    assert_count_eq!(sequences(&mut subscriber, 2), some([1, 2]));
    let ended = stage.end();
    ended.check(&[("sent", 2), ("expected", 2), ("delivered", 2)]);
    let (stalled_ns, _) = ended.lines("stalled")[0];
    assert!(stalled_ns - ended.lines("received")[0].0 >= 100 * MILLISECOND_NS);
    // The response to the ping before the stall may have come a moment before it began.
    assert!(longest >= std::time::Duration::from_millis(290), "{longest:?}");
}

#[test]
fn a_slow_broker_takes_its_time_for_each_message_and_never_gains_on_it() {
    let stage = Stage::start("slow 2ms");
    let mut subscriber = stage.subscriber(Qos::BestEffort);
    publish(&mut stage.publisher(), Qos::BestEffort, 1..=50);
    assert_count_eq!(sequences(&mut subscriber, 50), some(1..=50));
    let ended = stage.end();
    ended.check(&[("sent", 50), ("expected", 50), ("delivered", 50)]);
    let received = ended.lines("received");
    assert!(received[49].0 - received[0].0 >= 49 * 2 * MILLISECOND_NS - 2 * MILLISECOND_NS);
}
