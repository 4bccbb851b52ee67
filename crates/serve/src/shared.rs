//! What all requests share.

use std::sync::Arc;

use pubmark_runner::{CheckedRun, Host, RunError};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::allow::Allow;
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
    /// What pages show.
    pub views: Views,
    /// What is exposed of the run under way.
    pub latest: Latest,
    /// Who may ask.
    pub guard: Guard,
    /// One export goes on at once.
    pub exports: Arc<Semaphore>,
    /// Limits how many requests do slow work at once.
    pub slow: Semaphore,
    /// One list is made at once: the first one may read thousands of records, and other requests do not wait for it.
    pub lists: Semaphore,
}
