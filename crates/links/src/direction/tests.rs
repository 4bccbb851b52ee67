//! The state machine on virtual time.

use proptest::prelude::*;
use pubmark_model::link::{Conditions, Delay, Distribution, Loss, Rate, Step};

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const UNLIMITED: u64 = u64::MAX;

fn link(conditions: Conditions) -> OneWayLink<u64> {
    stepped(&[(0, conditions)], 1)
}

fn stepped(steps: &[(u64, Conditions)], seed: u64) -> OneWayLink<u64> {
    let steps = steps.iter().map(|(at_ns, conditions)| Step { at_ns: *at_ns, conditions: *conditions }).collect();
    let mut link = OneWayLink::new(steps, seed, "test", Direction::Up);
    link.start(0);
    link
}

fn rated(bits_per_second: u64, queue_bytes: u64) -> Conditions {
    Conditions { rate: Some(Rate { bits_per_second, queue_bytes }), ..Conditions::default() }
}

fn delayed(mean_ns: u64, jitter_ns: u64, distribution: Distribution, jitter_reorders: bool) -> Conditions {
    Conditions { delay: Delay { mean_ns, jitter_ns, distribution, jitter_reorders }, ..Conditions::default() }
}

/// Everything that leaves until nothing is left, as (packet, due).
fn drain(link: &mut OneWayLink<u64>) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    while let Some(next) = link.next_ns() {
        while let Some(departure) = link.pop(next) {
            left.push((departure.packet, departure.due_ns));
        }
    }
    assert_eq!(link.counters().waiting, Tally::default());
    assert_eq!(link.held_bytes(), 0);
    assert!(link.counters().closed());
    left
}

/// Gives `count` packets of `bytes`, one each `every_ns`, numbered by when they came; counts those that went through.
fn feed(link: &mut OneWayLink<u64>, count: u64, bytes: u64, every_ns: u64) -> u64 {
    (0..count)
        .filter(|number| {
            let now = number * every_ns;
            link.input(now, bytes, UNLIMITED, || now) != InputResult::Dropped
        })
        .count() as u64
}

#[test]
fn a_link_says_since_when_it_is_never_empty() {
    // 8 ms a packet of 100 B.
    let mut link = link(rated(100_000, 10_000));
    let since = |link: &OneWayLink<u64>| link.counters().waiting_since_ns;
    assert_eq!(since(&link), 0);
    for number in 0..3 {
        link.input(5 * MS + number * MS, 100, UNLIMITED, || number);
        assert_eq!(since(&link), 5 * MS);
    }
    assert!(link.pop(13 * MS).is_some());
    assert_eq!(since(&link), 5 * MS, "two are left");
    drain(&mut link);
    assert_eq!(since(&link), 0);
    link.input(90 * MS, 100, UNLIMITED, || 3);
    assert_eq!(since(&link), 90 * MS);
}

#[test]
fn untouched_links_change_nothing() {
    let mut link = link(Conditions::default());
    assert_eq!(link.input(5, 100, 0, || unreachable!("nothing holds it")), InputResult::Through(1));
    assert_eq!(link.next_ns(), None);
    assert_eq!(link.counters().delivered, Tally { packets: 1, bytes: 100 });
}

#[test]
fn the_rate_is_exact_however_rarely_it_is_polled() {
    // 7 bits a nanosecond of rest: 333 B at 3 Mbit/s take 888,000 ns exactly, at 7 Mbit/s 380,571.43 ns.
    for (bits, polled_every) in [(3_000_000, SECOND / 3), (7_000_000, 1_000), (999_999_937, 12_345), (2_000, SECOND)] {
        let mut link = link(rated(bits, 10_000_000));
        feed(&mut link, 1_000, 333, 0);
        let (mut dues, mut now) = (Vec::new(), 0);
        while dues.len() < 1_000 {
            now += polled_every;
            while let Some(departure) = link.pop(now) {
                dues.push(departure.due_ns);
            }
        }
        for (index, due) in dues.iter().enumerate() {
            let exact = u128::from(index as u64 + 1) * 333 * 8 * u128::from(SECOND);
            assert_eq!(u128::from(*due), exact.div_ceil(u128::from(bits)), "packet {index} at {bits} bit/s");
        }
    }
}

