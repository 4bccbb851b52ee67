//! Requests and replies: what requesters and responders of a workload do, and which responder replies to which requester.
//!
//! A group of requesters is a device group whose messages wait for a reply; a group of responders is a subscriber group
//! that sends one. So a request is scheduled, sent and received like any message; only the reply is handled separately.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fleet::{Fleet, StreamSource};
use crate::random::{Stream, mix};
use crate::topic::TopicFilter;
use crate::workload::Workload;

/// Size of the smallest reply in bytes: its header.
pub const SMALLEST_REPLY_BYTES: u32 = 24;

/// Settings that make a device group a group of requesters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Time from passing a request to the system until the requester gives up.
    pub timeout: Duration,
    /// In-flight window: requests of one requester that wait for their replies at the same time, at most; a request due
    /// beyond that waits.
    pub in_flight: u16,
}

/// Settings that make a subscriber group a group of responders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Responds {
    /// Size of the whole payload of a reply in bytes; at least [`SMALLEST_REPLY_BYTES`].
    pub reply_bytes: u32,
    /// Processing time of a request.
    pub processing: ProcessingTime,
    /// Requests that a responder processes at the same time.
    pub concurrency: u16,
    /// Maximum number of requests that wait at a responder to be processed; further requests are dropped.
    pub queue: u32,
}

/// How long a responder processes a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProcessingTime {
    /// Always the same; zero for none.
    Fixed(Duration),
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// Lognormal, by mean and standard deviation of the time itself (not of its logarithm).
    Lognormal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        sd: Duration,
    },
    /// Every time from `min` to `max` equally likely.
    Uniform {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
}

/// Purpose of draws for processing times, different from the purposes of schedules.
const PROCESSING: u64 = 0x0a45;

impl ProcessingTime {
    /// Mean of the distribution.
    pub fn mean(&self) -> Duration {
        match self {
            ProcessingTime::Fixed(mean)
            | ProcessingTime::Exponential { mean }
            | ProcessingTime::Lognormal { mean, .. } => *mean,
            ProcessingTime::Uniform { min, max } => (*min + *max) / 2,
        }
    }

    /// Processing time of one request, ns: a function of the seed and the request, whichever responder replies and when.
    pub fn draw_ns(&self, seed: u64, publisher: u32, sequence: u32) -> u64 {
        let draws = || Stream::new(mix(seed).wrapping_add(u64::from(publisher)), PROCESSING);
        let index = u64::from(sequence);
        let ns = |time: &Duration| time.as_nanos() as f64;
        match self {
            ProcessingTime::Fixed(time) => time.as_nanos() as u64,
            ProcessingTime::Exponential { mean } => (ns(mean) * draws().exponential(index)) as u64,
            ProcessingTime::Lognormal { mean, sd } => {
                let variance = libm::log1p((ns(sd) / ns(mean)) * (ns(sd) / ns(mean)));
                let mu = libm::log(ns(mean)) - variance / 2.0;
                libm::exp(mu + libm::sqrt(variance) * draws().normal(index)) as u64
            }
            ProcessingTime::Uniform { min, max } => (ns(min) + (ns(max) - ns(min)) * draws().unit(index)) as u64,
        }
    }
}

impl Workload {
    /// Whether the workload has requesters.
    pub fn has_requests(&self) -> bool {
        self.devices.iter().any(|group| group.requests.is_some())
    }

    /// The longest time that a request waits for its reply; `None` without requesters.
    pub fn longest_timeout(&self) -> Option<Duration> {
        self.devices.iter().filter_map(|group| group.requests).map(|requests| requests.timeout).max()
    }

    /// The largest reply, bytes; 0 without responders.
    pub fn largest_reply_bytes(&self) -> u32 {
        let responding = self.subscribers.iter().filter_map(|group| group.responds);
        responding.map(|responds| responds.reply_bytes).max().unwrap_or(0)
    }
}

/// A group of requesters whose requests do not reach exactly one responder, or one shared group of responders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misdirected {
    /// The group, as an index into [`Workload::devices`].
    pub group: u16,
    /// Topic of one of its requests.
    pub topic: String,
    /// Who would reply: groups of responders; the name is repeated for each responder that is not in a shared group.
    pub responders: Vec<String>,
}

/// The first group of requesters whose requests no responder, or more than one, would reply to.
pub fn misdirected(workload: &Workload, fleet: &Fleet) -> Option<Misdirected> {
    if !workload.has_requests() {
        return None;
    }
    let responder_counts = responder_counts(workload, fleet);
    let sends_requests = |group: u16| workload.devices[usize::from(group)].requests.is_some();
    let device = fleet
        .devices()
        .iter()
        .find(|device| sends_requests(device.group) && responder_counts[device.publisher as usize] != 1)?;
    let receives = |list: &Arc<[StreamSource]>| list.iter().any(|source| source.publisher == device.publisher);
    let streams = fleet.streams(workload);
    let responders = audience_heads(workload, fleet)
        .filter(|(subscriber, _)| receives(&streams[*subscriber]))
        .map(|(_, group)| workload.subscribers[group].name.clone());
    Some(Misdirected {
        group: device.group,
        topic: fleet.topic(workload, device),
        responders: responders.take(3).collect(),
    })
}

