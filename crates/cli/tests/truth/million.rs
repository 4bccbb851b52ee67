//! Hundreds of thousands of messages with every kind of lie among them: journal and record agree exactly.

use pubmark_testing::assert_count_eq;

use crate::liar::Liar;

const SCRIPT: &str = "
delay 3ms every=89
drop every=97
duplicate every=101 after=0
duplicate every=5003 after=60000
swap every=103
foreign every=50021
retained-copy every=60013
";

fn agree(duration: &str, messages: u64) {
    let arguments = [
        "fan-in",
        "--set",
        "publishers=50",
        "--set",
        "rate=500/s",
        "--set",
        "payload=32B",
        "--duration",
        duration,
        "--warmup",
        "1s",
        "--drain",
        "30s",
    ];
    let truth = Liar::start(SCRIPT).run(&arguments);
    assert_count_eq!(truth.count("offered"), messages);
    for field in ["lost", "duplicated", "out_of_order", "foreign", "retained_replay"] {
        assert!(truth.count(field) > 0, "no {field} in {}", truth.record["delivery"]);
    }
    truth.demand_agreement();
}

#[test]
fn four_hundred_thousand_messages_agree() {
    agree("16s", 400_000);
}

#[test]
#[ignore = "40 s more of the same: a rotating tenth and `make test-all` have it"]
fn a_million_messages_agree() {
    agree("40s", 1_000_000);
}
