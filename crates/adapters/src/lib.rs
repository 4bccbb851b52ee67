//! Adapters: one module a protocol, each with [`pubmark_protocol::clients::Clients`] and its capabilities.

pub mod mqtt;
