//! The generator on trial: did our own side keep its schedule, read in time, have CPU to spare?

use super::limits::p99_or_max;
use super::{Finding, Limits, Measure, VerdictInput};
use crate::quantity::{micros, percent};
use crate::record::{CheckLimits, CheckUnit, Summary, VerdictStatus};

/// CPU of a shard thread, of one core: valid up to here.
const SHARD_VALID: f64 = 0.80;
/// Suspect up to here, invalid beyond.
const SHARD_SUSPECT: f64 = 0.95;
/// With real-time scheduling on few cores the generator may take this much of a core before the system may starve.
const REALTIME_CORES: f64 = 0.50;
/// Few cores.
const FEW_CORES: u32 = 4;
/// CPU time taken by the hypervisor: suspect above.
const STEAL_SUSPECT: f64 = 0.05;
/// A single stall of ours below this is not held against a run, µs.
const STALL_FLOOR_US: f64 = 10_000.0;
/// Share of the latency's own tail that may be ours.
const TAIL_SHARE: f64 = 0.50;
/// Below this our part of p99.9 is not held against a run, µs.
const TAIL_FLOOR_US: f64 = 500.0;

/// V01.
pub(super) fn schedule_kept(input: &VerdictInput) -> Option<Finding> {
    let hint = if input.settings.realtime {
        "spread the senders over more threads with `--shards`, lower the rate, or use a machine with free cores"
    } else {
        "try `--awake` (virtual machines above all), `--realtime` or more `--shards`, and stop other programs on this machine (`pubmark doctor`)"
    };
    own_part(input, "scheduler lag", input.scheduler_lag, input.delivery.sent, hint)
}

/// V02.
pub(super) fn read_in_time(input: &VerdictInput) -> Option<Finding> {
    let hint = "give the receivers more threads with `--shards`, or a machine with free cores, and run again";
    if input.reads_by_library
        && input.receive_lateness.is_none()
        && input.delivery.delivered > 0
        && !input.settings.flood
    {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            "receive lateness is not known: the client library reads its sockets itself".to_string(),
            "compare with other runs over this client library, on a machine with free cores",
        ));
    }
    own_part(input, "receive lateness", input.receive_lateness, input.delivery.delivered, hint)
}

/// One of our own delays against the limits; `samples_due` says whether it should have samples at all.
fn own_part(input: &VerdictInput, name: &str, own: Option<&Summary>, samples_due: u64, hint: &str) -> Option<Finding> {
    if input.settings.flood || samples_due == 0 {
        return None;
    }
    let Some(own) = own else {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            format!("{name} was not measured"),
            "run again with this version of pubmark",
        ));
    };
    let (value_us, which) = p99_or_max(own);
    let latency = input.latency.map(p99_or_max);
    let limits = Limits::of(latency.map(|(latency_us, _)| latency_us));
    let against = match latency {
        Some((latency_us, which)) => format!("latency {which} {}", micros(latency_us)),
        None => "no latency".to_string(),
    };
    let finding = format!("{name} {which} {} with {against}: {}", micros(value_us), limits.words());
    let status = limits.judge(value_us);
    // Where nothing came before the drain was over, or no subscription was held that could expect it, our lag is part of no latency.
    let nothing_came = latency.is_none() && input.workload.subscribers > 0 && input.delivery.delivered == 0;
    if nothing_came && status == VerdictStatus::Invalid {
        let finding = format!("{finding}; nothing arrived that it could be part of");
        return Some(Finding::new(VerdictStatus::Suspect, finding, hint).of(limits.measure(value_us)));
    }
    Some(Finding::new(status, finding, hint).of(limits.measure(value_us)))
}

