//! `--dry-run` of a run: its requirements, and whether this machine meets them.

use std::time::Duration;

use pubmark_engine::calibration::{self, Calibration};
use pubmark_engine::precision::{self, Precision};
use pubmark_model::fault::Occurrence;
use pubmark_model::fleet::Fleet;
use pubmark_model::payload::Body;
use pubmark_model::placement::NodeLabels;
use pubmark_model::plan::{Machine, Plan, PlanOptions, Traffic, Unit, Verdict};
use pubmark_model::transform;
use pubmark_model::workload::Workload;
use pubmark_report::numbers::{bytes, count, three_digits};
use pubmark_report::wrapping::wrap;
use pubmark_runner::progress_text::seconds;
use pubmark_runner::target::CheckedTarget;
use pubmark_runner::{CheckedRun, ClientNeeds, ErrorKind, RunError};
use pubmark_systems::{descriptors, environment};

use super::placement;
use crate::doctor::kernel;

/// Calculates the plan; with `on_machine`, compares it with this machine, which takes two seconds.
pub fn text(run: &CheckedRun, on_machine: bool) -> Result<String, RunError> {
    let (spec, workload, required) = (&run.spec, &run.workload, &run.wanted);
    let options = PlanOptions {
        nodes: spec.node_count(),
        labels: spec.node_labels(),
        warmup: spec.window.warmup,
        duration: spec.window.duration,
        tls: required.is_encrypted(),
        second_connection: run.protocol_pair.second_connection(),
        packet_limit_bytes: required.packet_limit_bytes(),
    };
    let nodes = NodeLabels { nodes: options.nodes, labels: &options.labels };
    Fleet::check_counts_on_nodes(workload, nodes).map_err(|error| RunError::fleet_too_large(&error))?;
    let plan = Plan::new(workload, &options);
    let mut text = String::new();
    let mut field = |name: &str, value: String| text.push_str(&format!("  {name:<10}{value}\n"));
    let variant = if workload.has_readings { format!(", {}", workload.variant.as_str()) } else { String::new() };
    field("workload", format!("{}{variant}, scale {}, seed {}", workload.name, workload.scale, spec.load.seed));
    // The name of an endpoint's system, by which results rank it.
    let name = match required {
        CheckedTarget::External { definition: Some(definition), .. } => {
            format!(", named {} in results", definition.name)
        }
        _ => String::new(),
    };
    field("system", format!("{} over {}{name}", required.shown(), run.protocol_pair.title()));
    let window = &spec.window;
    let times = [window.warmup, window.duration, window.drain].map(seconds);
    field("time", format!("{} warm-up, {} measured, up to {} for late messages", times[0], times[1], times[2]));
    text.push('\n');
    text.push_str(&needs(&plan));
    text.push_str(&placement::text(workload, nodes));
    text.push_str(&transforms(workload));
    text.push_str(&links(workload));
    text.push_str(&faults(workload, &run.faults));
    if !on_machine {
        return Ok(text);
    }
    text.push('\n');
    let machine = this_machine()?;
    let needs = run.needs();
    // Local nodes are processes of this machine.
    let nodes = if needs.are_on_nodes { plan.nodes } else { 1 };
    text.push_str(&judged(&verdicts(plan, &needs, &machine), nodes));
    if nodes == 1 {
        text.push_str(&wrap("  ", 2, &kernel::precise(&precision()?)));
    }
    Ok(text)
}

/// Compares a plan with a machine. Open files and ports are those that the run itself checks. Local nodes share the machine.
pub fn verdicts(mut plan: Plan, needs: &ClientNeeds, machine: &Machine) -> Vec<Verdict> {
    plan.node.descriptors = needs.open_files;
    let shares = plan.nodes > 1 && !needs.are_on_nodes;
    let machine = if shares { share_of(machine, plan.nodes) } else { *machine };
    let mut verdicts = plan.verdicts(&machine);
    if let Some(available) = needs.available_ports {
        let place = if needs.are_on_nodes && plan.nodes > 1 { "on each node" } else { "here" };
        let [needed, available] = [needs.ports, available].map(|ports| ports as f64);
        let ports =
            Verdict::new(format!("local ports {place}"), Unit::Count, needed, available, needs.more_ports.as_str());
        // Behind open files and memory.
        verdicts.insert(verdicts.len().min(2), ports);
    }
    verdicts
}

