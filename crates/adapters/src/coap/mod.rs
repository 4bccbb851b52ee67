//! CoAP at wire level over UDP: publishing by PUT, subscribing by observing, large messages in blocks. No DTLS.
//!
//! A session is a connected UDP socket of its own, as every device has its own address. `clients` is the loop over all of
//! them, `session` the dispatch of datagrams; `publishing`, `transfer` and `observing` do it.
//!
//! Without a broker between, requests: `requesting` sends them to its responder's address, `serving` listens and replies.

mod block_wait;
mod clients;
mod fetch;
mod in_flight;
mod link;
mod message_ids;
mod observing;
mod publishing;
mod receiving;
mod recent;
mod request;
mod requesting;
mod response;
mod serving;
mod session;
mod timing;
mod transfer;

pub use clients::CoapClients;
pub use timing::{Standard, Timing};
