//! Experiments and searches for capacity over HTTP, like runs: checked, planned, shown as a command line, limited by
//! rights.

use serde_json::{Value, json};

use crate::server::{Server, folder};

/// Two combinations, twice each.
const DEFINITION: &str = "name: tiny\ntitle: Tiny\ndescription: Two levels.\nworkload: hello\nduration: 8s\nwarmup: 0s\nrepeat: 2\n\
                          axes: {system: builtin, protocol: mqtt5, qos: [0, 1]}\n";

fn text_of(value: &Value) -> &str {
    value["text"].as_str().unwrap()
}

#[test]
fn a_dry_run_shows_an_experiment_and_its_command() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let body = json!({"experiment": "mine", "text": DEFINITION, "repeat": 3, "only": ["qos=1"]}).to_string();
    let good = server.post("/validate", &body).of(200);
    assert_eq!((&good["kind"], &good["systems"]), (&json!("experiment"), &json!(["builtin"])), "{good}");
    assert_eq!(good["command"], "pubmark experiment experiment.yaml --only=qos=1 --repeat=3", "{good}");
    let plan = server.post("/dry-run", &body).of(200);
    let plan = text_of(&plan);
    assert!(plan.contains("cells       1\n") && plan.contains("3: 3 repetitions"), "{plan}");
    // Each run of 8 s has a second of looking and one around it.
    assert!(plan.contains("time        about 30 s"), "{plan}");
    let whole = server.post("/dry-run", DEFINITION).of(200);
    assert!(text_of(&whole).contains("4: 2 repetitions") && text_of(&whole).contains("about 40 s"), "{whole}");
    let judged = server.post("/dry-run?machine=true", DEFINITION).of(200);
    assert!(text_of(&judged).contains("this machine can"), "{judged}");
    let built_in = server.post("/validate", r#"{"experiment": "brokers", "quick": true}"#);
    assert!(built_in.of(403)["hint"].as_str().unwrap().contains("--allow systems"), "{built_in:?}");
}

#[test]
fn cells_that_this_machine_cannot_run_are_named_before_an_experiment_begins() {
    let place = folder();
    let server = Server::start(place.path(), &["--allow", "systems"]);
    // Redis has no QoS 2, whether it is installed or not.
    let text = "name: t\ntitle: T\nworkload: hello\nduration: 8s\nwarmup: 0s\nrepeat: 2\n\
                axes: {system: [{system: builtin, label: ours}, {system: redis, label: theirs}], qos: [0, 2]}\n";
    for path in ["/dry-run", "/dry-run?machine=true"] {
        let plan = server.post(path, text).of(200);
        let plan = text_of(&plan);
        let refused: Vec<&str> = plan.lines().filter(|line| line.starts_with('✗')).collect();
        assert!(refused.iter().any(|line| line.contains("theirs, QoS 2")), "{path}: {plan}");
        assert!(plan.lines().any(|line| line.starts_with("✓ ours, QoS 0")), "{path}: {plan}");
        let (reason, of) = (plan.contains("QoS 2"), format!("4, {} of them not possible", refused.len()));
        assert!(reason && plan.contains(&of), "{path}: {plan}");
        // Runs of the cells that are left.
        assert!(plan.contains(&format!("{}: 2 repetitions", (4 - refused.len()) * 2)), "{path}: {plan}");
    }
}

#[test]
fn an_experiment_of_which_nothing_can_be_run_is_refused_with_the_reasons() {
    let place = folder();
    let server = Server::start(place.path(), &["--allow", "systems"]);
    let text = "name: t\ntitle: T\nworkload: hello\nduration: 8s\nwarmup: 0s\n\
                axes: {system: [{system: redis, label: theirs}], qos: [2]}\n";
    for path in ["/validate", "/runs"] {
        let refused = server.post(path, text).of(422);
        let chain = refused["chain"].as_array().unwrap();
        assert_eq!(chain[0], "nothing of this experiment can be run here", "{refused}");
        assert!(chain[1].as_str().unwrap().contains("grants QoS 0 at most"), "{refused}");
        assert!(refused["hint"].as_str().unwrap().contains("pubmark list systems"), "{refused}");
    }
    // One combination that can be run is enough.
    let text = text.replace("label: theirs}", "label: theirs}, builtin");
    assert_eq!(server.post("/validate", &text).of(200)["systems"], json!(["theirs", "builtin"]));
    assert_eq!(server.get("/runs").of(200)["total"], 0, "nothing was taken in");
}

