//! What is wrong with bytes that are no NATS.

/// Why bytes of a server are no NATS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The line begins with no operation of a server.
    #[error("a line that begins with `{0}`")]
    Operation(String),
    /// A line has too few or too many words, or one of them is wrong.
    #[error("a {operation} line with a wrong {field}")]
    Field {
        /// The line's first word.
        operation: &'static str,
        /// What is wrong in it.
        field: &'static str,
    },
    /// A line without end.
    #[error("a line of more than {limit} B")]
    Line {
        /// Longest line accepted, bytes.
        limit: usize,
    },
    /// A message larger than we take.
    #[error("message of {bytes} B exceeds the limit of {limit} B")]
    TooLarge {
        /// Line and payload, bytes.
        bytes: usize,
        /// Largest accepted, bytes.
        limit: usize,
    },
    /// A payload is not followed by the end of a line.
    #[error("a payload without its end")]
    PayloadEnd,
    /// The content of INFO violates JSON or the protocol.
    #[error("an INFO that cannot be read: {0}")]
    Info(String),
}
