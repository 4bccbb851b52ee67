//! TLS to an endpoint: checked, unchecked, and refused.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::program::{call, only_run, pubmark, record_of};

const SHORT: &[&str] = &["fan-in", "--set", "publishers=5", "--set", "rate=20/s", "--duration", "1s", "--warmup", "0s"];

/// A broker that encrypts; ends with the test.
struct Encrypted {
    process: Child,
    endpoint: String,
    authority: PathBuf,
}

impl Encrypted {
    fn start(folder: &Path) -> Encrypted {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let (authority, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        std::fs::write(&authority, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let files = [authority.to_str().unwrap(), key.to_str().unwrap()];
        // Another test may take a port between the look and the start: then the next is tried.
        for port in 22_000..32_000 {
            let listen = format!("127.0.0.1:{port}");
            if std::net::TcpListener::bind(&listen).is_err() {
                continue;
            }
            let mut process = pubmark(folder, &["broker", "--listen", &listen, "--tls", files[0], files[1]])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if line == format!("listening {listen}\n") {
                return Encrypted { process, endpoint: format!("mqtts://localhost:{port}"), authority };
            }
            process.wait().unwrap();
        }
        panic!("no free port");
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn has_deviation(record: &serde_json::Value, name: &str) -> bool {
    record["deviations"].as_array().unwrap().iter().any(|deviation| deviation["name"] == name)
}

#[test]
fn a_certificate_is_checked_unless_one_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Encrypted::start(folder.path());
    let authority = broker.authority.to_str().unwrap();
    let endpoint = ["--endpoint", broker.endpoint.as_str()];

    let checked = record_of(folder.path(), &[SHORT, &endpoint, &["--tls-ca", authority, "--qos", "1"]].concat());
    assert_eq!(checked["delivery"]["delivered"], 100);
    assert_eq!(checked["settings"]["tls"], true);
    assert!(!has_deviation(&checked, "tls-unchecked"));

    let unchecked = record_of(folder.path(), &[SHORT, &endpoint, &["--tls-insecure"]].concat());
    assert_eq!(unchecked["delivery"]["delivered"], 100);
    assert!(has_deviation(&unchecked, "tls-unchecked"), "{}", unchecked["deviations"]);
}

#[test]
fn a_certificate_of_a_stranger_is_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Encrypted::start(folder.path());
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("other.pem"), other.cert.pem()).unwrap();
    let options = ["--endpoint", broker.endpoint.as_str(), "--tls-ca", "other.pem"];
    let output = call(folder.path(), &[&["run"], SHORT, &options].concat());
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let (_, record) = only_run(&folder.path().join("runs"));
    assert!(record["connections"]["tls_failed"].as_u64().unwrap() > 0, "{}", record["connections"]);
    assert_eq!(record["delivery"]["sent"], 0);
}

#[test]
fn authorities_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--endpoint", "mqtts://127.0.0.1:29998", "--tls-ca", "missing.pem"];
    let output = call(folder.path(), &[&["run"], SHORT, &options].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.pem"), "{output:?}");
}
