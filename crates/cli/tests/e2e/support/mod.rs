//! Support for the tests: a folder to call the binary in, a broker that can be broken, a proxy that can be cut, and
//! checks of the message accounting.

pub mod bed;
pub mod books;
pub mod bridge;
pub mod cluster;
pub mod mosquitto;
pub mod place;
pub mod processes;
pub mod proxy;
pub mod schema;
