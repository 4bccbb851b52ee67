//! Rules on the system: it must run to the end, and have CPUs to run on. A system that violates either does not show
//! what it can do.

use super::{Finding, Measure, VerdictInput};
use crate::links::LinkFigures;
use crate::quantity::{count, percent};
use crate::record::{BackEndKind, CheckUnit, VerdictStatus};

/// Share of its runnable time for which a system may wait for CPUs that others use.
const WAIT_SHARE: f64 = 0.10;
/// Share of the window for which a system may wait without effect: fewer than 1 % of the messages are due in these
/// waits, so p99 does not change.
const WAIT_FLOOR: f64 = 0.01;
/// Share of all cores from which on all count as busy: the rest is the resolution of clock ticks.
const FULL_SHARE: f64 = 0.95;
/// Share of its runnable time for which a system may wait, short waits included, where every core is busy. Ordinary
/// waits on an idle virtual machine are up to a third of the runnable time of a lightly loaded system, but there cores
/// are idle.
const CROWDED_SHARE: f64 = 0.25;
/// Share of the window for which short waits are without effect where every core is busy.
const CROWDED_FLOOR: f64 = 0.05;

/// Rule V25; `None` if no end of the system is known.
pub(super) fn ran_to_the_end(input: &VerdictInput) -> Option<Finding> {
    let end = input.system.ended.as_ref()?;
    let when = match end.at_s {
        Some(at_s) if at_s < 0.0 => format!("{:.1} s before the measured window", -at_s),
        Some(at_s) if at_s > input.settings.duration_s => {
            format!("{:.1} s after the measured window", at_s - input.settings.duration_s)
        }
        Some(at_s) => format!("at {at_s:.1} s of the measured window's {:.1} s", input.settings.duration_s),
        None => "during the run".to_string(),
    };
    Some(Finding::new(
        VerdictStatus::Invalid,
        format!("the system ended {when}: {}", end.how),
        "see the system's log for the reason; correct it, and run again",
    ))
}

/// The machine on which the system runs.
struct Machine {
    /// Its cores.
    cores: u32,
    /// Cores in use, by all programs.
    busy_cores: Option<f64>,
    /// Share of its CPU time that the hypervisor took; `None` also for several machines, of which only the largest share is
    /// known.
    steal: Option<f64>,
    /// Whether all clients run on it as well.
    is_ours: bool,
}

impl Machine {
    /// The machine of this process, or the one that a node observes; `None` if nothing is known of the latter.
    fn of(input: &VerdictInput) -> Option<Machine> {
        let is_one = input.nodes.iter().all(|node| node.clock.as_ref().is_none_or(|clock| clock.is_the_same));
        if input.system.node.is_none() && input.host.is_none() {
            let environment = input.environment;
            let (cores, busy_cores) = (environment.machine_cores(), environment.busy_cores);
            return Some(Machine { cores, busy_cores, steal: environment.steal, is_ours: is_one });
        }
        let host = input.host?;
        let is_ours = is_one && host.is_this_machine == Some(true);
        let steal = host.steal.filter(|_| host.steal_by_machine.len() < 2);
        Some(Machine { cores: host.cores_total?, busy_cores: Some(host.cores?), steal, is_ours })
    }
}

/// Time for which a system waited for CPUs that others used: not more than the CPU time of the others, and without what
/// a requested resource limit can explain.
struct Wait {
    /// In long waits, s.
    long_s: f64,
    /// Time in all waits, short ones included, on a machine whose cores were all busy, s; `None` on other machines.
    crowded_s: Option<f64>,
    /// CPU time of the system, s.
    cpu_s: f64,
}

