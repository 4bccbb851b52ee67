//! How large messages are.

use std::sync::Arc;
use std::time::Duration;

use super::fixtures::{dues, group, periodic, timeline};
use crate::arrival::Phase;
use crate::fleet::Device;
use crate::payload::SizeDistribution;
use crate::schedule::{Due, Rules};

fn drawn(size: SizeDistribution) -> Vec<Due> {
    let mut group = group("g/h", 1, periodic(Duration::from_millis(1), Phase::Aligned));
    group.size = size;
    let rules = Rules::new(&group, 11, &timeline(0, 100));
    dues(&rules, &Device { publisher: 0, group: 0, copy: 0, index: 0, ..Device::default() })
}

/// Mean, standard deviation, and third moment over the cube of the standard deviation.
fn moments(sizes: &[Due]) -> (f64, f64, f64) {
    let count = sizes.len() as f64;
    let mean = sizes.iter().map(|due| f64::from(due.configured_bytes)).sum::<f64>() / count;
    let central =
        |power: i32| sizes.iter().map(|due| (f64::from(due.configured_bytes) - mean).powi(power)).sum::<f64>() / count;
    let sd = central(2).sqrt();
    (mean, sd, central(3) / sd.powi(3))
}

fn close(found: f64, expected: f64, error: f64) -> bool {
    (found - expected).abs() <= error
}

#[test]
fn normal_sizes_have_their_mean_deviation_and_symmetry() {
    let (mean, sd, skew) = moments(&drawn(SizeDistribution::Normal { mean: 1_000.0, sd: 100.0, floor: 25 }));
    assert!(close(mean, 1_000.0, 1.6) && close(sd, 100.0, 1.2) && close(skew, 0.0, 0.04), "{mean} {sd} {skew}");
}

#[test]
fn a_normal_size_below_its_floor_becomes_the_floor() {
    // smart_things of PSMark: mean 16.8 B, floor 25 B.
    let sizes = drawn(SizeDistribution::Normal { mean: 16.8, sd: 1.3, floor: 25 });
    assert!(sizes.iter().all(|due| due.payload_bytes == 25 && !due.size_raised));
}

#[test]
fn lognormal_sizes_have_the_mean_and_deviation_of_the_size_itself() {
    let (mean, sd, skew) = moments(&drawn(SizeDistribution::Lognormal { mean: 1_000.0, sd: 500.0 }));
    // Skewness of a lognormal with coefficient of variation c: 3c + c³.
    assert!(close(mean, 1_000.0, 8.0) && close(sd, 500.0, 15.0) && close(skew, 1.625, 0.3), "{mean} {sd} {skew}");
}

#[test]
fn uniform_sizes_reach_both_ends_alike() {
    let sizes = drawn(SizeDistribution::Uniform { min: 20, max: 23 });
    for size in 20..=23 {
        let share = sizes.iter().filter(|due| due.configured_bytes == size).count() as f64 / sizes.len() as f64;
        assert!(close(share, 0.25, 0.008), "{size}: {share}");
    }
    assert!(sizes.iter().all(|due| (20..=23).contains(&due.configured_bytes)));
}

#[test]
fn empirical_sizes_follow_the_list() {
    let sizes = drawn(SizeDistribution::Empirical(Arc::from([100, 100, 300])));
    let share = sizes.iter().filter(|due| due.configured_bytes == 100).count() as f64 / sizes.len() as f64;
    assert!(close(share, 2.0 / 3.0, 0.008), "{share}");
    assert!(sizes.iter().all(|due| [100, 300].contains(&due.configured_bytes)));
}

#[test]
fn a_size_below_the_header_is_raised_and_flagged() {
    let hello = drawn(SizeDistribution::Fixed(11))[0];
    assert_eq!((hello.configured_bytes, hello.payload_bytes, hello.size_raised), (11, 16, true));
    let compact = drawn(SizeDistribution::Fixed(16))[0];
    assert_eq!((compact.configured_bytes, compact.payload_bytes, compact.size_raised), (16, 16, false));
}
