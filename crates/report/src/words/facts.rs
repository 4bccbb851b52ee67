//! Facts about a system in words: version, topology, limits, image, cores, versions in publications.

use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Knob, Trial, TrialOutcome};
use pubmark_record::cost::{HostUsage, LimitEffect, Usage};
use pubmark_record::record::{LimitInfo, Record, Status, SystemInfo};
use pubmark_record::verdict::rules::Blame;

use crate::numbers::{MISSING, bytes, cores, count, counted, percentage, seconds, share, short, significant};

/// A system with its version.
pub fn system_name(system: &SystemInfo) -> String {
    match &system.version {
        Some(version) => format!("{} {version}", system.name),
        None => system.name.clone(),
    }
}

/// A fact with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Name, short enough for a label on a terminal.
    pub name: &'static str,
    /// Text of the fact.
    pub text: String,
}

/// Further facts about a system; empty for a single broker without limits.
pub fn system_facts(system: &SystemInfo) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name, text| facts.push(Fact { name, text });
    if let Some(topology) = &system.topology {
        let brokers = counted(u64::from(topology.brokers), "broker", "brokers");
        add("topology", format!("{brokers}, {}: {}", topology.mode, topology.endpoints.join(", ")));
    }
    if let Some(limits) = &system.limits {
        add("limits", limit(limits));
    }
    if let Some(pinned) = &system.pinned_cores {
        add("pinned", format!("the system runs on cores {pinned}"));
    }
    if let Some(image) = &system.image {
        add("image", image.clone());
    }
    if let Some(papers) = papers(system) {
        add("papers", format!("measured {papers}; here {}", system.version.as_deref().unwrap_or(MISSING)));
    }
    facts
}

/// Versions that publications measured; `None` if none is known.
pub fn papers(system: &SystemInfo) -> Option<String> {
    let versions: Vec<String> =
        system.papers.iter().map(|paper| format!("{} ({})", paper.version, paper.paper)).collect();
    (!versions.is_empty()).then(|| versions.join(", "))
}

/// A limit as requested and as enforced.
pub fn limit(limits: &LimitInfo) -> String {
    let mut parts = Vec::new();
    if let Some(cpu) = limits.cpu {
        let period = limits.cpu_period_ms.map_or_else(String::new, |period| format!(" in every {} ms", short(period)));
        parts.push(format!("{} of a core{period}", cores(Some(cpu))));
    }
    parts.extend(limits.memory_bytes.map(|memory| format!("{} of memory", bytes(Some(memory as f64)))));
    parts.extend(limits.cores.map(|count| counted(u64::from(count), "core", "cores")));
    let held = if limits.held_by.is_empty() { String::new() } else { format!(", held by {}", limits.held_by) };
    if parts.is_empty() {
        format!("{}{held}", limits.requested)
    } else {
        format!("{} ({}){held}", limits.requested, parts.join(", "))
    }
}

/// Whether a run's limits restricted the system, in words; `None` without limits.
pub fn limit_effect(record: &Record) -> Option<String> {
    let effect = record.cost.limits.as_ref()?;
    let start = if effect.was_binding() { "binding" } else { "not binding" };
    Some(format!("{start}: {}", effect_parts(effect).join("; ")))
}

/// Effects of limits, each in a few words.
pub fn effect_parts(effect: &LimitEffect) -> Vec<String> {
    let mut parts = Vec::new();
    if let (Some(periods), Some(throttled)) = (effect.periods, effect.throttled_periods) {
        let time = effect.throttled_seconds.map_or_else(String::new, |time| format!(" ({})", seconds(time)));
        parts.push(if throttled == 0 {
            "CPU never rationed".to_string()
        } else {
            format!("CPU rationed in {} of its periods{time}", share(throttled, periods))
        });
    }
    if let Some(hits) = effect.memory_limit_hits {
        parts.push(match hits {
            0 => "memory never at its limit".to_string(),
            hits => format!("memory at its limit {}", counted(hits, "time", "times")),
        });
    }
    if let Some(kills) = effect.out_of_memory_kills.filter(|kills| *kills > 0) {
        parts.push(format!("{} OOM-killed", counted(kills, "process", "processes")));
    }
    if parts.is_empty() {
        parts.push("its effect was not measured".to_string());
    }
    parts
}

