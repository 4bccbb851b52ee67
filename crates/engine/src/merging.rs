//! Merges the outcomes of the shards of a run, and completes the message accounting.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Precision;
use pubmark_metrics::series::Series;

use crate::absences::{self, Absences};
use crate::books::{self, Books, Judged, Received};
use crate::content;
use crate::content::counts::ContentCounts;
use crate::due_times::audit;
use crate::faults;
use crate::faults::log::FaultNotes;
use crate::faults::outcome::FaultOutcome;
use crate::followed::FollowedDeliveries;
use crate::message_log::{IncompletePart, Log};
use crate::outcome::{NodePair, Outcome, Reactions, ThreadHealth};
use crate::plan::RunPlan;
use crate::promises;
use crate::ramp::Ramp;
use crate::request_outcome;
use crate::setup;
use crate::shard_outcome::{PublisherBook, ShardOutcome, Times, TypeTimes};
use crate::shares::{self, Side, shares};
use crate::traffic::GroupTraffic;
use crate::transform::TransformCounts;

/// Merges the outcomes of the shards and completes the message accounting.
pub(crate) fn merge_outcomes(plan: &RunPlan, shards: Vec<(usize, ShardOutcome)>, window_ns: (u64, u64)) -> Outcome {
    let length_ns = window_ns.1 - window_ns.0;
    let mut publishers: Vec<PublisherBook> = Vec::with_capacity(plan.fleet.devices().len());
    let mut times = Times::new();
    let mut types = vec![];
    let mut counters = crate::outcome::Counters::default();
    let mut content = vec![];
    let mut transform = vec![];
    let mut series = Series::new(plan.timeline.start_ns(), plan.timeline.duration_ns);
    series.close(length_ns);
    let mut due_times = vec![];
    let mut received_on_nodes = vec![None; usize::from(plan.nodes)];
    let mut traffic = vec![];
    let mut followed = FollowedDeliveries::default();
    let (mut unsent_bytes, mut held_bytes) = (0, 0);
    let mut threads = vec![];
    let mut ramps = [Ramp::default(); 2];
    let shares = shares(plan);
    let publisher_shards = shares::count(&shares, Side::Publish);
    let mut latencies = Latencies::new();
    let mut received = vec![];
    let mut requests = vec![];
    let mut faults: Option<FaultNotes> = None;
    let mut log = plan.message_log.as_ref().map(|_| Log::default());
    for (index, shard) in shards {
        let node = shares[index].node;
        record_latencies(&mut latencies, node, shard.from_nodes);
        ramps[usize::from(index < publisher_shards)].merge(&shard.ramp);
        publishers.extend(shard.publishers);
        times.merge(&shard.times);
        merge_rows(&mut types, shard.types, TypeTimes::merge);
        counters.merge(shard.counters);
        merge_rows(&mut content, shard.content, ContentCounts::merge);
        merge_rows(&mut transform, shard.transform, TransformCounts::merge);
        if shares[index].side == Side::Subscribe {
            add_received(&mut received_on_nodes[usize::from(node)], &shard.series, length_ns);
        }
        series.merge(shard.series);
        due_times.extend(shard.due_times);
        GroupTraffic::merge(&mut traffic, &shard.traffic);
        followed.merge(shard.followed);
        unsent_bytes += shard.unsent_bytes;
        held_bytes += shard.held_bytes;
        let usage = shard.usage.filter(|_| length_ns > 0);
        threads.push(ThreadHealth {
            name: shard.name,
            side: shares[index].side,
            cores: usage.map(|usage| usage.cpu_ns as f64 / length_ns as f64),
            sessions: shard.sessions,
            wakeups: usage.map(|usage| usage.wakeups),
            quantum_ns: usage.map(|usage| usage.quantum_ns).filter(|quantum_ns| *quantum_ns > 0),
            ordinary_share: usage.and_then(|usage| Some(usage.ordinary_ns? as f64 / length_ns as f64)),
        });
        if let (Some(log), Some(mut logged)) = (&mut log, shard.logged) {
            if plan.on_nodes {
                log.incomplete.extend(logged.why.take().map(|why| IncompletePart { node, why }));
            }
            log.logged.merge(logged);
        }
        received.push((node, shard.ledger, shard.streams, shard.absences));
        requests.push(shard.requests);
        match (&mut faults, shard.faults) {
            (Some(all), Some(notes)) => all.merge(notes),
            (None, notes) => faults = notes,
            (Some(_), None) => {}
        }
    }
    let window_s = length_ns as f64 / 1e9;
    let matching = absences::matching(plan);
    let sides: Vec<_> = received
        .iter()
        .map(|(node, ledger, streams, absences)| {
            let absences = Absences::new(absences, &matching);
            Received { node: *node, ledger, streams, absences }
        })
        .collect();
    let reactions = plan.workload.has_reactions().then(|| reactions(plan, &publishers));
    let nodes = plan.reports_pairs().then(|| setup::nodes_of_publishers(plan, &plan.fleet.audiences(&plan.workload)));
    let mut books = books::close(&publishers, &sides, plan.workload.devices.len(), nodes.as_deref());
    books.delivery.late = counters.late;
    books.delivery.duplicated = counters.duplicated;
    books.delivery.out_of_order = counters.out_of_order;
    books.delivery.overlap = counters.overlap;
    books.delivery.retained_replay = counters.retained_replay;
    books.delivery.foreign = counters.foreign + books.never_sent;
    books.delivery.truncated = counters.truncated;
    books.delivery.corrupt = counters.corrupt;
    books.due_times = audit::audit(plan, &publishers, &due_times);
    let broken = [books.delivery.lost, books.delivery.duplicated];
    books.broken_promises = promises::broken(plan, &publishers, &sides, broken);
    let has_predicates = plan.workload.subscribers.iter().any(|group| group.predicate.is_some());
    let content = match has_predicates {
        true => content::closing::close(plan, &Judged::new(&publishers, &sides), content),
        false => vec![],
    };
    if let Some(log) = &mut log {
        log.add_missing(&Judged::new(&publishers, &sides));
        let rows = sides.iter().flat_map(|side| side.streams);
        log.streams = rows.clone().map(|row| (row.subscriber, row.publisher)).collect();
        log.filtered_for = rows.filter_map(|row| Some((row.subscriber, row.filtered_for?))).collect();
    }
    let faults = faults.map(|mut notes| FaultOutcome {
        books: faults::by_segment(plan, &publishers, &sides, &mut notes),
        planned: Arc::clone(&plan.faults),
        chosen: notes.chosen.clone(),
        notes,
    });
    if let Some(log) = &mut log {
        log.publishers = publishers;
    }
    let requests = request_outcome::close(&plan.workload, plan.parties(), &books.groups, requests, window_s);
    Outcome {
        pairs: pairs(&mut books, latencies),
        lost: vec![],
        access: vec![],
        books,
        requests,
        times,
        types,
        counters,
        content,
        transform,
        series,
        received_on_nodes,
        traffic,
        followed,
        log,
        unsent_bytes,
        held_bytes,
        threads,
        ramps,
        window_ns,
        faults,
        reactions,
        started_at_ns: 0,
        drain_ns: 0,
        probed: None,
        most_online: None,
        interrupted: false,
        realtime: false,
        unreachable: false,
    }
}

