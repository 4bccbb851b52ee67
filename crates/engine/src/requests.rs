//! The outcome of one shard for requests and their replies.

use std::collections::HashMap;

use pubmark_metrics::bounded;
use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_metrics::ledger::Ledger;
use pubmark_record::requests::ResponseBooks;
use serde::{Deserialize, Serialize};

use crate::plan::TYPE_LIMIT;

/// One requester's side of the accounting. Counts are of measured requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequesterBook {
    /// Index of its group.
    pub group: u16,
    /// Its stream of replies in the shard's ledger.
    pub stream: u32,
    /// Requests with a reply in time.
    pub answered: u64,
    /// Requests that timed out.
    pub expired: u64,
    /// Requests whose reply arrived after the time-out.
    pub late: u64,
    /// Of these, requests that were abandoned before they were written, according to the requester.
    pub late_unsent: u64,
    /// Of the late, requests whose reply would have been in time without the generator's delays: the lower bound of the
    /// round trip is within the time-out.
    pub late_by_generator: u64,
    /// Requests that timed out after their connection had ended while they were open.
    pub orphans: Vec<u32>,
    /// Requests that were open when the run ended.
    pub open: u64,
    /// Further replies to the same request.
    pub duplicated: u64,
    /// Replies to other requests.
    pub misdirected: u64,
    /// Replies to refused requests.
    pub after_refusal: u64,
}

impl RequesterBook {
    /// A request that timed out turns out not to have been sent.
    pub fn take_back(&mut self, sequence: u32) {
        self.expired = self.expired.saturating_sub(1);
        self.orphans.retain(|orphan| *orphan != sequence);
    }
}

/// Times of requests with a reply in time, and of their replies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestTimes {
    /// Arrival of the reply − due time of the request.
    pub round_trip: Bounds,
    /// Arrival of the reply − write start of the request.
    pub service: Bounds,
    /// The round trip without the time at the responder.
    pub travel: Bounds,
    /// Wait of a request at its responder.
    pub waiting: Distribution,
    /// A reply's ready time − its due time at the responder.
    pub responder_lag: Distribution,
    /// Our read of a reply − the latest time at which it had certainly not arrived.
    pub receive_lateness: Distribution,
}

impl Default for RequestTimes {
    fn default() -> RequestTimes {
        let empty = || Distribution::new(Precision::Total);
        RequestTimes {
            round_trip: Bounds::new(Precision::Total),
            service: Bounds::new(Precision::Total),
            travel: Bounds::new(Precision::Total),
            waiting: empty(),
            responder_lag: empty(),
            receive_lateness: empty(),
        }
    }
}

impl RequestTimes {
    /// Adds the times of another shard.
    pub fn merge(&mut self, other: &RequestTimes) {
        self.round_trip.merge(&other.round_trip);
        self.service.merge(&other.service);
        self.travel.merge(&other.travel);
        self.waiting.merge(&other.waiting);
        self.responder_lag.merge(&other.responder_lag);
        self.receive_lateness.merge(&other.receive_lateness);
    }
}

/// The outcome of one shard for requests.
#[derive(Serialize, Deserialize)]
pub struct ShardRequests {
    /// Its requesters' accounting.
    pub books: Vec<RequesterBook>,
    /// First replies, one stream per requester.
    pub ledger: Ledger,
    /// Times.
    pub times: RequestTimes,
    /// Round trips by group, below [`TYPE_LIMIT`].
    #[serde(deserialize_with = "bounded::map_of_at_most::<TYPE_LIMIT, _, _, _>")]
    pub groups: HashMap<u16, Bounds>,
    /// Counts of its responders.
    pub responses: ResponseBooks,
    /// Replies in time that arrived in the measured window.
    pub answered_in_window: u64,
    /// First replies that arrived in the measured window, in time or late.
    pub replies_in_window: u64,
    /// Replies in time that arrived before the write start of their request was known.
    pub without_write_start: u64,
    /// Largest number of requests open at once.
    pub peak_open: u64,
}

impl ShardRequests {
    /// No requests yet, for the requesters with these accounts.
    pub fn new(books: Vec<RequesterBook>) -> ShardRequests {
        ShardRequests {
            ledger: Ledger::new(books.len()),
            books,
            times: RequestTimes::default(),
            groups: HashMap::new(),
            responses: ResponseBooks::default(),
            answered_in_window: 0,
            replies_in_window: 0,
            without_write_start: 0,
            peak_open: 0,
        }
    }

    /// Records a round trip.
    pub fn record_round_trip(&mut self, group: u16, time_ns: i64, width_ns: u64) {
        self.times.round_trip.record(time_ns, width_ns);
        if usize::from(group) < TYPE_LIMIT {
            let row = self.groups.entry(group).or_insert_with(|| Bounds::new(Precision::Breakdown));
            row.record(time_ns, width_ns);
        }
    }
}