/// The responder of a publisher's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderRef {
    /// The filter by which the responder receives the requests.
    pub filter: Arc<str>,
    /// The responder's number in the fleet; for a shared group, the number of its first member.
    pub subscriber: u32,
}

/// Responder of each requesting publisher. `streams` is the result of [`Fleet::streams`].
pub fn responders(workload: &Workload, fleet: &Fleet, streams: &[Arc<[StreamSource]>]) -> HashMap<u32, ResponderRef> {
    let mut found = HashMap::new();
    for (subscriber, _) in audience_heads(workload, fleet).filter(|_| workload.has_requests()) {
        let filters = fleet.filters(workload, &fleet.subscribers()[subscriber]);
        let filters: Vec<(Arc<str>, TopicFilter)> =
            filters.into_iter().map(|filter| (filter.as_str().into(), TopicFilter(filter))).collect();
        for source in &*streams[subscriber] {
            let device = &fleet.devices()[source.publisher as usize];
            if workload.devices[usize::from(device.group)].requests.is_none() {
                continue;
            }
            let topic = fleet.topic(workload, device);
            if let Some((filter, _)) = filters.iter().find(|(_, filter)| filter.matches(&topic)) {
                let number = fleet.subscribers()[subscriber].number;
                let answerer = || ResponderRef { filter: Arc::clone(filter), subscriber: number };
                found.entry(source.publisher).or_insert_with(answerer);
            }
        }
    }
    found
}

/// A request that a subscriber receives that does not reply to it: the group of the responder, and the request's topic.
pub fn received_by_non_responder(workload: &Workload, fleet: &Fleet) -> Option<(String, String)> {
    if !workload.has_requests() {
        return None;
    }
    let streams = fleet.streams(workload);
    let sends_requests = |source: &&StreamSource| {
        let device = &fleet.devices()[source.publisher as usize];
        workload.devices[usize::from(device.group)].requests.is_some()
    };
    fleet.subscribers().iter().zip(&streams).find_map(|(subscriber, source)| {
        let group = &workload.subscribers[usize::from(subscriber.group)];
        let source = source.iter().find(sends_requests).filter(|_| group.responds.is_none())?;
        Some((group.name.clone(), fleet.topic(workload, &fleet.devices()[source.publisher as usize])))
    })
}

/// By publisher: number of responder audiences that receive its messages.
fn responder_counts(workload: &Workload, fleet: &Fleet) -> Vec<u32> {
    let streams = fleet.streams(workload);
    let mut responder_counts = vec![0; fleet.devices().len()];
    for (subscriber, _) in audience_heads(workload, fleet) {
        streams[subscriber].iter().for_each(|source| responder_counts[source.publisher as usize] += 1);
    }
    responder_counts
}

/// The first subscriber of each audience of responders, with its group.
fn audience_heads<'a>(workload: &'a Workload, fleet: &'a Fleet) -> impl Iterator<Item = (usize, usize)> + 'a {
    let audiences = fleet.audiences(workload);
    let mut next = 0;
    fleet.subscribers().iter().zip(audiences).filter_map(move |(subscriber, audience)| {
        // Audiences are numbered in the order of their first members.
        let first = audience == next;
        next += u32::from(first);
        let group = usize::from(subscriber.group);
        (first && workload.subscribers[group].responds.is_some()).then_some((subscriber.number as usize, group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processing_time_depends_on_the_request_alone_and_has_its_mean() {
        let ms = Duration::from_millis;
        let times = [
            ProcessingTime::Fixed(ms(5)),
            ProcessingTime::Exponential { mean: ms(5) },
            ProcessingTime::Lognormal { mean: ms(5), sd: ms(2) },
            ProcessingTime::Uniform { min: ms(2), max: ms(8) },
        ];
        for time in times {
            assert_eq!(time.mean(), ms(5));
            assert_eq!(time.draw_ns(1, 7, 9), time.draw_ns(1, 7, 9));
            let mean = (0..20_000).map(|sequence| time.draw_ns(42, 3, sequence) as f64).sum::<f64>() / 20_000.0;
            assert!((mean / 5e6 - 1.0).abs() < 0.03, "{time:?}: {mean} ns");
        }
        let exponential = times[1];
        assert_ne!(exponential.draw_ns(1, 7, 9), exponential.draw_ns(1, 7, 10));
        assert_ne!(exponential.draw_ns(1, 7, 9), exponential.draw_ns(1, 8, 9));
        assert_ne!(exponential.draw_ns(1, 7, 9), exponential.draw_ns(2, 7, 9));
    }
}