/// Adds the messages that a shard received in each full second of a window.
fn add_received(all: &mut Option<Vec<u64>>, series: &Series, length_ns: u64) {
    let seconds = series.deliveries_per_second((length_ns / 1_000_000_000) as usize);
    let all = all.get_or_insert_with(|| vec![0; seconds.len()]);
    all.iter_mut().zip(seconds).for_each(|(sum, received)| *sum += u64::from(received));
}

/// Latencies by (senders' node, receivers' node).
type Latencies = BTreeMap<(u16, u16), Bounds>;

fn record_latencies(all: &mut Latencies, to: u16, from_nodes: Vec<Option<Box<Bounds>>>) {
    for (from, latency) in (0u16..).zip(from_nodes) {
        let Some(latency) = latency else { continue };
        all.entry((from, to)).or_insert_with(|| Bounds::new(Precision::Breakdown)).merge(&latency);
    }
}

/// What each node's clients received from each node's devices.
fn pairs(books: &mut Books, mut latencies: Latencies) -> Vec<NodePair> {
    let by_nodes = std::mem::take(&mut books.by_nodes).into_iter();
    let silent = std::mem::take(&mut books.silent_by_nodes);
    let pair = |((from, to), delivery)| {
        let latency = latencies.remove(&(from, to)).unwrap_or_else(|| Bounds::new(Precision::Breakdown));
        NodePair { from, to, delivery, silent: silent.get(&(from, to)).copied().unwrap_or(0), latency }
    };
    by_nodes.map(pair).collect()
}

/// Counts reactions, and how many are missing compared with an ideal system, which delivers every message that a device
/// offered while online to all devices that react to it.
fn reactions(plan: &RunPlan, publishers: &[PublisherBook]) -> Reactions {
    let reacts = |group: u16| plan.workload.devices[usize::from(group)].reaction().is_some();
    let mut counted = Reactions::default();
    let mut ideal = vec![0_u64; plan.fleet.devices().len()];
    for book in publishers {
        if reacts(book.group) {
            counted.triggered += book.offered;
        } else {
            counted.scheduled += book.offered;
            ideal[book.publisher as usize] = book.offered - book.skipped_planned;
        }
    }
    for link in plan.fleet.links() {
        let group = plan.fleet.devices()[link.reacts as usize].group;
        let each = plan.workload.devices[usize::from(group)].reaction().map_or(0, |reaction| reaction.burst.messages);
        // Bursts that trigger bursts multiply.
        let triggers = ideal[link.trigger as usize].saturating_mul(u64::from(each));
        let reacting = &mut ideal[link.reacts as usize];
        *reacting = reacting.saturating_add(triggers);
        counted.starved = counted.starved.saturating_add(triggers);
    }
    counted.starved = counted.starved.saturating_sub(counted.triggered);
    counted
}

/// Adds the rows by group of another shard.
fn merge_rows<T: Clone>(all: &mut Vec<Option<Box<T>>>, others: Vec<Option<Box<T>>>, merge: fn(&mut T, &T)) {
    all.resize(all.len().max(others.len()), None);
    for (mine, theirs) in all.iter_mut().zip(others) {
        match (mine.as_mut(), theirs) {
            (Some(mine), Some(theirs)) => merge(mine, &theirs),
            (None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
    }
}
