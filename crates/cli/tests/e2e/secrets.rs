//! Passwords: given in every possible way, and searched for in every file, stream and command line.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::mosquitto::{self, Mosquitto};
use crate::support::place::{Called, PUBMARK, Place};
use crate::support::processes::wait_for;

/// Passwords that nothing else contains, one for each way.
const PLANTED: [&str; 15] = [
    "planted-in-the-url-zq1",
    "planted-in-the-file-zq2",
    "planted-in-the-environment-zq3",
    "planted-as-a-parameter-zq4",
    "planted-by-its-path-zq5",
    "planted-in-a-mapping-zq6",
    "planted-on-the-command-line-zq7",
    "planted-in-a-password-file-zq8",
    "planted-for-an-exporter-zq9",
    "planted-in-a-wrong-url-zq10",
    "planted-in-a-wrong-file-zq11",
    "planted-in-the-second-url-zq12",
    "planted-in-a-row-zq13",
    "planted-in-a-key-cell-zq14",
    "planted-as-the-secret-of-all-tokens-zq15",
];
/// A second of a few messages.
const SHORT: [&str; 4] = ["--duration", "1s", "--warmup", "0s"];

/// Each group logs in with a separate password.
fn workload() -> String {
    format!(
        "name: secretive\nparameters: {{pw: unused}}\ndevices:\n\
         \x20 - {{name: literal, every: 100ms, payload: 40B, topic: a/b, credentials: {{user: a, password: {}}}}}\n\
         \x20 - {{name: environment, every: 100ms, payload: 40B, topic: a/b, credentials: {{user: a, password_env: PLANTED}}}}\n\
         \x20 - {{name: parameter, every: 100ms, payload: 40B, topic: a/b, credentials: {{user: a, password: \"${{pw}}\"}}}}\n\
         \x20 - {{name: path, every: 100ms, payload: 40B, topic: a/b, credentials: {{user: a, password: x}}}}\n\
         \x20 - {{name: mapping, every: 100ms, payload: 40B, topic: a/b, credentials: {{user: a, password: x}}}}\n\
         \x20 - {{name: rows, count: 2, every: 100ms, payload: 40B, topic: a/b, credentials: {{file: devices.csv}}}}\n\
         \x20 - {{name: plain, every: 100ms, payload: 40B, topic: a/b}}\n\
         subscribers:\n  - {{name: all, filters: [\"#\"]}}\n",
        PLANTED[1]
    )
}

/// Writes the workload, and the file with a row for each of two devices.
fn write_workload(place: &Place) {
    place.write("secretive.yaml", workload());
    place.write("devices.csv", format!("client_id,user,password\nrow-1,a,{0}\nrow-2,b,{0}\n", PLANTED[12]));
}

fn assert_clean(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    for planted in PLANTED {
        assert!(!text.contains(planted), "`{planted}` stands in {what}:\n{text}");
    }
}

/// Searches the complete output and all files of a call, except those that the test wrote. Returns the number of files:
/// there are some after a run.
fn assert_nothing_shown(called: &Called, folder: &Path) -> usize {
    assert_clean("standard output", called.printed.as_bytes());
    assert_clean("standard error", called.errors.as_bytes());
    let files = files_below(folder);
    for file in &files {
        assert_clean(&file.display().to_string(), &std::fs::read(file).unwrap());
    }
    files.len()
}