#[test]
fn an_idle_link_saves_nothing_up() {
    let mut link = link(rated(8_000, 10_000));
    for start in [0, 100 * SECOND] {
        link.input(start, 500, UNLIMITED, || 0);
        link.input(start, 500, UNLIMITED, || 1);
        assert_eq!(drain(&mut link), [(0, start + SECOND / 2), (1, start + SECOND)]);
    }
}

#[test]
fn the_queue_holds_its_bytes_and_not_one_more() {
    let mut link = link(rated(8_000, 1_500));
    assert_eq!(feed(&mut link, 5, 500, 0), 4, "one in service and three that wait");
    assert_eq!(link.input(0, 1, UNLIMITED, || 0), InputResult::Dropped);
    let counters = link.counters();
    assert_eq!(counters.queue_dropped, Tally { packets: 2, bytes: 501 });
    assert_eq!(counters.queue_high_water_bytes, 1_500);
    // The first packet is sent at 500 ms: then 500 B of the buffer are free.
    assert_eq!(link.input(SECOND / 2 - 1, 500, UNLIMITED, || 0), InputResult::Dropped);
    assert_eq!(link.input(SECOND / 2, 500, UNLIMITED, || 0), InputResult::Queued);
    assert_eq!(drain(&mut link).last(), Some(&(0, 5 * SECOND / 2)));
}

#[test]
fn a_change_of_rate_times_the_packet_in_service_and_the_queue_again() {
    let mut link = stepped(&[(0, rated(8_000, 10_000)), (SECOND, rated(80_000, 10_000))], 1);
    feed(&mut link, 3, 2_000, 0);
    // Half of the first packet is sent in the first second, the rest at ten times the rate.
    assert_eq!(drain(&mut link), [(0, 1_100 * MS), (0, 1_300 * MS), (0, 1_500 * MS)]);
}

#[test]
fn a_bottleneck_that_goes_away_lets_all_of_its_queue_through() {
    let mut link = stepped(&[(0, rated(8_000, 10_000)), (SECOND, Conditions::default())], 1);
    feed(&mut link, 3, 2_000, 0);
    assert_eq!(drain(&mut link), [(0, SECOND); 3]);
    assert_eq!(link.input(2 * SECOND, 100, UNLIMITED, || 0), InputResult::Through(1));
}

#[test]
fn the_rates_of_a_series_are_kept_in_each_second() {
    // The series of ComBench's bandwidth case; 212 kbit/s are offered.
    let rates = [100_000, 30_000, 2_000, 500_000];
    let steps: Vec<(u64, Conditions)> =
        rates.iter().enumerate().map(|(index, bits)| (index as u64 * 5 * SECOND, rated(*bits, 20_000))).collect();
    let mut link = stepped(&steps, 1);
    let packets = 20 * SECOND / (4 * MS);
    let mut bytes = [0u64; 20];
    for number in 0..packets {
        let now = number * 4 * MS;
        link.input(now, 106, UNLIMITED, || 0);
        while let Some(departure) = link.pop(now) {
            bytes[(departure.due_ns / SECOND) as usize] += departure.bytes;
        }
    }
    for (second, bytes) in bytes.iter().enumerate() {
        let bits = bytes * 8;
        let rate = rates[second / 5];
        // Within a packet or two of the rate. The last one is above what is offered: first the queue goes at that rate.
        let expected = match second {
            15 => continue,
            16.. => 212_000,
            _ => rate,
        };
        assert!(bits.abs_diff(expected) <= 2 * 106 * 8, "second {second}: {bits} bits, {expected} expected");
    }
}

/// Bound of a sample's share at 99 %, for independent draws.
fn share_bound(chance: f64, count: f64) -> f64 {
    2.576 * libm::sqrt(chance * (1.0 - chance) / count)
}

