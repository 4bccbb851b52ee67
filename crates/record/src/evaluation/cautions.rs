//! Cautions: what a reader of an experiment should know before quoting from it.

use std::collections::{BTreeMap, BTreeSet};

use super::contests::are_apart_in_time;
use super::{CellInput, RunInput, may_be_higher, usable_runs, why_left_out};
use crate::by_reason::{by_reason, named};
use crate::experiment::{Contest, Duel, FailureKind};
use crate::figures::{self, FIGURES};
use crate::nodes::NodeRow;
use crate::objectives::ObjectiveOutcome;
use crate::quantity;
use crate::record::{Environment, Record, VerdictStatus};
use crate::statistics::FEWEST_REPETITIONS;
use crate::steadiness::unsteady;
use crate::threshold::shares_apart;

/// Beginning of the caution that the runs are of several machines.
pub const MACHINE_CHANGED: &str = "the machine changed between runs";
/// Beginning of the caution that the nodes of the runs were on several sets of machines.
pub const NODES_CHANGED: &str = "the machines of the nodes changed between runs";

/// All cautions, the most serious first.
pub(super) fn all(cells: &[CellInput], contests: &[Contest]) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(left_out(cells));
    found.extend(other_pubmark(cells));
    found.extend(other_machine(cells));
    found.extend(other_nodes(cells));
    found.extend(few_repetitions(cells));
    found.extend(lost_to_the_generator(cells));
    found.extend(survivors_of_starvation(cells));
    found.extend(without_times(cells));
    found.extend(suspect_runs(cells));
    found.extend(missed_limits(cells));
    found.extend(not_steady(cells));
    found.extend(busy_machine(cells));
    found.extend(not_interleaved(cells, contests));
    found.extend(fewer_messages(cells, contests));
    found.extend(limited_rates(cells, contests));
    found.extend(without_lower_bound(cells, contests));
    found.extend(not_measured(cells, contests));
    found.extend(cells.iter().filter_map(other_version));
    found.extend(other_version_of_cells(cells));
    found.extend(cells.iter().filter_map(without_histogram));
    found
}

/// Cells that are left out of contests, one sentence per reason.
fn left_out(cells: &[CellInput]) -> impl Iterator<Item = String> {
    let cells = cells.iter().filter_map(|cell| Some((cell.label.as_str(), why_left_out(cell)?)));
    by_reason(cells).into_iter().map(|(why, labels)| {
        let take = if labels.len() == 1 { "takes" } else { "take" };
        format!("{} {take} no part in the ranking: {why}", named(&labels))
    })
}

fn few_repetitions(cells: &[CellInput]) -> Option<String> {
    let few: Vec<&str> = cells
        .iter()
        .filter(|cell| !cell.runs.is_empty() && with_times(cell) < FEWEST_REPETITIONS)
        .map(|cell| cell.label.as_str())
        .collect();
    if few.is_empty() {
        return None;
    }
    let with_figures = cells.iter().filter(|cell| !cell.runs.is_empty()).count();
    let who = if few.len() == with_figures { "every cell".to_owned() } else { named(&few) };
    Some(format!(
        "fewer than {FEWEST_REPETITIONS} repetitions in {who}: no interval, and no winner is named against it"
    ))
}

/// Number of runs of a cell whose latencies may be used.
fn with_times(cell: &CellInput) -> usize {
    cell.runs.iter().filter(|run| run.has_times()).count()
}

