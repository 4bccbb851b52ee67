//! What all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubmark_runner::Host;
use tokio::sync::Semaphore;

use crate::allow::Allow;
use crate::following::Following;
use crate::guard::Guard;
use crate::library::Library;
use crate::live::Views;
use crate::metrics::Latest;
use crate::queue::Queue;
use crate::store::Store;

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
    pub slow: Arc<Semaphore>,
    /// One list is made at once: the first one may read thousands of records, and other requests do not wait for it.
    pub lists: Semaphore,
}
