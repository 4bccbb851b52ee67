//! Requests and replies of a plan: requesters, responders, and the traffic that replies add.

use serde::Serialize;

use super::Traffic;
use crate::fleet::Fleet;
use crate::workload::Workload;

/// Requesters and responders on all nodes; both are among the plan's devices and subscribers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestPlan {
    /// Requesters.
    pub requesters: u64,
    /// Responders.
    pub responders: u64,
    /// Maximum number of requests that wait for a reply at the same time.
    pub in_flight: u64,
    /// Longest timeout of a request, seconds.
    pub longest_timeout_s: f64,
    /// Replies into the system and out of it; `None` with a flood. Requests are part of the plan's device traffic.
    pub answers: Option<Traffic>,
}

impl RequestPlan {
    /// `None` without requesters. `flows` has the traffic of each publisher.
    pub(super) fn new(workload: &Workload, fleet: &Fleet, flows: &[Option<Traffic>]) -> Option<RequestPlan> {
        let longest_timeout_s = workload.longest_timeout()?.as_secs_f64();
        let (mut requesters, mut in_flight, mut answers) = (0, 0, Some(Traffic::default()));
        // The responder of each request is known, but reply sizes differ only by group, and usually there is one group.
        let reply_bytes = f64::from(workload.largest_reply_bytes());
        for device in fleet.devices() {
            let Some(requests) = workload.devices[usize::from(device.group)].requests else { continue };
            requesters += 1;
            in_flight += u64::from(requests.in_flight);
            answers = answers.zip(flows[device.publisher as usize]).map(|(mut sum, flow)| {
                sum.add(&flow.reply_traffic(1.0, reply_bytes));
                sum
            });
        }
        let responds = |group: u16| workload.subscribers[usize::from(group)].responds.is_some();
        let responders = fleet.subscribers().iter().filter(|subscriber| responds(subscriber.group)).count() as u64;
        Some(RequestPlan { requesters, responders, in_flight, longest_timeout_s, answers })
    }
}