/// Runs that are usable except for their times.
fn without_times(cells: &[CellInput]) -> Option<String> {
    let late: Vec<_> = cells.iter().flat_map(|cell| &cell.runs).filter(|run| !run.has_times()).collect();
    let reasons = late.iter().flat_map(|run| &run.record.verdict.reasons);
    let invalid = reasons.filter(|reason| reason.status == VerdictStatus::Invalid);
    let codes = invalid.map(|reason| reason.code.as_str()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    (!late.is_empty()).then(|| {
        let runs = counted(late.len(), "run", "runs");
        format!("the times of {runs} are shown and not judged, as the verdict says ({})", codes.join(", "))
    })
}

/// Limits of the runs that were missed, and those whose figure was not measured.
fn missed_limits(cells: &[CellInput]) -> Option<String> {
    let objectives = || cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| &run.record.objectives);
    let with_outcome = |outcome: ObjectiveOutcome| {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for objective in objectives().filter(|objective| objective.outcome == outcome) {
            *found.entry(&objective.limit).or_default() += 1;
        }
        let parts = found.iter().map(|(limit, runs)| {
            let all = objectives().filter(|objective| objective.limit == *limit).count();
            format!("{limit} in {runs} of {}", counted(all, "run", "runs"))
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| format!("{}: {}", outcome.word(), parts.join(", ")))
    };
    let groups = [ObjectiveOutcome::Missed, ObjectiveOutcome::NotMeasured].into_iter().filter_map(with_outcome);
    let groups: Vec<String> = groups.collect();
    (!groups.is_empty()).then(|| format!("limits of the runs were {} (`pubmark check` has more)", groups.join("; ")))
}

/// `1 run`, `2 runs`.
fn counted(count: usize, one: &str, many: &str) -> String {
    quantity::counted(count as u64, one, many)
}

fn lost_to_the_generator(cells: &[CellInput]) -> Option<String> {
    let is_ours =
        |kind| matches!(kind, FailureKind::GeneratorLimited | FailureKind::Invalid | FailureKind::Interrupted);
    let count = cells.iter().flat_map(|cell| &cell.failures).filter(|failure| is_ours(failure.kind)).count();
    (count > 0).then(|| {
        format!(
            "{} left out as invalid: what is shown is of those that could be measured",
            counted(count, "repetition is", "repetitions are")
        )
    })
}

/// Cells in which runs without enough CPU for the system count if no message is missing, and are left out if one is.
fn survivors_of_starvation(cells: &[CellInput]) -> Option<String> {
    let is_starved = |run: &RunInput| run.record.verdict.reasons.iter().any(|reason| reason.code == "V28");
    let has_both = |cell: &&CellInput| {
        cell.failures.iter().any(|failure| failure.text.starts_with("V28: ")) && cell.runs.iter().any(is_starved)
    };
    let labels: Vec<&str> = cells.iter().filter(has_both).map(|cell| cell.label.as_str()).collect();
    (!labels.is_empty()).then(|| {
        format!(
            "runs in which the system lacked CPU (V28) count if no message is missing, and are left out if one is: those that the \
             system survived represent the others, so what is shown may be better than what happened, in {}",
            named(&labels)
        )
    })
}

fn suspect_runs(cells: &[CellInput]) -> Option<String> {
    // Invalid runs are excluded: their times must not be used, and they have a caution of their own.
    let runs = cells.iter().flat_map(|cell| &cell.runs).filter(|run| run.run.verdict != VerdictStatus::Invalid);
    let (mut all, mut suspect, mut codes) = (0, 0, BTreeSet::new());
    for run in runs {
        all += 1;
        if run.run.verdict == VerdictStatus::Suspect {
            suspect += 1;
            codes.extend(run.record.verdict.reasons.iter().map(|reason| reason.code.as_str()));
        }
    }
    let codes = codes.into_iter().collect::<Vec<_>>().join(", ");
    (suspect > 0)
        .then(|| format!("{suspect} of {} suspect, counted all the same: {codes}", counted(all, "run", "runs")))
}

/// Cells whose latency was not steady during the window.
fn not_steady(cells: &[CellInput]) -> Option<String> {
    let unsteady = |cell: &&CellInput| cell.runs.iter().any(|run| unsteady(&run.record).is_some());
    let labels: Vec<&str> = cells.iter().filter(unsteady).map(|cell| cell.label.as_str()).collect();
    (!labels.is_empty()).then(|| {
        format!(
            "latency was not steady in runs of {}: not warm yet, or behind when the window ended (W18 of each run says which)",
            named(&labels)
        )
    })
}

fn busy_machine(cells: &[CellInput]) -> Option<String> {
    let busy = cells.iter().flat_map(|cell| &cell.runs).filter(|run| run.run.busy).count();
    (busy > 0).then(|| format!("{} on a machine that had not become quiet", counted(busy, "run began", "runs began")))
}

/// Cells that were run before others with which they are compared, one sentence for each of the others.
fn not_interleaved(cells: &[CellInput], contests: &[Contest]) -> Vec<String> {
    let starts =
        |cell: &CellInput| -> Vec<String> { cell.runs.iter().map(|run| run.record.run.started_at.clone()).collect() };
    let is_compared = |one: &CellInput, other: &CellInput| {
        let are_its = |duel: &Duel| [&duel.better, &duel.worse] == [&one.id, &other.id];
        contests.iter().flat_map(|contest| &contest.duels).any(are_its)
    };
    let before = |later: &CellInput| {
        let late = starts(later);
        let is_before = |one: &&CellInput| {
            let early = starts(one);
            let is_apart = are_apart_in_time(&early, &late) && early.iter().min() < late.iter().min();
            is_apart && (is_compared(one, later) || is_compared(later, one))
        };
        cells.iter().filter(is_before).map(|one| one.label.as_str()).collect::<Vec<&str>>()
    };
    let pairs = cells.iter().map(|later| (later, before(later))).filter(|(_, before)| !before.is_empty());
    let sentence = |(later, before): (&CellInput, Vec<&str>)| {
        format!(
            "{} ran before {}: their runs were not interleaved; a change of the machine may explain the difference, so it is \
             called likely at most; run the experiment again in a new folder",
            named(&before),
            later.label
        )
    };
    pairs.map(sentence).collect()
}

fn label<'a>(cells: &'a [CellInput], id: &str) -> &'a str {
    cells.iter().find(|cell| cell.id == id).map_or("", |cell| cell.label.as_str())
}

