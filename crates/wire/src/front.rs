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
    /// The rest has not arrived. Bytes of the whole as far as its front shows: it has at least that many, and all missing bytes
    /// up to there belong to it.
    Partial(Option<usize>),
}
