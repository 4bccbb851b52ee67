//! Devices that renew their tokens on open connections, at a broker that accepts them or refuses some.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::liar::{Liar, Truth};

const SECRET: &str = "planted-secret-of-32-bytes-zq9-zq9";

/// Three devices with tokens of 4 s, which they renew 2 s before these expire, for 7 s: after 2, 4 and 6 s.
fn run(script: &str) -> Truth {
    let liar = Liar::start(script);
    std::fs::write(liar.folder().join("secret"), SECRET).unwrap();
    let workload = "name: renewed
devices:
  - name: pump
    count: 3
    every: 100ms
    payload: 60B
    qos: 1
    credentials:
      client_id: pump-{device}
      token: {algorithm: HS256, file: secret, lifetime: 4s, claims: {sub: \"{client_id}\"}, reauthenticate: {method: JWT, before: 2s}}
subscribers:
  - {name: all, filters: ['renewed/#'], qos: 1}
";
    let truth = liar.run_workload(workload, &["--duration", "7s", "--warmup", "0s", "--protocol", "mqtt5"]);
    truth.demand_agreement();
    let text = truth.record.to_string();
    assert!(!text.contains(SECRET) && !text.contains("eyJ"), "a secret or a token is in the record");
    truth
}

fn connections(truth: &Truth, name: &str) -> u64 {
    truth.record["connections"].get(name).and_then(Value::as_u64).unwrap_or(0)
}

#[test]
fn new_tokens_on_open_connections_are_counted_and_no_connection_ends() {
    let truth = run("");
    assert_count!(connections(&truth, "reauthenticated") >= 9, "{}", truth.record["connections"]);
    assert_count_eq!(connections(&truth, "dropped"), 0, "{}", truth.record["connections"]);
    assert_count_eq!((truth.count("delivered"), truth.count("lost")), (210, 0));
}

/// The second renewal of all is refused: its device connects again, with a token of that moment.
#[test]
fn a_device_whose_new_token_is_refused_loses_its_connection_and_comes_back() {
    let truth = run("refuse-reauthentication code=0x87 from=2 count=1");
    let all = &truth.record["connections"];
    assert_count_eq!(connections(&truth, "log_in_ended"), 1, "{all}");
    assert_count_eq!(connections(&truth, "dropped"), 1, "{all}");
    assert_count_eq!(connections(&truth, "auth_failed"), 0, "{all}");
    assert_count_eq!(connections(&truth, "established"), 5, "four, and one again: {all}");
    assert!(all["causes"].to_string().contains("credentials no longer valid: not authorized"), "{all}");
    assert_count_eq!(truth.count("lost"), 0);
}
