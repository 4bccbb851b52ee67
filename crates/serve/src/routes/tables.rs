//! What is built in, what this machine is, who joined.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
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
    /// Its name in a submission.
    name: String,
    /// Its name as its makers write it.
    title: String,
    /// What it is.
    description: String,
    /// Protocols that it speaks.
    protocols: Vec<String>,
    /// Its configurations.
    profiles: Vec<String>,
    /// Its version on this machine; `null` where its program is not installed, or it runs in a container.
    installed: Option<String>,
    /// May it be started here? `--allow systems` allows those that are no part of pubmark.
    allowed: bool,
}

/// Systems.
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
    /// Its name.
    name: String,
    /// What it is.
    description: String,
    /// Devices.
    devices: u64,
    /// Subscribers.
    subscribers: u64,
    /// Messages per second; `null` for a flood.
    messages_per_s: Option<f64>,
    /// Readings.
    variants: Vec<String>,
    /// What can be set, with its default.
    parameters: BTreeMap<String, String>,
}

/// Workloads.
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
    /// Its name.
    name: String,
    /// What it answers.
    title: String,
    /// More of it.
    description: String,
    /// Combinations of settings.
    cells: usize,
    /// Repetitions of each.
    repetitions: u32,
    /// What is varied.
    varied: Vec<String>,
}

/// Experiments.
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
    /// Its name in a submission.
    name: String,
    /// Its standard.
    title: String,
    /// Client library, where it has several.
    client: Option<String>,
    /// Schemes of endpoints.
    schemes: Vec<String>,
    /// Delivery levels.
    qos: Vec<u8>,
}

/// Protocols.
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
    /// Its name.
    name: String,
    /// What happens to packets.
    lines: Vec<String>,
    /// Where its figures are from.
    source: Option<String>,
}

/// Links.
pub async fn links() -> Result<Json<Vec<LinkRow>>, Problem> {
    let rows = presets::all().map_err(|error| Problem::internal(&error))?;
    let row = |link: pubmark_model::link::Link| LinkRow { lines: link.lines(), name: link.name, source: link.source };
    Ok(Json(rows.into_iter().map(row).collect()))
}

/// What `pubmark doctor` found of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoctorRow {
    /// What was looked at.
    pub name: String,
    /// `good`, `limited` or `bad`.
    pub fitness: String,
    /// What is there.
    pub text: String,
    /// What to do, where it is not good.
    pub fix: Option<String>,
}

/// Looks at this machine.
pub async fn doctor(State(shared): State<Arc<Shared>>) -> Result<Json<Vec<DoctorRow>>, Problem> {
    let row = |(name, check): &doctor::Check| {
        let Finding { fitness, text, fix } = check();
        DoctorRow { name: (*name).to_owned(), fitness: fitness.as_str().to_owned(), text, fix }
    };
    let look = move || doctor::CHECKS.iter().map(row).collect();
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        used.queue.between_runs(look).map(Json).ok_or_else(|| {
            Problem::new(StatusCode::CONFLICT, "a run is under way: looking at the machine would disturb it")
                .hint("wait for its end: `GET /runs?state=running`")
        })
    })
    .await
}

/// Which nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesQuery {
    /// Nodes that are left out at the beginning.
    #[serde(default)]
    offset: usize,
    /// Nodes at most: 1 to 500; 50 if left out.
    limit: Option<usize>,
}

/// Who takes part in the run under way.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeList {
    /// The submission that is carried out; `null` where there is none.
    run: Option<String>,
    /// Nodes that joined it and did not leave, on all pages.
    total: usize,
    /// Nodes before this page.
    offset: usize,
    /// The page, by name.
    nodes: Vec<NodeRow>,
}

/// A node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeRow {
    /// Its name.
    name: String,
    /// Where it is.
    address: Option<String>,
}

/// Nodes of the run under way.
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
