//! Deployments by a simulated `kubectl`: what is called, what is shown, and what is left.

use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::{Value, json};

use crate::deploy::{deploy, read};
use crate::support::place::{Call, Called, Place};
use crate::support::processes::{is_there, wait_for};

/// What was printed to standard error, without line breaks.
fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Simulates `kubectl`: logs its arguments, prints the coordinator's pod from `$PLACE/pods.json`, and runs the commands
/// of `exec`. A call for which `$PLACE` has a file `VERB-hangs` writes its process ID to that file, and does not end. As long as
/// there is a file `cut-N`, `exec` removes it, and brings the first N bytes of the results without an error; with `then.json`, it
/// fails, and the pods are those of this file from then on. `$PLACE/log` is the coordinator's log.
const KUBECTL: &str = r#"#!/bin/sh
printf '%s\n' "$*" >>"$PLACE/asked"
for verb in send pods logs; do
    case "$*" in
    *"$verb "*) if [ -e "$PLACE/$verb-hangs" ]; then echo $$ >"$PLACE/$verb-hangs"; exec sleep 300; fi ;;
    esac
done
case "$*" in
*" create "*) [ ! -e "$PLACE/refuses" ] || { echo 'Error from server: exceeded quota' >&2; exit 1; } ;;
*"get job "*) if [ -e "$PLACE/job.json" ]; then cat "$PLACE/job.json"; else printf '{"metadata": {"uid": "u-1"}}'; fi ;;
*"get pods "*) cat "$PLACE/pods.json" ;;
*"get events "*) printf '{"items": []}' ;;
*" pod send "*)
    for cut in "$PLACE"/cut-*; do
        [ -e "$cut" ] || break
        rm "$cut"
        "$PUBMARK" pod send --results "$PLACE/pod" --limit 5s | head -c "${cut##*-}"
        if [ -e "$PLACE/then.json" ]; then mv "$PLACE/then.json" "$PLACE/pods.json"; exit 1; fi
        exit 0
    done
    exec "$PUBMARK" pod send --results "$PLACE/pod" --limit 5s ;;
*" pod release "*) exec "$PUBMARK" pod release --results "$PLACE/pod" ;;
*"logs "*) if [ -e "$PLACE/log" ]; then cat "$PLACE/log"; else echo 'error: there is no such workload'; fi ;;
esac
"#;

/// The coordinator's pod with a container in this state.
fn pod(state: &Value) -> String {
    let status = json!({"containerStatuses": [{"name": "coordinator", "restartCount": 0, "state": state}]});
    let labels = json!({"app.kubernetes.io/component": "coordinator"});
    json!({"items": [{"metadata": {"name": "c-1", "labels": labels}, "status": status}]}).to_string()
}

fn apply(place: &Place, out: &str) -> Called {
    applying(place, &["--wait", "--out", out]).wait()
}

