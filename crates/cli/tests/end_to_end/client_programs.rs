//! Runs whose client is a program: honest, lying, dying.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::program::{assert_closed, call, pubmark, record_of};

const SHORT: &[&str] =
    &["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s", "--qos", "1"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A Python with Paho, and mosquitto; prints a message if one is missing.
fn python() -> Option<String> {
    let python = root().join("target/clients/paho/bin/python3");
    let has_mosquitto =
        ["mosquitto", "/usr/sbin/mosquitto"].iter().any(|name| Command::new(name).arg("-h").output().is_ok());
    if !python.exists() {
        pubmark_testing::skip("Paho is not installed (`.ci/install-clients paho`)");
    } else if !has_mosquitto {
        pubmark_testing::skip("mosquitto is not installed (`apt-get install mosquitto`)");
    }
    (python.exists() && has_mosquitto).then(|| python.display().to_string())
}

/// A folder for programs in which `pubmark install paho` seems to have put its program: the files of this tree, and the library that the
/// tests have.
fn installed() -> tempfile::TempDir {
    let programs = tempfile::tempdir().unwrap();
    let paho = programs.path().join("clients/paho");
    std::fs::create_dir_all(&paho).unwrap();
    for entry in std::fs::read_dir(root().join("target/clients/paho")).unwrap() {
        let entry = entry.unwrap();
        std::os::unix::fs::symlink(entry.path(), paho.join(entry.file_name())).unwrap();
    }
    for file in ["pubmark_client.py", "paho/client.py", "paho/requirements.txt"] {
        std::fs::copy(root().join("clients").join(file), programs.path().join("clients").join(file)).unwrap();
    }
    programs
}

fn run(client: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    record_of(folder.path(), &[SHORT, &["--system", "mosquitto", "--client", client], more].concat())
}

#[test]
fn a_program_delivers_everything_and_is_named_in_the_record() {
    let Some(python) = python() else { return };
    let client = format!("{python} {}", root().join("clients/paho/client.py").display());
    for protocol in ["mqtt5", "mqtt311"] {
        let record = run(&client, &["--protocol", protocol, "--user", "ann", "--password", "open sesame"]);
        assert_closed(&record);
        assert_count_eq!(record["delivery"]["delivered"], 100);
        assert_count_eq!(record["delivery"]["lost"], 0);
        assert_eq!(record["protocol"]["publish"], protocol);
        assert_eq!(record["protocol"]["sent_means"], "handed-over");
        let programs = &record["connections"]["client_programs"];
        assert_eq!(programs["library"], "paho-mqtt (Python) 2.1.0");
        assert_eq!((&programs["misreports"], &programs["ended"]), (&serde_json::json!({}), &Value::Null));
        assert_count!(programs["round_trip"]["count"].as_u64().unwrap() >= 5, "{programs}");
        // The library owns the sockets: there is no lower bound of the latency.
        assert_eq!(record["latency"]["total"]["lower"]["max_us"], 0.0, "{}", record["latency"]["total"]);
        assert!(record["latency"]["total"]["upper"]["p50_us"].as_f64().unwrap() > 0.0);
        assert!(!record.to_string().contains("sesame"), "the password is in the record");
        // The program's resource usage is separate from that of the system, of pubmark, and of other programs.
        let cost = &record["cost"];
        let used = &cost["client_programs"];
        assert!(used["cpu_seconds"].as_f64().unwrap() > 0.0, "{cost}");
        assert!(used["peak_rss_bytes"].as_u64().unwrap() > 5_000_000, "a Python interpreter: {cost}");
        let per_million = cost["client_programs_cpu_s_per_million"].as_f64().unwrap();
        // A message that is due at the end may arrive after the window.
        let per_s = record["throughput"]["delivered_per_s"].as_f64().unwrap();
        let expected = used["cores"].as_f64().unwrap() * 1e6 / per_s;
        assert!((per_million / expected - 1.0).abs() < 1e-6, "{per_million}, not {expected}: {cost}");
        assert_ne!(used, &cost["generator"]);
    }
}

#[test]
fn a_program_that_pubmark_brings_is_started_by_its_name_from_any_folder() {
    if python().is_none() {
        return;
    }
    let (folder, programs) = (tempfile::tempdir().unwrap(), installed());
    let mut command = pubmark(
        folder.path(),
        &[&["run"], SHORT, &["--system", "mosquitto", "--client", "paho", "--json", "--quiet"]].concat(),
    );
    let output = command.env("PUBMARK_PROGRAMS", programs.path()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_closed(&record);
    assert_count_eq!(record["delivery"]["delivered"], 100);
    assert_eq!(record["connections"]["client_programs"]["library"], "paho-mqtt (Python) 2.1.0");
    let mut command = pubmark(folder.path(), &["install", "paho"]);
    let output = command.env("PUBMARK_PROGRAMS", programs.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("paho-mqtt (Python) 2.1.0 starts and speaks mqtt5, mqtt311"),
        "{output:?}"
    );
    // If it was not installed, the error says how to install it.
    let empty = tempfile::tempdir().unwrap();
    let mut command = pubmark(folder.path(), &["run", "hello", "--system", "mosquitto", "--client", "paho"]);
    let output = command.env("PUBMARK_PROGRAMS", empty.path()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!output.status.success(), "{errors}");
    assert!(errors.contains("the client program `paho` is not installed: there is no `"), "{errors}");
    assert!(errors.contains("hint: `pubmark install paho` installs it"), "{errors}");
}

/// Every record below a folder.
fn records(folder: &Path) -> Vec<Value> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() && !path.is_symlink() {
            true => found.extend(records(&path)),
            false if path.ends_with("record.json") => {
                found.push(serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap());
            }
            false => {}
        }
    }
    found
}

