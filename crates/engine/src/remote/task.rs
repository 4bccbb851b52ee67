//! A plan as it is sent to a worker process: everything that cannot be computed from the rest.

use std::io;
use std::sync::Arc;

use pubmark_model::fleet::Fleet;
use pubmark_model::placement::Copies;
use pubmark_protocol::network::Network;
use serde::{Deserialize, Serialize};

use crate::plan::{Networks, RunPlan};

/// The task of a worker process.
#[derive(Serialize, Deserialize)]
pub(super) struct WorkerTask {
    /// Names of the adapters of devices and of subscribers.
    pub adapter_names: [String; 2],
    /// Its shards, by their index in the run.
    pub shards: Vec<u32>,
    /// The access network that it must set up first.
    pub access: Option<Vec<u8>>,
    plan: RunPlan,
    /// Copies of each group in the plan's fleet.
    copies: Copies,
}

/// The network that a worker process was started in: every thread is already inside it.
#[derive(Debug)]
struct Entered;

impl Network for Entered {
    fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        make()
    }
}

impl WorkerTask {
    /// The order for these shards of a plan.
    pub fn new(plan: &RunPlan, adapter_names: [String; 2], shards: Vec<u32>, access: Option<Vec<u8>>) -> WorkerTask {
        WorkerTask { adapter_names, shards, access, plan: plan.clone(), copies: plan.fleet.copies().clone() }
    }

    /// The plan of the run, with its fleet computed again, and with networks that this process is already inside.
    pub fn plan(&self) -> RunPlan {
        let Networks { devices, subscribers, .. } = self.plan.networks.clone();
        let networks = devices.iter().chain(&subscribers).flatten().max().map_or(0, |last| usize::from(*last) + 1);
        let entered: Arc<dyn Network> = Arc::new(Entered);
        RunPlan {
            fleet: Arc::new(Fleet::of_copies(&self.plan.workload, &self.copies)),
            networks: Networks { all: vec![entered; networks].into(), devices, subscribers },
            ..self.plan.clone()
        }
    }
}
