//! Bodies that publishers compress, encrypt and sign before they send them: the effect and the cost are in the record,
//! and subscribers read the original body.

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, check, count};
use crate::support::place::Place;
use crate::support::schema;

/// Four devices, ten messages each, numbered from 1.
const MESSAGES: u64 = 40;

fn workload(header: &str) -> String {
    format!(
        "name: transform
defaults: {{header: {header}, transform: [compress: {{zlib: 9}}, encrypt: chacha20-poly1305, sign: hmac-sha256]}}
devices:
  - name: test/sensor
    count: 4
    every: 100ms
    qos: 1
    topic: \"transform/{{device}}\"
    body:
      json: '{{\"n\": {{{{counter}}}}, \"text\": \"all the same, all the same, all the same, all the same, all the same\"}}'
subscribers:
  - {{name: first, count: 2, filters: [\"transform/#\"], qos: 1, where: payload.n <= 3}}
"
    )
}

/// A run of a second on the built-in broker.
const SHORT: [&str; 9] =
    ["transform.yaml", "--duration", "1s", "--warmup", "0s", "--protocol", "mqtt5", "--system", "builtin"];

fn used(row: &Value, side: &str) -> [u64; 3] {
    ["messages", "bytes_before", "bytes_after"].map(|name| row[side][name].as_u64().unwrap())
}

#[test]
fn subscribers_undo_the_steps_before_they_ask_a_predicate() {
    for (header, options) in [("payload", &[][..]), ("user-property", &[]), ("payload", &["--isolate", "all"])] {
        let place = Place::new();
        place.write("transform.yaml", workload(header));
        let record = place.record(&[&SHORT[..], options].concat());
        assert_closed(&record);
        schema::assert_agrees(&record);
        assert_count_eq!((count(&record, "delivered"), count(&record, "corrupt")), (2 * MESSAGES, 0));
        let content = &record["delivery"]["content"][0];
        let found = ["matched", "should_match", "unreadable"].map(|name| content[name].as_u64().unwrap());
        assert_count_eq!(found, [2 * 4 * 3, 2 * 4 * 3, 0], "{header} {options:?}: {content}");
        assert_eq!(check(&record, "V30"), "valid");
        let rows = record["cost"]["transform"].as_array().unwrap();
        let steps: Vec<&str> = rows.iter().map(|row| row["step"].as_str().unwrap()).collect();
        assert_eq!(steps, ["compress zlib 9", "encrypt chacha20-poly1305", "sign hmac-sha256"]);
        for row in rows {
            let [published, before, after] = used(row, "publishing");
            assert_count_eq!(published, MESSAGES, "{row}");
            assert_count_eq!(used(row, "receiving"), [2 * MESSAGES, 2 * after, 2 * before], "{row}");
        }
        let [zlib, cipher, sign] = [0, 1, 2].map(|place| used(&rows[place], "publishing"));
        assert!(zlib[2] < zlib[1], "{}", rows[0]);
        assert_count_eq!([cipher[2], sign[2]], [zlib[2] + 28 * MESSAGES, zlib[2] + (28 + 32) * MESSAGES]);
    }
}

#[test]
fn the_work_of_the_device_is_in_both_bounds_of_the_latency() {
    let place = Place::new();
    let text = "name: slow
devices:
  - {name: camera, every: 100ms, payload: 150KB, body: text, transform: [compress: {zstd: 19}]}
subscribers:
  - {name: all, filters: '#'}
";
    place.write("transform.yaml", text);
    let record = place.record(&SHORT);
    assert_closed(&record);
    let row = &record["cost"]["transform"][0];
    let each_us = row["publishing"]["cpu_s"].as_f64().unwrap() * 1e6 / 10.0;
    let [lower_us, upper_us] =
        ["lower", "upper"].map(|bound| record["latency"]["total"][bound]["mean_us"].as_f64().unwrap());
    assert!(each_us > 5_000.0, "150 KB at level 19 take a while: {row}");
    // The header rounds the lag up by at most an eighth, and beside other tests the lag is most of the time.
    let least_us = each_us * 0.9 - (upper_us - each_us) / 8.0;
    assert!(lower_us > least_us, "{lower_us} to {upper_us} µs, of them {each_us} µs of compression");
}

#[test]
fn reports_and_the_dry_run_name_the_transform_steps() {
    let place = Place::new();
    place.write("transform.yaml", workload("payload"));
    let called = place.call(&[&["run"], &SHORT[..], &["-v"]].concat());
    assert!(matches!(called.code(), 0 | 5), "{}", called.errors);
    assert!(called.printed.contains("test/sensor, sign hmac-sha256: +32 B"), "{}", called.printed);
    let folder = &place.runs()[0].0;
    let table = std::fs::read_to_string(folder.join("csv/transform.csv")).unwrap();
    assert_count_eq!(table.lines().count(), 1 + 2 * 3, "{table}");
    for file in ["report.html", "summary.md"] {
        let page = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(page.contains("Transformed bodies") && page.contains("chacha20-poly1305"), "{file} has the section");
    }
    let called = place.call(&[&["run"], &SHORT[..], &["--dry-run"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let words: Vec<&str> = called.printed.split_whitespace().collect();
    let text = words.join(" ");
    let expected = "compress zlib 9, encrypt chacha20-poly1305, sign hmac-sha256; adds 60 B to each body";
    assert!(text.contains(expected), "{}", called.printed);
}