#[test]
fn random_loss_and_duplication_are_as_frequent_as_configured() {
    for chance in [0.0, 0.0004, 0.01, 0.3, 1.0] {
        let count = 200_000;
        let mut link = link(Conditions { loss: Loss::Random(chance), duplicate: chance, ..Conditions::default() });
        feed(&mut link, count, 50, 1);
        let counters = link.counters();
        let lost = counters.lost.packets as f64 / count as f64;
        assert!((lost - chance).abs() <= share_bound(chance, count as f64), "{lost} of {chance} lost");
        let kept = (count - counters.lost.packets) as f64;
        if kept > 0.0 {
            let doubled = counters.duplicated.packets as f64 / kept;
            assert!((doubled - chance).abs() <= share_bound(chance, kept), "{doubled} of {chance} doubled");
        }
        assert!(counters.closed());
    }
}

#[test]
fn gilbert_elliott_loses_its_share_in_bursts_of_its_length() {
    for (to_bad, to_good) in [(0.01, 0.25), (0.001, 0.05), (0.2, 0.5)] {
        let loss = Loss::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 };
        let mut link = link(Conditions { loss, ..Conditions::default() });
        let count = 1_000_000u64;
        let (mut bursts, mut before) = (0u64, false);
        for number in 0..count {
            let lost = link.input(number, 50, UNLIMITED, || 0) == InputResult::Dropped;
            bursts += u64::from(lost && !before);
            before = lost;
        }
        let lost = link.counters().lost.packets as f64;
        let share = to_bad / (to_bad + to_good);
        // The draws follow each other with correlation 1 − p − r, which widens the bound.
        let memory: f64 = 1.0 - to_bad - to_good;
        let bound = share_bound(share, count as f64) * libm::sqrt((1.0 + memory) / (1.0 - memory));
        assert!((lost / count as f64 - share).abs() <= bound, "{} of {share} lost", lost / count as f64);
        // Lengths of bursts are geometric: mean 1/r, standard deviation √(1 − r)/r.
        let mean = lost / bursts as f64;
        let bound = 2.576 * libm::sqrt(1.0 - to_good) / to_good / libm::sqrt(bursts as f64);
        assert!((mean - 1.0 / to_good).abs() <= bound, "bursts of {mean} where {} were asked", 1.0 / to_good);
    }
}

#[test]
fn both_states_of_gilbert_elliott_have_their_own_loss() {
    let loss = Loss::GilbertElliott { to_bad: 0.5, to_good: 0.5, loss_good: 0.1, loss_bad: 0.7 };
    let mut link = link(Conditions { loss, ..Conditions::default() });
    feed(&mut link, 100_000, 50, 1);
    let lost = link.counters().lost.packets as f64 / 100_000.0;
    assert!((lost - 0.4).abs() <= share_bound(0.4, 100_000.0), "{lost}");
}

#[test]
fn jitter_has_its_mean_and_width() {
    for (distribution, deviation) in
        [(Distribution::Uniform, MS as f64 / libm::sqrt(3.0)), (Distribution::Normal, MS as f64)]
    {
        let mut link = link(delayed(10 * MS, MS, distribution, false));
        let count = 20_000;
        feed(&mut link, count, 50, 100 * MS);
        let delays: Vec<f64> = drain(&mut link).iter().map(|(came, due)| (due - came) as f64).collect();
        assert_eq!(delays.len() as u64, count);
        let mean = delays.iter().sum::<f64>() / count as f64;
        let variance = delays.iter().map(|delay| (delay - mean) * (delay - mean)).sum::<f64>() / (count - 1) as f64;
        assert!((mean - 10.0 * MS as f64).abs() <= 2.576 * deviation / libm::sqrt(count as f64), "mean {mean}");
        assert!((libm::sqrt(variance) / deviation - 1.0).abs() < 0.03, "deviation {}", libm::sqrt(variance));
    }
}

#[test]
fn a_delay_is_never_below_zero() {
    let mut link = link(delayed(MS, 10 * MS, Distribution::Normal, true));
    feed(&mut link, 1_000, 50, SECOND);
    assert!(drain(&mut link).iter().all(|(came, due)| due >= came));
}

