//! Built-in definitions, the state of this machine, and the nodes of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use pubmark_model::link::presets;
use pubmark_model::{experiment, listing};
use pubmark_preflight::doctor::{self, Finding};
use pubmark_protocols::PROTOCOLS;
use pubmark_runner::stream::StreamEvent;
use pubmark_systems::{Definition, install};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lookup;
use crate::library::list;
use crate::problem::Problem;
use crate::routes::query::Query;
use crate::shared::Shared;
use crate::store::State as RunState;

/// A system that can be started.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SystemRow {
    /// Name in a submission.
    name: String,
    /// Name as its makers write it.
    title: String,
    /// Description of the system.
    description: String,
    /// Protocols that it supports.
    protocols: Vec<String>,
    /// Configurations that it has.
    profiles: Vec<String>,
    /// Version on this machine; `null` if its program is not installed, or if it runs in a container.
    installed: Option<String>,
    /// Whether this server may start it. `--allow systems` allows those that are not part of pubmark.
    allowed: bool,
}

/// Lists the systems.
pub async fn systems(State(shared): State<Arc<Shared>>) -> Result<Json<Vec<SystemRow>>, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let all = Definition::embedded().map_err(|error| Problem::internal(&error))?;
        Ok(Json(all.into_iter().map(|system| row(&used, system)).collect()))
    })
    .await
}

fn row(shared: &Shared, system: Definition) -> SystemRow {
    let found = system.back_ends.process.as_ref().and_then(|_| install::found(&system));
    let installed = found.map(|found| found.version.unwrap_or_else(|| "version unknown".to_owned()));
    SystemRow {
        allowed: shared.allow.names("smart-home", Some(&system.name), None).is_ok(),
        installed,
        protocols: system.protocols.keys().cloned().collect(),
        profiles: system.profiles.keys().cloned().collect(),
        name: system.name,
        title: system.title,
        description: system.description,
    }
}

/// A built-in workload.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkloadRow {
    /// Name of the workload.
    name: String,
    /// Description of the workload.
    description: String,
    /// Devices.
    devices: u64,
    /// Subscribers.
    subscribers: u64,
    /// Messages per second; `null` for a flood.
    messages_per_s: Option<f64>,
    /// Variants of the workload.
    variants: Vec<String>,
    /// Parameters with their defaults.
    parameters: BTreeMap<String, String>,
}

/// Lists the workloads.
pub async fn workloads() -> Result<Json<Vec<WorkloadRow>>, Problem> {
    let rows = listing::list().map_err(|error| Problem::internal(&error))?;
    let row = |row: listing::Listed| WorkloadRow {
        name: row.name.to_owned(),
        description: row.description,
        devices: row.devices,
        subscribers: row.subscribers,
        messages_per_s: row.messages_per_s,
        variants: row.variants.iter().map(|variant| variant.as_str().to_owned()).collect(),
        parameters: row.parameters.into_iter().map(|parameter| (parameter.name, parameter.default)).collect(),
    };
    Ok(Json(rows.into_iter().map(row).collect()))
}

/// A built-in experiment.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExperimentRow {
    /// Name of the experiment.
    name: String,
    /// The question that it answers.
    title: String,
    /// Further description.
    description: String,
    /// Number of combinations of settings.
    cells: usize,
    /// Repetitions of each combination.
    repetitions: u32,
    /// Settings that vary.
    varied: Vec<String>,
}

/// Lists the experiments.
pub async fn experiments() -> Result<Json<Vec<ExperimentRow>>, Problem> {
    let rows = experiment::all().map_err(|error| Problem::internal(&error))?;
    let row = |row: experiment::Listed| ExperimentRow {
        name: row.name.to_owned(),
        title: row.experiment.title,
        description: row.experiment.description,
        cells: row.cells,
        repetitions: row.experiment.repeat,
        varied: row.varied,
    };
    Ok(Json(rows.into_iter().map(row).collect()))
}

/// A protocol.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProtocolRow {
    /// Name in a submission.
    name: String,
    /// Standard of the protocol.
    title: String,
    /// Client library, if there are several.
    client: Option<String>,
    /// Schemes of endpoints.
    schemes: Vec<String>,
    /// Supported QoS.
    qos: Vec<u8>,
}

