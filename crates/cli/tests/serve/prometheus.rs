//! A real Prometheus scrapes a real run, and its values are those of the record.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::call;
use crate::server::{Server, folder, wait_for};

/// A run of some thousand messages.
const RUN: &str = r#"{"workload": "smart-home", "duration": "5s", "warmup": "1s", "scale": 10}"#;

/// Prometheus; killed when dropped.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    /// Scrapes a server with its token; `None` without the program.
    fn start(place: &Path, server: &Server) -> Option<Prometheus> {
        let credentials = server.runs().join(".serve/token");
        let config = format!(
            "global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}\n\
             scrape_configs:\n- job_name: pubmark\n  authorization: {{credentials_file: '{}'}}\n  \
             static_configs: [{{targets: ['127.0.0.1:{}']}}]\n",
            credentials.display(),
            server.port
        );
        std::fs::write(place.join("prometheus.yml"), config).unwrap();
        let port = pubmark_conformance::ports::free().port();
        let spawned = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", "--log.level=warn"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        match spawned {
            Ok(child) => Some(Prometheus { child, port }),
            Err(error) => {
                pubmark_testing::skip(format_args!("no prometheus ({error}; `apt-get install prometheus`)"));
                None
            }
        }
    }

    /// The only value of a query; `None` if there is none yet.
    fn value(&self, query: &str) -> Option<f64> {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let path = format!("/api/v1/query?query={}", encoded(query));
        let response = call::request(self.port, "GET", &path, None, "");
        if response.status != 200 {
            return None;
        }
        let answer = response.json();
        let found = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{query}: {answer}"));
        assert!(found.len() <= 1, "{query}: {answer}");
        Some(found.first()?["value"][1].as_str().unwrap().parse().unwrap())
    }
}

/// The query in percent-encoding.
fn encoded(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Queries of the Grafana dashboard, with Grafana's variables replaced.
fn dashboard() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/grafana/pubmark.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let query =
        |target: &Value| target["expr"].as_str().unwrap().replace("$__rate_interval", "1m").replace("$run", ".*");
    targets.map(query).collect()
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_has_the_counts_and_the_percentiles_of_the_record() {
    let place = folder();
    let server = Server::start(place.path(), &[]);
    let Some(prometheus) = Prometheus::start(place.path(), &server) else { return };
    wait_for("a first scrape", || prometheus.value("up{job='pubmark'} == 1"));
    let id = server.submit(RUN);
    server.wait(&id, &["complete"]);
    let record = server.get(&format!("/runs/{id}/record")).of(200);
    // Losses are known last.
    let lost = wait_for("the last scrape", || prometheus.value("pubmark_lost_messages_total"));
    assert_count_eq!(Some(lost), record["delivery"]["lost"].as_f64());
    for (name, field) in [
        ("pubmark_offered_messages_total", "offered"),
        ("messaging_client_sent_messages_total", "sent"),
        ("messaging_client_consumed_messages_total", "delivered"),
        ("pubmark_delivery_latency_seconds_count", "delivered"),
    ] {
        assert_count_eq!(prometheus.value(name), record["delivery"][field].as_f64(), "{name}");
        assert_eq!(prometheus.value(&format!("resets({name}[5m])")), Some(0.0), "{name} went back");
    }
    let scrapes = prometheus.value("count_over_time(messaging_client_sent_messages_total[5m])");
    assert!(scrapes > Some(5.0), "seen while it went on: {scrapes:?}");
    the_dashboard_shows_the_run(&prometheus);
    for (quantile, field) in [("0.5", "p50_us"), ("0.99", "p99_us")] {
        for (bound, name) in
            [("upper", "pubmark_delivery_latency_seconds"), ("lower", "pubmark_delivery_latency_lower_seconds")]
        {
            let found_s = prometheus.value(&format!("histogram_quantile({quantile}, {name}_bucket)")).unwrap();
            let recorded_us =
                record["latency"]["total"][bound][field].as_f64().unwrap_or_else(|| panic!("{}", latency(&record)));
            let (found, recorded) = (bucket(found_s), bucket(recorded_us / 1e6));
            assert!(found.abs_diff(recorded) <= 1, "{bound} {field}: {found_s} s, in the record {recorded_us} µs");
        }
    }
}

/// Prometheus accepts every query of the dashboard, and each returns data of the run.
fn the_dashboard_shows_the_run(prometheus: &Prometheus) {
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let queries = dashboard();
    assert!(queries.len() >= 16, "{queries:?}");
    for query in queries {
        // To the next whole second: losses came with the last scrape.
        let range = format!("start={}&end={}&step=1", now_s - 120, now_s + 1);
        let path = format!("/api/v1/query_range?query={}&{range}", encoded(&query));
        let found = call::request(prometheus.port, "GET", &path, None, "").of(200);
        let series = found["data"]["result"].as_array().unwrap_or_else(|| panic!("{query}: {found}"));
        assert!(!series.is_empty(), "nothing to draw for `{query}`");
    }
}

fn latency(record: &Value) -> &Value {
    &record["latency"]["total"]
}

/// Number of the bucket that a latency is in.
fn bucket(seconds: f64) -> usize {
    let edges = pubmark_runner::stream::latency_edges_ns().map(|edge_ns| edge_ns as f64 / 1e9);
    edges.take_while(|edge| *edge < seconds).count()
}
