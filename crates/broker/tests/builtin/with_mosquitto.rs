//! mosquitto's own clients, both versions, all levels.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use pubmark_testing::assert_count_eq;

use crate::server::Server;

/// Whether the clients are installed; otherwise reports a skip.
fn have_clients() -> bool {
    let have = Command::new("mosquitto_sub").arg("--help").output().is_ok();
    if !have {
        pubmark_testing::skip(
            "mosquitto_pub and mosquitto_sub are not installed (`apt-get install mosquitto-clients`)",
        );
    }
    have
}

struct Subscriber {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Subscriber {
    /// Starts mosquitto_sub and waits until its subscription was granted. It ends by itself after `count` messages.
    fn start(server: &Server, version: &str, count: usize, more: &[&str]) -> Subscriber {
        // Line-buffered, otherwise "Subscribed" would be seen only at the end.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", &server.port()]);
        command.args(["-V", version, "-d", "-W", "20"]);
        command.args(["-C", &count.to_string(), "-F", "MESSAGE %t %q %r %p"]).args(more);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("Subscribed") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "mosquitto_sub ended before it had subscribed");
        }
        Subscriber { process, output }
    }

    /// The messages it received: topic, level, retain flag, payload.
    fn finish(mut self) -> Vec<String> {
        let lines = self.output.lines().map(Result::unwrap);
        let messages = lines.filter_map(|line| line.strip_prefix("MESSAGE ").map(str::to_string)).collect();
        assert!(self.process.wait().unwrap().success());
        messages
    }
}