/// Cells with lower latencies that lost more messages than another, one sentence for each pair, with the figures.
fn fewer_messages(cells: &[CellInput], contests: &[Contest]) -> Vec<String> {
    let mut found = Vec::new();
    for contest in contests {
        for duel in &contest.duels {
            let Some([better, worse]) = duel.survivors.map(shares_apart) else { continue };
            let sentence = format!(
                "the lower latencies of {} are those of fewer messages, {better} delivered and {worse} of {}: the lost ones may be \
                 those that would have been late, so there is no winner by",
                label(cells, &duel.better),
                label(cells, &duel.worse)
            );
            found.push((contest.figure.as_str(), sentence));
        }
    }
    by_reason(found).into_iter().map(|(sentence, figures)| format!("{sentence} {}", figures.join(", "))).collect()
}

/// Cells whose rate or share delivered in a flood looks lower than that of the best one, and may be pubmark's limit or the machine's: one
/// sentence for each.
fn limited_rates(cells: &[CellInput], contests: &[Contest]) -> Vec<String> {
    let is_limited = |contest: &Contest, duel: &Duel| {
        let nothing = if duel.is_ratio { 1.0 } else { 0.0 };
        // What is within the noise anyway needs no further reason.
        let is_apart = duel.interval.is_some_and(|(low, high)| low > nothing || high < nothing);
        let worse = cells.iter().find(|cell| cell.id == duel.worse);
        is_apart
            && figures::figure(&contest.figure).zip(worse).is_some_and(|(figure, worse)| may_be_higher(figure, worse))
    };
    let duels = contests.iter().flat_map(|contest| contest.duels.iter().map(move |duel| (contest, duel)));
    let limited = duels.filter(|(contest, duel)| is_limited(contest, duel));
    let sentence = |(contest, duel): (&Contest, &Duel)| {
        let worse = label(cells, &duel.worse);
        let figure = if contest.figure == "delivered" { "share delivered" } else { contest.figure.as_str() };
        format!(
            "the {figure} of {worse} may be higher than what was measured: pubmark or the machine may have been its limit (the verdicts \
             of its runs say which), so {} does not win against it",
            label(cells, &duel.better)
        )
    };
    limited.map(sentence).collect()
}