/// Lists the protocols.
pub async fn protocols() -> Json<Vec<ProtocolRow>> {
    let rows = PROTOCOLS.iter().map(|protocol| ProtocolRow {
        name: protocol.capabilities.name.to_owned(),
        title: protocol.capabilities.title.to_owned(),
        client: protocol.client.as_ref().map(|client| client.name.to_owned()),
        schemes: protocol.capabilities.schemes.iter().map(|scheme| (*scheme).to_owned()).collect(),
        qos: protocol.capabilities.qos().map(|qos| qos.level()).collect(),
    });
    Json(rows.collect())
}

/// An emulated network.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LinkRow {
    /// Name of the link.
    name: String,
    /// Effects on packets.
    lines: Vec<String>,
    /// Source of the figures.
    source: Option<String>,
}

/// Lists the links.
pub async fn links() -> Result<Json<Vec<LinkRow>>, Problem> {
    let rows = presets::all().map_err(|error| Problem::internal(&error))?;
    let row = |link: pubmark_model::link::Link| LinkRow { lines: link.lines(), name: link.name, source: link.source };
    Ok(Json(rows.into_iter().map(row).collect()))
}

/// Result of `pubmark doctor` for one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorRow {
    /// Name of the item.
    pub name: String,
    /// `good`, `limited` or `bad`.
    pub fitness: String,
    /// What was found.
    pub text: String,
    /// What to do if it is not good.
    pub fix: Option<String>,
}

/// Checks this machine.
pub async fn doctor(State(shared): State<Arc<Shared>>) -> Result<Json<Vec<DoctorRow>>, Problem> {
    let row = |(name, check): &doctor::Check| {
        let Finding { fitness, text, fix } = check();
        DoctorRow { name: (*name).to_owned(), fitness: fitness.as_str().to_owned(), text, fix }
    };
    let look = move || doctor::CHECKS.iter().map(row).collect();
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        used.queue.between_runs(look).map(Json).map_err(|busy| {
            busy.refusal(
                "a run is under way: looking at the machine would disturb it",
                "wait for its end: `GET /runs?state=running`",
            )
        })
    })
    .await
}

/// Selects nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesQuery {
    /// Number of nodes to skip.
    #[serde(default)]
    offset: usize,
    /// Maximum number of nodes: 1 to 500; 50 if left out.
    limit: Option<usize>,
}

/// Nodes of the current run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeList {
    /// The submission that is being executed; `null` if there is none.
    run: Option<String>,
    /// Number of nodes that joined it and did not leave, on all pages.
    total: usize,
    /// Number of nodes before this page.
    offset: usize,
    /// Nodes of the page, by name.
    nodes: Vec<NodeRow>,
}

/// A node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeRow {
    /// Name of the node.
    name: String,
    /// Address of the node.
    address: Option<String>,
}

/// Lists the nodes of the current run.
pub async fn nodes(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<NodesQuery>,
) -> Result<Json<NodeList>, Problem> {
    let limit = list::limit(query.limit)?;
    let used = Arc::clone(&shared);
    lookup::briefly(move || {
        let under_way = |state: RunState| matches!(state, RunState::Running | RunState::Cancelling);
        let run = used.store.all().into_iter().find(|entry| under_way(entry.status.state));
        let run = run.map(|entry| entry.submitted.id);
        let all = run.as_ref().map(|id| used.nodes.now(&used.store, id, add_node)).unwrap_or_default();
        let (total, offset) = (all.len(), query.offset);
        let page = all.into_iter().skip(offset).take(limit);
        let nodes = page.map(|(name, address)| NodeRow { name, address }).collect();
        Ok(Json(NodeList { run, total, offset, nodes }))
    })
    .await
}

fn add_node(nodes: &mut BTreeMap<String, Option<String>>, event: StreamEvent) {
    match event {
        StreamEvent::Node { name, joined: true, address, .. } => drop(nodes.insert(name, address)),
        StreamEvent::Node { name, joined: false, .. } => drop(nodes.remove(&name)),
        _ => {}
    }
}