#[test]
fn client_libraries_are_compared_over_one_broker_with_what_each_costs() {
    if python().is_none() {
        return;
    }
    let (folder, programs) = (tempfile::tempdir().unwrap(), installed());
    let compared = ["--systems", "mosquitto", "--protocol", "mqtt5", "--clients", "pubmark", "paho", "again=paho"];
    let times = ["--repeat", "2", "--wait", "0s", "--duration", "1s", "--warmup", "0s"];
    let load = ["compare", "fan-in", "--set", "publishers=10", "--set", "rate=10/s"];
    let mut command = pubmark(folder.path(), &[&load[..], &compared, &times].concat());
    let output = command.env("PUBMARK_PROGRAMS", programs.path()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    let experiment = std::fs::read_dir(folder.path().join("runs")).unwrap().flatten().map(|entry| entry.path());
    let experiment =
        experiment.filter(|path| !path.is_symlink()).find(|path| path.join("experiment.json").is_file()).unwrap();
    let result: Value = serde_json::from_slice(&std::fs::read(experiment.join("experiment.json")).unwrap()).unwrap();
    let cells = result["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3, "{result}");
    for cell in cells {
        // On a busy machine runs are invalid: these are failures, and a further repetition stands in for each.
        let [runs, failures] = ["runs", "failures"].map(|part| cell[part].as_array().unwrap());
        let repetitions: BTreeSet<u64> =
            runs.iter().chain(failures).map(|one| one["repetition"].as_u64().unwrap()).collect();
        assert!(repetitions.is_superset(&BTreeSet::from([1, 2])), "every repetition is accounted for: {cell}");
        let own = cell["settings"]["client"] == "pubmark";
        let figures = cell["figures"].as_array().unwrap();
        let of_program = figures.iter().find(|figure| figure["figure"] == "client CPU a million");
        assert_eq!(of_program.is_some(), !own && !runs.is_empty(), "{cell}");
    }
    let records = records(&experiment);
    assert_count!(records.len() >= 6, "{}", records.len());
    for record in &records {
        assert_closed(record);
        let has_program = !record["connections"]["client_programs"].is_null();
        let used = &record["cost"]["client_programs"]["cpu_seconds"];
        assert_eq!(used.as_f64().is_some_and(|used| used > 0.0), has_program, "{}", record["cost"]);
    }
    let has_none = |record: &&Value| record["connections"]["client_programs"].is_null();
    assert_count!(records.iter().filter(has_none).count() >= 2);
}

#[test]
fn a_program_that_lies_makes_the_run_invalid_and_its_lies_are_counted() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/lying_client.py");
    let paho = root().join("clients/paho/client.py");
    let lying = |how: &str| run(&format!("{python} {} {} {how}", script.display(), paho.display()), &[]);
    let record = lying("future");
    assert_closed(&record);
    assert_count_eq!(record["delivery"]["delivered"], 100, "a stamp that is not used loses no message");
    let programs = &record["connections"]["client_programs"];
    assert_count!(programs["misreports"]["stamp-in-future"].as_u64().unwrap() >= 80, "{programs}");
    let reason = |record: &Value| {
        let reasons = record["verdict"]["reasons"].as_array().unwrap().clone();
        reasons.into_iter().find(|reason| reason["code"] == "V29").map(|reason| reason["text"].to_string())
    };
    assert_eq!(record["verdict"]["status"], "invalid");
    assert!(reason(&record).unwrap().contains("stamp-in-future"), "{:?}", record["verdict"]["reasons"]);

    let record = lying("dies");
    assert_closed(&record);
    assert_eq!(record["verdict"]["status"], "invalid");
    let text = reason(&record).unwrap();
    assert!(text.contains("ended with exit status: 7; it printed: out of ideas"), "{text}");
    assert_count!(
        record["delivery"]["unsent"].as_u64().unwrap() + record["delivery"]["skipped_disconnected"].as_u64().unwrap()
            > 0
    );
}

/// Twenty messages that subscribers look into, by a predicate or as they undo what publishers did.
#[test]
fn a_program_that_hands_over_a_part_of_each_body_is_blamed_itself() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/lying_client.py");
    let paho = root().join("clients/paho/client.py");
    let client = |how: &str| format!("{python} {} {} {how}", script.display(), paho.display());
    let devices = "  - {name: meter, every: 50ms, body: {json: '{\"power\": {{normal 400 80}}, \"unit\": \"W\"}'}";
    for (options, subscribers) in [
        (", transform: [compress: zstd]", "filters: ['part/#']"),
        ("", "filters: ['part/#'], where: payload.power > 400"),
    ] {
        let workload =
            format!("name: part\ndevices:\n{devices}{options}}}\nsubscribers:\n  - {{name: all, {subscribers}}}\n");
        let run = |client: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("part.yaml"), &workload).unwrap();
            let times = ["--duration", "1s", "--warmup", "0s", "--drain", "1s"];
            record_of(
                folder.path(),
                &[&["part.yaml", "--system", "mosquitto", "--client", client][..], &times].concat(),
            )
        };
        let codes = |record: &Value, list: &str| -> Vec<String> {
            let all = record["verdict"][list].as_array().unwrap();
            all.iter().map(|entry| entry["code"].as_str().unwrap().to_owned()).collect()
        };
        let record = run(&client("part"));
        assert_closed(&record);
        assert_count_eq!(record["delivery"]["offered"], 20, "{options}");
        assert_count_eq!(record["delivery"]["lost"], 20, "what is not reported whole is not delivered: {options}");
        assert_count_eq!(record["delivery"]["corrupt"], 0, "nothing on the way changed a body: {options}");
        let programs = &record["connections"]["client_programs"];
        assert_count_eq!(programs["misreports"]["body-incomplete"], 20, "{programs}");
        let (reasons, warnings) = (codes(&record, "reasons"), codes(&record, "warnings"));
        assert!(reasons.contains(&"V29".to_owned()), "{reasons:?}");
        assert!(
            !reasons.contains(&"V30".to_owned()) && !warnings.contains(&"W23".to_owned()),
            "{reasons:?} {warnings:?}"
        );
        let record = run(&client("whole"));
        assert_count_eq!(record["delivery"]["delivered"], 20, "{options}: {}", record["delivery"]);
        assert_eq!(record["connections"]["client_programs"]["misreports"], serde_json::json!({}), "{options}");
    }
}

