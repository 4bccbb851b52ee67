//! Words of a peer that are meant for the terminal: they are shown, and command nothing.

use crate::call::{call, call_in};
use crate::case::Table;
use crate::server::{Server, hear, say};

/// Sets the title of a terminal, and clears it.
const ESCAPE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J";

/// Every character that a terminal obeys, but the end of a line and the tabulator.
fn commands(text: &str) -> Option<char> {
    text.chars().find(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'))
}

fn check(name: &str, text: &str) {
    assert_eq!(commands(text), None, "{name} has a control character: {text:?}");
}

#[test]
fn what_a_server_says_commands_no_terminal() {
    let info = "INFO {\"server_id\":\"x\",\"max_payload\":1048576}\r\n";
    let nats = Server::of_steps(vec![say(info), hear("PING\r\n"), say(format!("-ERR 'no {ESCAPE}'\r\n"))]);
    let redis = Server::of_steps(vec![hear("HELLO"), say(format!("-ERR no {ESCAPE}\r\n"))]);
    let options = &["fan-in", "--qos", "0", "--set", "publishers=2"];
    for (scheme, server) in [("nats", nats), ("redis", redis)] {
        let endpoint = format!("{scheme}://{}", server.address);
        let called = call(&[
            "run",
            "fan-in",
            "--qos",
            "0",
            "--set",
            "publishers=2",
            "--duration",
            "500ms",
            "--endpoint",
            &endpoint,
        ]);
        check(scheme, &called.printed);
        check(scheme, &called.errors);
        assert!(called.errors.contains("no "), "the server's words are shown: {}", called.errors);
        // JSON has escapes of its own.
        let called = Table { scheme, arguments: options }.run(server.address);
        check(scheme, &called.printed);
        let Ok(runs) = std::fs::read_dir(called.folder.path().join("runs")) else { continue };
        for folder in runs.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                check(&file.display().to_string(), &std::fs::read_to_string(&file).unwrap_or_default());
            }
        }
    }
}

#[test]
fn what_stands_in_a_file_commands_no_terminal() {
    let files = [
        ("name.yaml", format!("name: \"x{ESCAPE}\"\ndevices: [{{name: a, every: 1s, payload: 16B}}]\nsubscribers: [{{filters: [\"#\"]}}]\n").replace('\u{1b}', "\\e").replace('\u{7}', "\\a")),
        ("key.yaml", format!("\"na{ESCAPE}me\": x\n").replace('\u{1b}', "\\e").replace('\u{7}', "\\a")),
        ("raw.yaml", format!("name: x{ESCAPE}\n")),
        ("value.yaml", format!("name: x\ndevices: [{{name: a, every: \"1s{ESCAPE}\", payload: 16B}}]\n").replace('\u{1b}', "\\e").replace('\u{7}', "\\a")),
    ];
    for (name, text) in files {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        let called = call_in(folder, &["check", name]);
        assert_eq!(called.code, Some(2), "{name}: {}", called.errors);
        check(name, &called.errors);
        check(name, &called.printed);
    }
}

#[test]
fn what_is_typed_commands_no_terminal() {
    for arguments in [
        &["run", ESCAPE][..],
        &["run", "hello", "--set", ESCAPE],
        &["run", "hello", "--endpoint", ESCAPE],
        &["run", "hello", "--system", ESCAPE],
        &["explain", ESCAPE],
        &["report", ESCAPE],
    ] {
        let called = call(arguments);
        assert_eq!(called.code, Some(2), "{arguments:?}: {}", called.errors);
        check(&format!("{arguments:?}"), &called.errors);
    }
}
