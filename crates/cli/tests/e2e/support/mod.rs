//! What the tests stand on: a folder to call the binary in, a broker to break, a wire to cut, books to check.

pub mod bed;
pub mod books;
pub mod bridge;
pub mod cluster;
pub mod mosquitto;
pub mod place;
pub mod processes;
pub mod proxy;
pub mod schema;
