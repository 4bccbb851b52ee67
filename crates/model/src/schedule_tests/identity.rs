//! What a schedule depends on, and what it does not.

use std::time::Duration;

use super::fixtures::{dues, group, mixed, periodic, timeline};
use crate::arrival::{Arrival, Phase};
use crate::fleet::{Device, Fleet};
use crate::schedule::{ChurnCursor, Cursor, DeviceHash, Due, Rules, combine, dump, hash};
use crate::workload::Workload;

const SEED: u64 = 7;

/// (copy, group name, index) with all messages of that device.
fn everything(workload: &Workload, copies: u32, seed: u64) -> Vec<((u32, String, u32), Vec<Due>)> {
    let rules = Rules::all(workload, seed, &timeline(2, 20));
    let fleet = Fleet::new(workload, copies);
    let mut all: Vec<_> = fleet
        .devices()
        .iter()
        .map(|device| {
            let group = usize::from(device.group);
            ((device.copy, workload.devices[group].name.clone(), device.index), dues(&rules[group], device))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn another_device_or_group_or_copy_changes_no_other_device() {
    let small = everything(&mixed(), 1, SEED);
    let mut larger = mixed();
    larger.devices.insert(0, group("new/first", 3, Arrival::Poisson { rate_per_s: 3.0 }));
    larger.devices.swap(1, 3);
    larger.devices.iter_mut().for_each(|group| group.count += 2);
    let large = everything(&larger, 2, SEED);
    for device in &small {
        assert!(large.contains(device), "{:?} changed", device.0);
    }
}

#[test]
fn seeds_copies_groups_and_indices_all_draw_their_own() {
    let workload = {
        let mut workload = mixed();
        workload.devices =
            ["x/a", "x/b"].map(|name| group(name, 40, periodic(Duration::from_secs(5), Phase::Spread))).to_vec();
        workload
    };
    let mut phases: Vec<i64> =
        [1, 2].iter().flat_map(|seed| everything(&workload, 2, *seed)).map(|(_, dues)| dues[0].due_ns).collect();
    phases.sort_unstable();
    let devices = phases.len();
    phases.dedup();
    assert_eq!(phases.len(), devices, "320 phases of 5·10⁹ values");
}

#[test]
fn the_same_seed_gives_the_same_schedule_and_another_does_not() {
    let workload = mixed();
    let fleet = Fleet::new(&workload, 1);
    let run = timeline(2, 20);
    assert_eq!(hash(&workload, &fleet, 1, &run), hash(&workload, &fleet, 1, &run));
    assert_ne!(hash(&workload, &fleet, 1, &run), hash(&workload, &fleet, 2, &run));
    assert_ne!(hash(&workload, &fleet, 1, &run), hash(&workload, &fleet, 1, &timeline(2, 21)));
}

#[test]
fn the_hash_does_not_depend_on_topic_level_or_order_of_groups() {
    let (plain, mut changed) = (mixed(), mixed());
    changed.devices.reverse();
    for group in &mut changed.devices {
        group.topic.0 = "somewhere/else/{device}".to_owned();
        group.qos = crate::qos::Qos::ExactlyOnce;
    }
    let hash_of = |workload: &Workload| hash(workload, &Fleet::new(workload, 2), SEED, &timeline(2, 20));
    assert_eq!(hash_of(&plain), hash_of(&changed));
}

#[test]
fn the_hash_covers_due_times_sizes_churn_and_names() {
    let hash_of = |workload: &Workload| hash(workload, &Fleet::new(workload, 1), SEED, &timeline(2, 20));
    let plain = hash_of(&mixed());
    let changes: [fn(&mut Workload); 5] = [
        |workload| workload.devices[0].arrival = periodic(Duration::from_millis(501), Phase::Aligned),
        |workload| workload.devices[0].size = crate::payload::SizeDistribution::Fixed(30),
        |workload| workload.devices[0].churn.as_mut().unwrap().reconnect_chance = 0.6,
        |workload| workload.devices[0].name.push('x'),
        |workload| workload.devices[0].count += 1,
    ];
    for change in changes {
        let mut workload = mixed();
        change(&mut workload);
        assert_ne!(hash_of(&workload), plain);
    }
    let mut raised = [mixed(), mixed()];
    for (workload, bytes) in raised.iter_mut().zip([11, 12]) {
        workload.devices[0].size = crate::payload::SizeDistribution::Fixed(bytes);
    }
    assert_ne!(hash_of(&raised[0]), hash_of(&raised[1]), "the configured size counts, not the raised one");
}

#[test]
fn shards_that_gather_hashes_in_any_order_agree_with_the_whole() {
    let workload = mixed();
    let fleet = Fleet::new(&workload, 3);
    let run = timeline(2, 20);
    let rules = Rules::all(&workload, SEED, &run);
    for shards in [1, 2, 7] {
        let mut values = vec![0; fleet.devices().len()];
        for shard in (0..shards).rev() {
            for device in fleet.devices().iter().rev().filter(|device| device.publisher % shards == shard) {
                values[device.publisher as usize] = interleaved(&rules[usize::from(device.group)], device);
            }
        }
        assert_eq!(combine(&workload, &fleet, &rules, &values), hash(&workload, &fleet, SEED, &run), "{shards} shards");
    }
}

/// Messages and changes in the order of time, as the engine processes them.
fn interleaved(rules: &Rules, device: &Device) -> u64 {
    let (mut cursor, mut churn) = (Cursor::new(rules, device), ChurnCursor::new(rules, device));
    let mut hash = DeviceHash::new(rules, device, churn.online_at_start());
    loop {
        match (cursor.peek_ns(), churn.peek_ns()) {
            (Some(due_ns), Some(at_ns)) if at_ns < due_ns => hash.add_transition(&churn.take(rules).unwrap()),
            (Some(_), _) => hash.add_due(&cursor.take(rules).unwrap()),
            (None, Some(_)) => hash.add_transition(&churn.take(rules).unwrap()),
            (None, None) => return hash.value(),
        }
    }
}

#[test]
fn due_times_without_sizes_are_those_of_the_messages_and_leave_later_messages_as_they_are() {
    let workload = mixed();
    let all_rules = Rules::all(&workload, SEED, &timeline(2, 20));
    for device in Fleet::new(&workload, 1).devices() {
        let rules = &all_rules[usize::from(device.group)];
        let mut cursor = Cursor::new(rules, device);
        for pair in dues(rules, device).chunks(2) {
            assert_eq!(cursor.take_time(rules), Some((pair[0].due_ns, pair[0].planned_online)));
            assert_eq!(cursor.take(rules), pair.get(1).copied());
        }
        assert_eq!(cursor.take_time(rules), None);
    }
}

#[test]
fn a_flood_has_no_hash() {
    let mut workload = mixed();
    workload.devices.push(group("f/flood", 1, Arrival::Flood));
    let fleet = Fleet::new(&workload, 1);
    assert_eq!(hash(&workload, &fleet, SEED, &timeline(2, 20)), "none");
    assert_eq!(combine(&workload, &fleet, &Rules::all(&workload, SEED, &timeline(2, 20)), &[]), "none");
}

fn dumped(workload: &Workload) -> String {
    let mut out = Vec::new();
    dump(workload, &Fleet::new(workload, 1), SEED, &timeline(1, 3), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_dump_lists_every_message_in_order_whatever_the_order_of_groups() {
    let workload = mixed();
    let text = dumped(&workload);
    let keys: Vec<(i64, &str)> = text
        .lines()
        .skip(1)
        .map(|line| line.split_once(' ').unwrap())
        .map(|(due, rest)| (due.parse().unwrap(), rest.split(' ').next().unwrap()))
        .collect();
    assert!(keys.is_sorted());
    let rules = Rules::all(&workload, SEED, &timeline(1, 3));
    let messages: usize = Fleet::new(&workload, 1)
        .devices()
        .iter()
        .map(|device| dues(&rules[usize::from(device.group)], device).len())
        .sum();
    assert_eq!(keys.len(), messages);
    assert!(text.contains(" offline\n") && text.contains(" online\n"));

    let mut reversed = workload;
    reversed.devices.reverse();
    assert_eq!(dumped(&reversed), text);
    reversed.devices.push(group("f/flood", 1, Arrival::Flood));
    assert!(dumped(&reversed).contains("# f/flood floods: no due times\n"));
}

/// The first messages of each arrival process, so that a change of any draw is noticed. Other values mean that records
/// made before the change cannot be compared with those made after it.
#[test]
fn draws_are_those_of_the_first_version() {
    let workload = mixed();
    let rules = Rules::all(&workload, SEED, &timeline(2, 20));
    let found: Vec<(i64, u32)> = rules
        .iter()
        .map(|rules| dues(rules, &Device { publisher: 0, group: 0, copy: 1, index: 2, ..Device::default() }))
        .map(|dues| (dues[1].due_ns, dues[1].configured_bytes))
        .collect();
    assert_eq!(found, GOLDEN_MESSAGES);
    assert_eq!(hash(&workload, &Fleet::new(&workload, 2), SEED, &timeline(2, 20)), GOLDEN_HASH);
}

const GOLDEN_MESSAGES: [(i64, u32); 5] =
    [(-1000000000, 1181), (-1695695919, 1085), (-989446751, 1088), (1581789873, 228), (-1999999930, 1966)];
const GOLDEN_HASH: &str = "24067ca8661c9650";