impl Wait {
    fn of(input: &VerdictInput) -> Option<Wait> {
        let usage = input.system_usage?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let long_s = seconds(usage.run_queue_long_wait_ns?);
        let machine = Machine::of(input)?;
        // Threads of a system that wait only for each other would not run sooner without other programs, so others can
        // have delayed it by at most their CPU time. The machine counts busy time in clock ticks and misses short
        // activity; the CPU time of pubmark and of client programs is exact.
        let program_cores = input.program_usage.map_or(0.0, |usage| usage.cores);
        let own_cores = if machine.is_ours { pubmark_cores(input).unwrap_or(0.0) + program_cores } else { 0.0 };
        let others_s =
            machine.busy_cores.map_or(f64::INFINITY, |busy| (busy - usage.cores).max(own_cores) * input.window_s);
        let throttled_s = input.limits.and_then(|limits| limits.throttled_seconds).unwrap_or(0.0);
        let by_limit_s = throttled_s * usage.threads.unwrap_or(1).max(1) as f64;
        let by_others = |wait_s: f64| (wait_s - by_limit_s).max(0.0).min(others_s);
        // In a CPU set of a larger machine, or with a quota of CPU time, the system and pubmark may fill what they have.
        let fills_its_set = machine.is_ours && own_cores + usage.cores >= FULL_SHARE * shared_cores(input);
        let is_full =
            fills_its_set || machine.busy_cores.is_some_and(|busy| busy >= FULL_SHARE * f64::from(machine.cores));
        let crowded_s = usage.run_queue_wait_ns.filter(|_| is_full).map(|wait_ns| by_others(seconds(wait_ns)));
        Some(Wait { long_s: by_others(long_s), crowded_s, cpu_s: usage.cpu_seconds })
    }

    /// A wait as a share of itself plus the system's CPU time.
    fn share(&self, wait_s: f64) -> f64 {
        wait_s / (wait_s + self.cpu_s).max(f64::MIN_POSITIVE)
    }
}

/// CPU time per second that pubmark and the system share, in cores. The quota of pubmark's control group holds for
/// processes that pubmark starts. It does not hold for a container, which is in a group of its engine, and is not known
/// to hold for a system that runs already or that a node started.
fn shared_cores(input: &VerdictInput) -> f64 {
    let is_in_our_group = matches!(input.system.back_end, BackEndKind::Builtin | BackEndKind::Process);
    match is_in_our_group && input.system.node.is_none() {
        true => input.environment.usable_cores(),
        false => f64::from(input.environment.cores),
    }
}

/// Cores that pubmark used, with the emulator of its links and the relay behind them; `None` if the generator's are not known.
fn pubmark_cores(input: &VerdictInput) -> Option<f64> {
    let of_links =
        |links: &LinkFigures| links.cpu_s.unwrap_or(0.0) + links.relay.as_ref().map_or(0.0, |relay| relay.cpu_s);
    let links_s = input.links.map_or(0.0, of_links);
    Some(input.generator_usage?.cores + links_s / input.window_s.max(f64::MIN_POSITIVE))
}

/// Name of a user's client program in the list of programs that used the CPUs.
const CLIENT_PROGRAM: &str = "the client program";

/// Programs that used the CPUs, most first, with cores where they are known.
fn holders(input: &VerdictInput) -> String {
    let machine = Machine::of(input);
    let is_ours = machine.as_ref().is_some_and(|machine| machine.is_ours);
    let others = match input.host {
        // What the record has of contention is that of this machine.
        Some(host) if !is_ours => host.cores.zip(input.system_usage).map(|(busy, system)| busy - system.cores),
        _ => input.contention.and_then(|contention| contention.other_cores),
    };
    let stolen = machine.and_then(|machine| Some(machine.steal? * f64::from(machine.cores)));
    let pubmark = if input.settings.realtime { "real-time pubmark" } else { "pubmark" };
    let here = |cores: Option<f64>| cores.filter(|_| is_ours);
    let mut holders: Vec<(&str, f64)> = [
        ("other programs", others),
        (pubmark, here(pubmark_cores(input))),
        (CLIENT_PROGRAM, here(input.program_usage.map(|usage| usage.cores))),
        ("the hypervisor", stolen),
    ]
    .into_iter()
    .filter_map(|(name, cores)| Some((name, cores.filter(|cores| *cores >= 0.01)?)))
    .collect();
    holders.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let words: Vec<String> = holders.iter().map(|(name, cores)| format!("{name} {cores:.2} cores")).collect();
    let named = if words.is_empty() { "unknown".to_owned() } else { words.join(", ") };
    format!("users of these processors: {named}")
}