#[test]
fn an_error_in_an_experiment_has_its_line_and_column() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let wrong = DEFINITION.replace("description:", "descriptoin:");
    let found = server.post("/validate", &json!({"experiment": "mine", "text": wrong}).to_string()).of(422);
    assert_eq!((&found["place"]["file"], &found["place"]["line"]), (&json!("experiment.yaml"), &json!(3)), "{found}");
    for (change, message) in [
        (json!({"only": ["qos=2"]}), "`2` is not a value of the axis `qos`"),
        (json!({"only": ["colour=red"]}), "`colour` is not an axis"),
        (json!({"only": ["qos"]}), "is not an axis with values"),
        (json!({"repeat": 4_000_000_000_u32}), "`repeat` is 1 to 1000"),
        (json!({"duration": "0s"}), "longer than zero"),
    ] {
        let mut body = json!({"experiment": "mine", "text": DEFINITION});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let found = server.post("/validate", &body.to_string()).of(422);
        assert!(found["error"].as_str().unwrap().contains(message), "{change}: {found}");
    }
}

#[test]
fn a_dry_run_shows_a_search_and_its_command() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let body = r#"{"capacity": "smart-home", "slo": "p99<20ms", "within": "2m", "vary": "scale", "qos": 1}"#;
    let good = server.post("/validate", body).of(200);
    let command = "pubmark capacity smart-home '--slo=p99<20ms' --vary=scale --qos=1 --within=120s";
    assert_eq!((&good["kind"], &good["command"]), (&json!("capacity"), &json!(command)), "{good}");
    let plan = server.post("/dry-run", body).of(200);
    // As on the command line: wrapped.
    let words = text_of(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["how many devices there are", "p99<20ms", "none begins after 2 min", "The first trial:", "devices"] {
        assert!(words.contains(part), "{part}: {plan}");
    }
    let judged = server.post("/dry-run?machine=true", body).of(200);
    assert!(text_of(&judged).contains("this machine"), "{judged}");
    for (wrong, message) in [
        (r#"{"capacity": "smart-hom"}"#, "smart-hom"),
        (r#"{"capacity": "hello", "slo": "p98<1ms"}"#, "p98"),
        (r#"{"capacity": "hello", "protocol": "mqtt7"}"#, "mqtt7"),
        (r#"{"capacity": "hello", "within": "0s"}"#, "longer than zero"),
        (r#"{"capacity": "hello", "most": 1e300}"#, "`most` is"),
    ] {
        for path in ["/validate", "/dry-run"] {
            let found = server.post(path, wrong).of(422);
            assert!(found["error"].as_str().unwrap().contains(message), "{wrong}: {found}");
        }
    }
}

#[test]
fn rights_and_bounds_hold_for_experiments_and_searches_before_anything_is_read() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let with = |axes: &str| {
        // Workloads are an axis, or one for all.
        let one = if axes.contains("workload:") { "" } else { "workload: hello\n" };
        let text = DEFINITION
            .replace("workload: hello\n", one)
            .replace("{system: builtin, protocol: mqtt5, qos: [0, 1]}", axes);
        json!({"experiment": "mine", "text": text}).to_string()
    };
    let path = place.path().join("secret.yaml");
    std::fs::write(&path, "geheim-7: [").unwrap();
    let path = path.display();
    for (body, right) in [
        (with("{system: mosquitto}"), "systems"),
        (with("{system: [{endpoint: 'mqtt://host', label: ours}]}"), "endpoints"),
        (with(&format!("{{system: {path}}}")), "commands"),
        (with("{system: builtin, client: ['evil=touch /tmp/evil']}"), "commands"),
        (with(&format!("{{system: builtin, workload: [{path}]}}")), "commands"),
        (r#"{"capacity": "hello", "system": "mosquitto"}"#.to_owned(), "systems"),
        (r#"{"capacity": "hello", "endpoint": "mqtt://host"}"#.to_owned(), "endpoints"),
        (format!(r#"{{"capacity": "{path}"}}"#), "commands"),
    ] {
        for route in ["/validate", "/dry-run", "/runs"] {
            let refused = server.post(route, &body);
            assert!(!refused.body.contains("geheim-7"), "{refused:?}");
            let hint = refused.of(403)["hint"].as_str().unwrap().to_owned();
            assert!(hint.contains(&format!("--allow {right}")), "{route} {body}: {hint}");
        }
    }
    let scales: Vec<String> = (1..=5_000).map(|scale: u32| scale.to_string()).collect();
    let many = with(&format!("{{system: builtin, scale: [{}]}}", scales.join(", ")));
    assert!(server.post("/dry-run", &many).of(422)["error"].as_str().unwrap().contains("500"));
}

#[test]
fn a_choice_is_checked_made_listed_and_stopped_like_a_run() {
    let place = folder();
    let server = Server::start(place.path(), &["--allow", "systems"]);
    let requirements = json!({
        "workload": "hello", "objectives": "loss=0", "candidates": ["builtin", {"system": "builtin", "label": "other"}],
        "window": {"duration": "1s", "warmup": "0s"}, "headroom": false, "within": "2m",
    });
    let body = json!({"choose": requirements}).to_string();
    let good = server.post("/validate", &body).of(200);
    assert_eq!((&good["kind"], &good["systems"]), (&json!("choice"), &json!(["builtin", "other"])), "{good}");
    assert_eq!(good["command"], "pubmark choose requirements.yaml", "{good}");
    let plan = server.post("/dry-run", &body).of(200);
    assert!(text_of(&plan).contains("builtin over mqtt5") && text_of(&plan).contains("loss=0"), "{plan}");
    for (body, place, message) in [
        ("choose:\n  workload: hello\n  objectives: loss=0\n  grwth: 2\n", json!([4, 3]), "unknown field `grwth`"),
        ("choose:\n  workload: hello\n  objectives: p98<1s\n", json!([3, 15]), "no figure `p98`"),
        ("choose: {workload: hello, objectives: loss=0, candidates: [mosquito]}", json!([1, 60]), "mosquito"),
        (
            "choose: {workload: hello, objectives: loss=0, candidates: [builtin], needs: {shared_subscriptions: true}}",
            json!(null),
            "no candidate can be run here: builtin: `builtin` has no shared subscriptions",
        ),
    ] {
        for path in ["/validate", "/runs"] {
            let found = server.post(path, body).of(422);
            assert!(found["error"].as_str().unwrap().contains(message), "{path} {body}: {found}");
            let at = &found["place"];
            if !place.is_null() {
                assert_eq!(json!([at["line"], at["column"]]), place, "{path} {body}: {found}");
            }
        }
    }
    let id = server.submit(&body);
    let ended = server.wait(&id, &["complete", "failed"]);
    let qualify = &ended["headline"]["qualify"];
    assert_eq!((&ended["kind"], &ended["state"]), (&json!("choice"), &json!("complete")), "{ended}");
    assert!(qualify.as_array().is_some(), "{ended}");
    let record = server.get(&format!("/runs/{id}/record")).of(200);
    assert_eq!(record["command"], json!(["pubmark", "choose", "requirements.yaml"]), "{record}");
    assert!(server.get(&format!("/runs/{id}/report")).body.starts_with("<!DOCTYPE html>"));
    // A second one has a folder of its own, and its record is kept when it is stopped.
    let long = body.replace(r#""duration":"1s""#, r#""duration":"60s""#);
    let id = server.submit(&long);
    server.wait_for_load(&id);
    assert_eq!(server.entry(&id)["systems"], json!(["builtin", "other"]));
    let live = crate::call::Events::of(server.port, &server.token, &id);
    let began = live.into_iter().find(|event| event["event"] == "run-begins").unwrap();
    assert!(began["cell"].as_str().unwrap().ends_with(", screening"), "{began}");
    server.delete(&id).of(200);
    let stopped = server.wait(&id, &["cancelled"]);
    assert_ne!(stopped["folders"], ended["folders"]);
    assert_eq!(server.get(&format!("/runs/{id}/record")).of(200)["status"], "interrupted");
}

#[test]
fn a_search_takes_what_a_run_takes() {
    let place = folder();
    let server = Server::start(place.path(), &["--allow", "endpoints"]);
    let text = "name: own\ndevices: [{name: d, every: 100ms, payload: 20B}]\nsubscribers: [{name: s, filters: '#'}]\n";
    let body = json!({
        "capacity": {"file_name": "own.yaml", "text": text}, "endpoint": "mqtt://127.0.0.1:9", "links": ["lte"], "faults": ["none"],
        "seed": 7, "user": "ann", "password": "geheim-3",
    });
    let good = server.post("/validate", &body.to_string()).of(200);
    let command = "pubmark capacity workload.yaml --endpoint=mqtt://127.0.0.1:9 --user=ann --seed=7 --link=lte --fault=none \
                   --password-file=password";
    assert_eq!((&good["name"], &good["command"]), (&json!("own"), &json!(command)), "{good}");
    let limited = json!({"capacity": "pairs", "limit": "cpu=0.5", "tls": true, "profile": "default"}).to_string();
    let good = server.post("/validate", &limited).of(200);
    assert_eq!(good["command"], "pubmark capacity pairs --profile=default --limit=cpu=0.5 --tls", "{good}");
    // Errors in the text have a position, and files of the server that it names are not read.
    let wrong = json!({"capacity": {"file_name": "own.yaml", "text": text.replace("devices", "devises")}}).to_string();
    let found = server.post("/validate", &wrong).of(422);
    assert_eq!((&found["place"]["file"], &found["place"]["line"]), (&json!("own.yaml"), &json!(2)), "{found}");
    let reads = text.replace("payload: 20B", "payload: {sizes: {file: /etc/passwd}}");
    let reads = json!({"capacity": {"file_name": "own.yaml", "text": reads}}).to_string();
    assert!(server.post("/runs", &reads).of(403)["hint"].as_str().unwrap().contains("--allow commands"));
}