/// What each of several nodes on a machine has of it. The limit of open files is that of a process, and the loopback interface is the
/// link to the system.
fn share_of(machine: &Machine, nodes: u32) -> Machine {
    Machine {
        memory_bytes: machine.memory_bytes / u64::from(nodes),
        calibrated_bytes_per_s: machine.calibrated_bytes_per_s / f64::from(nodes),
        calibrated_messages_per_s: machine.calibrated_messages_per_s / f64::from(nodes),
        link_bytes_per_s: Some(machine.calibrated_bytes_per_s),
        ..*machine
    }
}

/// The resources of this machine, and the rate that its loopback interface carries, which takes a second to measure.
pub fn this_machine() -> Result<Machine, RunError> {
    machine(calibrate()?)
}

fn precision() -> Result<Precision, RunError> {
    precision::measure().map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to measure how punctual this machine is")
    })
}

fn calibrate() -> Result<Calibration, RunError> {
    calibration::calibrate().map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error)
            .during("failed to measure what the loopback interface carries")
    })
}

fn machine(found: Calibration) -> Result<Machine, RunError> {
    let limit = descriptors::reachable().map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to read the limit of open files")
    })?;
    let here = environment::read();
    Ok(Machine {
        descriptor_limit: limit,
        memory_bytes: environment::usable_memory_bytes().unwrap_or(here.memory_bytes),
        // Part of a core is one for a thread.
        cores: (here.usable_cores().ceil() as u32).max(1),
        calibrated_bytes_per_s: found.bytes_per_s,
        calibrated_messages_per_s: found.messages_per_s,
        link_bytes_per_s: None,
    })
}

fn needs(plan: &Plan) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<22}{value}\n"));
    if plan.nodes > 1 {
        line("nodes", count(plan.nodes.into()));
    }
    line(
        "clients",
        format!(
            "{}: {}",
            [many(plan.devices, "device"), many(plan.subscribers, "subscriber")].join(", "),
            many(plan.connections, "connection")
        ),
    );
    if let Some(requests) = &plan.requests {
        let who = [many(requests.requesters, "requester"), many(requests.responders, "responder")].join(", ");
        line(
            "requests",
            format!(
                "{who}; up to {} wait at once, {} each",
                count(requests.in_flight),
                seconds(Duration::from_secs_f64(requests.longest_timeout_s))
            ),
        );
    }
    line("topics", count(plan.topics));
    line("into the system", flow(plan.incoming.as_ref()));
    line("out of it", flow(plan.outgoing.as_ref()));
    if let Some(requests) = &plan.requests {
        line("replies, both ways", flow(requests.answers.as_ref()));
    }
    if let (Some(due), Some(sent), Some(deliveries)) = (plan.messages_due, plan.messages_sent, plan.deliveries) {
        let whole = |value: f64| count(value.round() as u64);
        line("in the window", format!("{} due, {} sent, {} delivered", whole(due), whole(sent), whole(deliveries)));
    }
    if let Some(availability) = plan.availability.filter(|share| *share < 1.0) {
        line("devices online", format!("{:.1} % of the time", availability * 100.0));
    }
    line("largest payload", bytes(Some(plan.largest_payload_bytes.into())));
    line(
        "streams",
        format!(
            "{}; {} for message accounting, {} in all",
            count(plan.streams),
            bytes(Some(plan.node.book_bytes as f64)),
            bytes(Some(plan.node.generator_bytes as f64))
        ),
    );
    if plan.overlapping_streams > 0 {
        line("overlapping filters", format!("{} streams match more than one filter", count(plan.overlapping_streams)));
    }
    for group in &plan.subscribers_without_devices {
        line("receives nothing", format!("subscriber group `{group}`: no device's topic matches its filters"));
    }
    for (group, devices) in &plan.devices_without_subscribers {
        line("received by nobody", format!("messages of {} of group `{group}`", many(*devices, "device")));
    }
    text
}