/// Rule V28; `None` where the wait was not measured.
pub(super) fn had_the_cpu(input: &VerdictInput) -> Option<Finding> {
    let wait = Wait::of(input)?;
    let (measure, mut text) = judged_wait(&wait, input.window_s.max(f64::MIN_POSITIVE));
    let is_starved = measure.value > measure.limits.valid;
    let failed = Failed::of(input);
    // If all messages arrived, the counts are correct, but latencies may not be: with CPUs available they could be
    // lower. A flood always requests more than is possible, so messages are missing in any case.
    let status = match (is_starved, failed.any() && !input.settings.flood) {
        (false, _) => VerdictStatus::Valid,
        (true, false) => VerdictStatus::Suspect,
        (true, true) => VerdictStatus::Invalid,
    };
    if is_starved {
        text.push_str(&format!("; {}", holders(input)));
        if failed.messages > 0 {
            text.push_str(&format!("; {} messages are missing or were not sent", count(failed.messages)));
        }
        if failed.requests > 0 {
            text.push_str(&format!("; {} requests had no reply in time, or it is unknown", count(failed.requests)));
        }
    }
    Some(Finding::new(status, text, &remedy(input)).of(measure))
}

/// What a system without CPU may have failed to do.
struct Failed {
    /// Messages that did not arrive or were not sent.
    messages: u64,
    /// Requests without a reply in time.
    requests: u64,
}

impl Failed {
    /// What the workload plans is left out: absences of devices (`skipped_planned`; subscribers have none) and messages that
    /// are too large for the system. So are absences where the system refused or revoked subscriptions, replies that
    /// pubmark's own delay made late, and requests that its responders dropped because of it. Faults of the run end connections
    /// and delay replies, so only what was lost, unknown or unsent counts beside them.
    fn of(input: &VerdictInput) -> Failed {
        let books = input.delivery;
        let messages = books.lost + books.unknown + books.unsent;
        if input.faults.is_some() {
            return Failed { messages, requests: 0 };
        }
        let refused = books.refused.saturating_sub(input.too_large);
        let absent = if input.connections.subscriptions_not_held() == 0 { books.absent } else { 0 };
        let requests = input.requests.map_or(0, |requests| {
            let outcomes = &requests.outcomes;
            let dropped = requests.responses.dropped_by_generator.min(outcomes.timed_out + outcomes.unknown);
            outcomes.without_reply().saturating_sub(outcomes.late_by_generator + dropped)
        });
        Failed { messages: messages + refused + books.skipped_disconnected + absent, requests }
    }

    fn any(&self) -> bool {
        self.messages > 0 || self.requests > 0
    }
}

/// What to do about the program that used most of the CPU time.
fn remedy(input: &VerdictInput) -> String {
    if !Machine::of(input).is_some_and(|machine| machine.is_ours) {
        return "stop other programs on the system's machine, give the system cores of its own, or lower the rate"
            .to_owned();
    }
    let program = input.program_usage.map_or(0.0, |usage| usage.cores);
    let own = pubmark_cores(input).unwrap_or(0.0);
    let others = input.contention.and_then(|contention| contention.other_cores).unwrap_or(0.0);
    if program > own.max(others) {
        return format!(
            "the client program used {program:.2} cores: lower the rate, or give the system cores of its own (`--pin system=0`)"
        );
    }
    let words = match (others > own, input.settings.realtime) {
        (true, _) => "stop other programs on this machine, or give the system cores of its own (`--pin system=0`)",
        (false, true) => "run without `--realtime`, keep pubmark off the system's cores (`--pin`), or lower the rate",
        (false, false) => "lower the rate, divide the cores (`--pin`), or send from another machine (`--nodes`)",
    };
    words.to_owned()
}

