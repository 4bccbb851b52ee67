//! What became of messages: the message accounting, and what belongs to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::ContentRow;
use crate::latency::LatencyBounds;

/// What became of messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryFigures {
    /// Messages by what became of them.
    #[serde(flatten)]
    pub messages: Delivery,
    /// Messages not sent because the system takes no packet of their size; they are among the refused.
    pub too_large: u64,
    /// Messages whose configured size was raised to the header's.
    pub sizes_raised: u64,
    /// What was still on its way when the run ended.
    pub at_end: LeftAtEnd,
    /// Messages by what made them due; `null` where no device reacts.
    #[serde(default)]
    pub reactions: Option<ReactionCounts>,
    /// What clients filtered; `null` where the system does it for them.
    #[serde(default)]
    pub filtered: Option<FilteredCounts>,
    /// What subscribers filtered by the content of messages, by group; empty where no group has `where`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentRow>,
    /// Writer–reader pairs; `null` where a broker stands between them.
    #[serde(default)]
    pub pairs: Option<PairCounts>,
}

/// Message accounting: every message is in exactly one category. `offered = sent + skipped_planned + skipped_disconnected + refused + unsent`;
/// `expected = delivered + lost + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Due in the measured window.
    pub offered: u64,
    /// Handed to the system.
    pub sent: u64,
    /// Not sent: the device was planned offline.
    pub skipped_planned: u64,
    /// Not sent, or only in part: the connection was lost unplanned.
    pub skipped_disconnected: u64,
    /// Refused by the system or its limits.
    pub refused: u64,
    /// Still waiting at the deadline.
    pub unsent: u64,
    /// Sent, once for each subscription that held a session then; a shared group is one subscription.
    pub expected: u64,
    /// Of these, arrived (first copies).
    pub delivered: u64,
    /// Of these, did not arrive.
    pub lost: u64,
    /// Of these, sent at QoS 1 or 2 on a connection that died before the acknowledgement, and did not arrive.
    pub unknown: u64,
    /// Of the delivered, arrived more than 2 s after publishing ended.
    pub late: u64,
    /// Further copies.
    pub duplicated: u64,
    /// Of the delivered, arrived after a later message of their stream.
    pub out_of_order: u64,
    /// Further copies that a second matching filter of the same client explains.
    pub overlap: u64,
    /// Retained messages replayed on subscribing.
    pub retained_replay: u64,
    /// Messages of another run, or not ours.
    pub foreign: u64,
    /// Messages that arrived shorter than the smallest that their publisher sends; not part of delivered.
    #[serde(default)]
    pub truncated: u64,
    /// Copies of messages of the window whose `transform` subscribers could not undo: they arrived changed. Not part of delivered.
    #[serde(default)]
    pub corrupt: u64,
    /// Sent while a subscription held no session, and not delivered to it; not part of expected.
    pub absent: u64,
    /// Copies of refused messages that were delivered all the same; not part of delivered.
    pub delivered_after_refusal: u64,
    /// Sent, and kept back by the system's content filter, as the predicate of the subscribers does not hold; not part of expected.
    #[serde(default)]
    pub filtered_out: u64,
    /// Let through by the system's content filter although the predicate does not hold; not part of delivered.
    #[serde(default)]
    pub unmatched: u64,
    /// A cap was reached; the counts of missing and further copies may be off.
    pub approximate: bool,
}

/// What was still on its way when the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftAtEnd {
    /// Bytes unsent in our sockets.
    pub socket_unsent_bytes: u64,
    /// Bytes that were read for subscribers with a processing time, and not processed.
    #[serde(default)]
    pub held_bytes: u64,
    /// Bytes that TCP had not brought from the system to clients, or that clients had not read (behind links the first alone); `null`
    /// where the system was not started by this run, or has no broker.
    #[serde(default)]
    pub system_unsent_bytes: Option<u64>,
    /// Time that threads of the system were ready to run and did not during the drain, ns; `null` where that is not known.
    #[serde(default)]
    pub system_drain_wait_ns: Option<u64>,
}

/// Messages by what made them due, and how long chains of them took. Measured messages only: a reaction belongs to the
/// window if the scheduled message at the root of its chain does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReactionCounts {
    /// Messages offered by schedules.
    pub scheduled: u64,
    /// Messages offered because others were delivered.
    pub triggered: u64,
    /// Reactions that were never triggered: those of an ideal system, which delivers all that is offered by a device online,
    /// minus `triggered`.
    pub starved: u64,
    /// Delivery of a reaction − due time of its chain's root.
    pub chain_latency: Option<LatencyBounds>,
}

/// What clients filtered, in protocols that leave it to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilteredCounts {
    /// Of the sent, kept back by their publishers: nobody at the other end of the connection had asked for them. Where a
    /// subscription of ours held a session then, they are lost.
    pub withheld: u64,
    /// Messages that arrived and that no filter of their subscriber chose, from the first to the last of the run.
    pub passed_over: u64,
}

/// Writer–reader pairs that share a topic, of a system whose clients find each other by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairCounts {
    /// Pairs of which a measured message was expected: its writer had sent it, and its reader was there.
    pub all: u64,
    /// Of these, pairs of which nothing arrived, warm-up included.
    pub silent: u64,
    /// Of the silent, those that loss as it was between the other pairs does not explain.
    pub unmet: u64,
    /// What probes came to before the schedule began; `null` in a run that sent none, and in records of older versions.
    #[serde(default)]
    pub probed: Option<ProbedPairs>,
}

/// Pairs that were to meet by a probe before the schedule began: of devices that send probes, thus not of those that come and go, nor of
/// requesters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedPairs {
    /// Pairs of a device and a reader, or a shared group of readers, of its topic.
    pub wanted: u64,
    /// Of these, pairs whose reader had received a probe.
    pub met: u64,
    /// Time until all had met, or until nobody waited any longer, ms.
    pub ms: u64,
}
