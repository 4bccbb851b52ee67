//! Runs behind emulated links: messages experience the requested settings, the record has the traffic, and unsupported
//! workloads are refused before anything starts.

use std::os::unix::process::CommandExt;
use std::process::Command;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, check, count};
use crate::support::place::Place;

/// Devices behind a link, a subscriber that is not.
const WORKLOAD: &str = "\
name: linked
links:
  far: {LINK}
devices:
  - {name: sensor, count: 10, every: 100ms, payload: 100B, topic: 'linked/{index}', qos: QOS, link: far}
subscribers:
  - {name: reader, filters: ['linked/#'], qos: QOS}
";

const TIMES: [&str; 4] = ["--duration", "3s", "--warmup", "1s"];

/// Whether links can be created here; prints a message if not.
pub fn can_be_made() -> bool {
    let missing = pubmark_links::privilege::probe().missing();
    if let Some(missing) = &missing {
        pubmark_testing::skip(missing);
    }
    missing.is_none()
}

fn run_behind(link: &str, qos: &str, options: &[&str]) -> Value {
    let place = Place::new();
    place.write("linked.yaml", WORKLOAD.replace("LINK", link).replace("QOS", qos));
    let record = place.record(&[&["linked.yaml"], &TIMES[..], options].concat());
    assert_closed(&record);
    record
}

fn latency_us(record: &Value, name: &str) -> f64 {
    record["latency"]["total"]["upper"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name} in {}", record["latency"]["total"]))
}

/// Groups behind links, with the packets that entered in the window, up and down.
fn packets(record: &Value) -> Vec<(String, u64, u64)> {
    let groups = record["conditions"]["links"]["groups"].as_array().expect("links are in the record");
    let entered = |side: &Value| side["traffic"]["entered_packets"].as_u64().expect("a count");
    groups
        .iter()
        .map(|group| {
            (group["group"].as_str().expect("a name").to_owned(), entered(&group["up"]), entered(&group["down"]))
        })
        .collect()
}

#[test]
fn a_delay_is_in_the_latency_and_only_devices_behind_it_have_packets_there() {
    if !can_be_made() {
        return;
    }
    let record = run_behind("delay: 20ms", "0", &["--system", "builtin"]);
    assert_delivered_once(&record);
    // One direction only: the subscriber is in the system's network.
    let median_us = latency_us(&record, "p50_us");
    assert!((20_000.0..40_000.0).contains(&median_us), "{median_us}");
    let groups = packets(&record);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0].0, "sensor");
    // 300 messages, few of which share a packet (those that were late together), and acknowledgements of TCP.
    assert!(groups[0].1 >= 200 && groups[0].2 >= 30, "{groups:?}");
    assert_eq!(record["conditions"]["links"]["queue_drops"], 0);
    // Delays that probes measure include the machine's, and are not checked here.
    let checks = record["conditions"]["links"]["groups"][0]["up"]["checks"].as_array().expect("checks");
    assert!(checks.iter().any(|check| check["name"] == "delay" && check["requested"] == "20.000 ms"), "{checks:?}");
}

#[test]
fn packets_are_lost_and_tcp_carries_every_message_all_the_same() {
    if !can_be_made() {
        return;
    }
    let record = run_behind("delay: 1ms, loss: 5%", "1", &["--system", "builtin"]);
    assert_delivered_once(&record);
    let traffic = &record["conditions"]["links"]["groups"][0]["up"]["traffic"];
    let (entered, lost) = (traffic["entered_packets"].as_u64().unwrap_or(0), traffic["lost"].as_u64().unwrap_or(0));
    // 300 messages, of which few share a packet; five standard deviations of the binomial distribution are below 60.
    assert!(entered >= 200 && lost > 0 && lost * 20 < entered + 1_200, "{traffic}");
    // Retransmitted after a time-out, which for TCP is 200 ms at least.
    assert!(latency_us(&record, "max_us") > 100_000.0, "{}", record["latency"]["total"]["upper"]);
}

#[test]
fn a_series_of_steps_follows_the_measured_window() {
    if !can_be_made() {
        return;
    }
    let steps = "delay: 1ms, series: [{at: 1500ms, delay: 101ms}]";
    let record = run_behind(steps, "0", &["--system", "builtin"]);
    assert_delivered_once(&record);
    let (p25, p75) = (latency_us(&record, "p25_us"), latency_us(&record, "p75_us"));
    assert!((1_000.0..20_000.0).contains(&p25) && (101_000.0..130_000.0).contains(&p75), "{p25} {p75}");
}

#[test]
fn silence_on_a_link_does_not_decide_what_is_lost() {
    if !can_be_made() {
        return;
    }
    // Down half a second before the window ends, for longer than a run on one machine would wait in silence: TCP tries after 0.2, 0.4,
    // … 3.2 s, and gets through 6 s after the link went down, or sooner where its timer was shorter.
    let steps = "delay: 1ms, series: [{at: 2500ms, down: true}, {at: 7s, down: false}]";
    let record = run_behind(steps, "0", &["--system", "builtin", "--drain", "40s"]);
    assert_delivered_once(&record);
    assert!(latency_us(&record, "max_us") > 4_000_000.0, "{}", record["latency"]["total"]["upper"]);
    assert_eq!(check(&record, "V19"), "valid", "{}", record["verdict"]);
    // Without the time for that they are missing, and are not reported as lost.
    let record = run_behind(steps, "0", &["--system", "builtin", "--drain", "1s"]);
    assert!(count(&record, "lost") >= 20, "{}", record["delivery"]);
    assert!(
        record["delivery"]["at_end"]["socket_unsent_bytes"].as_u64() > Some(1_000),
        "{}",
        record["delivery"]["at_end"]["socket_unsent_bytes"]
    );
    assert_eq!(check(&record, "V19"), "suspect", "{}", record["verdict"]);
}

