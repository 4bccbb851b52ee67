//! What is at the front of some bytes.

/// The packet at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front<P> {
    /// All of it is there.
    Whole {
        /// The packet.
        packet: P,
        /// Its bytes: where the next one begins.
        bytes: usize,
    },
    /// The rest has not come. Bytes of the whole as far as its front tells: it has that many at least, and all that is
    /// still missing of them belongs to it.
    Partial(Option<usize>),
}
