//! Metrics of the user's own: their programs receive the whole log, their values are in the record, the report, limits
//! and comparisons, and an error in them affects only their value.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pubmark_testing::assert_count_eq;
use serde_json::{Value, json};

use crate::support::books::{assert_closed, count};
use crate::support::place::Place;
use crate::support::processes;
use crate::support::schema;

const TIMES: [&str; 4] = ["--duration", "1s", "--warmup", "1s"];

/// Counts delivered messages: from standard input, and from the record at the given path. The Parquet file begins with
/// its magic number.
const COUNT: &str = r#"
import json, os, sys
rows = [json.loads(line) for line in sys.stdin]
with open(os.environ["PUBMARK_MESSAGE_LOG"], "rb") as log:
    assert log.read(4) == b"PAR1"
with open(os.environ["PUBMARK_RECORD"]) as file:
    record = json.load(file)
by = {}
for row in rows:
    if row["outcome"] == "delivered":
        by[row["type"]] = by.get(row["type"], 0) + 1
assert sum(by.values()) == record["delivery"]["delivered"]
print(json.dumps({"count": {"value": sum(by.values()), "by": by}}))
"#;

/// The output of a program of the repository for these rows.
fn computed(program: &str, rows: &[Value]) -> Value {
    let path = format!("{}/../../metrics/{program}", env!("CARGO_MANIFEST_DIR"));
    let mut child =
        Command::new("python3").arg(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A delivery of publisher 0 at subscriber 0: due and received in ms, and the width of its latency's interval.
fn delivery(due_ms: i64, received_ms: i64, unsure_ms: i64) -> Value {
    let upper = (received_ms - due_ms) * 1_000_000;
    json!({
        "publisher": 0, "subscriber": 0, "type": "sensor", "outcome": "delivered",
        "due_ns": due_ms * 1_000_000, "received_ns": received_ms * 1_000_000,
        "latency_lower_ns": upper - unsure_ms * 1_000_000, "latency_upper_ns": upper,
    })
}

#[test]
fn jitter_is_that_of_rfc_3550() {
    // Latencies of 1, 3 and 1 ms: |D| is 2 twice; J = 2/16 = 0.125, then 0.125 + (2 − 0.125)/16 = 0.2421875.
    let exact = [delivery(0, 1, 0), delivery(10, 13, 0), delivery(20, 21, 0)];
    let found = computed("jitter.py", &exact);
    assert_eq!(found["jitter"]["lower"], 0.2421875, "{found}");
    assert_eq!(found["jitter"]["by"]["sensor"]["upper"], 0.2421875, "{found}");
    // The second latency is 2 to 3 ms: |D| is 1 to 2, twice.
    let unsure = [delivery(0, 1, 0), delivery(10, 13, 1), delivery(20, 21, 0)];
    let found = computed("jitter.py", &unsure);
    assert_eq!(found["jitter"]["lower"], 0.12109375, "{found}");
    assert_eq!(found["jitter"]["upper"], 0.2421875, "{found}");
    assert_eq!(computed("jitter.py", &exact[..1])["jitter"], Value::Null, "one message has no jitter");
}

#[test]
fn age_is_the_mean_over_time_of_the_newest_value() {
    // From 1 to 13 ms the value of 0 ms is the newest: (13² − 1²)/2 = 84; from 13 to 21 that of 10 ms: (11² − 3²)/2 = 56; 140 in 20 ms.
    let rows = [delivery(0, 1, 0), delivery(10, 13, 0), delivery(20, 21, 0)];
    assert_eq!(computed("age_of_information.py", &rows)["age"]["value"], 7.0);
    // A message that arrives out of order is not newer: from 21 to 25 ms that of 20 ms is the newest, (5² − 1²)/2 = 12;
    // 152 in 24 ms.
    let overtaken = [&rows[..], &[delivery(5, 25, 0)]].concat();
    let found = computed("age_of_information.py", &overtaken)["age"]["by"]["sensor"].as_f64().unwrap();
    assert!((found - 152.0 / 24.0).abs() < 1e-9, "{found}");
}

#[test]
fn a_program_gets_the_whole_log_and_its_value_goes_wherever_figures_go() {
    let place = Place::new();
    place.write("count.py", COUNT);
    let metric = ["--metric", "count=python3 count.py", "--slo", "custom.count>1"];
    let record = place.record(&[&["smart-home"][..], &TIMES, &metric].concat());
    assert_closed(&record);
    schema::assert_agrees(&record);
    let own = &record["custom"][0];
    assert_eq!((&own["name"], own.get("failure")), (&json!("count"), None), "{own}");
    assert_count_eq!(own["upper"].as_f64().unwrap() as u64, count(&record, "delivered"), "{own}");
    assert_eq!(own["lower"], own["upper"]);
    assert!(own["by"].as_object().unwrap().len() > 3, "{own}");
    assert_eq!(own["sources"]["count.py"].as_str().unwrap().len(), 64, "{own}");
    assert_eq!(record["objectives"][0]["outcome"], "passed");
    let folder = place.runs().remove(0).0;
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for (file, words) in [
        ("report.html", "Metrics of your own"),
        ("summary.md", "## Metrics of your own"),
        ("csv/custom.csv", ",count,,"),
        ("run.yaml", "name: count"),
        ("record.json", "\"custom\""),
    ] {
        assert!(read(file).contains(words), "{file} has no `{words}`");
    }
    let table = place.call(&["table", "runs/latest", "--format", "csv"]);
    let head = table.printed.lines().next().unwrap();
    assert!(head.contains(",custom_count,") && head.ends_with(",custom_count_lower"), "{table:?}");
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let check = |limits: &str| place.call(&["check", &format!("runs/{name}"), "--require", limits]);
    assert!(check("custom.count>1").printed.contains("custom.count>1"));
    assert_eq!(check("custom.count<1").code(), 3, "{:?}", check("custom.count<1"));
    assert_eq!(check("custom.other<1").code(), 3, "what was not measured was not kept");
    // The specification repeats the run, metric included.
    let again = place.record(&[&format!("runs/{name}/run.yaml")]);
    assert_eq!(again["custom"][0]["command"], own["command"]);
    let both: Vec<String> = place.runs().iter().map(|(folder, _)| folder.display().to_string()).collect();
    let compared = place.call(&["compare", &both[0], &both[1], "--html", "compared.html"]);
    assert!(compared.printed.contains("custom.count: "), "{compared:?}");
    assert!(std::fs::read_to_string(place.path().join("compared.html")).unwrap().contains("custom.count"));
}

#[test]
fn whatever_a_program_does_wrong_is_named_and_costs_its_value_alone() {
    let place = Place::new();
    let mark = format!("{}.25", 86_000 + std::process::id() % 10_000);
    place.write(
        "wrong.yaml",
        format!(
            "name: wrong
devices: [{{name: sensor, count: 5, every: 20ms, payload: 60B, topic: 't/{{index}}'}}]
subscribers: [{{name: all, filters: ['t/#']}}]
metrics:
  - {{name: broken, command: [./broken]}}
  - {{name: fails, command: [sh, -c, 'echo \"no module named x\" >&2; exit 3']}}
  - {{name: killed, command: [sh, -c, 'kill -9 $$']}}
  - {{name: endless, command: [sh, -c, 'sleep {mark} & sleep {mark}'], within: 500ms}}
  - {{name: escaped, command: [sh, -c, 'setsid sleep {mark} & sleep 0.3']}}
  - {{name: loud, command: [cat, /dev/zero]}}
  - {{name: mute, command: ['true']}}
  - {{name: nonsense, command: [printf, 'hello\\033[31m']}}
  - {{name: other, command: [echo, '{{\"another\": 1}}']}}
  - {{name: early, command: [echo, '{{\"early\": 1}}'], unit: mJ}}
"
        ),
    );
    // Its interpreter does not exist, which is seen only when it is started.
    place.write("broken", "#!/nonexistent/interpreter\n");
    std::fs::set_permissions(place.path().join("broken"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let called =
        place.call(&[&["run", "wrong.yaml", "--json", "--quiet", "--slo", "custom.fails<1"][..], &TIMES].concat());
    // 5 on a machine so busy that the run is invalid.
    assert!(matches!(called.code(), 3 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    let of = |name: &str| {
        let found = record["custom"].as_array().unwrap().iter().find(|metric| metric["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    for (name, words) in [
        ("broken", "failed to start `./broken`: No such file"),
        ("fails", "it ended with exit status 3; it printed: no module named x"),
        ("killed", "it ended with signal 9"),
        ("endless", "it was stopped: it took longer than 0.5 s"),
        ("loud", "it printed more than 4 MiB"),
        ("mute", "no JSON object but nothing"),
        ("nonsense", "no JSON object but hello"),
        ("other", "a value of `another`, and its metric is called `other`"),
    ] {
        let metric = of(name);
        assert!(metric["failure"].as_str().unwrap().contains(words), "{name}: {metric}");
        assert_eq!((&metric["lower"], &metric["upper"]), (&Value::Null, &Value::Null), "{metric}");
    }
    let page = place.call(&["report", place.runs()[0].0.to_str().unwrap()]).printed;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = "other no value: it printed a value of `another`, and its metric is called `other`";
    assert!(words.contains(reason), "{page}");
    assert_eq!(of("early")["upper"], 1.0, "a program need not read the log");
    assert_eq!(record["objectives"][0]["outcome"], "not-measured");
    // `setsid` intentionally leaves the process group and is not killed with it; all other processes have ended.
    let left = processes::with_files_in(Path::new(&mark));
    left.iter().for_each(|pid| processes::signal(*pid, libc::SIGKILL));
    assert_eq!(left.len(), 1, "`endless` leaves nothing: {left:?}");
}

#[test]
fn a_call_that_cannot_be_carried_out_is_refused_before_the_run() {
    let place = Place::new();
    place.write(
        "twice.yaml",
        "name: twice
devices: [{name: sensor, count: 5, every: 20ms, payload: 60B, topic: 't/{index}'}]
subscribers: [{name: all, filters: ['t/#']}]
metrics:
  - {name: age, command: ['true']}
  - {name: age, command: ['false']}
",
    );
    for (arguments, words) in [
        (&["run", "smart-home", "--metric", "jitter"][..], "a metric has a command"),
        (&["run", "smart-home", "--metric", "9=true"], "is no name of a metric"),
        (&["run", "smart-home", "--metric", "a:ms per s=true"], "is no unit"),
        (&["run", "smart-home", "--metric", "a=sh 'b"], "cannot be read"),
        (
            &["run", "smart-home", "--metric", "a=no-such-program b"],
            "metric `a`: there is no program `no-such-program`",
        ),
        (&["run", "smart-home", "--metric", "a=./twice.yaml"], "there is no program `./twice.yaml`"),
        (&["run", "smart-home", "--slo", "custom.jitter<2ms"], "there is no metric `jitter`"),
        (&["run", "smart-home", "--metric", "a:ms=true", "--slo", "custom.a<2kB"], "counts in ms"),
        (&["run", "twice.yaml"], "there are two metrics `age`"),
        (&["run", "smart-home", "--metric", "a=true", "--metric", "a=false"], "there are two metrics `a`"),
        (&["capacity", "smart-home", "--slo", "custom.a<2ms"], "no limits on metrics of your own"),
    ] {
        let called = place.call(arguments);
        assert_eq!(called.code(), 2, "{arguments:?}: {called:?}");
        let line = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.contains(words), "{arguments:?}: {}", called.errors);
    }
    assert!(place.runs().is_empty(), "{:?}", place.runs());
}

#[test]
fn an_interrupt_ends_the_programs_and_leaves_the_run() {
    let place = Place::new();
    let sleeps = &format!("{}.125", 86_000 + std::process::id() % 10_000);
    let metric = ["--metric", &format!("endless=sleep {sleeps}"), "--metric", &format!("next=sleep {sleeps}")];
    let call = place.start(&[&["run", "smart-home"][..], &TIMES, &metric].concat());
    let is_started = || processes::with_files_in(Path::new(sleeps)).iter().any(|pid| *pid != call.pid());
    processes::wait_for("the program of the metric", Duration::from_secs(30), is_started);
    call.signal(libc::SIGINT);
    let began = Instant::now();
    let called = call.wait();
    assert!(began.elapsed() < Duration::from_secs(5), "{called:?}");
    let (_, record) = place.runs().remove(0);
    assert_eq!(record["custom"][0]["failure"], "it was stopped with the run");
    assert_eq!(record["custom"][1]["failure"], "not computed: the run was stopped");
    assert_closed(&record);
    assert!(processes::with_files_in(Path::new(sleeps)).is_empty());
}
