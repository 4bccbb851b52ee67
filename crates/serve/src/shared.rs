//! State that all requests share.

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

/// State that all requests share.
pub struct Shared {
    /// The submissions.
    pub store: Arc<Store>,
    /// The results.
    pub library: Library,
    /// The queue that executes submissions.
    pub queue: Arc<Queue>,
    /// What submissions are allowed to do.
    pub allow: Allow,
    /// Properties of this machine, for validation.
    pub host: Host,
    /// Live views of submissions.
    pub views: Views,
    /// Metrics of the current run.
    pub latest: Latest,
    /// Nodes of the current run with their addresses.
    pub nodes: Following<BTreeMap<String, Option<String>>>,
    /// Access control.
    pub guard: Guard,
    /// Limits exports to one at a time.
    pub exports: Arc<Semaphore>,
    /// Limits how many requests do slow work at the same time.
    pub slow: Arc<Semaphore>,
    /// Limits lists to one at a time: the first one may read thousands of records, and other requests must not wait for it.
    pub lists: Semaphore,
}
