//! Starting and stopping programs that behave badly.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{becomes_true, is_alive, options, script};
use pubmark_model::workload::Credentials;
use pubmark_systems::process::Stopped;
use pubmark_systems::{BackEndChoice, Definition, Endpoint, RunningSystem, SystemError, TlsFiles, start};

/// Listens on its port with Python, which every machine for these tests has.
const LISTEN: &str = "exec python3 -c 'import socket,sys,time\ns=socket.create_server((\"127.0.0.1\",int(sys.argv[1])))\nwhile True: s.accept()' $1";

fn begin(definition: &Definition) -> Result<RunningSystem, SystemError> {
    start(definition, &options("mqtt5"), &mut |_| Ok(()))
}

#[test]
fn a_missing_program_is_reported_with_its_install_command() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/mosquitto.yaml")).unwrap();
    let definition =
        Definition::parse(&text.replace("program: mosquitto\n", "program: no-such-broker\n"), "mine.yaml").unwrap();
    let error = begin(&definition).unwrap_err();
    let install = &definition.back_ends.process.as_ref().unwrap().install;
    assert!(install.contains("mosquitto"), "{install}");
    assert_eq!(error.to_string(), format!("no-such-broker is not installed: `{install}`"));
}

#[test]
fn a_system_without_a_broker_or_with_a_container_alone_says_so() {
    let broker = "back_ends:\n  process:";
    let text = "name: peers\ntitle: peers\ndescription: peers\nranked: true\nlisteners: {any: {scheme: tcp}}\n\
                protocols: {mqtt5: {listener: any, highest_qos: 0}}\nback_ends:\n  process:\n\
                profiles: {default: {description: as it is}}\n";
    let refuse = |back_ends: &str, change: &dyn Fn(&mut pubmark_systems::StartOptions)| {
        let definition = Definition::parse(&text.replace(broker, back_ends), "peers.yaml").unwrap();
        let mut options = options("mqtt5");
        change(&mut options);
        start(&definition, &options, &mut |_| Ok(())).unwrap_err().to_string()
    };
    assert_eq!(
        refuse("back_ends: {brokerless: {how: clients find each other}}", &|_| {}),
        "`peers` cannot be started: it has no broker: clients find each other"
    );
    assert_eq!(
        refuse("back_ends: {}", &|_| {}),
        "`peers` cannot be started: its definition has no back end; if it runs elsewhere, `--endpoint URL`"
    );
    let container = "back_ends: {container: {image: \"localhost/none:1\"}}";
    assert_eq!(
        refuse(container, &|options| options.back_end = Some(BackEndChoice::Process)),
        "`peers` cannot be started: it runs in a container only: `--back-end container`"
    );
    let program = "back_ends: {process: {program: sh, install: dash}}";
    for change in [Some(BackEndChoice::Process), None] {
        let error = refuse(program, &|options| {
            options.back_end = change;
            options.image = Some("localhost/none:1".to_owned());
        });
        assert!(error.contains("container") && error.contains("image"), "{error}");
    }
}

#[test]
fn a_system_that_cannot_require_a_log_in_is_not_started_without_one() {
    let mut options = options("mqtt5");
    options.credentials = Some(Credentials { user: "a".to_owned(), password: "b".into() });
    let error = start(&script(LISTEN, 4.0, 1.0), &options, &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "`script` cannot be started with a log-in: its definition has no part `when: password`");
    options.tls = Some(TlsFiles { authority: "a".into(), certificate: "b".into(), key: "c".into() });
    options.credentials = None;
    let error = start(&script(LISTEN, 4.0, 1.0), &options, &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "`script` does not offer mqtt5 over TLS");
}

#[test]
fn an_early_end_is_reported_with_the_end_of_the_log() {
    let error = begin(&script("echo before; echo wrong setting in line 3 >&2; exit 3", 10.0, 1.0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`script` ended while it was starting (exit status: 3); it printed:\nbefore\nwrong setting in line 3"
    );
}

#[test]
fn a_program_that_never_listens_is_given_up_at_the_deadline_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let begun = Instant::now();
    let error = begin(&script(&format!("echo $$ > {}; exec sleep 100", note.display()), 1.5, 1.0)).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let shown = error.to_string();
    assert!(shown.starts_with("`script` was not ready after 1.5 s: no connection to 127.0.0.1:"), "{shown}");
    let pid: u32 = std::fs::read_to_string(note).unwrap().trim().parse().unwrap();
    assert!(!is_alive(pid));
}

