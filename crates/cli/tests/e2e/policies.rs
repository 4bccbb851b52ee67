//! Devices that change their rate: a dry run, the schedule, and the offered messages of a run.

use pubmark_testing::{assert_count, assert_count_eq};

use crate::support::books::{assert_closed, check, count};
use crate::support::place::Place;

const DAY: &str = "\
name: policies
devices:
  - name: office/desk
    count: 20
    rate: 5/s
    payload: 64B
    profile: {day: 4s, start: '06:00', curve: {'00:00': 0, '12:00': 2}}
  - name: fleet/tracker
    count: 10
    payload: 64B
    arrival: {states: [{name: parked, rate: 0/s, for: exponential 400ms}, {name: driving, rate: 20/s, for: 200ms}]}
subscribers:
  - {name: all, filters: ['policies/#']}
";

const RUN: [&str; 7] = ["run", "policies.yaml", "--duration", "2s", "--warmup", "1s", "--system=builtin"];

fn place() -> Place {
    let place = Place::new();
    place.write("policies.yaml", DAY);
    place
}

fn dumped(place: &Place, options: &[&str]) -> String {
    let called = place.call(&[&RUN[..], options, &["--dump-schedule"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    called.printed
}

/// Due times of a group, ns.
fn due_times(schedule: &str, group: &str) -> Vec<i64> {
    let of_group = schedule.lines().filter(|line| line.contains(group) && !line.starts_with('#'));
    of_group.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_run_offers_what_the_schedule_of_its_seed_has() {
    let place = place();
    let schedule = dumped(&place, &["--seed", "3"]);
    assert_eq!(schedule, dumped(&place, &["--seed", "3", "--shards", "4"]));
    assert_ne!(schedule, dumped(&place, &["--seed", "4"]));
    let record =
        place.record(&["policies.yaml", "--duration", "2s", "--warmup", "1s", "--system=builtin", "--seed", "3"]);
    assert_closed(&record);
    let measured = ["office/desk", "fleet/tracker"].map(|group| {
        let due = due_times(&schedule, group);
        assert!(due.is_sorted() && due[0] >= -1_000_000_000 && due[due.len() - 1] < 2_000_000_000, "{group}");
        due.iter().filter(|due_ns| **due_ns >= 0).count() as u64
    });
    assert_count_eq!(count(&record, "offered"), measured.iter().sum::<u64>(), "of {measured:?}");
    assert_count_eq!(count(&record, "delivered"), count(&record, "sent"));
    assert_eq!(check(&record, "V27"), "valid");
    // From 06:00 over noon to 18:00: 20 devices x 5/s x 2 s x 1.5 on average, each to one message.
    assert_count!(measured[0].abs_diff(300) <= 20, "{measured:?}");
}

#[test]
fn a_dry_run_counts_the_part_of_the_day_and_names_the_peak() {
    let place = place();
    let called = place.call(&[&RUN[..], &["--dry-run"]].concat());
    assert!(matches!(called.code(), 0 | 1), "{called:?}");
    // 300 of the day, and 10 devices x 20/s x a third of the time x 2 s.
    assert!(called.printed.contains("433 due"), "{}", called.printed);
    // 150/s and 67/s on average; 200/s and 67/s at noon.
    assert!(
        called.printed.contains("217 msg/s") && called.printed.contains("(267 msg/s at peak)"),
        "{}",
        called.printed
    );
}

const METERS: &str = "\
name: meters
devices:
  - {name: controller, arrival: {trace: [2s]}, payload: 40B, topic: 'busy', qos: 1}
  - name: meter
    count: 5
    client: meter
    rate: 10/s
    payload: 80B
    qos: 1
    topic: 'readings/{index}'
    when: {receives: 'busy', rate: 1/s, for: 2s}
subscribers:
  - {name: meter, count: 5, client: meter, filters: ['busy'], qos: 1}
  - {name: centre, filters: ['readings/#'], qos: 1}
";

#[test]
fn devices_that_received_a_message_send_less_and_every_report_says_so() {
    let place = Place::new();
    place.write("meters.yaml", METERS);
    // The trace begins with the warm-up.
    let run = ["meters.yaml", "--duration", "4s", "--warmup", "1s", "--system=builtin"];
    let record = place.record(&run);
    assert_closed(&record);
    assert_count_eq!(count(&record, "offered"), 5 * 40 + 1);
    // From 1 s to 3 s of the window, 2 of each meter's 20 messages, give or take one at each end.
    assert_count!(count(&record, "slowed").abs_diff(5 * 18) <= 10, "{}", record["delivery"]);
    assert_count_eq!(count(&record, "skipped_planned"), count(&record, "slowed"));
    assert_count_eq!(count(&record, "delivered"), count(&record, "expected"));
    assert_eq!(check(&record, "V27"), "valid");
    let folder = place.runs().remove(0).0;
    let page = place.call(&["report", folder.to_str().unwrap()]);
    assert!(page.printed.contains(&format!("slowed {}", count(&record, "slowed"))), "{page:?}");
    let again = place.record(&[&run[..], &["--shards", "4"]].concat());
    assert_eq!(record["workload"]["schedule_hash"], again["workload"]["schedule_hash"]);
}
