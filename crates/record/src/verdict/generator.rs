//! Rules on the generator: the load must be the scheduled one, and pubmark's threads must have spare CPU time. Lateness
//! of pubmark alone is not a reason: each latency is an interval, and lateness is its width.

use super::limits::Limits;
use super::{Finding, Measure, VerdictInput};
use crate::quantity::{count, micros, percent};
use crate::record::{CheckLimits, CheckUnit, Summary, VerdictStatus};

/// CPU use of a shard thread, as a share of one core: valid up to this value.
const SHARD_VALID: f64 = 0.80;
/// In a flood, suspect up to this value and invalid above.
const SHARD_SUSPECT: f64 = 0.95;
/// With real-time scheduling on few cores: cores that the generator may use before it may deprive the system of CPU.
const REALTIME_CORES: f64 = 0.50;
/// Largest number of cores that counts as few.
const FEW_CORES: u32 = 4;

/// A delay that pubmark caused.
type Own<'a> = (&'static str, Option<&'a Summary>);

/// Rule V01.
pub(super) fn load_as_scheduled(input: &VerdictInput) -> Option<Finding> {
    let hint = if input.settings.realtime {
        "spread the senders over more threads with `--shards`, lower the rate, or use a machine with free cores"
    } else {
        "try `--awake` (`pubmark doctor` says whether it has an effect), `--realtime` or more `--shards`, and stop other programs"
    };
    let replies: Own = ("responder lag", input.requests.and_then(|requests| requests.responder_lag.as_ref()));
    own_part(input, [("scheduler lag", input.scheduler_lag), replies], input.delivery.sent, hint)
}

/// Rule V02.
pub(super) fn read_in_time(input: &VerdictInput) -> Option<Finding> {
    let found = dropped_by_pubmark(input).or_else(|| lateness_at_reading(input));
    match found {
        Some(found) if found.status == VerdictStatus::Invalid => Some(found),
        found => dropped_by_library(input).or(found),
    }
}

/// Messages and replies that are missing.
fn missing(input: &VerdictInput) -> u64 {
    let unanswered = input.requests.map_or(0, |requests| requests.outcomes.timed_out + requests.outcomes.unknown);
    input.delivery.lost + input.delivery.unknown + unanswered
}

/// Messages are missing, and the kernel dropped datagrams because a client library did not read its sockets in time. They may
/// be what is missing, or copies of what arrived.
fn dropped_by_library(input: &VerdictInput) -> Option<Finding> {
    let (missing, dropped) = (missing(input), input.own_drops.library_datagrams.unwrap_or(0));
    if missing == 0 || dropped == 0 {
        return None;
    }
    let text = format!(
        "{} datagrams found the full buffer of a client library's socket; messages or replies that are missing: {}",
        count(dropped),
        count(missing)
    );
    let hint = "lower the rate, raise `net.core.rmem_default` and `net.core.rmem_max`, or receive on more machines";
    let measure = Measure::suspect_above(missing as f64, 0.0, CheckUnit::Messages);
    Some(Finding::new(VerdictStatus::Suspect, text, hint).of(measure))
}

/// Messages are missing, and pubmark dropped some of what had arrived: the loss is not the system's, not even in a flood.
fn dropped_by_pubmark(input: &VerdictInput) -> Option<Finding> {
    let missing = missing(input);
    let drops = [
        (input.own_drops.missed, "messages found pubmark's queue full"),
        (input.own_drops.overflowed_datagrams, "datagrams found the full buffer of pubmark's socket"),
    ];
    let drops: Vec<String> = drops
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(number)))
        .collect();
    if missing == 0 || drops.is_empty() {
        return None;
    }
    let text = format!("{}; messages or replies that are missing: {}", drops.join(", "), count(missing));
    let hint = "lower the rate, give the receivers more threads with `--shards` or more machines, or raise `net.core.rmem_max`";
    let measure = Measure::none_allowed(missing, CheckUnit::Messages);
    Some(Finding::new(VerdictStatus::Invalid, text, hint).of(measure))
}

