//! DDS: no server, participants discover each other. A session is a device's writers, or a subscriber's readers, on the
//! participant that all sessions of a shard share; connecting creates them, disconnecting deletes them.
//!
//! None of our code waits inside a library for samples: its threads raise a flag and wake the shard, which then takes them. A call
//! that creates or deletes takes as long as the library needs; the engine limits the time of a shard that does not return. A shard
//! writes through one domain and reads through another (`network`), so that every sample goes through the network. `session` is
//! the sending side, `readers` the receiving one, `clients` the loop over both. `settings` parses the settings of an endpoint,
//! `names` maps topics of a workload. A client library is a [`binding::Binding`]: `cyclone` over the C library, `rust` over
//! RustDDS.

mod acknowledging;
pub mod binding;
mod clients;
#[cfg(feature = "dds-cyclone")]
mod cyclone;
mod deletion_queue;
#[cfg(test)]
mod memory;
mod names;
mod network;
mod readers;
#[cfg(feature = "dds")]
mod rust;
mod session;
pub mod settings;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, EndpointSettings, Features, Level, SentMeans};

pub use clients::DdsClients;
#[cfg(feature = "dds-cyclone")]
pub use cyclone::CycloneClients;
#[cfg(feature = "dds")]
pub use rust::RustClients;

/// Largest payload: what was tried, times eight. Above, a sample is a thousand datagrams and more.
const LARGEST_PAYLOAD_BYTES: u32 = 16 << 20;

/// What clients of DDS can do, whatever their library.
const CAPABILITIES: Capabilities = Capabilities {
    name: "dds",
    title: "DDS by Cyclone DDS (OMG DDS 1.4, RTPS 2.2 and later)",
    schemes: &["dds"],
    tls_schemes: &[],
    default_port: settings::FIRST_PORT,
    default_tls_port: settings::FIRST_PORT,
    levels: &[
        Level { qos: Qos::BestEffort, means: "reliability BEST_EFFORT on both sides" },
        Level {
            qos: Qos::AtLeastOnce,
            means: "RELIABLE, KEEP_ALL; acknowledged when every reader has acknowledged all that the writer wrote",
        },
    ],
    wildcards: true,
    retain: false,
    persistent_sessions: false,
    ends_sessions: false,
    features: Features {
        brokerless: true,
        chooses_addresses: true,
        settings: Some(EndpointSettings { begins_with: '?', check: settings::check, finds: Some(settings::peers) }),
        ..Features::NONE
    },
    sent_means: SentMeans::HandedOver,
    maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
    check_topic: Some(names::check),
    filter_matches: None,
};
