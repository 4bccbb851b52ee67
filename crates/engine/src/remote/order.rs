//! A plan on its way to a worker process: all of it that is not worked out from the rest.

use std::io;
use std::sync::Arc;

use pubmark_model::fleet::Fleet;
use pubmark_model::placement::Copies;
use pubmark_protocol::network::Network;
use serde::{Deserialize, Serialize};

use crate::plan::{Networks, RunPlan};

/// What a worker process is to do.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// What devices speak, and what subscribers do.
    pub speaks: [String; 2],
    /// Its shards, by their index in the run.
    pub shards: Vec<u32>,
    /// The access network that it is to make first.
    pub access: Option<Vec<u8>>,
    plan: RunPlan,
    /// Copies of each group in the plan's fleet.
    copies: Copies,
}

/// The network that a worker process was started in: every thread is there already.
#[derive(Debug)]
struct Entered;

impl Network for Entered {
    fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        make()
    }
}

impl Order {
    /// For these shards of a plan.
    pub fn new(plan: &RunPlan, speaks: [String; 2], shards: Vec<u32>, access: Option<Vec<u8>>) -> Order {
        Order { speaks, shards, access, plan: plan.clone(), copies: plan.fleet.copies().clone() }
    }

    /// The plan, as it was where the run is led: its fleet counted out, its networks those that this process is in.
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
