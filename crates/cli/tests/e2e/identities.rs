//! Devices with separate identities, against real mosquitto: password file and access list, certificates as user names.

use std::path::Path;
use std::process::Command;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, count};
use crate::support::mosquitto::{Mosquitto, set_password};
use crate::support::place::Place;

const DEVICES: usize = 5;
const SHORT: [&str; 6] = ["--duration", "1s", "--warmup", "0s", "--protocol", "mqtt5"];

fn workload(credentials: &str, topic: &str) -> String {
    format!(
        "name: known
devices:
  - {{name: pump, count: {DEVICES}, every: 100ms, payload: 60B, qos: 1, topic: \"{topic}\", credentials: {credentials}}}
subscribers:
  - {{name: everything, filters: [\"known/#\"], qos: 1, credentials: {{user: reader, password: planted-reader-zq1, client_id: \"reader-{{index}}\"}}}}
"
    )
}

fn connections<'a>(record: &'a Value, name: &str) -> &'a Value {
    &record["connections"][name]
}

/// Each pump may write only to its topic.
fn guarded() -> Option<Mosquitto> {
    guarded_by(|number| format!("planted-pump-{number}-zq2"))
}

/// As above, with these passwords of the pumps.
fn guarded_by(password: impl Fn(usize) -> String) -> Option<Mosquitto> {
    Mosquitto::start_with(|folder| {
        let passwords = folder.join("passwords");
        for number in 0..DEVICES {
            set_password(&passwords, &format!("pump-0-{number}"), &password(number));
        }
        set_password(&passwords, "reader", "planted-reader-zq1");
        let acl = "user reader\ntopic read known/#\npattern write known/%u\n";
        std::fs::write(folder.join("acl"), acl).unwrap();
        readable(&folder.join("acl"));
        let (passwords, acl) = (passwords.display(), folder.join("acl").display().to_string());
        format!("allow_anonymous false\npassword_file {passwords}\nacl_file {acl}\n")
    })
}

fn readable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn rows(wrong: Option<usize>) -> String {
    let mut rows = "client_id,user,password\n".to_owned();
    for number in 0..DEVICES {
        let password =
            if wrong == Some(number) { "planted-wrong-zq3".to_owned() } else { format!("planted-pump-{number}-zq2") };
        rows.push_str(&format!("sn-{number:04},pump-0-{number},{password}\n"));
    }
    rows
}

fn assert_no_secret(place: &Place, called: &str) {
    assert!(!called.contains("planted-"), "{called}");
    for (folder, _) in place.runs() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let bytes = std::fs::read(&path).unwrap();
                assert!(!String::from_utf8_lossy(&bytes).contains("planted-"), "{}", path.display());
            }
        }
    }
}

#[test]
fn each_device_logs_in_by_its_row_and_writes_where_it_may() {
    let Some(broker) = guarded() else { return };
    let place = Place::new();
    place.write("known.yaml", workload("{file: devices.csv}", "known/pump-{device}"));
    place.write("devices.csv", rows(None));
    let endpoint = broker.endpoint();
    let record = place.record(&[&["known.yaml", "--endpoint", &endpoint], &SHORT[..]].concat());
    assert_closed(&record);
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (50, 0), "{}", record["delivery"]);
    assert_count_eq!(connections(&record, "auth_failed"), &Value::from(0));
    assert_eq!(record["settings"]["client_certificate"], false);
    assert_no_secret(&place, "");
}

/// `{device}` in the user name needs no file if all devices have one password.
#[test]
fn each_device_logs_in_by_its_name_with_the_password_of_all() {
    let Some(broker) = guarded_by(|_| "planted-of-all-zq2".to_owned()) else { return };
    let place = Place::new();
    let credentials = "{user: \"pump-{device}\", password: planted-of-all-zq2}";
    place.write("known.yaml", workload(credentials, "known/pump-{device}"));
    let endpoint = broker.endpoint();
    let record = place.record(&[&["known.yaml", "--endpoint", &endpoint], &SHORT[..]].concat());
    assert_closed(&record);
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (50, 0), "{}", record["delivery"]);
    assert_count_eq!(connections(&record, "auth_failed"), &Value::from(0));
    assert_no_secret(&place, "");
}

