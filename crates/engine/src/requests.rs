//! What one shard found out about requests and their replies.

use std::collections::HashMap;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_metrics::ledger::Ledger;
use pubmark_record::requests::ResponseBooks;
use serde::{Deserialize, Serialize};

use crate::plan::TYPE_LIMIT;
use crate::remote::bounded;

/// One requester's side of the books. Counts are of measured requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequesterBook {
    /// Index of its group.
    pub group: u16,
    /// Its stream of answers in the shard's ledger.
    pub stream: u32,
    /// Answered in time.
    pub answered: u64,
    /// Given up when their time was over.
    pub expired: u64,
    /// Answered after they were given up.
    pub late: u64,
    /// Of these, requests that were abandoned before they were written, as far as we could know.
    pub late_unsent: u64,
    /// Given up, but their connection had ended while they were open.
    pub orphans: Vec<u32>,
    /// Open when the run ended.
    pub open: u64,
    /// Further answers.
    pub duplicated: u64,
    /// Replies to other requests.
    pub misdirected: u64,
    /// Replies to refused requests.
    pub after_refusal: u64,
}

impl RequesterBook {
    /// A request that was given up turns out not to have been sent.
    pub fn take_back(&mut self, sequence: u32) {
        self.expired = self.expired.saturating_sub(1);
        self.orphans.retain(|orphan| *orphan != sequence);
    }
}

/// Times of requests answered in time, and of their replies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestTimes {
    /// Answer's arrival − request's due time.
    pub round_trip: Bounds,
    /// Answer's arrival − request's write start.
    pub service: Bounds,
    /// The round trip without what the responder took.
    pub travel: Bounds,
    /// Wait of a request at its responder.
    pub waiting: Distribution,
    /// A reply's ready time − its due time at the responder.
    pub responder_lag: Distribution,
    /// Our read of a reply − the latest time at which it cannot have been there.
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
    /// Adds another shard's.
    pub fn merge(&mut self, other: &RequestTimes) {
        self.round_trip.merge(&other.round_trip);
        self.service.merge(&other.service);
        self.travel.merge(&other.travel);
        self.waiting.merge(&other.waiting);
        self.responder_lag.merge(&other.responder_lag);
        self.receive_lateness.merge(&other.receive_lateness);
    }
}

/// What one shard found out about requests.
#[derive(Serialize, Deserialize)]
pub struct ShardRequests {
    /// Its requesters' books.
    pub books: Vec<RequesterBook>,
    /// First answers, a stream a requester.
    pub ledger: Ledger,
    /// Times.
    pub times: RequestTimes,
    /// Round trips by group, below [`TYPE_LIMIT`].
    #[serde(deserialize_with = "bounded::map_of_at_most::<TYPE_LIMIT, _, _, _>")]
    pub groups: HashMap<u16, Bounds>,
    /// What its responders did.
    pub responses: ResponseBooks,
    /// Answers in time that arrived in the measured window.
    pub answered_in_window: u64,
    /// Answers in time that came before it was known when the write of their request began.
    pub without_write_start: u64,
    /// Requests open at once, at most.
    pub peak_open: u64,
}

impl ShardRequests {
    /// Nothing yet, for the requesters with these books.
    pub fn new(books: Vec<RequesterBook>) -> ShardRequests {
        ShardRequests {
            ledger: Ledger::new(books.len()),
            books,
            times: RequestTimes::default(),
            groups: HashMap::new(),
            responses: ResponseBooks::default(),
            answered_in_window: 0,
            without_write_start: 0,
            peak_open: 0,
        }
    }

    /// Enters a round trip.
    pub fn enter_round_trip(&mut self, group: u16, time_ns: i64, width_ns: u64) {
        self.times.round_trip.record(time_ns, width_ns);
        if usize::from(group) < TYPE_LIMIT {
            let row = self.groups.entry(group).or_insert_with(|| Bounds::new(Precision::Breakdown));
            row.record(time_ns, width_ns);
        }
    }
}
