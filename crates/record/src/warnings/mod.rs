//! Warnings: what a reader should know besides the verdict. A warning is computed from the record, has a stable code,
//! names the number that triggered it, and gives one thing to do. A new warning is a function and a row here.

mod connections;
mod measurement;
mod messages;
mod requests;
#[cfg(test)]
mod tests;

use crate::codes::Page;
use crate::record::{Record, Warning};

/// Text and hint of a warning.
type TextAndHint = (String, String);

/// A kind of warning.
pub struct WarningKind {
    /// Stable code.
    pub code: &'static str,
    /// Topic of the warning, in a few words.
    pub title: &'static str,
    /// Meaning and importance.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Check for the warning; `None` if it does not apply.
    find: fn(&Record) -> Option<TextAndHint>,
}

impl WarningKind {
    /// The page for readers.
    pub fn page(&self) -> Page {
        Page { code: self.code, title: self.title, meaning: self.meaning, spoils: "", remedy: self.remedy }
    }
}

/// The warnings of a record, in the order of the table.
pub fn warnings(record: &Record) -> Vec<Warning> {
    WARNINGS
        .iter()
        .filter_map(|kind| {
            let (text, hint) = (kind.find)(record)?;
            Some(Warning { code: kind.code.to_owned(), text, hint })
        })
        .collect()
}

