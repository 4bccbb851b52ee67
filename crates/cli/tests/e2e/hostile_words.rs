//! Untrusted input: texts that would control a terminal, names that would leave a folder, programs in folders that
//! anybody can write.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::place::{Called, PUBMARK, Place};

/// Sets a title, clears the screen, turns text red by C1, hides text behind bidirectional controls.
const STEERING: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\r\u{8}";

/// A server that sends the same to every client: a greeting, then a response to the first data. Ends with the test's
/// process.
fn liar(greeting: &'static str, answer: String) -> SocketAddr {
    let listener = pubmark_conformance::ports::listen();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, answer) = (client.unwrap(), answer.clone());
            std::thread::spawn(move || {
                client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                // A client that disconnected does not matter.
                let _ = client.write_all(greeting.as_bytes());
                let _ = client.read(&mut [0; 4_096]);
                let _ = client.write_all(answer.as_bytes());
                let _ = client.read(&mut [0; 4_096]);
            });
        }
    });
    address
}

fn acts(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t')
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn assert_plain(what: &str, text: &str) {
    let found = text.lines().find(|line| line.chars().any(acts));
    assert!(found.is_none(), "{what} has control characters: {:?}", found.unwrap());
}

/// Checks the complete output of a call that stores no run.
fn assert_all_plain(called: &Called, place: &Place) {
    assert_plain("standard output", &called.printed);
    assert_plain("standard error", &called.errors);
    assert!(place.runs().is_empty(), "a run was stored whose files are not checked");
}

#[test]
fn no_word_of_a_server_reaches_the_terminal_as_a_command() {
    let info = "INFO {\"server_id\":\"x\",\"version\":\"2.10\",\"max_payload\":1048576,\"proto\":1}\r\n";
    let servers = [
        ("nats", liar(info, format!("-ERR 'not {STEERING} today'\r\n"))),
        ("redis", liar("", format!("-ERR not {} today\r\n", STEERING.replace('\r', "")))),
    ];
    for (protocol, address) in servers {
        let place = Place::new();
        let endpoint = format!("{protocol}://{address}");
        let call = ["run", "hello", "--json", "--qos", "0", "--protocol", protocol, "--endpoint", &endpoint];
        let called = place.call(&[&call[..], &["--duration", "1s", "--warmup", "0s"]].concat());
        assert_eq!(called.code(), 6, "{called:?}");
        // The server's text is shown, with escaped control characters.
        assert!(called.errors.replace("\n  ", "").contains("\\u001b]0;pwned"), "{called:?}");
        assert_all_plain(&called, &place);
        assert!(called.json().to_string().contains("pwned"), "the record has lost its words");
    }
}

#[test]
fn no_word_of_a_file_reaches_the_terminal_as_a_command() {
    let place = Place::new();
    let devices = "devices: [{name: a, every: 1s, payload: 40B, topic: a/b}]\nsubscribers: [{filters: [\"#\"]}]\n";
    let steering = STEERING.escape_default().to_string().replace("\\u{1b}", "\\e").replace("\\u{7}", "\\a");
    let steering = steering.replace("\\u{9b}", "\\x9b").replace("\\u{8}", "\\b");
    let steering = steering.replace("\\u{202e}", "\\u202e").replace("\\u{2066}", "\\u2066");
    place.write("description.yaml", format!("name: a\ndescription: \"{steering}\"\nsource: \"{steering}\"\n{devices}"));
    place.write("name.yaml", format!("name: \"{steering}\"\n{devices}"));
    place.write("key.yaml", format!("name: a\n\"{steering}\": 1\n{devices}"));
    for (file, code) in [("description.yaml", 0), ("name.yaml", 2), ("key.yaml", 2)] {
        let called = place.call(&["run", &format!("./{file}"), "--dry-run"]);
        assert_eq!(called.code(), code, "{file}: {called:?}");
        assert_all_plain(&called, &place);
    }
}

#[test]
fn no_word_that_is_typed_reaches_the_terminal_as_a_command() {
    let place = Place::new();
    for arguments in [
        &["run", STEERING][..],
        &["run", "hello", "--set", STEERING],
        &["run", "hello", "--endpoint", STEERING],
        &["run", "hello", "--system", STEERING],
        &["explain", STEERING],
        &["report", STEERING],
    ] {
        let called = place.call(arguments);
        assert_eq!(called.code(), 2, "{called:?}");
        assert_all_plain(&called, &place);
    }
}

/// A definition of a system that does nothing, with this name.
fn system(name: &str) -> String {
    format!(
        "name: {name:?}\ntitle: mine\ndescription: mine\nranked: false\nlisteners: {{mqtt: {{scheme: mqtt}}}}\n\
         protocols: {{mqtt5: {{listener: mqtt, highest_qos: 0}}}}\n\
         back_ends: {{process: {{program: sleep, install: \"true\", arguments: [{{add: [\"9\"]}}], ready_within_s: 1}}}}\n\
         profiles: {{default: {{description: as it is}}}}\n"
    )
}

#[test]
fn a_system_whose_name_is_a_path_is_refused() {
    for name in ["../escaped", "/tmp/escaped", "a/b", "..", "-x", ""] {
        let place = Place::new();
        fs::create_dir(place.path().join("inside")).unwrap();
        place.write("inside/mine.yaml", system(name));
        let mut command = Command::new(PUBMARK);
        command.env("PWD", place.path().join("inside"));
        let call = [
            "run",
            "hello",
            "--qos",
            "0",
            "--system",
            "./inside/mine.yaml",
            "--duration",
            "1s",
            "--out",
            "inside/runs",
        ];
        let called = place.start_by(command, &call).wait();
        assert_eq!(called.code(), 2, "{name}: {called:?}");
        let errors = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(errors.contains("cannot be the name of a system") && errors.contains("letters, digits"), "{errors}");
        assert!(!place.path().join("inside/runs").exists(), "something was written for {name}");
    }
}

/// Writes a script in place of a program; the script creates a file when it is executed.
fn plant(folder: &Path, mark: &Path) {
    let program = folder.join("nats/bin/nats-server");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_program_is_run_from_where_anybody_could_have_put_it() {
    let place = Place::new();
    let mark = place.path().join("it-was-run");
    let call = |change: &dyn Fn(&mut Command), arguments: &[&str]| {
        let mut command = Command::new(PUBMARK);
        for name in ["HOME", "XDG_DATA_HOME", "PUBMARK_PROGRAMS", "PUBMARK_PROGRAM_NATS_SERVER"] {
            command.env_remove(name);
        }
        change(&mut command);
        place.start_by(command, arguments).wait()
    };
    let run = ["run", "hello", "--qos", "0", "--protocol", "nats", "--system", "nats", "--back-end", "process"];
    let run = [&run[..], &["--duration", "1s", "--warmup", "0s"]].concat();
    // Without a home directory, no program is searched in the folder for temporary files.
    plant(&place.temporary().join("pubmark/programs"), &mark);
    for arguments in [&run[..], &["list", "systems"]] {
        let called = call(&|_| {}, arguments);
        assert!(!mark.exists(), "{arguments:?} ran a program of the folder for temporary files: {called:?}");
    }
    // A folder for programs that others can write is refused by name.
    let shared = place.path().join("shared");
    plant(&shared, &mark);
    let elsewhere = |command: &mut Command| {
        command.env("PUBMARK_PROGRAMS", &shared);
    };
    for open in ["nats/bin/nats-server", "nats/bin", "nats", ""] {
        fs::set_permissions(shared.join(open), Permissions::from_mode(0o777)).unwrap();
        let called = call(&elsewhere, &run);
        assert_eq!(called.code(), 2, "{open}: {called:?}");
        let errors = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(errors.contains("others can change it (mode 0777)") && errors.contains("is not run"), "{errors}");
        assert!(!mark.exists(), "a program that others can change was run");
        fs::set_permissions(shared.join(open), Permissions::from_mode(0o755)).unwrap();
    }
    // The same program in a folder that only we can write is executed; it is not a server, which does not matter here.
    call(&elsewhere, &run);
    assert!(mark.exists(), "a program in a closed folder is not run");
}
