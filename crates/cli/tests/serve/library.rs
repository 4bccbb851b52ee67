//! The library of results over HTTP: notes, deletion, comparison, history, export; and hostile requests.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use pubmark_record::record::{BackEndKind, VerdictStatus};
use serde_json::{Value, json};

use crate::call;
use crate::results::{CHOICE, EXPERIMENT, ONE, OTHER, SEARCH, SLOW, save, save_other_kinds, save_three};
use crate::server::{LONG, SHORT, Server, folder};

fn put_note(server: &Server, id: &str, note: &Value) -> call::Response {
    call::request(server.port, "PUT", &format!("/runs/{id}/note"), Some(&server.token), &note.to_string())
}

fn delete_results(server: &Server, id: &str) -> call::Response {
    call::request(server.port, "DELETE", &format!("/runs/{id}/results"), Some(&server.token), "")
}

fn names(server: &Server, query: &str) -> Vec<String> {
    let page = server.get(&format!("/runs{query}")).of(200);
    page["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_note_is_saved_found_and_shown_as_text() {
    let place = folder();
    save_three(&place.path().join("runs"));
    let server = Server::start(place.path(), &[]);
    let record = fs::read(server.runs().join(ONE).join("record.json")).unwrap();
    let note = json!({"text": "<script>alert(1)</script>", "tags": ["lab", "a.b"]});
    assert_eq!(put_note(&server, ONE, &note).of(200)["tags"], json!(["a.b", "lab"]));
    assert_eq!(server.entry(ONE)["note"]["text"], note["text"]);
    assert_eq!(fs::read(server.runs().join(ONE).join("record.json")).unwrap(), record, "the record stays as it was");
    assert_eq!(names(&server, "?filter=tag=LAB%20workload=smart-home"), [ONE]);
    // A word may be in the text or in a tag.
    assert_eq!(names(&server, "?filter=ALERT%20smart-home"), [ONE]);
    assert_eq!(names(&server, "?filter=a.b"), [ONE]);
    assert_eq!(names(&server, "?filter=switch"), [""; 0]);
    let part = server.get("/").body;
    assert!(part.contains("&lt;script&gt;alert(1)") && !part.contains("<script>alert"), "{part}");
    for wrong in [json!({"tags": ["two words"]}), json!({"text": "x".repeat(4_001)}), json!({"txet": ""})] {
        assert_eq!(put_note(&server, ONE, &wrong).status, 422, "{wrong}");
    }
    assert_eq!(put_note(&server, "..%2f..", &note).status, 404);
    put_note(&server, ONE, &json!({})).of(200);
    assert!(!server.runs().join(ONE).join("note.json").exists());
}

#[test]
fn results_are_deleted_by_name_and_nothing_else() {
    let place = folder();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("record.json"), "{}").unwrap();
    save_three(&place.path().join("runs"));
    symlink(&outside, place.path().join("runs/20260304-090507-link")).unwrap();
    fs::create_dir(place.path().join("runs/20260305-090507-begun")).unwrap();
    let server = Server::start(place.path(), &[]);
    let what = server.get(&format!("/runs/{ONE}/results")).of(200);
    assert_eq!((&what["submission"], &what["folders"][0]["folder"]), (&Value::Null, &json!(ONE)), "{what}");
    assert_eq!(what["folders"][0]["files"], 2, "{what}");
    assert_eq!(delete_results(&server, ONE).of(200), what);
    assert!(!server.runs().join(ONE).exists() && server.runs().join(SLOW).exists());
    for (wrong, status) in [
        (ONE, 404),
        ("..%2foutside", 404),
        (".serve", 404),
        ("%2e%2e", 404),
        ("20260304-090507-link", 409),
        ("20260305-090507-begun", 409),
    ] {
        assert_eq!(delete_results(&server, wrong).status, status, "{wrong}");
    }
    assert!(outside.join("record.json").exists() && server.runs().join("20260304-090507-link").is_symlink());
    assert!(server.runs().join(".serve/token").exists() && server.runs().join("20260305-090507-begun").exists());
}