/// Resources used by the system, by pubmark under the name given, and by client programs if there were any; then the
/// share of each group that had processes of its own.
pub fn costs(record: &Record, own_name: &str) -> Vec<(String, Option<Usage>)> {
    let resources = &record.cost;
    let sides = [("system".to_owned(), resources.system), (own_name.to_owned(), resources.generator)];
    let programs = resources.client_programs.map(|usage| ("client program".to_owned(), Some(usage)));
    let sides = sides.into_iter().chain(programs);
    let groups = resources.groups.iter().map(|group| (format!("{own_name}: {}", group.group), group.usage));
    sides.chain(groups).collect()
}

/// Number of sides in [`costs`]; the other entries are groups.
pub fn sides(record: &Record) -> usize {
    2 + usize::from(record.cost.client_programs.is_some())
}

/// Cost per message and per connection, where known.
pub fn unit_costs(record: &Record) -> Vec<String> {
    let cost = &record.cost;
    let mut parts = Vec::new();
    parts.extend(cost.system_cpu_s_per_million.map(|cpu| format!("{} s of CPU a million messages", significant(cpu))));
    parts.extend(cost.system_bytes_per_connection.map(|size| format!("{} a connection", bytes(Some(size)))));
    parts
}

/// Use of the system's machine, if it was read.
pub fn host(host: &HostUsage) -> String {
    let of_all = host.cores_total.map_or_else(String::new, |total| format!(" of {total}"));
    let busy = host.cores.map_or_else(|| MISSING.to_string(), significant);
    let failed = match host.failed_readings {
        0 => String::new(),
        failed => format!("; {} failed", counted(failed, "reading", "readings")),
    };
    format!(
        "{busy} cores{of_all} busy, {} of {} used, {} in, {} out{failed}",
        bytes(host.peak_used_bytes.map(|size| size as f64)),
        bytes(host.memory_bytes.map(|size| size as f64)),
        bytes(host.received_bytes.map(|size| size as f64)),
        bytes(host.sent_bytes.map(|size| size as f64)),
    )
}

/// Competition for the CPUs of this machine, if known: shares of the window, and cores.
pub fn contention(record: &Record) -> Option<String> {
    let contention = record.cost.contention?;
    let others = contention.other_cores.map_or_else(|| MISSING.to_string(), |cores| format!("{cores:.2} cores"));
    let waited = record.cost.system.and_then(|usage| usage.run_queue_long_wait_ns);
    let waited = waited.map_or_else(|| MISSING.to_string(), |ns| format!("{} s", significant(ns as f64 / 1e9)));
    Some(format!(
        "other programs used {others}, the hypervisor took {}; some thread waited for a CPU {} of the time; long waits of the system {waited}",
        percentage(record.environment.steal),
        percentage(contention.cpu_pressure),
    ))
}

/// What a search varies, in one word.
pub fn knob(knob: Knob) -> &'static str {
    match knob {
        Knob::Rate => "rate of each device",
        Knob::Scale => "number of devices",
    }
}

/// What limited a search.
pub fn capacity_limit(record: &CapacityRecord) -> String {
    let limiting = record.limiting_trial();
    match record.result.limit {
        CapacityLimit::System if limiting.is_some_and(|trial| trial.outcome == TrialOutcome::Failed) => {
            "the system; above, it failed".to_string()
        }
        CapacityLimit::System => "the system; above, the objectives are missed".to_string(),
        CapacityLimit::Generator => {
            let limit = match limiting.map_or(Blame::Run, Trial::blame) {
                Blame::Generator => "the generator".to_string(),
                Blame::Machine => format!("the machine{}", code(limiting)),
                Blame::Clients | Blame::System(_) | Blame::Run => match limiting.and_then(not_measured) {
                    Some(objective) => format!("an objective that was not measured ({objective})"),
                    None => format!("the runs above were invalid{}", code(limiting)),
                },
            };
            match record.result.holds_per_s {
                Some(_) => format!("{limit}; the system carries at least this much, and may carry more"),
                None => format!("{limit}; nothing is known of the system"),
            }
        }
        CapacityLimit::Range => "the end of the range; the system still held there".to_string(),
        CapacityLimit::NothingHeld => "below the smallest load; not even that held".to_string(),
        CapacityLimit::Time if record.status == Status::Interrupted => {
            "not found; the search was interrupted before".to_string()
        }
        CapacityLimit::Time => "the time for the search; it was over before an end was found".to_string(),
    }
}

