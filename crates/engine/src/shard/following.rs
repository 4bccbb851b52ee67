//! Deliveries noted one by one, of the messages that a run follows on their way.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::Header;
use pubmark_protocol::sampling::Sampling;
use serde::{Deserialize, Serialize};

use crate::plan::FOLLOWED_LIMIT;

/// A followed message that arrived, for the first time at this subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Whole payload, bytes.
    pub payload_bytes: u32,
    /// The subscriber's network, if it has one of its own: [`crate::plan::Networks`].
    pub network: Option<u16>,
    /// Due time, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// Delivery, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
}

/// All that were noted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Followed {
    /// By shard, in the order of their arrival there.
    pub arrived: Vec<Arrived>,
    /// Those that were not noted, as there were too many.
    pub dropped: u64,
}

impl Followed {
    /// Adds another shard's.
    pub fn merge(&mut self, other: Followed) {
        self.arrived.extend(other.arrived);
        self.dropped += other.dropped;
    }
}

/// Notes the deliveries of a shard.
#[derive(Debug)]
pub struct Following {
    sampling: Sampling,
    /// By session.
    networks: Vec<Option<u16>>,
    followed: Followed,
}

impl Following {
    /// Nothing noted, of sessions in these networks.
    pub fn new(sampling: Sampling, networks: Vec<Option<u16>>) -> Following {
        Following { sampling, networks, followed: Followed::default() }
    }

    /// A first copy of a measured message arrived.
    pub fn note(&mut self, session: SessionId, header: &Header, delivery: &Delivery<'_>) {
        if !self.sampling.takes(header.publisher, header.sequence) {
            return;
        }
        if self.followed.arrived.len() == FOLLOWED_LIMIT {
            self.followed.dropped += 1;
            return;
        }
        self.followed.arrived.push(Arrived {
            publisher: header.publisher,
            sequence: header.sequence,
            payload_bytes: delivery.payload.len() as u32,
            network: self.networks[session.0 as usize],
            due_ns: header.due_ns,
            at_ns: delivery.at_ns,
        });
    }

    /// What was noted.
    pub fn into_followed(self) -> Followed {
        self.followed
    }
}