/// The wait that is compared with the limits, and its text: long waits, or if these are few, all waits on a machine
/// without an idle core.
fn judged_wait(wait: &Wait, window_s: f64) -> (Measure, String) {
    let of = |value: f64, valid: f64| Measure::suspect_above(value, valid, CheckUnit::Share);
    let is_long = wait.long_s >= WAIT_FLOOR * window_s;
    if let Some(all_s) = wait.crowded_s.filter(|all_s| *all_s >= CROWDED_FLOOR * window_s)
        && wait.share(all_s) > CROWDED_SHARE
        && !(is_long && wait.share(wait.long_s) > WAIT_SHARE)
    {
        let text = format!(
            "every core was busy, and the system waited {all_s:.3} s for processors that others had, {} of the time in which it was \
             ready: valid up to {}, or {} of the window",
            percent(wait.share(all_s)),
            percent(CROWDED_SHARE),
            percent(CROWDED_FLOOR)
        );
        return (of(wait.share(all_s), CROWDED_SHARE), text);
    }
    let text = format!(
        "the system waited {:.3} s for processors that others had, {} of the time in which it was ready: valid up to {}, or {} of the \
         window",
        wait.long_s,
        percent(wait.share(wait.long_s)),
        percent(WAIT_SHARE),
        percent(WAIT_FLOOR)
    );
    // Below the floor the share is not meaningful: a system with very little to do may wait as long as it runs.
    (of(if is_long { wait.share(wait.long_s) } else { 0.0 }, WAIT_SHARE), text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cost::{Contention, HostUsage, LimitEffect, Usage};
    use crate::faults::FaultFigures;
    use crate::links::RelayFigures;
    use crate::nodes::{NodeClock, NodeRow};
    use crate::record::{Record, Status, SystemEnd};
    use crate::requests::{RequestBooks, RequestFigures, ResponseBooks};
    use crate::sample;
    use crate::verdict::judge;

    fn found(code: &str, change: impl FnOnce(&mut Record)) -> Option<(VerdictStatus, String)> {
        let mut record = sample::record();
        change(&mut record);
        let checks = judge(&VerdictInput::of(&record)).checks;
        checks.into_iter().find(|check| check.code == code).map(|check| (check.status, check.text))
    }

    #[test]
    fn a_system_that_ended_makes_a_run_invalid_with_cause_and_time() {
        assert_eq!(found("V25", |_| {}), None);
        for (at_s, expected) in [
            (Some(0.2), "the system ended at 0.2 s of the measured window's 10.0 s: signal: 9 (SIGKILL)"),
            (Some(-1.0), "the system ended 1.0 s before the measured window: signal: 9 (SIGKILL)"),
            (Some(10.5), "the system ended 0.5 s after the measured window: signal: 9 (SIGKILL)"),
            (None, "the system ended during the run: signal: 9 (SIGKILL)"),
        ] {
            let end =
                SystemEnd { how: "signal: 9 (SIGKILL)".to_owned(), at_s, signal: Some(9), ..SystemEnd::default() };
            let told = found("V25", |record| record.system.ended = Some(end)).unwrap();
            assert_eq!(told, (VerdictStatus::Invalid, expected.to_owned()));
        }
    }

    /// Ten seconds in which the system ran and waited for these times, and the machine kept N cores busy.
    fn waited(run_s: f64, wait_s: f64, busy_cores: f64, change: impl FnOnce(&mut Record)) -> (VerdictStatus, String) {
        let found = found("V28", |record| {
            let usage = record.cost.system.as_mut().unwrap();
            (usage.cpu_seconds, usage.cores, usage.threads) = (run_s, run_s / 10.0, Some(1));
            usage.run_queue_long_wait_ns = Some((wait_s * 1e9) as u64);
            record.environment.busy_cores = Some(busy_cores);
            change(record);
        });
        found.unwrap()
    }

    #[test]
    fn a_system_that_waited_for_others_shows_nothing_of_itself() {
        use VerdictStatus::{Invalid, Suspect, Valid};
        assert_eq!(waited(4.0, 0.3, 2.0, |_| {}).0, Valid, "7 % of its time");
        let lossy =
            |record: &mut Record| (record.delivery.messages.delivered, record.delivery.messages.lost) = (9_999, 1);
        assert_eq!(waited(4.0, 0.5, 2.0, |_| {}).0, Suspect, "all arrived, perhaps late");
        assert_eq!(waited(4.0, 0.5, 2.0, lossy).0, Invalid, "and one did not");
        assert_eq!(waited(0.05, 0.09, 2.0, |_| {}).0, Valid, "0.9 % of the window");
        assert_eq!(waited(0.05, 0.11, 2.0, |_| {}).0, Suspect);
        // Of 8 s of wait, others can have caused only the 1 s for which they ran; the system's own threads delayed each
        // other.
        assert_eq!(waited(19.0, 8.0, 2.0, |_| {}).0, Valid);
        // The clock ticks missed pubmark, whose CPU time is known exactly: 0.91 s.
        assert_eq!(waited(0.5, 2.0, 0.0, |_| {}).0, Suspect);
        let throttled = |record: &mut Record| {
            record.cost.limits = Some(LimitEffect { throttled_seconds: Some(4.5), ..LimitEffect::default() });
        };
        assert_eq!(waited(4.0, 4.5, 2.0, throttled).0, Valid, "a limit that was asked for");
        assert_eq!(found("V28", |_| {}), None, "not measured");
    }

    #[test]
    fn a_wait_in_a_run_that_was_stopped_is_compared_with_the_window_that_there_was() {
        use VerdictStatus::{Suspect, Valid};
        let stopped = |record: &mut Record| {
            (record.settings.window_start_ns, record.settings.window_end_ns) = (7_000_000_000, 9_000_000_000);
            record.run.status = Status::Interrupted;
        };
        assert_eq!(waited(0.2, 0.05, 2.0, |_| {}).0, Valid, "0.5 % of 10 s");
        let (status, text) = waited(0.2, 0.05, 2.0, stopped);
        assert_eq!(status, Suspect, "2.5 % of 2 s: {text}");
    }

    #[test]
    fn what_a_system_without_cpu_refused_cut_off_or_answered_late_is_missing_as_well() {
        use VerdictStatus::{Invalid, Suspect};
        let ways: [fn(&mut Record); 5] = [
            |record| record.delivery.messages.skipped_disconnected = 2,
            |record| record.delivery.messages.absent = 2,
            |record| record.delivery.messages.refused = 2,
            |record| record.delivery.messages.unsent = 2,
            |record| record.delivery.messages.unknown = 2,
        ];
        for (number, way) in ways.into_iter().enumerate() {
            let (status, text) = waited(4.0, 0.5, 2.0, way);
            assert_eq!(status, Invalid, "{number}: {text}");
            assert!(text.ends_with("; 2 messages are missing or were not sent"), "{number}: {text}");
        }
        let late = |record: &mut Record| {
            let outcomes = RequestBooks { sent: 3, late: 1, timed_out: 2, ..RequestBooks::default() };
            record.requests = Some(RequestFigures { outcomes, ..RequestFigures::default() });
        };
        let (status, text) = waited(4.0, 0.5, 2.0, late);
        assert!(status == Invalid && text.ends_with("; 3 requests had no reply in time, or it is unknown"), "{text}");
        let our_delay = |record: &mut Record| {
            let outcomes = RequestBooks { sent: 3, late: 3, late_by_generator: 3, ..RequestBooks::default() };
            record.requests = Some(RequestFigures { outcomes, ..RequestFigures::default() });
        };
        assert_eq!(waited(4.0, 0.5, 2.0, our_delay).0, Suspect, "pubmark made the replies late");
        let our_drops = |record: &mut Record| {
            let outcomes = RequestBooks { sent: 3, timed_out: 3, ..RequestBooks::default() };
            let responses = ResponseBooks { dropped: 3, dropped_by_generator: 3, ..ResponseBooks::default() };
            record.requests = Some(RequestFigures { outcomes, responses, ..RequestFigures::default() });
        };
        assert_eq!(waited(4.0, 0.5, 2.0, our_drops).0, Suspect, "pubmark's responder had no room");
        let planned = |record: &mut Record| record.delivery.messages.skipped_planned = 2;
        assert_eq!(waited(4.0, 0.5, 2.0, planned).0, Suspect, "the workload plans it");
        let too_large = |record: &mut Record| (record.delivery.messages.refused, record.delivery.too_large) = (2, 2);
        assert_eq!(waited(4.0, 0.5, 2.0, too_large).0, Suspect, "with all CPUs as well");
        let under_faults = |record: &mut Record| {
            late(record);
            record.delivery.messages.skipped_disconnected = 2;
            record.conditions.faults = Some(FaultFigures::default());
        };
        assert_eq!(waited(4.0, 0.5, 2.0, under_faults).0, Suspect, "the run itself cuts connections");
    }

    #[test]
    fn the_hypervisor_is_named_with_what_it_took_from_the_system_s_machine() {
        let elsewhere = |record: &mut Record| {
            record.system.node = Some("east".to_owned());
            let host = HostUsage { cores: Some(2.0), cores_total: Some(2), steal: Some(0.25), ..HostUsage::default() };
            record.cost.host = Some(host);
        };
        let text = waited(4.0, 4.5, 0.1, elsewhere).1;
        assert!(text.contains("other programs 1.60 cores, the hypervisor 0.50 cores"), "{text}");
        // The largest share is that of one of these machines, and how many cores it has is not known.
        let several = |record: &mut Record| {
            elsewhere(record);
            let host = record.cost.host.as_mut().unwrap();
            host.steal_by_machine =
                [("`a`", Some(0.25)), ("`b`", None)].map(|(name, steal)| (name.to_owned(), steal)).into();
        };
        let text = waited(4.0, 4.5, 0.1, several).1;
        assert!(text.ends_with("users of these processors: other programs 1.60 cores"), "{text}");
    }

    #[test]
    fn users_of_another_machine_are_those_of_that_machine() {
        let on = |is_this_machine: Option<bool>| {
            let text = waited(4.0, 4.5, 1.5, |record| {
                record.system.node = Some("broker-1".to_owned());
                record.cost.contention = Some(Contention { other_cores: Some(1.41), ..Contention::default() });
                let cores = (Some(1.9), Some(2));
                let host = HostUsage { cores: cores.0, cores_total: cores.1, is_this_machine, ..HostUsage::default() };
                record.cost.host = Some(host);
            });
            text.1.rsplit_once("users of these processors: ").unwrap().1.to_owned()
        };
        assert_eq!(on(Some(false)), "other programs 1.50 cores", "not those of the machine of the clients");
        assert_eq!(on(None), "other programs 1.50 cores", "an older record");
        assert_eq!(on(Some(true)), "other programs 1.41 cores, pubmark 0.09 cores");
    }

    #[test]
    fn the_wait_is_judged_by_the_machine_of_the_system() {
        use VerdictStatus::{Suspect, Valid};
        // Two nodes on other machines used four cores there.
        let apart = |record: &mut Record| {
            record.cost.generator.as_mut().unwrap().cores = 4.0;
            let node = || NodeRow { clock: Some(NodeClock::default()), ..NodeRow::default() };
            record.tables.nodes = vec![node(), node()];
        };
        assert_eq!(waited(19.0, 8.0, 2.0, apart).0, Valid, "it waited for itself");
        // This machine is idle; that of the system is not.
        let elsewhere = |record: &mut Record| {
            record.system.node = Some("east".to_owned());
            record.cost.host = Some(HostUsage { cores: Some(2.0), cores_total: Some(2), ..HostUsage::default() });
        };
        assert_eq!(waited(4.0, 4.5, 0.1, elsewhere).0, Suspect);
        let unknown = |record: &mut Record| {
            record.system.node = Some("east".to_owned());
            record.cost.system.as_mut().unwrap().run_queue_long_wait_ns = Some(4_500_000_000);
        };
        assert_eq!(found("V28", unknown), None, "nothing is known of its machine");
    }

    #[test]
    fn short_waits_count_where_every_core_is_busy() {
        use VerdictStatus::{Invalid, Suspect, Valid};
        let short = |wait_s: f64, lost: u64| {
            move |record: &mut Record| {
                record.cost.system.as_mut().unwrap().run_queue_wait_ns = Some((wait_s * 1e9) as u64);
                record.environment.processors = Some(2);
                record.delivery.messages.delivered -= lost;
                record.delivery.messages.lost = lost;
            }
        };
        assert_eq!(waited(3.0, 0.0, 1.8, short(6.0, 0)).0, Valid, "a fifth of a core was free");
        let (status, text) = waited(3.0, 0.0, 2.0, short(0.9, 0));
        assert_eq!(status, Valid, "23 % of its time");
        assert!(text.starts_with("the system waited 0.000 s for processors that others had"), "{text}");
        assert_eq!(waited(0.5, 0.0, 2.0, short(0.4, 0)).0, Valid, "4 % of the window");
        let (status, text) = waited(3.0, 0.0, 2.0, short(6.0, 0));
        assert_eq!(status, Suspect);
        assert!(text.starts_with("every core was busy, and the system waited 6.000 s"), "{text}");
        assert_eq!(waited(3.0, 0.0, 2.0, short(6.0, 1)).0, Invalid);
        let flood = |record: &mut Record| {
            short(6.0, 1)(record);
            record.settings.flood = true;
        };
        assert_eq!(waited(3.0, 0.0, 2.0, flood).0, Suspect, "a flood loses in any case");
        let pinned = |record: &mut Record| {
            short(6.0, 1)(record);
            record.environment.processors = Some(8);
        };
        assert_eq!(waited(3.0, 0.0, 2.0, pinned).0, Valid, "six cores of the machine were free");
        let in_a_set = |record: &mut Record| {
            pinned(record);
            record.environment.cores = 2;
            record.cost.generator.as_mut().unwrap().cores = 1.7;
        };
        assert_eq!(waited(3.0, 0.0, 2.0, in_a_set).0, Invalid, "and those of its CPU set were not");
        let with_a_quota = |record: &mut Record| {
            in_a_set(record);
            (record.environment.cores, record.environment.cpu_quota_cores) = (8, Some(2.0));
        };
        assert_eq!(waited(3.0, 0.0, 2.0, with_a_quota).0, Invalid, "nor did its control group leave it more");
        for (back_end, expected) in
            [(BackEndKind::Process, Invalid), (BackEndKind::Container, Valid), (BackEndKind::External, Valid)]
        {
            let run_by = |record: &mut Record| {
                with_a_quota(record);
                record.system.back_end = back_end;
            };
            assert_eq!(waited(3.0, 0.0, 2.0, run_by).0, expected, "{back_end}");
        }
    }

    #[test]
    fn a_client_program_that_had_the_processors_is_named_with_what_it_used() {
        let mut record = sample::record();
        let usage = record.cost.system.as_mut().unwrap();
        (usage.cpu_seconds, usage.cores, usage.threads) = (4.0, 0.4, Some(1));
        usage.run_queue_long_wait_ns = Some(4_500_000_000);
        record.environment.busy_cores = Some(2.0);
        record.cost.contention = Some(Contention { other_cores: Some(0.02), ..Contention::default() });
        record.cost.client_programs = Some(Usage { cpu_seconds: 12.0, cores: 1.2, ..Usage::default() });
        let checks = judge(&VerdictInput::of(&record)).checks;
        let check = checks.into_iter().find(|check| check.code == "V28").unwrap();
        assert!(
            check.text.contains("the client program 1.20 cores, pubmark 0.09 cores, other programs 0.02"),
            "{}",
            check.text
        );
        let reason = judge(&VerdictInput::of(&record)).reasons.into_iter().find(|reason| reason.code == "V28").unwrap();
        assert!(reason.hint.starts_with("the client program used 1.20 cores: lower the rate"), "{}", reason.hint);
    }

    #[test]
    fn the_emulator_and_the_relay_of_links_are_pubmarks() {
        let linked = |record: &mut Record| {
            let relay = RelayFigures { cpu_s: 2.0, ..RelayFigures::default() };
            record.conditions.links =
                Some(LinkFigures { cpu_s: Some(3.0), relay: Some(relay), ..LinkFigures::default() });
        };
        let record = sample::record();
        let own = record.cost.generator.unwrap().cores + 5.0 / record.window_s();
        let text = waited(4.0, 4.5, 2.0, linked).1;
        assert!(text.contains(&format!("pubmark {own:.2} cores")), "{text}");
    }

    #[test]
    fn programs_that_used_the_processors_are_named_most_first() {
        let busy = |record: &mut Record| {
            record.cost.contention = Some(Contention { other_cores: Some(1.5), ..Contention::default() });
            record.environment.steal = Some(0.01);
            record.delivery.messages.lost = 3;
        };
        let text = waited(4.0, 4.5, 2.0, busy).1;
        assert!(text.contains("other programs 1.50 cores, pubmark 0.09 cores"), "{text}");
        assert!(text.ends_with("cores; 3 messages are missing or were not sent"), "{text}");
        let realtime = |record: &mut Record| {
            record.settings.realtime = true;
            record.cost.generator.as_mut().unwrap().cores = 0.8;
        };
        assert!(waited(4.0, 4.5, 1.2, realtime).1.contains("real-time pubmark 0.80 cores"));
        let unknown = |record: &mut Record| (record.cost.generator, record.environment.steal) = (None, None);
        assert!(waited(4.0, 4.5, 2.0, unknown).1.ends_with("users of these processors: unknown"));
    }
}