#[test]
fn a_device_with_a_wrong_password_is_refused_and_counted_by_cause() {
    let Some(broker) = guarded() else { return };
    let place = Place::new();
    place.write("known.yaml", workload("{file: devices.csv}", "known/pump-{device}"));
    place.write("devices.csv", rows(Some(2)));
    let endpoint = broker.endpoint();
    let called = place.call(&[&["run", "known.yaml", "--endpoint", &endpoint], &SHORT[..]].concat());
    assert_no_secret(&place, &format!("{}{}", called.printed, called.errors));
    let runs = place.runs();
    let (_, record) = runs.first().unwrap_or_else(|| panic!("{called:?}"));
    assert!(connections(record, "auth_failed").as_u64().unwrap() > 0, "{}", record["connections"]);
    let causes = record["connections"]["causes"].to_string();
    assert!(causes.contains("not authorized"), "{causes}");
    // The other four are not disturbed.
    assert!(count(record, "delivered") >= 40, "{}", record["delivery"]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_before_the_run_with_its_line() {
    let place = Place::new();
    place.write("known.yaml", workload("{file: devices.csv}", "known/pump-{device}"));
    for (rows, message) in [
        ("client_id,user\na,b\n", "devices.csv:1: the column `password` is missing"),
        ("client_id,pass\na,planted-b-zq4\n", "devices.csv:1: column 2 of the first line is none"),
        ("planted-a-zq5,planted-b-zq5\n", "devices.csv:1: column 1 of the first line is none"),
        ("user,password\na,planted-b-zq6\n", "devices.csv:2: 1 rows for 5 clients"),
        ("user,password\na\n", "devices.csv:2: 1 cells, and the first line names 2 columns"),
        ("user,password\na,\n", "devices.csv:2: no `password`"),
        (
            "client_id,user,password\nx,a,planted-zq7\nx,b,planted-zq7\n",
            "devices.csv:3: the client id `x` is that of line 2",
        ),
        ("certificate,key\nnone.pem,none.key\n", "devices.csv:2: failed to read"),
        ("", "devices.csv:1: the file is empty"),
    ] {
        place.write("devices.csv", rows);
        let called = place.call(&["run", "./known.yaml", "--system", "builtin", "--dry-run"]);
        assert_eq!(called.code(), 2, "{rows}: {called:?}");
        // Lines may be broken anywhere, and begin with a bar.
        let words = called.errors.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
        assert!(words.contains(message), "{message}: {words}");
        assert!(!words.contains("planted-"), "{words}");
    }
    place.write("known.yaml", workload("{client_id: same}", "known/pump-{device}"));
    let called = place.call(&["run", "./known.yaml", "--system", "builtin", "--dry-run"]);
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("have the client id `same`"), "{called:?}");
}

/// Creates certificates of N devices and a reader with the command, and a server certificate that openssl signs with
/// their authority.
fn with_certificates(place: &Place, devices: usize) -> Option<Mosquitto> {
    let count = (devices + 1).to_string();
    let made = place.call(&["devices", "certificates", "--count", &count, "--out", "pki", "--prefix", "pump-0-"]);
    assert_eq!(made.code(), 0, "{made:?}");
    let pki = place.path().join("pki");
    let script = "openssl req -newkey rsa:2048 -nodes -keyout server.key -subj /CN=localhost -out server.csr 2>/dev/null && \
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > ext && \
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem 2>/dev/null";
    if !Command::new("sh").args(["-c", script]).current_dir(&pki).status().is_ok_and(|status| status.success()) {
        pubmark_testing::skip("openssl is not installed (`apt-get install openssl`)");
        return None;
    }
    Mosquitto::start_with(move |folder| {
        for name in ["ca.pem", "server.pem", "server.key"] {
            std::fs::copy(pki.join(name), folder.join(name)).unwrap();
            readable(&folder.join(name));
        }
        std::fs::write(
            folder.join("acl"),
            format!("pattern write known/%u\nuser pump-0-{devices}\ntopic read known/#\n"),
        )
        .unwrap();
        readable(&folder.join("acl"));
        let file = |name: &str| folder.join(name).display().to_string();
        format!(
            "cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\nuse_identity_as_username true\nacl_file {}\n",
            file("ca.pem"),
            file("server.pem"),
            file("server.key"),
            file("acl")
        )
    })
}

#[test]
fn certificates_are_user_names_and_a_stranger_s_is_refused() {
    let place = Place::new();
    let Some(broker) = with_certificates(&place, DEVICES) else { return };
    let reader = "client_id,certificate,key\nreader,pki/devices/pump-0-5.pem,pki/devices/pump-0-5.key\n";
    place.write("reader.csv", reader);
    let text = workload("{file: pki/devices.csv}", "known/pump-{device}").replace(
        "credentials: {user: reader, password: planted-reader-zq1, client_id: \"reader-{index}\"}",
        "credentials: {file: reader.csv}",
    );
    place.write("known.yaml", text);
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let load = [&["known.yaml", "--endpoint", &endpoint, "--tls-ca", "pki/ca.pem"], &SHORT[..]].concat();
    let record = place.record(&load);
    assert_closed(&record);
    assert_eq!(record["settings"]["client_certificate"], true, "they come from a file");
    // The access list lets each device write only to the topic of its common name.
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (50, 0), "{}", record["delivery"]);
    // A certificate of another authority, and one with a key that does not belong to it.
    let other = place.call(&["devices", "certificates", "--count", "5", "--out", "other", "--prefix", "pump-0-"]);
    assert_eq!(other.code(), 0, "{other:?}");
    let rows = std::fs::read_to_string(place.path().join("pki/devices.csv")).unwrap();
    let strange = rows.replace("devices/pump-0-3", "../other/devices/pump-0-3");
    place.write("pki/devices.csv", &strange);
    let called = place.call(&[&["run"], &load[..]].concat());
    let runs = place.runs();
    let (_, record) = runs.last().unwrap_or_else(|| panic!("{called:?}"));
    let causes = record["connections"]["causes"].to_string();
    assert!(causes.contains("did not take our client certificate"), "{causes}");
    let mixed = rows.replace("devices/pump-0-3.key", "devices/pump-0-4.key");
    place.write("pki/devices.csv", &mixed);
    let called = place.call(&[&["run"], &load[..]].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("pki/devices.csv:5: the key belongs to another certificate"), "{words}");
    let plain = ["known.yaml", "--system", "builtin", "--dry-run"];
    place.write("pki/devices.csv", &rows);
    let called = place.call(&[&["run"], &plain[..]].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("its connections are not encrypted"), "{called:?}");
}