/// The example of docs/how-to/transform-bodies.md: what subscribers look into is what publishers built, and the broker carries less.
#[test]
fn a_program_may_transform_bodies_on_their_way() {
    let Some(python) = python() else { return };
    let workload = "name: meters\ndevices:\n  - {name: meter, count: 2, every: 20ms, qos: 1, \
                    body: {json: '{\"power\": {{normal 400 80}}, \"text\": \"a body with many words, a body with many words, a body with many words\", \
                    \"again\": \"a body with many words, a body with many words, a body with many words\"}'}}\n\
                    subscribers:\n  - {name: all, filters: ['meters/#'], qos: 1, where: payload.power > 400}\n";
    let run = |program: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("meters.yaml"), workload).unwrap();
        let client = format!("{python} {}", root().join("clients").join(program).display());
        let options =
            ["meters.yaml", "--system", "mosquitto", "--client", &client, "--duration", "1s", "--warmup", "0s"];
        record_of(folder.path(), &options)
    };
    let carried = ["paho/client.py", "transforming/client.py"].map(|program| {
        let record = run(program);
        assert_closed(&record);
        assert_count_eq!(record["delivery"]["delivered"], 100, "{}", record["delivery"]);
        let content = &record["delivery"]["content"][0];
        assert_count_eq!(&content["matched"], &content["should_match"], "{program}: {content}");
        assert_count_eq!(content["unreadable"], 0, "{program}: {content}");
        assert_count_eq!(content["differing_subscribers"], 0, "{program}: {content}");
        assert!(content["matched"].as_u64().unwrap() > 20, "{content}");
        // Both are of the window, in which a busy machine has fewer of the messages.
        let bytes = record["cost"]["system"]["received_bytes"].as_f64().unwrap();
        bytes / record["cost"]["efficiency"]["total"]["delivered"].as_f64().unwrap()
    });
    assert!(carried[1] * 1.5 < carried[0], "bytes a message without and with: {carried:?}");
}