/// Cells whose whole latency may be pubmark's delay, as with a client library that does not tell when it received a message.
fn without_lower_bound(cells: &[CellInput], contests: &[Contest]) -> Option<String> {
    let p99 = figures::figure("latency p99")?;
    let is_compared = |cell: &CellInput| {
        let of_latency = contests.iter().filter(|contest| contest.figure == p99.name);
        of_latency.flat_map(|contest| &contest.ranking).any(|id| *id == cell.id)
    };
    let is_open = |cell: &CellInput| {
        let bounds: Vec<_> = usable_runs(p99, cell).filter_map(|run| p99.bounds(&run.record)).collect();
        !bounds.is_empty() && bounds.iter().all(|[lower, upper]| *lower <= 0.0 && *upper > 0.0)
    };
    let open: Vec<&str> =
        cells.iter().filter(|cell| is_compared(cell) && is_open(cell)).map(|cell| cell.label.as_str()).collect();
    (!open.is_empty()).then(|| {
        format!(
            "the whole latency p99 of {} may be pubmark's delay or that of its client library: its lower bound is 0, so nothing is \
             proven to be faster by it",
            named(&open)
        )
    })
}

/// Cells that are missing from contests in which they could have taken part.
fn not_measured(cells: &[CellInput], contests: &[Contest]) -> Vec<String> {
    let mut found = Vec::new();
    for figure in &FIGURES {
        let is_held = contests.iter().any(|contest| contest.figure == figure.name);
        let takes_part = |cell: &&CellInput| {
            let is_judged = cell.runs.iter().all(|run| figure.judged.applies(run.record.settings.flood));
            why_left_out(cell).is_none() && is_judged
        };
        let lacking =
            |cell: &CellInput| usable_runs(figure, cell).filter(|run| figure.value(&run.record).is_none()).count();
        let missing: Vec<&str> = cells
            .iter()
            .filter(|cell| why_left_out(cell).is_none() && is_held)
            .filter(|cell| cell.runs.iter().all(|run| figure.value(&run.record).is_none()))
            .map(|cell| cell.label.as_str())
            .collect();
        if !missing.is_empty() {
            let who = unranked(&missing);
            found.push(format!("{} was not measured of {}: {who} not ranked by it", figure.name, missing.join(", ")));
        }
        let partly = cells.iter().filter(takes_part).filter_map(|cell| {
            let (lacking, all) = (lacking(cell), usable_runs(figure, cell).count());
            (0 < lacking && lacking < all).then(|| {
                let runs = format!("{lacking} of {} of {}", counted(all, "run", "runs"), cell.label);
                (runs, cell.label.as_str())
            })
        });
        let (runs, labels): (Vec<String>, Vec<&str>) = partly.unzip();
        if !runs.is_empty() && !contests.is_empty() {
            let who = unranked(&labels);
            found.push(format!("{} is missing in {}: {who} not ranked by it", figure.name, runs.join(", ")));
        }
    }
    found
}

/// Subject and verb of a sentence about cells that it has named before.
fn unranked(labels: &[&str]) -> String {
    match labels {
        [only] => format!("{only} is"),
        _ => "they are".to_owned(),
    }
}

