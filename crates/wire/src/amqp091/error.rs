//! What is wrong with bytes that are no AMQP 0-9-1.

/// Why bytes of a server are no AMQP 0-9-1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A frame begins with an octet that no type has.
    #[error("a frame that begins with 0x{0:02x}, which no type has")]
    FrameType(u8),
    /// A frame larger than we take.
    #[error("frame of {bytes} B exceeds the limit of {limit} B")]
    TooLarge {
        /// The whole frame, bytes.
        bytes: usize,
        /// Largest accepted, bytes.
        limit: usize,
    },
    /// A frame does not end with [`super::FRAME_END`].
    #[error("a frame that ends with 0x{0:02x} in place of 0xce")]
    FrameEnd(u8),
    /// A method that no server sends to us.
    #[error("method {class}.{method}, which no server sends")]
    Method {
        /// Its class.
        class: u16,
        /// Its number in the class.
        method: u16,
    },
    /// A method's argument is cut short, or a text is no UTF-8.
    #[error("{method} with a wrong {field}")]
    Field {
        /// The method.
        method: &'static str,
        /// Its argument.
        field: &'static str,
    },
    /// A method has more than its arguments.
    #[error("{method} with {bytes} B behind its arguments")]
    TrailingBytes {
        /// The method.
        method: &'static str,
        /// What is too much, bytes.
        bytes: usize,
    },
    /// A content header that is none, or not that of a message.
    #[error("a content header that is none of a message")]
    ContentHeader,
}
