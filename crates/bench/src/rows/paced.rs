//! Paced sending, exactly and in quanta, against other tools in the same call.

use std::time::Duration;

use pubmark_model::pace::Pace;

use crate::generator::{Finding, Order};
use crate::mqttv5::{self, Load};
use crate::row::{Reading, Row};
use crate::test_system::TestSystem;
use crate::{child, out, rumqttc_client};

pub const ROW: Row = Row {
    name: "paced",
    measure: "paced, 100 → 1 by mosquitto, 1 KB, QoS 0, CPU-s per million delivered, both sides",
    known: "mqttv5-cli 30, emqtt-bench 137, mq-bench in bursts of 10 ms 26, at 10,000 msg/s",
    run,
};

const SECONDS: u32 = 5;
const PUBLISHERS: u32 = 100;
const PAYLOAD_BYTES: u32 = 1_000;
/// The pace of tools whose timers wake up once per millisecond.
const COARSE: Pace = Pace::Quantum(Duration::from_millis(1));

/// Paces of pubmark at a rate, with their targets, and the other tools at that rate.
struct Case {
    rate_per_s: u32,
    paces: &'static [(Pace, f64)],
    others: &'static [Other],
}

/// Another tool, the pace of pubmark that it is compared with, and the target of the ratio.
struct Other {
    name: &'static str,
    cost: fn(rate_per_s: u32) -> Result<f64, String>,
    beside: Pace,
    at_most: f64,
}

const CASES: [Case; 2] = [
    Case {
        rate_per_s: 10_000,
        paces: &[(Pace::Exact, 34.0), (Pace::Quantum(Duration::from_micros(200)), 22.0), (COARSE, 11.0)],
        others: &[Other { name: "mqttv5-cli", cost: mqttv5_cost, beside: COARSE, at_most: 0.45 }],
    },
    Case {
        rate_per_s: 20_000,
        paces: &[(Pace::Exact, 24.0), (COARSE, 8.0)],
        others: &[
            Other {
                name: "rumqttc at exact times",
                cost: |rate| rumqttc_cost(rate, true),
                beside: Pace::Exact,
                at_most: 0.85,
            },
            Other {
                name: "rumqttc on tokio's timers",
                cost: |rate| rumqttc_cost(rate, false),
                beside: COARSE,
                at_most: 0.85,
            },
        ],
    },
];

fn run(repetitions: usize) -> Result<Vec<Reading>, String> {
    let mut readings = vec![];
    for case in &CASES {
        readings.extend(case.measure(repetitions)?);
    }
    Ok(readings)
}

impl Case {
    /// Measures all tools in alternation.
    fn measure(&self, repetitions: usize) -> Result<Vec<Reading>, String> {
        let mut own = vec![vec![]; self.paces.len()];
        let mut others: Vec<(Vec<f64>, String)> = vec![Default::default(); self.others.len()];
        for _ in 0..repetitions {
            for ((pace, _), values) in self.paces.iter().zip(&mut own) {
                values.push(own_cost(self.rate_per_s, *pace)?);
            }
            for (other, (values, note)) in self.others.iter().zip(&mut others) {
                match (other.cost)(self.rate_per_s) {
                    Ok(cost) => values.push(cost),
                    // The other tools are still measured.
                    Err(why) => {
                        out::note(&format!("left out: {}: {why}", other.name));
                        *note = format!("left out: {why}");
                    }
                }
            }
        }
        let rate = format!("{},000/s", self.rate_per_s / 1_000);
        let mut readings = vec![];
        for ((pace, target), values) in self.paces.iter().zip(&own) {
            readings.push(Reading::new(&format!("{rate}: pubmark, {pace}"), values.clone(), "s", Some(*target)));
        }
        for (other, (values, note)) in self.others.iter().zip(others) {
            let beside = self.paces.iter().position(|(pace, _)| *pace == other.beside).ok_or("no such pace")?;
            // Pairs of one repetition, as long as the other tool took part in all of them.
            let ratios = match values.len() == repetitions {
                true => own[beside].iter().zip(&values).map(|(own, other)| own / other).collect(),
                false => vec![],
            };
            let name = other.name;
            readings.push(Reading { note, ..Reading::new(&format!("{rate}: {name}"), values, "s", None) });
            let ratio = format!("{rate}: pubmark, {}, by {name}", other.beside);
            readings.push(Reading::new(&ratio, ratios, "×", Some(other.at_most)));
        }
        Ok(readings)
    }
}

/// The same for all tools.
fn load(rate_per_s: u32) -> Load {
    Load { publishers: PUBLISHERS, rate_per_s, payload_bytes: PAYLOAD_BYTES, duration_s: SECONDS }
}

fn own_cost(rate_per_s: u32, pace: Pace) -> Result<f64, String> {
    let broker = TestSystem::mosquitto(false)?;
    let set = [
        format!("publishers={PUBLISHERS}"),
        format!("rate={}/s", rate_per_s / PUBLISHERS),
        format!("payload={PAYLOAD_BYTES}B"),
    ];
    let order = Order {
        protocol: "mqtt311".to_owned(),
        warmup_s: 2.0,
        duration_s: f64::from(SECONDS),
        pace,
        ..Order::new(&broker.address, &set.each_ref().map(String::as_str))
    };
    let found: Finding = child::run_child("generator", &order)?;
    load(rate_per_s).check("pubmark", found.arrived)?;
    found.cpu_s_per_million()
}

fn mqttv5_cost(rate_per_s: u32) -> Result<f64, String> {
    let broker = TestSystem::mosquitto(false)?;
    mqttv5::cpu_s_per_million(broker.address, &load(rate_per_s))
}

fn rumqttc_cost(rate_per_s: u32, exact: bool) -> Result<f64, String> {
    let broker = TestSystem::mosquitto(false)?;
    let order = rumqttc_client::Order {
        port: broker.address.port(),
        publishers: PUBLISHERS,
        rate_per_s,
        payload_bytes: PAYLOAD_BYTES as usize,
        duration_s: SECONDS.into(),
        exact,
    };
    let found: rumqttc_client::Finding = child::run_child("rumqttc", &order)?;
    load(rate_per_s).check("rumqttc", found.delivered)?;
    Ok(found.cpu_s / (found.delivered as f64 / 1e6))
}