fn other_version(cell: &CellInput) -> Option<String> {
    let versions: BTreeSet<&str> = cell.runs.iter().filter_map(|run| run.record.system.version.as_deref()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    (versions.len() > 1).then(|| format!("{} changed its version between runs: {}", cell.label, versions.join(", ")))
}

/// Systems of which some cells were run with another version than others, for instance because they were added later.
fn other_version_of_cells(cells: &[CellInput]) -> Vec<String> {
    let mut by_system: BTreeMap<[Option<&str>; 3], BTreeSet<&str>> = BTreeMap::new();
    // Cells with several versions are named on their own.
    for cell in cells.iter().filter(|cell| other_version(cell).is_none()) {
        // The version of a system without a broker is that of its client library.
        let system = ["system", "client", "protocol"].map(|axis| cell.settings.get(axis).map(String::as_str));
        let versions = cell.runs.iter().filter_map(|run| run.record.system.version.as_deref());
        by_system.entry(system).or_default().extend(versions);
    }
    let several = by_system.into_iter().filter(|(_, versions)| versions.len() > 1);
    several
        .map(|([system, ..], versions)| {
            let versions: Vec<&str> = versions.into_iter().collect();
            format!(
                "{} has another version in some cells than in others: {}",
                system.unwrap_or("the system"),
                versions.join(", ")
            )
        })
        .collect()
}

/// Versions of pubmark that executed the runs, if there are several.
fn other_pubmark(cells: &[CellInput]) -> Option<String> {
    let versions = in_order(cells, |record| record.run.pubmark_version.clone());
    (versions.len() > 1).then(|| format!("pubmark changed its version between runs: {}", versions.join(", ")))
}

/// Machines on which the runs were executed, if there are several. A change of the kernel or of the memory counts as another machine;
/// the memory is named where nothing else tells them apart.
fn other_machine(cells: &[CellInput]) -> Option<String> {
    let mut machines: Vec<&Environment> = Vec::new();
    for machine in runs_in_order(cells).into_iter().map(|run| &run.record.environment) {
        if !machines.iter().any(|known| known.is_same_machine(machine)) {
            machines.push(machine);
        }
    }
    let words: BTreeSet<String> = machines.iter().map(|machine| machine.machine()).collect();
    let named = machines.iter().map(|machine| match words.len() == machines.len() {
        true => machine.machine(),
        false => format!("{}, {} B of memory", machine.machine(), quantity::count(machine.memory_bytes)),
    });
    let named: Vec<String> = named.collect();
    (named.len() > 1).then(|| format!("{MACHINE_CHANGED}: {}", named.join("; ")))
}

/// Machines that were nodes of some runs and not of others with as many nodes: a resumed experiment got other ones, or a lost node was
/// replaced. Cells may differ in their number of nodes. Machines of one kind are the same whatever their host names, which are new in
/// each run of containers.
fn other_nodes(cells: &[CellInput]) -> Option<String> {
    let mut by_count: BTreeMap<usize, Vec<NumberedMachines>> = BTreeMap::new();
    for run in cells.iter().flat_map(|cell| &cell.runs) {
        let nodes = &run.record.tables.nodes;
        by_count.entry(nodes.len()).or_default().push(numbered(nodes));
    }
    let mut changed: BTreeSet<String> = BTreeSet::new();
    for runs in by_count.values() {
        let is_in_all = |machine: &(String, usize)| runs.iter().all(|run| run.contains_key(machine));
        let of_some = runs.iter().flatten().filter(|(machine, _)| !is_in_all(machine));
        changed.extend(of_some.map(|((kind, _), host)| format!("{host} ({kind})")));
    }
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    (!changed.is_empty()).then(|| format!("{NODES_CHANGED}: only some had {}", named(&changed)))
}

/// Host names of the machines of nodes, by kind and number within the kind.
type NumberedMachines<'a> = BTreeMap<(String, usize), &'a str>;

fn numbered(nodes: &[NodeRow]) -> NumberedMachines<'_> {
    let machines = nodes.iter().filter_map(|node| node.machine.as_ref());
    let machines: BTreeSet<(String, &str)> = machines.map(|it| (it.in_words(), it.host.as_str())).collect();
    let mut numbered = BTreeMap::new();
    let mut latest = None;
    let mut number = 0;
    for (kind, host) in machines {
        number = if latest.as_ref() == Some(&kind) { number + 1 } else { 0 };
        numbered.insert((kind.clone(), number), host);
        latest = Some(kind);
    }
    numbered
}

/// All runs in order of execution.
fn runs_in_order(cells: &[CellInput]) -> Vec<&RunInput> {
    let mut runs: Vec<&RunInput> = cells.iter().flat_map(|cell| &cell.runs).collect();
    runs.sort_by_key(|run| run.run.order);
    runs
}

/// Values of all runs without repetitions, in order of execution.
fn in_order(cells: &[CellInput], of: fn(&Record) -> String) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in runs_in_order(cells).into_iter().map(|run| of(&run.record)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn without_histogram(cell: &CellInput) -> Option<String> {
    let missing = cell.runs.iter().filter(|run| run.record.latency.total.is_some() && run.latency.is_none()).count();
    (missing > 0).then(|| {
        let runs = counted(missing, "run has", "runs have");
        format!("{}: {runs} no latency histogram, so none is shown over all runs", cell.label)
    })
}
