//! The queue survives a restart in order, and a kill.

use crate::call;
use crate::server::{LONG, SHORT, Server, folder, session, wait_for};

#[test]
fn a_queue_survives_a_restart() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let ids = [server.submit(LONG), server.submit(SHORT), server.submit(SHORT)];
    server.wait_for_load(&ids[0]);
    server.stop();
    let server = Server::start(place.path(), &[]);
    let entry = server.entry(&ids[0]);
    assert_eq!(entry["state"], "interrupted", "{entry}");
    assert_eq!(server.get(&format!("/runs/{}/record", ids[0])).of(200)["run"]["status"], "interrupted");
    for id in &ids[1..] {
        server.wait(id, &["complete"]);
    }
}

#[test]
fn a_killed_server_takes_its_run_along_and_the_next_one_goes_on() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let ids = [server.submit(LONG), server.submit(SHORT)];
    server.wait_for_load(&ids[0]);
    let child = wait_for("the child", || server.child());
    server.kill();
    let server = Server::start(place.path(), &[]);
    let entry = server.wait(&ids[0], &["interrupted"]);
    // One that has ended may stand in the kernel's table until it is waited for.
    let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "the run outlived its server: {stat}");
    // The kernel asked it to end in order: what was measured is there.
    assert_eq!(entry["headline"]["status"], "interrupted", "{entry}");
    server.wait(&ids[1], &["complete"]);
}

#[test]
fn a_run_whose_server_is_killed_as_it_starts_it_has_ended_when_the_next_one_begins() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let ids = [server.submit(LONG), server.submit(SHORT)];
    let child = loop {
        if let Some(child) = server.child() {
            break child;
        }
    };
    server.kill();
    let server = Server::start(place.path(), &[]);
    server.wait(&ids[1], &["running", "complete"]);
    let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "it goes on beside the next one: {stat}");
    assert_eq!(server.entry(&ids[0])["state"], "interrupted");
    server.wait(&ids[1], &["complete"]);
}

#[test]
fn one_that_waits_can_be_cancelled_and_the_order_is_seen() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let ids = [server.submit(LONG), server.submit(SHORT), server.submit(SHORT)];
    let positions: Vec<Option<u64>> = ids[1..].iter().map(|id| server.entry(id)["position"].as_u64()).collect();
    assert_eq!(positions, [Some(1), Some(2)]);
    assert_eq!(server.delete(&ids[1]).of(200)["state"], "cancelled");
    assert_eq!(server.entry(&ids[2])["position"], 1);
    server.delete(&ids[0]).of(200);
    server.wait(&ids[2], &["complete"]);
    assert_eq!(server.entry(&ids[1])["folders"], serde_json::json!([]));
}

#[test]
fn a_folder_has_one_server() {
    let place = folder();
    let _server = Server::start(place.path(), &[]);
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["serve", "--listen", &pubmark_conformance::ports::free().to_string()])
        .current_dir(place.path())
        .env("XDG_RUNTIME_DIR", session(place.path()))
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another `pubmark serve`"), "{second:?}");
}