/// Rate at which the devices of a record connected, per second, and the time that it took, s.
fn ramp_up(record: &Value) -> (f64, f64) {
    let sides = record["connections"]["ramp_up"].as_array().unwrap();
    let devices = sides.iter().find(|side| side["side"] == "devices").unwrap();
    (devices["per_s"].as_f64().unwrap(), devices["seconds"].as_f64().unwrap())
}

/// Five hundred devices with a password each: no faster than the default, and faster if requested.
#[test]
fn connects_with_log_in_are_started_at_the_requested_rate() {
    const COUNT: usize = 500;
    let broker = Mosquitto::start_with(|folder| {
        let passwords = folder.join("passwords");
        set_password(&passwords, "pump", "planted-of-all-zq2");
        set_password(&passwords, "reader", "planted-reader-zq1");
        format!("allow_anonymous false\npassword_file {}\n", passwords.display())
    });
    let Some(broker) = broker else { return };
    let place = Place::new();
    let text = workload("{user: pump, password: planted-of-all-zq2}", "known/{device}");
    let text = text.replace(&format!("count: {DEVICES}, every: 100ms"), &format!("count: {COUNT}, every: 1s"));
    place.write("known.yaml", text);
    let endpoint = broker.endpoint();
    let connected = |rate: &str| {
        let record = place.record(&[&["known.yaml", "--endpoint", &endpoint, "--connects", rate], &SHORT[..]].concat());
        assert_closed(&record);
        assert_count_eq!(connections(&record, "established"), &Value::from(COUNT + 1), "{}", record["connections"]);
        assert_count_eq!(connections(&record, "auth_failed"), &Value::from(0));
        (record["settings"]["connects_per_s"].as_f64().unwrap(), ramp_up(&record))
    };
    let (asked, (per_s, seconds)) = connected("100/s");
    assert_eq!(asked, 100.0);
    assert!(per_s <= 102.0 && seconds >= 4.8, "{per_s}/s for {seconds} s");
    let (asked, (faster, _)) = connected("5000/s");
    assert_eq!(asked, 5_000.0);
    assert!(faster > 2.0 * per_s, "{faster}/s beside {per_s}/s");
    let refused = place.call(&["run", "./known.yaml", "--connects", "0/s", "--dry-run"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    let words = refused.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`0/s` is no rate of connects: above 0/s"), "{refused:?}");
}

/// A thousand devices with client certificates, whose names are their user names.
#[test]
#[ignore = "a minute: `make test-all`"]
fn a_thousand_devices_log_in_by_their_certificates() {
    const COUNT: usize = 1_000;
    let place = Place::new();
    let Some(broker) = with_certificates(&place, COUNT) else { return };
    let reader =
        format!("client_id,certificate,key\nreader,pki/devices/pump-0-{COUNT}.pem,pki/devices/pump-0-{COUNT}.key\n");
    place.write("reader.csv", reader);
    let text = workload("{file: pki/devices.csv}", "known/pump-{device}")
        .replace(
            "credentials: {user: reader, password: planted-reader-zq1, client_id: \"reader-{index}\"}",
            "credentials: {file: reader.csv}",
        )
        .replace(&format!("count: {DEVICES}, every: 100ms"), &format!("count: {COUNT}, every: 1s"));
    place.write("known.yaml", text);
    let endpoint = format!("mqtts://localhost:{}", broker.port);
    let load = ["known.yaml", "--endpoint", &endpoint, "--tls-ca", "pki/ca.pem", "--duration", "5s", "--warmup", "1s"];
    let record = place.record(&[&load[..], &["--protocol", "mqtt5"]].concat());
    assert_closed(&record);
    assert_count_eq!(connections(&record, "established"), &Value::from(COUNT + 1), "{}", record["connections"]);
    assert_count_eq!(
        (count(&record, "delivered"), count(&record, "lost")),
        (5 * COUNT as u64, 0),
        "{}",
        record["delivery"]
    );
    eprintln!("{}", record["connections"]);
}