/// The objective because of which a trial shows nothing, if it did not measure one.
fn not_measured(trial: &Trial) -> Option<&str> {
    trial.not_measured.as_deref()
}

/// Code of the rule that decided a trial, in parentheses; empty without one.
fn code(trial: Option<&Trial>) -> String {
    trial.and_then(|trial| trial.code.as_deref()).map_or_else(String::new, |code| format!(" ({code})"))
}

/// The highest load that held, in a few words.
pub fn capacity_headline(record: &CapacityRecord) -> String {
    let answer = &record.result;
    let Some(holds) = answer.holds_per_s else {
        let nothing = match (record.status, answer.limit) {
            _ if record.trials.is_empty() => "Nothing is known: no trial was made",
            (Status::Interrupted, _) => "Nothing is known: the search was interrupted",
            (_, CapacityLimit::Time) if record.trials.iter().any(|trial| not_measured(trial).is_some()) => {
                "Nothing is known: the time was over, and an objective was not measured"
            }
            (_, CapacityLimit::Time) => "Nothing is known: the time was over",
            (_, CapacityLimit::Generator) => match record.limiting_trial().map_or(Blame::Run, Trial::blame) {
                Blame::Generator => "Nothing is known: pubmark was the limit",
                Blame::Machine => "Nothing is known: the machine was the limit",
                Blame::Clients | Blame::System(_) | Blame::Run => {
                    match record.limiting_trial().and_then(not_measured) {
                        Some(_) => "Nothing is known: an objective was not measured",
                        None => "Nothing is known: the runs were invalid",
                    }
                }
            },
            _ => "No load that was tried held",
        };
        return nothing.to_string();
    };
    let least = if answer.limit == CapacityLimit::System { "" } else { "at least " };
    let of = match (record.knob, answer.holds_devices) {
        (Knob::Scale, Some(devices)) => format!(" ({} devices)", count(devices)),
        _ => String::new(),
    };
    format!("carries {least}{} messages/s{of}", significant(holds))
}

/// Number of trials of a search.
pub fn counted_trials(record: &CapacityRecord) -> String {
    counted(record.trials.len() as u64, "trial", "trials")
}

