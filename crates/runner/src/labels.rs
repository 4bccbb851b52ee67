//! Labels of nodes: checks that nodes have the labels that the placement of groups requires.

use std::collections::{BTreeMap, BTreeSet};

use pubmark_model::placement::{self, Labels, LabelsInTurn, NodeLabels, Placement};
use pubmark_model::workload::Workload;

use crate::error::RunError;
use crate::spec::{RunSpec, local_name};

/// Refuses a placement that cannot work, before any node has joined.
///
/// # Errors
/// Labels for worker processes that the run does not have; a placement by labels in a run without nodes, or with too few of them; worker
/// processes without the labels that the placement requires.
pub fn check(spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    check_given(spec)?;
    let wanted = placement::by_labels(workload);
    let Some((first, groups)) = wanted.first_key_value() else { return Ok(()) };
    let nodes = &spec.nodes;
    if nodes.nodes.is_none() && nodes.local_nodes.is_none() {
        return Err(RunError::input(format!("{}, and the run has no nodes", where_to(first, groups))).hint(format!(
            "`pubmark run … --local-nodes {} {}` for processes of this machine, or `pubmark run … --nodes N` for machines with `pubmark node --label {}`; `pubmark run … --placement none` does without",
            fewest(&wanted).0.max(2),
            node_labels(&wanted),
            example(first)
        )));
    }
    let (fewest, key) = fewest(&wanted);
    if usize::from(spec.node_count()) < fewest {
        let option = if nodes.nodes.is_some() { "--nodes" } else { "--local-nodes" };
        return Err(RunError::input(format!(
            "groups are to run on nodes with {fewest} values of `{key}`, of which a node has one, and the run has {}",
            nodes_in_words(spec.node_count())
        ))
        .hint(format!("`{option} {fewest}`, or more")));
    }
    if nodes.nodes.is_some() {
        return Ok(());
    }
    let names = (0..spec.node_count()).map(local_name);
    check_nodes(workload, &names.zip(spec.node_labels()).collect::<Vec<_>>())
}

/// Whether the number of sites with copies of groups is known before nodes join.
pub fn sites_are_known(spec: &RunSpec, workload: &Workload) -> bool {
    let is_at_each = |placement: &&Placement| matches!(placement, Placement::Each(_));
    spec.nodes.nodes.is_none() || !placement::by_labels(workload).keys().any(is_at_each)
}

/// Refuses labels that no worker process would get.
fn check_given(spec: &RunSpec) -> Result<(), RunError> {
    match (spec.nodes.node_labels.first(), spec.nodes.local_nodes) {
        (None, _) => Ok(()),
        (Some(_), Some(local_nodes)) => check_dealt(&spec.nodes.node_labels, local_nodes, "--local-nodes"),
        (Some(first), None) => {
            let why = "`--node-label` is for the worker processes of `--local-nodes`, and the run has none";
            Err(RunError::input(why).hint(format!(
                "`--local-nodes {} --node-label {first}`; on a machine that joins `pubmark node --label {}={}`",
                first.values.len().max(2),
                first.key,
                first.values[0]
            )))
        }
    }
}

/// Refuses more values than N nodes can have; the message names the option that sets their number.
fn check_dealt(given: &[LabelsInTurn], nodes: u16, option: &str) -> Result<(), RunError> {
    let keys: BTreeSet<&str> = given.iter().map(|labels| labels.key.as_str()).collect();
    if keys.len() < given.len() || given.len() > placement::MOST_LABELS {
        return Err(RunError::input(format!(
            "`--node-label` is given {} times with {}: once for each key, of which there are at most {}",
            given.len(),
            if keys.len() == 1 { "1 key".to_owned() } else { format!("{} keys", keys.len()) },
            placement::MOST_LABELS
        ))
        .hint("all values of a key together: `--node-label site=edge-1,edge-2`"));
    }
    match given.iter().find(|labels| labels.values.len() > usize::from(nodes)) {
        Some(labels) => Err(RunError::input(format!(
            "`--node-label {labels}` has {} values, and the run has {}",
            labels.values.len(),
            nodes_in_words(nodes)
        ))
        .hint(format!("`{option} {}`, or fewer values", labels.values.len()))),
        None => Ok(()),
    }
}

