//! The namespaces of links as the networks that clients' sockets are made in.

use std::io;

use pubmark_protocol::network::Network;

use crate::namespace::Namespace;

impl Network for Namespace {
    fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.enter(make).map_err(io::Error::other)?
    }
}