/// Fails if a file below a folder contains one of these. There must be files.
pub fn assert_nowhere(folder: &Path, secrets: &[String]) {
    let files = files_below(folder);
    assert!(!files.is_empty(), "nothing was looked through");
    for file in files {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        for (number, secret) in secrets.iter().enumerate() {
            assert!(!secret.is_empty() && !text.contains(secret), "secret {number} stands in {}", file.display());
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let below = entries.map(|entry| entry.unwrap().path()).flat_map(|path| match path.is_dir() {
        true if path.is_symlink() => vec![],
        true => files_below(&path),
        false => vec![path],
    });
    below.collect()
}

/// Calls the binary with two passwords in its environment.
fn call(place: &Place, arguments: &[&str]) -> Called {
    let mut command = Command::new(PUBMARK);
    command.env("PLANTED", PLANTED[2]);
    place.start_by(command, arguments).wait()
}

#[test]
fn planted_passwords_are_in_no_file_and_no_stream_of_a_run() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    write_workload(&place);
    place.write("password.txt", PLANTED[7]);
    let url = |password: &str| format!("mqtt://ann:{password}@127.0.0.1:{}", broker.port);
    let (first, second) = (url(PLANTED[0]), url(PLANTED[11]));
    let exporter = format!("http://ann:{}@127.0.0.1:9", PLANTED[8]);
    let by_parameter = format!("pw={}", PLANTED[3]);
    let by_path = format!("devices.path.credentials.password={}", PLANTED[4]);
    let by_mapping = format!("devices.mapping.credentials={{user: a, password: {}}}", PLANTED[5]);
    let set = ["--set", &by_parameter, "--set", &by_path, "--set", &by_mapping];
    let endpoint = broker.endpoint();
    let ways: [&[&str]; 4] = [
        &["--endpoint", &first, "--subscribe-endpoint", &second],
        &["--endpoint", &endpoint, "--user", "ann", "--password", PLANTED[6]],
        &["--endpoint", &endpoint, "--user", "ann", "--password-file", "password.txt"],
        &["--endpoint", &endpoint, "--user", "ann", "--password-env", "PLANTED", "--json", "--local-nodes", "2"],
    ];
    for way in ways {
        let called = call(&place, &[&["run", "./secretive.yaml"], &set[..], way, &SHORT].concat());
        assert!(matches!(called.code(), 0 | 5), "{way:?}: {called:?}");
        assert!(assert_nothing_shown(&called, &place.path().join("runs")) > 0, "no file was searched");
        // What a call leaves there by mistake.
        assert_nothing_shown(&called, &place.temporary());
    }
    let runs = place.runs();
    assert_eq!(runs.len(), ways.len());
    for (folder, record) in &runs {
        assert!(record["delivery"]["delivered"].as_u64().unwrap() > 0, "{record}");
        let command = record["run"]["command"].to_string();
        for kept in ["pw=…", "devices.path.credentials.password=…", "devices.mapping.credentials=…"] {
            assert!(command.contains(kept), "{command}");
        }
        assert!(folder.join("report.html").is_file() && folder.join("summary.md").is_file(), "{folder:?}");
    }
    // An exporter that does not exist ends the run with its error.
    let called =
        call(&place, &["run", "hello", "--endpoint", &endpoint, "--node-exporter", &exporter, "--duration", "1s"]);
    assert_nothing_shown(&called, &place.path().join("runs"));
}

/// How a token begins: `{"alg"` or `{"typ"`.
const TOKENS: [&str; 2] = ["eyJhbGci", "eyJ0eXAi"];

#[test]
fn the_secrets_that_sign_tokens_and_the_tokens_are_in_no_file_and_no_stream_of_a_run() {
    let Some(broker) = Mosquitto::start("") else { return };
    let place = Place::new();
    let made = place.call(&["devices", "certificates", "--count", "1", "--out", "pki", "--prefix", "pump-"]);
    assert_eq!(made.code(), 0, "{made:?}");
    let key = std::fs::read_to_string(place.path().join("pki/devices/pump-0.key")).unwrap();
    let of_key: Vec<String> =
        key.lines().filter(|line| !line.is_empty() && !line.starts_with("---")).map(str::to_owned).collect();
    assert!(!of_key.is_empty(), "{key}");
    place.write("shared.txt", PLANTED[14]);
    let text = "name: signing\ndevices:\n\
         \x20 - {name: shared, every: 100ms, payload: 40B, topic: a/b, credentials: {user: a, token: {algorithm: HS256, file: shared.txt}}}\n\
         \x20 - {name: own, every: 100ms, payload: 40B, topic: a/b, credentials: {user: b, token: {algorithm: ES256, file: pki/devices/pump-0.key}}}\n\
         subscribers:\n  - {name: all, filters: [\"#\"]}\n";
    place.write("signing.yaml", text);
    let endpoint = broker.endpoint();
    let called = place.call(&[&["run", "./signing.yaml", "--endpoint", &endpoint], &SHORT[..]].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let runs = place.runs();
    assert!(runs[0].1["delivery"]["delivered"].as_u64().unwrap() > 0, "they logged in: {}", runs[0].1);
    assert!(assert_nothing_shown(&called, &runs[0].0) > 0, "no file was searched");
    let secrets = [&TOKENS.map(str::to_owned)[..], &of_key].concat();
    assert_nowhere(&runs[0].0, &secrets);
    let shown = format!("{}{}", called.printed, called.errors);
    assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
}

#[test]
fn planted_passwords_are_in_no_error_message() {
    let place = Place::new();
    write_workload(&place);
    let bad = PLANTED[9];
    let urls = [
        format!("mqtt://ann:{bad}"),
        format!("mqtt//ann:{bad}@127.0.0.1"),
        format!("ann:{bad}@127.0.0.1:1883"),
        format!("ws://ann:a/{bad}@127.0.0.1"),
        format!("mqtt://ann:?{bad}"),
        format!("http://ann:{bad}@127.0.0.1"),
    ];
    for url in &urls {
        let called = call(&place, &["run", "hello", "--endpoint", url, "--duration", "1s"]);
        assert_eq!(called.code(), 2, "{url}: {called:?}");
        assert_nothing_shown(&called, &place.path().join("runs"));
    }
    for (from, to) in [
        ("name: secretive", "name: secretive: no"),
        ("user: a, password", "uses: a, password"),
        ("password: planted", "password: 'planted"),
        ("topic: a/b, credentials", "topic: a/#, credentials"),
    ] {
        place.write("wrong.yaml", workload().replace(PLANTED[1], PLANTED[10]).replace(from, to));
        let called = call(&place, &["run", "./wrong.yaml", "--dry-run"]);
        assert_eq!(called.code(), 2, "{to}: {called:?}");
        assert_nothing_shown(&called, &place.path().join("runs"));
    }
    for rows in [
        format!("client_id,certificate,key\nrow-1,devices.csv,{0}\nrow-2,b,{0}\n", PLANTED[13]),
        format!("client_id,certificate,key\nrow-1,{0},{0}\nrow-2,b,{0}\n", PLANTED[13]),
    ] {
        place.write("devices.csv", rows);
        let called = call(&place, &["run", "./secretive.yaml", "--dry-run"]);
        assert_eq!(called.code(), 2, "{called:?}");
        // Lines may be broken anywhere, and begin with a bar.
        let words = called.errors.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
        assert!(words.contains("failed to read the file that `"), "{called:?}");
        assert_nothing_shown(&called, &place.path().join("runs"));
    }
    write_workload(&place);
    for setting in [
        format!("devices.path.credentials.password.x={}", PLANTED[4]),
        format!("devices.path.credentials={{user: a, pasword: x, password: {}}}", PLANTED[5]),
    ] {
        let called = call(&place, &["run", "./secretive.yaml", "--set", &setting, "--dry-run"]);
        assert_eq!(called.code(), 2, "{called:?}");
        assert_nothing_shown(&called, &place.path().join("runs"));
    }
}

#[test]
fn an_experiment_keeps_no_password_in_its_folder() {
    let place = Place::new();
    write_workload(&place);
    let systems = ["--systems", "builtin", "--repeat", "1", "--duration", "1s", "--warmup", "0s", "--wait", "0s"];
    let called = call(&place, &[&["compare", "./secretive.yaml"][..], &systems].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("holds a password") && called.errors.contains("password_env"), "{called:?}");
    assert_nothing_shown(&called, &place.path().join("runs"));
    // The same secret from the environment is accepted.
    let from_environment = "name: quiet\ndevices:\n  - {name: a, every: 100ms, payload: 40B, topic: a/b, credentials: \
                            {user: a, password_env: PLANTED}}\nsubscribers:\n  - {filters: [\"#\"]}\n";
    place.write("quiet.yaml", from_environment);
    let called = call(&place, &[&["compare", "./quiet.yaml"][..], &systems].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(assert_nothing_shown(&called, &place.path().join("runs")) > 0, "no file was searched");
    let setting = format!("devices.a.credentials.password={}", PLANTED[4]);
    let called = call(&place, &[&["compare", "./quiet.yaml", "--set", &setting][..], &systems].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    assert_nothing_shown(&called, &place.path().join("runs"));
}

/// `None` if the file no longer exists: a password file is written under another name first, and renamed.
fn mode(path: &Path) -> Option<u32> {
    match std::fs::metadata(path) {
        Ok(metadata) => Some(metadata.permissions().mode() & 0o777),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Files below a folder that contain a key, a token or a planted password: each is closed to others, by its mode or by
/// its folder's.
fn assert_secrets_are_closed(folder: &Path, at_least: usize) {
    let is_closed = |path: &Path| {
        let mut within = path.ancestors().take_while(|above| above.starts_with(folder));
        within.any(|above| mode(above).is_none_or(|mode| mode & 0o077 == 0))
    };
    let mut found = 0;
    for file in files_below(folder) {
        if mode(&file).is_none() {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        let is_secret = text.contains("PRIVATE KEY")
            || file.file_name().is_some_and(|name| name == "token")
            || PLANTED.iter().any(|planted| text.contains(planted));
        if is_secret {
            found += 1;
            assert!(is_closed(&file), "{} has the mode {:o}", file.display(), mode(&file).unwrap_or_default());
        }
    }
    assert!(found >= at_least, "{found} files with secrets below {}, not {at_least}", folder.display());
}

#[test]
fn every_secret_that_is_written_is_closed_to_others() {
    let place = Place::new();
    let log_in = ["--", "--user", "ann", "--password-env", "PLANTED"];
    for (kind, secrets) in [("compose", 5), ("kubernetes", 1)] {
        let called = call(&place, &[&["deploy", kind, "smart-home", "--out", kind][..], &log_in].concat());
        assert_eq!(called.code(), 0, "{called:?}");
        assert_secrets_are_closed(&place.path().join(kind), secrets);
        // A folder that already exists and is open to others.
        let open = format!("open-{kind}");
        std::fs::create_dir(place.path().join(&open)).unwrap();
        std::fs::set_permissions(place.path().join(&open), Permissions::from_mode(0o755)).unwrap();
        let called = call(&place, &["deploy", kind, "smart-home", "--out", &open]);
        if kind == "compose" {
            assert_eq!(called.code(), 2, "{called:?}");
            assert!(called.errors.contains("chmod 700 open-compose"), "{called:?}");
            assert!(files_below(&place.path().join(&open)).is_empty());
        } else {
            assert_eq!(called.code(), 0, "{called:?}");
            assert_secrets_are_closed(&place.path().join(&open), secrets);
        }
    }
    assert_eq!(call(&place, &["cluster", "init", "cluster"]).code(), 0);
    assert_secrets_are_closed(&place.path().join("cluster"), 4);
}

#[test]
fn a_deployment_holds_passwords_in_secrets_alone() {
    let place = Place::new();
    let by_setting = format!("devices.0.credentials={{user: ann, password: {}}}", PLANTED[4]);
    let by_url = format!("mqtt://ann:{}@host", PLANTED[0]);
    for (way, value, planted) in [
        ("--password", PLANTED[6], PLANTED[6]),
        ("--set", by_setting.as_str(), PLANTED[4]),
        ("--endpoint", by_url.as_str(), PLANTED[0]),
    ] {
        let out = format!("way{way}");
        let user: &[&str] = if way == "--password" { &["--user", "ann"] } else { &[] };
        let words = ["deploy", "kubernetes", "smart-home", "--out", &out, "--"];
        let called = call(&place, &[&words[..], user, &[way, value]].concat());
        assert_eq!(called.code(), 0, "{called:?}");
        let text = std::fs::read_to_string(place.path().join(&out).join("pubmark.yaml")).unwrap();
        let (secrets, others): (Vec<&str>, Vec<&str>) =
            text.split("\n---\n").partition(|object| object.contains("kind: Secret"));
        assert!(secrets.iter().any(|object| object.contains(planted)), "{way}: {text}");
        assert!(!others.iter().any(|object| object.contains(planted)), "{way}: {text}");
        assert!(text.contains("/pubmark/credentials/run.yaml"), "{text}");
    }
}

#[test]
fn keys_and_passwords_of_a_run_are_closed_to_others_while_it_lasts() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let mut command = Command::new(PUBMARK);
    command.env("PLANTED", PLANTED[2]);
    let options = ["--system", "mosquitto", "--tls", "--user", "ann", "--password-env", "PLANTED", "--json"];
    let mut run = place.start_by(command, &[&["run", "hello"][..], &options, &["--duration", "2s"]].concat());
    let is_there = |name: &str| files_below(&place.temporary()).into_iter().find(|file| file.ends_with(name));
    wait_for("the system's files", Duration::from_secs(20), || {
        is_there("key.pem").is_some() && is_there("passwords").is_some() || run.has_ended()
    });
    let key = is_there("key.pem").expect("the key of the run");
    assert_eq!(mode(&key), Some(0o600), "{}", key.display());
    assert_secrets_are_closed(&place.temporary(), 1);
    let called = run.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(files_below(&place.temporary()).is_empty(), "something is left: {:?}", files_below(&place.temporary()));
}

/// Command lines of all processes.
fn command_lines() -> Vec<u8> {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok()).flatten().collect()
}

#[test]
fn no_process_of_a_run_has_a_password_among_its_arguments() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let mut command = Command::new(PUBMARK);
    command.env("PLANTED", PLANTED[2]);
    let options = ["--system", "mosquitto", "--user", "ann", "--password-env", "PLANTED", "--local-nodes", "2"];
    let mut call = place.start_by(command, &[&["run", "hello"][..], &options, &["--duration", "2s"]].concat());
    let mut looks = 0;
    while !call.has_ended() {
        // The other tests pass theirs as arguments.
        assert!(!String::from_utf8_lossy(&command_lines()).contains(PLANTED[2]), "an argument is the password");
        looks += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    let called = call.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(looks > 10, "it was looked at {looks} times");
    assert_nothing_shown(&called, &place.path().join("runs"));
}