fn many(number: u64, word: &str) -> String {
    format!("{} {word}{}", count(number), if number == 1 { "" } else { "s" })
}

fn flow(traffic: Option<&Traffic>) -> String {
    match traffic {
        None => "as much as it takes".to_owned(),
        Some(traffic) => {
            let (messages, rate) = (three_digits(traffic.messages_per_s), bytes(Some(traffic.bytes_per_s)));
            let mean = three_digits(traffic.mean_messages_per_s);
            let peak = three_digits(traffic.peak_messages_per_s);
            let peak = (peak != messages).then(|| format!("{peak} msg/s at peak"));
            let mean = (mean != messages).then(|| format!("{mean} msg/s with churn"));
            let notes: Vec<String> = peak.into_iter().chain(mean).collect();
            let notes = if notes.is_empty() { String::new() } else { format!("   ({})", notes.join(", ")) };
            format!("{messages:>8} msg/s {rate:>10}/s{notes}")
        }
    }
}

/// The table of verdicts, and one line with the conclusion.
fn judged(verdicts: &[Verdict], nodes: u32) -> String {
    let mut text = format!("  {:<40}{:>12}{:>12}{:>10}\n", "needs", "needed", "there is", "margin");
    for verdict in verdicts {
        let mark = if verdict.ok { '✓' } else { '✗' };
        let margin = match verdict.margin {
            margin if margin > WIDE => format!("> {} ×", count(WIDE as u64)),
            margin => format!("{} ×", three_digits(margin)),
        };
        text.push_str(&format!(
            "{mark} {:<40}{:>12}{:>12}{margin:>10}\n",
            verdict.what,
            amount(verdict.unit, verdict.needed),
            amount(verdict.unit, verdict.available),
        ));
    }
    let missing: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.ok).collect();
    text.push('\n');
    let machine = if nodes > 1 { format!("{nodes} nodes like this machine") } else { "this machine".to_owned() };
    if missing.is_empty() {
        text.push_str(&format!("  {machine} can run it, as far as these figures tell\n"));
    } else {
        text.push_str(&format!("  {machine} cannot run it:\n"));
    }
    for verdict in missing {
        let times = three_digits(verdict.needed / verdict.available);
        text.push_str(&format!("    {}: needs {times} times what there is\n", verdict.what));
        if verdict.note.contains('`') {
            text.push_str(&wrap("      ", 6, &verdict.note));
        }
    }
    text.push_str("  the loopback is an upper bound: no broker copies bytes for free\n");
    text
}

/// A larger margin is not printed as a figure.
const WIDE: f64 = 1_000.0;

fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Count => count(value.round() as u64),
        Unit::Bytes => bytes(Some(value)),
        Unit::BytesPerSecond => format!("{}/s", bytes(Some(value))),
        Unit::MessagesPerSecond => format!("{}/s", three_digits(value)),
        Unit::Share => format!("{} s/s", three_digits(value)),
    }
}

/// The transformations of payloads; empty if there are none.
fn transforms(workload: &Workload) -> String {
    let mut text = String::new();
    for group in workload.devices.iter().filter(|group| !group.transform.is_empty()) {
        let mut line = format!("{}: {}", group.name, transform::words(&group.transform));
        let added = transform::added_bytes(&group.transform);
        if added > 0 {
            line.push_str(&format!("; adds {added} B to each body"));
        }
        if transform::compresses(&group.transform) {
            line.push_str(match group.body {
                Body::Random => "; random bytes do not compress: give it a `body`",
                _ => "; the rates above are those before the compression",
            });
        }
        text.push_str(&wrap(&format!("  {:<21} ", "transform"), 24, &line));
    }
    text
}

