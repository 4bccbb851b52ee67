//! Probes distinguish a link with the requested conditions from one without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed unwrap is a failed test")]

mod common;

use std::time::{Duration, Instant};

use common::{delayed, network};
use pubmark_links::Direction;
use pubmark_links::verify::{Outcome, Property, Verification, verify, verify_direction};
use pubmark_model::link::{Conditions, Delay, Distribution, Loss, Rate};

const MS: Duration = Duration::from_millis(1);

fn outcome(found: &Verification, property: Property) -> Option<&Outcome> {
    Some(&found.checks.iter().find(|check| check.property == property)?.outcome)
}

fn rated(bits_per_second: u64, queue_bytes: u64, mean: Duration) -> Conditions {
    Conditions { rate: Some(Rate { bits_per_second, queue_bytes }), ..delayed(mean) }
}

fn cases() -> Vec<(&'static str, Conditions)> {
    let jitter =
        Delay { mean_ns: 5_000_000, jitter_ns: 1_000_000, distribution: Distribution::Normal, jitter_reorders: false };
    let bursts = Loss::GilbertElliott { to_bad: 0.02, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    vec![
        ("five ms", delayed(5 * MS)),
        ("jitter and loss", Conditions { delay: jitter, loss: Loss::Random(0.01), ..Conditions::default() }),
        ("bursts", Conditions { loss: bursts, duplicate: 0.05, ..delayed(10 * MS) }),
        ("100 kbit/s", rated(100_000, 64_000, 20 * MS)),
        ("10 Mbit/s", Conditions { loss: Loss::Random(0.02), ..rated(10_000_000, 20_000, 5 * MS) }),
        ("2 kbit/s", rated(2_000, 64_000, Duration::ZERO)),
        ("down", Conditions { down: true, ..delayed(MS) }),
        ("rare loss", Conditions { loss: Loss::Random(0.0004), ..delayed(2 * MS) }),
        ("copies", Conditions { duplicate: 0.1, ..rated(100_000, 64_000, Duration::ZERO) }),
    ]
}

#[test]
fn probes_find_links_as_configured() {
    let conditions: Vec<Conditions> = cases().into_iter().map(|case| case.1).collect();
    let Some(network) = network(&conditions) else { return };
    let start = Instant::now();
    let found = verify(&network).unwrap();
    println!("{} directions in {:?}", found.len(), start.elapsed());
    assert_eq!(found.len(), 2 * conditions.len());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    for (index, verification) in found.iter().enumerate() {
        let name = cases()[index / 2].0;
        println!("{name}: {verification}");
        assert_eq!(verification.direction, if index % 2 == 0 { Direction::Up } else { Direction::Down });
        assert_eq!(outcome(verification, Property::Unexpected), Some(&Outcome::Met), "{name}");
        let exact: &[Property] = match name {
            "five ms" => &[Property::Loss],
            "jitter and loss" => &[Property::Loss],
            "bursts" => &[Property::Loss, Property::Duplicates],
            "100 kbit/s" => &[Property::Rate],
            "10 Mbit/s" => &[Property::Loss],
            "down" => &[Property::Down],
            "copies" => &[Property::Duplicates],
            _ => &[],
        };
        for property in exact {
            assert_eq!(outcome(verification, *property), Some(&Outcome::Met), "{name}: {verification}");
        }
        // Times are exact only on an idle machine: a busy one is late by more than a check allows, which it must report.
        for check in verification.checks.iter().filter(|check| check.property == Property::Delay) {
            let late = check.measured.unwrap_or(check.asked) - check.asked;
            assert!(check.outcome != Outcome::Missed || late > 0.0, "{name}: too early: {verification}, load {load}");
        }
    }
    let unmeasured = [(2, Property::Jitter), (4, Property::BurstLength)].map(|(at, of)| outcome(&found[at], of));
    assert!(unmeasured.iter().all(|found| matches!(found, Some(Outcome::Unverified(_)))), "{unmeasured:?}");
    let rare = outcome(&found[14], Property::Loss);
    assert!(matches!(rare, Some(Outcome::Unverified(_))), "0.04 % of 3,000: {rare:?}");
}

#[test]
fn a_link_that_would_hold_up_the_run_is_not_verified() {
    let Some(network) = network(&[Conditions { duplicate: 0.1, ..delayed(6_000 * MS) }]) else { return };
    let found = verify(&network).unwrap();
    assert_eq!(found.len(), 2);
    for direction in &found {
        for property in [Property::Delay, Property::Loss, Property::Duplicates] {
            let outcome = outcome(direction, property);
            assert_eq!(outcome, Some(&Outcome::Unverified("a probe may take 6 s".to_owned())), "{direction}");
        }
        let unexpected = Outcome::Unverified("no probe was sent".to_owned());
        assert_eq!(outcome(direction, Property::Unexpected), Some(&unexpected), "{direction}");
    }
}

#[test]
fn probes_find_links_that_differ_from_their_configuration() {
    let asked = [delayed(5 * MS), Conditions { loss: Loss::Random(0.01), ..delayed(MS) }, rated(100_000, 64_000, MS)];
    let wrong = [delayed(6 * MS), Conditions { loss: Loss::Random(0.05), ..delayed(MS) }, rated(110_000, 64_000, MS)];
    let Some(network) = network(&asked) else { return };
    for (group, (conditions, property)) in
        wrong.into_iter().zip([Property::Delay, Property::Loss, Property::Rate]).enumerate()
    {
        network.set(group, Direction::Down, conditions).unwrap();
        let found = verify_direction(&network, group, Direction::Down).unwrap();
        println!("{found}");
        assert_eq!(outcome(&found, property), Some(&Outcome::Missed), "{found}");
        assert!(found.is_missed());
    }
    network.set(0, Direction::Up, Conditions { down: true, ..Conditions::default() }).unwrap();
    let found = verify_direction(&network, 0, Direction::Up).unwrap();
    println!("{found}");
    assert!(matches!(outcome(&found, Property::Delay), Some(Outcome::Unverified(_))));
    assert_eq!(outcome(&found, Property::Loss), Some(&Outcome::Missed));
}