fn lateness_at_reading(input: &VerdictInput) -> Option<Finding> {
    let hint = "give the receivers more threads with `--shards`, or a machine with free cores, and run again";
    let books = input.delivery;
    if input.reads_by_library && input.receive_lateness.is_none() && books.delivered > 0 && !input.settings.flood {
        let text = "the client library reads its sockets itself: receive lateness is unknown, and lower bounds end with the write";
        return Some(Finding::valid(text.to_owned()));
    }
    let replies: Own =
        ("receive lateness of replies", input.requests.and_then(|requests| requests.receive_lateness.as_ref()));
    let own = [("receive lateness", input.receive_lateness), replies];
    let found = own_part(input, own, books.delivered, hint)?;
    // Data that waits in our socket fills it, and a system drops messages for which it has no buffer.
    let missing = books.lost + books.unknown;
    if missing > 0 && found.status == VerdictStatus::Suspect {
        let text = format!(
            "{}; the system may have dropped some of the {} missing messages because of it",
            found.text,
            count(missing)
        );
        return Some(Finding { text, ..found });
    }
    Some(found)
}

/// Compares the worst of pubmark's delays with the limits; `samples_due` is the number of messages for which the first
/// one should have samples.
fn own_part(input: &VerdictInput, own: [Own; 2], samples_due: u64, hint: &str) -> Option<Finding> {
    if input.settings.flood || samples_due == 0 {
        return None;
    }
    let [(name, first), _] = own;
    if first.is_none() {
        let text = format!("{name} was not measured");
        return Some(Finding::new(VerdictStatus::Suspect, text, "run again with this version of pubmark"));
    }
    let measured = own.iter().filter_map(|(name, own)| own.map(|own| (name, of_most(own), own.max)));
    let (name, (value_us, which), max_us) = measured.max_by(|one, other| one.1.0.total_cmp(&other.1.0))?;
    let limits = Limits::of_lateness(input.window_s);
    let text = format!("{name} {which} {}, max {}: {}", micros(value_us), micros(max_us), limits.words());
    Some(Finding::new(limits.judge(value_us), text, hint).of(limits.measure(value_us)))
}

/// The highest percentile with enough samples, up to the 99th, and its name.
fn of_most(own: &Summary) -> (f64, &'static str) {
    let percentiles =
        [(own.p99, "p99"), (own.p95, "p95 (too few samples for p99)"), (own.p90, "p90 (too few samples for p99)")];
    let found = percentiles.into_iter().find_map(|(value, which)| Some((value?, which)));
    found.unwrap_or((own.max, "max (too few samples for p99)"))
}

/// Rule V04.
pub(super) fn threads_not_saturated(input: &VerdictInput) -> Option<Finding> {
    let shards = shard_threads(input);
    match shards.status {
        VerdictStatus::Valid => Some(other_threads(input).unwrap_or(shards)),
        _ => Some(shards),
    }
}

/// In a flood whose messages a client library or a client program sends and reads: its threads, if one of them may have been
/// saturated. How much each used is unknown, and none used more than all.
fn other_threads(input: &VerdictInput) -> Option<Finding> {
    if !input.settings.flood {
        return None;
    }
    let (who, cores) = if input.connections.client_programs.is_some() {
        ("the client program", input.program_usage.map(|usage| usage.cores))
    } else if input.writes_by_library || input.reads_by_library {
        let of_shards: Option<f64> = input.threads.iter().map(|thread| thread.cores).sum();
        let own = input.generator_usage.zip(of_shards).map(|(usage, of_shards)| (usage.cores - of_shards).max(0.0));
        ("the client library", own)
    } else {
        return None;
    };
    let hint = "use a workload with a rate: in a flood a client that is at its limit measures itself";
    let Some(cores) = cores else {
        let text = format!("not checked: CPU time of the threads of {who} was not measured, and they may be the limit");
        return Some(Finding::new(VerdictStatus::Suspect, text, hint));
    };
    let text = format!(
        "threads of {who} used up to {} of a core together, and how much the busiest of them used is unknown: valid up to {}",
        percent(cores),
        percent(SHARD_VALID)
    );
    let measure = Measure::suspect_above(cores, SHARD_VALID, CheckUnit::Cores);
    (cores > SHARD_VALID).then(|| Finding::new(VerdictStatus::Suspect, text, hint).of(measure))
}

