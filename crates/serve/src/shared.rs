//! What all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_experiment::experiment::planning::Plan;
use pubmark_runner::{CheckedRun, Host, RunError};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::allow::Allow;
use crate::following::Following;
use crate::guard::Guard;
use crate::library::Library;
use crate::live::Views;
use crate::metrics::Latest;
use crate::queue::Queue;
use crate::store::Store;

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

/// Says what a run needs, in the words of `pubmark run --dry-run`; with `true` what this machine has, too, which takes two seconds.
pub type WorkOut = fn(&CheckedRun, bool) -> Result<String, RunError>;

/// Says what an experiment needs and whether this machine can give it, in the words of `pubmark experiment --dry-run`; takes some seconds.
pub type WorkOutExperiment = fn(&Plan, &AtomicBool) -> Result<String, RunError>;

/// What all requests share.
pub struct Shared {
    /// Submissions.
    pub store: Arc<Store>,
    /// Results.
    pub library: Library,
    /// Carries them out.
    pub queue: Arc<Queue>,
    /// What submissions may do.
    pub allow: Allow,
    /// This machine, for checks.
    pub host: Host,
    /// Looks at this machine.
    pub doctor: fn() -> Vec<DoctorRow>,
    /// Works a run out.
    pub dry_run: WorkOut,
    /// Works an experiment out, on this machine.
    pub experiment_dry_run: WorkOutExperiment,
    /// What pages show.
    pub views: Views,
    /// What is exposed of the run under way.
    pub latest: Latest,
    /// Nodes of the run under way, with their addresses.
    pub nodes: Following<BTreeMap<String, Option<String>>>,
    /// Who may ask.
    pub guard: Guard,
    /// One export goes on at once.
    pub exports: Arc<Semaphore>,
    /// Limits how many requests do slow work at once.
    pub slow: Semaphore,
    /// One list is made at once: the first one may read thousands of records, and other requests do not wait for it.
    pub lists: Semaphore,
}