#[test]
fn a_round_trip_that_fails_at_first_is_tried_again() {
    let mut failures = vec!["no echo"; 3];
    let mut seen: Vec<Endpoint> = Vec::new();
    let running = start(&script(LISTEN, 10.0, 1.0), &options("mqtt5"), &mut |endpoint| {
        seen.push(endpoint.clone());
        failures.pop().map_or(Ok(()), |failure| Err(failure.to_owned()))
    })
    .unwrap();
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[3], *running.endpoint());
    assert!((20_000..32_768).contains(&running.endpoint().address.port()));
    let error = start(&script(LISTEN, 4.0, 1.0), &options("mqtt5"), &mut |_| Err("no echo".to_owned()));
    assert!(
        error.unwrap_err().to_string().starts_with("`script` was not ready after 4 s: no echo; it printed nothing")
    );
}

#[test]
fn a_port_that_somebody_else_takes_is_not_mistaken_for_the_system() {
    // On the first start another program takes the port, so the script fails and ends; the second start is not
    // disturbed.
    let mut taken: Vec<std::net::TcpListener> = Vec::new();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let waiting = format!("while [ ! -e {} ]; do sleep 0.01; done; {LISTEN}", gate.display());
    let definition = script(&waiting, 20.0, 1.0);
    let stop = Arc::new(AtomicBool::new(false));
    let ports = {
        let (stop, gate) = (Arc::clone(&stop), gate.clone());
        std::thread::spawn(move || {
            // Finds the script's port in its command line, binds it, then lets the script continue.
            while !stop.load(Ordering::Relaxed) {
                if let Some(port) = script_port(&gate) {
                    taken.push(std::net::TcpListener::bind(("127.0.0.1", port)).unwrap());
                    std::fs::write(&gate, "").unwrap();
                    return (port, taken);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            (0, taken)
        })
    };
    let running = start(&definition, &options("mqtt5"), &mut |_| Ok(()));
    stop.store(true, Ordering::Relaxed);
    let (stolen, _taken) = ports.join().unwrap();
    let running = running.unwrap();
    assert_ne!(stolen, 0, "the port was never stolen");
    assert_ne!(running.endpoint().address.port(), stolen);
}

/// The port of the script that waits for `gate`, once the script runs.
fn script_port(gate: &std::path::Path) -> Option<u16> {
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<String> =
            command.split(|byte| *byte == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        if words.len() >= 3 && words[0] == "sh" || words.first().is_some_and(|word| word.ends_with("/sh")) {
            let folder = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let text = std::fs::read_to_string(folder.join("script")).unwrap_or_default();
            if text.contains(&gate.display().to_string()) {
                return words.get(2)?.parse().ok();
            }
        }
    }
    None
}

#[test]
fn the_caller_can_give_up_while_a_system_starts() {
    let mut options = options("mqtt5");
    let stop = Arc::new(AtomicBool::new(false));
    options.stop = Some(Arc::clone(&stop));
    let error = start(&script(LISTEN, 60.0, 1.0), &options, &mut |_| {
        stop.store(true, Ordering::Relaxed);
        Err("not yet".to_owned())
    });
    assert!(matches!(error, Err(SystemError::Interrupted { .. })), "{error:?}");
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("child");
    let text =
        format!("trap '' TERM\nsleep 1000 &\necho $! > {}\n{}", note.display(), LISTEN.trim_start_matches("exec "));
    let running = begin(&script(&text, 10.0, 0.2)).unwrap();
    let pid = running.pid();
    let child: u32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    assert!(is_alive(pid) && is_alive(child));
    assert_eq!(running.stop(), Stopped::Killed);
    assert!(!is_alive(pid) && becomes_true(|| !is_alive(child)));
}

#[test]
fn children_that_outlive_their_parent_are_killed_too() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("child");
    let text = format!("(trap '' TERM; exec sleep 1000) &\necho $! > {}\n{LISTEN}", note.display());
    let running = begin(&script(&text, 10.0, 5.0)).unwrap();
    let child: u32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    assert!(matches!(running.stop(), Stopped::Asked(_)));
    assert!(becomes_true(|| !is_alive(child)));
}

#[test]
fn an_end_during_the_run_is_detected() {
    let text = format!(
        "{}\necho stumbled",
        LISTEN.trim_start_matches("exec ").replace("while True: s.accept()", "s.accept(); s.accept()")
    );
    let mut running = start(&script(&text, 10.0, 1.0), &options("mqtt5"), &mut |_| Ok(())).unwrap();
    assert_eq!(running.ended(), None);
    drop(std::net::TcpStream::connect(running.endpoint().address).unwrap());
    let deadline = Instant::now() + Duration::from_secs(10);
    while running.ended().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(running.ended().as_deref(), Some("exit status: 0"));
    assert_eq!(running.log_tail(), "stumbled");
}