fn shard_threads(input: &VerdictInput) -> Finding {
    let hint = "spread the load over more threads with `--shards`, or lower the rate";
    let measured = input.threads.iter().filter_map(|shard| Some((shard, shard.cores?)));
    let Some((busiest, cores)) = measured.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
        return Finding::new(VerdictStatus::Suspect, "CPU time of pubmark's threads was not measured".to_owned(), hint);
    };
    let text = format!("busiest thread `{}` used {} of a core", busiest.name, percent(cores));
    // With a schedule, the lateness of a busy thread is measured. In a flood it sends and reads as fast as it can.
    if !input.settings.flood {
        let status = if cores <= SHARD_SUSPECT { VerdictStatus::Valid } else { VerdictStatus::Suspect };
        let text = format!("{text}: suspect above {}", percent(SHARD_SUSPECT));
        return Finding::new(status, text, hint).of(Measure::suspect_above(cores, SHARD_SUSPECT, CheckUnit::Cores));
    }
    let status = if cores <= SHARD_VALID {
        VerdictStatus::Valid
    } else if cores <= SHARD_SUSPECT {
        VerdictStatus::Suspect
    } else {
        VerdictStatus::Invalid
    };
    let text = format!("{text}: valid up to {}, suspect up to {}", percent(SHARD_VALID), percent(SHARD_SUSPECT));
    let limits = CheckLimits { valid: SHARD_VALID, suspect: Some(SHARD_SUSPECT) };
    Finding::new(status, text, hint).of(Measure { value: cores, limits, unit: CheckUnit::Cores })
}

/// Rule V05.
pub(super) fn realtime_leaves_room(input: &VerdictInput) -> Option<Finding> {
    if !input.settings.realtime {
        return None;
    }
    let hint = "run without `--realtime`, or on a machine with more cores";
    let cores = input.environment.cores;
    let ordinary: Option<Vec<f64>> = input.threads.iter().map(|thread| thread.ordinary_share).collect();
    if let Some(most) = ordinary.and_then(|shares| shares.into_iter().max_by(f64::total_cmp)) {
        let text = format!("real-time threads had ordinary priority for {} of the window at most", percent(most));
        return Some(Finding::valid(text));
    }
    let Some(usage) = input.generator_usage else {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            "CPU time of pubmark was not measured, although it ran with real-time priority".to_string(),
            hint,
        ));
    };
    let status =
        if usage.cores > REALTIME_CORES && cores <= FEW_CORES { VerdictStatus::Suspect } else { VerdictStatus::Valid };
    let finding = format!(
        "real-time pubmark used {} of a core on {cores} cores: suspect above {} on up to {FEW_CORES} cores",
        percent(usage.cores),
        percent(REALTIME_CORES)
    );
    // With more cores any use is valid.
    let limit = if cores <= FEW_CORES { REALTIME_CORES } else { f64::from(cores) };
    Some(Finding::new(status, finding, hint).of(Measure::suspect_above(usage.cores, limit, CheckUnit::Cores)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::record::{Record, SentMeans};
    use crate::sample;

    /// A record of a gateway: its devices and its subscribers use a library, or not.
    fn gateway(sent_means: SentMeans, read_by_library: Option<bool>) -> Record {
        let mut record = sample::record();
        (record.protocol.sent_means, record.protocol.read_by_library) = (sent_means, read_by_library);
        record
    }

    #[test]
    fn the_protocol_of_the_subscribers_decides_whether_receive_lateness_can_be_measured() {
        for (sent_means, read_by_library, expected) in [
            (SentMeans::Wire, Some(true), VerdictStatus::Valid),
            (SentMeans::HandedOver, Some(false), VerdictStatus::Suspect),
            // An older record.
            (SentMeans::HandedOver, None, VerdictStatus::Valid),
            (SentMeans::Wire, None, VerdictStatus::Suspect),
        ] {
            let mut record = gateway(sent_means, read_by_library);
            record.latency.receive_lateness = None;
            let found = lateness_at_reading(&VerdictInput::of(&record)).unwrap();
            assert_eq!(found.status, expected, "{sent_means}, {read_by_library:?}: {}", found.text);
        }
    }

    #[test]
    fn a_library_on_either_side_may_be_the_limit_of_a_flood() {
        for (sent_means, reads, expected) in [
            (SentMeans::Wire, true, VerdictStatus::Suspect),
            (SentMeans::HandedOver, false, VerdictStatus::Suspect),
            (SentMeans::Wire, false, VerdictStatus::Valid),
        ] {
            let mut record = gateway(sent_means, Some(reads));
            record.settings.flood = true;
            record.cost.generator.as_mut().unwrap().cores = 3.0;
            let found = threads_not_saturated(&VerdictInput::of(&record)).unwrap();
            assert_eq!(found.status, expected, "{sent_means}, {reads}: {}", found.text);
        }
    }
}