#[test]
fn a_program_that_cannot_be_used_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |client: &str, more: &[&str]| {
        let output = call(folder.path(), &[&["run"], SHORT, &["--client", client], more].concat());
        // The text before it is broken into lines.
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), errors.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, errors) = refused("./not-there", &[]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("failed to start the client program `./not-there`: No such file or directory"), "{errors}");
    let (code, errors) = refused("sh -c 'echo no module named paho >&2; exit 1'", &[]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("before its hello it ended with exit status: 1; it printed: no module named paho"),
        "{errors}"
    );
    let (code, errors) = refused("python3 'client.py", &[]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("a quotation mark in it is not closed"), "{errors}");
    let Some(python) = python() else { return };
    let client = format!("{python} {}", root().join("clients/sixty-lines/client.py").display());
    let (code, errors) = refused(&client, &[]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("QoS 1") || errors.contains("at least once"), "{errors}");
    let (code, errors) = refused(&client, &["--protocol", "mqtt5"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("does not speak mqtt5") && errors.contains("mqtt311"), "{errors}");
    let client = format!("{python} {}", root().join("clients/paho/client.py").display());
    let certificate = ["--tls-insecure", "--tls-cert", "a.pem", "--tls-key", "a.key"];
    let (code, errors) = refused(&client, &[&["--endpoint", "mqtts://127.0.0.1:1"][..], &certificate].concat());
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("a client program shows no certificate"), "{errors}");
    assert!(errors.contains("leave `--tls-cert` and `--tls-key` out"), "{errors}");
}
