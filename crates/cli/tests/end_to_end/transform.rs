//! Bodies that are compressed, encrypted and signed, over each protocol: subscribers reverse the publishers' steps,
//! whatever an adapter does before the socket.

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::fast_systems::{ELSEWHERE, FAST, SPOKEN, here};
use crate::program::{assert_closed, record_of};

/// Ten messages of each of two devices, larger than a block of CoAP, of a text that compresses and one that does not.
const WORKLOAD: &str = "name: transform
defaults: {transform: [compress: zstd, encrypt: aes-256-gcm, sign: ed25519]}
devices:
  - {name: text, every: 50ms, payload: 3KB, body: text}
  - {name: noise, every: 50ms, payload: 3KB}
subscribers:
  - {name: all, filters: 'transform/#'}
";

fn number(row: &Value, side: &str, name: &str) -> u64 {
    row[side][name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

#[test]
fn what_was_done_with_bodies_is_undone_over_each_protocol() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("transform.yaml"), WORKLOAD).unwrap();
    // CoAP peers support only requests.
    for protocol in SPOKEN.into_iter().filter(|protocol| *protocol != "coap-peers") {
        let speaks = |definition: &pubmark_systems::Definition| definition.protocols.contains_key(protocol);
        let known = FAST.into_iter().chain(ELSEWHERE).map(|name| pubmark_systems::Definition::load(name).unwrap());
        // Systems with AMQP are only in the full suite.
        let Some(system) = known.filter(speaks).find_map(|definition| here(&definition.name)) else { continue };
        let options = ["transform.yaml", "--system", &system.name, "--protocol", protocol];
        let record = record_of(folder.path(), &[&options[..], &["--duration", "500ms", "--warmup", "0s"]].concat());
        assert_closed(&record);
        let counted = |name: &str| record["delivery"][name].as_u64().unwrap();
        // On a busy machine the last ones may be due too late to be sent.
        let sent = 20 - counted("unsent");
        let counts = ["offered", "delivered", "lost", "corrupt"].map(counted);
        assert_count_eq!(counts, [20, sent, 0, 0], "{protocol}: {}", record["delivery"]);
        assert!(sent >= 18, "{protocol}: {}", record["delivery"]);
        let rows = record["cost"]["transform"].as_array().unwrap();
        assert_eq!(rows.len(), 6, "{protocol}: {rows:?}");
        let of_both_groups = |step: usize| [step, step + 3].map(|row| number(&rows[row], "publishing", "messages"));
        for step in 0..3 {
            assert_count_eq!(of_both_groups(step).iter().sum::<u64>(), sent, "{protocol}: {rows:?}");
        }
        for (row, added) in rows.iter().zip([0, 28, 64, 0, 28, 64]) {
            let messages = number(row, "publishing", "messages");
            assert_count_eq!(number(row, "receiving", "messages"), messages, "{protocol}: {row}");
            let [before, after] = ["bytes_before", "bytes_after"].map(|name| number(row, "publishing", name));
            let undone = ["bytes_after", "bytes_before"].map(|name| number(row, "receiving", name));
            assert_count_eq!(undone, [before, after], "{protocol}: {row}");
            assert!(row["publishing"]["cpu_s"].as_f64().unwrap() > 0.0, "{protocol}: {row}");
            assert!(row["receiving"]["cpu_s"].as_f64().unwrap() > 0.0, "{protocol}: {row}");
            match (row["group"].as_str().unwrap(), added) {
                ("text", 0) => assert!(after * 2 < before, "{protocol}: words compress: {row}"),
                (_, 0) => assert!(after > before, "{protocol}: random bytes do not: {row}"),
                _ => assert_count_eq!(after, before + added * messages, "{protocol}: {row}"),
            }
        }
        let last = |row: &Value| number(row, "publishing", "bytes_after") + number(row, "publishing", "messages") * 24;
        let bytes: u64 = [&rows[2], &rows[5]].map(last).iter().sum();
        let efficiency = &record["cost"]["efficiency"];
        let [published, published_bytes] =
            ["published", "published_bytes"].map(|name| efficiency["total"][name].as_u64().unwrap());
        // Those of the window: on a busy machine the last ones may be written after it.
        match sent - published {
            0 => assert_count_eq!(published_bytes, bytes, "{protocol}: {efficiency}"),
            late => assert_count!(late <= 2 && published_bytes < bytes, "{protocol}: {efficiency}"),
        }
    }
}