#[test]
fn datagrams_that_wait_on_a_link_are_not_called_lost() {
    if !can_be_made() {
        return;
    }
    // 15 kB/s for a link that carries 2.5 kB/s; no socket holds what waits in its queue.
    let slow = "up: {rate: 20kbit/s, queue: 64KB}";
    let record = run_behind(slow, "0", &["--system", "coap", "--drain", "1s"]);
    assert!(count(&record, "lost") > 100, "{}", record["delivery"]);
    assert!(record["delivery"]["at_end"]["link_bytes"].as_u64() > Some(10_000), "{}", record["delivery"]["at_end"]);
    assert_eq!(check(&record, "V19"), "suspect", "{}", record["verdict"]);
    // What a link loses is lost, whatever keep-alives and acknowledgements it carries.
    let record = run_behind("delay: 20ms, loss: 5%", "0", &["--system", "coap", "--drain", "1s"]);
    assert!(count(&record, "lost") > 0, "{}", record["delivery"]);
    assert_eq!(record["delivery"]["at_end"]["link_bytes"], 0);
    assert!(!record["verdict"].to_string().contains("on the links"), "{}", record["verdict"]);
}

#[test]
fn every_group_can_be_put_behind_a_preset_of_a_real_broker() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    let call = ["hello", "--system", "mosquitto", "--profile", "tuned", "--link", "edge-typical-missing"];
    let called = place.call(&[&["run"], &call[..], &TIMES].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("there is no link `edge-typical-missing`"), "{}", called.errors);
    let call = ["hello", "--system", "mosquitto", "--profile", "tuned", "--link", "edge-worst"];
    let record = place.record(&[&call[..], &TIMES].concat());
    assert_closed(&record);
    assert_count_eq!(count(&record, "lost"), 0, "{}", record["delivery"]);
    assert_count_eq!(packets(&record).len(), 2);
    // Both directions through 3.125 ms ± 0.625.
    assert!(latency_us(&record, "min_us") > 2_000.0, "{}", record["latency"]["total"]["upper"]);
}

#[test]
fn what_links_do_not_carry_is_refused_before_anything_starts() {
    let place = Place::new();
    for (options, expected) in [
        (&["--endpoint", "dds://127.0.0.1"][..], "links lead to one endpoint"),
        (&["--source-addresses", "127.0.0.2-127.0.0.3"], "links have addresses of their own"),
    ] {
        let called = place.call(&[&["run", "hello", "--link", "lte"][..], options].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{options:?}: {words}");
        assert!(place.runs().is_empty());
    }
}

#[test]
fn the_kernels_emulation_is_refused_for_conditions_that_it_lacks() {
    if !can_be_made() {
        return;
    }
    let place = Place::new();
    let call = |link: &str| {
        let call = ["run", "hello", "--system", "builtin", "--netem", "kernel", "--link", link];
        place.call(&[&call[..], &TIMES].concat())
    };
    // With any kernel: netem may reorder packets by their jitter.
    let called = call("{delay: 20ms, jitter: 5ms}");
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("jitter_reorders: true"), "{}", called.errors);
    assert!(called.errors.contains("leave `--netem kernel` out"), "{}", called.errors);
    let Err(why) = pubmark_links::privilege::probe().kernel_netem else {
        return pubmark_testing::skip("this kernel has netem, so that nothing is missing");
    };
    let called = call("{delay: 20ms, loss: 1%}");
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.replace(['\n', ' '], "").contains(&why.replace(' ', "")), "{why}: {}", called.errors);
    assert!(called.errors.contains("leave `--netem kernel` out"), "{}", called.errors);
}

/// The user without any rights.
pub const NOBODY: u32 = 65_534;

/// Whether that user can have a network of its own with a TUN device, as other programs find; records a skip if not.
/// pubmark's own errors are no reason for a skip: it has to succeed where others do.
pub fn can_be_made_by_nobody() -> bool {
    let mut probe = Command::new("unshare");
    probe.args(["--user", "--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec 3<>/dev/net/tun"]);
    let why = match probe.uid(NOBODY).gid(NOBODY).output() {
        Ok(tried) if tried.status.success() => return true,
        Ok(tried) => String::from_utf8_lossy(&tried.stderr).into_owned(),
        Err(error) => format!("`unshare` cannot be started as another user: {error}"),
    };
    pubmark_testing::skip(format_args!("a plain user can make no links here: {why}"));
    false
}

#[test]
fn a_plain_user_has_links_in_a_user_namespace() {
    if !can_be_made_by_nobody() {
        return;
    }
    let place = Place::new();
    place.write("linked.yaml", WORKLOAD.replace("LINK", "delay: 20ms").replace("QOS", "1"));
    for folder in [place.path().to_owned(), place.temporary()] {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // A copy that this user can read, wherever the tests were built.
    let program = place.path().join("pubmark");
    std::fs::copy(crate::support::place::PUBMARK, &program).unwrap();
    let mut command = Command::new(&program);
    command.uid(NOBODY).gid(NOBODY);
    let words = [&["run", "linked.yaml", "--system", "builtin", "--json", "--quiet"][..], &TIMES].concat();
    let called = place.start_by(command, &words).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    assert!(latency_us(&record, "p50_us") > 20_000.0, "{}", record["latency"]["total"]["upper"]);
}
