//! What users experience, end to end: the real binary, real mosquitto in addition to the built-in broker, failures.
//! Timing verdicts are not checked here (a busy machine may make any run invalid); the message accounting always is.
//!
//! `support` starts what the tests need. Few tests run at a time, whatever the number of test threads.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod brokerless;
mod choose;
mod choose_on_nodes;
mod client_certificates;
mod cluster;
mod cluster_cut;
mod cluster_log;
mod congestion;
mod connections;
mod content;
mod custom_metrics;
mod deploy;
mod deploy_apply;
mod deploy_ssh;
mod dying;
mod efficiency;
mod embedding;
mod experiment;
mod faults;
mod full_disk;
mod hostile_words;
mod identities;
mod interrupt;
mod isolation;
mod kills;
mod kills_of_parts;
mod latency_breakdown;
mod links;
mod links_on_nodes;
mod lost_workers;
mod machines;
mod message_log;
mod nkeys;
mod node_metrics;
mod nodes;
mod objectives;
mod paper;
mod paper_on_nodes;
mod payloads;
mod peers_on_nodes;
mod persistence;
mod placed;
mod plain_user;
mod policies;
mod received_on_nodes;
mod relayed;
mod relayed_far;
mod relayed_faults;
mod relayed_protocols;
mod requests;
mod run;
mod secrets;
mod shared_groups;
mod sites;
mod slow_subscribers;
mod source_addresses;
mod starvation;
mod supermarket;
mod support;
mod system_node;
mod tls;
mod tokens;
mod transform;
mod two_ports;
mod websocket;
mod wills;
mod workers;
mod wrong_input;
mod zenoh;
