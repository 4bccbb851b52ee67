//! How the figures that are no single field of a record are read from it.

use crate::cost::Usage;
use crate::latency::{LatencyBounds, lower, upper};
use crate::nodes::ReceivedPerSecond;
use crate::record::{BackEndKind, Record, Summary};

/// Share of the requests whose reply came in time.
pub fn answered_share(record: &Record) -> Option<f64> {
    let books = record.requests.as_ref()?.outcomes;
    (books.sent > 0).then(|| books.answered as f64 / books.sent as f64)
}

/// Lower bounds of the latencies of all messages.
pub fn low(record: &Record) -> Option<&Summary> {
    lower(&record.latency.total)
}

/// Upper bounds of the latencies of all messages.
pub fn high(record: &Record) -> Option<&Summary> {
    upper(&record.latency.total)
}

/// Lower bound of the difference of the third and the first quartile of the latency, µs.
pub fn least_interquartile_range(record: &Record) -> Option<f64> {
    Some((low(record)?.p75? - high(record)?.p25?).max(0.0))
}

/// Upper bound of the difference of the third and the first quartile of the latency, µs.
pub fn largest_interquartile_range(record: &Record) -> Option<f64> {
    Some(high(record)?.p75? - low(record)?.p25?)
}

/// Lower bounds of round trips.
pub fn low_trip(record: &Record) -> Option<&Summary> {
    lower(&record.requests.as_ref()?.round_trip)
}

/// Upper bounds of round trips.
pub fn high_trip(record: &Record) -> Option<&Summary> {
    upper(&record.requests.as_ref()?.round_trip)
}

/// Mean of full handshakes: how many handshakes are resumed depends on which connections broke. Often there are too few
/// for a percentile.
pub fn handshake(record: &Record) -> Option<f64> {
    Some(record.connections.tls.as_ref()?.full_handshake.as_ref()?.mean)
}

/// CPU time of the system per million arrivals, s.
pub fn cpu_per_million(record: &Record) -> Option<f64> {
    per_million(record, record.cost.system?)
}

/// CPU time of the client programs. pubmark's own clients have no such figure, because their CPU time is part of the
/// generator's.
pub fn client_cpu_per_million(record: &Record) -> Option<f64> {
    per_million(record, record.cost.client_programs?)
}

/// CPU time and arrivals of the same time: those that arrive after the window, for which the window's CPU time did not
/// pay, would make a system that falls behind look cheap. Replies are messages, too: without them, a system that loses some
/// would look cheap. Records of older versions count only those in time.
fn per_million(record: &Record, usage: Usage) -> Option<f64> {
    let replies = record.requests.as_ref().map(|requests| requests.replies_per_s.unwrap_or(requests.answered_per_s));
    let per_s = record.throughput.delivered_per_s + replies.unwrap_or(0.0);
    (per_s > 0.0).then(|| usage.cores * 1e6 / per_s)
}

/// CPU time of the system as a share of all cores of its machine: of the observed one, or of this one if this process started the
/// system. `None` for another system whose machine was not observed: it may have any number of cores.
pub fn system_cpu_of_the_machine(record: &Record) -> Option<f64> {
    let used = record.cost.system?.cores;
    let is_elsewhere = record.system.node.is_some() || record.system.back_end == BackEndKind::External;
    let cores = match &record.cost.host {
        Some(host) => host.cores_total?,
        None if is_elsewhere => return None,
        None => record.environment.machine_cores(),
    };
    (cores > 0).then(|| used / f64::from(cores))
}

/// Mean over pairs of publisher node and subscriber node of the mean latency between them, µs; `None` if the bound was not
/// measured of one of the pairs that exchanged messages.
pub fn pairs_mean(record: &Record, bound: fn(&Option<LatencyBounds>) -> Option<&Summary>) -> Option<f64> {
    let pairs = record.tables.by_pair.iter().filter(|pair| pair.latency.is_some());
    mean(&pairs.map(|pair| Some(bound(&pair.latency)?.mean)).collect::<Option<Vec<f64>>>()?)
}

/// Mean over the nodes with subscribers of the messages that a node received per second.
pub fn received_per_node(record: &Record) -> Option<f64> {
    over_nodes(record, |received| Some(received.mean_per_s))
}

/// Mean over the nodes with subscribers of the variance of the messages that a node received per second, messages² per second².
pub fn received_variance_per_node(record: &Record) -> Option<f64> {
    over_nodes(record, |received| received.variance)
}