#[test]
fn repetitions_of_a_run_that_goes_on_cannot_be_deleted_and_all_of_them_are_judged() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let run = |duration: &str, repetitions: u32| {
        format!(r#"{{"workload": "hello", "duration": "{duration}", "warmup": "0s", "repetitions": {repetitions}}}"#)
    };
    let id = server.submit(&run("3s", 3));
    let folders = wait_for("the second repetition", || {
        let found = server.entry(&id)["folders"].as_array().unwrap().clone();
        (found.len() == 2).then_some(found)
    });
    let first = folders[0].as_str().unwrap();
    let delete = || call::request(server.port, "DELETE", &format!("/runs/{first}/results"), Some(&server.token), "");
    let refused = delete();
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(server.runs().join(first).join("record.json").is_file());
    let check = |name: &str| server.post("/check", &format!(r#"{{"run": "{name}", "require": "loss=0"}}"#));
    assert_eq!(check(&id).status, 409, "one of them is under way");
    assert_eq!(server.get("/doctor").status, 409, "it would disturb the run");
    let believed = |name: &str| check(name).of(200)["checks"][0]["detail"].as_str().unwrap().to_owned();
    assert!(!believed(first).contains("runs"), "one alone is one run: {}", believed(first));
    let entry = server.wait(&id, &["complete"]);
    assert_eq!(entry["folders"].as_array().unwrap().len(), 3, "{entry}");
    assert!(believed(&id).contains(" of 3 runs "), "{}", believed(&id));
    let compared = server.get(&format!("/compare?run={id}")).of(200);
    assert_eq!(compared["runs"].as_array().unwrap().len(), 3, "{compared}");
    delete().of(200);
    server.get("/doctor").of(200);
}

#[test]
fn a_server_that_cannot_listen_makes_no_token() {
    let place = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = std::process::Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["serve", "--listen", &taken.local_addr().unwrap().to_string()])
        .current_dir(place.path())
        .env("XDG_RUNTIME_DIR", session(place.path()))
        .output()
        .unwrap();
    assert_eq!(server.status.code(), Some(2), "{server:?}");
    assert!(!place.path().join("runs/.serve/token").exists(), "it would never be shown");
}

#[test]
fn a_server_ends_with_its_standard_input_on_request() {
    let place = folder();
    let mut server = Server::start(place.path(), &["--until-stdin-closes"]);
    let id = server.submit(LONG);
    server.wait_for_load(&id);
    server.close_stdin();
    assert_eq!(server.code(), Some(130));
    let mut server = Server::start(place.path(), &[]);
    let entry = server.entry(&id);
    assert_eq!(entry["state"], "interrupted", "{entry}");
    assert!(server.get(&format!("/runs/{id}/record")).of(200)["delivery"]["delivered"].as_u64().unwrap() > 0);
    // Without the option the input says nothing.
    server.close_stdin();
    let run = server.submit(SHORT);
    server.wait(&run, &["complete"]);
}

#[test]
fn servers_of_two_folders_measure_one_after_the_other() {
    let [one, other] = [folder(), folder()];
    let first = Server::start(one.path(), &[]);
    let second = Server::start_beside(other.path(), &session(one.path()), &[]);
    let running = first.submit(LONG);
    first.wait_for_load(&running);
    let [waiting, behind] = [second.submit(SHORT), second.submit(SHORT)];
    let said = wait_for("what it waits for", || second.entry(&waiting)["waits_for"].as_str().map(str::to_owned));
    assert!(said.contains("another `pubmark serve`"), "{said}");
    assert_eq!(second.entry(&waiting)["state"], "queued");
    assert!(second.entry(&behind)["waits_for"].is_null(), "it waits for the one before it");
    assert!(
        second.get("/queue").body.contains("waits for the end of a run of another"),
        "{}",
        second.get("/queue").body
    );
    assert_eq!(second.get("/doctor").status, 409, "looking at the machine would disturb the run");
    // However the first one ends: the lock goes with the run, and not with its server.
    first.kill();
    let entry = second.wait(&waiting, &["complete"]);
    assert!(entry["waits_for"].is_null(), "{entry}");
    second.wait(&behind, &["complete"]);
}

#[test]
fn a_server_without_a_place_for_the_lock_does_not_start() {
    let place = folder();
    let temporary = place.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    // SAFETY: it has no memory to be unsafe with.
    let user = unsafe { libc::geteuid() };
    std::os::unix::fs::symlink(place.path(), temporary.join(format!("pubmark-{user}"))).unwrap();
    let server = std::process::Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["serve", "--listen", &pubmark_conformance::ports::free().to_string()])
        .current_dir(place.path())
        .envs([("XDG_RUNTIME_DIR", "/proc/self"), ("TMPDIR", temporary.to_str().unwrap())])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&server.stderr).into_owned();
    if std::path::Path::new(&format!("/run/user/{user}")).is_dir() {
        return pubmark_testing::skip("this user has a session of its own, which is used");
    }
    assert_eq!(server.status.code(), Some(2), "{text}");
    assert!(text.contains("no folder") && text.contains("XDG_RUNTIME_DIR"), "{text}");
}