#[test]
fn jitter_keeps_the_order_unless_it_may_reorder() {
    for reorders in [false, true] {
        let mut link = link(delayed(5 * MS, MS, Distribution::Uniform, reorders));
        feed(&mut link, 5_000, 50, MS);
        let left = drain(&mut link);
        let overtaken = left.windows(2).filter(|pair| pair[0].0 > pair[1].0).count() as u64;
        assert!(left.windows(2).all(|pair| pair[0].1 <= pair[1].1), "departures are in order of time");
        assert_eq!(overtaken > 0, reorders);
        assert!(link.counters().out_of_order >= overtaken);
        assert_eq!(link.counters().out_of_order > 0, reorders);
    }
}

#[test]
fn a_copy_and_its_original_do_not_overtake_each_other() {
    let jitter = delayed(5 * MS, 4 * MS, Distribution::Uniform, true);
    let mut link = link(Conditions { duplicate: 1.0, ..jitter });
    // Each packet leaves before the next one comes, and half of the copies before their original.
    feed(&mut link, 500, 50, 100 * MS);
    assert_eq!(drain(&mut link).len(), 1_000);
    assert_eq!(link.counters().out_of_order, 0);
}

#[test]
fn some_packets_are_sent_ahead() {
    let mut link = link(Conditions { reorder: 0.05, ..delayed(5 * MS, 0, Distribution::Uniform, false) });
    feed(&mut link, 20_000, 50, MS);
    let left = drain(&mut link);
    let ahead = left.iter().filter(|(came, due)| came == due).count() as u64;
    assert_eq!(ahead, link.counters().sent_ahead);
    assert!((ahead as f64 / 20_000.0 - 0.05).abs() <= share_bound(0.05, 20_000.0), "{ahead}");
    assert!(left.iter().all(|(came, due)| due == came || *due == came + 5 * MS));
    assert!(link.counters().out_of_order > ahead, "those that were overtaken");
}

#[test]
fn the_delay_counts_from_the_end_of_the_service() {
    let conditions = Conditions { delay: Delay { mean_ns: 7 * MS, ..Delay::default() }, ..rated(8_000_000, 10_000) };
    let mut link = link(conditions);
    feed(&mut link, 2, 1_000, 0);
    assert_eq!(drain(&mut link), [(0, 8 * MS), (0, 9 * MS)]);
}

#[test]
fn a_link_that_is_down_loses_arriving_and_queued_packets_but_not_those_in_flight() {
    let up = Conditions { delay: Delay { mean_ns: 2 * SECOND, ..Delay::default() }, ..rated(8_000, 10_000) };
    let mut link = stepped(&[(0, up), (3 * SECOND / 2, Conditions { down: true, ..up }), (4 * SECOND, up)], 1);
    feed(&mut link, 3, 1_000, 0);
    assert_eq!(link.input(2 * SECOND, 10, UNLIMITED, || 0), InputResult::Dropped);
    assert_eq!(link.counters().lost_down, Tally { packets: 3, bytes: 2_010 });
    assert_eq!(link.input(4 * SECOND, 1_000, UNLIMITED, || 4), InputResult::Queued);
    assert_eq!(drain(&mut link), [(0, 3 * SECOND), (4, 7 * SECOND)]);
}

#[test]
fn packets_in_the_queue_of_a_link_that_breaks_are_shown_with_when_they_came() {
    // A second a packet.
    let mut link = link(rated(8_000, 10_000));
    feed(&mut link, 4, 1_000, 10 * MS);
    assert!(link.take_broken().is_empty());
    assert!(link.pop(SECOND).is_some());
    link.cut(SECOND, true);
    assert_eq!(link.take_broken(), [10, 20, 30].map(|ms| (ms * MS, ms * MS)));
    assert!(link.take_broken().is_empty());
    assert_eq!(link.held_bytes(), 0);
}

