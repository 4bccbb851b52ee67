//! DDS, a system without a broker: nothing is started, clients find each other.

use pubmark_adapters::dds::CycloneClients;
use pubmark_testing::assert_count_eq;

use crate::program::{assert_closed, call, record_of};

const SHORT: &[&str] = &["--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

fn has_cyclone() -> bool {
    let missing = CycloneClients::missing();
    if let Some(why) = &missing {
        pubmark_testing::skip(format_args!("{why} (`apt-get install libddsc0debian`)"));
    }
    missing.is_none()
}

#[test]
fn every_profile_of_dds_delivers_and_names_what_it_changes() {
    if !has_cyclone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (profile, qos, changes) in [
        ("default", "1", &["dds-unicast"][..]),
        ("psmark-low", "0", &["dds-unicast", "dds-psmark"]),
        ("psmark-high", "1", &["dds-unicast", "dds-psmark", "dds-durability"]),
    ] {
        let options = ["--system", "dds", "--profile", profile, "--qos", qos];
        let record = record_of(folder.path(), &[&["fan-in"], SHORT, &options].concat());
        assert_closed(&record);
        assert_eq!(record["system"]["back_end"], "brokerless");
        let library = record["system"]["version"].as_str().unwrap();
        assert!(library.starts_with("Cyclone DDS 0.10"), "{library}");
        let names: Vec<&str> = record["settings"]["deviations"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert!(changes.iter().all(|change| names.contains(change)), "{profile}: {names:?}");
        let delivered = record["delivery"]["delivered"].as_u64().unwrap();
        assert!(delivered > 0, "{profile}: {:?}", record["delivery"]);
        if profile == "default" {
            assert_count_eq!(record["delivery"]["lost"], 0);
        }
    }
}

/// PSMark's devices fire together, and its one topic without a key is one instance of which a reader keeps five samples: a program that
/// listens takes each as it comes, and so does a client of ours, however late its thread is woken.
#[test]
fn a_reader_that_keeps_five_takes_a_burst_of_sixty() {
    if !has_cyclone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let workload = "
name: burst
devices:
  - {name: device, count: 60, arrival: {trace: [500ms, 1s, 1500ms]}, payload: 1KB, topic: \"burst/{device}\", qos: 1}
subscribers:
  - {name: subscriber, count: 3, filters: [burst/+], qos: 1}
";
    std::fs::write(folder.path().join("burst.yaml"), workload).unwrap();
    let options = ["--system", "dds", "--profile", "psmark-high", "--duration", "2s", "--warmup", "0s"];
    let record = record_of(folder.path(), &[&["burst.yaml"], &options[..]].concat());
    assert_closed(&record);
    let delivery = &record["delivery"];
    assert_count_eq!((&delivery["expected"], &delivery["delivered"]), (&540.into(), &540.into()), "{delivery:?}");
}

#[test]
fn topics_of_dds_are_mapped_as_the_endpoint_says() {
    if !has_cyclone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (domain, mapping) in (91..).zip(["single", "per-type", "per-topic", "keyed"]) {
        let endpoint = format!("dds://127.0.0.1?domain={domain}&topic={mapping}");
        let options = ["--endpoint", &endpoint, "--protocol", "dds", "--qos", "1"];
        let record = record_of(folder.path(), &[&["fan-in"], SHORT, &options].concat());
        assert_closed(&record);
        let delivery = &record["delivery"];
        assert_count_eq!((&delivery["lost"], &delivery["unknown"]), (&0.into(), &0.into()), "{mapping}: {delivery:?}");
        assert!(delivery["delivered"].as_u64().unwrap() > 50, "{mapping}: {delivery:?}");
    }
}

#[test]
fn what_dds_cannot_do_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    for (options, words) in [
        (&["--system", "dds", "--qos", "2"][..], "dds offers QoS 0, 1"),
        (&["--system", "dds", "--profile", "psmark"], "psmark-high"),
        (&["--endpoint", "dds://127.0.0.1?durability=transient", "--protocol", "dds"], "no client here has"),
        (&["--endpoint", "dds://127.0.0.1?history=none", "--protocol", "dds"], "neither all nor a number"),
    ] {
        let output = call(folder.path(), &[&["run", "fan-in"], SHORT, options].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let line = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.contains(words), "{errors}");
    }
}

#[test]
fn rustdds_is_chosen_by_name_and_the_record_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for (profile, qos) in [("default", "1"), ("default", "0"), ("psmark-low", "0")] {
        let options = ["--system", "dds", "--client", "rustdds", "--profile", profile, "--qos", qos];
        let record = record_of(folder.path(), &[&["fan-in"], SHORT, &options].concat());
        assert_closed(&record);
        let library = record["system"]["version"].as_str().unwrap();
        assert!(library.starts_with("RustDDS 0."), "{library}");
        let delivery = &record["delivery"];
        assert!(delivery["delivered"].as_u64().unwrap() > 0, "{profile}: {delivery:?}");
        if qos == "1" {
            assert_count_eq!((&delivery["lost"], &delivery["unknown"]), (&0.into(), &0.into()), "{delivery:?}");
        }
    }
    for (domain, mapping) in (95..).zip(["single", "per-type", "per-topic"]) {
        let endpoint = format!("dds://127.0.0.1?domain={domain}&topic={mapping}");
        let options = ["--endpoint", &endpoint, "--client", "rustdds", "--qos", "1"];
        let record = record_of(folder.path(), &[&["fan-in"], SHORT, &options].concat());
        assert_closed(&record);
        assert!(record["system"]["version"].as_str().unwrap().starts_with("RustDDS 0."), "{record:?}");
        let delivery = &record["delivery"];
        assert_count_eq!((&delivery["lost"], &delivery["unknown"]), (&0.into(), &0.into()), "{mapping}: {delivery:?}");
    }
}

/// Checks that a run with these options is refused with these words before it begins.
fn assert_refused(workload: &str, options: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let output = call(folder.path(), &[&["run", workload, "--duration", "1s"], options].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{options:?}: {errors}");
    let line = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(line.contains(words), "{options:?}, not `{words}`: {line}");
    }
}

#[test]
fn what_rustdds_does_not_carry_is_refused_with_what_does() {
    let rust = ["--system", "dds", "--client", "rustdds"];
    let cyclone = "`--client cyclone`";
    let profile = "`durability=transient-local`, `lease`, `lifespan` are not offered over RustDDS";
    for (options, words) in [
        (&["--profile", "psmark-high"][..], &["profile `psmark-high` cannot be had", profile, cyclone][..]),
        (&["--payload", "1MB"], &["`publisher` sends up to", "more than the 131072 B that rustdds carries", cyclone]),
        (&["--set", "rate=100/s"], &["10000 messages a second are more than the 5000 that rustdds carries", cyclone]),
        (&["--set", "arrival=flood"], &["sends as fast as it can, rustdds carries 5000 messages a second", cyclone]),
        (
            &["--set", "publishers=500", "--set", "rate=1/s"],
            &["501 sessions are more than the 200 of rustdds", cyclone],
        ),
    ] {
        assert_refused("fan-in", &[&rust[..], options].concat(), words);
    }
    let fan_out = ["--set", "subscribers=100", "--set", "rate=100/s"];
    let deliveries = ["10000 deliveries a second are more than the 5000 that rustdds carries", cyclone];
    assert_refused("fan-out", &[&rust[..], &fan_out].concat(), &deliveries);
    let keyed = ["--endpoint", "dds://127.0.0.1?topic=keyed", "--client", "rustdds"];
    assert_refused("fan-in", &keyed, &["`topic=keyed` is not offered over RustDDS", cyclone]);
}

#[test]
fn a_client_that_a_protocol_has_not_is_refused() {
    for (options, words) in [
        (&["--system", "dds", "--client", "rustds"][..], &["`--client rustds`", "did you mean `rustdds`"][..]),
        (&["--system", "dds", "--client", "opendds"], &["`--client opendds`", "`cyclone`, `rustdds`"]),
        (&["--client", "rustdds"], &["`--client rustdds` is no client library for MQTT", "`paho`, `mqttjs`"]),
        (
            &["--endpoint", "nats://127.0.0.1", "--client", "cyclone"],
            &["no client library for NATS", "leave `--client` out"],
        ),
    ] {
        assert_refused("fan-in", options, words);
    }
}
