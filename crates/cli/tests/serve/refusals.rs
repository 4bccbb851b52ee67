//! Requests that are refused, with the text of the error.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value;

use crate::call;
use crate::server::{SHORT, Server, folder, session};

#[test]
fn no_request_succeeds_without_the_token() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let paths = ["/runs", "/systems", "/runs/x", "/runs/x/record", "/doctor", "/nothing"];
    for path in paths {
        for token in [None, Some("x"), Some(&server.token[1..])] {
            assert_eq!(call::request(server.port, "GET", path, token, "").status, 401, "{path} {token:?}");
        }
    }
    assert_eq!(call::request(server.port, "POST", "/runs", None, SHORT).status, 401);
    assert_eq!(server.get("/nothing").status, 404);
    assert_eq!(server.get("/runs").of(200)["total"], 0, "nothing was taken in");
    let mode = std::fs::metadata(server.runs().join(".serve/token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn contradictions_are_refused_with_their_place() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let refused = |body: &str| -> Value { server.post("/validate", body).of(422) };
    let typo = refused("workload: smart-home\nduratoin: 4s\n");
    assert_eq!((&typo["place"]["line"], &typo["place"]["column"]), (&Value::from(2), &Value::from(1)), "{typo}");
    assert!(typo["error"].as_str().unwrap().contains("duratoin"), "{typo}");
    let inner = serde_json::json!({"workload": {"file_name": "mine.yaml", "text": "name: mine\ndevices: 7\n"}});
    let inner = refused(&inner.to_string());
    assert_eq!(
        (&inner["place"]["file"], &inner["place"]["line"]),
        (&Value::from("mine.yaml"), &Value::from(2)),
        "{inner}"
    );
    assert!(refused("workload: smart-home\nprotocol: mqtt7\n")["error"].as_str().unwrap().contains("mqtt7"));
    assert_eq!(server.post("/validate", SHORT).of(200)["kind"], "run");
    for (body, message, hint) in [
        ("", "the body is empty", "/openapi.json"),
        (" \n", "the body is empty", "/openapi.json"),
        ("hello", "line 1, column 1", r#"{"workload": "smart-home"}"#),
        ("[]", "line 1, column 1", r#"{"workload": "smart-home"}"#),
        (r#"{"system": "mosquitto"}"#, "missing field `workload`", r#"{"workload": "smart-home"}"#),
        (r#"{"experiment": "broker"}"#, "there is no experiment `broker`", "did you mean `brokers`?"),
        (r#"{"experiment": "pairs"}"#, "there is no experiment `pairs`", r#"{"workload": "pairs"}"#),
        (r#"{"workload": "brokers"}"#, "brokers", r#"{"experiment": "brokers"}"#),
        (r#"{"capacity": "brokers"}"#, "brokers", r#"{"experiment": "brokers"}"#),
        // A field: by its key, with what it takes or is meant as.
        (r#"{"workload": "hello", "duratoin": "4s"}"#, "unknown field `duratoin`", "did you mean `duration`?"),
        (r#"{"capacity": "hello", "withn": "4s"}"#, "unknown field `withn`", "did you mean `within`?"),
        (r#"{"experiment": "brokers", "quik": true}"#, "unknown field `quik`", "did you mean `quick`?"),
        (r#"{"workload": "hello", "set": ["a=1"]}"#, "unknown field `set`", "write `load: {set: …}`"),
        (
            r#"{"choose": {"workload": "hello", "retained": true}}"#,
            "unknown field `retained`",
            "write `needs: {retained: …}`",
        ),
        (r#"{"choose": "hello"}"#, "fields are expected", "`choose`"),
        (
            r#"{"workload": "hello", "connection": {"user": "ann", "password": "x"}}"#,
            "`builtin` does not check user names and passwords",
            "pubmark list systems",
        ),
        (
            r#"{"workload": "hello", "scale": "many"}"#,
            "a whole number",
            "`GET /openapi.json` describes what `scale` takes",
        ),
        (r#"{"workload": "hello", "slo": "p98<1ms"}"#, "failed to read `slo`", "did you mean"),
        (
            r#"{"workload": "hello", "connection": {"password": "x"}}"#,
            "`connection.user: NAME`",
            "`connection.user: NAME`",
        ),
        (r#"{"workload": "hello", "nodes": {"local_nodes": 0}}"#, "`nodes.local_nodes` is 0", ""),
        (r#"{"workload": "hello", "repetitions": 4000}"#, "`repetitions` is 4000", ""),
        // More than this machine has: a search, an experiment and a run alike.
        (r#"{"workload": "smart-home", "scale": 5000000, "duration": "240h"}"#, "", ""),
        (r#"{"workload": "smart-home", "scale": 5000, "duration": "240h"}"#, "connections", ""),
        (
            r#"{"capacity": "pairs", "slo": "loss=0", "vary": "rate", "links": ["none"], "seed": 1, "profile": "quick"}"#,
            "quick",
            "",
        ),
    ] {
        let found = refused(body);
        assert!(found["error"].as_str().unwrap().contains(message), "{body}: {found}");
        assert!(hint.is_empty() || found["hint"].as_str().unwrap().contains(hint), "{body}: {found}");
        assert!(!found["error"].as_str().unwrap().contains("`--"), "an option in place of a key: {found}");
    }
    // What is found after the text was read has a place, too.
    for (body, line, column) in [
        ("workload: hello\nprotocol: mqtt7\n", 2, 11),
        ("workload: hello\nload:\n  qos: 7\n", 3, 8),
        ("workload: smart-hom\n", 1, 11),
        ("workload: hello\nslo: p98<1ms\n", 2, 6),
        ("workload: hello\nload: {links: [lte, nowhere]}\n", 2, 21),
        ("workload: hello\nnodes: {local_nodes: 0}\n", 2, 22),
        ("workload: hello\nrepetitions: 4000\n", 2, 14),
        ("capacity: hello\nwithin: 10s\nmost: 1e300\n", 3, 7),
        ("experiment: brokers\nrepeat: 4000000\n", 2, 9),
        ("workload: hello\nload: {faults: ['kil:at=1s']}\n", 2, 17),
        ("workload: hello\nload: {set: [intervall=1s]}\n", 2, 14),
        ("name: t\nworkload: hello\ndescriptoin: x\naxes: {system: builtin}\n", 3, 1),
    ] {
        for path in ["/validate", "/runs", "/dry-run"] {
            let found = server.post(path, body).of(422);
            assert_eq!(
                found["place"],
                serde_json::json!({"file": null, "line": line, "column": column}),
                "{path} {body}: {found}"
            );
        }
    }
    // As large a load is refused in an experiment and when it is sent, too.
    let large = "name: t\ntitle: T\nworkload: smart-home\nduration: 8s\nwarmup: 0s\naxes: {system: builtin, qos: [0], scale: [5000]}\n";
    for (path, body) in
        [("/validate", large), ("/runs", large), ("/runs", r#"{"workload": "smart-home", "scale": 5000}"#)]
    {
        let found = server.post(path, body).of(422);
        assert!(found["error"].as_str().unwrap().contains("connections"), "{path}: {found}");
    }
    // A wrong query and a wrong path are refused in the same form.
    let query = server.post("/dry-run?maschine=true", SHORT).of(400);
    let message = "the query cannot be used: maschine: unknown field `maschine`, expected `machine`";
    assert_eq!(query["error"], message, "{query}");
    for (path, status) in [("/run", 404), ("/systems", 405)] {
        assert!(server.post(path, SHORT).of(status)["hint"].as_str().unwrap().contains("/openapi.json"), "{path}");
    }
    assert_eq!(server.get("/runs").of(200)["total"], 0, "nothing was taken in");
}

#[test]
fn by_default_nothing_foreign_is_started() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let text = "name: w\ndevices: [{name: a, every: 1s, payload: 50B, topic: t}]\nsubscribers: [{name: s, filters: [t]}]\n\
                metrics: [{name: a, command: [touch, /tmp/evil]}]\n";
    let own = serde_json::json!({"file_name": "w.yaml", "text": text});
    let [run, search] = ["workload", "capacity"].map(|key| serde_json::json!({key: own}).to_string());
    for (body, right) in [
        (r#"{"workload": "hello", "system": "mosquitto"}"#, "systems"),
        (r#"{"workload": "hello", "endpoint": "mqtt://127.0.0.1:1883"}"#, "endpoints"),
        (r#"{"workload": "hello", "system": "/tmp/mine.yaml"}"#, "commands"),
        (r#"{"workload": "/etc/passwd"}"#, "commands"),
        (r#"{"workload": "hello", "load": {"set": ["devices.0.credentials.file=/etc/passwd"]}}"#, "commands"),
        (
            r#"{"name": "t", "workload": "hello", "set": {"devices.0.payload.sizes.file": "/etc/passwd"}, "axes": {"system": "builtin"}}"#,
            "commands",
        ),
        (r#"{"workload": "hello", "protocols": {"client": "touch /tmp/evil"}}"#, "commands"),
        (r#"{"workload": "hello", "metrics": [{"name": "a", "command": ["touch", "/tmp/evil"]}]}"#, "commands"),
        // A program by settings: the first adds the section, the second replaces it.
        (
            r#"{"workload": "hello", "load": {"set": ["metrics.x=1", "metrics=[{name: a, command: [touch, /tmp/evil]}]"]}}"#,
            "commands",
        ),
        (
            r#"{"choose": {"workload": "hello", "objectives": "loss=0", "candidates": ["builtin"], "load": {"set": ["metrics.x=1", "metrics=[{name: a, command: [touch, /tmp/evil]}]"]}}}"#,
            "commands",
        ),
        (
            r#"{"name": "t", "workload": "hello", "set": {"metrics.x": "1", "metrics": "[{name: a, command: [touch, /tmp/evil]}]"}, "axes": {"system": "builtin"}}"#,
            "commands",
        ),
        (
            r#"{"name": "t", "workload": "hello", "set": {"metrics.x": "1"}, "axes": {"system": "builtin", "set": {"metrics": "[{name: a, command: [touch, /tmp/evil]}]"}}}"#,
            "commands",
        ),
        (
            r#"{"name": "t", "workload": "hello", "axes": {"system": "builtin", "client": "evil=touch /tmp/evil"}}"#,
            "commands",
        ),
        (run.as_str(), "commands"),
        (search.as_str(), "commands"),
        (r#"{"capacity": "hello", "system": "mosquitto"}"#, "systems"),
        (r#"{"experiment": "brokers"}"#, "systems"),
        (
            r#"{"name": "t", "workload": "hello", "axes": {"system": {"endpoint": "mqtt://127.0.0.1:1883", "label": "ours"}}}"#,
            "endpoints",
        ),
    ] {
        let refused = server.post("/runs", body).of(403);
        assert!(refused["hint"].as_str().unwrap().contains(&format!("--allow {right}")), "{body}: {refused}");
    }
    for (body, near) in [
        (r#"{"workload": "smart-hom"}"#, "smart-home"),
        (r#"{"workload": "hello", "system": "mosquito"}"#, "mosquitto"),
    ] {
        let refused = server.post("/runs", body).of(422);
        assert!(refused["hint"].as_str().unwrap().contains(near), "{body}: {refused}");
    }
    for query in ["/runs?state=done", "/runs?limit=many", "/runs?color=red"] {
        let refused = server.get(query).of(400);
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("query")), "{query}: {refused}");
    }
    for query in ["/runs?limit=0", "/runs?limit=501", "/nodes?limit=0", "/nodes?limit=501"] {
        let refused = server.get(query).of(400);
        assert!(refused["error"].as_str().unwrap().contains("`limit` is 1 to 500"), "{query}: {refused}");
    }
    let allowing = folder();
    // The form says the same, before anything is refused.
    let field = |server: &Server| {
        let form = server.get("/new").body;
        let begin = form.find(r#"id="endpoint""#).expect("a field");
        form[begin..].split_once("</div>").unwrap().0.to_owned()
    };
    assert!(field(&server).contains(" disabled") && field(&server).contains("--allow endpoints"), "{}", field(&server));
    let server = Server::start(allowing.path(), &["--allow", "endpoints"]);
    assert!(!field(&server).contains(" disabled") && !field(&server).contains("--allow"), "{}", field(&server));
    let id = server.submit(r#"{"workload": "hello", "endpoint": "mqtt://127.0.0.1:9", "duration": "1s"}"#);
    let failed = server.wait(&id, &["failed"]);
    assert!(failed["error"]["chain"][0].as_str().unwrap().contains("127.0.0.1:9"), "{failed}");
}

#[test]
fn others_may_connect_only_with_encryption() {
    let place = folder();
    let serve = |options: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_pubmark"))
            .arg("serve")
            .args(options)
            .current_dir(place.path())
            .env("XDG_RUNTIME_DIR", session(place.path()))
            .output()
            .unwrap()
    };
    let refused = serve(&["--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--tls-self"), "{refused:?}");
    assert_eq!(serve(&["--tls-cert", "x.pem"]).status.code(), Some(2));
    assert_eq!(serve(&["--tls-cert", "x.pem", "--tls-key", "y.pem"]).status.code(), Some(2));
}
