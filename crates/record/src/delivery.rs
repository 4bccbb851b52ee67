//! Outcomes of messages: the message accounting and the counts that belong to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::ContentRow;
use crate::latency::LatencyBounds;

/// Outcomes of messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryFigures {
    /// Messages by outcome.
    #[serde(flatten)]
    pub messages: Delivery,
    /// Messages not sent because the system accepts no packet of their size; they are included in `refused`.
    pub too_large: u64,
    /// Messages whose configured size was raised to the size of the header.
    pub sizes_raised: u64,
    /// Of `foreign`, messages that no publisher sent and that were recognised only after the run, because the publisher
    /// that they name runs in another process than the subscriber: they are in the latencies, rates and series of the
    /// run. `null` in records of older versions.
    #[serde(default)]
    pub never_sent: Option<u64>,
    /// Due times that messages carried, compared with the schedule's; `null` in records of older versions.
    #[serde(default)]
    pub due_times: Option<DueTimeAudit>,
    /// Data that was still in transit when the run ended.
    pub at_end: LeftAtEnd,
    /// What pubmark itself dropped on arrival.
    #[serde(default)]
    pub own_drops: OwnDrops,
    /// Messages whose QoS level promises another outcome; `null` in records of older versions.
    #[serde(default)]
    pub broken_promises: Option<BrokenPromises>,
    /// Messages by what made them due; `null` if no device reacts.
    #[serde(default)]
    pub reactions: Option<ReactionCounts>,
    /// Messages that clients filtered by topic; `null` where the system does it.
    #[serde(default)]
    pub filtered: Option<FilteredCounts>,
    /// Messages that subscribers filtered by content, by group; empty if no group has `where`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentRow>,
    /// Writer–reader pairs; `null` in a system with a broker.
    #[serde(default)]
    pub pairs: Option<PairCounts>,
}

/// Message accounting: every message is in exactly one category. `offered = sent + skipped_planned + skipped_disconnected + refused + unsent`;
/// `expected = delivered + lost + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Messages due in the measured window.
    pub offered: u64,
    /// Messages that the system accepted.
    pub sent: u64,
    /// Not sent because the device was planned to be offline, or sent less after a received message (`when`).
    pub skipped_planned: u64,
    /// Of `skipped_planned`, not sent because the device sent less after a received message.
    #[serde(default)]
    pub slowed: u64,
    /// Not sent, or sent only in part, because the connection was lost unplanned.
    pub skipped_disconnected: u64,
    /// Refused by the system or because of its limits.
    pub refused: u64,
    /// Still waiting to be sent at the deadline.
    pub unsent: u64,
    /// Messages sent, counted once for each subscription that held a session at that time; a shared group is one
    /// subscription.
    pub expected: u64,
    /// Of the expected, messages that arrived (first copies).
    pub delivered: u64,
    /// Of the expected, messages that did not arrive.
    pub lost: u64,
    /// Of the expected, messages that did not arrive and were sent at QoS 1 or 2 on a connection that ended before the
    /// acknowledgement.
    pub unknown: u64,
    /// Of the delivered, messages that arrived more than 2 s after publishing ended; a reaction that was due after the end, more
    /// than 2 s after it was due.
    pub late: u64,
    /// Duplicates: further copies of delivered messages.
    pub duplicated: u64,
    /// Of the delivered, arrived after a later message of their stream.
    pub out_of_order: u64,
    /// Further copies that are explained by a second matching filter of the same client.
    pub overlap: u64,
    /// Retained messages that the system sent on subscribing.
    pub retained_replay: u64,
    /// Messages of another run or of another program, or that nobody sent.
    pub foreign: u64,
    /// Messages that arrived shorter than the shortest message of their publisher; not part of delivered.
    #[serde(default)]
    pub truncated: u64,
    /// Copies of messages of the window whose `transform` the subscribers could not reverse, because the content had
    /// changed. Not part of delivered.
    #[serde(default)]
    pub corrupt: u64,
    /// Sent while a subscription held no session, and not delivered to it; not part of expected.
    pub absent: u64,
    /// Deliveries that messages would have had that were refused, unsent or skipped because of a lost connection: one for
    /// each subscription that matches; not part of expected.
    #[serde(default)]
    pub prevented: u64,
    /// Copies of refused messages that were delivered nevertheless; not part of delivered.
    pub delivered_after_refusal: u64,
    /// Sent, and filtered out by the system's content filter because the subscribers' predicate does not hold; not part
    /// of expected.
    #[serde(default)]
    pub filtered_out: u64,
    /// Forwarded by the system's content filter although the predicate does not hold; not part of delivered.
    #[serde(default)]
    pub unmatched: u64,
    /// A cap was reached, so the counts of missing messages and duplicates may be inexact.
    pub approximate: bool,
}

