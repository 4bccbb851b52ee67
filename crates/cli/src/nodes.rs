//! Nodes of a run, as its record names them.

use pubmark_engine::outcome::Outcome;
use pubmark_engine::plan::RunPlan;
use pubmark_engine::sections;
use pubmark_record::nodes::NodeRow;

/// Name of a worker process that stands for a node, by its number.
pub fn local_name(node: u16) -> String {
    format!("local {}", node + 1)
}

/// The nodes of a run; none if it had but one.
pub fn rows(plan: &RunPlan, outcome: &Outcome) -> Vec<NodeRow> {
    if plan.nodes < 2 {
        return vec![];
    }
    let row = |(node, (devices, subscribers)): (u16, (u64, u64))| NodeRow {
        name: local_name(node),
        devices,
        subscribers,
        lost: outcome.lost.iter().find(|lost| lost.node == node).map(|lost| lost.why.clone()),
        ..NodeRow::default()
    };
    (0u16..).zip(sections::on_nodes(plan)).map(row).collect()
}
