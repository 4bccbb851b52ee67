//! Requests and their answers in a record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{LatencyBounds, Summary};

/// What became of requests. The messages that carry them are in the record's `delivery` like any other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFigures {
    /// Clients that ask.
    pub requesters: u64,
    /// Clients that answer.
    pub responders: u64,
    /// Requests sent, by what became of them.
    pub outcomes: RequestBooks,
    /// The same at responders.
    pub responses: ResponseBooks,
    /// First answers in time that arrived in the measured window, per second of it.
    pub answered_per_s: f64,
    /// Requests that waited for answers at once, at most; a sum over threads, whose moments may differ.
    pub peak_in_flight: u64,
    /// Answer's arrival − request's due time, of requests answered in time.
    pub round_trip: Option<LatencyBounds>,
    /// Answer's arrival − request's write start.
    pub service_round_trip: Option<LatencyBounds>,
    /// Answers without such a time: a client library that writes on a thread of its own had not told yet when it began.
    #[serde(default)]
    pub without_write_start: u64,
    /// The round trip from due without what the responder took: both ways through the system, and waiting for the window.
    pub travel: Option<LatencyBounds>,
    /// Time that a request waited at its responder until that had a hand free.
    pub waiting: Option<Summary>,
    /// Time from an answer being due at its responder until pubmark got to it: ours.
    pub responder_lag: Option<Summary>,
    /// Upper bound of the time between an answer's arrival at our socket and our read.
    pub receive_lateness: Option<Summary>,
    /// By group of requesters.
    pub by_group: Vec<RequestGroup>,
}

/// Requests due in the measured window, by what became of them. `sent = answered + late + timed_out + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestBooks {
    /// Handed to the system; the `sent` of their messages.
    pub sent: u64,
    /// Answered in time.
    pub answered: u64,
    /// Answered after they were given up.
    pub late: u64,
    /// Given up when their time was over, and never answered.
    pub timed_out: u64,
    /// Not answered, and nobody can know why: the requester's connection ended meanwhile, or the run did.
    pub unknown: u64,
    /// Further answers to a request that had one.
    pub duplicated: u64,
    /// Answers that say they belong to another request, or to none of the requester's.
    pub misdirected: u64,
    /// Answers to requests that the system had refused.
    pub after_refusal: u64,
    /// A cap was reached; late and duplicated answers may be taken for each other.
    pub approximate: bool,
}

/// What responders did with requests due in the measured window.
/// `received = answered + dropped + without_address + refused + broken + unsent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseBooks {
    /// Requests that arrived, once each.
    pub received: u64,
    /// Answers written.
    pub answered: u64,
    /// Not answered: too many waited already.
    pub dropped: u64,
    /// Not answered: they did not say where to, or with more words than a requester of ours needs.
    pub without_address: u64,
    /// Not answered: larger than the system takes.
    pub refused: u64,
    /// Answers whose connection ended before they were written.
    pub broken: u64,
    /// Still with the responder when the run ended.
    pub unsent: u64,
    /// Of the answered: the system refused the answer afterwards.
    pub refused_later: u64,
}

/// One group of requesters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestGroup {
    /// Its name.
    pub name: String,
    /// What became of its requests.
    pub outcomes: RequestBooks,
    /// Answer's arrival − request's due time.
    pub round_trip: Option<LatencyBounds>,
}

impl RequestBooks {
    /// Requests that had no answer in time.
    pub fn without_reply(&self) -> u64 {
        self.late + self.timed_out + self.unknown
    }

    /// Do they close?
    pub fn close(&self) -> bool {
        self.sent == self.answered + self.late + self.timed_out + self.unknown
    }

    /// Adds another group's.
    pub fn add(&mut self, other: &RequestBooks) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.late += other.late;
        self.timed_out += other.timed_out;
        self.unknown += other.unknown;
        self.duplicated += other.duplicated;
        self.misdirected += other.misdirected;
        self.after_refusal += other.after_refusal;
        self.approximate |= other.approximate;
    }
}

impl ResponseBooks {
    /// Do they close?
    pub fn close(&self) -> bool {
        self.received == self.answered + self.dropped + self.without_address + self.refused + self.broken + self.unsent
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &ResponseBooks) {
        self.received += other.received;
        self.answered += other.answered;
        self.dropped += other.dropped;
        self.without_address += other.without_address;
        self.refused += other.refused;
        self.broken += other.broken;
        self.unsent += other.unsent;
        self.refused_later += other.refused_later;
    }
}
