//! When messages are due.

use std::time::Duration;

use proptest::prelude::*;

use super::fixtures::{SECOND, due_times, periodic, timeline};
use crate::arrival::{Arrival, Phase};
use crate::random::RandomTime;
use crate::schedule::Timeline;

#[test]
fn periodic_sends_keep_their_phase_to_the_nanosecond_over_a_day() {
    let interval = Duration::from_nanos(333_333_333);
    let day = timeline(5, 86_400);
    for times in due_times(periodic(interval, Phase::Spread), 3, 1, &day) {
        let first = times[0];
        assert!((-5 * SECOND..-5 * SECOND + 333_333_333).contains(&first), "{first}");
        for (turn, due_ns) in times.iter().enumerate() {
            assert_eq!(*due_ns, first + turn as i64 * 333_333_333);
        }
        assert!(times.last().unwrap() + 333_333_333 >= 86_400 * SECOND);
    }
}

#[test]
fn aligned_sends_begin_one_interval_after_the_warm_up_starts() {
    let all = due_times(periodic(Duration::from_secs(2), Phase::Aligned), 2, 1, &timeline(5, 4));
    assert_eq!(all, vec![vec![-3 * SECOND, -SECOND, SECOND, 3 * SECOND]; 2]);
}

#[test]
fn spread_phases_are_uniform_over_the_interval() {
    let all = due_times(periodic(Duration::from_secs(1), Phase::Spread), 10_000, 9, &timeline(0, 1));
    let mut tenths = [0u32; 10];
    for times in &all {
        tenths[(times[0] / (SECOND / 10)) as usize] += 1;
    }
    // Binomial: 1,000 ± 30; five deviations.
    assert!(tenths.iter().all(|count| (850..1_150).contains(count)), "{tenths:?}");
}

#[test]
fn jitter_moves_each_send_within_its_bounds_and_keeps_the_rate() {
    let jitter = Duration::from_millis(400);
    let arrival = Arrival::Periodic { interval: Duration::from_secs(1), phase: Phase::Spread, jitter };
    let plain = due_times(periodic(Duration::from_secs(1), Phase::Spread), 500, 3, &timeline(1, 100));
    let jittered = due_times(arrival, 500, 3, &timeline(1, 100));
    let (mut moved_sum, mut moves) = (0.0, 0.0);
    for (plain, jittered) in plain.iter().zip(&jittered) {
        assert!(jittered.windows(2).all(|pair| pair[0] < pair[1]));
        let phase = plain[0].rem_euclid(SECOND);
        for due_ns in jittered {
            let moved = (due_ns - phase + SECOND / 2).rem_euclid(SECOND) - SECOND / 2;
            assert!(moved.abs() <= 400_000_000, "{moved}");
            moved_sum += moved as f64;
            moves += 1.0;
        }
    }
    assert!((moved_sum / moves).abs() < 5e6, "mean move {} ns", moved_sum / moves);
    let expected = 500.0 * 101.0;
    assert!((moves / expected - 1.0).abs() < 0.002, "{moves} of {expected}");
}

#[test]
fn poisson_counts_have_the_variance_of_their_mean() {
    let all = due_times(Arrival::Poisson { rate_per_s: 2.0 }, 2_000, 4, &timeline(10, 90));
    let counts: Vec<f64> = all.iter().map(|times| times.len() as f64).collect();
    let mean = counts.iter().sum::<f64>() / 2_000.0;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1_999.0;
    // Standard errors: mean 0.32, variance 3.2 % of 200.
    assert!((mean - 200.0).abs() < 1.5, "mean {mean}");
    assert!((variance / 200.0 - 1.0).abs() < 0.15, "variance {variance}");
    let gaps: Vec<f64> = all[..200].iter().flat_map(|t| t.windows(2).map(|p| (p[1] - p[0]) as f64 / 1e9)).collect();
    let above_mean = gaps.iter().filter(|gap| **gap > 0.5).count() as f64 / gaps.len() as f64;
    assert!((above_mean - (-1.0f64).exp()).abs() < 0.01, "share of gaps above the mean {above_mean}");
}

#[test]
fn on_off_keeps_its_mean_rate_from_the_start_and_is_silent_between() {
    for (on_ms, off_ms) in [(2_000, 3_000), (50, 150)] {
        let arrival = Arrival::OnOff {
            interval: Duration::from_millis(100),
            mean_on: Duration::from_millis(on_ms),
            mean_off: Duration::from_millis(off_ms),
        };
        let rate = arrival.mean_rate_per_s().unwrap();
        let all = due_times(arrival, 3_000, 5, &timeline(0, 40));
        let total = all.iter().map(Vec::len).sum::<usize>() as f64;
        assert!((total / (3_000.0 * 40.0 * rate) - 1.0).abs() < 0.02, "{on_ms} on, {off_ms} off: {total}");
        let first_second = all.iter().flatten().filter(|due_ns| **due_ns < SECOND).count() as f64;
        assert!((first_second / (3_000.0 * rate) - 1.0).abs() < 0.06, "{first_second} in the first second");
    }
    let arrival = Arrival::OnOff {
        interval: Duration::from_millis(10),
        mean_on: Duration::from_secs(1),
        mean_off: Duration::from_secs(1),
    };
    let gaps: Vec<i64> =
        due_times(arrival, 50, 6, &timeline(0, 40)).iter().flat_map(|t| t.windows(2).map(|p| p[1] - p[0])).collect();
    let inside = gaps.iter().filter(|gap| **gap == 10_000_000).count();
    assert!(inside > gaps.len() * 9 / 10 && gaps.iter().any(|gap| *gap > SECOND), "{inside} of {}", gaps.len());
}

