//! Protocols over a client library: the cost that our adapter adds, compared with a minimal loop over the same library.

use super::protocols::{Case, order};
use crate::generator::{Finding, Order};
use crate::native;
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;
use crate::{child, dds_loop, rustdds_loop, zenoh_loop};

pub const ZENOH: Row = Row {
    name: "zenoh-library",
    measure: "Zenoh between two peers, flood, Block, 16 B, CPU-s per million delivered: ours beside a loop over the library",
    known: "at most 1.3 times the loop",
    run: zenoh,
};

pub const DDS: Row = Row {
    name: "dds-library",
    measure: "DDS RELIABLE, KEEP_ALL, 1 → 1, flood, 100 B, CPU-s per million: ours beside a loop over Cyclone DDS, and ddsperf",
    known: "at most 1.3 times the loop; ddsperf 0.10.2, which packs samples together: 1.87",
    run: dds,
};

pub const RUSTDDS: Row = Row {
    name: "rustdds-library",
    measure: "RustDDS RELIABLE, KEEP_ALL, 1 → 1, 4,000 msg/s (a flood is refused), 100 B, CPU-s per million: ours beside a loop over the library",
    known: "at most 1.3 times the loop",
    run: rustdds,
};

/// Samples per second over RustDDS: below 5,000, the limit above which a run is refused.
const RUSTDDS_RATE: u32 = 4_000;

/// Lowest rate over DDS without a loss, thousands of messages per second.
const DDS_THOUSANDS: f64 = 100.0;

fn rustdds(repetitions: usize) -> Result<Vec<Reading>, String> {
    let case = Case { protocol: "dds", system: "dds", qos: 1 };
    let (mut ours, mut theirs, mut ratios) = (vec![], vec![], vec![]);
    let mut lost = [vec![], vec![]];
    for _ in 0..repetitions {
        let test_system = TestSystem::start(case.system, case.protocol, false)?;
        let rate = format!("rate={RUSTDDS_RATE}/s");
        let order = Order {
            client: Some("rustdds".to_owned()),
            ..order(&case, &test_system, &["publishers=1", "payload=100B", &rate])
        };
        let found: Finding = child::run_child("generator", &order)?;
        let order = rustdds_loop::Order { payload_bytes: 100, rate: RUSTDDS_RATE };
        let other: rustdds_loop::Finding = child::run_child("rustdds", &order)?;
        let own = found.cpu_s_per_million()?;
        let least = other.cpu_s / (other.arrived as f64 / 1e6);
        ours.push(own);
        theirs.push(least);
        ratios.push(own / least);
        lost[0].push(found.lost as f64);
        // Messages in flight at the start of the count are added, so this may be negative.
        lost[1].push(other.sent as f64 - other.delivered as f64);
    }
    let [own_lost, other_lost] = lost;
    Ok(vec![
        Reading::new("pubmark", ours, "s", None),
        Reading::new("loop over the library", theirs, "s", None),
        Reading::new("ratio", ratios, "×", Some(1.3)),
        Reading::new("pubmark, lost", own_lost, "messages", Some(0.0)),
        Reading::new("loop over the library, lost", other_lost, "messages", None),
    ])
}

fn flood(case: &Case, payload: &str) -> Result<Finding, String> {
    let test_system = TestSystem::start(case.system, case.protocol, false)?;
    let set = ["arrival=flood", "publishers=1", &format!("payload={payload}")];
    let order: Order = order(case, &test_system, &set);
    child::run_child("generator", &order)
}

fn zenoh(repetitions: usize) -> Result<Vec<Reading>, String> {
    let case = Case { protocol: "zenoh-peer-block", system: "zenoh-peers", qos: 0 };
    let (mut ours, mut theirs, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..repetitions {
        let found = flood(&case, "16B")?;
        let own = found.cpu_s_per_million()?;
        let address = TestSystem::start(case.system, case.protocol, false)?.address.to_string();
        let other: zenoh_loop::Finding = child::run_child("zenoh", &zenoh_loop::Order { address, payload_bytes: 16 })?;
        let other = other.cpu_s / (other.delivered as f64 / 1e6);
        ours.push(own);
        theirs.push(other);
        ratios.push(own / other);
    }
    Ok(vec![
        Reading::new("pubmark", ours, "s", None),
        Reading::new("loop over the library", theirs, "s", None),
        Reading::new("ratio", ratios, "×", Some(1.3)),
    ])
}

fn dds(repetitions: usize) -> Result<Vec<Reading>, String> {
    let case = Case { protocol: "dds", system: "dds", qos: 1 };
    let (mut ours, mut lost, mut rates, mut slowness) = (vec![], vec![], vec![], vec![]);
    let (mut theirs, mut ratios) = (vec![], vec![]);
    let mut packed = vec![];
    for _ in 0..repetitions {
        let found = flood(&case, "100B")?;
        let rate = found.arrived as f64 / found.window_s / 1e3;
        let own = found.cpu_s_per_million()?;
        let other: dds_loop::Finding = child::run_child("dds", &dds_loop::Order { payload_bytes: 100 })?;
        let other = other.cpu_s / (other.delivered as f64 / 1e6);
        ours.push(own);
        theirs.push(other);
        ratios.push(own / other);
        lost.push(found.lost as f64);
        rates.push(rate);
        slowness.push(DDS_THOUSANDS / rate);
        packed.push(native::ddsperf(100)?);
    }
    let (packed_costs, packed_rates) = packed.into_iter().unzip();
    Ok(vec![
        Reading::new("pubmark", ours, "s", None),
        Reading::new("loop over the library", theirs, "s", None),
        Reading::new("ratio", ratios, "×", Some(1.3)),
        Reading::new("pubmark, lost", lost, "messages", Some(0.0)),
        Reading::new("pubmark, thousand messages a second", rates, "k/s", None),
        Reading::new("100,000 a second by pubmark's rate", slowness, "×", Some(1.0)),
        Reading::new("ddsperf in two processes", packed_costs, "s", None),
        Reading::new("ddsperf, thousand messages a second", packed_rates, "k/s", None),
    ])
}