/// Share of the wanted deliveries that did not arrive; none is negative, even if a difference of two shares is.
pub fn loss_share(loss: f64) -> String {
    percentage(Some(if loss < 0.0 { 0.0 } else { loss }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_record::cost::GroupUsage;
    use pubmark_record::record::VerdictStatus;
    use pubmark_record::{sample, sample_experiment};

    #[test]
    fn a_group_with_processes_of_its_own_stands_behind_both_sides_also_if_its_cost_is_not_known() {
        let mut record = sample::record();
        record.cost.groups = vec![GroupUsage { group: "home/door".to_owned(), usage: None }];
        let costs = costs(&record, "pubmark");
        let names: Vec<&str> = costs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((&names[..], sides(&record)), (&["system", "pubmark", "pubmark: home/door"][..], 2));
        assert!(costs[1].1.is_some() && costs[2].1.is_none());
        record.cost.client_programs = Some(Usage::default());
        let names: Vec<String> = super::costs(&record, "pubmark").into_iter().map(|(name, _)| name).collect();
        assert_eq!((names[sides(&record) - 1].as_str(), names.len()), ("client program", 4));
    }

    #[test]
    fn a_limit_shows_the_request_and_its_meaning() {
        let text = limit(&sample_experiment::limits());
        assert_eq!(text, "cpu=1,memory=256MB (100 % of a core in every 10 ms, 256 MB of memory), held by cgroup v2");
    }

    #[test]
    fn an_effect_says_only_what_was_measured() {
        let none = LimitEffect::default();
        assert_eq!(effect_parts(&none), ["its effect was not measured"]);
        let some = LimitEffect {
            periods: Some(1_000),
            throttled_periods: Some(340),
            throttled_seconds: Some(3.2),
            memory_limit_hits: Some(0),
            out_of_memory_kills: Some(1),
        };
        assert_eq!(
            effect_parts(&some),
            ["CPU rationed in 34 % of its periods (3.2 s)", "memory never at its limit", "1 process OOM-killed"]
        );
    }

    #[test]
    fn a_search_whose_time_was_over_says_nothing_of_the_system() {
        let mut record = sample_experiment::capacity();
        (record.result.holds_per_s, record.result.limit) = (None, CapacityLimit::NothingHeld);
        assert_eq!(capacity_headline(&record), "No load that was tried held");
        record.result.limit = CapacityLimit::Time;
        assert_eq!(capacity_headline(&record), "Nothing is known: the time was over");
        record.trials.last_mut().unwrap().not_measured = Some("backpressure_p99<1ms".to_owned());
        let unmeasured = "Nothing is known: the time was over, and an objective was not measured";
        assert_eq!(capacity_headline(&record), unmeasured);
        assert!(capacity_limit(&record).starts_with("the time for the search"));
        record.status = Status::Interrupted;
        assert_eq!(capacity_headline(&record), "Nothing is known: the search was interrupted");
        assert_eq!(capacity_limit(&record), "not found; the search was interrupted before", "its time was not over");
        record.trials.clear();
        assert_eq!(capacity_headline(&record), "Nothing is known: no trial was made");
    }

    #[test]
    fn a_search_that_ended_at_invalid_runs_does_not_blame_the_generator() {
        let mut record = sample_experiment::generator_limited();
        let rest = "; the system carries at least this much, and may carry more";
        let mut words = |verdict: Option<VerdictStatus>, code: Option<&str>, holds: Option<f64>| {
            let trial = record.trials.last_mut().unwrap();
            (trial.verdict, trial.code) = (verdict, code.map(str::to_owned));
            record.result.holds_per_s = holds;
            (capacity_limit(&record), capacity_headline(&record))
        };
        let invalid = Some(VerdictStatus::Invalid);
        for (verdict, code, limit, nothing) in [
            (invalid, Some("V01"), "the generator", "pubmark was the limit"),
            (Some(VerdictStatus::Suspect), None, "the generator", "pubmark was the limit"),
            (invalid, Some("V28"), "the machine (V28)", "the machine was the limit"),
            (invalid, Some("V24"), "the runs above were invalid (V24)", "the runs were invalid"),
            (invalid, Some("V31"), "the runs above were invalid (V31)", "the runs were invalid"),
            (None, None, "the runs above were invalid", "the runs were invalid"),
        ] {
            let (shown, headline) = words(verdict, code, Some(4_000.0));
            assert_eq!(shown, format!("{limit}{rest}"));
            assert!(headline.starts_with("carries at least 4,000"), "{headline}");
            let (shown, headline) = words(verdict, code, None);
            assert_eq!(shown, format!("{limit}; nothing is known of the system"));
            assert_eq!(headline, format!("Nothing is known: {nothing}"));
        }
    }

    #[test]
    fn an_objective_that_was_not_measured_is_nobodys_limit() {
        let mut record = sample_experiment::generator_limited();
        let trial = record.trials.last_mut().unwrap();
        (trial.verdict, trial.code) = (Some(VerdictStatus::Valid), None);
        trial.not_measured = Some("backpressure_p99<1ms".to_owned());
        let limit = "an objective that was not measured (backpressure_p99<1ms)";
        let rest = "the system carries at least this much, and may carry more";
        assert_eq!(capacity_limit(&record), format!("{limit}; {rest}"));
        record.result.holds_per_s = None;
        assert_eq!(capacity_headline(&record), "Nothing is known: an objective was not measured");
    }

    #[test]
    fn a_system_that_failed_under_load_is_not_said_to_miss_objectives() {
        let mut record = sample_experiment::capacity();
        assert_eq!(capacity_limit(&record), "the system; above, the objectives are missed");
        record
            .trials
            .iter_mut()
            .filter(|trial| trial.factor == 12.0)
            .for_each(|trial| trial.outcome = TrialOutcome::Failed);
        assert_eq!(capacity_limit(&record), "the system; above, it failed");
    }

    #[test]
    fn a_loss_that_is_there_is_never_printed_as_none() {
        let shares = [0.0, -1e-17, 1e-6, 0.021, 0.999_96, f64::NAN].map(loss_share);
        assert_eq!(shares, ["0 %", "0 %", "< 0.01 %", "2.1 %", "99.99 %", MISSING]);
    }
}