#[test]
fn an_experiment_that_the_command_line_goes_on_with_is_not_deleted() {
    let place = folder();
    let runs = place.path().join("runs");
    let definition = place.path().join("levels.yaml");
    let text = "name: levels\ntitle: Levels\nworkload: hello\nrepeat: 1\nduration: 20s\nwarmup: 0s\n\
                axes: {system: builtin, protocol: mqtt5, qos: [0, 1]}\n";
    fs::write(&definition, text).unwrap();
    let start = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
        command.arg("experiment").args(arguments).args(["--quiet", "--events", "-"]).current_dir(place.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        events.find(|line| line.contains(r#""phase":"measure""#)).expect("a run that measures");
        (child, events)
    };
    let interrupt = |(mut child, events): (Child, _)| {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
        std::iter::Iterator::for_each(events, drop::<String>);
        child.wait().unwrap()
    };
    interrupt(start(&["levels.yaml", "--wait", "0s", "--out", "runs"]));
    let name = fs::read_link(runs.join("latest")).unwrap().to_string_lossy().into_owned();
    assert!(runs.join(&name).join("experiment.json").is_file(), "it was interrupted, and is a result");
    let server = Server::start(place.path(), &[]);
    let going = start(&["--resume", runs.join(&name).to_str().unwrap()]);
    for refused in [delete_results(&server, &name), server.get(&format!("/runs/{name}/results"))] {
        assert!(refused.of(409)["error"].as_str().unwrap().contains("a command is at work"), "{refused:?}");
    }
    interrupt(going);
    assert_eq!(delete_results(&server, &name).of(200)["folders"][0]["folder"], name);
    assert!(!runs.join(&name).exists());
}

#[test]
fn deletions_of_one_result_at_once_are_no_fault_of_the_server() {
    let place = folder();
    save_three(&place.path().join("runs"));
    let server = Server::start(place.path(), &[]);
    for name in [ONE, SLOW, OTHER] {
        let found = std::thread::scope(|scope| {
            let all = [(); 8].map(|()| scope.spawn(|| delete_results(&server, name).status));
            all.map(|one| one.join().unwrap())
        });
        assert!(found.contains(&200) && found.iter().all(|status| matches!(status, 200 | 404 | 409)), "{found:?}");
        assert!(!server.runs().join(name).exists());
    }
}

#[test]
fn what_is_under_way_is_not_deleted() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let [running, waiting] = [LONG, SHORT].map(|body| server.submit(body));
    server.wait_for_load(&running);
    for id in [&running, &waiting] {
        assert!(delete_results(&server, id).of(409)["hint"].as_str().unwrap().contains("cancel it first"), "{id}");
    }
    server.delete(&waiting).of(200);
    assert_eq!(delete_results(&server, &waiting).of(200)["folders"], json!([]));
    server.delete(&running).of(200);
    let entry = server.wait(&running, &["cancelled"]);
    let made = entry["folders"][0].as_str().unwrap().to_owned();
    assert_eq!(delete_results(&server, &running).of(200)["folders"][0]["folder"], made);
    assert_eq!(names(&server, ""), [""; 0]);
    assert!(!server.runs().join(made).exists());
    server.stop();
    let server = Server::start(place.path(), &[]);
    assert_eq!(names(&server, ""), [""; 0], "the next server does not know them either");
}

#[test]
fn runs_of_one_schedule_are_compared_and_others_refused_with_the_reason() {
    let place = folder();
    save_three(&place.path().join("runs"));
    let server = Server::start(place.path(), &[]);
    let compared = server.get(&format!("/compare?run={ONE}&run={SLOW}")).of(200);
    let figures = compared["figures"].as_array().unwrap();
    let p99 = figures.iter().find(|figure| figure["name"] == "latency p99").unwrap();
    assert!(p99["values"][1].as_f64() > p99["values"][0].as_f64(), "{p99}");
    assert_eq!(compared["runs"][0]["name"], ONE);
    let refused = server.get(&format!("/compare?run={ONE}&run={OTHER}")).of(422);
    assert!(refused["error"].as_str().unwrap().contains("different schedules"), "{refused}");
    for (query, status) in [
        ("", 400),
        (&*format!("?run={ONE}"), 422),
        (&*format!("?run={ONE}&nur={SLOW}"), 400),
        (&*format!("?run={ONE}&run=..%2f..%2fetc"), 404),
    ] {
        assert_eq!(server.get(&format!("/compare{query}")).status, status, "{query}");
    }
}

#[test]
fn what_single_runs_have_alone_is_refused_with_what_the_result_is() {
    let place = folder();
    save_three(&place.path().join("runs"));
    save_other_kinds(&place.path().join("runs"));
    let server = Server::start(place.path(), &[]);
    for (name, what) in
        [(EXPERIMENT, "is an experiment"), (SEARCH, "is a search for capacity"), (CHOICE, "is a choice")]
    {
        for path in [format!("/compare?run={ONE}&run={name}"), format!("/history?run={name}")] {
            let refused = server.get(&path).of(409);
            let error = refused["error"].as_str().unwrap();
            assert!(error.contains(what) && !error.contains('/') && refused["hint"].is_string(), "{path}: {refused}");
        }
    }
    // The page says the same before anything is asked for.
    let part = server.get("/").body;
    for action in ["compare", "history"] {
        let button =
            part.split("<button").find(|button| button.contains(&format!(r#"data-action="{action}""#))).unwrap();
        assert!(button.contains(r#"data-of="run""#), "{button}");
    }
    assert_eq!(part.matches(r#"data-kind="run""#).count(), 3, "{part}");
    // Two experiments are compared with each other.
    let body = json!({"run": EXPERIMENT, "baseline": EXPERIMENT, "fail_on": "p99>+10%"}).to_string();
    assert!(!server.post("/check", &body).of(200)["checks"].as_array().unwrap().is_empty());
}

#[test]
fn a_history_marks_the_run_that_is_slower() {
    let place = folder();
    let runs = place.path().join("runs");
    save_three(&runs);
    save(&runs, "20260304-090507-tls", |record| record.settings.tls = true);
    save(&runs, "20260305-090507-invalid", |record| record.verdict.status = VerdictStatus::Invalid);
    let server = Server::start(place.path(), &[]);
    let history = server.get(&format!("/history?run={SLOW}")).of(200);
    let found = history["runs"].as_array().unwrap();
    assert_eq!(found.len(), 3, "other settings and another schedule are no part of it: {history}");
    assert_eq!((&found[0]["regressions"], &found[0]["baseline"]), (&json!([]), &Value::Null), "{history}");
    assert_eq!((&found[1]["baseline"], &found[1]["system_version"]), (&json!(ONE), &json!("0.2.0")), "{history}");
    assert!(found[1]["regressions"][0].as_str().unwrap().starts_with("p99>+10%"), "{history}");
    assert_eq!((&found[2]["baseline"], &found[2]["regressions"]), (&Value::Null, &json!([])), "{history}");
    assert!(found[2]["remark"].as_str().unwrap().contains("invalid"), "{history}");
    let mild = server.get(&format!("/history?run={SLOW}&fail_on=p99%3E%2B500%25&baseline={ONE}")).of(200);
    assert_eq!(mild["runs"][1]["regressions"], json!([]), "{mild}");
    for (query, status) in [
        (&*format!("run={ONE}&fail_on=p98%3E1"), 422),
        (&*format!("run={ONE}&baseline={OTHER}"), 422),
        ("run=..%2fx", 404),
    ] {
        assert_eq!(server.get(&format!("/history?{query}")).status, status, "{query}");
    }
}

#[test]
fn a_history_names_another_machine_and_has_no_run_of_another_endpoint() {
    let place = folder();
    let runs = place.path().join("runs");
    let external = |name: &str, endpoint: &str, cores: u32| {
        save(&runs, name, |record| {
            record.system.back_end = BackEndKind::External;
            record.system.endpoint = endpoint.to_owned();
            record.environment.cores = cores;
        });
    };
    external("20260301-090507-staging", "mqtt://staging:1883", 4);
    external("20260302-090507-production", "mqtt://production:1883", 4);
    external("20260303-090507-larger", "mqtt://staging:1883", 8);
    let server = Server::start(place.path(), &[]);
    let history = server.get("/history?run=20260303-090507-larger").of(200);
    let found = history["runs"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{history}");
    assert!(found[1]["machine"].as_str().unwrap().starts_with("8 × "), "{history}");
    let notes = found[1]["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("cores: 4, here 8")), "{history}");
}

#[test]
fn a_history_has_its_baseline_however_many_runs_came_after_it() {
    let place = folder();
    let runs = place.path().join("runs");
    let first = "20260101-000000-first";
    save(&runs, first, |_| ());
    for number in 0..205 {
        let folder = runs.join(format!("20260102-{number:06}-made"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::hard_link(runs.join(first).join("record.json"), folder.join("record.json")).unwrap();
    }
    let server = Server::start(place.path(), &[]);
    let newest = "20260102-000204-made";
    let found =
        |query: &str| server.get(&format!("/history?run={newest}{query}")).of(200)["runs"].as_array().unwrap().len();
    assert_eq!(found(""), 200);
    assert_eq!(found(&format!("&baseline={first}")), 201);
}

#[test]
fn an_export_opens_without_a_server() {
    let place = folder();
    let runs = place.path().join("runs");
    save_three(&runs);
    symlink("/etc/passwd", runs.join(ONE).join("secret")).unwrap();
    let server = Server::start(place.path(), &[]);
    let archive = place.path().join("results.tar.gz");
    let bytes = call::bytes(server.port, &format!("/export?run={ONE}&run={SLOW}"), &server.token);
    fs::write(&archive, bytes).unwrap();
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).current_dir(place.path()).output().unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    let top = place.path().join("pubmark-results");
    let index = fs::read_to_string(top.join("index.html")).unwrap();
    for link in ["comparison.html", &format!("{ONE}/report.html"), &format!("{SLOW}/report.html")] {
        assert!(index.contains(&format!("href=\"{link}\"")) && top.join(link).is_file(), "{link}: {index}");
    }
    assert!(top.join(ONE).join("record.json").is_file() && !top.join(ONE).join("secret").exists());
    for wrong in ["..%2f..%2fetc", ".serve"] {
        assert_eq!(server.get(&format!("/export?run={wrong}")).status, 404, "{wrong}");
    }
}

#[test]
fn a_dry_run_shows_a_run_and_its_command() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let good = server.post("/validate", r#"{"workload": "hello", "qos": 0, "duration": "2s"}"#).of(200);
    assert_eq!(good["command"], "pubmark run hello --qos 0 --duration 2s");
    assert!(good["run_yaml"].as_str().unwrap().contains("workload: hello"), "{good}");
    let plan = server.post("/dry-run", r#"{"workload": "hello"}"#).of(200);
    assert!(plan["text"].as_str().unwrap().contains("1 device, 1 subscriber"), "{plan}");
    let judged = server.post("/dry-run?machine=true", r#"{"workload": "hello"}"#).of(200);
    assert!(judged["text"].as_str().unwrap().contains("this machine"), "{judged}");
    let secret = r#"{"workload": "hello", "connection": {"user": "u", "password": "geheim-1"}}"#;
    assert!(!server.post("/validate", secret).body.contains("geheim-1"));
    let id = server.submit(LONG);
    server.wait_for_load(&id);
    let refused = server.post("/dry-run?machine=true", r#"{"workload": "hello"}"#).of(409);
    assert!(refused["error"].as_str().unwrap().contains("a run is under way"), "{refused}");
    server.delete(&id).of(200);
    server.wait(&id, &["cancelled"]);
}

#[test]
fn a_choice_in_which_a_command_is_at_work_is_running_and_is_stopped_where_it_was_started() {
    let place = folder();
    let runs = place.path().join("runs");
    save_other_kinds(&runs);
    let file = runs.join(CHOICE).join("choice.json");
    let text =
        std::fs::read_to_string(&file).unwrap().replacen(r#""status": "complete""#, r#""status": "interrupted""#, 1);
    std::fs::write(&file, text).unwrap();
    let journal = std::fs::File::create(runs.join(CHOICE).join("journal.jsonl")).unwrap();
    journal.lock().unwrap();
    let server = Server::start(place.path(), &[]);
    let list = server.get("/runs?state=running").of(200);
    assert_eq!((list["total"].as_u64(), list["runs"][0]["id"].as_str()), (Some(1), Some(CHOICE)), "{list}");
    assert_eq!(server.get("/runs?filter=status=running").of(200)["total"], 1);
    assert_eq!(server.entry(CHOICE)["state"], "running");
    let refused = server.delete(CHOICE).of(409);
    assert!(refused["hint"].as_str().unwrap().contains("Ctrl-C"), "{refused}");
    drop(journal);
    assert_eq!(server.entry(CHOICE)["state"], "interrupted", "the command was killed");
    assert!(server.delete(CHOICE).of(409)["error"].as_str().unwrap().contains("has already ended"));
}

#[test]
fn a_choice_is_in_the_list_with_its_page_its_table_its_runs_and_its_searches() {
    let place = folder();
    save_other_kinds(&place.path().join("runs"));
    let server = Server::start(place.path(), &[]);
    let list = server.get("/runs?kind=choice").of(200);
    assert_eq!((list["total"].as_u64(), list["runs"][0]["id"].as_str()), (Some(1), Some(CHOICE)), "{list}");
    assert_eq!(list["runs"][0]["headline"]["qualify"], json!(["small"]));
    let page = server.get("/").body;
    assert!(page.contains("smart-home (choice)") && page.contains("1 of 5 qualify"), "{page}");
    assert!(server.get(&format!("/runs/{CHOICE}/report")).body.contains("Recommended: small"));
    assert!(server.get(&format!("/runs/{CHOICE}/table")).body.starts_with("choice,candidate,"));
    assert_eq!(server.get(&format!("/runs/{CHOICE}/record")).of(200)["workload"], "smart-home");
    // What its page links, and what the page of the search links.
    for file in [
        "runs/1-small-race-1/report.html",
        "headroom/1-small/capacity.html",
        "headroom/1-small/capacity.json",
        "headroom/1-small/csv/trials.csv",
    ] {
        let sent = server.get(&format!("/runs/{CHOICE}/files/{file}"));
        assert!(sent.status == 200 && !sent.body.is_empty(), "{file}: {}", sent.head);
    }
    let search = server.get(&format!("/runs/{CHOICE}/files/headroom/1-small/capacity.json")).of(200);
    let trial = search["trials"][0]["folder"].as_str().unwrap();
    let sent = server.get(&format!("/runs/{CHOICE}/files/headroom/1-small/{trial}/report.html"));
    assert_eq!(sent.status, 200, "{}", sent.head);
    for file in ["headroom/1-small/../../runs/x", "headroom/2-capped/capacity.html", "requirements.yaml"] {
        assert_eq!(server.get(&format!("/runs/{CHOICE}/files/{file}")).status, 404, "{file}");
    }
}
