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
    /// Limits plans to one at a time, beside other slow work.
    pub plans: Arc<Semaphore>,
    /// Limits how many requests read the summary of a result at the same time, beside other slow work.
    pub reads: Arc<Semaphore>,
    /// Limits how many requests do slow work at the same time.
    pub slow: Arc<Semaphore>,
    /// Limits lists to one at a time: the first one may read thousands of records, and other requests must not wait for it.
    pub lists: Arc<Semaphore>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
impl Shared {
    /// The state of a server with this queue, for a test.
    pub fn of_queue(store: &Arc<Store>, queue: &Arc<Queue>) -> Shared {
        use crate::guard::Of;
        use crate::token::Token;

        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 7_000));
        Shared {
            store: Arc::clone(store),
            library: Library::default(),
            queue: Arc::clone(queue),
            allow: Allow::default(),
            host: Host::this(),
            views: Views::default(),
            latest: Latest::default(),
            nodes: Following::default(),
            guard: Guard::new(Of::Server, Token::random().unwrap(), address, &[], false),
            exports: Arc::new(Semaphore::new(1)),
            plans: Arc::new(Semaphore::new(1)),
            reads: Arc::new(Semaphore::new(1)),
            slow: Arc::new(Semaphore::new(1)),
            lists: Arc::new(Semaphore::new(1)),
        }
    }

    /// The state of a server with one submission, of a run of two repetitions, in this state; the first one has a record in
    /// the folder `one`. And the id of the submission.
    pub fn of_two_repetitions(place: &std::path::Path, state: crate::store::State) -> (Shared, String) {
        use pubmark_record::sample;
        use pubmark_record::store::RunFolder;

        use crate::queue::machine::Machine;
        use crate::submission::Submission;

        let store = Arc::new(Store::open(&place.join("runs")).unwrap());
        let text = r#"{"workload": "hello", "duration": "1s", "warmup": "0s", "repetitions": 2}"#;
        let id = store.add(Submission::read(text, &Allow::default(), &Host::this()).unwrap()).unwrap().submitted.id;
        RunFolder::at(&store.runs().join("one")).unwrap().write_record(&sample::record()).unwrap();
        store
            .change(&id, |status| {
                status.state = state;
                status.folders = vec!["one".to_owned()];
            })
            .unwrap();
        let queue = Queue::new(Arc::clone(&store), "/bin/false".into(), Machine::with_session(place.to_owned()));
        (Shared::of_queue(&store, &Arc::new(queue)), id)
    }
}