#[test]
fn a_cut_holds_whatever_the_steps_say() {
    let mut link = stepped(&[(0, Conditions::default()), (SECOND, delayed(MS, 0, Distribution::Uniform, false))], 1);
    link.cut(10, true);
    assert_eq!(feed(&mut link, 3, 50, SECOND), 0);
    link.cut(3 * SECOND, false);
    assert_eq!(link.input(3 * SECOND, 50, UNLIMITED, || 9), InputResult::Queued);
    assert_eq!(drain(&mut link), [(9, 3 * SECOND + MS)]);
}

#[test]
fn the_first_step_holds_before_the_start_and_times_count_from_it() {
    let steps =
        [(0, delayed(MS, 0, Distribution::Uniform, false)), (SECOND, delayed(2 * MS, 0, Distribution::Uniform, false))];
    let steps = steps.iter().map(|(at_ns, conditions)| Step { at_ns: *at_ns, conditions: *conditions }).collect();
    let mut link = OneWayLink::new(steps, 1, "test", Direction::Up);
    assert_eq!(link.next_ns(), None, "no step is planned");
    for (now, delay) in [(5 * SECOND, MS), (11 * SECOND - 1, MS), (11 * SECOND, 2 * MS)] {
        link.input(now, 50, UNLIMITED, || now);
        assert_eq!(drain(&mut link).last(), Some(&(now, now + delay)));
        if now == 5 * SECOND {
            link.start(10 * SECOND);
        }
    }
}

#[test]
fn the_high_water_is_that_since_the_origin_of_the_steps() {
    // 500 ms a packet.
    let steps = vec![Step { at_ns: 0, conditions: rated(8_000, 10_000) }];
    let mut link = OneWayLink::new(steps, 1, "test", Direction::Up);
    let high_water = |link: &OneWayLink<u64>| link.counters().queue_high_water_bytes;
    assert_eq!(feed(&mut link, 6, 500, 0), 6);
    assert_eq!(high_water(&link), 2_500, "probes, of which one is in service");
    drain(&mut link);
    link.start(10 * SECOND);
    assert_eq!(high_water(&link), 0);
    // Before the origin three wait, at the origin one, and after it two.
    for number in 0..4 {
        link.input(9 * SECOND, 500, UNLIMITED, || number);
    }
    assert_eq!(high_water(&link), 1_500);
    link.input(10 * SECOND, 500, UNLIMITED, || 4);
    assert_eq!(high_water(&link), 1_000);
    drain(&mut link);
    assert_eq!(high_water(&link), 1_000);
}

#[test]
fn the_high_water_of_a_window_in_which_nothing_comes_is_not_that_of_the_warm_up() {
    let steps = vec![Step { at_ns: 0, conditions: rated(8_000, 10_000) }];
    let mut link = OneWayLink::new(steps, 1, "test", Direction::Up);
    link.start(10 * SECOND);
    assert_eq!(feed(&mut link, 3, 500, 0), 3);
    assert_eq!(link.counters().queue_high_water_bytes, 1_000);
    drain(&mut link);
    assert_eq!(link.counters().queue_high_water_bytes, 0);
}

#[test]
fn a_link_on_which_nothing_waited_has_nothing_to_do_at_the_start_of_the_window() {
    let steps = vec![Step { at_ns: 0, conditions: delayed(MS, 0, Distribution::Uniform, false) }];
    let mut link = OneWayLink::new(steps, 1, "test", Direction::Up);
    link.start(10 * SECOND);
    assert_eq!(link.next_ns(), None);
    feed(&mut link, 3, 500, 0);
    assert_eq!(drain(&mut link).len(), 3);
    link.input(9 * SECOND, 500, UNLIMITED, || 3);
    assert_eq!([link.next_ns(), link.pop(10 * SECOND).map(|departure| departure.due_ns)], [Some(9 * SECOND + MS); 2]);
    assert_eq!(link.next_ns(), None);
}