/// V03: the tail beyond p99, which V01 and V02 leave open. It can make a run suspect, not invalid.
pub(super) fn tail_is_the_systems(input: &VerdictInput) -> Option<Finding> {
    if input.settings.flood {
        return None;
    }
    let latency = input.latency?;
    let mut ours: Vec<String> = Vec::new();
    let mut largest: Vec<String> = Vec::new();
    // Of all that is judged, what comes nearest to its limit or lies furthest above it.
    let mut worst: Option<Measure> = None;
    let mut judge = |value_us: f64, limit_us: f64| {
        let measure = Measure::suspect_above(value_us, limit_us, CheckUnit::Microseconds);
        let share = |measure: &Measure| measure.value / measure.limits.valid;
        if worst.is_none_or(|worst| share(&worst) < share(&measure)) {
            worst = Some(measure);
        }
        value_us > limit_us
    };
    for (name, own) in [("scheduler lag", input.scheduler_lag), ("receive lateness", input.receive_lateness)] {
        let Some(own) = own else { continue };
        largest.push(format!("{name} {}", micros(own.max)));
        if let (Some(own_us), Some(latency_us)) = (own.p999, latency.p999)
            && judge(own_us, f64::max(TAIL_FLOOR_US, TAIL_SHARE * latency_us))
        {
            ours.push(format!("{name} p99.9 {} with latency p99.9 {}", micros(own_us), micros(latency_us)));
        } else if judge(own.max, f64::max(STALL_FLOOR_US, TAIL_SHARE * latency.max)) {
            ours.push(format!("{name} max {} with latency max {}", micros(own.max), micros(latency.max)));
        }
    }
    let measure = worst?;
    if ours.is_empty() {
        let text = format!("largest {}; latency max {}", largest.join(", "), micros(latency.max));
        return Some(Finding::valid(text).of(measure));
    }
    let text = format!("the tail beyond p99 is partly ours: {}", ours.join("; "));
    let hint = "quote nothing beyond p99 from this run, or run again on a quieter machine";
    Some(Finding::new(VerdictStatus::Suspect, text, hint).of(measure))
}

/// V04.
pub(super) fn threads_have_time(input: &VerdictInput) -> Option<Finding> {
    let hint = "spread the load over more threads with `--shards`, or lower the rate";
    let measured = input.threads.iter().filter_map(|shard| Some((shard, shard.cores?)));
    let Some((busiest, cores)) = measured.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
        return Some(Finding::new(VerdictStatus::Suspect, "CPU of our threads was not measured".to_string(), hint));
    };
    let status = if cores <= SHARD_VALID {
        VerdictStatus::Valid
    } else if cores <= SHARD_SUSPECT {
        VerdictStatus::Suspect
    } else {
        VerdictStatus::Invalid
    };
    let finding = format!(
        "busiest thread `{}` used {} of a core: valid up to {}, suspect up to {}",
        busiest.name,
        percent(cores),
        percent(SHARD_VALID),
        percent(SHARD_SUSPECT)
    );
    let limits = CheckLimits { valid: SHARD_VALID, suspect: Some(SHARD_SUSPECT) };
    Some(Finding::new(status, finding, hint).of(Measure { value: cores, limits, unit: CheckUnit::Cores }))
}

/// V05.
pub(super) fn realtime_leaves_room(input: &VerdictInput) -> Option<Finding> {
    if !input.settings.realtime {
        return None;
    }
    let hint = "run without `--realtime`, or on a machine with more cores";
    let cores = input.environment.cores;
    let Some(usage) = input.generator_usage else {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            "CPU of pubmark was not measured, and it ran before all others".to_string(),
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
    // On more cores nothing is too much.
    let limit = if cores <= FEW_CORES { REALTIME_CORES } else { f64::from(cores) };
    Some(Finding::new(status, finding, hint).of(Measure::suspect_above(usage.cores, limit, CheckUnit::Cores)))
}

/// V06; nothing to say where the system does not tell.
pub(super) fn cpu_not_stolen(input: &VerdictInput) -> Option<Finding> {
    let steal = input.environment.steal?;
    let status = if steal > STEAL_SUSPECT { VerdictStatus::Suspect } else { VerdictStatus::Valid };
    let finding =
        format!("hypervisor took {} of the CPU time: suspect above {}", percent(steal), percent(STEAL_SUSPECT));
    let hint = "run again when the host is quieter, or on a machine of your own";
    Some(Finding::new(status, finding, hint).of(Measure::suspect_above(steal, STEAL_SUSPECT, CheckUnit::Share)))
}