/// Labels of N nodes that another program starts, assigned in turn from `--node-label`.
///
/// # Errors
/// There are more values than nodes, or fewer labels than the placement requires.
pub fn labels_in_turn(given: &[LabelsInTurn], workload: &Workload, nodes: u16) -> Result<Vec<Labels>, RunError> {
    check_dealt(given, nodes, "--nodes")?;
    let labels = |number: u16| given.iter().map(|labels| labels.of(number.into())).collect();
    let named: Vec<(String, Labels)> =
        (0..nodes).map(|number| (format!("node {}", number + 1), labels(number))).collect();
    check_nodes(workload, &named)?;
    Ok(named.into_iter().map(|(_, labels)| labels).collect())
}

/// Refuses a placement for which no node has the label. `nodes` has names and labels, in the order of the nodes' numbers.
///
/// # Errors
/// The missing label, the groups that need it, and the labels that nodes have.
pub fn check_nodes(workload: &Workload, nodes: &[(String, Labels)]) -> Result<(), RunError> {
    let labels: Vec<Labels> = nodes.iter().map(|(_, labels)| labels.clone()).collect();
    let known = NodeLabels { nodes: nodes.len() as u16, labels: &labels };
    let Some((placement, groups)) = placement::missing(workload, known) else { return Ok(()) };
    let mut there: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, labels) in nodes {
        for (key, value) in labels {
            there.entry(format!("{key}={value}")).or_default().push(name);
        }
    }
    let list = there.iter().take(SHOWN).map(|(label, names)| match &names[..] {
        [name] => format!("`{label}` ({name})"),
        [name, ..] => format!("`{label}` ({name} and {} more)", names.len() - 1),
        [] => format!("`{label}`"),
    });
    let list = list.collect::<Vec<_>>().join(", ");
    let there = match there.len() {
        0 => "no node has a label".to_owned(),
        count if count > SHOWN => format!("there are {list} and {} more", count - SHOWN),
        _ => format!("there are {list}"),
    };
    Err(RunError::input(format!("{}, and none has it: {there}", where_to(placement, &groups))).hint(format!(
        "`pubmark node --label {}` on a machine that joins; in `pubmark run`, `--node-label` with `--local-nodes`, or `--placement {}=…`, which places it elsewhere",
        example(placement),
        groups.first().unwrap_or(&placement::DEFAULT)
    )))
}

/// Most labels that a message lists.
const SHOWN: usize = 12;
/// Most groups that it lists.
const GROUPS: usize = 4;

/// `cameras` must run on nodes with `site=edge-1`.
fn where_to(placement: &Placement, groups: &[&str]) -> String {
    let names = groups.iter().take(GROUPS).map(|group| format!("`{group}`")).collect::<Vec<_>>().join(", ");
    let more = if groups.len() > GROUPS { format!(" and {} more", groups.len() - GROUPS) } else { String::new() };
    let is = if groups.len() == 1 { "is" } else { "are" };
    match placement {
        Placement::Each(key) => format!("{names}{more} {is} to run once for each value of the label `{key}`"),
        other => format!("{names}{more} {is} to run on nodes with the label `{other}`"),
    }
}

/// An example of a label that matches a placement.
fn example(placement: &Placement) -> String {
    match placement {
        Placement::Each(key) => format!("{key}=NAME"),
        other => other.to_string(),
    }
}

/// Least number of nodes that placements need, as a node has one value of a key, and the key that needs them.
fn fewest<'a>(wanted: &BTreeMap<&'a Placement, Vec<&str>>) -> (usize, &'a str) {
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    for placement in wanted.keys() {
        if let Some(key) = placement.key() {
            *values.entry(key).or_default() += usize::from(matches!(placement, Placement::On(_)));
        }
    }
    values.into_iter().map(|(key, values)| (values.max(1), key)).max_by_key(|(values, _)| *values).unwrap_or((1, ""))
}

