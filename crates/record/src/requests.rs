//! Requests and their replies in a record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{LatencyBounds, Summary};

/// Outcomes of requests. The messages that carry them are also counted in the record's `delivery`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFigures {
    /// Clients that send requests.
    pub requesters: u64,
    /// Clients that reply to requests.
    pub responders: u64,
    /// Requests sent, by outcome.
    pub outcomes: RequestBooks,
    /// Requests received by responders, by outcome.
    pub responses: ResponseBooks,
    /// First replies that were in time and arrived in the measured window, per second of the window.
    pub answered_per_s: f64,
    /// First replies that arrived in the measured window, in time or late, per second of the window; `null` in records of
    /// older versions.
    #[serde(default)]
    pub replies_per_s: Option<f64>,
    /// Shortest timeout of the groups of requesters, s; `null` in records of older versions.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// Most requests that waited for replies at the same time; a sum over threads, whose maxima may be at different
    /// times.
    pub peak_in_flight: u64,
    /// Arrival of the reply − due time of the request, for requests answered in time.
    pub round_trip: Option<LatencyBounds>,
    /// Arrival of the reply − write start of the request.
    pub service_round_trip: Option<LatencyBounds>,
    /// Replies without a service round trip: a client library that writes in a thread of its own had not yet reported
    /// the write start of the request.
    #[serde(default)]
    pub without_write_start: u64,
    /// Round trip from the due time, without the time spent at the responder: both directions through the system, and
    /// the wait for the in-flight window.
    pub travel: Option<LatencyBounds>,
    /// Time that a request waited at its responder because the responder was busy.
    pub waiting: Option<Summary>,
    /// Time from a reply being due at its responder until pubmark processed it; caused by pubmark.
    pub responder_lag: Option<Summary>,
    /// Upper bound of the time between a reply's arrival at our socket and our read.
    pub receive_lateness: Option<Summary>,
    /// The same by group of requesters.
    pub by_group: Vec<RequestGroup>,
}

/// Requests due in the measured window, by outcome. `sent = answered + late + timed_out + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestBooks {
    /// Requests sent; equal to the `sent` of their messages.
    pub sent: u64,
    /// Requests whose reply arrived in time.
    pub answered: u64,
    /// Requests whose reply arrived after the timeout.
    pub late: u64,
    /// Of the late, requests whose reply would have been in time without pubmark's delays: the lower bound of the round
    /// trip is within the timeout.
    #[serde(default)]
    pub late_by_generator: u64,
    /// Requests whose timeout passed and that never got a reply.
    pub timed_out: u64,
    /// Requests without a reply whose outcome cannot be known: the requester's connection or the run ended before the
    /// timeout.
    pub unknown: u64,
    /// Further replies to a request that had already been answered.
    pub duplicated: u64,
    /// Replies whose correlation names another request than the one that they belong to, or that belong to no request
    /// of the requester.
    pub misdirected: u64,
    /// Replies to requests that the system had refused.
    pub after_refusal: u64,
    /// A cap was reached, so late and duplicate replies may be confused with each other.
    pub approximate: bool,
}

/// Outcomes, at responders, of requests due in the measured window. `received = answered + dropped + without_address +
/// refused + broken + unsent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseBooks {
    /// Requests that arrived, without duplicates.
    pub received: u64,
    /// Replies written.
    pub answered: u64,
    /// Requests not answered because too many were already waiting.
    pub dropped: u64,
    /// Of the dropped, requests for which there may have been room if pubmark had sent and read each request at once, and
    /// ended each piece of work when it was due.
    #[serde(default)]
    pub dropped_by_generator: u64,
    /// Requests not answered because they have no reply address, or because their address or correlation is longer than
    /// a requester of pubmark needs.
    pub without_address: u64,
    /// Requests not answered because the reply is larger than the system accepts.
    pub refused: u64,
    /// Replies whose connection ended before they were written.
    pub broken: u64,
    /// Requests still at the responder when the run ended.
    pub unsent: u64,
    /// Of the answered, replies that the system refused afterwards.
    pub refused_later: u64,
}

/// One group of requesters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestGroup {
    /// Name of the group.
    pub name: String,
    /// Outcomes of the group's requests.
    pub outcomes: RequestBooks,
    /// Arrival of the reply − due time of the request.
    pub round_trip: Option<LatencyBounds>,
}

impl RequestBooks {
    /// Requests that got no reply in time.
    pub fn without_reply(&self) -> u64 {
        self.late + self.timed_out + self.unknown
    }

    /// Whether the categories add up to `sent`.
    pub fn close(&self) -> bool {
        self.sent == self.answered + self.late + self.timed_out + self.unknown
    }

    /// Adds the counts of another group.
    pub fn add(&mut self, other: &RequestBooks) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.late += other.late;
        self.late_by_generator += other.late_by_generator;
        self.timed_out += other.timed_out;
        self.unknown += other.unknown;
        self.duplicated += other.duplicated;
        self.misdirected += other.misdirected;
        self.after_refusal += other.after_refusal;
        self.approximate |= other.approximate;
    }
}

impl ResponseBooks {
    /// Whether the categories add up to `received`.
    pub fn close(&self) -> bool {
        self.received == self.answered + self.dropped + self.without_address + self.refused + self.broken + self.unsent
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &ResponseBooks) {
        self.received += other.received;
        self.answered += other.answered;
        self.dropped += other.dropped;
        self.dropped_by_generator += other.dropped_by_generator;
        self.without_address += other.without_address;
        self.refused += other.refused;
        self.broken += other.broken;
        self.unsent += other.unsent;
        self.refused_later += other.refused_later;
    }
}
