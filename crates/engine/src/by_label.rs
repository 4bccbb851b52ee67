//! Deliveries from site to site: pairs of nodes, added up by the values of a label.

use std::collections::{BTreeMap, BTreeSet};

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Precision;
use pubmark_record::distribution::bounds;
use pubmark_record::nodes::NodeRow;
use pubmark_record::tables::LabelRow;

use crate::outcome::Outcome;
use crate::sections::{clock_bound_us, error_ns};

/// Deliveries from the nodes with one value of a label to those with another value or the same.
struct Sum {
    expected: u64,
    delivered: u64,
    lost: u64,
    latency: Bounds,
    clock_bound_us: Option<f64>,
}

impl Default for Sum {
    fn default() -> Sum {
        let latency = Bounds::new(Precision::Breakdown);
        Sum { expected: 0, delivered: 0, lost: 0, latency, clock_bound_us: Some(0.0) }
    }
}

/// Sort key of a site in tables: by its name, nodes without a label last.
type Site<'a> = (bool, Option<&'a str>);

/// Rows of each of these labels, by site of the publishers and of the subscribers. Percentiles are of merged
/// distributions.
pub fn by_label(outcome: &Outcome, nodes: &[NodeRow], keys: &BTreeSet<&str>) -> Vec<LabelRow> {
    keys.iter().flat_map(|key| of_label(outcome, nodes, key)).collect()
}

fn of_label(outcome: &Outcome, nodes: &[NodeRow], key: &str) -> Vec<LabelRow> {
    // Without a second node there are no pairs: all messages go from the one node to itself.
    if let [only] = nodes {
        let delivery = &outcome.books.delivery;
        let sum = Sum {
            expected: delivery.expected,
            delivered: delivery.delivered,
            lost: delivery.lost,
            latency: outcome.times.latency.clone(),
            ..Sum::default()
        };
        return vec![row(key, [site(only, key); 2], &sum)];
    }
    let mut sums: BTreeMap<[Site<'_>; 2], Sum> = BTreeMap::new();
    for pair in &outcome.pairs {
        let ends = [pair.from, pair.to].map(|node| nodes.get(usize::from(node)));
        let [Some(from), Some(to)] = ends else { continue };
        let sum = sums.entry([from, to].map(|node| (site(node, key).is_none(), site(node, key)))).or_default();
        sum.expected += pair.delivery.expected;
        sum.delivered += pair.delivery.delivered;
        sum.lost += pair.delivery.lost;
        let bound_us = clock_bound_us(from, to);
        sum.latency.merge(&pair.latency.widened(error_ns(bound_us)));
        sum.clock_bound_us = sum.clock_bound_us.zip(bound_us).map(|(one, other)| one.max(other));
    }
    sums.iter().map(|(sites, sum)| row(key, sites.map(|(_, site)| site), sum)).collect()
}

fn site<'a>(node: &'a NodeRow, key: &str) -> Option<&'a str> {
    node.labels.get(key).map(String::as_str)
}

fn row(key: &str, [publisher, subscriber]: [Option<&str>; 2], sum: &Sum) -> LabelRow {
    LabelRow {
        label: key.to_owned(),
        publisher_site: publisher.map(str::to_owned),
        subscriber_site: subscriber.map(str::to_owned),
        expected: sum.expected,
        delivered: sum.delivered,
        lost: sum.lost,
        latency: bounds(&sum.latency),
        clock_bound_us: sum.clock_bound_us,
    }
}
