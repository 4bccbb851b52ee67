//! Property tests of the MQTT codec: round trips, hostile bytes, and two libraries as oracles.
#![allow(clippy::unwrap_used)]

mod against_core;
mod against_rumqttc;
mod hostile;
mod packets;
mod round_trip;