/// A deployment by the simulated `kubectl`, under way.
fn applying(place: &Place, options: &[&str]) -> Call {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = place.path().join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("kubectl"), KUBECTL).unwrap();
    std::fs::set_permissions(folder.join("kubectl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(crate::support::place::PUBMARK);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("PLACE", place.path()).env("PUBMARK", crate::support::place::PUBMARK);
    place.start_by(command, &[&["deploy", "kubernetes", "smart-home", "--apply"][..], options].concat())
}

/// The calls of `kubectl` since the previous query.
fn asked(place: &Place) -> Vec<String> {
    let file = place.path().join("asked");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Makes the coordinator's pod one that has the results of a run. Returns its record and exit code.
fn ended(place: &Place) -> (Value, i32) {
    let record = place.record(&["smart-home", "--duration", "1s", "--warmup", "0s"]);
    let (run, _) = place.runs().remove(0);
    let code = if record["verdict"]["status"] == "invalid" { 5 } else { 0 };
    std::fs::create_dir_all(place.path().join("pod/runs")).unwrap();
    std::fs::rename(&run, place.path().join("pod/runs/one")).unwrap();
    place.write("pod/exit-code", code.to_string());
    place.write("pods.json", pod(&json!({"running": {}})));
    (record, code)
}

#[test]
fn a_run_is_deployed_collected_with_all_its_files_and_deleted() {
    let place = Place::new();
    let (record, code) = ended(&place);
    let called = apply(&place, "out");
    assert_eq!(called.code(), code, "{called:?}");
    assert!(called.printed.contains("smart-home"), "{called:?}");
    let kept: Value = serde_json::from_str(&read(&place, "out/record.json")).unwrap();
    assert_count_eq!(kept["delivery"], record["delivery"]);
    for file in ["report.html", "run.yaml", "csv/series.csv"] {
        assert!(place.path().join("out").join(file).is_file(), "{file}");
    }
    assert!(!place.path().join("out/results.tar").exists());
    assert!(place.path().join("pod/collected").exists(), "the pod may end");
    let asked = asked(&place);
    let owned = asked.iter().filter(|line| line.contains("patch ") && line.contains("u-1")).count();
    assert_count_eq!(owned, 8, "the cluster removes them with the coordinator's Job: {asked:?}");
    assert!(asked[0].contains(" create -f "), "nothing that is there already is changed: {asked:?}");
    assert!(asked.last().unwrap().contains(" delete --ignore-not-found"), "{asked:?}");
}

#[test]
fn results_that_arrive_in_part_are_fetched_again_before_anything_is_deleted() {
    let place = Place::new();
    let (record, code) = ended(&place);
    // Nothing, a part of a header, and a part of a file.
    for bytes in ["0", "100", "3000"] {
        place.write(&format!("cut-{bytes}"), "");
    }
    let called = applying(&place, &["--wait", "--out", "out", "--", "--duration", "2h"]).wait();
    assert_eq!(called.code(), code, "{called:?}");
    let kept: Value = serde_json::from_str(&read(&place, "out/record.json")).unwrap();
    assert_count_eq!(kept["delivery"], record["delivery"]);
    let asked = asked(&place);
    let sent: Vec<usize> = (0..asked.len()).filter(|call| asked[*call].contains(" pod send ")).collect();
    let released = asked.iter().position(|line| line.contains(" pod release ")).unwrap();
    assert_count_eq!(sent.len(), 4, "{asked:?}");
    assert!(sent.iter().all(|call| *call < released), "the pod keeps its results until they are here: {asked:?}");
    // The limit of the wait, which the pod has, too, is longer than the run.
    let limit = asked[sent[0]].split(' ').next_back().and_then(|limit| limit.strip_suffix('s')).unwrap();
    assert!(limit.parse::<u64>().unwrap() > 7_200, "{limit}");
}

#[test]
fn a_pod_that_ends_before_its_results_are_here_is_not_one_without_results() {
    let place = Place::new();
    ended(&place);
    place.write("cut-3000", "");
    place.write("then.json", pod(&json!({"terminated": {"exitCode": 0}})));
    let called = apply(&place, "cut");
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(words(&called).contains("arrived in part only, 1 times, until its pod ended with 0"), "{called:?}");
    // The pod has ended before the first attempt to fetch them.
    place.write("log", "no coordinator collected the results\n");
    let called = apply(&place, "unfetched");
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(words(&called).contains("ended with 0 before its results were fetched"), "{called:?}");
}

#[test]
fn a_folder_with_results_is_refused_before_anything_is_placed() {
    let place = Place::new();
    for (out, earlier) in [("one", "record.json"), ("several", "run-1/record.json")] {
        std::fs::create_dir_all(place.path().join("several/run-1")).unwrap();
        std::fs::create_dir_all(place.path().join("one")).unwrap();
        place.write(&format!("{out}/{earlier}"), "{}");
        let called = apply(&place, out);
        assert!(called.code() == 2 && words(&called).contains("has results of an earlier run"), "{called:?}");
        assert!(!place.path().join("asked").exists(), "kubectl was called: {called:?}");
        assert!(!place.path().join(out).join("pubmark.yaml").exists(), "{called:?}");
    }
}

#[test]
fn results_that_cannot_be_unpacked_are_named() {
    let place = Place::new();
    ended(&place);
    std::fs::create_dir(place.path().join("out")).unwrap();
    place.write("out/report.html", "of mine");
    let called = apply(&place, "out");
    assert_ne!(called.code(), 0, "{called:?}");
    for said in ["`out/results.tar`, which has the results of the run", "`out/report.html`: File exists"] {
        assert!(words(&called).contains(said), "{said}: {called:?}");
    }
    assert!(place.path().join("out/results.tar").is_file(), "nothing else has them");
    assert_eq!(read(&place, "out/report.html"), "of mine");
}

#[test]
fn a_run_without_a_connection_has_a_reason_and_leaves_no_folder() {
    let place = Place::new();
    place.write("pods.json", pod(&json!({"terminated": {"exitCode": 2}})));
    let called = apply(&place, "ended");
    assert!(called.code() == 6 && called.errors.contains("there is no such workload"), "{called:?}");
    assert!(asked(&place).last().unwrap().contains(" delete "), "what was placed is taken away");
    // The cluster refuses some of it.
    place.write("refuses", "");
    let called = apply(&place, "refused");
    assert!(called.code() == 6 && called.errors.contains("exceeded quota"), "{called:?}");
    assert!(asked(&place).last().unwrap().contains(" delete "), "what was placed is taken away");
    let compose = place.call(&["deploy", "compose", "smart-home", "--apply"]);
    assert!(compose.code() == 2 && compose.errors.contains("--apply"), "{compose:?}");
    let alone = deploy(&place, &["compose", "smart-home", "--out", "alone", "--no-observer"]);
    assert_eq!(alone.code(), 0, "{alone:?}");
    assert!(!read(&place, "alone/compose.yaml").contains("observe"));
    let compose = place.call(&["deploy", "compose", "smart-home", "--namespace", "a"]);
    assert!(compose.code() == 2 && compose.errors.contains("--namespace"), "{compose:?}");
}

#[test]
fn a_run_that_is_not_waited_for_stays_in_the_cluster_with_the_commands_for_it() {
    let place = Place::new();
    let called = applying(&place, &["--out", "out", "--namespace", "bench", "--context", "mine"]).wait();
    assert_eq!(called.code(), 0, "{called:?}");
    let kubectl = "kubectl --context mine --namespace bench";
    for command in ["logs --follow job/pubmark-", "exec job/pubmark-", "delete -f out/pubmark.yaml"] {
        assert!(called.printed.contains(&format!("{kubectl} {command}")), "{command}: {called:?}");
    }
    assert!(!called.printed.contains(" create "), "{called:?}");
    let calls = asked(&place);
    assert!(calls[0].contains(" create -f "), "{calls:?}");
    assert!(calls.iter().any(|line| line.contains("patch ")), "they go with the coordinator's Job: {calls:?}");
    assert!(!calls.iter().any(|line| line.contains(" delete ") || line.contains("get pods")), "{calls:?}");
    // What the cluster refuses in part is taken away.
    place.write("refuses", "");
    let called = applying(&place, &["--out", "refused"]).wait();
    assert!(called.code() == 6 && called.errors.contains("exceeded quota"), "{called:?}");
    assert!(asked(&place).last().unwrap().contains(" delete "), "what was placed is taken away");
    for (options, said) in [(&["--wait"][..], "--apply"), (&["--apply", "--apply-limit", "5s"], "--wait")] {
        let called = deploy(&place, &[&["kubernetes", "smart-home", "--out", "alone"], options].concat());
        assert!(called.code() == 2 && called.errors.contains(said), "{options:?}: {called:?}");
    }
}

#[test]
fn a_coordinator_that_ends_before_its_nodes_joined_is_named_at_once() {
    let place = Place::new();
    // Nodes that wait for it: one runs, one has no machine.
    let node = |name: &str, status: &Value| {
        let labels = json!({"app.kubernetes.io/component": "node"});
        json!({"metadata": {"name": name, "labels": labels}, "status": status})
    };
    let runs = json!({"containerStatuses": [{"name": "node", "restartCount": 0, "state": {"running": {}}}]});
    let nodes = [node("n-0", &runs), node("n-1", &json!({}))];
    let mut failed: Value = serde_json::from_str(&pod(&json!({"terminated": {"exitCode": 2}}))).unwrap();
    failed["items"].as_array_mut().unwrap().extend(nodes.clone());
    place.write("pods.json", failed.to_string());
    let called = apply(&place, "failed");
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(words(&called).contains("ended with 2 and has no results"), "{called:?}");
    assert!(words(&called).contains("there is no such workload"), "the last words of its log: {called:?}");
    assert!(called.took < Duration::from_secs(20), "{called:?}");
    assert!(asked(&place).last().unwrap().contains(" delete "), "the nodes wait no longer");
    // Its pod was deleted or evicted, so that only its Job says so.
    place.write("pods.json", json!({"items": nodes}).to_string());
    let condition = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"});
    place.write("job.json", json!({"metadata": {"uid": "u-1"}, "status": {"conditions": [condition]}}).to_string());
    let called = apply(&place, "gone");
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(words(&called).contains("failed and has no results: BackoffLimitExceeded"), "{called:?}");
    assert!(called.took < Duration::from_secs(20), "{called:?}");
    assert!(asked(&place).last().unwrap().contains(" delete "), "the nodes wait no longer");
}

/// The process of a call that hangs, once it does.
fn hanging(place: &Place, verb: &str) -> u32 {
    let mut pid = None;
    wait_for(&format!("the call for `{verb}`"), Duration::from_secs(30), || {
        pid = read(place, &format!("{verb}-hangs")).trim().parse().ok();
        pid.is_some()
    });
    pid.unwrap()
}

#[test]
fn calls_of_kubectl_end_with_a_pubmark_that_is_killed() {
    let place = Place::new();
    place.write("pods.json", pod(&json!({"running": {}})));
    for verb in ["send", "logs"] {
        place.write(&format!("{verb}-hangs"), "");
    }
    let call = applying(&place, &["--wait"]);
    let calls = ["send", "logs"].map(|verb| hanging(&place, verb));
    call.signal(libc::SIGKILL);
    wait_for("the end of both calls", Duration::from_secs(10), || !calls.into_iter().any(is_there));
    assert_eq!(call.wait().status.code(), None, "a signal ended it");
}

#[test]
fn a_call_of_kubectl_that_hangs_ends_with_the_wait_for_the_run() {
    for (options, signal, code, said) in [
        (&["--wait", "--out", "stopped"][..], true, 130, "interrupted"),
        (&["--wait", "--out", "late", "--apply-limit", "5s"], false, 6, "has not ended within 5 s"),
    ] {
        let place = Place::new();
        place.write("pods-hangs", "");
        let call = applying(&place, options);
        let hangs = hanging(&place, "pods");
        if signal {
            call.signal(libc::SIGINT);
        }
        let called = call.wait();
        assert!(called.code() == code && called.errors.contains(said), "{options:?}: {called:?}");
        assert!(called.took < Duration::from_secs(30), "{options:?}: {called:?}");
        assert!(!is_there(hangs), "{options:?}");
        assert!(asked(&place).last().unwrap().contains(" delete "), "what was placed is taken away");
    }
}