/// Data that was still in transit when the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftAtEnd {
    /// Bytes not yet sent from our sockets.
    pub socket_unsent_bytes: u64,
    /// Bytes that were received for subscribers with a processing time and not yet processed.
    #[serde(default)]
    pub held_bytes: u64,
    /// Persistent sessions of subscribers that had lost their connection and were not connected again: the system may
    /// have stored messages for them.
    #[serde(default)]
    pub sessions_not_resumed: u64,
    /// Bytes that TCP had not transferred from the system to clients, or that clients had not read (behind links only
    /// the former), without those to connections that the fault `cut` had silenced; `null` where this run did not start
    /// the system, or the system has no broker.
    #[serde(default)]
    pub system_unsent_bytes: Option<u64>,
    /// Bytes that the system's kernel had received from clients and the system had not read; `null` where this run did
    /// not start the system, or the system has no broker.
    #[serde(default)]
    pub system_unread_bytes: Option<u64>,
    /// Time during the drain in which threads of the system were ready to run and had no CPU, ns; `null` where it is
    /// not known.
    #[serde(default)]
    pub system_drain_wait_ns: Option<u64>,
    /// Bytes of connections that had arrived at the relay between links and a system that was already running, and that
    /// their receivers had not acknowledged, and kernel memory of datagrams that it had not read, in both directions;
    /// `null` without a relay, and where it is not known.
    #[serde(default)]
    pub relay_bytes: Option<u64>,
    /// Bytes of IP packets that were on emulated links and may belong to messages of the window: those on links that were
    /// never empty since such a message could have come to them. With the kernel's netem, all bytes in its queues. `null`
    /// without links, and where it is not known.
    #[serde(default)]
    pub link_bytes: Option<u64>,
}

/// Messages whose QoS level promises another outcome. The level of a message is the lower one of its device's and its
/// subscriber's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokenPromises {
    /// Messages lost at QoS 1 or 2.
    pub lost: u64,
    /// Messages duplicated at QoS 2; 0 if some devices or subscribers ask for a lower level.
    pub duplicated: u64,
}

/// Due times that messages carried, compared after the run with those of the schedule: those of a random sample of the
/// delivered messages of each of pubmark's threads. Floods, reactions and replies have no schedule and are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DueTimeAudit {
    /// Messages that were compared.
    pub audited: u64,
    /// Of these, messages that carried another due time than the schedule's.
    pub wrong: u64,
    /// One of the latter; `null` if there is none.
    pub example: Option<WrongDueTime>,
}

/// A message that carried another due time than the schedule's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrongDueTime {
    /// Its publisher's number in the fleet, from 0.
    pub publisher: u32,
    /// Its sequence number, from 1.
    pub sequence: u32,
    /// The due time that it carried, ns relative to the start of the measured window.
    pub claimed_ns: i64,
    /// Its due time in the schedule, ns relative to the start of the measured window: where messages before it were not
    /// sent and several are possible, the nearest one.
    pub scheduled_ns: i64,
}

/// What had arrived and was dropped because pubmark did not take it in time, during the whole run. If
/// messages are missing, nobody can tell them from those that the system lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnDrops {
    /// Messages that pubmark did not take from a client library in time: its queue for them was full, or more samples waited than a
    /// DDS reader's depth (KEEP_LAST over RustDDS).
    pub missed: u64,
    /// Datagrams (CoAP) that found the full buffer of pubmark's socket. Not every one is a message: acknowledgements,
    /// repetitions and blocks count, too.
    pub overflowed_datagrams: u64,
    /// Datagrams that found the full buffer of a UDP socket that a client library (DDS, Zenoh) opened in pubmark's processes,
    /// from the start of the measured window to the end of the drain. Not every one is a message that is missing: the library
    /// may have received a copy, or repeated it. Sockets that were closed before the end are left out. `null` without such a
    /// library, and in older records.
    #[serde(default)]
    pub library_datagrams: Option<u64>,
}

/// Messages by what made them due, and the latency of chains of reactions. Measured messages only: a reaction belongs
/// to the window if the scheduled message at the root of its chain does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReactionCounts {
    /// Messages offered because a schedule made them due.
    pub scheduled: u64,
    /// Messages offered because other messages were delivered.
    pub triggered: u64,
    /// Reactions that were never triggered: the number for an ideal system, which delivers everything that online
    /// devices offer, minus `triggered`.
    pub starved: u64,
    /// Delivery of a reaction − due time of the root of its chain.
    pub chain_latency: Option<LatencyBounds>,
}

/// Messages filtered by clients, in protocols in which clients do the filtering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilteredCounts {
    /// Of the sent, messages that their publishers did not transmit because the peer of the connection had no matching
    /// subscription. If a subscription of pubmark held a session at that time, they are lost for it.
    pub withheld: u64,
    /// Messages that arrived and matched no filter of their subscriber, during the whole run.
    #[serde(alias = "passed_over")]
    pub discarded: u64,
}

/// Writer–reader pairs that share a topic, in a system whose clients discover each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairCounts {
    /// Pairs for which a measured message was expected: the writer had sent it and the reader was present.
    pub all: u64,
    /// Of these, pairs over which no message arrived, warm-up included.
    pub silent: u64,
    /// Of the silent, pairs whose silence the loss rate of the other pairs does not explain.
    #[serde(alias = "unmet")]
    pub unreached: u64,
    /// Results of the probes before the schedule began; `null` in a run without probes, and in records of older
    /// versions.
    #[serde(default)]
    pub probed: Option<ProbedPairs>,
}

/// Pairs whose discovery was checked by a probe before the schedule began. Only devices that send probes are included,
/// not devices with churn and not requesters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedPairs {
    /// Pairs of a device and a reader, or a shared group of readers, of the device's topic.
    #[serde(alias = "wanted")]
    pub expected: u64,
    /// Of these, pairs whose reader received a probe.
    #[serde(alias = "met")]
    pub reached: u64,
    /// Time until all pairs had received a probe, or until the wait was ended, ms.
    pub ms: u64,
}
