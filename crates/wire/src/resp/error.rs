//! What is wrong with bytes that are no RESP.

/// Why bytes of a server are no RESP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A value begins with a byte that no type has.
    #[error("a value that begins with `{}`", .0.escape_ascii())]
    Type(u8),
    /// A length or a number that is none.
    #[error("a length or number that is none")]
    Number,
    /// A line without end.
    #[error("a line of more than {limit} B")]
    Line {
        /// Longest line accepted, bytes.
        limit: usize,
    },
    /// A value larger than we take.
    #[error("value of {bytes} B exceeds the limit of {limit} B")]
    TooLarge {
        /// What it announces, bytes.
        bytes: usize,
        /// Largest accepted, bytes.
        limit: usize,
    },
    /// A reply of more values than we take.
    #[error("a reply of more than {limit} values")]
    Values {
        /// Most accepted.
        limit: usize,
    },
    /// A bulk string is not followed by the end of a line.
    #[error("a bulk string without its end")]
    BulkEnd,
    /// A text that is no UTF-8.
    #[error("a text that is no UTF-8")]
    Text,
}
