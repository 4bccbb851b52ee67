//! A plan on its way to a worker process: all of it that is not worked out from the rest.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pubmark_model::fleet::Fleet;
use pubmark_model::schedule::Timeline;
use pubmark_model::workload::Workload;
use pubmark_protocol::network::Network;
use pubmark_protocol::sampling::Sampling;
use serde::{Deserialize, Serialize};

use crate::faults::planned::PlannedFault;
use crate::places::Places;
use crate::plan::{Networks, RunPlan};

/// What a worker process is to do.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// What devices speak, and what subscribers do.
    pub speaks: [String; 2],
    /// Its shards, by their index in the run.
    pub shards: Vec<u32>,
    plan: Carried,
}

#[derive(Serialize, Deserialize)]
struct Carried {
    workload: Arc<Workload>,
    /// Of devices and of subscribers.
    copies: [u32; 2],
    seed: u64,
    run_id: u32,
    timeline: Timeline,
    drain_limit: Duration,
    publish_at: Places,
    subscribe_at: Places,
    /// Networks of device groups and of subscriber groups.
    networks: [Vec<Option<u16>>; 2],
    nodes: u16,
    on_nodes: bool,
    by_network: bool,
    follows: Option<Sampling>,
    sources: Arc<[IpAddr]>,
    /// Threads for publishers and for subscribers, where they are dealt out by number.
    threads: [u32; 2],
    connects_per_s: f64,
    connect_limit: Duration,
    hopeless_after: Duration,
    realtime: bool,
    handicap: Option<Duration>,
    receive_stamps: bool,
    maximum_packet_bytes: u64,
    faults: Arc<[PlannedFault]>,
    keep_alive_s: u16,
    resumes_tls: bool,
    congestion_control: Option<Arc<str>>,
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
    pub fn new(plan: &RunPlan, speaks: [String; 2], shards: Vec<u32>) -> Order {
        let plan = Carried {
            workload: Arc::clone(&plan.workload),
            copies: plan.fleet.copies(),
            seed: plan.seed,
            run_id: plan.run_id,
            timeline: plan.timeline,
            drain_limit: plan.drain_limit,
            publish_at: plan.publish_at.clone(),
            subscribe_at: plan.subscribe_at.clone(),
            networks: [plan.networks.devices.clone(), plan.networks.subscribers.clone()],
            nodes: plan.nodes,
            on_nodes: plan.on_nodes,
            by_network: plan.by_network,
            follows: plan.follows,
            sources: Arc::clone(&plan.sources),
            threads: [plan.publisher_shards as u32, plan.subscriber_shards as u32],
            connects_per_s: plan.connects_per_s,
            connect_limit: plan.connect_limit,
            hopeless_after: plan.hopeless_after,
            realtime: plan.realtime,
            handicap: plan.handicap,
            receive_stamps: plan.receive_stamps,
            maximum_packet_bytes: plan.maximum_packet_bytes as u64,
            faults: Arc::clone(&plan.faults),
            keep_alive_s: plan.keep_alive_s,
            resumes_tls: plan.resumes_tls,
            congestion_control: plan.congestion_control.clone(),
        };
        Order { speaks, shards, plan }
    }

    /// The plan, as it was where the run is led.
    pub fn plan(&self) -> RunPlan {
        let plan = &self.plan;
        let [devices, subscribers] = plan.networks.clone();
        let networks = devices.iter().chain(&subscribers).flatten().max().map_or(0, |last| usize::from(*last) + 1);
        let entered: Arc<dyn Network> = Arc::new(Entered);
        RunPlan {
            fleet: Arc::new(Fleet::of_copies(&plan.workload, plan.copies)),
            workload: Arc::clone(&plan.workload),
            seed: plan.seed,
            run_id: plan.run_id,
            timeline: plan.timeline,
            drain_limit: plan.drain_limit,
            publish_at: plan.publish_at.clone(),
            subscribe_at: plan.subscribe_at.clone(),
            networks: Networks { all: vec![entered; networks].into(), devices, subscribers },
            nodes: plan.nodes,
            on_nodes: plan.on_nodes,
            by_network: plan.by_network,
            follows: plan.follows,
            sources: Arc::clone(&plan.sources),
            publisher_shards: plan.threads[0] as usize,
            subscriber_shards: plan.threads[1] as usize,
            connects_per_s: plan.connects_per_s,
            connect_limit: plan.connect_limit,
            hopeless_after: plan.hopeless_after,
            realtime: plan.realtime,
            handicap: plan.handicap,
            receive_stamps: plan.receive_stamps,
            maximum_packet_bytes: plan.maximum_packet_bytes as usize,
            faults: Arc::clone(&plan.faults),
            keep_alive_s: plan.keep_alive_s,
            resumes_tls: plan.resumes_tls,
            congestion_control: plan.congestion_control.clone(),
        }
    }
}