fn publish(server: &Server, version: &str, more: &[&str]) -> bool {
    let mut command = Command::new("mosquitto_pub");
    command.args(["-h", "127.0.0.1", "-p", &server.port(), "-V", version]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

const VERSIONS: [&str; 2] = ["311", "5"];

#[test]
fn messages_of_every_level_arrive_in_both_versions() {
    if !have_clients() {
        return;
    }
    let server = Server::start();
    for version in VERSIONS {
        for level in ["0", "1", "2"] {
            let topic = format!("plain/{version}/{level}");
            let subscriber = Subscriber::start(&server, version, 3, &["-t", &topic, "-q", level]);
            for payload in ["one", "two", "three"] {
                assert!(publish(&server, version, &["-t", &topic, "-q", level, "-m", payload]));
            }
            let expected = ["one", "two", "three"].map(|payload| format!("{topic} {level} 0 {payload}"));
            assert_eq!(subscriber.finish(), expected);
        }
    }
}

#[test]
fn versions_meet_and_the_lower_level_counts() {
    if !have_clients() {
        return;
    }
    let server = Server::start();
    let subscriber = Subscriber::start(&server, "311", 2, &["-t", "mixed/#", "-q", "1"]);
    assert!(publish(&server, "5", &["-t", "mixed/a", "-q", "2", "-m", "x"]));
    assert!(publish(&server, "5", &["-t", "mixed/b", "-q", "0", "-m", "y"]));
    assert_eq!(subscriber.finish(), ["mixed/a 1 0 x", "mixed/b 0 0 y"]);
}

#[test]
fn wildcards_choose_topics() {
    if !have_clients() {
        return;
    }
    let server = Server::start();
    for version in VERSIONS {
        let subscriber = Subscriber::start(&server, version, 2, &["-t", "w/+/end", "-q", "1"]);
        for topic in ["w/a/other", "w/a/end", "w/a/b/end", "w/c/end"] {
            assert!(publish(&server, version, &["-t", topic, "-q", "1", "-m", "x"]));
        }
        assert_eq!(subscriber.finish(), ["w/a/end 1 0 x", "w/c/end 1 0 x"]);
    }
}

#[test]
fn retained_messages_wait_for_subscribers() {
    if !have_clients() {
        return;
    }
    let server = Server::start();
    for version in VERSIONS {
        let topic = format!("kept/{version}");
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-r", "-m", "old"]));
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-r", "-m", "new"]));
        let subscriber = Subscriber::start(&server, version, 2, &["-t", &topic, "-q", "1"]);
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-r", "-m", "now"]));
        assert_eq!(subscriber.finish(), [format!("{topic} 1 1 new"), format!("{topic} 1 0 now")]);
        // An empty retained message clears the topic: only the one sent afterwards arrives.
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-r", "-n"]));
        let subscriber = Subscriber::start(&server, version, 1, &["-t", &topic, "-q", "1"]);
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-m", "later"]));
        assert_eq!(subscriber.finish(), [format!("{topic} 1 0 later")]);
    }
}

#[test]
fn a_persistent_session_queues_what_was_missed() {
    if !have_clients() {
        return;
    }
    let server = Server::start();
    for version in VERSIONS {
        let topic = format!("missed/{version}");
        let client_id = format!("sleeper-{version}");
        let mut session = vec!["-t", &topic, "-q", "1", "-i", &client_id, "-c"];
        if version == "5" {
            session.extend(["-x", "3600"]);
        }
        let first = Subscriber::start(&server, version, 1, &session);
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-m", "awake"]));
        assert_eq!(first.finish(), [format!("{topic} 1 0 awake")]);
        assert!(publish(&server, version, &["-t", &topic, "-q", "1", "-m", "asleep"]));
        assert!(publish(&server, version, &["-t", &topic, "-q", "0", "-m", "gone"]));
        // Queued messages may arrive before the SUBACK, so it is not waited for here.
        let mut command = Command::new("mosquitto_sub");
        command.args(["-h", "127.0.0.1", "-p", &server.port(), "-V", version, "-W", "20", "-C", "1"]);
        let output = command.args(["-F", "%t %q %r %p"]).args(&session).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{topic} 1 0 asleep\n"));
    }
}

#[test]
fn a_wrong_password_is_turned_away() {
    if !have_clients() {
        return;
    }
    let server = Server::with(|settings| {
        let (user, password) = ("device".to_string(), b"secret".to_vec());
        settings.login = Some(pubmark_broker::Login { user, password });
    });
    for version in VERSIONS {
        assert!(!publish(&server, version, &["-t", "a", "-m", "x", "-u", "device", "-P", "guess"]));
        assert!(!publish(&server, version, &["-t", "a", "-m", "x"]));
        assert!(publish(&server, version, &["-t", "a", "-m", "x", "-u", "device", "-P", "secret"]));
    }
    let statistics = server.finish();
    assert_count_eq!((statistics.refused, statistics.sessions), (4, 2));
}

#[test]
fn a_will_is_published_when_its_client_dies() {
    if !have_clients() {
        return;
    }
    let server = Server::start();
    for version in VERSIONS {
        let watcher = Subscriber::start(&server, version, 1, &["-t", "wills/#", "-q", "1"]);
        let will = ["--will-topic", "wills/x", "--will-payload", "dead", "--will-qos", "1"];
        let mut arguments = vec!["-t", "other"];
        arguments.extend(will);
        let mut victim = Subscriber::start(&server, version, 1, &arguments);
        victim.process.kill().unwrap();
        victim.process.wait().unwrap();
        assert_eq!(watcher.finish(), ["wills/x 1 0 dead"]);
    }
}

#[test]
fn mosquitto_clients_speak_tls_with_it() {
    if !have_clients() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("server.crt"), folder.path().join("server.key"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_string(), "127.0.0.1".to_string()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::with(|settings| {
        settings.tls = Some(pubmark_broker::ServerTls::read(&certificate, &key).unwrap());
    });
    let authority = certificate.to_str().unwrap();
    let large = folder.path().join("large");
    std::fs::write(&large, vec![b'z'; 1_000_000]).unwrap();
    let subscriber = Subscriber::start(&server, "5", 2, &["-t", "t", "-q", "1", "--cafile", authority]);
    assert!(publish(&server, "5", &["-t", "t", "-q", "1", "-m", "sealed", "--cafile", authority]));
    let file = large.to_str().unwrap();
    assert!(publish(&server, "5", &["-t", "t", "-q", "1", "-f", file, "--cafile", authority]));
    let messages = subscriber.finish();
    assert_eq!((messages[0].as_str(), messages[1].len()), ("t 1 0 sealed", "t 1 0 ".len() + 1_000_000));
}
