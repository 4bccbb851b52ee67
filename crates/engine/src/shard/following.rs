//! Individual records of deliveries, for the messages that a run follows on their path.

use crate::followed::{FollowedDeliveries, FollowedDelivery};
use crate::plan::FOLLOWED_LIMIT;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::Header;
use pubmark_protocol::sampling::Sampling;

/// Records the deliveries of a shard.
#[derive(Debug)]
pub struct Following {
    sampling: Sampling,
    /// By session: index of its network.
    networks: Vec<Option<u16>>,
    followed: FollowedDeliveries,
}

impl Following {
    /// No deliveries yet, for sessions in these networks.
    pub fn new(sampling: Sampling, networks: Vec<Option<u16>>) -> Following {
        Following { sampling, networks, followed: FollowedDeliveries::default() }
    }

    /// Records the first copy of a measured message.
    pub fn note(&mut self, session: SessionId, header: &Header, delivery: &Delivery<'_>) {
        if !self.sampling.includes(header.publisher, header.sequence) {
            return;
        }
        if self.followed.arrived.len() == FOLLOWED_LIMIT {
            self.followed.dropped += 1;
            return;
        }
        let sent_ns = header.earliest_write_start_ns();
        let held_ns = delivery.held_ns(sent_ns);
        self.followed.arrived.push(FollowedDelivery {
            publisher: header.publisher,
            sequence: header.sequence,
            payload_bytes: delivery.payload.len() as u32,
            network: self.networks[session.0 as usize],
            due_ns: header.due_ns,
            at_ns: delivery.at_ns,
            lag_ns: header.lag_ns,
            held_ns,
            late_ns: delivery.late_ns(sent_ns).saturating_sub(held_ns),
        });
    }

    /// The recorded deliveries.
    pub fn into_followed(self) -> FollowedDeliveries {
        self.followed
    }
}