/// All kinds of warnings.
pub const WARNINGS: [WarningKind; 23] = [
    WarningKind {
        code: "W01",
        title: "too few samples for a percentile",
        meaning: "A percentile is printed only if at least 10 samples lie beyond it: p99 needs 1,000 samples, p99.9 needs \
                  10,000. With fewer samples its value would depend on chance.",
        remedy: "Run longer with `--duration`, or with more devices.",
        find: measurement::too_few_samples,
    },
    WarningKind {
        code: "W02",
        title: "deviations",
        meaning: "Something differs from the request or from a default, for instance a raised limit of the system. The record \
                  and the report name each deviation.",
        remedy: "Read the list of deviations in the report before comparing with figures from elsewhere.",
        find: measurement::deviations,
    },
    WarningKind {
        code: "W03",
        title: "granted delivery level lower than requested",
        meaning: "The system granted subscriptions a lower delivery level than requested, so its guarantees are weaker than the \
                  workload requires.",
        remedy: "Check the system's configuration, or request that level with `--qos`.",
        find: connections::granted_lower,
    },
    WarningKind {
        code: "W04",
        title: "messages too large",
        meaning: "The system does not accept packets of that size, so the messages were not sent; they are counted as refused.",
        remedy: "Raise the system's packet limit, or use its `tuned` profile.",
        find: messages::too_large,
    },
    WarningKind {
        code: "W05",
        title: "sizes raised to the header",
        meaning: "Each message carries a header of pubmark. Configured sizes below its size were raised to it, so more bytes \
                  were sent than the workload specifies.",
        remedy: "Take this into account when comparing byte rates, or configure sizes of at least 24 bytes.",
        find: messages::sizes_raised,
    },
    WarningKind {
        code: "W06",
        title: "connections failed or dropped",
        meaning: "Connections were refused, failed to log in or to negotiate TLS, or ended although pubmark did not close them. \
                  Planned churn is not counted here.",
        remedy: "Look at the causes in the report; check limits of open files and of connections with `pubmark doctor`.",
        find: connections::failed,
    },
    WarningKind {
        code: "W07",
        title: "subscriptions refused",
        meaning: "The system refused subscriptions, or revoked them during the run. No message is expected for a \
                  subscription that does not exist, so the delivery figures look better than what the fleet would experience.",
        remedy: "Check the system's access rules, and who deletes its queues, streams or consumers.",
        find: connections::subscriptions_refused,
    },
    WarningKind {
        code: "W08",
        title: "not everything offered was sent",
        meaning: "Messages were still waiting at the end of the run, were refused, or had no connection. The system carried \
                  less than was offered; the latency describes only the messages that arrived.",
        remedy: "Lower the rate to find what the system can sustain.",
        find: messages::not_all_sent,
    },
    WarningKind {
        code: "W09",
        title: "a promise was not kept",
        meaning: "At least once (QoS 1) promises no loss; exactly once (QoS 2) promises no loss and no duplicates. This run had \
                  some, or may have had some. The level of a message is the lower one of its device's and its subscriber's, as requested: if the system \
                  granted some subscriptions a lower one (W03), the number is the largest possible. Duplicates are judged if all \
                  devices and subscribers ask for QoS 2.",
        remedy: "Check the causes of lost connections and the queue limits of the system; run again to see whether it recurs.",
        find: messages::promise_broken,
    },
    WarningKind {
        code: "W10",
        title: "messages of others",
        meaning: "Messages arrived that do not belong to this run: another client publishes to the same topics, or messages of \
                  an earlier run were still queued. They are counted separately, but they load the system. Messages that name \
                  a publisher of this run, which did not send them, count as well; if they were recognised only after the run, \
                  it is invalid (V26).",
        remedy: "Stop the other client, or start the system with empty queues.",
        find: messages::foreign,
    },
    WarningKind {
        code: "W11",
        title: "service latency incomplete",
        meaning: "Messages with the compact header carry no write start, so they have a latency but no service latency.",
        remedy: "Use payloads of at least 24 bytes if service latency matters.",
        find: measurement::no_write_start,
    },
    WarningKind {
        code: "W12",
        title: "bytes left in our sockets",
        meaning: "At the end of the drain the sockets of pubmark still held bytes that the system had not accepted: it was \
                  behind.",
        remedy: "Lower the rate, or wait longer with `--drain`.",
        find: messages::left_in_sockets,
    },
    WarningKind {
        code: "W13",
        title: "machine was busy",
        meaning: "Before the run the load average was above half the number of cores, so other programs competed with the \
                  system and with pubmark for the CPU.",
        remedy: "Stop other programs and run again.",
        find: measurement::busy_machine,
    },
    WarningKind {
        code: "W14",
        title: "flood: latencies are not judged",
        meaning: "In a flood each message is due as soon as the in-flight window has space for it. Its latency is that of a \
                  queue that pubmark always fills, which says nothing about a fleet. Only throughput is judged.",
        remedy: "Use a workload with a rate to measure latency.",
        find: measurement::flood,
    },
    WarningKind {
        code: "W15",
        title: "delivered after a refusal",
        meaning: "The system refused messages and delivered them nevertheless. They are counted as refused.",
        remedy: "Report it to the system's authors with the record.",
        find: messages::delivered_after_refusal,
    },
    WarningKind {
        code: "W16",
        title: "requests without a reply in time",
        meaning: "Requests were given up before their reply came, or their outcome is unknown. The round-trip time describes \
                  only requests that were answered in time.",
        remedy: "Read the share of answered requests together with the round-trip time; lower the rate, or raise the `timeout` \
                 and the responders' `concurrency`.",
        find: requests::without_reply,
    },
    WarningKind {
        code: "W17",
        title: "wrong replies",
        meaning: "Requesters received additional replies to a request, replies to other requests, or replies to requests that \
                  the system had refused. A responder of pubmark replies to each request once.",
        remedy: "Find out whether another client replies to the same requests; otherwise report it to the system's authors.",
        find: requests::wrong_replies,
    },
    WarningKind {
        code: "W18",
        title: "latency not steady",
        meaning: "The medians of the quarters of the window differ by more than a factor of two, and by more than a \
                  millisecond. If messages of the last quarter arrived after the end of the window, the system was behind, and \
                  its latencies depend on the length of the window. If latency fell without that, the system had not warmed up. \
                  The warning does not apply to floods, faults, and links whose conditions change, because latency is expected \
                  to change there.",
        remedy: "Use a longer `--warmup`, or lower the rate; the chart `Was latency steady?` of the report shows the quarters.",
        find: measurement::not_steady,
    },
    WarningKind {
        code: "W19",
        title: "messages cut short",
        meaning: "Messages arrived with a complete header and fewer bytes than their publisher sends in any message. They are \
                  not counted as delivered. If the workload draws random sizes, a message that was cut to a possible size is \
                  not noticed.",
        remedy: "Check the system's limits of the message size; report it to its authors with the record.",
        find: messages::truncated,
    },
    WarningKind {
        code: "W20",
        title: "messages sent together",
        meaning: "With `--pace auto` or a time, messages that became due within a quantum were sent together, and those that \
                  arrived within it were read together. The interval of each latency contains the delay that this adds. But a \
                  system that receives several messages at once uses less CPU for each than one that receives them one by one, \
                  as from devices: Mosquitto at 10,000 messages per second a quarter less with quanta of 0.2 ms, and half with \
                  1 ms. Behind emulated links, which separate messages again, there was no difference.",
        remedy: "Use `--pace exact`, the default, if the CPU usage of the system matters.",
        find: measurement::sent_together,
    },
    WarningKind {
        code: "W21",
        title: "message log partial",
        meaning: "Rows of the message log are missing: messages came faster than rows could be written, the disk was full, too \
                  many messages are missing to list each, or a node, which the warning names, did not send its part. The figures of the run do not depend on the log.",
        remedy: "Write to a faster disk with `--out`, or lower the rate; figures computed from the log lack those rows.",
        find: messages::log_partial,
    },
    WarningKind {
        code: "W22",
        title: "figures of each client missing",
        meaning: "`csv/by_client.csv` contains the counts and latencies of each client. It is not written for more than 100,000 \
                  clients, and has no percentiles if the message log has more than 16 million rows, because they are computed \
                  in memory.",
        remedy: "Compute them from the message log, or run with fewer clients or messages.",
        find: messages::clients_left_out,
    },
    WarningKind {
        code: "W23",
        title: "messages corrupt",
        meaning: "Messages arrived that subscribers could not decompress, decrypt or verify (`transform` of the workload): \
                  their bytes differ from those that were sent. They are not counted as delivered.",
        remedy: "Find out what changes messages on their way; report it to the system's authors with the record.",
        find: messages::corrupt,
    },
];