#[test]
fn packets_beyond_the_buffer_are_counted() {
    let mut link = link(Conditions { duplicate: 1.0, ..delayed(MS, 0, Distribution::Uniform, false) });
    assert_eq!(link.input(0, 100, 455, || 0), InputResult::Dropped);
    assert_eq!(link.counters().overflowed, Tally { packets: 2, bytes: 200 });
    assert_eq!(link.input(0, 100, 456, || 0), InputResult::Queued);
    assert_eq!(link.held_bytes(), 456);
    assert_eq!(drain(&mut link).len(), 2);
}

#[test]
fn the_seed_decides_and_each_direction_draws_its_own() {
    let conditions = Conditions {
        loss: Loss::Random(0.2),
        duplicate: 0.1,
        reorder: 0.1,
        ..delayed(9 * MS, MS, Distribution::Normal, true)
    };
    let run = |seed, name, direction| {
        let mut link = OneWayLink::new(vec![Step { at_ns: 0, conditions }], seed, name, direction);
        feed(&mut link, 500, 50, MS);
        drain(&mut link)
    };
    let first = run(1, "a", Direction::Up);
    assert_eq!(first, run(1, "a", Direction::Up));
    for other in [run(2, "a", Direction::Up), run(1, "b", Direction::Up), run(1, "a", Direction::Down)] {
        assert_ne!(first, other);
    }
}

fn any_conditions() -> impl Strategy<Value = Conditions> {
    let delay = (0..20 * MS, 0..10 * MS, any::<bool>(), any::<bool>()).prop_map(
        |(mean_ns, jitter_ns, normal, jitter_reorders)| {
            let distribution = if normal { Distribution::Normal } else { Distribution::Uniform };
            Delay { mean_ns, jitter_ns, distribution, jitter_reorders }
        },
    );
    let loss = prop_oneof![
        Just(Loss::None),
        (0.0..1.0f64).prop_map(Loss::Random),
        (0.0..0.3f64, 0.1..1.0f64).prop_map(|(to_bad, to_good)| Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_good: 0.0,
            loss_bad: 1.0
        }),
    ];
    let rate = proptest::option::of(
        (1u64..10_000_000, 0u64..20_000)
            .prop_map(|(bits_per_second, queue_bytes)| Rate { bits_per_second, queue_bytes }),
    );
    let zero_or = || prop_oneof![Just(0.0), 0.0..1.0f64];
    (delay, loss, rate, zero_or(), zero_or(), proptest::bool::weighted(0.1)).prop_map(
        |(delay, loss, rate, duplicate, reorder, down)| Conditions { delay, loss, rate, duplicate, reorder, down },
    )
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for(
        steps in proptest::collection::vec((0..200 * MS, any_conditions()), 1..5),
        packets in proptest::collection::vec((0..2 * MS, 20u64..1_500, any::<bool>()), 1..300),
        room in prop_oneof![Just(u64::MAX), 0u64..100_000],
    ) {
        let mut at = 0;
        let mut later = |gap| {
            at += gap;
            at
        };
        let steps: Vec<(u64, Conditions)> = steps.into_iter().map(|(gap, conditions)| (later(gap), conditions)).collect();
        let mut link = stepped(&steps, 7);
        let (mut now, mut left, mut last_due) = (0, 0u64, 0);
        for (gap, bytes, polls) in packets {
            now += gap;
            let room = room.saturating_sub(link.held_bytes());
            if let InputResult::Through(copies) = link.input(now, bytes, room, || now) {
                left += u64::from(copies);
            }
            if polls {
                while let Some(departure) = link.pop(now) {
                    let due = departure.due_ns;
                    prop_assert!(due <= now && due >= departure.in_ns && due >= last_due);
                    last_due = due;
                    left += 1;
                }
            } else {
                // Looked at rarely, departures of before come out in order all the same.
                last_due = last_due.min(now);
            }
            let counters = link.counters();
            prop_assert!(counters.closed(), "{counters:?}");
            prop_assert_eq!(counters.delivered.packets, left);
            prop_assert!(counters.waiting.bytes <= link.held_bytes());
        }
        left += drain(&mut link).len() as u64;
        prop_assert_eq!(link.counters().delivered.packets, left);
    }
}
