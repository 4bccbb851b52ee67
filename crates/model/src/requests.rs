//! Requests and answers: what requesters and responders of a workload do, and who answers whom.
//!
//! A group of requesters is a device group whose messages wait for an answer; a group of responders is a subscriber group that
//! sends one. So a request is scheduled, sent and heard like any message, and only the way back is new.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fleet::{Fleet, StreamSource};
use crate::random::{Stream, mix};
use crate::topic::TopicFilter;
use crate::workload::Workload;

/// Bytes of the smallest answer: its header.
pub const SMALLEST_ANSWER_BYTES: u32 = 24;

/// What makes a device group one of requesters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Time from handing a request to the system to giving it up.
    pub timeout: Duration,
    /// Requests of one requester that wait for their answers at once, at most; a request due beyond that waits.
    pub in_flight: u16,
}

/// What makes a subscriber group one of responders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Responds {
    /// Whole payload of an answer, bytes; at least [`SMALLEST_ANSWER_BYTES`].
    pub reply_bytes: u32,
    /// Time spent on a request.
    pub processing: ProcessingTime,
    /// Requests that a responder works on at once.
    pub concurrency: u16,
    /// Requests that wait at a responder for that, at most; one beyond is dropped.
    pub queue: u32,
}

/// How long a responder works on a request.
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

/// Draws for processing times; a purpose of its own beside those of schedules.
const PROCESSING: u64 = 0x0a45;

impl ProcessingTime {
    /// Its mean.
    pub fn mean(&self) -> Duration {
        match self {
            ProcessingTime::Fixed(mean)
            | ProcessingTime::Exponential { mean }
            | ProcessingTime::Lognormal { mean, .. } => *mean,
            ProcessingTime::Uniform { min, max } => (*min + *max) / 2,
        }
    }

    /// Time for one request, ns: a function of the seed and of which request it is, whoever answers it and when.
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
    /// Does anybody ask?
    pub fn has_requests(&self) -> bool {
        self.devices.iter().any(|group| group.requests.is_some())
    }

    /// The longest time that a request waits for its answer; `None` if nobody asks.
    pub fn longest_timeout(&self) -> Option<Duration> {
        self.devices.iter().filter_map(|group| group.requests).map(|requests| requests.timeout).max()
    }

    /// The largest answer, bytes; 0 if nobody answers.
    pub fn largest_reply_bytes(&self) -> u32 {
        let answers = self.subscribers.iter().filter_map(|group| group.responds);
        answers.map(|responds| responds.reply_bytes).max().unwrap_or(0)
    }
}

/// A group of requesters whose requests do not have exactly one responder, or shared group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misdirected {
    /// The group, as an index into [`Workload::devices`].
    pub group: u16,
    /// Topic of one of its requests.
    pub topic: String,
    /// Who would answer it: groups of responders, a name for each responder that is on its own.
    pub responders: Vec<String>,
}

/// The first group of requesters whose requests nobody would answer, or more than one would.
pub fn misdirected(workload: &Workload, fleet: &Fleet) -> Option<Misdirected> {
    if !workload.has_requests() {
        return None;
    }
    let answers = answers(workload, fleet);
    let asks = |group: u16| workload.devices[usize::from(group)].requests.is_some();
    let device = fleet.devices().iter().find(|device| asks(device.group) && answers[device.publisher as usize] != 1)?;
    let hears = |list: &Arc<[StreamSource]>| list.iter().any(|heard| heard.publisher == device.publisher);
    let streams = fleet.streams(workload);
    let responders = audience_heads(workload, fleet)
        .filter(|(subscriber, _)| hears(&streams[*subscriber]))
        .map(|(_, group)| workload.subscribers[group].name.clone());
    Some(Misdirected {
        group: device.group,
        topic: fleet.topic(workload, device),
        responders: responders.take(3).collect(),
    })
}

/// Who answers a publisher's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderRef {
    /// The filter by which it hears them.
    pub filter: Arc<str>,
    /// Its number in the fleet; of a shared group, that of the first.
    pub subscriber: u32,
}

/// By publisher that asks: who answers it. `streams` is what [`Fleet::streams`] gives.
pub fn responders(workload: &Workload, fleet: &Fleet, streams: &[Arc<[StreamSource]>]) -> HashMap<u32, ResponderRef> {
    let mut found = HashMap::new();
    for (subscriber, _) in audience_heads(workload, fleet).filter(|_| workload.has_requests()) {
        let filters = fleet.filters(workload, &fleet.subscribers()[subscriber]);
        let filters: Vec<(Arc<str>, TopicFilter)> =
            filters.into_iter().map(|filter| (filter.as_str().into(), TopicFilter(filter))).collect();
        for heard in &*streams[subscriber] {
            let device = &fleet.devices()[heard.publisher as usize];
            if workload.devices[usize::from(device.group)].requests.is_none() {
                continue;
            }
            let topic = fleet.topic(workload, device);
            if let Some((filter, _)) = filters.iter().find(|(_, filter)| filter.matches(&topic)) {
                let number = fleet.subscribers()[subscriber].number;
                let answerer = || ResponderRef { filter: Arc::clone(filter), subscriber: number };
                found.entry(heard.publisher).or_insert_with(answerer);
            }
        }
    }
    found
}

/// A request that somebody hears who does not answer it: the group of who does, and the request's topic.
pub fn overheard(workload: &Workload, fleet: &Fleet) -> Option<(String, String)> {
    if !workload.has_requests() {
        return None;
    }
    let streams = fleet.streams(workload);
    let asks = |heard: &&StreamSource| {
        let device = &fleet.devices()[heard.publisher as usize];
        workload.devices[usize::from(device.group)].requests.is_some()
    };
    fleet.subscribers().iter().zip(&streams).find_map(|(subscriber, heard)| {
        let group = &workload.subscribers[usize::from(subscriber.group)];
        let heard = heard.iter().find(asks).filter(|_| group.responds.is_none())?;
        Some((group.name.clone(), fleet.topic(workload, &fleet.devices()[heard.publisher as usize])))
    })
}

/// By publisher: audiences of responders that hear it.
fn answers(workload: &Workload, fleet: &Fleet) -> Vec<u32> {
    let streams = fleet.streams(workload);
    let mut answers = vec![0; fleet.devices().len()];
    for (subscriber, _) in audience_heads(workload, fleet) {
        streams[subscriber].iter().for_each(|heard| answers[heard.publisher as usize] += 1);
    }
    answers
}

/// The first subscriber of each audience of responders, with its group.
fn audience_heads<'a>(workload: &'a Workload, fleet: &'a Fleet) -> impl Iterator<Item = (usize, usize)> + 'a {
    let audiences = fleet.audiences(workload);
    let mut next = 0;
    fleet.subscribers().iter().zip(audiences).filter_map(move |(subscriber, audience)| {
        // They are numbered in the order of their first members.
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