/// The options that assign the required labels to worker processes.
fn node_labels(wanted: &BTreeMap<&Placement, Vec<&str>>) -> String {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for placement in wanted.keys() {
        match placement {
            Placement::On(label) => values.entry(&label.key).or_default().push(&label.value),
            Placement::Each(key) => {
                values.entry(key).or_default();
            }
            Placement::Split | Placement::Replicate => {}
        }
    }
    let option = |(key, values): (&str, Vec<&str>)| {
        let values = if values.is_empty() { "a,b".to_owned() } else { values.join(",") };
        format!("--node-label {key}={values}")
    };
    values.into_iter().map(option).collect::<Vec<_>>().join(" ")
}

fn nodes_in_words(count: u16) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::placement::PlacementChoice;

    use super::*;

    const TEXT: &str = "name: w
devices:
  - {name: cameras, every: 1s, payload: 30B}
  - {name: meters, every: 1s, payload: 30B}
subscribers:
  - {name: dashboards, filters: ['#']}
";

    /// The error for a placement with this many nodes (processes) that have these labels.
    fn said(placement: &[&str], local_nodes: Option<u16>, labels: &[&str]) -> String {
        let mut spec = RunSpec::new("w");
        spec.workload = crate::WorkloadSource::Inline {
            file_name: "w.yaml".to_owned(),
            text: TEXT.to_owned(),
            passwords_left_out: false,
        };
        spec.nodes.local_nodes = local_nodes;
        spec.nodes.placement = placement.iter().map(|text| PlacementChoice::parse(text).unwrap()).collect();
        spec.nodes.node_labels = labels.iter().map(|text| LabelsInTurn::parse(text).unwrap()).collect();
        match spec.load().and_then(|workload| check(&spec, &workload)) {
            Ok(()) => String::new(),
            Err(error) => format!("{error} / {}", error.hint.as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn what_nodes_cannot_have_is_refused_with_what_to_type() {
        let sites = ["cameras=site=edge-1", "meters=site=edge-2", "dashboards=each site"];
        assert_eq!(said(&sites, Some(3), &["site=edge-1,edge-2,cloud"]), "");
        assert_eq!(said(&["none"], None, &[]), "");
        for (placement, local_nodes, labels, words) in [
            (
                &sites[..1],
                None,
                &[][..],
                "`cameras` is to run on nodes with the label `site=edge-1`, and the run has no nodes / `pubmark run … --local-nodes 2 --node-label site=edge-1`",
            ),
            (&sites, None, &[], "--node-label site=edge-1,edge-2`"),
            (
                &sites,
                Some(1),
                &["site=edge-1"],
                "with 2 values of `site`, of which a node has one, and the run has 1 node / `--local-nodes 2`",
            ),
            (
                &sites,
                Some(2),
                &["site=edge-1,cloud"],
                "`meters` is to run on nodes with the label `site=edge-2`, and none has it: there are `site=cloud` (local 2), `site=edge-1` (local 1)",
            ),
            (
                &sites[2..],
                Some(2),
                &["zone=a"],
                "`dashboards` is to run once for each value of the label `site`, and none has it: there are `zone=a` (local 1 and 1 more)",
            ),
            (&sites[..1], Some(2), &[], "and none has it: no node has a label / `pubmark node --label site=edge-1`"),
            (&["default=site=x"], Some(2), &[], "`cameras`, `meters`, `dashboards` are to run on nodes"),
            (
                &["none"],
                None,
                &["site=a,b"],
                "`--node-label` is for the worker processes of `--local-nodes`, and the run has none / `--local-nodes 2 --node-label site=a,b`",
            ),
            (
                &["none"],
                Some(2),
                &["site=a,b,c"],
                "`--node-label site=a,b,c` has 3 values, and the run has 2 nodes / `--local-nodes 3`",
            ),
            (&["none"], Some(2), &["site=a", "site=b"], "given 2 times with 1 key:"),
            (&["camera=split"], Some(2), &[], "there is no group `camera` to place / did you mean `cameras`?"),
        ] {
            let said = said(placement, local_nodes, labels);
            assert!(said.contains(words), "{placement:?} {local_nodes:?} {labels:?}: {said}");
        }
    }
}
