//! CoAP's codec: what is written is read back, `coap-lite` agrees both ways, and no bytes break it.
#![allow(clippy::unwrap_used, missing_docs)]

mod against_coap_lite;
mod hostile;
mod messages;