#[test]
fn a_trace_is_replayed_from_the_start_and_repeated() {
    let offsets: std::sync::Arc<[u64]> = [0, 300_000_000, 1_500_000_000].into();
    let once = Arrival::Trace { offsets_ns: offsets.clone(), period: None };
    assert_eq!(due_times(once, 1, 1, &timeline(1, 9))[0], [-SECOND, -700_000_000, 500_000_000]);
    let repeated = Arrival::Trace { offsets_ns: offsets, period: Some(Duration::from_secs(1)) };
    assert_eq!(
        due_times(repeated, 1, 1, &timeline(1, 2))[0],
        [-SECOND, -700_000_000, 0, 300_000_000, SECOND, 1_300_000_000]
    );
    let empty = Arrival::Trace { offsets_ns: [].into(), period: Some(Duration::from_secs(1)) };
    assert!(due_times(empty, 1, 1, &timeline(1, 2))[0].is_empty());
}

#[test]
fn a_flood_stays_at_the_start() {
    use crate::fleet::Device;
    use crate::schedule::{Cursor, Rules};
    let group = super::fixtures::group("g/h", 1, Arrival::Flood);
    let rules = Rules::new(&group, 1, &timeline(2, 10));
    let mut cursor = Cursor::new(&rules, &Device { publisher: 0, group: 0, copy: 0, index: 0, ..Device::default() });
    let sizes: Vec<u32> = (0..100).map(|_| cursor.take(&rules).unwrap().payload_bytes).collect();
    assert_eq!(cursor.peek_ns(), Some(-2 * SECOND));
    assert!(sizes.windows(2).any(|pair| pair[0] != pair[1]), "sizes still vary");
}

fn any_arrival() -> impl Strategy<Value = Arrival> {
    let interval = || (50u64..5_000_000_000).prop_map(Duration::from_nanos);
    prop_oneof![
        (50_000u64..5_000_000_000, any::<bool>(), 0.0..0.499).prop_map(|(interval_ns, aligned, share)| {
            Arrival::Periodic {
                interval: Duration::from_nanos(interval_ns),
                phase: if aligned { Phase::Aligned } else { Phase::Spread },
                jitter: Duration::from_nanos((interval_ns as f64 * share) as u64),
            }
        }),
        (1e-3..1e4).prop_map(|rate_per_s| Arrival::Poisson { rate_per_s }),
        (50_000u64..1_000_000_000, interval(), interval()).prop_map(|(interval_ns, mean_on, mean_off)| {
            Arrival::OnOff { interval: Duration::from_nanos(interval_ns), mean_on, mean_off }
        }),
        (1_000_000u64..1_000_000_000, any::<bool>(), 1_000_000u64..2_000_000_000, 0u32..1_440, 0.1..3.0, 0.0..3.0)
            .prop_map(|(interval_ns, poisson, day_ns, start, night, noon)| {
                let interval = Duration::from_nanos(interval_ns);
                let base = match poisson {
                    true => Arrival::Poisson { rate_per_s: 1.0 / interval.as_secs_f64() },
                    false => periodic(interval, Phase::Spread),
                };
                super::policies::profiled(base, Duration::from_nanos(day_ns), start, &[(0, night), (720, noon)])
            }),
        (50_000u64..1_000_000_000, interval(), interval(), any::<bool>()).prop_map(
            |(interval_ns, first, second, fixed)| {
                let length = |length| if fixed { RandomTime::Fixed(length) } else { RandomTime::Exponential(length) };
                super::policies::two_states(Duration::from_nanos(interval_ns), [length(first), length(second)])
            }
        ),
        proptest::collection::vec(0u64..3_000_000_000, 0..20).prop_map(|mut offsets| {
            offsets.sort_unstable();
            Arrival::Trace { offsets_ns: offsets.into(), period: Some(Duration::from_millis(700)) }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn due_times_ascend_and_stay_inside_the_timeline(
        arrival in any_arrival(), seed: u64, warmup_ns in 0u64..1_000_000_000, duration_ns in 0u64..1_000_000_000,
    ) {
        let timeline = Timeline { warmup_ns, duration_ns };
        for times in due_times(arrival, 2, seed, &timeline) {
            prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(times.iter().all(|due_ns| (timeline.start_ns()..timeline.end_ns()).contains(due_ns)));
        }
    }

    #[test]
    fn a_longer_run_begins_with_the_shorter_one(arrival in any_arrival(), seed: u64) {
        let short = due_times(arrival.clone(), 1, seed, &Timeline { warmup_ns: 7, duration_ns: 300_000_000 });
        let long = due_times(arrival, 1, seed, &Timeline { warmup_ns: 7, duration_ns: 600_000_000 });
        prop_assert!(long[0].starts_with(&short[0]));
    }
}