/// Mean over the nodes with subscribers; `None` if a node was lost, or lacks the figure.
fn over_nodes(record: &Record, of: impl Fn(&ReceivedPerSecond) -> Option<f64>) -> Option<f64> {
    let nodes = record.tables.nodes.iter().filter(|node| node.subscribers > 0);
    mean(&nodes.map(|node| of(node.received.as_ref()?)).collect::<Option<Vec<f64>>>()?)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cost::HostUsage;
    use crate::figures::figure;
    use crate::nodes::NodeRow;
    use crate::record::SystemInfo;
    use crate::requests::RequestFigures;
    use crate::tables::PairRow;

    fn of(record: &Record, name: &str) -> Option<f64> {
        figure(name).unwrap().value(record)
    }

    #[test]
    fn a_system_that_loses_replies_is_not_cheaper() {
        let cost = |delivered_per_s: f64, replies_per_s: Option<f64>, answered_per_s: f64| {
            let mut record = crate::sample::record();
            record.cost.system.as_mut().unwrap().cores = 0.2;
            record.throughput.delivered_per_s = delivered_per_s;
            record.requests = Some(RequestFigures { replies_per_s, answered_per_s, ..RequestFigures::default() });
            figure("system CPU a million").unwrap().value(&record)
        };
        assert_eq!(cost(400.0, Some(400.0), 100.0), Some(250.0));
        assert_eq!(cost(400.0, Some(0.0), 0.0), Some(500.0));
        assert_eq!(cost(400.0, None, 400.0), Some(250.0), "a record of an older version");
        assert_eq!(cost(0.0, Some(0.0), 0.0), None);
    }

    #[test]
    fn the_interquartile_range_lies_between_the_bounds_of_both_quartiles() {
        let mut record = crate::sample::record();
        let quartiles = |record: &mut Record, first: [f64; 2], third: [f64; 2]| {
            let total = record.latency.total.as_mut().unwrap();
            let lower = total.lower.as_mut().unwrap();
            (lower.p25, lower.p75) = (Some(first[0]), Some(third[0]));
            (total.upper.p25, total.upper.p75) = (Some(first[1]), Some(third[1]));
        };
        let range = figure("latency IQR").unwrap();
        quartiles(&mut record, [100.0, 110.0], [400.0, 420.0]);
        assert_eq!(range.bounds(&record), Some([290.0, 320.0]));
        quartiles(&mut record, [100.0, 150.0], [120.0, 160.0]);
        assert_eq!(range.bounds(&record), Some([0.0, 60.0]));
        record.latency.total.as_mut().unwrap().upper.p75 = None;
        assert_eq!(range.bounds(&record), None);
    }

    #[test]
    fn what_arrived_late_was_delivered_and_not_by_the_end() {
        let mut record = crate::sample::record();
        let books = &mut record.delivery.messages;
        (books.expected, books.delivered, books.late, books.lost, books.unknown) = (100, 90, 30, 10, 0);
        (books.prevented, books.absent) = (0, 0);
        assert_eq!((of(&record, "delivered"), of(&record, "delivered by the end")), (Some(0.9), Some(0.6)));
        record.delivery.messages.late = 0;
        assert_eq!(of(&record, "delivered by the end"), Some(0.9));
        (record.delivery.messages.expected, record.delivery.messages.delivered) = (0, 0);
        assert_eq!(of(&record, "delivered by the end"), None);
    }

    #[test]
    fn the_share_of_the_machine_is_of_the_cores_of_the_systems_machine() {
        let mut record = crate::sample::record();
        record.cost.system.as_mut().unwrap().cores = 0.5;
        record.environment.processors = Some(4);
        record.cost.host = None;
        assert_eq!(of(&record, "system CPU of the machine"), Some(0.125));
        let started_here = record.system.clone();
        record.system.node = Some("broker-1".to_owned());
        assert_eq!(of(&record, "system CPU of the machine"), None, "a node whose machine was not observed");
        record.system = SystemInfo { back_end: BackEndKind::External, ..started_here.clone() };
        assert_eq!(of(&record, "system CPU of the machine"), None, "a system that ran before");
        record.system = started_here;
        record.cost.host = Some(HostUsage { cores_total: Some(10), ..HostUsage::default() });
        assert_eq!(of(&record, "system CPU of the machine"), Some(0.05));
        record.cost.host = Some(HostUsage::default());
        assert_eq!(of(&record, "system CPU of the machine"), None, "a machine whose cores are not known");
        record.cost.system = None;
        assert_eq!(of(&record, "system CPU of the machine"), None);
    }

    #[test]
    fn the_mean_of_pairs_weighs_each_pair_alike() {
        let mut record = crate::sample::record();
        let first = record.tables.by_pair[0].clone();
        let [mut near, mut far] = [first.latency.clone().unwrap(), first.latency.clone().unwrap()];
        (near.upper.mean, near.lower.as_mut().unwrap().mean) = (100.0, 80.0);
        (far.upper.mean, far.lower.as_mut().unwrap().mean, far.upper.count) = (300.0, 200.0, 1);
        let pair = |latency| PairRow { latency, ..first.clone() };
        record.tables.by_pair = vec![pair(Some(near)), pair(Some(far.clone())), pair(None)];
        let pairs = figure("latency mean of pairs").unwrap();
        assert_eq!(pairs.bounds(&record), Some([140.0, 200.0]));
        far.lower = None;
        record.tables.by_pair[1].latency = Some(far);
        assert_eq!(pairs.lower(&record), None, "the lower bound of one pair says nothing of both");
        record.tables.by_pair.clear();
        assert_eq!(pairs.value(&record), None);
    }

    #[test]
    fn what_a_node_receives_is_a_mean_over_the_nodes_with_subscribers() {
        let node = |subscribers: u64, seconds: &[u64]| NodeRow {
            subscribers,
            received: ReceivedPerSecond::of(seconds),
            ..NodeRow::default()
        };
        let mut record = crate::sample::record();
        assert!(!figure("received per node").unwrap().concerns(&record));
        record.tables.nodes = vec![node(1, &[10, 10]), node(1, &[20, 24]), node(0, &[])];
        assert!(figure("received per node").unwrap().concerns(&record));
        let both = |record: &Record| [of(record, "received per node"), of(record, "received variance per node")];
        assert_eq!(both(&record), [Some(16.0), Some(4.0)]);
        record.tables.nodes.push(node(1, &[7]));
        assert_eq!(both(&record), [Some(13.0), None], "one second has no variance");
        record.tables.nodes.push(node(1, &[]));
        assert_eq!(both(&record), [None, None], "a node that was lost");
    }
}