/// The links of a workload in words; empty if there are none.
pub fn links(workload: &Workload) -> String {
    let mut text = String::new();
    for (link, groups) in workload.links_in_use() {
        text.push_str(&wrap(&format!("  link {:<16} ", link.name), 24, &format!("for {}", groups.join(", "))));
        for line in link.lines() {
            text.push_str(&wrap(&" ".repeat(24), 26, &line));
        }
    }
    text
}

/// The faults of a run in words; empty if there are none.
fn faults(workload: &Workload, occurrences: &[Occurrence]) -> String {
    let mut text = String::new();
    for fault in &workload.faults {
        if let Some(chance) = fault.chance() {
            text.push_str(&wrap(
                &format!("  {:<21} ", "faults"),
                24,
                &format!("{} of {}: {chance}", fault.kind.as_str(), fault.target()),
            ));
        }
    }
    for occurrence in occurrences {
        let fault = &workload.faults[occurrence.fault];
        let words = format!("{} of {}", occurrence.time(), fault.target());
        text.push_str(&wrap(&format!("  fault {:<15} ", occurrence.kind.as_str()), 24, &words));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::fault::{self, choice::FaultChoice};
    use pubmark_model::link::choice::LinkChoice;
    use pubmark_model::load::{self, LoadOptions};
    use pubmark_report::wrapping::COLUMNS;
    use pubmark_runner::{Host, RunSpec, WorkloadSource};

    fn machine() -> Machine {
        Machine {
            descriptor_limit: 20_000,
            memory_bytes: 24 << 30,
            cores: 2,
            calibrated_bytes_per_s: 3e9,
            calibrated_messages_per_s: 3e5,
            link_bytes_per_s: None,
        }
    }

    fn both_parts(workload: &str, nodes: u16) -> String {
        let options = LoadOptions { variant: pubmark_model::workload::Variant::Published, ..LoadOptions::default() };
        let workload = load::load(workload, &options).expect("a built-in workload");
        let plan = Plan::new(&workload, &PlanOptions { nodes, ..PlanOptions::default() });
        needs(&plan) + &judged(&plan.verdicts(&machine()), nodes.into())
    }

    #[test]
    fn a_load_that_is_too_high_is_reported_with_the_excess() {
        let text = both_parts("smart-factory-10x", 5);
        assert!(text.contains("✗ link of the system"), "{text}");
        assert!(text.contains("    link of the system: needs 1.94 times what there is"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }

    #[test]
    fn too_few_ports_and_open_files_are_those_that_a_run_checks() {
        let judge = |change: fn(&mut RunSpec)| {
            let mut spec = RunSpec::new("smart-home");
            spec.load.scale = 2_000;
            change(&mut spec);
            let checked = spec.check(&Host::this()).expect("a run that can be checked");
            let options = PlanOptions { nodes: spec.node_count(), ..PlanOptions::default() };
            let needs = ClientNeeds { available_ports: Some(28_232), ..checked.needs() };
            judged(&verdicts(Plan::new(&checked.workload, &options), &needs, &machine()), options.nodes.into())
        };
        let text = judge(|_| ());
        assert!(text.contains("    local ports here: needs 1.42 times what there is"), "{text}");
        assert!(text.contains("      `--source-addresses` with "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        // Processes of this machine have its ports in common.
        let text = judge(|spec| spec.nodes.local_nodes = Some(4));
        assert!(text.contains("    local ports here: needs 1.42 times what there is"), "{text}");
        assert!(text.contains("✓ descriptors on each node"), "{text}");
        let text = judge(|spec| spec.nodes.nodes = Some(4));
        assert!(text.contains("✓ local ports on each node"), "{text}");
    }

    #[test]
    fn local_nodes_share_the_memory_and_the_rates_of_this_machine() {
        let available = |change: fn(&mut RunSpec), what: &str| {
            let mut spec = RunSpec::new("smart-home");
            change(&mut spec);
            let checked = spec.check(&Host::this()).expect("a run that can be checked");
            let plan =
                Plan::new(&checked.workload, &PlanOptions { nodes: spec.node_count(), ..PlanOptions::default() });
            let found = verdicts(plan, &checked.needs(), &machine());
            found.iter().find(|verdict| verdict.what == what).expect("a verdict on it").available
        };
        let local: fn(&mut RunSpec) = |spec| spec.nodes.local_nodes = Some(4);
        let elsewhere: fn(&mut RunSpec) = |spec| spec.nodes.nodes = Some(4);
        for what in
            ["memory of the generator on each node", "payload bytes through each node", "messages through each node"]
        {
            assert_eq!(available(local, what) * 4.0, available(elsewhere, what), "{what}");
        }
        assert_eq!(available(local, "link of the system"), machine().calibrated_bytes_per_s);
        assert_eq!(available(local, "descriptors on each node"), 20_000.0);
    }

    #[test]
    fn second_connections_are_in_the_plan_and_in_its_comparison_with_a_machine() {
        let text = "name: w\ndevices: [{name: a, count: 60, every: 1s, payload: 30B, topic: 'a/{index}', scales: false, \
                    client: c}]\nsubscribers: [{name: b, count: 60, filters: ['a/#'], client: c}]\n";
        let mut spec = RunSpec::new("w");
        let (file_name, text) = ("w.yaml".to_owned(), text.to_owned());
        spec.workload = WorkloadSource::Inline { file_name, text, passwords_left_out: false };
        spec.protocols.protocol = Some("redis-streams".to_owned());
        spec.target.endpoint = Some("redis://127.0.0.1:6379".to_owned());
        let checked = spec.check(&Host::this()).expect("a run that can be checked");
        let text = super::text(&checked, false).expect("a plan");
        assert!(text.contains("60 devices, 60 subscribers: 120 connections"), "{text}");
        assert_eq!(checked.needs().ports, 120);
    }

    #[test]
    fn the_name_under_which_an_endpoint_is_ranked_is_shown() {
        let shown = |system: Option<&str>| {
            let mut spec = RunSpec::new("smart-home");
            spec.target.endpoint = Some("mqtt://127.0.0.1:1883".to_owned());
            spec.target.system = system.map(str::to_owned);
            let checked = spec.check(&Host::this()).expect("a run that can be checked");
            let text = text(&checked, false).expect("a plan");
            text.lines().find(|line| line.starts_with("  system")).unwrap_or_default().to_owned()
        };
        let named = shown(Some("mosquitto"));
        assert!(named.contains("127.0.0.1:1883 over ") && named.ends_with(", named mosquitto in results"), "{named}");
        assert!(!shown(None).contains("named"), "{}", shown(None));
    }

    #[test]
    fn a_load_that_fits_is_reported() {
        let text = both_parts("smart-home", 1);
        assert!(!text.contains('✗') && text.contains("this machine can run it"), "{text}");
        assert!(text.contains("20 devices, 1 subscriber: 21 connections"), "{text}");
    }

    fn smart_home(links: &[&str], faults: &[&str]) -> Workload {
        let links = links.iter().map(|text| LinkChoice::parse(text).expect("a choice")).collect();
        let faults = faults.iter().map(|text| FaultChoice::parse(text).expect("a choice")).collect();
        load::load("smart-home", &LoadOptions { links, faults, ..LoadOptions::default() }).expect("a built-in workload")
    }

    #[test]
    fn links_are_listed_with_their_groups() {
        let text = links(&smart_home(&["gprs"], &[]));
        assert!(
            text.contains("link gprs") && text.contains("up: 500 ms ± 100 ms (normal), 20 kbit/s (2.5 kB/s)"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert_eq!(links(&smart_home(&[], &[])), "");
    }

    #[test]
    fn faults_are_listed_with_their_times() {
        let workload = smart_home(&[], &["kill:at=30s,for=5s", "reset:at=45s,share=20%"]);
        let found = fault::occurrences(&workload.faults, 1, Duration::from_secs(60)).expect("they fit");
        let expected = "  fault kill            at 30 s for 5 s of the system\n  \
                        fault reset           at 45 s of 20 % of the connections\n";
        assert_eq!(super::faults(&workload, &found), expected);
        assert_eq!(super::faults(&smart_home(&[], &[]), &[]), "");
    }
}
